"""Systems, factorisations and determinants: NumPy's and SciPy's values, derivatives, batches, bad input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import jaxlite as jax
import jaxlite.numpy as jnp
from jaxlite import lax
from jaxlite.backends.cpu import hostcall
from jaxlite.test_util import check_grads

SIZES = (1, 2, 3, 4, 5, 8, 9, 20)  # in registers, and by LAPACK
BATCHES: tuple[tuple[int, ...], ...] = ((), (3,), (40,), (2, 3))
# Backward stable methods lose the condition number times n ulps; the matrices below have one of at most 100.
RTOL = {np.float32: 20 * 100 * 2.0**-23, np.float64: 20 * 100 * 2.0**-52}


def well_conditioned(shape: tuple[int, ...], dtype: Any = np.float64, seed: int = 0) -> np.ndarray[Any, Any]:
    """Random rotations times singular values between 1 and 4, rows permuted so that pivoting has work to do."""
    rng = np.random.default_rng(seed)
    q, _ = np.linalg.qr(rng.standard_normal(shape))
    return np.asarray((q * rng.uniform(1, 4, shape[-1])).astype(dtype))


def positive(shape: tuple[int, ...], dtype: Any = np.float64) -> np.ndarray[Any, Any]:
    a = well_conditioned(shape)
    return np.asarray((a @ np.swapaxes(a, -1, -2)).astype(dtype))


@pytest.fixture(autouse=True)
def _wide() -> Any:
    with jax.enable_x64(True):
        yield


def near(got: Any, want: Any, dtype: Any = np.float64) -> None:
    want = np.asarray(want)
    scale = np.abs(want).max(initial=0)
    np.testing.assert_allclose(np.asarray(got), want, rtol=RTOL[dtype], atol=RTOL[dtype] * scale)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("n", SIZES)
def test_values(n: int, batch: tuple[int, ...], dtype: Any) -> None:
    a = well_conditioned((*batch, n, n), dtype)
    wide = a.astype(np.float64)
    b = np.random.default_rng(1).standard_normal((*batch, n, 3)).astype(dtype)
    near(jax.jit(jnp.linalg.solve)(a, b), np.linalg.solve(wide, b), dtype)
    near(jnp.linalg.solve(a, b), np.linalg.solve(wide, b), dtype)
    near(jnp.linalg.inv(a), np.linalg.inv(wide), dtype)
    near(jnp.linalg.det(a), np.linalg.det(wide), dtype)
    sign, size = jnp.linalg.slogdet(a)
    near(sign, np.linalg.slogdet(wide)[0], dtype)
    near(size, np.linalg.slogdet(wide)[1], dtype)
    spd = positive((*batch, n, n), dtype)
    near(jnp.linalg.cholesky(spd), np.linalg.cholesky(spd.astype(np.float64)), dtype)
    near(jnp.linalg.cholesky(spd, upper=True), np.swapaxes(np.linalg.cholesky(spd.astype(np.float64)), -1, -2), dtype)


@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (5, 2), (2, 5), (4, 12), (12, 4), (30, 30), (0, 3), (3, 0)])
def test_lu_factors_any_shape(shape: tuple[int, int]) -> None:
    a = np.random.default_rng(0).standard_normal((7, *shape))
    both, pivots, order = map(np.asarray, lax.linalg.lu(a))
    m, n = shape
    lower = np.tril(both[..., :, : min(m, n)], -1) + np.eye(m, min(m, n))
    near(lower @ np.triu(both[..., : min(m, n), :]), np.take_along_axis(a, order[..., None].astype(np.int64), -2))
    assert pivots.dtype == order.dtype == np.int32 and pivots.shape == (7, min(m, n))
    assert np.abs(lower).max(initial=0) <= 1  # partial pivoting keeps the factors at most 1
    assert (np.asarray(lax.linalg.lu_pivots_to_permutation(pivots, m)) == order).all()


def test_pivots_are_those_of_lapack() -> None:
    for n in (3, 4, 12):
        a = np.random.default_rng(n).standard_normal((n, n))
        both, pivots = jax.scipy.linalg.lu_factor(a)
        near(both, scipy.linalg.lu_factor(a)[0])
        assert (np.asarray(pivots) == scipy.linalg.lu_factor(a)[1]).all()


@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("n", [3, 13])
def test_triangular_solve(n: int, left: bool, lower: bool, transpose: bool, unit: bool) -> None:
    rng = np.random.default_rng(0)
    a = rng.uniform(-0.3, 0.3, (4, n, n)) + 2 * np.eye(n)
    b = rng.standard_normal((4, n, 5) if left else (4, 5, n))
    x = lax.linalg.triangular_solve(a, b, left_side=left, lower=lower, transpose_a=transpose, unit_diagonal=unit)
    triangle = np.tril(a, -1) if lower else np.triu(a, 1)
    triangle += np.eye(n) if unit else a * np.eye(n)
    triangle = np.swapaxes(triangle, -1, -2) if transpose else triangle
    near(triangle @ x if left else x @ triangle, b)


def test_vectors_and_broadcasting() -> None:
    a, b = well_conditioned((2, 3, 3)), np.arange(3.0)
    near(jnp.linalg.solve(a, b), np.stack([np.linalg.solve(m, b) for m in a]))
    near(jnp.linalg.solve(a[0], np.ones((4, 3, 2))), np.linalg.solve(a[0], np.ones((4, 3, 2))))
    assert jnp.linalg.solve(np.eye(2, dtype=int), np.array([1, 2])).dtype == np.float64
    near(jnp.linalg.matrix_power(a[0], -2), np.linalg.matrix_power(a[0], -2))
    assert jnp.linalg.solve(np.zeros((0, 0)), np.zeros((0, 2))).shape == (0, 2)
    assert float(jnp.linalg.det(np.zeros((0, 0)))) == 1.0


FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[[int], Any]]] = {
    "solve": (jnp.linalg.solve, lambda n: (well_conditioned((n, n)), np.ones((n, 2)))),
    "solve vector": (jnp.linalg.solve, lambda n: (well_conditioned((2, n, n)), np.ones(n))),
    "inv": (jnp.linalg.inv, lambda n: (well_conditioned((n, n)),)),
    "det": (jnp.linalg.det, lambda n: (well_conditioned((2, n, n)) / 2,)),
    "slogdet": (lambda a: jnp.linalg.slogdet(a)[1], lambda n: (well_conditioned((n, n)),)),
    "cholesky": (jnp.linalg.cholesky, lambda n: (positive((n, n)),)),
    "lu": (lambda a: lax.linalg.lu(a)[0], lambda n: (well_conditioned((n, n)),)),
    "lu tall": (lambda a: lax.linalg.lu(a)[0], lambda n: (well_conditioned((n + 2, n)),)),
    "lu wide": (lambda a: lax.linalg.lu(a)[0], lambda n: (np.random.default_rng(0).uniform(1, 2, (n, n + 2)),)),
    "solve pos": (lambda a, b: jax.scipy.linalg.solve(a, b, assume_a="pos"), lambda n: (positive((n, n)), np.ones(n))),
}


@pytest.mark.parametrize("n", [2, 5])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives(name: str, n: int) -> None:
    function, arguments = FUNCTIONS[name]
    # Differences of float64 at a step of 1e-4 or so: relative errors of 1e-6 or less, magnified by the conditions.
    check_grads(function, arguments(n), order=2, modes=["fwd", "rev"], rtol=2e-3, atol=2e-3)


def test_determinant_of_a_singular_matrix_has_a_derivative() -> None:
    a = np.diag([1.0, 2.0, 3.0, 0.0])[[2, 0, 3, 1]]
    wanted = np.zeros((4, 4))
    for i in range(4):
        for j in range(4):
            minor = np.delete(np.delete(a, i, 0), j, 1)
            wanted[i, j] = (-1) ** (i + j) * np.linalg.det(minor)
    near(jax.grad(jnp.linalg.det)(a), wanted)


@pytest.mark.parametrize("in_axes", [(0, 0), (None, 0), (0, None)])
def test_batched_by_vmap(in_axes: tuple[int | None, int | None]) -> None:
    a = well_conditioned((3, 4, 4)) if in_axes[0] == 0 else well_conditioned((4, 4))
    b = np.random.default_rng(1).standard_normal((3, 4) if in_axes[1] == 0 else (4,))
    rows = [(a[i] if in_axes[0] == 0 else a, b[i] if in_axes[1] == 0 else b) for i in range(3)]
    mapped = jax.vmap(jnp.linalg.solve, in_axes)
    near(jax.jit(mapped)(a, b), np.stack([np.linalg.solve(*r) for r in rows]))
    whole = jax.grad(lambda a, b: mapped(a, b).sum(), (0, 1))(a, b)
    single = [jax.grad(lambda a, b: jnp.linalg.solve(a, b).sum(), (0, 1))(*r) for r in rows]
    for got, axis, parts in zip(whole, in_axes, zip(*single, strict=True), strict=True):
        near(got, np.stack(parts) if axis == 0 else np.sum(np.stack(parts), 0))


@pytest.mark.parametrize("n", [2, 12])
def test_singular_matrices_and_nan_give_no_crash(n: int) -> None:
    assert not np.isfinite(jnp.linalg.solve(np.zeros((n, n)), np.ones(n))).any()
    assert not np.isfinite(jnp.linalg.inv(np.ones((n, n)))).any()
    assert np.isnan(jnp.linalg.solve(np.full((n, n), np.nan), np.ones(n))).all()
    assert np.isnan(jnp.linalg.cholesky(-np.eye(n))).all()
    assert float(jnp.linalg.det(np.zeros((n, n)))) == 0.0
    assert tuple(map(float, jnp.linalg.slogdet(np.zeros((n, n))))) == (0.0, -np.inf)
    *_, order = lax.linalg.lu(np.full((n, n), np.nan))
    assert sorted(np.asarray(order)) == list(range(n))


def test_scipy() -> None:
    a, b, spd = well_conditioned((6, 6)), np.arange(1.0, 7.0), positive((6, 6))
    ours, theirs = jax.scipy.linalg, scipy.linalg
    for trans in (0, 1):
        near(ours.lu_solve(ours.lu_factor(a), b, trans), theirs.lu_solve(theirs.lu_factor(a), b, trans))
        for lower in (False, True):
            near(ours.solve_triangular(a, b, trans, lower), theirs.solve_triangular(a, b, trans, lower))
    for lower in (False, True):
        near(ours.cholesky(spd, lower), theirs.cholesky(spd, lower))
        near(ours.cho_solve(ours.cho_factor(spd, lower), b), np.linalg.solve(spd, b))
        near(ours.solve(spd, b, lower=lower, assume_a="pos"), np.linalg.solve(spd, b))
    near(ours.inv(a), np.linalg.inv(a))
    near(ours.det(a), np.linalg.det(a))
    for shape in ((3, 5), (5, 3), (4, 4)):
        m = np.random.default_rng(0).standard_normal(shape)
        for got, want in zip(ours.lu(m), theirs.lu(m), strict=True):
            near(got, want)
        for got, want in zip(ours.lu(m, permute_l=True), theirs.lu(m, permute_l=True), strict=True):
            near(got, want)


@pytest.mark.parametrize("n", [2, 12])
def test_no_step_of_a_loop_calls_python(n: int) -> None:
    a = well_conditioned((n, n))

    @jax.jit
    def run(x: Any) -> Any:
        return lax.scan(lambda c, _: (jnp.linalg.solve(a, c), None), x, None, length=20)[0]

    before = hostcall.calls_made()
    near(run(np.ones(n)), np.linalg.matrix_power(np.linalg.inv(a), 20) @ np.ones(n))
    assert hostcall.calls_made() == before


REFUSED: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: jnp.linalg.solve(np.ones((2, 3)), np.ones(2)), ValueError, r"\[..., n, n\], got \(2, 3\)"),
    (lambda: jnp.linalg.solve(np.eye(2), np.ones(3)), ValueError, "a of shape"),
    (lambda: jnp.linalg.inv(np.ones(3)), ValueError, "at least two dimensions"),
    (lambda: jnp.linalg.det(np.ones((2, 2), np.float16)), TypeError, "float16"),
    (lambda: jnp.linalg.slogdet(np.eye(2), method="qr"), NotImplementedError, "method='qr'"),
    (lambda: jnp.linalg.cholesky([[1.0]]), TypeError, "cholesky requires ndarray"),
    (lambda: lax.linalg.lu(np.ones(3)), TypeError, "matrices in the last two axes"),
    (lambda: lax.linalg.lu(np.ones((2, 2), int)), TypeError, "does not accept dtype int64"),
    (lambda: lax.linalg.cholesky(np.ones((2, 3))), ValueError, "square"),
    (lambda: lax.linalg.triangular_solve(np.eye(2), np.ones((3, 1)), left_side=True), ValueError, "batch axes"),
    (lambda: lax.linalg.triangular_solve(np.eye(2), np.ones((2, 1), np.float32)), TypeError, "one dtype"),
    (lambda: lax.linalg.lu_pivots_to_permutation(np.zeros(3, np.int32), 2), ValueError, "exceed"),
    (lambda: jax.scipy.linalg.solve_triangular(np.eye(2), np.ones(2), trans=5), ValueError, "trans must be"),
    (lambda: jax.scipy.linalg.solve(np.eye(2), np.ones(2), assume_a="x"), ValueError, "assume_a"),
    (lambda: jax.scipy.linalg.cho_solve((np.eye(2), True), np.ones(3)), ValueError, "do not fit"),
]


@pytest.mark.parametrize("call, error, message", REFUSED, ids=range(len(REFUSED)))
def test_refused(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
