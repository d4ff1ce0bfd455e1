"""NVRTC without CuPy: compile CUDA C++ to PTX on a machine that may have no GPU. For tests.

In: source text. Out: PTX text, or `CompileError` with the compiler's log. It loads the library that
the wheel `nvidia-cuda-nvrtc-cu12` brings.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
from collections.abc import Sequence
from pathlib import Path


class CompileError(RuntimeError):
    """The CUDA compiler refused a source; the message is its log."""


@functools.cache
def library() -> ctypes.CDLL | None:
    """The NVRTC library, or None where the wheel is not installed."""
    try:
        spec = importlib.util.find_spec("nvidia.cuda_nvrtc")
    except ModuleNotFoundError:
        return None
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    files = [file for place in places for file in sorted(Path(place).glob("lib/libnvrtc.so.*"))]
    return ctypes.CDLL(str(files[0])) if files else None


def compile_to_ptx(source: str, options: Sequence[str], architecture: str = "compute_80") -> str:
    """The PTX of `source`."""
    nvrtc = library()
    if nvrtc is None:
        raise CompileError("NVRTC is not installed; pip install nvidia-cuda-nvrtc-cu12")
    program = ctypes.c_void_p()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernels.cu", 0, None, None)
    flags = [f"--gpu-architecture={architecture}", *options]
    array = (ctypes.c_char_p * len(flags))(*(flag.encode() for flag in flags))
    status = nvrtc.nvrtcCompileProgram(program, len(flags), array)
    try:
        if status != 0:
            raise CompileError(_text(nvrtc, program, "ProgramLog"))
        return _text(nvrtc, program, "PTX")
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _text(nvrtc: ctypes.CDLL, program: ctypes.c_void_p, what: str) -> str:
    size = ctypes.c_size_t()
    getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    buffer = ctypes.create_string_buffer(size.value)
    getattr(nvrtc, f"nvrtcGet{what}")(program, buffer)
    return buffer.value.decode()
