"""Arrays: how they print (recorded from JAX 0.12), what they export, what they refuse."""

from __future__ import annotations

import copy
import enum
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jaxlite as jax
import jaxlite.numpy as jnp
from jaxlite.core.array import Array, to_array

LONG = """Array([ 0.,  1.,  2.,  3.,  4.,  5.,  6.,  7.,  8.,  9., 10., 11., 12.,
       13., 14., 15., 16., 17., 18., 19., 20., 21., 22., 23., 24., 25.,
       26., 27., 28., 29.], dtype=float32)"""

PRINTED = [
    (np.arange(3), "Array([0, 1, 2], dtype=int32)"),
    (np.float32(2), "Array(2., dtype=float32)"),
    (1.0, "Array(1., dtype=float32, weak_type=True)"),
    (np.zeros((0, 3)), "Array([], shape=(0, 3), dtype=float32)"),
    (np.ones((2, 2)), "Array([[1., 1.],\n       [1., 1.]], dtype=float32)"),
    (np.array([True, False]), "Array([ True, False], dtype=bool)"),
    (np.arange(30.0), LONG),
    (np.arange(100000), "Array([    0,     1,     2, ..., 99997, 99998, 99999], dtype=int32)"),
]


@pytest.mark.parametrize("value, text", PRINTED, ids=range(len(PRINTED)))
def test_repr(value: object, text: str) -> None:
    assert repr(to_array(value)) == text


def test_format_and_str() -> None:
    assert f"{to_array(np.float32(1.5)):.3f}" == "1.500"
    assert str(to_array(np.arange(3.0))) == "[0. 1. 2.]"


def test_numpy_views_are_read_only_and_share_memory() -> None:
    x = to_array(np.arange(4))
    view = np.asarray(x)
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 7
    assert np.shares_memory(view, np.asarray(x))


def test_input_is_copied() -> None:
    source = np.arange(3.0, dtype=np.float32)
    x = to_array(source)
    source[0] = 9
    assert float(np.asarray(x)[0]) == 0


def test_pickle_and_deepcopy() -> None:
    x = to_array(2.5)
    for again in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x)):
        assert repr(again) == repr(x)


def test_numpy_copies_only_where_it_may() -> None:
    x = to_array(np.float32([1, 2]))
    assert np.asarray(x, copy=False).dtype == np.float32
    with pytest.raises(ValueError, match="only by copying"):
        np.asarray(x, np.float64, copy=False)
    copied = np.asarray(x, copy=True)
    copied[0] = 9
    assert float(x[0]) == 1


def test_truth_and_scalars() -> None:
    assert bool(to_array(np.array([1]))) and int(to_array(7)) == 7 and [1, 2, 3][to_array(1)] == 2
    with pytest.raises(ValueError, match="ambiguous"):
        bool(to_array(np.arange(2)))
    with pytest.raises(TypeError, match="scalar arrays"):
        float(to_array(np.arange(2.0)))
    with pytest.raises(TypeError, match="unhashable"):
        hash(to_array(1))


def test_deleted() -> None:
    x = to_array(np.arange(3))
    x.delete()
    assert x.is_deleted()
    with pytest.raises(RuntimeError, match="deleted"):
        np.asarray(x)


@pytest.mark.parametrize(
    "value", ["text", object(), np.array(["a"]), np.array([object()]), np.array("2020-01-01", "M8[D]")]
)
def test_what_is_no_array(value: object) -> None:
    with pytest.raises(TypeError, match="not a valid JAX"):
        to_array(value)


def test_integers_out_of_range() -> None:
    from jaxlite.core.avals import aval_of

    with pytest.raises(OverflowError, match="3000000000"):
        aval_of(3_000_000_000)


def test_type() -> None:
    assert isinstance(to_array(1), Array)


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint16", "int32", "float16", "bfloat16", "float32", "complex64", "float64", "complex128"]
)
@pytest.mark.parametrize("shape", [(), (5,), (0, 3), (3, 4)])
def test_exported_memory_cannot_be_made_writable(dtype: str, shape: tuple[int, ...]) -> None:
    with jax.enable_x64(True):
        x = jnp.ones((*shape, 2), dtype)
        results = [x, jnp.asarray(np.ones(shape), dtype), x[..., 0], x.T, jnp.broadcast_to(x, (2, *x.shape))]
        results += [jax.jit(lambda v: v.T)(x)]
    for array in results:
        exported = np.asarray(array)
        assert exported.dtype.name == dtype and exported.shape == array.shape and (exported == 1).all()
        assert np.shares_memory(exported, array.elements) or not array.size
        at: object = exported
        while isinstance(at, np.ndarray) and at.size:
            with pytest.raises(ValueError, match="WRITEABLE"):
                at.flags.writeable = True
            at = at.base


MASKED = np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0])
TAKES_MASKED = {
    "asarray": lambda: jnp.asarray(MASKED),
    "array": lambda: jnp.array(MASKED, "float32"),
    "a list": lambda: jnp.array([MASKED, MASKED]),
    "jit": lambda: jax.jit(lambda x: x)(MASKED),
    "lower": lambda: jax.jit(lambda x: x).lower(MASKED),
    "closed over": lambda: jax.jit(lambda: jnp.add(1.0, MASKED))(),
    "an operand": lambda: jnp.ones(3) + MASKED,
    "the left operand": lambda: MASKED + jnp.ones(3),
    "lax": lambda: jax.lax.add(MASKED, MASKED),
    "device_put": lambda: jax.device_put(MASKED),
    "vmap": lambda: jax.vmap(lambda x: x)(MASKED),
    "grad": lambda: jax.grad(jnp.sum)(MASKED),
    "scan": lambda: jax.lax.scan(lambda c, x: (c, x), 0.0, MASKED),
    "an index": lambda: jnp.ones(3)[np.ma.array([0, 1], mask=[0, 1])],
    "an update": lambda: jnp.zeros(3).at[:].set(MASKED),
    "the masked number": lambda: jnp.add(np.ma.masked, 1),
    "without a mask": lambda: jnp.asarray(np.ma.array([1.0])),
    "a callback's result": lambda: jax.pure_callback(
        lambda: np.ma.array(MASKED, np.float32), jax.ShapeDtypeStruct((3,), "float32")
    ),
}


@pytest.mark.parametrize("use", TAKES_MASKED.values(), ids=list(TAKES_MASKED))
def test_masks_are_not_lost(use: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=r"numpy masked arrays are not supported .* Use arr\.filled"):
        use()
    assert jnp.shape(MASKED) == (3,) and jnp.asarray(MASKED.filled(0.0)).tolist() == [1.0, 0.0, 3.0]


class Three(enum.IntEnum):
    THREE = 3


class OwnInt(int):
    pass


class OwnFloat(float):
    pass


class OwnComplex(complex):
    pass


HALF = jnp.ones((), "float16")
NUMBERS = {  # the values and types that JAX gives
    "jit": (lambda: jax.jit(lambda x: x + 1)(Three.THREE), 4, "int32", True),
    "warm jit": (lambda: [f(Three.THREE) for f in [jax.jit(lambda x: x + 1)] for _ in range(6)][-1], 4, "int32", True),
    "add": (lambda: jnp.add(OwnInt(2), OwnFloat(1)), 3.0, "float32", True),
    "lax": (lambda: jax.lax.add(OwnInt(1), 2), 3, "int32", True),
    "asarray": (lambda: jnp.asarray(OwnFloat(2)), 2.0, "float32", True),
    "complex": (lambda: jnp.asarray(OwnComplex(1j)), 1j, "complex64", True),
    "device_put": (lambda: jax.device_put(Three.THREE), 3, "int32", True),
    "an operand": (lambda: HALF * OwnFloat(2), 2.0, "float16", False),
    "the left operand": (lambda: OwnInt(2) * HALF, 2.0, "float16", False),
    "traced": (lambda: jax.jit(lambda x: x * OwnFloat(2))(HALF), 2.0, "float16", False),
    "a power": (lambda: jnp.int32(2) ** Three.THREE, 8, "int32", False),
    "grad": (lambda: jax.grad(lambda x: x * x)(OwnFloat(2)), 4.0, "float32", True),
    "a branch": (lambda: jax.lax.cond(True, lambda: Three.THREE, lambda: 2), 3, "int32", True),
    "a loop": (lambda: jax.lax.fori_loop(0, Three.THREE, lambda i, x: x + 1, OwnInt(0)), 3, "int32", True),
    "an index": (lambda: jnp.arange(5)[Three.THREE], 3, "int32", False),
    "an update": (lambda: jnp.zeros((), "int32").at[()].set(Three.THREE), 3, "int32", False),
    "where": (lambda: jnp.where(True, Three.THREE, OwnFloat(1)), 3.0, "float32", True),
    "NumPy's float64": (lambda: jax.jit(lambda x: x)(np.float64(2)), 2.0, "float32", False),
}


@pytest.mark.parametrize("make, value, dtype, weak", NUMBERS.values(), ids=list(NUMBERS))
def test_numbers_of_derived_classes(make: Callable[[], Any], value: complex, dtype: str, weak: bool) -> None:
    got = make()
    assert (got.item(), got.dtype.name, got.weak_type) == (value, dtype, weak)


def test_numbers_of_derived_classes_are_checked_as_others_are() -> None:
    with pytest.raises(OverflowError):
        jnp.add(OwnInt(2**40), 1)


DO_NOTHING = {
    "convert_element_type": lambda x: jax.lax.convert_element_type(x, x.dtype),
    "lax.reshape": lambda x: jax.lax.reshape(x, ()),
    "broadcast_in_dim": lambda x: jax.lax.broadcast_in_dim(x, (), ()),
    "lax.squeeze": lambda x: jax.lax.squeeze(x, ()),
    "lax.transpose": lambda x: jax.lax.transpose(x, ()),
    "expand_dims": lambda x: jax.lax.expand_dims(x, ()),
    "jnp.reshape": lambda x: jnp.reshape(x, ()),
    "squeeze": jnp.squeeze,
    "transpose": jnp.transpose,
    "real": jnp.real,
    "floor": jnp.floor,
    "abs": jnp.abs,
    "sum": jnp.sum,
    "astype": lambda x: jnp.astype(x, x.dtype),
    "tile": lambda x: jnp.tile(x, ()),
    "an update": lambda x: jnp.zeros((), x.dtype).at[()].set(x),
}


@pytest.mark.parametrize("function", DO_NOTHING.values(), ids=list(DO_NOTHING))
@pytest.mark.parametrize("kind", [np.uint8, np.float32])
def test_functions_that_have_nothing_to_do_give_arrays(function: Callable[[Any], Any], kind: Any) -> None:
    got = function(kind(2))
    widened = np.uint32 if function is jnp.sum and kind is np.uint8 else kind
    assert type(got) is Array and got == 2 and got.dtype.type is widened
