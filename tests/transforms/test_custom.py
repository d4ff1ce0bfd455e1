"""custom_jvp and custom_vjp: the user's rule is the one used, under every transformation."""

from __future__ import annotations

from typing import Any

import pytest

import jaxlite as jax
import jaxlite.numpy as jnp
from jaxlite import lax
from jaxlite.custom_derivatives import (
    CustomVJPPrimal,
    SymbolicZero,
    custom_vjp_primal_tree_values,
    zero_from_primal,
)


@jax.custom_jvp
def squared(x: Any) -> Any:
    return x * x


@squared.defjvp
def _(primals: Any, tangents: Any) -> Any:
    return squared(*primals), 10.0 * primals[0] * tangents[0]  # five times the true slope, to tell them apart


@jax.custom_vjp
def clipped(x: Any, bound: Any) -> Any:
    return x


clipped.defvjp(lambda x, b: (x, b), lambda b, g: (jnp.clip(g, -b, b), None))

WRAPS = {
    "plain": lambda f: f,
    "jit": jax.jit,
    "jit inside": lambda f: lambda x: jax.jit(f)(x),
    "vmap": lambda f: lambda x: jax.vmap(f)(jnp.stack([x, x]))[0],
    "vmap of jit": lambda f: lambda x: jax.vmap(jax.jit(f))(jnp.stack([x, x]))[1],
}


@pytest.mark.parametrize("wrap", WRAPS)
def test_custom_jvp(wrap: str) -> None:
    f = WRAPS[wrap](squared)
    x = jnp.float32(3.0)
    assert float(f(x)) == 9.0
    assert float(jax.grad(f)(x)) == 30.0
    assert float(WRAPS[wrap](jax.grad(squared))(x)) == 30.0
    assert float(jax.jvp(f, (x,), (jnp.float32(1),))[1]) == 30.0
    assert float(jax.grad(jax.grad(f))(x)) == 10.0


@pytest.mark.parametrize("wrap", WRAPS)
def test_custom_vjp(wrap: str) -> None:
    f = WRAPS[wrap](lambda x: clipped(x, 0.5) * 3.0)
    x = jnp.float32(2.0)
    assert float(f(x)) == 6.0
    assert float(jax.grad(f)(x)) == 0.5
    assert float(WRAPS[wrap](jax.grad(lambda x: clipped(x, 0.5) * 3.0))(x)) == 0.5


def test_inside_scan() -> None:
    f = lambda x: lax.scan(lambda c, _: (squared(c), None), x, None, length=2)[0]
    assert float(jax.jit(jax.grad(f))(2.0)) == (10 * 4.0) * (10 * 2.0)
    g = lambda x: lax.scan(lambda c, _: (clipped(c, 0.5) * 2.0, None), x, None, length=2)[0]
    assert float(jax.jit(jax.grad(g))(2.0)) == 0.5


def test_nondiff_argnums() -> None:
    from functools import partial

    @partial(jax.custom_jvp, nondiff_argnums=(0,))
    def apply(f: Any, x: Any) -> Any:
        return f(x)

    @apply.defjvp
    def _(f: Any, primals: Any, tangents: Any) -> Any:
        return apply(f, *primals), 7.0 * tangents[0]

    assert float(jax.grad(lambda x: apply(jnp.sin, x))(1.0)) == 7.0

    @partial(jax.custom_vjp, nondiff_argnums=(1,))
    def scaled(x: Any, by: float) -> Any:
        return x * by

    scaled.defvjp(lambda x, by: (scaled(x, by), x), lambda by, r, g: (g * 100 * by,))
    assert float(jax.grad(scaled)(1.0, 2.0)) == 200.0


def test_defjvps_and_trees() -> None:
    @jax.custom_jvp
    def f(x: Any, y: Any) -> Any:
        return x * y

    f.defjvps(lambda t, out, x, y: 2 * t * y, None)
    assert [float(g) for g in jax.grad(f, (0, 1))(3.0, 5.0)] == [10.0, 0.0]

    @jax.custom_vjp
    def g(tree: Any) -> Any:
        return {"s": tree["a"] + tree["b"][0]}

    g.defvjp(lambda t: (g(t), None), lambda _, ct: ({"a": ct["s"] * 2, "b": [ct["s"] * 3]},))
    got = jax.grad(lambda t: g(t)["s"])({"a": 1.0, "b": [2.0]})
    assert jax.tree.map(float, got) == {"a": 2.0, "b": [3.0]}


def test_closures_over_traced_values() -> None:
    def outer(x: Any, y: Any) -> Any:
        @jax.custom_jvp
        def inner(z: Any) -> Any:
            return z * y

        @inner.defjvp
        def _(p: Any, t: Any) -> Any:
            return inner(*p), t[0] * 5.0

        return inner(x)

    assert float(jax.jit(jax.grad(outer))(2.0, 3.0)) == 5.0
    assert float(jax.jit(outer)(2.0, 3.0)) == 6.0


REFUSED = [
    (lambda: jax.custom_jvp(lambda x: x)(1.0), AttributeError, "No JVP defined"),
    (lambda: jax.custom_vjp(lambda x: x)(1.0), AttributeError, "No VJP defined"),
    (lambda: jax.jvp(lambda x: clipped(x, 1.0), (1.0,), (1.0,)), TypeError, "forward-mode"),
]


@pytest.mark.parametrize("call, error, message", REFUSED, ids=range(len(REFUSED)))
def test_refused(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_rules_that_give_the_wrong_thing() -> None:
    f = jax.custom_jvp(lambda x: x)
    f.defjvp(lambda p, t: (p[0], jnp.ones(3)))
    with pytest.raises(TypeError, match="corresponding shapes and dtypes"):
        jax.grad(f)(1.0)
    g = jax.custom_vjp(lambda x, y: x)
    g.defvjp(lambda x, y: (x, None), lambda _, ct: (ct,))
    with pytest.raises(TypeError, match="one cotangent for each of 2 arguments"):
        jax.grad(g)(1.0, 2.0)


SEEN: list[Any] = []


@jax.custom_vjp
def with_zeros(x: Any, y: Any) -> Any:
    return x * y, x + y


def _forward(x: Any, y: Any) -> Any:
    SEEN.append((x.perturbed, y.perturbed))
    # Residuals may differ with what is perturbed.
    return with_zeros(x.value, y.value), (x.value, y.value) if y.perturbed else [y.value]


def _backward(residuals: Any, cotangents: Any) -> Any:
    SEEN.append(tuple(type(c) is SymbolicZero for c in cotangents))
    first, second = (0.0 if type(c) is SymbolicZero else c for c in cotangents)
    if isinstance(residuals, list):
        return first * residuals[0] + second, None
    x, y = residuals
    return first * y + second, first * x + second


with_zeros.defvjp(_forward, _backward, symbolic_zeros=True)


@jax.custom_jvp
def product(x: Any, y: Any) -> Any:
    return x * y


def _product_jvp(primals: Any, tangents: Any) -> Any:
    SEEN.append(tuple(type(t) is SymbolicZero for t in tangents))
    (x, y), (t, u) = primals, tangents
    parts = [] if type(t) is SymbolicZero else [t * y]
    parts += [] if type(u) is SymbolicZero else [u * x]
    return product(x, y), sum(parts)


product.defjvp(_product_jvp, symbolic_zeros=True)


@pytest.fixture(autouse=True)
def _nothing_seen() -> None:
    SEEN.clear()


def test_symbolic_zeros_of_custom_vjp() -> None:
    assert float(jax.grad(lambda x: with_zeros(x, 3.0)[0])(2.0)) == 3.0
    assert float(jax.jit(jax.grad(lambda x: with_zeros(x, x)[1]))(2.0)) == 2.0
    assert SEEN == [(True, False), (False, True), (True, True), (True, False)]
    SEEN.clear()
    assert jax.vmap(jax.grad(lambda x, y: with_zeros(x, y)[0]), (0, None))(jnp.arange(3.0), 4.0).tolist() == [4.0] * 3
    assert float(jax.grad(lambda x: jax.vmap(with_zeros, (None, 0))(x, jnp.arange(3.0))[0].sum())(2.0)) == 3.0
    assert SEEN == [(True, False), (False, True)] * 2


def test_symbolic_zeros_of_custom_jvp() -> None:
    assert float(jax.grad(product)(2.0, 3.0)) == 3.0
    assert jax.jit(jax.vmap(jax.grad(product, 1), (0, None)))(jnp.arange(3.0), 3.0).tolist() == [0.0, 1.0, 2.0]
    assert float(jax.grad(lambda x: jax.vmap(product, (None, 0))(x, jnp.arange(3.0)).sum())(3.0)) == 3.0
    assert SEEN == [(False, True), (True, False), (False, True)]


def test_symbolic_zeros_in_a_scan() -> None:
    steps = jnp.arange(1.0, 4.0)
    assert float(jax.grad(lambda x: lax.scan(lambda c, u: (product(c, u), None), x, steps)[0])(2.0)) == 6.0
    assert set(SEEN) == {(False, True)}
    SEEN.clear()
    swap = lambda c, _: ((with_zeros(*c)[1], c[0]), None)  # the second part of the carry has a tangent from step two
    assert float(jax.grad(lambda x: lax.scan(swap, (x, 1.0), None, length=2)[0][0])(1.0)) == 2.0


def test_values_of_symbolic_trees() -> None:
    tree = {"a": CustomVJPPrimal(1.0, True)}
    assert custom_vjp_primal_tree_values(tree) == {"a": 1.0}
    with pytest.raises(TypeError, match="CustomVJPPrimal, got float"):
        custom_vjp_primal_tree_values([1.0])
    zero = zero_from_primal(jnp.ones(3), symbolic_zeros=True)
    assert type(zero) is SymbolicZero and zero.shape == (3,) and zero.dtype == jnp.float32 and zero.ndim == 1
    assert zero_from_primal(jnp.ones(2)).tolist() == [0.0, 0.0]
