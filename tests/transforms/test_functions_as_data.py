"""map, associative_scan, closure_convert, linear_transpose, custom_gradient, check_grads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jaxlite as jax
import jaxlite.numpy as jnp
from jaxlite import lax
from jaxlite.test_util import check_grads


@pytest.mark.parametrize("batch_size", [None, 1, 2, 3, 7, 10])
def test_map(batch_size: int | None) -> None:
    xs = {"a": jnp.arange(7.0), "b": jnp.ones((7, 2))}
    got = jax.jit(lambda xs: lax.map(lambda x: x["a"] * x["b"], xs, batch_size=batch_size))(xs)
    np.testing.assert_array_equal(got, np.arange(7.0)[:, None] * np.ones((7, 2)))
    slope = jax.grad(lambda a: lax.map(lambda x: x**2, a, batch_size=batch_size).sum())(jnp.arange(7.0))
    np.testing.assert_array_equal(slope, 2 * np.arange(7.0))


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 8])
@pytest.mark.parametrize("reverse", [False, True])
def test_associative_scan(n: int, reverse: bool) -> None:
    # Matrix products: associative, not commutative.
    m = jnp.asarray(np.random.default_rng(n).standard_normal((n, 2, 2)).astype(np.float32))
    got = jax.jit(lambda m: lax.associative_scan(jnp.matmul, m, reverse=reverse))(m)
    want, total = [], np.eye(2)
    for x in np.asarray(m, np.float64)[:: -1 if reverse else 1]:
        total = total @ x
        want.append(total)
    want = np.array(want[:: -1 if reverse else 1]).reshape(n, 2, 2)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)  # eight products of 2 x 2, entries up to about 3


def test_associative_scan_of_trees_and_bools() -> None:
    x = jnp.array([True, False, True])
    np.testing.assert_array_equal(lax.associative_scan(jnp.logical_or, x), [True, True, True])
    total, most = lax.associative_scan(
        lambda a, b: (a[0] + b[0], jnp.maximum(a[1], b[1])), (jnp.arange(4.0), jnp.array([1, 3, 2, 5]))
    )
    np.testing.assert_array_equal(total, [0, 1, 3, 6])
    np.testing.assert_array_equal(most, [1, 3, 3, 5])


def test_closure_convert() -> None:
    def outer(w: Any) -> Any:
        f, consts = jax.closure_convert(lambda x: x * w, 1.0)
        assert len(consts) == 1
        return f(2.0, *consts)

    assert float(jax.grad(outer)(3.0)) == 2.0


def test_linear_transpose() -> None:
    a = jnp.arange(6.0).reshape(2, 3)
    (got,) = jax.linear_transpose(lambda x: a @ x, jnp.ones(3))(jnp.array([1.0, 2.0]))
    np.testing.assert_array_equal(got, np.asarray(a).T @ [1.0, 2.0])
    with pytest.raises(NotImplementedError, match="linear"):
        jax.linear_transpose(lambda x: x * x, 1.0)(1.0)


def test_custom_gradient() -> None:
    @jax.custom_gradient
    def f(x: Any) -> Any:
        return x**2, lambda g: (g * x,)

    assert float(f(3.0)) == 9.0 and float(jax.grad(f)(3.0)) == 3.0
    assert float(jax.jit(jax.grad(f))(3.0)) == 3.0
    np.testing.assert_array_equal(jax.vmap(jax.grad(f))(jnp.arange(3.0)), np.arange(3.0))


def test_check_grads_sees_a_wrong_rule() -> None:
    check_grads(lambda x, y: {"a": jnp.sin(x) * y.sum()}, (jnp.float32(1.0), jnp.ones(3)), order=2)
    wrong = jax.custom_jvp(lambda x: x**2)
    wrong.defjvp(lambda p, t: (p[0] ** 2, t[0] * p[0]))
    with pytest.raises(AssertionError):
        check_grads(wrong, (2.0,), order=1)
    with pytest.raises(ValueError, match="modes"):
        check_grads(jnp.sin, (1.0,), order=1, modes=["forward"])
