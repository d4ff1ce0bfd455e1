"""Indexing and ``.at``: every index against NumPy's, in and out of jit, with its derivative; and the errors."""

from __future__ import annotations

import numpy as np
import pytest

import jaxlite as jax
import jaxlite.numpy as jnp
from jaxlite.errors import NonConcreteBooleanIndexError

A = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
ROWS = np.array([2, 0, -1])
MASK = np.array([True, False, True])

INDICES = [
    0,
    -1,
    (1, 2),
    (1, 2, -3),
    slice(1, None),
    slice(None, None, -1),
    (slice(None, None, 2), slice(3, 0, -2)),
    (slice(2, 1),),
    None,
    (None, 0, None),
    ...,
    (..., 1),
    (0, ..., slice(1, 3)),
    (),
    ROWS,
    (ROWS, ROWS),
    (ROWS, 1),
    (0, ROWS),
    (slice(None), ROWS),
    (slice(None), ROWS, 2),
    (ROWS, slice(None), ROWS),
    (ROWS, None, slice(1, 3), ROWS),
    (0, slice(None), ROWS),
    (..., ROWS),
    (ROWS[:, None], ROWS),
    (slice(None, None, -1), ROWS, slice(0, None, 2)),
    (ROWS, slice(None, None, 2), 1),
    MASK,
    (slice(None), MASK[[0, 1, 2, 0]]),
    A > 20,
    True,
    False,
    (None, True),
    np.zeros(0, int),
]


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_reads_as_numpy(index):
    expected = A[index]
    x = jnp.asarray(A)
    for out in (x[index], jax.jit(lambda v: v[index])(x)):
        np.testing.assert_array_equal(out, expected)
    if expected.size:
        # The derivative of a sum of squares puts 2 a where a is read, as often as it is read.
        slope = np.zeros_like(A)
        np.add.at(slope, index, 2 * expected)
        np.testing.assert_array_equal(jax.grad(lambda v: (v[index] ** 2).sum())(x), slope)


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_writes_as_numpy(index):
    x = jnp.asarray(A)
    expected = A.copy()
    expected[index] = 7
    np.testing.assert_array_equal(x.at[index].set(7), expected)
    np.testing.assert_array_equal(jax.jit(lambda v: v.at[index].set(7))(x), expected)
    expected = A.copy()
    np.add.at(expected, index, 2)
    np.testing.assert_array_equal(x.at[index].add(2), expected)


def test_other_updates():
    x = jnp.arange(1.0, 5)
    np.testing.assert_array_equal(x.at[1].multiply(3), [1, 6, 3, 4])
    np.testing.assert_array_equal(x.at[1:].subtract(1), [1, 1, 2, 3])
    np.testing.assert_array_equal(x.at[jnp.array([0, 0])].add(1), [3, 2, 3, 4])
    np.testing.assert_array_equal(x.at[0].divide(2), [0.5, 2, 3, 4])
    np.testing.assert_array_equal(x.at[-1].power(2), [1, 2, 3, 16])
    np.testing.assert_array_equal(x.at[:].min(2), [1, 2, 2, 2])
    np.testing.assert_array_equal(x.at[jnp.array([0, 1])].max(9), [9, 9, 3, 4])
    np.testing.assert_array_equal(x.at[2].apply(jnp.negative), [1, 2, -3, 4])


def test_outside_reads_are_clamped_and_outside_writes_dropped():
    x = jnp.arange(3.0)
    np.testing.assert_array_equal([x[7], x[-9], x[jnp.int32(7)]], [2, 0, 2])
    np.testing.assert_array_equal(x[jnp.array([7, -9])], [2, 0])
    np.testing.assert_array_equal(x.at[7].set(5), x)
    np.testing.assert_array_equal(x.at[jnp.int32(7)].set(5), x)
    np.testing.assert_array_equal(x.at[7].set(5, mode="clip"), [0, 1, 5])
    assert np.isnan(x.at[7].get(mode="fill")) and x.at[7].get(mode="fill").shape == ()
    np.testing.assert_array_equal(x.at[jnp.array([0, 7])].get(mode="fill", fill_value=-1), [0, -1])


def test_static_indices_never_gather():
    text = str(jax.make_jaxpr(lambda x: (x[1:, None, ::-1], x[0, 1], x.at[1:3].set(0.0)))(jnp.ones((4, 4))))
    assert "gather" not in text and "scatter" not in text


def test_traced_scalars_are_dynamic_slices():
    text = str(jax.make_jaxpr(lambda x, i: x[i, 1:])(jnp.ones((4, 4)), 1))
    assert "dynamic_slice" in text and "gather" not in text
    np.testing.assert_array_equal(
        jax.vmap(lambda x, i: x[i])(jnp.asarray(A), jnp.array([0, -1, 2])), A[[0, 1, 2], [0, -1, 2]]
    )


def test_assignment_says_what_to_write():
    x = jnp.zeros((3, 3))
    for index, text in ((0, "x.at[0].set(5)"), ((0, slice(1, None)), "x.at[0, 1:].set(5)"), (ROWS, "x.at[idx].set(5)")):
        with pytest.raises(TypeError, match="immutable") as caught:
            x[index] = 5
        assert text in str(caught.value)


@pytest.mark.parametrize(
    ("index", "error", "message"),
    [
        ((0, 0, 0, 0), IndexError, "Too many indices: array is 3-dimensional, but 4 were indexed"),
        (1.0, TypeError, "integer or boolean type.*float64"),
        ([0, 1], TypeError, r"non-tuple sequence.*arr\[array\(seq\)\]"),
        ([slice(0, 1)], TypeError, r"arr\[tuple\(seq\)\]"),
        ("a", TypeError, "string indexing"),
        ((..., ...), IndexError, "single ellipsis"),
        (np.array([True, False]), IndexError, "boolean index did not match"),
    ],
)
def test_bad_indices(index, error, message):
    with pytest.raises(error, match=message):
        jnp.asarray(A)[index]


def test_traced_masks_and_slices_are_refused():
    with pytest.raises(NonConcreteBooleanIndexError, match=r"jnp\.where"):
        jax.jit(lambda x: x[x > 0])(jnp.ones(3))
    with pytest.raises(IndexError, match=r"static start/stop/step.*lax\.dynamic_slice"):
        jax.jit(lambda x, n: x[:n])(jnp.ones(3), 2)


def test_values_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"values have shape \(2,\).*\(3,\)"):
        jnp.zeros((3, 3)).at[0].set(jnp.ones(2))
    with pytest.warns(FutureWarning, match="incompatible types"):
        assert jnp.zeros(3, int).at[0].set(2.7).dtype == jnp.int32


def test_taking():
    x = jnp.arange(3.0)
    np.testing.assert_array_equal(jnp.take(x, jnp.array([2, 9, -1])), [2, np.nan, 2])
    np.testing.assert_array_equal(jnp.take(x, jnp.array([2, 9, -1]), mode="clip"), [2, 2, 0])
    np.testing.assert_array_equal(jnp.take(x, jnp.array([2, 4, -1]), mode="wrap"), [2, 1, 2])
    order = np.argsort(-A, axis=1)
    np.testing.assert_array_equal(jnp.take_along_axis(A, order, 1), np.take_along_axis(A, order, 1))
