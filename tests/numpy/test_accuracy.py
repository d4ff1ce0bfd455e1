"""Values and derivatives where the naive formula cancels, overflows or divides nothing by nothing."""

from __future__ import annotations

from decimal import Decimal, getcontext
from typing import Any

import numpy as np
import pytest

import jaxlite as jax
import jaxlite.numpy as jnp

PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459")


def sinc_derivative(x: float, order: int) -> float:
    """By the series of ``sin(pi x) / (pi x)`` in decimal arithmetic of 60 digits."""
    getcontext().prec = 60
    t, total, factorial = PI * Decimal(x), Decimal(0), Decimal(1)
    for k in range(1, 80):
        factorial *= (2 * k) * (2 * k + 1)
        factor = 2 * k if order == 1 else 2 * k * (2 * k - 1)
        total += (-1) ** k * factor * t ** (2 * k - order) / factorial
    return float(total * PI**order)


POINTS = [1.1e-16, 1e-9, 1e-3, 0.1, 0.3, 0.5, 0.63, 0.64, 0.7, 0.9, 1.1, 1.5, 2.2, -0.3, -0.7]
# The quotient's derivatives lose 2 / t^order with t = pi x above 2 (nearer 0 the series serves), some 30 roundings
# each; the second one is small near x = 0.66, where its parts cancel.
ULPS = {1: 16, 2: 64}


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("x", POINTS)
def test_derivatives_of_sinc(x: float, order: int) -> None:
    with jax.enable_x64(True):
        f: Any = jnp.sinc
        for _ in range(order):
            f = jax.grad(f)
        wanted = sinc_derivative(x, order)
        assert abs(float(f(x)) - wanted) <= ULPS[order] * 2.0**-52 * abs(wanted)
    small = float(jax.grad(jnp.sinc)(np.float32(x)))
    wanted = sinc_derivative(float(np.float32(x)), 1)
    assert abs(small - wanted) <= 16 * 2.0**-23 * abs(wanted)


def test_sinc_itself() -> None:
    assert jnp.sinc(jnp.array([0.0, 1.0, -2.0, np.inf])).tolist() == [1.0, 0.0, 0.0, 0.0]
    x = np.linspace(-3, 3, 601)
    with jax.enable_x64(True):
        np.testing.assert_allclose(jnp.sinc(x), np.sinc(x), rtol=0, atol=4 * 2.0**-52)
    assert float(jax.grad(jnp.sinc)(0.0)) == 0.0


def test_logsumexp_of_nothing() -> None:
    f = jax.scipy.special.logsumexp
    x = jnp.array([-np.inf, -np.inf])
    assert float(f(x)) == -np.inf
    assert jax.grad(f)(x).tolist() == [0.0, 0.0]
    assert float(jax.jit(jax.grad(lambda t: f(jnp.stack([-jnp.inf, -jnp.inf + t]))))(1.0)) == 0.0
    assert float(f(jnp.array([np.inf, 1.0]))) == np.inf and np.isnan(float(f(jnp.array([np.nan, 1.0]))))
    assert jax.grad(f)(jnp.array([-np.inf, 0.0])).tolist() == [0.0, 1.0]


def test_cov_of_too_few_observations() -> None:
    assert np.isnan(float(jnp.cov(jnp.array([])))) and np.isnan(float(jnp.cov(jnp.array([1.0]))))
