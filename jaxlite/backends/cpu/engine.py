"""compile_text: LLVM IR text in, machine code in this process out.

Parsing and verifying are LLVM's; the emitter's vector IR then goes straight to code generation for
this CPU, with no IR passes. The object may call only the symbols passed in and the few in
`LIBRARY_SYMBOLS` that LLVM's code generator itself uses: anything else is an error here. It is
linked by LLVM's ORC layer (0.3 ms; a MCJIT engine takes 1.3 ms) into a library of its own. The
object holds symbols but no addresses, so it may be cached and loaded again.
"""

from __future__ import annotations

import ctypes
import functools
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import llvmlite.binding as llvm

from jaxlite.backends.cpu.objects import undefined_symbols

LIBRARY_SYMBOLS = ("memcpy", "memmove", "memset")
OPTIMIZATION = 2  # of code generation; 1 and 3 measure the same
QUICK = 0  # for control code: 4 ms instead of 14 for the thread pool's module

_lock = threading.Lock()  # LLVM's target machine and the linker take one thread at a time
_libraries = 0


@final
class CodeError(RuntimeError):
    """LLVM refused the text, or it calls a symbol that nobody offers: a mistake in the emitter."""


@final
@dataclass(frozen=True, eq=False)
class MachineCode:
    """Loaded code. It lives as long as this object."""

    addresses: Mapping[str, int]
    library: Any


def generate(text: str, optimization: int = OPTIMIZATION) -> tuple[bytes, dict[str, float]]:
    """The object of a module, and the seconds that parsing and generating took."""
    start = time.perf_counter()
    with _lock:
        module = _parse(text)
        parsed = time.perf_counter()
        object_bytes = bytes(_target_machine(optimization).emit_object(module))
    return object_bytes, {"parse": parsed - start, "generate": time.perf_counter() - parsed}


def compile_text(
    text: str,
    exports: Sequence[str],
    symbols: Mapping[str, int] | None = None,
    optimization: int = OPTIMIZATION,
) -> MachineCode:
    """Compile and load a module; `exports` are the functions whose addresses are wanted."""
    return load_object(generate(text, optimization)[0], exports, symbols)


def load_object(object_bytes: bytes, exports: Sequence[str], symbols: Mapping[str, int] | None = None) -> MachineCode:
    """Load an object that `generate` made, perhaps in another process on the same CPU."""
    global _libraries
    offered = {**_library_addresses(), **(symbols or {})}
    used = undefined_symbols(object_bytes)
    if not used <= offered.keys():
        raise CodeError(
            f"generated code calls {sorted(used - offered.keys())}; it may call {sorted(offered)} "
            "and nothing else: the emitter has to write the operation out"
        )
    builder = llvm.JITLibraryBuilder().add_object_img(object_bytes)
    for name in used:
        builder.import_symbol(name, offered[name])
    for name in exports:
        builder.export_symbol(name)
    with _lock:
        _libraries += 1
        library = builder.link(_linker(), f"jaxlite{_libraries}")
    return MachineCode({name: int(library[name]) for name in exports}, library)


def assembly(text: str) -> str:
    """The assembly that `compile_text` would generate for `text`."""
    with _lock:
        machine_code: str = _target_machine(OPTIMIZATION).emit_assembly(_parse(text))
    return machine_code


def _parse(text: str) -> Any:
    try:
        module = llvm.parse_assembly(text)
        module.verify()
    except RuntimeError as error:
        raise CodeError(f"LLVM refuses the generated text: {error}") from error
    return module


def _new_target_machine(optimization: int) -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=optimization,
        jit=True,
    )


@functools.cache
def _target_machine(optimization: int) -> Any:
    return _new_target_machine(optimization)


@functools.cache
def _linker() -> Any:
    return llvm.create_lljit_compiler(_new_target_machine(OPTIMIZATION))  # it takes the target machine over


@functools.cache
def _library_addresses() -> dict[str, int]:
    process = ctypes.CDLL(None)
    return {name: function_address(process, name) for name in LIBRARY_SYMBOLS}


def function_address(library: ctypes.CDLL, name: str) -> int:
    """The address of a function in a loaded library."""
    address = ctypes.cast(library[name], ctypes.c_void_p).value
    if address is None:
        raise CodeError(f"{name} of {library._name!r} has no address")
    return address
