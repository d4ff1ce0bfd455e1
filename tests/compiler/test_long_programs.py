"""Programs of thousands of equations: no recursion limit, and plans that grow in proportion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jaxlite as jax
from jaxlite import lax, numpy as jnp
from jaxlite.compiler.dependencies import Dependencies
from jaxlite.compiler.groups import Group

LONG = 10_000


def additions(count: int) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        for n in range(count // 2):
            x = (x * -1.0) + (n % 3)
        return x

    return f


def scattered(count: int) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        for n in range(count):
            x = x.at[n % 3].add(1.0)
        return x

    return f


def rolled(count: int) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        for _ in range(count):
            x = jnp.roll(x, 1)
        return x

    return f


def sliced(count: int) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        for _ in range(count):
            x = lax.rev(lax.expand_dims(x, (0,)), (1,))[0]
        return x

    return f


def test_ten_thousand_equations_are_traced_differentiated_and_compiled() -> None:
    f = additions(LONG)
    x = np.arange(4, dtype=np.float32)
    assert len(jax.make_jaxpr(f)(x).eqns) == LONG
    want = x.copy()
    for n in range(LONG // 2):
        want = -want + n % 3
    np.testing.assert_array_equal(jax.jit(f)(x), want)  # small integers: exact
    # An even number of changes of sign.
    np.testing.assert_array_equal(jax.jit(jax.grad(lambda v: jnp.sum(f(v))))(x), np.ones(4))


@pytest.mark.parametrize("make", [additions, scattered, rolled, sliced])
def test_kernels_hold_in_proportion_what_the_program_holds(make: Any) -> None:
    """Twice the equations: at most about twice what the kernels compute, repeats included."""

    def work(count: int) -> int:
        report = jax.jit(make(count)).lower(np.zeros(3, np.float32)).compile().report
        return sum(len(kernel.equations) for kernel in report.kernels)

    assert work(800) <= 2.5 * work(400)


def test_indexing_chains_are_right() -> None:
    x = np.arange(3, dtype=np.float32)
    # 100 additions go round three places: 34 for the first, 33 for the others.
    np.testing.assert_array_equal(jax.jit(scattered(100))(x), x + np.array([34, 33, 33]))
    np.testing.assert_array_equal(jax.jit(rolled(100))(x), np.roll(x, 100))
    np.testing.assert_array_equal(jax.jit(sliced(101))(x), x[::-1])
    # Each result is read by the sum alone, each operand goes to one place: the slopes are ones.
    np.testing.assert_array_equal(jax.jit(jax.grad(lambda v: scattered(100)(v).sum()))(x), np.ones(3))


def test_groups_keep_their_order_when_they_merge() -> None:
    """What runs before what, against a walk over all requirements."""
    rng = np.random.default_rng(3)
    order = Dependencies()
    groups: list[Group] = []

    def walk(start: Group, goal: Group) -> bool:
        return start is goal or any(walk(g, goal) for g in start.after)

    for _ in range(200):
        match rng.integers(3):
            case 0 if len(groups) < 12:
                groups.append(Group("map", ()))
                order.add(groups[-1])
            case 1 if len(groups) > 1:
                a, b = (groups[i] for i in rng.choice(len(groups), 2, replace=False))
                if not walk(b, a):
                    order.require(a, [b])
            case 2 if len(groups) > 8:
                a, b = (groups[i] for i in rng.choice(len(groups), 2, replace=False))
                around = any(walk(g, b) for g in a.after - {b}) or any(walk(g, a) for g in b.after - {a})
                if not around:
                    order.merge(a, b)
                    groups.remove(b)
        for start in groups:
            assert start.after <= set(groups)
            for goal in groups:
                assert order.reaches(start, goal) == walk(start, goal)
