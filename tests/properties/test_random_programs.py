"""Programs composed at random: the same eagerly and compiled, differentiated and differenced, batched and looped."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given, strategies as st

import jaxlite as jax
import jaxlite.numpy as jnp
from jaxlite import lax
from jaxlite.core.config import contract_fma

SHAPE = (3, 4)
# Compiled code contracts products and adds in another order: an ulp or two of values of about 4 (1e-6) a step.  A step
# multiplies what came before by its slope, about 10 at the steepest and below 1 for most; two steep ones make it 1e-4.
CLOSE: dict[str, Any] = {"rtol": 1e-4, "atol": 1e-5}

# Smooth and bounded, so that differences mean something and nothing overflows; (function, operands it takes).
ELEMENTWISE: list[tuple[Callable[..., Any], int]] = [
    (jnp.sin, 1),
    (jnp.tanh, 1),
    (lambda x: jnp.exp(-x * x), 1),
    (lambda x: 1 / (1 + x * x), 1),
    (lambda x, y: x * y, 2),
    (lambda x, y: x - 0.5 * y, 2),
    (lambda x, y: jnp.where(jnp.sin(y) > 0.1, x, jnp.cos(x)), 2),
]
LAYOUT: list[tuple[Callable[..., Any], int]] = [
    (lambda x: x[::-1], 1),
    (lambda x: x.reshape(4, 3).T, 1),
    (lambda x: jnp.roll(x, 1, 0), 1),
    (lambda x: jnp.concatenate([x[1:], x[:1] * 0.5]), 1),
    (lambda x: jnp.pad(x[:2, 1:], ((0, 1), (1, 0)), constant_values=0.25), 1),
    (lambda x: x[jnp.array([2, 0, 2])], 1),
    (lambda x, y: x.at[1].set(y[2] * 0.5), 2),
    (lambda x, y: x.at[jnp.array([0, 0, 2])].add(0.1 * y), 2),
    (lambda x: lax.dynamic_update_slice(x, x[:1, :2] * 2, (jnp.int32(1), jnp.int32(1))), 1),
]
FOLDING: list[tuple[Callable[..., Any], int]] = [
    (lambda x: x - x.mean(-1, keepdims=True), 1),
    (lambda x: jax.nn.softmax(x, -1), 1),
    (lambda x: x * jnp.tanh(x.sum(0)), 1),
    (lambda x: x * jnp.cos(x.sum()), 1),
    (lambda x, y: jnp.tanh(x @ y.T) @ x, 2),
    (lambda x, y: lax.scan(lambda c, r: (jnp.tanh(c + r), c * r), y[0], x)[1], 2),
    (lambda x: lax.fori_loop(0, 3, lambda i, v: jnp.sin(v) + 0.1 * i, x), 1),
    (lambda x: lax.cond(x[0, 0] > 0.3, jnp.sin, lambda v: v * 0.5, x), 1),
    (lambda x: jax.jit(lambda v: jnp.tanh(v) * v)(x), 1),
    (lambda x: jax.vmap(lambda r: r * r.sum())(x), 1),
]
EVERYTHING = ELEMENTWISE + LAYOUT + FOLDING

Step = tuple[int, tuple[int, ...]]
Program = tuple[tuple[Step, ...], tuple[int, int]]


def programs(table: list[tuple[Callable[..., Any], int]], most: int) -> st.SearchStrategy[Program]:
    @st.composite
    def build(draw: st.DrawFn) -> Program:
        steps = []
        for number in range(draw(st.integers(1, most))):
            op = draw(st.integers(0, len(table) - 1))
            steps.append((op, tuple(draw(st.integers(0, number + 1)) for _ in range(table[op][1]))))
        values = len(steps) + 2
        return tuple(steps), (values - 1, draw(st.integers(0, values - 1)))

    return build()


def run(table: list[tuple[Callable[..., Any], int]], program: Program, x: Any, y: Any) -> tuple[Any, Any]:
    steps, (a, b) = program
    values = [x, y]
    for op, operands in steps:
        values.append(table[op][0](*(values[i] for i in operands)))
    return values[a], values[b]


def inputs(dtype: Any = np.float32, *batch: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    return tuple(jnp.asarray(rng.uniform(-1, 1, (*batch, *SHAPE)).astype(dtype)) for _ in range(2))  # type: ignore[return-value]


@given(programs(ELEMENTWISE + LAYOUT[:7], 10))
def test_compiled_is_eager_bit_for_bit_without_folds(program: Program) -> None:
    f = functools.partial(run, ELEMENTWISE + LAYOUT[:7], program)
    with contract_fma(False):
        for got, want in zip(jax.jit(f)(*inputs()), f(*inputs()), strict=True):
            assert np.asarray(got).tobytes() == np.asarray(want).tobytes()


@given(programs(EVERYTHING, 8))
def test_compiled_is_eager(program: Program) -> None:
    f = functools.partial(run, EVERYTHING, program)
    for got, want in zip(jax.jit(f)(*inputs()), f(*inputs()), strict=True):
        np.testing.assert_allclose(got, want, **CLOSE)


def total(program: Program, x: Any, y: Any) -> Any:
    a, b = run(EVERYTHING, program, x, y)
    return (a * jnp.cos(b)).sum()


def away_from_steps(program: Program, x: Any, y: Any, moves: Any) -> bool:
    """Whether no branch flips within a step of the difference quotient: the quotient is the same for half the step."""
    quotients = []
    for h in (2e-6, 1e-6):
        above = total(program, x + h * moves[0], y + h * moves[1])
        below = total(program, x - h * moves[0], y - h * moves[1])
        quotients.append(float(above - below) / (2 * h))
    return abs(quotients[0] - quotients[1]) <= 1e-5 * max(1.0, abs(quotients[1]))


@given(programs(EVERYTHING, 6))
def test_derivatives_agree_with_each_other_and_with_differences(program: Program) -> None:
    with jax.enable_x64(True):
        x, y = inputs(np.float64)
        f = functools.partial(total, program)
        gx, gy = jax.grad(f, (0, 1))(x, y)
        moves = inputs(np.float64)[::-1]
        _, slope = jax.jvp(f, (x, y), moves)
        along = float((gx * moves[0]).sum() + (gy * moves[1]).sum())
        scale = max(1.0, abs(along), float(jnp.abs(gx).max() + jnp.abs(gy).max()))
        assert abs(along - float(slope)) <= 1e-11 * scale  # the same numbers, summed in another order
        for got, want in zip(jax.jit(jax.grad(f, (0, 1)))(x, y), (gx, gy), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-11 * scale)
        if away_from_steps(program, x, y, moves):
            h = 1e-6
            above, below = (f(x + s * moves[0], y + s * moves[1]) for s in (h, -h))
            assert abs(float(above - below) / (2 * h) - along) <= 1e-5 * scale


@given(programs(EVERYTHING, 6), st.sampled_from([(0, 0), (0, None), (None, 1)]))
def test_vmap_is_a_loop(program: Program, axes: tuple[int | None, int | None]) -> None:
    f = functools.partial(run, EVERYTHING, program)
    xs, ys = inputs(np.float32, 3)
    x, y = (v if a is not None else v[0] for v, a in zip((xs, ys), axes, strict=True))
    y = jnp.moveaxis(y, 0, 1) if axes[1] == 1 else y
    rows = [f(xs[i] if axes[0] is not None else x, ys[i] if axes[1] is not None else y) for i in range(3)]
    for wrap in (lambda g: g, jax.jit):
        got = wrap(jax.vmap(f, in_axes=axes))(x, y)
        for g, *column in zip(got, *rows, strict=True):
            np.testing.assert_allclose(g, jnp.stack(column), **CLOSE)


@given(programs(EVERYTHING, 6))
def test_checkpoint_changes_no_derivative(program: Program) -> None:
    with jax.enable_x64(True):
        x, y = inputs(np.float64)
        f = functools.partial(total, program)
        plain = jax.grad(f, (0, 1))(x, y)
        scale = max(1.0, *(float(jnp.abs(g).max()) for g in plain))
        for wrap in (lambda g: g, jax.jit):
            again = wrap(jax.grad(jax.checkpoint(f), (0, 1)))(x, y)
            for got, want in zip(again, plain, strict=True):  # as above: compiled sums have another order
                np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-11 * scale)
