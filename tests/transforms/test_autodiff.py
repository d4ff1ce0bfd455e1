"""Derivatives of composed programs: known values, any nesting, Python control flow, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import jaxlite as jax
import jaxlite.numpy as jnp
from jaxlite import lax

EPS = float(np.finfo(np.float32).eps)  # one ulp of numbers just above 1


def tanh(x: Any) -> Any:
    y = jnp.exp(-2.0 * x)
    return (1.0 - y) / (1.0 + y)


def test_third_derivative_of_tanh() -> None:
    t = math.tanh(1.0)
    slopes = [1 - t * t, -2 * t * (1 - t * t), (1 - t * t) * (6 * t * t - 2)]
    f = tanh
    for wanted in slopes:
        f = jax.grad(f)
        # The formula is a quotient of numbers near 1 that nearly cancel: 1e-5 of 1 is about 80 ulps of float32.
        assert float(f(1.0)) == pytest.approx(wanted, abs=1e-5)


def test_python_branches_loops_and_recursion() -> None:
    def branch(x: Any) -> Any:
        return x**2 if x > 0 else -x

    def loop(x: Any) -> Any:
        for _ in range(3):
            x = x * x
        return x

    def power(x: Any, n: int) -> Any:
        return 1.0 if n == 0 else x * power(x, n - 1)

    assert float(jax.grad(branch)(3.0)) == 6.0
    assert float(jax.grad(branch)(-3.0)) == -1.0
    assert float(jax.grad(loop)(1.1)) == pytest.approx(8 * 1.1**7, rel=1e-6)
    assert float(jax.grad(power)(2.0, 5)) == 80.0


MODES = {
    "reverse of reverse": lambda f: jax.grad(jax.grad(f)),
    "forward of reverse": lambda f: lambda x: jax.jvp(jax.grad(f), (x,), (1.0,))[1],
    "reverse of forward": lambda f: jax.grad(lambda x: jax.jvp(f, (x,), (1.0,))[1]),
    "forward of forward": lambda f: lambda x: jax.jvp(lambda y: jax.jvp(f, (y,), (1.0,))[1], (x,), (1.0,))[1],
    "hessian": lambda f: jax.hessian(f),
    "of jit": lambda f: jax.grad(jax.grad(jax.jit(f))),
    "jit of": lambda f: jax.jit(jax.grad(jax.jit(jax.grad(f)))),
    "linearize": lambda f: lambda x: jax.linearize(jax.grad(f), x)[1](1.0),
    "vmap": lambda f: lambda x: jax.vmap(jax.grad(jax.grad(f)))(jnp.full(3, x))[1],
    "of vmap": lambda f: jax.grad(lambda x: jax.vmap(jax.grad(f))(jnp.full(2, x)).sum() / 2),
}


@pytest.mark.parametrize("mode", MODES)
def test_second_derivatives_compose(mode: str) -> None:
    f = lambda x: jnp.sin(x) * jnp.exp(x) + x**3
    x = 0.7
    wanted = 2 * math.exp(x) * math.cos(x) + 6 * x
    # Sums of four float32 terms below 6: 1e-6 relative is 8 ulps.
    assert float(MODES[mode](f)(x)) == pytest.approx(wanted, rel=1e-6)


def test_jacobians_agree_with_each_other() -> None:
    f = lambda x, y: {"a": jnp.sin(x) * y.sum(), "b": (x[0] * y, x.sum())}
    x, y = jnp.arange(3.0), jnp.array([0.5, 2.0])
    for argnums in (0, 1, (0, 1)):
        forward, reverse = jax.jacfwd(f, argnums)(x, y), jax.jacrev(f, argnums)(x, y)
        assert jax.tree.structure(forward) == jax.tree.structure(reverse)
        for a, b in zip(jax.tree.leaves(forward), jax.tree.leaves(reverse), strict=True):
            assert a.shape == b.shape
            # An entry is a product of a cosine, the same on both sides, and a sum of two: two roundings a side.
            np.testing.assert_allclose(a, b, rtol=2 * EPS)
    assert jax.jacrev(f)(x, y)["b"][0].shape == (2, 3)


def test_aux_argnums_and_keywords() -> None:
    def f(a: Any, b: Any, scale: float = 1.0) -> Any:
        return (a["w"] * b).sum() * scale, {"a": a, "n": 3}

    a, b = {"w": jnp.array([1.0, 2.0])}, jnp.array([3.0, 4.0])
    (value, aux), (ga, gb) = jax.value_and_grad(f, argnums=(0, 1), has_aux=True)(a, b, scale=2.0)
    assert float(value) == 22.0 and aux["n"] == 3
    np.testing.assert_array_equal(ga["w"], [6.0, 8.0])
    np.testing.assert_array_equal(gb, [2.0, 4.0])
    assert jax.grad(f, has_aux=True)(a, b)[1]["n"] == 3
    np.testing.assert_array_equal(aux["a"]["w"], a["w"])


def test_vjp_of_integers_gives_float0() -> None:
    _, pull = jax.vjp(lambda x, n: x * n, 2.0, 3)
    gx, gn = pull(1.0)
    assert float(gx) == 3.0 and gn.dtype == jax.float0


def test_stop_gradient() -> None:
    assert float(jax.grad(lambda x: x * lax.stop_gradient(x))(3.0)) == 3.0


def test_linearize_is_reused() -> None:
    calls = []

    def f(x: Any) -> Any:
        calls.append(1)
        return jnp.sin(x)

    value, linear = jax.linearize(f, 2.0)
    assert [float(linear(t)) for t in (1.0, 2.0)] == pytest.approx([math.cos(2), 2 * math.cos(2)], rel=1e-6)
    assert float(value) == pytest.approx(math.sin(2)) and len(calls) == 1


REFUSED = [
    (lambda: jax.grad(lambda x: x)(jnp.ones(3)), TypeError, r"scalar-output functions. Output had shape: \(3,\)"),
    (lambda: jax.grad(lambda x: x)(1), TypeError, r"got int32 for argument args\[0\]"),
    (lambda: jax.grad(lambda x: (x, x))(1.0), TypeError, "scalar-output functions"),
    (lambda: jax.grad(lambda x: jnp.int32(1))(1.0), TypeError, "real- or complex-valued outputs"),
    (lambda: jax.grad(lambda x: x, argnums=1)(1.0), TypeError, "argnums=1 requires at least 2 .* called with 1"),
    (lambda: jax.value_and_grad(lambda x: x, argnums=(0, 2))(1.0), TypeError, "requires at least 3"),
    (lambda: jax.grad(lambda x: x, argnums=-2)(1.0), ValueError, "argnums must be from -1 to 0"),
    (lambda: jax.jacfwd(lambda x: x, argnums=1)(1.0), ValueError, "jacfwd got argnums=1"),
    (lambda: jax.jacrev(lambda x: x, argnums=1)(1.0), ValueError, "jacrev got argnums=1"),
    (lambda: jax.grad(3), TypeError, "callable"),
    (lambda: jax.grad(lambda x: x)("a"), TypeError, "not a valid JAX type"),
    (lambda: jax.jvp(lambda x: x, (1.0,), (jnp.ones(2),)), TypeError, r"primals\[0\]"),
    (lambda: jax.jvp(lambda x: x, (1.0,), (1.0, 2.0)), TypeError, "same tree structure"),
    (lambda: jax.vjp(lambda x: x, 1.0)[1]((1.0, 2.0)), ValueError, "tree structure of the cotangent"),
    (lambda: jax.vjp(lambda x: x, 1.0)[1](jnp.ones(3)), ValueError, r"type of cotangent .*float32\[\] .*of shape \(\)"),
    (lambda: jax.vjp(lambda x: x, 1.0)[1](1), ValueError, r"got int32\[\]. Write jnp.asarray\(value, jnp.float32\)"),
    (lambda: jax.vjp(lambda x: x, jnp.float16(1))[1](1.0), ValueError, r"float16\[\] was expected, got float32"),
    (lambda: jax.vjp(lambda x: {"a": x}, 1.0)[1]({"a": True}), ValueError, r"type of cotangent\['a'\]"),
    (lambda: jax.linearize(lambda x: x, jnp.ones(3))[1](jnp.ones(2)), ValueError, r"expected tangent float32\[3\]"),
    (lambda: jax.linearize(lambda x: x, jnp.ones(3))[1](jnp.arange(3)), ValueError, r"got int32\[3\]. Write"),
    (lambda: jax.linearize(lambda x: x, 1.0)[1](1.0, 2.0), TypeError, "same tree structure"),
    (lambda: jax.vjp(lambda x: x, 1.0, reduce_axes=("i",)), NotImplementedError, "vjp: reduce_axes"),
    (lambda: jax.grad(lambda x: x, reduce_axes=("i",)), NotImplementedError, "grad: reduce_axes"),
    (lambda: jax.grad(lambda x: x, holomorphic=True), NotImplementedError, "grad: holomorphic=True"),
    (lambda: jax.jacfwd(lambda x: x, holomorphic=True), NotImplementedError, "jacfwd: holomorphic=True"),
    (lambda: jax.jacrev(lambda x: x, holomorphic=True), NotImplementedError, "jacrev: holomorphic=True"),
]


@pytest.mark.parametrize("call, error, message", REFUSED, ids=range(len(REFUSED)))
def test_refused(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize(
    ("function", "error"),
    [
        (lambda x: x * float(x), jax.errors.ConcretizationTypeError),
        (lambda x: x * math.sin(x), jax.errors.ConcretizationTypeError),
        (lambda x: x * x.tolist(), jax.errors.ConcretizationTypeError),
        (lambda x: x * np.sin(x), jax.errors.TracerArrayConversionError),
        (lambda x: jnp.sum(jnp.asarray(np.asarray(x))), jax.errors.TracerArrayConversionError),
        (lambda x: np.stack([x, x]).sum(), jax.errors.TracerArrayConversionError),
    ],
)
def test_what_would_lose_the_derivative_is_refused(function: Any, error: type[Exception]) -> None:
    for transformed in (jax.grad(function), lambda x: jax.jvp(function, (x,), (x,))):
        with pytest.raises(error, match=r"would carry no derivative(.|\n)*stop_gradient"):
            transformed(2.0)


def test_constants_may_become_python_numbers_within_a_derivative() -> None:
    # x times a constant: the slope is the constant.
    assert jax.grad(lambda x: x * float(lax.stop_gradient(x)))(2.0) == 2.0
    assert jax.grad(lambda x: x * float(jnp.floor(x)))(2.5) == 2.0
    assert jax.grad(lambda x: x * int(x))(2.5) == 2.0
    assert jax.grad(lambda x: x * x.item())(2.0) == 2.0
    assert jax.grad(lambda x: x * (3.0 if x > 0 else 5.0))(2.0) == 3.0
