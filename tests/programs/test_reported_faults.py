"""Programs from public bug reports of array systems, each with the value that mathematics, IEEE or NumPy gives."""

from __future__ import annotations

import logging
import math
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jaxlite as jax
import jaxlite.numpy as jnp
from jaxlite import lax

Case = Callable[[], tuple[Any, Any, float]]
CASES: dict[str, tuple[bool, Case]] = {}


def case(x64: bool = False) -> Callable[[Case], Case]:
    def register(f: Case) -> Case:
        CASES[f.__name__] = (x64, f)
        return f

    return register


@case()
def double_where_guard_is_finite() -> Any:
    def f(x: Any) -> Any:
        s = jnp.sum(x**2, 1)
        ok = s > 0.25
        return jnp.sum(jnp.where(ok, jnp.sqrt(jnp.where(ok, s, 1.0)), 1.0))

    x = np.array([[1, 2], [3, 4], [0, 0]], np.float32)
    return jax.grad(f)(x), [[1 / 5**0.5, 2 / 5**0.5], [0.6, 0.8], [0, 0]], 1e-6


@case()
def logsumexp_of_nothing_but_minus_infinity() -> Any:
    f = lambda x: jax.scipy.special.logsumexp(jnp.stack([jnp.asarray(-jnp.inf), -jnp.inf + x]))
    return jax.grad(f)(1.0), 0.0, 0


@case()
def logsumexp_of_integers() -> Any:
    return jax.scipy.special.logsumexp(jnp.array([-1, 1])), math.log(math.exp(-1) + math.exp(1)), 1e-6


@case()
def power_of_zero_by_a_range() -> Any:
    return jax.grad(lambda x: jnp.sum(x ** jnp.arange(3)))(0.0), 1.0, 0


@case()
def jit_does_not_change_the_slope_of_zero_to_the_zero() -> Any:
    return jax.jacfwd(jax.jit(lambda x, k: x**k))(0.0, 0), 0.0, 0


@case()
def reverse_mode_of_scan_inputs() -> Any:
    f = lambda ns: lax.scan(lambda c, n: (c + n, c + n), jnp.array(0.0), ns)[1]
    return jax.jacrev(f)(jnp.arange(5.0)), np.tril(np.ones((5, 5))), 0


@case()
def scan_of_custom_vjp_with_symbolic_zeros() -> Any:
    @jax.custom_vjp
    def f(x: Any, y: Any) -> Any:
        return x + y

    f.defvjp(lambda x, y: (x.value + y.value, None if y.perturbed else []), lambda r, ct: (ct, ct), symbolic_zeros=True)
    g = lambda x: lax.scan(lambda c, _: ((f(*c), c[0]), None), (x, 1.0), None, length=2)[0][0]
    return jax.grad(g)(1.0), 2.0, 0


@case()
def gradient_of_a_batched_index_out_of_bounds() -> Any:
    f = lambda x, i: lax.dynamic_index_in_dim(x, i, axis=0, keepdims=False)
    return jax.jacrev(jax.vmap(f, (None, 0)))(jnp.array([1.0]), jnp.array([1])), [[1.0]], 0


@case(x64=True)
def gradient_of_a_clipping_scatter_max() -> Any:
    dims = lax.ScatterDimensionNumbers((), (0,), (0,))

    def f(t: Any) -> Any:
        x = jnp.array([1.0, 3.0, 4.0])
        u = t * jnp.array([1.0, -1.0]) + jnp.array([1.0, 4.0])
        y = lax.scatter_max(x, jnp.array([[-3], [8]]), u, dims, mode="clip")
        return jnp.sum(y * jnp.array([2.0, -1.0, 3.0]))

    return jax.grad(f)(0.03125), 2.0, 1e-12


@case()
def slope_of_sinc_near_zero() -> Any:
    x = 1e-3
    return jax.grad(jnp.sinc)(x), -(np.pi**2) * x / 3 * (1 - np.pi**2 * x * x / 10), 1e-6


@case(x64=True)
def slope_of_sinc_at_the_smallest_step() -> Any:
    x = 0.49999999999999994
    slope = jax.jvp(lambda t: jnp.sinc(2 * t - 1), (jnp.asarray(x),), (jnp.asarray(1.0),))[1]
    return slope, 7.304974700020789e-16, 1e-6


@case(x64=True)
def slope_of_tanh_far_out() -> Any:
    return jax.grad(jnp.tanh)(20.0), 4 * math.exp(-40) / (1 + math.exp(-40)) ** 2, 1e-12


@case(x64=True)
def slope_of_exp2_where_its_value_overflows() -> Any:
    return jax.grad(jnp.exp2)(1024.0000000000002), 1.2460659279419801e308, 1e-12


@case()
def a_tie_of_maximum_takes_half() -> Any:
    return jax.grad(lambda x: jnp.maximum(x, 0.0))(0.0), 0.5, 0


@case()
def shifted_update_in_place() -> Any:
    return jax.jit(lambda x: x.at[1:].set(1 + x[:-1]))(jnp.zeros(8)), [0.0] + [1.0] * 7, 0


@case()
def update_slice_of_its_own_operand() -> Any:
    def f(x: Any) -> Any:
        b = x + np.int32(1)
        return lax.dynamic_update_slice(b, b[:3], (1, 0, 0)).reshape((1, 4, 1))

    return jax.jit(f)(np.arange(4, dtype=np.int32).reshape(4, 1, 1)).ravel(), [1, 1, 2, 3], 0


@case()
def dynamic_slice_of_a_roll_with_a_clamped_start() -> Any:
    f = jax.jit(lambda x, s, t: lax.dynamic_slice(jnp.roll(x, s), [t], [4]))
    return f(jnp.arange(9) * 10, 4, 12), [10, 20, 30, 40], 0


@case()
def a_product_with_zeros_changes_no_gradient() -> Any:
    w, ys = jnp.array([1.0, 2.0, 3.0]), jnp.ones((10**4, 3))

    def fun(x: Any, y: Any) -> Any:
        d = y - x
        return jnp.dot(d, w) + jnp.dot(jnp.dot(d, jnp.zeros((3, 3))), d)

    g = jax.grad(lambda x: jnp.mean(jax.vmap(lambda y: fun(x, y))(ys)))
    return jax.jit(g)(jnp.ones(3)), [-1.0, -2.0, -3.0], 625 * 2**-24  # each of 16 partial sums (or more) has 625 terms


@case()
def batched_apply() -> Any:
    f = jax.vmap(lambda a, v: a.at[v].apply(lambda t: t - 1), (0, None))
    return f(jnp.array([[1, 2, 3, 4, 5, 6]]), jnp.array([3])), [[1, 2, 3, 3, 5, 6]], 0


@case()
def scan_of_rotations_is_a_python_loop() -> Any:
    def f(c: Any, x: Any) -> Any:
        r = jnp.stack([jnp.stack([jnp.cos(c[0]), -jnp.sin(c[0])]), jnp.stack([jnp.sin(c[0]), jnp.cos(c[0])])])
        j = jax.jacfwd(lambda a: jnp.dot(r, a))(c[1:])
        return jnp.concatenate([c[:1] + x, j @ c[1:]]), c[0]

    c, xs = jnp.array([0.3, 1.0, 2.0]), jnp.linspace(0, 1, 7)
    by_python = c
    for x in xs:
        by_python, _ = f(by_python, x)
    return jax.jit(lambda c: lax.scan(f, c, xs)[0])(c), by_python, 1e-6


@case()
def nothing_counted() -> Any:
    return jnp.bincount(jnp.array([], dtype=jnp.int32)).size, 0, 0


@case()
def tiled_no_times() -> Any:
    return jnp.tile(jnp.array([0, 1, 2]), (1, 0, 2)).shape, (1, 0, 6), 0


@case()
def the_smallest_number_times_infinity() -> Any:
    return jnp.nextafter(jnp.float32(0), jnp.float32(1)) * jnp.inf, np.inf, 0


@case()
def stable_order_of_nan_and_signed_zeros() -> Any:
    x = np.array([3, np.nan, -0.0, 0.0, -np.inf, np.inf, 1], np.float32)
    return jnp.argsort(jnp.asarray(x)), np.argsort(x, kind="stable"), 0


@pytest.mark.parametrize("name", list(CASES))
def test_value(name: str) -> None:
    x64, f = CASES[name]
    with jax.enable_x64(x64):
        got, want, rtol = f()
        np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=rtol, atol=0)


def test_half_precision_stays_half_precision() -> None:
    f = lambda x, y: x + abs(y)
    x = jnp.arange(4, dtype="float16")
    assert f(x, 1.0).dtype == jax.jit(f)(x, 1.0).dtype == np.float16


def test_truth_of_a_traced_value_names_argument_and_line() -> None:
    @jax.jit
    def f(velocity: Any) -> Any:
        if velocity > 0:
            return velocity
        return -velocity

    line = f.__wrapped__.__code__.co_firstlineno + 2
    with pytest.raises(TypeError, match="velocity") as error:
        f(3.0)
    assert f"line {line}," in "".join(traceback.format_exception(error.value))


def test_a_retrace_is_explained(caplog: pytest.LogCaptureFixture) -> None:
    f = jax.jit(lambda speed: speed * 2)
    with jax.explain_cache_misses(True), caplog.at_level(logging.WARNING, logger="jaxlite"):
        f(jnp.zeros(4)), f(jnp.zeros(5))
    assert "speed is now f32[5], before f32[4]" in caplog.text


def test_a_traced_axis_says_static_and_names_itself() -> None:
    with pytest.raises(TypeError, match=r"(?s)which_axis.*static"):
        jax.jit(lambda x, which_axis: jnp.sum(x, axis=which_axis))(jnp.ones((2, 3)), 1)
