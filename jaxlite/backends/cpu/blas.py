"""BLAS and LAPACK routines as addresses that native code calls, each call on one thread.

`routine("sgemm")` is the address of the Fortran routine with 32-bit integers. Matrix products are
tiled over jaxlite's own pool, so BLAS itself must stay on the calling thread, and the number of
threads that the user's own SciPy sees must not change. OpenBLAS has one thread count per loaded
library (its `openblas_set_num_threads_local` sets that same global in SciPy's builds, measured and
disassembled), so on Linux a private copy of the library that SciPy's wheel brings is loaded from an
anonymous file with one thread: 20 ms, the thread count of SciPy's own copy untouched. The copy gets
another SONAME, else a later `import scipy.linalg` would be bound to it. Elsewhere, or with another
SciPy build, the routine comes from SciPy's `cython_blas` capsules, found by import spec (25 ms;
250 ms by the ordinary import); then BLAS may use its own threads inside a tile.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.machinery
import importlib.util
import os
import sys
from pathlib import Path
from typing import Any, final

from jaxlite.backends.cpu.engine import function_address
from jaxlite.core import locks


@final
class BlasMissing(ImportError):
    """SciPy, which brings BLAS, is not there or has not the routine."""


@functools.cache
def routine(name: str) -> int:
    """The address of a BLAS or LAPACK routine ("sgemm", "dpotrf", ...)."""
    library = _private_openblas()
    if library is not None:
        for symbol in (f"scipy_{name}_", f"{name}_"):
            if hasattr(library, symbol):
                return function_address(library, symbol)
    return _capsule(name)


def is_single_threaded() -> bool:
    """Whether calls of `routine(...)` surely stay on their thread."""
    return _private_openblas() is not None


def _scipy_folder() -> Path:
    spec = importlib.util.find_spec("scipy")
    if spec is None or spec.origin is None:
        raise BlasMissing("matrix products need SciPy, for its BLAS: `pip install scipy`")
    return Path(spec.origin).parent


_copies: list[ctypes.CDLL | None] = []  # one, from the first routine on
_loading = locks.held_at_fork()  # the environment says 1 thread meanwhile: no thread and no child is to see that


def _private_openblas() -> ctypes.CDLL | None:
    """Our own copy of SciPy's OpenBLAS with one thread, or None where that cannot be had."""
    if not _copies:
        locks.elsewhere(_load_once)  # whole, else an interrupt could leave the environment changed
    return _copies[0]


def _load_once() -> None:
    with _loading:
        if not _copies:
            _copies.append(_load())


def _load() -> ctypes.CDLL | None:
    if not sys.platform.startswith("linux"):
        return None
    folder = _scipy_folder().parent / "scipy.libs"
    found = sorted(folder.glob("libscipy_openblas*.so"))
    if not found:
        return None
    for pattern in ("libquadmath*", "libgfortran*"):  # what it needs, by the paths SciPy will use
        for path in sorted(folder.glob(pattern)):
            ctypes.CDLL(str(path))
    try:
        return _load_copy(found[0])
    except OSError:  # a system that refuses to run anonymous files
        return None


def _load_copy(path: Path) -> ctypes.CDLL:
    name = path.name.encode()
    contents = path.read_bytes().replace(name, b"jax" + name[3:])
    descriptor = os.memfd_create("jaxlite_openblas")
    try:
        with os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(contents)
        kept = os.environ.get("OPENBLAS_NUM_THREADS")
        os.environ["OPENBLAS_NUM_THREADS"] = "1"  # read once, by the copy's constructor
        try:
            return ctypes.CDLL(f"/proc/self/fd/{descriptor}")
        finally:
            if kept is None:
                del os.environ["OPENBLAS_NUM_THREADS"]
            else:
                os.environ["OPENBLAS_NUM_THREADS"] = kept
    finally:
        os.close(descriptor)


def _capsule(name: str) -> int:
    for module in ("cython_blas", "cython_lapack"):
        capsules = _capsules(module)
        if name in capsules:
            return _capsule_address(capsules[name])
    raise BlasMissing(f"SciPy's BLAS and LAPACK have no routine {name!r}")


@functools.cache
def _capsules(module: str) -> dict[str, Any]:
    """The C functions that a SciPy extension module exports, without importing scipy.linalg."""
    qualified = f"scipy.linalg.{module}"
    if qualified in sys.modules:
        capsules: dict[str, Any] = sys.modules[qualified].__pyx_capi__
        return capsules
    for suffix in importlib.machinery.EXTENSION_SUFFIXES:
        path = _scipy_folder() / "linalg" / (module + suffix)
        spec = importlib.util.spec_from_file_location(qualified, path)
        if path.exists() and spec is not None and spec.loader is not None:
            loaded = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(loaded)
            capsules = loaded.__pyx_capi__
            return capsules
    raise BlasMissing(f"SciPy has no {qualified}; expected SciPy 1.10 or newer")


def _capsule_address(capsule: object) -> int:
    get_name = ctypes.pythonapi.PyCapsule_GetName
    get_name.restype, get_name.argtypes = ctypes.c_char_p, (ctypes.py_object,)
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype = ctypes.c_void_p
    get_pointer.argtypes = (ctypes.py_object, ctypes.c_char_p)
    address: int = get_pointer(capsule, get_name(capsule))
    return address
