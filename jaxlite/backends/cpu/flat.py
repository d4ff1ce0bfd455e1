"""One kernel for all shapes: an eager elementwise operation as a loop whose length is given at each call.

In: an elementwise primitive, the types of its operands (their lengths apart) and its parameters.  Out: a
:class:`FlatKernel` that runs over any number of elements.  Operands without axes are read once.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, final

from jaxlite.backends.cpu import engine, memory
from jaxlite.backends.cpu.emit import emit_kernel, module_text
from jaxlite.backends.cpu.target import host_target
from jaxlite.compiler.builder import Builder
from jaxlite.compiler.loops import INDEX, Kernel
from jaxlite.core import dtypes
from jaxlite.core.array import Array
from jaxlite.core.avals import ShapedArray
from jaxlite.core.primitive import Primitive

LONGEST = 1 << 16  # elements: longer operations run as a compiled program, split over the threads
_SYMBOL = "jl_flat"
_PROTOTYPE = ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


def fits(primitive: Primitive, avals: Sequence[ShapedArray], out: ShapedArray) -> bool:
    """Whether the operation is one flat loop: operands of the result's shape, or without axes."""
    return (
        primitive.family == "elementwise"
        and not primitive.multiple_results
        and out.size <= LONGEST
        and all(a.shape in ((), out.shape) for a in avals)
    )


def flat_kernel(primitive: Any, operands: Sequence[tuple[Any, bool]], out_dtype: Any, params: dict[str, Any]) -> Kernel:
    """The loop nest; ``operands`` are (dtype, whether it has axes)."""
    b = Builder()
    inputs = [b.buffer(f"in{i}", dtypes.physical(d), None, "input") for i, (d, _) in enumerate(operands)]
    out = b.buffer("out", dtypes.physical(out_dtype), None, "output")
    with b.loop(b.size(), parallel=True, vector=True) as i:
        zero = b.constant(0, INDEX)
        xs = [b.load(n, i if spread else zero) for n, (_, spread) in zip(inputs, operands, strict=True)]
        b.store(out, i, primitive.scalar(b, *xs, **params))
    return b.finish(primitive.name)


@final
class FlatKernel:
    """Machine code for one elementwise operation on any number of elements."""

    def __init__(self, kernel: Kernel, contract_fma: bool) -> None:
        text = module_text([emit_kernel(kernel, host_target(contract_fma), _SYMBOL)])
        self._code = engine.compile_text(text, [_SYMBOL])
        self._function = _PROTOTYPE(self._code.addresses[_SYMBOL])
        self._addresses = ctypes.c_uint64 * (len(kernel.buffers))

    def __call__(self, arrays: Sequence[Array], out: ShapedArray) -> Array:
        """The result for these operands."""
        size = out.size
        block = memory.allocate(size * dtypes.physical(out.dtype).itemsize)
        addresses = self._addresses(*[x.address for x in arrays], block.address)
        self._function(addresses, (ctypes.c_int64 * 1)(size), 0, size)
        return Array(out, None, block.address, block)
