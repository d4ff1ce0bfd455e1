"""Activations and softmax against formulas in float64, their derivatives, masks, and initializers."""

from __future__ import annotations

import math

import numpy as np
import pytest

import jaxlite as jax
import jaxlite.numpy as jnp

EPS = np.finfo(np.float32).eps
X = np.linspace(-7, 7, 29)

FORMULAS = {
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "softplus": lambda x: np.log1p(np.exp(x)),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "elu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "celu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "selu": lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)),
    "leaky_relu": lambda x: np.where(x > 0, x, 0.01 * x),
    "hard_tanh": lambda x: np.clip(x, -1, 1),
    "hard_sigmoid": lambda x: np.clip(x + 3, 0, 6) / 6,
    "hard_silu": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "log_sigmoid": lambda x: -np.log1p(np.exp(-x)),
    "soft_sign": lambda x: x / (np.abs(x) + 1),
    "squareplus": lambda x: (x + np.sqrt(x * x + 4)) / 2,
    "mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
    "gelu": lambda x: x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))) / 2,
    "sparse_plus": lambda x: np.where(x <= -1, 0, np.where(x >= 1, x, (x + 1) ** 2 / 4)),
    "sparse_sigmoid": lambda x: np.clip(x + 1, 0, 2) / 2,
}


@pytest.mark.parametrize("name", FORMULAS)
def test_activations(name):
    function, expected = getattr(jax.nn, name), FORMULAS[name](X)
    x = jnp.asarray(X, jnp.float32)
    # A few operations of 2 ulps each, and cancellation against values of the size of x.
    np.testing.assert_allclose(function(x), expected, rtol=32 * EPS, atol=32 * EPS)
    np.testing.assert_allclose(jax.jit(function)(x), expected, rtol=32 * EPS, atol=32 * EPS)
    h = 1e-6
    middle = X[(np.abs(X) % 0.5) > 0.1]  # away from corners
    if middle.size:
        slope = (FORMULAS[name](middle + h) - FORMULAS[name](middle - h)) / (2 * h)
        out = jax.vmap(jax.grad(function))(jnp.asarray(middle, jnp.float32))
        # As many operations again as the value's; the quotient, in float64, is off by 1e-9.
        np.testing.assert_allclose(out, slope, rtol=64 * EPS, atol=64 * EPS)


def test_derivatives_at_corners():
    assert jax.grad(jax.nn.relu)(0.0) == 0
    assert [float(jax.grad(jax.nn.relu6)(x)) for x in (0.0, 3.0, 6.0)] == [0, 1, 0]


def test_exact_gelu():
    expected = [x * (1 + math.erf(x / math.sqrt(2))) / 2 for x in X]
    np.testing.assert_allclose(
        jax.nn.gelu(jnp.asarray(X, jnp.float32), approximate=False), expected, rtol=1e-5, atol=EPS
    )


def test_softmax_and_its_logarithm():
    x = np.array([[1.0, 2, 3], [1000, 1000, -1000]])
    shifted = np.exp(x - x.max(-1, keepdims=True))
    expected = shifted / shifted.sum(-1, keepdims=True)
    np.testing.assert_allclose(jax.nn.softmax(jnp.asarray(x, jnp.float32)), expected, rtol=8 * EPS)
    logs = jax.nn.log_softmax(jnp.asarray(x, jnp.float32))
    np.testing.assert_allclose(
        logs, x - x.max(-1, keepdims=True) - np.log(shifted.sum(-1, keepdims=True)), rtol=8 * EPS
    )
    jacobian = jax.jacrev(jax.nn.softmax)(jnp.asarray(x[0], jnp.float32))
    p = expected[0]
    np.testing.assert_allclose(jacobian, np.diag(p) - np.outer(p, p), rtol=16 * EPS, atol=4 * EPS)


def test_masks():
    x, mask = jnp.array([1.0, 2.0, 3.0]), jnp.array([True, True, False])
    np.testing.assert_allclose(jax.nn.softmax(x, where=mask), [*jax.nn.softmax(x[:2]), 0], rtol=4 * EPS)
    np.testing.assert_allclose(jax.nn.log_softmax(x, where=mask), [*jax.nn.log_softmax(x[:2]), -np.inf], rtol=4 * EPS)
    np.testing.assert_allclose(jax.nn.logsumexp(x, where=mask), jax.nn.logsumexp(x[:2]), rtol=4 * EPS)


def test_logsumexp():
    x = jnp.array([[1000.0, 1000.0], [-np.inf, -np.inf]])
    np.testing.assert_allclose(jax.nn.logsumexp(x, axis=1), [1000 + np.log(2), -np.inf], rtol=2 * EPS)
    size, sign = jax.nn.logsumexp(jnp.zeros(2), b=jnp.array([1.0, -3.0]), return_sign=True)
    np.testing.assert_allclose([size, sign], [np.log(2), -1], rtol=4 * EPS)
    np.testing.assert_allclose(jax.nn.logmeanexp(jnp.zeros(5)), 0, atol=4 * EPS)


def test_one_hot():
    np.testing.assert_array_equal(jax.nn.one_hot(jnp.array([0, 2, 5]), 3), [[1, 0, 0], [0, 0, 1], [0, 0, 0]])
    assert jax.nn.one_hot(jnp.zeros((2, 4), int), 3, axis=0, dtype=jnp.int8).shape == (3, 2, 4)


def test_glu_and_standardize():
    x = jnp.arange(8.0).reshape(2, 4)
    np.testing.assert_allclose(jax.nn.glu(x), x[:, :2] * jax.nn.sigmoid(x[:, 2:]), rtol=2 * EPS)
    out = np.asarray(jax.nn.standardize(x))
    np.testing.assert_allclose(out.mean(-1), 0, atol=8 * EPS)
    np.testing.assert_allclose(out.var(-1), 1.25 / (1.25 + 1e-5), rtol=1e-4)  # the squares of 7 lose 3 digits
    with pytest.raises(AssertionError, match=r"divisible by 2, got shape \(3,\)"):
        jax.nn.glu(jnp.ones(3))


@pytest.mark.parametrize("name", ["glorot_uniform", "glorot_normal", "he_uniform", "he_normal", "lecun_normal"])
def test_initializers_have_the_variance_that_they_promise(name):
    values = np.asarray(getattr(jax.nn.initializers, name)()(jax.random.key(0), (200, 100)))
    wanted = {"glorot": 2 / 300, "he": 2 / 200, "lecun": 1 / 200}[name.split("_")[0]]
    np.testing.assert_allclose(values.var(), wanted, rtol=0.05)  # 20000 draws: a deviation of about 1 percent
    with pytest.raises(ValueError, match="at least 2D"):
        getattr(jax.nn.initializers, name)()(jax.random.key(0), (3,))
