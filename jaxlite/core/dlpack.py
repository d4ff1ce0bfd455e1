"""DLPack: arrays handed to other libraries, and taken from them, without copying.

`capsule` makes a DLPack capsule of an array's memory; `tensor` makes a NumPy array of whatever another library exports.
NumPy does both for the dtypes that it has; bfloat16 passes as uint16, and its name is put right in the capsule.  A
capsule of version 1 says that it may not be written to; an older one cannot say so.
"""

from __future__ import annotations

import ctypes
from typing import Any, final

import numpy as np

from jaxlite.core import dtypes

CPU_DEVICE = (1, 0)  # kDLCPU, and its number
_VERSIONED = hasattr(np, "unstack")  # from NumPy 2.1 on its capsules have versions
_CAPSULES = (("dltensor_versioned", 32), ("dltensor", 0))  # kinds of capsules, and where their tensor begins
_DTYPE_AT = 20  # bytes from a tensor's begin to its dtype: code, bits, lanes
_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
_UNSIGNED, _BFLOAT = 1, 4
_NAMES = {0: "int", 1: "uint", 2: "float", 3: "opaque", 4: "bfloat", 5: "complex", 6: "bool"}

_valid = ctypes.pythonapi.PyCapsule_IsValid
_valid.restype, _valid.argtypes = ctypes.c_int, (ctypes.py_object, ctypes.c_char_p)
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)


def is_supported_dtype(dtype: Any) -> bool:
    """Whether arrays of ``dtype`` can be exchanged: numbers and bools that NumPy has, and bfloat16.

    >>> is_supported_dtype("bfloat16"), is_supported_dtype("S3")
    (True, False)
    """
    known = dtypes.as_dtype(dtype)
    if dtypes.is_key(known):
        return False
    return known.name == "bfloat16" or (known.kind in _CODES and dtypes.is_array_dtype(known))


def capsule(shared: np.ndarray[Any, Any], stream: Any, max_version: Any, dl_device: Any, copy: bool | None) -> Any:
    """A capsule of ``shared``, or of a copy; writable memory, of which a capsule of version 1 says that it is not."""
    if stream is not None:
        raise RuntimeError(f"__dlpack__: stream={stream!r} was given, but a CPU array has no streams: leave it out.")
    if dl_device is not None and (int(dl_device[0]), int(dl_device[1])) != CPU_DEVICE:
        raise BufferError(
            f"__dlpack__: dl_device={tuple(dl_device)} was asked for, but arrays lie on the CPU, {CPU_DEVICE}: "
            "import the array there, and move it with the other library."
        )
    narrow = shared.dtype.name == "bfloat16"
    view = shared.view(np.uint16) if narrow else shared
    versioned = _VERSIONED and max_version is not None and max_version[0] >= 1
    if copy and not versioned:
        view = view.copy()
    elif not copy:
        view = view.view()
        view.flags.writeable = not versioned
    out = view.__dlpack__(max_version=max_version, copy=copy) if versioned else view.__dlpack__()
    if narrow:
        _dtype_of(out)[0] = _BFLOAT
    return out


def tensor(exporter: Any, copy: bool | None) -> np.ndarray[Any, Any]:
    """The memory that ``exporter`` offers, as a NumPy array on it; ``copy=False`` is passed on."""
    if not hasattr(exporter, "__dlpack__") or not hasattr(exporter, "__dlpack_device__"):
        raise TypeError(
            "The array passed to from_dlpack must have __dlpack__ and __dlpack_device__ methods; "
            f"got {type(exporter).__name__}."
        )
    device = exporter.__dlpack_device__()
    if int(device[0]) != CPU_DEVICE[0]:
        raise BufferError(
            f"from_dlpack: the array lies on the device {tuple(map(int, device))}, not on the CPU, {CPU_DEVICE}: "
            "copy it to the CPU with its own library first."
        )
    taken = _capsule_from(exporter, copy)
    dtype = _dtype_of(taken)
    code, bits, lanes = dtype[0], dtype[1], dtype[2] + 256 * dtype[3]
    name = f"{_NAMES.get(code, f'code {code} of ')}{bits}"
    if lanes != 1 or not (name == "bool8" or dtypes.is_name(name)):
        raise TypeError(
            f"from_dlpack: elements are {name} in vectors of {lanes}; expected numbers, bools or bfloat16, one by one."
        )
    if name == "bfloat16":
        dtype[0] = _UNSIGNED
        return np.from_dlpack(_Given(taken)).view(dtypes.as_dtype("bfloat16"))
    return np.from_dlpack(_Given(taken))


@final
class _Given:
    """Hands a capsule to NumPy."""

    def __init__(self, taken: Any) -> None:
        self.taken = taken

    def __dlpack__(self, **_: Any) -> Any:
        return self.taken

    def __dlpack_device__(self) -> tuple[int, int]:
        return CPU_DEVICE


def _capsule_from(exporter: Any, copy: bool | None) -> Any:
    """The capsule: of version 1 if both sides know it."""
    if _VERSIONED:
        try:
            return exporter.__dlpack__(max_version=(1, 0), **({"copy": False} if copy is False else {}))
        except TypeError:
            pass  # older than version 1: it knows no such parameters
    return exporter.__dlpack__()


def _dtype_of(taken: Any) -> Any:
    """The four bytes in which a capsule says what its elements are."""
    for name, offset in _CAPSULES:
        if _valid(taken, name.encode()):
            address = _pointer(taken, name.encode())
            return (ctypes.c_uint8 * 4).from_address(address + offset + _DTYPE_AT)
    raise TypeError(f"__dlpack__ gave {taken!r}; expected a capsule that nobody has used yet.")
