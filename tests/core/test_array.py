"""Arrays: how they print (recorded from JAX 0.12), what they export, what they refuse."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

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
