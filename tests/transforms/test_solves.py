"""custom_linear_solve and custom_root: derivatives of the solution, whatever the solver does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jaxlite as jax
import jaxlite.numpy as jnp
from jaxlite import lax
from jaxlite.test_util import check_grads

A = np.array([[4.0, 1.0], [2.0, 3.0]], np.float32)
B = np.array([1.0, 2.0], np.float32)
INVERSE = np.linalg.inv(A)


def solved(a: Any, b: Any) -> Any:
    """By a solver that cannot be differentiated, so derivatives must come from the equation."""
    blind = lambda m, v: jnp.linalg.solve(lax.stop_gradient(m), v)
    return lax.custom_linear_solve(lambda x: a @ x, b, lambda _, v: blind(a, v), lambda _, v: blind(a.T, v))


def newton(f: Any, x: Any) -> Any:
    slope = jax.grad(f)
    return lax.while_loop(lambda s: jnp.abs(f(s)) > 1e-6, lambda s: s - f(s) / slope(s), x)


def cube_root(a: Any) -> Any:
    return lax.custom_root(lambda x: x**3 - a, a, newton, lambda g, y: y / g(1.0))


# Solutions of well-conditioned 2 x 2 systems in float32: a few ulps, and Newton stops at 1e-6.
NEAR: dict[str, Any] = {"rtol": 1e-5, "atol": 1e-6}


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["plain", "jit"])
def test_linear_solve(wrap: Any) -> None:
    np.testing.assert_allclose(wrap(solved)(A, B), INVERSE @ B, **NEAR)
    by_a, by_b = wrap(jax.grad(lambda a, b: solved(a, b).sum(), (0, 1)))(A, B)
    pulled = INVERSE.T @ np.ones(2)
    np.testing.assert_allclose(by_b, pulled, **NEAR)
    np.testing.assert_allclose(by_a, -np.outer(pulled, INVERSE @ B), **NEAR)
    check_grads(solved, (A, B), order=2, modes=["fwd", "rev"], rtol=2e-2, atol=2e-2)  # differences in float32


def test_linear_solve_of_trees_and_scalars() -> None:
    def f(b: Any) -> Any:
        return lax.custom_linear_solve(
            lambda t: {"x": 2 * t["x"], "y": 4 * t["y"]},
            b,
            lambda _, t: {"x": t["x"] / 2, "y": t["y"] / 4},
            symmetric=True,
        )

    b = {"x": jnp.ones(2), "y": 8.0}
    assert jax.tree.map(np.asarray, f(b))["y"] == 2.0
    slopes = jax.grad(lambda b: f(b)["x"].sum() + 3 * f(b)["y"])(b)
    assert slopes["x"].tolist() == [0.5, 0.5] and float(slopes["y"]) == 0.75


def test_linear_solve_batched() -> None:
    bs = np.stack([B, 2 * B, -B])
    np.testing.assert_allclose(jax.vmap(solved, (None, 0))(A, bs), bs @ INVERSE.T, **NEAR)
    many = np.stack([A, 2 * A])
    np.testing.assert_allclose(jax.jit(jax.vmap(solved, (0, None)))(many, B), [INVERSE @ B, INVERSE @ B / 2], **NEAR)
    slope = jax.vmap(jax.grad(lambda b: solved(A, b).sum()))(bs)
    np.testing.assert_allclose(slope, np.tile(INVERSE.sum(0), (3, 1)), **NEAR)


def test_linear_solve_with_aux() -> None:
    def f(b: Any) -> Any:
        return lax.custom_linear_solve(
            lambda x: 2.0 * x, b, lambda _, v: (v / 2.0, {"steps": 7}), symmetric=True, has_aux=True
        )

    x, aux = f(B)
    assert x.tolist() == [0.5, 1.0] and int(aux["steps"]) == 7
    assert jax.jit(jax.grad(lambda b: f(b)[0].sum()))(B).tolist() == [0.5, 0.5]
    assert jax.vmap(f)(np.stack([B, B]))[1]["steps"].tolist() == [7, 7]


def test_forward_mode_needs_no_transpose_solve() -> None:
    f = lambda b: lax.custom_linear_solve(lambda x: 2.0 * x, b, lambda _, v: v / 2.0)
    assert jax.jvp(f, (B,), (B,))[1].tolist() == [0.5, 1.0]
    with pytest.raises(TypeError, match="transpose_solve required"):
        jax.grad(lambda b: f(b).sum())(B)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit, lambda f: lambda x: jax.vmap(f)(jnp.stack([x, x]))[1]])
def test_root(wrap: Any) -> None:
    np.testing.assert_allclose(wrap(cube_root)(8.0), 2.0, **NEAR)
    np.testing.assert_allclose(wrap(jax.grad(cube_root))(8.0), 1 / 12, **NEAR)
    np.testing.assert_allclose(jax.grad(wrap(cube_root))(8.0), 1 / 12, **NEAR)
    np.testing.assert_allclose(wrap(jax.grad(jax.grad(cube_root)))(8.0), -2 / 9 * 8 ** (-5 / 3), **NEAR)
    np.testing.assert_allclose(jax.jvp(wrap(cube_root), (8.0,), (2.0,))[1], 2 / 12, **NEAR)


def test_root_of_a_vector_function() -> None:
    target = np.array([1.0, 4.0], np.float32)

    def f(scale: Any) -> Any:
        residual = lambda x: scale * x * x - target
        linear = lambda g, y: jnp.linalg.solve(jax.jacobian(g)(y), y)
        return lax.custom_root(residual, jnp.ones(2), lambda _, x: jnp.sqrt(target / lax.stop_gradient(scale)), linear)

    np.testing.assert_allclose(f(1.0), [1.0, 2.0], **NEAR)
    np.testing.assert_allclose(jax.jacfwd(f)(1.0), [-0.5, -1.0], **NEAR)  # d sqrt(t / s) = -sqrt(t / s) / (2 s)
    np.testing.assert_allclose(jax.jacrev(f)(1.0), [-0.5, -1.0], **NEAR)


def test_root_with_aux_and_guess() -> None:
    def f(a: Any, guess: Any) -> Any:
        return lax.custom_root(
            lambda x: x * x - a, guess, lambda g, x: (newton(g, x), x), lambda g, y: y / g(1.0), has_aux=True
        )

    root, aux = f(4.0, 3.0)
    assert float(aux) == 3.0
    np.testing.assert_allclose(root, 2.0, **NEAR)
    by_a, by_guess = jax.grad(lambda a, g: f(a, g)[0], (0, 1))(4.0, 3.0)
    np.testing.assert_allclose(by_a, 0.25, **NEAR)
    assert float(by_guess) == 0.0  # where the search starts does not move the root


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: lax.custom_linear_solve(lambda x: (x, x), B, lambda _, v: v), r"matvec\(\) of custom_linear_solve"),
    (lambda: lax.custom_linear_solve(lambda x: x[:1], B, lambda _, v: v), r"matvec\(\).*float32\[2\]"),
    (lambda: lax.custom_linear_solve(lambda x: x, B, lambda _, v: [v]), r"solve\(\) of custom_linear_solve"),
    (lambda: lax.custom_linear_solve(lambda x: x, B, lambda _, v: v, has_aux=True), "must give a pair"),
    (lambda: lax.custom_root(lambda x: (x, x), 1.0, newton, lambda g, y: y), r"f\(\) of custom_root"),
    (lambda: lax.custom_root(lambda x: x, 1.0, lambda f, x: (x, x), lambda g, y: y), r"solve\(\) of custom_root"),
    (
        lambda: jax.grad(lambda a: lax.custom_root(lambda x: x - a, 1.0, newton, lambda g, y: [y]))(1.0),
        r"tangent_solve\(\) of custom_root",
    ),
]


@pytest.mark.parametrize("call, message", REFUSED, ids=range(len(REFUSED)))
def test_refused(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        call()
