"""custom_jvp and custom_vjp: the user's rule is the one used, under every transformation."""

from __future__ import annotations

from typing import Any

import pytest

import jaxlite as jax
import jaxlite.numpy as jnp


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
    from jaxlite import lax

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
