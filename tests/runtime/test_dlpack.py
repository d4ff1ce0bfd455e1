"""DLPack both ways: every dtype and shape, every keyword of the standard, flags, refusals; PyTorch where it is there.

PyTorch is large, so nothing installs it for these tests: those that need it are skipped without it.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

import jaxlite as jax
import jaxlite.numpy as jnp

VERSIONED = hasattr(np, "unstack")  # NumPy 2.1: DLPack of version 1
READ_ONLY, COPIED = 1, 2  # flags of the standard

ARRAYS = {
    "bool": np.array([True, False, True]),
    "int8": np.arange(-3, 3, dtype=np.int8),
    "uint16": np.arange(5, dtype=np.uint16),
    "int32": np.arange(7, dtype=np.int32),
    "float16": np.arange(5).astype(np.float16),
    "float32": np.arange(12, dtype=np.float32).reshape(3, 4),
    "complex64": np.arange(5).astype(np.complex64),
    "0-d": np.array(2.5, np.float32),
    "empty": np.zeros((0, 3), np.float32),
}


def address_of(array: np.ndarray[Any, Any]) -> int:
    return int(array.__array_interface__["data"][0])


def flags_of(capsule: Any) -> int:
    """The flags of a capsule of version 1: the last word before its tensor, which begins at byte 32."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    return int(ctypes.c_uint64.from_address(pointer(capsule, b"dltensor_versioned") + 24).value)


@pytest.mark.parametrize("value", ARRAYS.values(), ids=list(ARRAYS))
def test_there_and_back(value: Any) -> None:
    x = jnp.asarray(value)
    seen = np.from_dlpack(x)
    assert seen.dtype == value.dtype and seen.shape == value.shape
    np.testing.assert_array_equal(seen, value)
    assert value.size == 0 or address_of(seen) == x.address
    again = jnp.from_dlpack(x)
    np.testing.assert_array_equal(np.asarray(again), value)
    assert value.size == 0 or again.address == x.address
    taken = jnp.from_dlpack(value)
    assert taken.dtype == value.dtype and taken.shape == value.shape and not taken.weak_type
    assert value.size == 0 or taken.address == address_of(value)


def test_bfloat16() -> None:
    x = jnp.arange(5, dtype=jnp.bfloat16)
    again = jnp.from_dlpack(x)
    assert again.dtype == jnp.bfloat16 and again.address == x.address and again.tolist() == [0, 1, 2, 3, 4]
    with pytest.raises((BufferError, RuntimeError), match=r"(?i)dtype"):
        np.from_dlpack(x)  # NumPy itself has none


@pytest.mark.parametrize("source", ["transposed", "every second", "reversed", "repeated"])
def test_imports_of_strided_memory_are_copied(source: str) -> None:
    whole = np.arange(12, dtype=np.float32)
    view = {
        "transposed": whole.reshape(3, 4).T,
        "every second": whole[::2],
        "reversed": whole[::-1],
        "repeated": np.broadcast_to(whole[:3], (2, 3)),
    }[source]
    x = jnp.from_dlpack(view)
    np.testing.assert_array_equal(np.asarray(x), view)
    whole[:] = -1
    assert float(x.min()) >= 0
    with pytest.raises(ValueError, match=r"bytes apart.*copy=False was given"):
        jnp.from_dlpack(view, copy=False)


def test_strided_arrays_are_exported_in_row_major_order() -> None:
    for x in (jnp.arange(6.0).reshape(2, 3).T, jnp.broadcast_to(jnp.float32(2), (2, 3)), jnp.arange(6)[::-1]):
        assert np.from_dlpack(x).flags.c_contiguous
        np.testing.assert_array_equal(np.from_dlpack(x), np.asarray(x))


def test_copies_on_import() -> None:
    own = np.ones(5, np.float32)
    copied, shared = jnp.from_dlpack(own, copy=True), jnp.from_dlpack(own, copy=False)
    assert copied.address != address_of(own) and shared.address == address_of(own)
    own[:] = 9
    assert (np.asarray(copied) == 1).all()


def test_imported_memory_is_never_taken_over() -> None:
    own = np.ones(5000, np.float32)
    y = jax.jit(lambda x: x * 2, donate_argnums=0)(jnp.from_dlpack(own))
    assert (own == 1).all() and (np.asarray(y) == 2).all()


def test_64_bit_types_are_halved_as_elsewhere() -> None:
    wide = np.arange(3.0)
    assert jnp.from_dlpack(wide).dtype == jnp.float32
    with pytest.raises(ValueError, match="float64 becomes float32"):
        jnp.from_dlpack(wide, copy=False)
    with jax.enable_x64(True):
        assert jnp.from_dlpack(wide).address == address_of(wide)


def test_an_import_keeps_the_exporter_alive() -> None:
    x = jnp.from_dlpack(np.full(5000, 3, np.float32))
    kept = [np.full(5000, -1, np.float32) for _ in range(50)]
    assert (np.asarray(x) == 3).all() and len(kept) == 50


@pytest.mark.skipif(not VERSIONED, reason="NumPy before 2.1 has no DLPack of version 1")
def test_version_1_says_that_it_is_read_only() -> None:
    x = jnp.arange(5.0)
    assert flags_of(x.__dlpack__(max_version=(1, 0))) == READ_ONLY
    assert flags_of(x.__dlpack__(max_version=(1, 3), copy=False)) == READ_ONLY
    assert flags_of(x.__dlpack__(max_version=(1, 0), copy=True)) & COPIED
    assert not np.from_dlpack(x).flags.writeable
    own = np.from_dlpack(x, copy=True)
    own[:] = 7
    assert address_of(own) != x.address and float(x[0]) == 0


@pytest.mark.parametrize("options", [{}, {"max_version": (0, 8)}, {"max_version": None}, {"dl_device": (1, 0)}])
def test_capsules_before_version_1(options: Any) -> None:
    assert '"dltensor"' in repr(jnp.arange(5.0).__dlpack__(**options))


def test_a_copy_before_version_1() -> None:
    x = jnp.arange(5.0)
    shared, copied = (np.from_dlpack(_Capsule(x.__dlpack__(copy=copy))) for copy in (None, True))
    assert address_of(shared) == x.address != address_of(copied)
    np.testing.assert_array_equal(copied, np.arange(5, dtype=np.float32))


class _Capsule:
    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> Any:
        return 1, 0


def test_capsules_that_nobody_uses_let_go() -> None:
    x = jax.jit(lambda v: v + 1)(jnp.zeros(5000))
    address = x.address
    x.__dlpack__(), x.__dlpack__(max_version=(1, 0))
    assert jax.jit(lambda v: v + 1, donate_argnums=0)(x).address == address


class _Elsewhere:
    def __dlpack__(self, **_: Any) -> Any:
        raise AssertionError("asked for before its device was looked at")

    def __dlpack_device__(self) -> Any:
        return 2, 0


REFUSED: list[tuple[Any, Any, str]] = [
    (lambda: jnp.arange(3).__dlpack__(stream=1), RuntimeError, "stream"),
    (lambda: jnp.arange(3).__dlpack__(dl_device=(2, 0)), BufferError, r"dl_device=\(2, 0\)"),
    (lambda: jnp.arange(3).__dlpack__(dl_device=(1, 1)), BufferError, "dl_device"),
    (lambda: jax.random.key(0).__dlpack__(), BufferError, "key_data"),
    (lambda: jnp.from_dlpack(3), TypeError, "must have __dlpack__ and __dlpack_device__"),
    (lambda: jnp.from_dlpack(jnp.arange(3).__dlpack__()), TypeError, "PyCapsule"),
    (lambda: jnp.from_dlpack(_Elsewhere()), BufferError, r"device \(2, 0\)"),
    (lambda: jnp.from_dlpack(_Capsule(3)), TypeError, "capsule"),
    (lambda: jnp.from_dlpack(jnp.arange(3), device="tpu"), NotImplementedError, "device"),
    (lambda: jnp.arange(3).__dlpack__(wrong=1), TypeError, "wrong"),
]


@pytest.mark.parametrize("call, error, message", REFUSED, ids=range(len(REFUSED)))
def test_refusals(call: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_a_capsule_is_used_once() -> None:
    capsule = jnp.arange(3).__dlpack__()
    jnp.from_dlpack(_Capsule(capsule))
    with pytest.raises(TypeError, match="nobody has used yet"):
        jnp.from_dlpack(_Capsule(capsule))


def test_the_module() -> None:
    assert jax.dlpack.from_dlpack(jnp.arange(3), device=jax.devices()[0], copy=True).tolist() == [0, 1, 2]
    held = [bool, jnp.bfloat16, np.int8, np.float16, np.uint64, np.complex64, np.float64]
    assert all(map(jax.dlpack.is_supported_dtype, held))
    assert not any(map(jax.dlpack.is_supported_dtype, ["S3", object]))


def test_pytorch() -> None:
    torch = pytest.importorskip("torch")
    for x in (jnp.arange(5), jnp.ones(4, jnp.bfloat16), jnp.array([True, False]), jnp.float32(3), jnp.zeros((0, 3))):
        tensor = torch.from_dlpack(x)
        assert tuple(tensor.shape) == x.shape and tensor.tolist() == x.tolist()
        assert x.size == 0 or tensor.data_ptr() == x.address
    for dtype in (torch.bool, torch.bfloat16, torch.float16, torch.uint8, torch.float32, torch.complex64):
        tensor = torch.ones(5).to(dtype)
        x = jnp.from_dlpack(tensor)
        assert x.address == tensor.data_ptr() and x.dtype.name == str(dtype).removeprefix("torch.")
    view = torch.arange(12.0).reshape(3, 4).T
    assert jnp.from_dlpack(view).tolist() == view.tolist()
    with pytest.raises(TypeError, match="code 10"):  # an 8-bit float
        jnp.from_dlpack(torch.zeros(3).to(torch.float8_e4m3fn))
    x = jax.jit(lambda v: v + 1)(jnp.zeros(5000))
    tensor = torch.from_dlpack(x)
    y = jax.jit(lambda v: v * 5, donate_argnums=0)(x)
    assert y.address != tensor.data_ptr() and (tensor == 1).all()
