"""jet: Taylor series against mpmath, nested jvp, closed forms and values of JAX 0.12."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, strategies as st

import jaxlite as jax
import jaxlite.numpy as jnp
from jaxlite import lax
from jaxlite.core.array import from_numpy
from jaxlite.core.primitive import Primitive, Sample, registry
from jaxlite.experimental import jet as jet_module
from jaxlite.experimental.jet import fact, jet
from jaxlite.lax.families.elementwise import Elementwise
from tests.conformance.test_every_primitive import (
    NO_DERIVATIVE,
    STEPS,
    float_cases,
    function_of_floats,
    raw,
)


@pytest.fixture(autouse=True)
def _in_float64():
    with jax.enable_x64(True):
        yield


ORDER = 6
# Elementwise primitives of one float: a function of mpmath's and the points where it is expanded.
KNOWN: dict[str, tuple[Any, tuple[float, ...]]] = {
    "acos": (mpmath.acos, (-0.4, 0.3)),
    "acosh": (mpmath.acosh, (1.4, 3.0)),
    "asin": (mpmath.asin, (-0.4, 0.3)),
    "asinh": (mpmath.asinh, (-0.7, 2.0)),
    "atan": (mpmath.atan, (-0.7, 2.0)),
    "atanh": (mpmath.atanh, (-0.4, 0.3)),
    "cbrt": (mpmath.cbrt, (0.3, 4.0)),
    "cos": (mpmath.cos, (-0.7, 2.0)),
    "cosh": (mpmath.cosh, (-0.7, 2.0)),
    "erf": (mpmath.erf, (-0.7, 2.0)),
    "erf_inv": (mpmath.erfinv, (-0.4, 0.3)),
    "erfc": (mpmath.erfc, (-0.7, 2.0)),
    "exp": (mpmath.exp, (-0.7, 2.0)),
    "exp2": (lambda x: mpmath.mpf(2) ** x, (-0.7, 2.0)),
    "expm1": (mpmath.expm1, (-0.7, 1e-3)),
    "log": (mpmath.log, (0.3, 4.0)),
    "log1p": (mpmath.log1p, (-0.4, 1e-3)),
    "logistic": (lambda x: 1 / (1 + mpmath.exp(-x)), (-0.7, 4.0)),
    "neg": (lambda x: -x, (0.3,)),
    "rsqrt": (lambda x: 1 / mpmath.sqrt(x), (0.3, 4.0)),
    "sin": (mpmath.sin, (-0.7, 2.0)),
    "sinh": (mpmath.sinh, (-0.7, 2.0)),
    "sqrt": (mpmath.sqrt, (0.3, 4.0)),
    "square": (lambda x: x * x, (-0.7, 0.0)),
    "tan": (mpmath.tan, (-0.7, 1.0)),
    "tanh": (mpmath.tanh, (-0.7, 2.0)),
    "tanh_slope": (lambda x: mpmath.sech(x) ** 2, (-0.7, 2.0)),
}
# Those that move as the identity does, or not at all, or need parameters: tested with the others against nested jvp.
PIECEWISE = {
    "abs", "ceil", "convert_element_type", "copy", "floor", "integer_pow", "is_finite", "name", "reduce_precision",
    "reshard", "round", "sharding_constraint", "sign", "stop_gradient",
}  # fmt: skip
GAPS = {"digamma": "its derivative, polygamma, is missing", "lgamma": "its second derivative is polygamma"}


def unary() -> set[str]:
    return {
        name
        for name, p in registry.items()
        if isinstance(p, Elementwise) and "f" in p.accepts and p.samples and len(p.samples[0].shapes) == 1
    }


def test_every_elementwise_function_of_one_float_is_here():
    assert unary() == set(KNOWN) | PIECEWISE | set(GAPS)


@pytest.mark.parametrize("name", KNOWN)
def test_coefficients_are_mpmaths(name):
    function, points = KNOWN[name]
    for point in points:
        with mpmath.workdps(50):
            wanted = [float(c) for c in mpmath.taylor(function, mpmath.mpf(point), ORDER)]
        value, series = jet(registry[name].bind, (point,), ((1.0, *[0.0] * (ORDER - 1)),), factorial_scaled=False)
        # Recurrences of sums of up to 6 products; each order may lose some ulps of the largest before it.
        np.testing.assert_allclose([value, *series], wanted, rtol=1e-12, atol=1e-14 * max(map(abs, wanted)))


def nested(f: Any, curve: Any, order: int) -> list[Any]:
    """Derivatives 0 to ``order`` of ``f(*curve(t))`` at 0, by jvp of jvp of ..."""

    def derivative(g: Any) -> Any:
        return lambda t: [
            m if m.dtype != jax.float0 else np.zeros(m.shape) for m in jax.jvp(g, (t,), (np.float64(1),))[1]
        ]

    g = lambda t: list(f(*curve(t)))
    rows = [g(np.float64(0))]
    for _ in range(order):
        g = derivative(g)
        rows.append(g(np.float64(0)))
    return rows


def polynomial(primals: Any, series: Any) -> Any:
    """t -> x0 + x1 t + x2 t^2 / 2 + ..."""

    def curve(t: Any) -> list[Any]:
        return [
            lax.add(jnp.asarray(p), sum(jnp.asarray(c) * t**k / math.factorial(k) for k, c in enumerate(s, 1)))
            for p, s in zip(primals, series, strict=True)
        ]

    return curve


def against_nested(f: Any, primals: Any, series: Any, tolerance: float = 1e-11) -> None:
    """Derivatives of order 3 and less, which are sums of up to some 30 products of order one to a hundred."""
    order = len(series[0])
    values, moved = jet(f, primals, series)
    for k, row in enumerate(nested(f, polynomial(primals, series), order)):
        got = values if k == 0 else [s[k - 1] for s in moved]
        for g, w in zip(got, row, strict=True):
            if raw(jnp.asarray(g)).dtype.kind == "f":
                scale = max(1.0, float(np.nanmax(np.abs(np.asarray(w)), initial=0)))
                np.testing.assert_allclose(np.asarray(g), np.asarray(w), rtol=tolerance, atol=tolerance * scale)


@pytest.mark.parametrize("primitive, sample, name", float_cases({*NO_DERIVATIVE, *GAPS}))
def test_every_primitive_as_nested_jvp(primitive: Primitive, sample: Sample, name: str | None) -> None:
    f, floats = function_of_floats(primitive, sample, name)
    rng = np.random.default_rng(5)
    series = tuple([from_numpy(rng.uniform(-1, 1, x.shape)) for _ in range(3)] for x in floats)
    # reduce_precision rounds every derivative to 10 bits too.
    against_nested(f, tuple(floats), series, 2e-3 if primitive.name == "reduce_precision" else 1e-11)
    _, eager = jet(f, tuple(floats), series)
    _, compiled = jax.jit(lambda xs, ss: jet(f, xs, ss))(tuple(floats), series)
    for a, b in zip(jax.tree.leaves(eager), jax.tree.leaves(compiled), strict=True):
        scale = float(np.nanmax(np.abs(np.asarray(a)), initial=1))
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-12, atol=1e-12 * scale)


# -- compositions --------------------------------------------------------------------------------

UNARY = [jnp.sin, jnp.exp, jnp.tanh, jax.nn.sigmoid, jnp.arctan, jnp.square, jax.nn.softplus, lambda x: x / (1 + x * x)]
BINARY = [jnp.add, jnp.multiply, jnp.subtract, lambda x, y: x / (2 + jnp.cos(y)), jnp.maximum, jnp.arctan2]


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 5)), min_size=1, max_size=4), st.integers(0, 2**31))
def test_compositions_as_nested_jvp(steps, seed):
    def f(x: Any, y: Any) -> list[Any]:
        for u, b in steps:
            x, y = BINARY[b](UNARY[u](x), y), x
        return [x, jnp.sum(x * y)]

    with jax.enable_x64(True):
        rng = np.random.default_rng(seed)
        draw = lambda: from_numpy(rng.uniform(-0.8, 0.8, 2))
        series = tuple([draw() for _ in range(3)] for _ in range(2))
        against_nested(f, (draw(), draw()), series, 1e-9)  # functions of functions: numbers up to some thousands


def of_floats_close(f: Any, *primals: Any, order: int = 3, tolerance: float = 1e-11) -> None:
    """The series of ``f`` along random curves through ``primals``, eager and compiled, against nested jvp."""
    rng = np.random.default_rng(1)
    primals = tuple(jnp.asarray(p, np.float64) for p in primals)
    series = tuple([from_numpy(rng.uniform(-1, 1, p.shape)) for _ in range(order)] for p in primals)
    flat = lambda *xs: jax.tree.leaves(f(*xs))
    against_nested(flat, primals, series, tolerance)
    against_nested(jax.jit(flat), primals, series, tolerance)


VECTOR = np.array([0.5, -0.5, 2.0])
MATRIX = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, -0.5], [0.2, -0.7, 5.0]])


def solved_by_user(a: Any, b: Any) -> Any:
    return lax.custom_linear_solve(lambda v: a @ v, b, lambda f, r: jnp.linalg.solve(MATRIX, r))


def cube_root_by_user(x: Any) -> Any:
    def solve(f: Any, guess: Any) -> Any:
        return jnp.cbrt(lax.stop_gradient(x))

    return lax.custom_root(lambda v: v**3 - x, 1.0, solve, lambda g, y: y / g(1.0))


@pytest.mark.parametrize(
    "f, primals",
    [
        (lambda x: lax.cond(x > 0, jnp.sin, lambda v: v * v, x), [0.5]),
        (lambda x: lax.cond(x > 0, jnp.sin, lambda v: 3.0, x), [-0.5]),
        (lambda x: lax.switch(2, [jnp.sin, jnp.cos, jnp.exp], x), [0.5]),
        (lambda x: lax.scan(lambda c, _: (jnp.sin(c * x), c), x, None, length=4), [0.5]),
        (lambda x, y: lax.scan(lambda c, v: ((c[1] * v, c[0] + y), c[0]), (1.0, y), x, reverse=True), [VECTOR, 0.3]),
        (lambda x: lax.scan(lambda c, v: (c + 1.0, v * c), 0.0, x), [np.array([0.5, 2.0])]),
        (lambda x: lax.fori_loop(0, 3, lambda i, v: v * v + i, x), [0.5]),
        (lambda x: lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * x, x), (0, x, 0.0))[1:], [0.5]),
        (lambda x: jax.jit(lambda v, n: (jnp.exp(v), n))(x, 3)[0], [0.5]),
        (lambda x: jax.checkpoint(lambda v: jnp.sin(v) * v)(x), [0.5]),
        (lambda x: jax.vmap(lambda v: lax.cond(v > 0, jnp.sin, jnp.cos, v))(x), [np.array([0.5, -0.5])]),
        (jax.vmap(lambda v: v * lax.psum(jnp.exp(v), "i"), axis_name="i"), [np.array([0.5, -0.5])]),
        (jax.grad(lambda x: jnp.sum(jnp.sin(x) ** 3)), [np.array([0.5, -0.5])]),
        (lambda x: jnp.linalg.inv(x), [MATRIX]),
        (lambda x: jnp.linalg.slogdet(x)[1], [MATRIX]),
        (lambda x, y: jnp.linalg.solve(x, y), [MATRIX, np.array([1.0, 2.0, 3.0])]),
        (lambda x: jnp.linalg.cholesky(x @ x.T), [MATRIX]),
        (lambda x, y: lax.linalg.triangular_solve(x, y, left_side=True, lower=True), [MATRIX, MATRIX]),
        (lambda x, y: lax.linalg.triangular_solve(x, y, transpose_a=True, unit_diagonal=True), [MATRIX, MATRIX]),
        (solved_by_user, [MATRIX, VECTOR]),
        (cube_root_by_user, [2.0]),
        (lambda x: jnp.prod(x), [VECTOR]),
        (lambda x: jnp.cumprod(x), [VECTOR]),
        (lambda x: jnp.sort(x)[::-1] * jnp.max(x), [VECTOR]),
        (lambda x: x.at[1].multiply(x[0], unique_indices=True), [VECTOR]),
        (lambda x: x.at[jnp.array([0, 0])].add(x[1] ** 2), [VECTOR]),
        (lambda x, y: x**y, [0.5, -1.0]),
        (lambda x: x**3 + x**-2 + x**0, [0.5]),
        (lambda x: jnp.where(x > 0, x * x, 1.0), [VECTOR]),
        (lambda x: jax.nn.gelu(x), [VECTOR]),
        (lambda x: jax.nn.logsumexp(x) + jnp.linalg.norm(x), [VECTOR]),
        (lambda x: jax.random.normal(jax.random.key(0), (3,)) * x, [0.5]),
    ],
)  # fmt: skip
def test_as_nested_jvp(f, primals):
    of_floats_close(f, *primals)


def test_a_loop_is_traced_at_its_order_once_and_grows_with_its_square():
    def f(x: Any) -> Any:
        return lax.scan(lambda c, _: (jnp.tanh(c) * x / (1 + c), None), x, None, length=5)[0]

    def equations(order: int) -> int:
        series = (tuple(jnp.float64(1) for _ in range(order)),)
        jaxpr = jax.make_jaxpr(lambda x, s: jet(f, (x,), s))(1.0, series)
        (loop,) = [e for e in jaxpr.eqns if e.primitive.name == "scan"]
        return len(loop.params["jaxpr"].eqns)

    small, large = equations(4), equations(8)
    assert small < large < 4.5 * small


def test_the_users_rule_is_kept():
    @jax.custom_jvp
    def f(x: Any) -> Any:
        return jnp.sin(x)

    @f.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        return f(primals[0]), 5.0 * f(primals[0]) * tangents[0]

    # f' = 5 f, so derivative k is 5^k sin(x).
    value, series = jet(f, (0.3,), ((1.0, 0.0, 0.0),))
    np.testing.assert_allclose([value, *series], np.sin(0.3) * 5.0 ** np.arange(4), rtol=1e-15)
    np.testing.assert_allclose(jax.jit(lambda x: jet(f, (x,), ((1.0, 0.0, 0.0),))[1])(0.3), series, rtol=1e-15)


def test_custom_vjp_is_refused_as_in_forward_mode():
    f = jax.custom_vjp(jnp.sin)
    f.defvjp(lambda x: (f(x), x), lambda r, c: (c,))
    with pytest.raises(TypeError, match="forward-mode"):
        jet(f, (0.3,), ((1.0, 0.0),))


def test_callbacks_run_once(capsys):
    def f(x: Any) -> Any:
        jax.debug.print("x = {}", x)
        return x * x

    assert [float(t) for t in jet(f, (3.0,), ((1.0, 0.0, 0.0),))[1]] == [6.0, 2.0, 0.0]
    assert capsys.readouterr().out == "x = 3.0\n"


def test_python_control_flow_sees_the_primal():
    value, (first, second) = jet(lambda x: x**2 if x > 1 else x**3, (3.0,), ((1.0, 0.0),))
    assert (float(value), float(first), float(second)) == (9.0, 6.0, 2.0)


def test_composes_with_the_other_transformations():
    second = lambda x: jet(jnp.sin, (x,), ((1.0, 0.0),))[1][1]
    x = np.array([0.1, 0.7, 2.0])
    np.testing.assert_allclose(jax.vmap(second)(x), -np.sin(x), rtol=1e-15)
    np.testing.assert_allclose(jax.jit(jax.vmap(second))(x), -np.sin(x), rtol=1e-15)
    np.testing.assert_allclose(jax.vmap(jax.grad(second))(x), -np.cos(x), rtol=1e-15)
    np.testing.assert_allclose(jax.jvp(second, (0.7,), (2.0,))[1], -2 * np.cos(0.7), rtol=1e-15)
    _, outer = jet(second, (0.7,), ((1.0, 0.0),))
    np.testing.assert_allclose(outer, [-np.cos(0.7), np.sin(0.7)], rtol=1e-15)


def test_pytrees_and_results_that_do_not_move():
    def f(p: Any, n: Any) -> Any:
        return {"product": p["a"] * p["b"][0], "n": n, "flag": p["a"] > 0, "one": 1.0}

    primals = ({"a": 2.0, "b": [3.0]}, 4)
    series = ({"a": [1.0, 0.0], "b": [[1.0, 0.0]]}, [0, 0])
    value, out = jet(f, primals, series)
    assert float(value["product"]) == 6.0 and int(value["n"]) == 4
    assert {k: [float(t) for t in v] for k, v in out.items()} == {
        "product": [5.0, 2.0], "n": [0.0, 0.0], "flag": [0.0, 0.0], "one": [0.0, 0.0],
    }  # fmt: skip
    again, _ = jet(lambda v: v["product"], (value,), (out,))  # what comes out can go in again
    assert float(again) == 6.0
    assert jet(jnp.sin, (0.0,), ((),)) == (0.0, [])


# -- values of JAX 0.12.0 in float64 ----------------------------------------------------------------

W = np.array([[0.1, -0.4], [0.7, 0.2]])


JAX_VALUES: list[Any] = [
    (
        lambda x: jnp.sum(jnp.tanh(W @ x) ** 2),
        (np.array([0.5, -1.0]),),
        ((np.array([1.0, 2.0]), np.array([0.5, 0.0]), np.array([0.0, -1.0])),),
        True,
        [0.20016552386796266, -0.16523568257005117, 2.7209770957943613, 0.6451485388921854],
    ),
    (
        jax.nn.logsumexp,
        (np.array([0.5, -1.0, 2.0]),),
        ((np.array([1.0, 2.0, -1.0]), np.array([0.5, 0.0, 1.0])),),
        True,
        [2.241311296657157, -0.5320814959078642, 1.7074692321838052],
    ),
    (
        lambda x, y: jnp.exp(x * y) / (1 + x**2),
        (0.5, -1.0),
        ((1.0, 0.0, 2.0), (0.5, 1.0, 0.0)),
        True,
        [0.4852245277701067, -0.7520980180436654, 1.4277731729635375, -1.950056724042087],
    ),
    (
        lambda x, y: x**y,
        (0.5, -1.0),
        ((1.0, 0.0, 2.0), (0.5, 1.0, 0.0)),
        True,
        [2.0, -4.693147180559945, 21.626520868078966, -140.55990541307628],
    ),
    (
        jnp.sin,
        (0.3,),
        ((0.5, 0.25, 0.125),),
        False,
        [0.29552020666133955, 0.477668244562803, 0.20189409644873405, 0.06257419178458318],
    ),
]


@pytest.mark.parametrize("f, primals, series, scaled, wanted", JAX_VALUES)
def test_values_of_jax(f, primals, series, scaled, wanted):
    value, terms = jet(f, primals, series, factorial_scaled=scaled)
    np.testing.assert_allclose([value, *terms], wanted, rtol=1e-13)


def test_types_are_jaxs():
    with jax.enable_x64(False):
        value, (first, second) = jet(jnp.sin, (0.5,), ((1, 0),))
        assert repr(value) == "Array(0.47942555, dtype=float32, weak_type=True)"
        assert repr(first) == "Array(0.87758255, dtype=float32, weak_type=True)"
        assert second.dtype == np.float32
        _, (terms,) = jet(jnp.sin, (jnp.zeros(3),), ([1.0],)), ([1.0],)
        assert jet(jnp.sin, (jnp.zeros(3),), ([1.0],))[1][0].shape == (3,) and terms == [1.0]
        assert jet(lambda x: x, (jnp.bfloat16(1),), ([1.0],))[1][0].dtype == jnp.bfloat16


def test_fact():
    assert [fact(n) for n in range(6)] == [1, 1, 2, 6, 24, 120]
    assert jet_module is jax.experimental.jet


@pytest.mark.parametrize(
    "primals, series, error, message",
    [
        (0.5, ((1.0,),), TypeError, "tuples or lists"),
        ((0.5,), 1.0, TypeError, "tuples or lists"),
        ((0.5, 1.0), ((1.0,),), ValueError, "2 primals and 1 series"),
        ((0.5,), (1.0,), TypeError, "write a list"),
        ((0.5, 1.0), ((1.0, 0.0), (1.0,)), ValueError, r"primals\[0\] has 2, primals\[1\] has 1"),
        (({"a": 1.0},), ([1.0],), ValueError, "structure"),
        ((0.5,), ([{"a": 1.0}],), ValueError, "not an array"),
        ((np.ones(3),), ([np.ones(2)],), ValueError, r"coefficient 1 of primals\[0\].*float64\[3\].*float64\[2\]"),
        ((np.ones(3, np.float32),), ([np.ones(3)],), ValueError, "jnp.float32"),
        ((1,), ([1.0],), TypeError, "no derivative"),
        (("text",), ([1.0],), TypeError, "not a valid JAX type"),
    ],
)
def test_refusals(primals, series, error, message):
    with pytest.raises(error, match=message):
        jet(lambda *xs: xs, primals, series)
    with pytest.raises(TypeError, match="callable"):
        jet(3, (1.0,), ([1.0],))


@pytest.mark.parametrize("name", GAPS)
def test_gaps_say_so(name):
    with pytest.raises(TypeError, match="polygamma"):
        jet(registry[name].bind, (1.5,), ((1.0, 0.0),))


def test_steps_have_no_slope():
    assert {name for name in STEPS if name != "reduce_precision"} <= PIECEWISE
    assert [float(t) for t in jet(jnp.floor, (1.5,), ((1.0, 2.0),))[1]] == [0.0, 0.0]
