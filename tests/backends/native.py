"""For tests: compile emitted LLVM text and call it on NumPy arrays, without an engine."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from jaxlite.backends.cpu.emit import emit_kernel, module_text
from jaxlite.backends.cpu.target import Target, host_target
from jaxlite.compiler.loops import Kernel


def target_machine(cpu: str = "", triple: str = "") -> Any:
    """A fresh target machine, of this CPU unless told otherwise (an engine takes it over)."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    host = llvm.get_host_cpu_features().flatten()
    return llvm.Target.from_triple(triple or llvm.get_default_triple()).create_target_machine(
        cpu=cpu or llvm.get_host_cpu_name(),
        features="" if cpu else host,
        opt=2,
        codemodel="jitdefault",
    )


class Native:
    """A compiled kernel; call it with arrays in the order of its non-local buffers."""

    def __init__(self, kernel: Kernel, target: Target | None = None) -> None:
        target = target or host_target()
        self.text = module_text([emit_kernel(kernel, target, "jl_kernel")])
        module = llvm.parse_assembly(self.text)
        module.verify()
        self.engine = llvm.create_mcjit_compiler(module, target_machine())
        self.engine.finalize_object()
        address = self.engine.get_function_address("jl_kernel")
        prototype = ctypes.CFUNCTYPE(
            None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p
        )
        self.function = prototype(address)

    def __call__(self, *arrays: np.ndarray[Any, Any], sizes: Sequence[int] = (), low: int = 0, high: int = 1) -> None:
        """Run iterations [low, high) of the parallel loop."""
        addresses = (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))
        extents = (ctypes.c_int64 * max(1, len(sizes)))(*sizes)
        self.function(addresses, extents, low, high, None)  # no frame: nothing polls


def undefined_symbols(text: str, cpu: str = "", triple: str = "") -> set[str]:
    """The symbols that an object file made of `text` needs from outside."""
    module = llvm.parse_assembly(text)
    if triple:
        module.triple = triple
    return set(_elf_undefined(target_machine(cpu, triple).emit_object(module)))


def _elf_undefined(data: bytes) -> list[str]:
    """Undefined symbols of a 64-bit little-endian ELF object."""
    (section_table,) = struct.unpack_from("<Q", data, 0x28)
    size, count = struct.unpack_from("<HH", data, 0x3A)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, section_table + i * size) for i in range(count)]
    names = []
    for section in sections:
        if section[1] != 2:  # SHT_SYMTAB
            continue
        strings = sections[section[6]][4]
        for at in range(section[4], section[4] + section[5], 24):
            name, info, _, index = struct.unpack_from("<IBBH", data, at)
            if index == 0 and name and info >> 4:
                end = data.index(b"\0", strings + name)
                names.append(data[strings + name : end].decode())
    return names
