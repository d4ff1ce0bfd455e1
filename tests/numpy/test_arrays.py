"""Making, shaping, joining, reducing, sorting and contracting arrays, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import jaxlite as jax
import jaxlite.numpy as jnp
from jaxlite.errors import ConcretizationTypeError

EPS = np.finfo(np.float32).eps
RNG = np.random.default_rng(0)
X = RNG.standard_normal((3, 4)).astype(np.float32)
A = RNG.standard_normal((2, 3, 4)).astype(np.float32)
V = RNG.standard_normal(4).astype(np.float32)
N = RNG.integers(-5, 6, (3, 4)).astype(np.int32)

MOVES = [
    ("reshape", lambda np: np.reshape(A, (4, -1))),
    ("reshape F", lambda np: np.reshape(A, (4, 6), order="F")),
    ("transpose", lambda np: np.transpose(A, (2, 0, 1))),
    ("moveaxis", lambda np: np.moveaxis(A, (0, 1), (-1, 0))),
    ("rollaxis", lambda np: np.rollaxis(A, 2)),
    ("expand_dims", lambda np: np.expand_dims(X, (0, -1))),
    ("concatenate", lambda np: np.concatenate([X, X], axis=1)),
    ("stack", lambda np: np.stack([X, X], axis=-1)),
    ("dstack", lambda np: np.dstack([X, X])),
    ("block", lambda np: np.block([[X, X], [X, X]])),
    ("tile", lambda np: np.tile(X, (2, 1, 2))),
    ("repeat", lambda np: np.repeat(X, 2, axis=0)),
    ("flip", lambda np: np.flip(A, (0, 2))),
    ("roll", lambda np: np.roll(X, (1, -2), (0, 1))),
    ("rot90", lambda np: np.rot90(A, 3, (1, 2))),
    ("tril", lambda np: np.tril(A, -1)),
    ("triu", lambda np: np.triu(X, 1)),
    ("diag", lambda np: np.diag(V, -2)),
    ("diagonal", lambda np: np.diagonal(A, 1, 1, 2)),
    ("wrap", lambda np: np.pad(X, ((2, 3), (7, 1)), mode="wrap")),
    ("reflect", lambda np: np.pad(X, ((2, 3), (7, 1)), mode="reflect")),
    ("symmetric", lambda np: np.pad(X, ((4, 3), (9, 1)), mode="symmetric")),
    ("edge", lambda np: np.pad(X, 2, mode="edge")),
    ("constant", lambda np: np.pad(X, ((1, 0), (0, 2)), constant_values=3)),
    ("sort", lambda np: np.sort(A, axis=1)),
    ("argsort", lambda np: np.argsort(N, axis=1, kind="stable")),
    ("nonzero", lambda np: np.nonzero(N)[1]),
    ("unique", lambda np: np.unique(N, return_counts=True)[1]),
    ("searchsorted", lambda np: np.searchsorted(np.sort(V), X, side="right")),
    ("where", lambda np: np.where(X > 0, X, V)),
    ("clip", lambda np: np.clip(X, -1, V)),
    ("meshgrid", lambda np: np.meshgrid(V, V[:2])[1]),
    ("select", lambda np: np.select([X > 1, X > 0], [X, N], np.float32(2))),
    ("max", lambda np: np.max(A, axis=(0, 2), keepdims=True)),
    ("argmax", lambda np: np.argmax(A, axis=1)),
    ("all", lambda np: np.all(N, axis=0)),
    ("count_nonzero", lambda np: np.count_nonzero(N, axis=1)),
    ("cumsum", lambda np: np.cumsum(N, axis=1)),
    ("diff", lambda np: np.diff(N, 2, axis=1)),
    ("sum of integers", lambda np: np.sum(N, axis=0)),
]


@pytest.mark.parametrize("call", [c for _, c in MOVES], ids=[n for n, _ in MOVES])
def test_exact_as_numpy(call):
    np.testing.assert_array_equal(call(jnp), call(np))


SUMS = [  # tolerances: a sum of n terms is off by at most n ulps of the sum of sizes
    ("sum", lambda np: np.sum(A, axis=(0, 2)), 8),
    ("mean", lambda np: np.mean(A, axis=1, keepdims=True), 4),
    ("var", lambda np: np.var(A, axis=2, ddof=1), 16),
    ("std", lambda np: np.std(A), 24),
    ("prod", lambda np: np.prod(X, axis=1), 4),
    ("median", lambda np: np.median(X, axis=1), 2),
    ("quantile", lambda np: np.quantile(X, np.asarray([0.1, 0.9]), axis=1).astype("float32"), 8),
    ("matmul", lambda np: np.matmul(A, X.T), 16),
    ("batched", lambda np: np.matmul(A[:, None], np.swapaxes(A, 1, 2)), 16),
    ("vector", lambda np: V @ np.asarray(X).T, 16),
    ("tensordot", lambda np: np.tensordot(A, X, ((1, 2), (0, 1))), 24),
    ("kron", lambda np: np.kron(X, V), 1),
    ("einsum", lambda np: np.einsum("bij,kj,k->bi", A, X, X[:, 0]), 32),
    ("einsum trace", lambda np: np.einsum("ii->", X[:, :3]), 4),
    ("einsum ellipsis", lambda np: np.einsum("...j,kj->...k", A, X), 16),
    ("norm", lambda np: np.linalg.norm(X, axis=1), 8),
    ("linspace", lambda np: np.linspace(-3, 7, 11).astype("float32"), 4),
    ("logspace", lambda np: np.logspace(0, 2, 4).astype("float32"), 16),
]


@pytest.mark.parametrize(("call", "ulps"), [c[1:] for c in SUMS], ids=[c[0] for c in SUMS])
def test_close_to_numpy(call, ulps):
    expected = call(np)
    np.testing.assert_allclose(call(jnp), expected, rtol=ulps * EPS, atol=ulps * EPS * np.max(np.abs(expected)))


def test_masks_and_initial_values():
    mask = X > 0
    np.testing.assert_allclose(jnp.sum(X, where=mask), X[mask].sum(), rtol=12 * EPS)
    np.testing.assert_allclose(jnp.mean(X, axis=0, where=mask), X.mean(0, where=mask), rtol=4 * EPS)
    np.testing.assert_array_equal(jnp.max(X, where=mask, initial=-9), X[mask].max())
    with pytest.raises(ValueError, match="initial"):
        jnp.max(X, where=mask)
    with pytest.raises(ValueError, match="zero-size array to reduction operation max"):
        jnp.max(jnp.zeros((0, 3)), axis=0)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: jnp.arange(3), "Array([0, 1, 2], dtype=int32)"),
        (lambda: jnp.array(1.0), "Array(1., dtype=float32, weak_type=True)"),
        (lambda: jnp.array([1, 2.5]), "Array([1. , 2.5], dtype=float32)"),
        (lambda: jnp.full(2, 3), "Array([3, 3], dtype=int32, weak_type=True)"),
        (lambda: jnp.full_like(jnp.arange(2), 2.7), "Array([2, 2], dtype=int32)"),
        (lambda: jnp.float32(1), "Array(1., dtype=float32)"),
        (lambda: jnp.zeros((0, 2)), "Array([], shape=(0, 2), dtype=float32)"),
        (lambda: jnp.sum(jnp.array([1, 2], jnp.int8)), "Array(3, dtype=int32)"),
    ],
)
def test_printed(call, text):
    assert repr(call()) == text


def test_sized_results_are_jittable():
    np.testing.assert_array_equal(
        jax.jit(lambda x: jnp.nonzero(x, size=4, fill_value=9)[0])(jnp.array([0, 5, 6])), [1, 2, 9, 9]
    )
    values, counts = jax.jit(lambda x: jnp.unique(x, size=4, return_counts=True))(jnp.array([3, 1, 3]))
    np.testing.assert_array_equal([values, counts], [[1, 3, 1, 1], [1, 2, 0, 0]])
    with pytest.raises(ConcretizationTypeError, match=r"size argument of jnp\.nonzero"):
        jax.jit(jnp.nonzero)(jnp.ones(3))
    with pytest.raises(ConcretizationTypeError, match=r"'stop' of jnp\.arange"):
        jax.jit(jnp.arange)(3)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: jnp.reshape(X, 5), TypeError, r"cannot reshape array of shape \(3, 4\) \(size 12\) into shape 5"),
        (lambda: jnp.sum(X, axis=3), ValueError, "axis 3 is out of bounds for array of dimension 2"),
        (lambda: jnp.sum(X, out=X), NotImplementedError, "'out' argument to jnp.sum"),
        (lambda: jnp.concatenate([X, V]), TypeError, "different numbers of dimensions"),
        (lambda: jnp.stack([X, V]), ValueError, "same shape"),
        (lambda: jnp.split(X, 3, axis=1), ValueError, "equal division: rest is 1"),
        (lambda: jnp.squeeze(X, 0), ValueError, r"size not equal to one, got shape=\(3, 4\)"),
        (lambda: jnp.array([None]), ValueError, "None is not a valid value"),
        (lambda: jnp.array("a"), TypeError, "not a valid JAX array type"),
        (lambda: jnp.array(-1, jnp.uint8), OverflowError, "out of bounds for uint8"),
        (lambda: jnp.zeros((2.0,)), TypeError, "integer type"),
        (lambda: jnp.matmul(X, X), TypeError, r"contracting dimensions.*\(4,\) and \(3,\)"),
        (lambda: jnp.matmul(2.0, X), ValueError, "matmul input operand 0 must have ndim at least 1"),
        (lambda: jnp.einsum("ij,jk", X, X), ValueError, "label 'j'"),
        (lambda: jnp.einsum("ijk", X), ValueError, "correct number of indices for operand 0"),
        (lambda: jnp.pad(X, 1, mode="odd"), NotImplementedError, "Unimplemented padding mode 'odd'"),
    ],
)
def test_bad_calls(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_methods_are_on_tracers_too():
    def f(x):
        return x.reshape(4, 3).T.sum(0).mean() + x.max() + x[0].dot(x[1]) + x.astype(jnp.int32).sum() + x.std()

    np.testing.assert_allclose(jax.jit(f)(X), f(jnp.asarray(X)), rtol=16 * EPS)
    assert [row.shape for row in jnp.asarray(X)] == [(4,)] * 3


def test_vectorize():
    f = jnp.vectorize(lambda x, y: jnp.dot(x, y), signature="(n),(n)->()")
    np.testing.assert_allclose(f(A, V), A @ V, rtol=16 * EPS, atol=16 * EPS)
    with pytest.raises(ValueError, match="core dimension 'n'"):
        f(A, V[:2])
