"""The functions that a program's entry calls: kernels and matrix products, each distinct one once.

`Functions` hands out symbols and collects texts: equal kernels and equal products share one
function. `chunk_of` says in what pieces the thread pool takes a kernel's parallel loop.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import TypeAlias, final

from jaxlite.backends.cpu import library_calls, polling, products
from jaxlite.backends.cpu.target import Target
from jaxlite.compiler.loops import Kernel, Loop
from jaxlite.compiler.plan import KernelCall, LibraryCall, MatrixProduct

SPLIT_WORK = 1 << 17  # scalar operations from which a fork pays
CHUNK_WORK = 1 << 15
MAX_CHUNKS = 256
LONG_CHUNK = 1 << 21  # scalar operations of a chunk beyond which there are more: between two chunks a program can stop
APART = 16_000  # characters of a kernel's text from which it is an object of its own, kept for other programs: LLVM
# then takes tens of milliseconds for it, and some three more for another module
VECTOR_UNIT = 64  # chunks of a vector loop are multiples of this

KernelEmitter: TypeAlias = Callable[[Kernel, Target, str], str]


@final
class Functions:
    """The functions that the entry calls, each once; equal kernels share one."""

    def __init__(self, target: Target, emit: KernelEmitter) -> None:
        self.target = target
        self.emit = emit
        self.texts: list[str] = []
        self.apart: dict[str, str] = {}  # those of `texts` that become objects of their own, by symbol
        self.names: list[str] = []
        self.blas: dict[str, None] = {}
        self._by_identity: dict[Kernel, str] = {}
        self._by_key: dict[object, str] = {}
        self.polling: set[str] = set()  # the kernels that may return before they are through

    def kernel(self, kernel: Kernel) -> str:
        if kernel not in self._by_identity:
            text = self.emit(kernel, self.target, "jl_kernel")
            name = re.sub(r"\W", "_", kernel.name, flags=re.ASCII)
            apart = len(text) >= APART
            if apart:  # a name that it has in every program
                name = re.sub(r"_\d+$", "", name) + "_" + hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
            else:
                name = f"{len(self.names)}_{name}"
            self._by_identity[kernel] = symbol = self._once(text, f"jl_{name}", text)
            if apart:
                self.apart[symbol] = text.replace("@jl_kernel(", f"@{symbol}(")
            if polling.polls(kernel):
                self.polling.add(symbol)
        return self._by_identity[kernel]

    def product(self, product: MatrixProduct) -> str:
        self.blas["sgemm" if product.dtype.itemsize == 4 else "dgemm"] = None
        text = products.product_text(product, "jl_kernel")
        key = products.product_key(product)
        return self._once(key, f"jl_{len(self.names)}_product", text)

    def library_call(self, call: LibraryCall) -> str:
        self.blas[call.routine] = None
        text = library_calls.library_call_text(call, "jl_kernel")
        return self._once(text, f"jl_{len(self.names)}_{call.routine}", text)

    def _once(self, key: object, symbol: str, text: str) -> str:
        if key not in self._by_key:
            self._by_key[key] = symbol
            self.names.append(symbol)
            self.texts.append(text.replace("@jl_kernel(", f"@{symbol}("))
        return self._by_key[key]


def chunk_of(step: KernelCall) -> int:
    """How many iterations of the parallel loop one chunk takes: all, if splitting does not pay."""
    outer = next((s for s in step.kernel.body if isinstance(s, Loop)), None)
    if outer is None or not outer.parallel:
        return step.extent
    work = max(step.work, step.extent * polling.iteration_work(outer))
    if step.work < SPLIT_WORK and work < LONG_CHUNK:
        return step.extent
    unit = VECTOR_UNIT if outer.vector else 1
    chunks = max(min(MAX_CHUNKS, step.work // CHUNK_WORK), work // LONG_CHUNK, 1)
    return -(-step.extent // (chunks * unit)) * unit
