"""Running folds: NumPy's values bit for bit where it folds in the same order, derivatives, one pass, bad input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import jaxlite as jax
import jaxlite.numpy as jnp
from jaxlite import lax
from jaxlite.test_util import check_grads

SHAPES = [(5,), (1000,), (3, 4), (17, 33), (2, 3, 17), (4, 0), (3, 5, 2)]
NUMPY: dict[str, np.ufunc] = {
    "cumsum": np.add,
    "cumprod": np.multiply,
    "cummax": np.maximum,
    "cummin": np.minimum,
    "cumlogsumexp": np.logaddexp,
}


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", NUMPY)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_values(shape: tuple[int, ...], name: str, reverse: bool) -> None:
    x = np.random.default_rng(0).uniform(0.5, 1.5, shape).astype(np.float32)
    for axis in range(len(shape)):
        given = np.flip(x, axis) if reverse else x
        wanted = NUMPY[name].accumulate(given, axis)
        wanted = np.flip(wanted, axis) if reverse else wanted
        got = np.asarray(jax.jit(getattr(lax, name), static_argnums=(1, 2))(x, axis - len(shape), reverse))
        if name == "cumlogsumexp":  # a step rounds four times, and there are at most 1000
            np.testing.assert_allclose(got, wanted, rtol=4 * 1000 * 2.0**-24)
        else:
            assert got.tobytes() == np.ascontiguousarray(wanted).tobytes()


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.int8, np.uint16])
@pytest.mark.parametrize("columns", [1, 15, 17, 18, 33])
def test_small_dtypes_write_their_own_elements_alone(dtype: Any, columns: int) -> None:
    # A row's last lanes are stored under a mask; what stands behind them is the next row's, written before.
    x = np.random.default_rng(0).integers(0, 3, (2, 3, columns)).astype(dtype)
    wanted = np.add.accumulate(x.astype(np.float32), 1).astype(dtype)
    assert np.asarray(lax.cumsum(x, 1)).tobytes() == wanted.tobytes()


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"])
@pytest.mark.parametrize("reverse", [False, True])
def test_derivatives(name: str, reverse: bool) -> None:
    x = np.random.default_rng(0).permutation(12).reshape(3, 4) / 5 - 1.0  # no two alike: maxima have derivatives
    with jax.enable_x64(True):
        f = lambda v: getattr(lax, name)(v, 1, reverse)
        check_grads(f, (x,), order=2, modes=["fwd", "rev"], rtol=2e-3, atol=2e-3)
        check_grads(jax.vmap(f, 1, 2), (np.stack([x, x + 0.1], 1),), order=1, modes=["rev"], rtol=2e-3, atol=2e-3)


def test_products_with_zeros_and_empty_sums_have_derivatives() -> None:
    slope = jax.grad(lambda v: lax.cumprod(v).sum())
    assert slope(jnp.array([2.0, 0.0, 3.0])).tolist() == [1.0, 8.0, 0.0]
    x = jnp.array([-jnp.inf, -jnp.inf, 0.0])
    assert lax.cumlogsumexp(x).tolist() == [-np.inf, -np.inf, 0.0]
    assert jax.grad(lambda v: lax.cumlogsumexp(v)[2])(x).tolist() == [0.0, 0.0, 1.0]
    assert lax.cumlogsumexp(jnp.array([np.inf, np.inf])).tolist() == [np.inf, np.inf]
    assert np.isnan(lax.cummax(jnp.array([1.0, np.nan, 2.0]))).tolist() == [False, True, True]


def test_numpy_functions() -> None:
    x = np.random.default_rng(0).uniform(0.5, 1.5, (3, 4)).astype(np.float32)
    assert (np.asarray(jnp.cumsum(x)) == np.cumsum(x)).all()
    assert (np.asarray(jnp.cumprod(x, 0)) == np.cumprod(x, 0)).all()
    assert jnp.cumsum(x > 1).dtype == np.int32 and int(jnp.cumsum(x > 0)[-1]) == 12
    assert jnp.cumsum(x, dtype=np.float16).dtype == np.float16
    assert jnp.cumulative_sum(x[0], include_initial=True).tolist() == [0.0, *np.cumsum(x[0]).tolist()]


def test_one_equation_and_one_kernel() -> None:
    assert [e.primitive.name for e in jax.make_jaxpr(jnp.cumsum)(np.ones(8, np.float32)).eqns] == ["cumsum"]
    assert "cumsum" in str(jax.make_jaxpr(lambda v: lax.cumsum(v, 0, True))(np.ones(8, np.float32)))


REFUSED: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: lax.cumsum(np.ones(3), 1), ValueError, "axis 1 is out of bounds"),
    (lambda: lax.cumsum(np.float32(1)), ValueError, "axis 0 is out of bounds"),
    (lambda: lax.cumsum(np.ones(3, bool)), TypeError, "does not accept dtype bool"),
    (lambda: lax.cumlogsumexp(np.ones(3, int)), TypeError, "does not accept dtype int"),
]


@pytest.mark.parametrize("call, error, message", REFUSED, ids=range(len(REFUSED)))
def test_refused(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
