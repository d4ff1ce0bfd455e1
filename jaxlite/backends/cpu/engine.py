"""compile_text: LLVM IR text in, machine code in this process out.

Parsing and verifying are LLVM's; the emitter's vector IR then goes straight to code generation for
this CPU, with no IR passes. The object may call only the symbols passed in and the few in
`LIBRARY_SYMBOLS` that LLVM's code generator itself uses: anything else is an error here. It is
linked by LLVM's ORC layer (0.3 ms; a MCJIT engine takes 1.3 ms) into a library of its own. The
object holds symbols but no addresses, so it may be cached and loaded again.

LLVM is never left halfway: a signal ends the waiting for it and not its work (`core/locks.py`), and a fork waits
until no thread is in it.
"""

from __future__ import annotations

import ctypes
import functools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import llvmlite.binding as llvm

from jaxlite.backends.cpu.objects import object_symbols
from jaxlite.core import locks

LIBRARY_SYMBOLS = ("memcpy", "memmove", "memset")
OPTIMIZATION = 2  # of code generation; 1 and 3 measure the same
QUICK = 0  # for control code: 4 ms instead of 14 for the thread pool's module

LIBRARIES = 256  # of one linker: it keeps 9 KiB of each that it has linked, until it goes itself

_lock = locks.held_at_fork()  # LLVM's target machine and the linker take one thread at a time
_libraries = 0


@final
class CodeError(RuntimeError):
    """LLVM refused the text, or it calls a symbol that nobody offers: a mistake in the emitter."""


@final
@dataclass(frozen=True, eq=False)
class MachineCode:
    """Loaded code. It lives as long as this object, and as its functions."""

    addresses: Mapping[str, int]
    library: _Library

    def function(self, name: str, prototype: Callable[[int], Any]) -> Any:
        """An export as a function of ctypes, which keeps the code: whoever can call it may, whatever was forgotten."""
        made = prototype(self.addresses[name])
        made.code = self
        return made


@final
class _Library(functools.partial[None]):
    """Keeps a library of the linker's: ``_Library(_dead.append, library)``.

    What makes it one of the dead when it is dropped is C code: bytecode of a `__del__` could be interrupted, and the
    interrupt would be lost. The next link, in its helper thread, lets LLVM free them.
    """

    __del__ = functools.partial.__call__


_dead: list[Any] = []


def generate(text: str, optimization: int = OPTIMIZATION) -> tuple[bytes, dict[str, float]]:
    """The object of a module, and the seconds that parsing and generating took."""
    return locks.elsewhere(_generate, text, optimization)


def _generate(text: str, optimization: int) -> tuple[bytes, dict[str, float]]:
    with _lock:
        start = time.perf_counter()
        module = _parse(text)
        parsed = time.perf_counter()
        object_bytes = bytes(_target_machine(optimization).emit_object(module))
        del module  # LLVM frees it while the lock is held
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
    return load_objects([object_bytes], exports, symbols)


def load_objects(
    objects: Sequence[bytes], exports: Sequence[str], symbols: Mapping[str, int] | None = None
) -> MachineCode:
    """Load objects that may call each other."""
    offered = {**_library_addresses(), **(symbols or {})}
    own: set[str] = set()
    wanted: set[str] = set()
    for object_bytes in objects:
        defined, undefined = object_symbols(object_bytes)
        own |= defined
        wanted |= undefined
    used = wanted - own
    if not used <= offered.keys():
        raise CodeError(
            f"generated code calls {sorted(used - offered.keys())}; it may call {sorted(offered)} "
            "and nothing else: the emitter has to write the operation out"
        )
    return locks.elsewhere(_link, objects, exports, {name: offered[name] for name in used})


def _link(objects: Sequence[bytes], exports: Sequence[str], symbols: Mapping[str, int]) -> MachineCode:
    global _libraries
    with _lock:
        builder = llvm.JITLibraryBuilder()
        for object_bytes in objects:
            builder.add_object_img(object_bytes)
        for name, address in symbols.items():
            builder.import_symbol(name, address)
        for name in exports:
            builder.export_symbol(name)
        if _libraries % LIBRARIES == 0:
            _linker.cache_clear()
        _libraries += 1
        library = builder.link(_linker(), f"jaxlite{_libraries}")
        library.linker = _linker()  # which lives as long as any of its libraries
        del builder
        _dead.clear()
        return MachineCode({name: int(library[name]) for name in exports}, _Library(_dead.append, library))


def assembly(text: str) -> str:
    """The assembly that `compile_text` would generate for `text`."""
    return locks.elsewhere(_assembly, text)


def _assembly(text: str) -> str:
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
