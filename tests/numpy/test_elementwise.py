"""Elementwise functions and operators against NumPy: values, dtypes, weak types; eager, jitted and mapped."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies

import jaxlite as jax
import jaxlite.numpy as jnp

F32 = np.finfo(np.float32).eps
FLOATS = np.linspace(-3, 3, 12, dtype=np.float32).reshape(3, 4)
POSITIVE = np.linspace(0.1, 4, 12, dtype=np.float32).reshape(3, 4)
INTS = np.array([[-5, -2, 0], [3, 7, 11]], np.int32)

# Name, argument, tolerance in ulps of float32: 2 ulp of our own, 2 of NumPy's; compositions add theirs.
UNARY = [
    *[(name, FLOATS, 4) for name in ("exp", "exp2", "expm1", "sin", "cos", "tan", "sinh", "cosh", "tanh", "arctan")],
    *[(name, FLOATS, 4) for name in ("arcsinh", "cbrt", "deg2rad", "rad2deg")],
    *[(name, POSITIVE, 4) for name in ("log", "log1p", "sqrt", "reciprocal")],
    *[(name, POSITIVE, 6) for name in ("log2", "log10")],
    *[(name, FLOATS / 4, 4) for name in ("arcsin", "arccos", "arctanh")],
    *[(name, FLOATS, 0) for name in ("abs", "sign", "square", "negative", "floor", "ceil", "trunc", "rint", "isnan")],
    *[(name, INTS, 0) for name in ("abs", "sign", "square", "invert", "logical_not", "bitwise_count")],
]


@pytest.mark.parametrize(("name", "x", "ulps"), UNARY, ids=lambda v: v if isinstance(v, str) else "")
def test_unary(name, x, ulps):
    expected = getattr(np, name)(x)
    function = getattr(jnp, name)
    for out in (function(x), jax.jit(function)(x), jax.vmap(function)(x)):
        np.testing.assert_allclose(out, expected, rtol=ulps * F32, atol=0)
        assert out.dtype == expected.dtype


BINARY = ["add", "subtract", "multiply", "floor_divide", "remainder", "maximum", "minimum", "less", "equal", "fmax"]


@given(
    name=strategies.sampled_from(BINARY),
    x=strategies.lists(strategies.integers(-100, 100), min_size=3, max_size=3),
    y=strategies.lists(strategies.integers(1, 50), min_size=3, max_size=3),
)
@settings(max_examples=60, deadline=None)
def test_binary_on_integers_is_exact(name, x, y):
    x, y = np.array(x, np.int32), np.array(y, np.int32)
    out = getattr(jnp, name)(x, y)
    np.testing.assert_array_equal(out, getattr(np, name)(x, y))


@pytest.mark.parametrize("y", [0.7, -0.7, 3.0])
def test_float_quotients_have_pythons_signs(y):
    quotient, rest = divmod(jnp.asarray(FLOATS), y)
    expected = np.divmod(FLOATS, np.float32(y))
    np.testing.assert_array_equal(quotient, expected[0])
    np.testing.assert_allclose(rest, expected[1], rtol=0, atol=4 * F32)  # both are exact but for the final addition


@pytest.mark.parametrize(
    ("expression", "dtype", "weak"),
    [
        (lambda: jnp.arange(3) + 1, "int32", False),
        (lambda: jnp.arange(3) * 2.5, "float32", True),
        (lambda: jnp.arange(3) / 2, "float32", False),
        (lambda: jnp.float32(1) + 2, "float32", False),
        (lambda: jnp.asarray(1.0) * 2, "float32", True),
        (lambda: jnp.int8(1) + jnp.int16(1), "int16", False),
        (lambda: jnp.uint8(1) + jnp.int8(1), "int16", False),
        (lambda: jnp.bfloat16(1) + jnp.float16(1), "float32", False),
        (lambda: jnp.bool_(True) + jnp.bool_(True), "bool", False),
        (lambda: jnp.sin(1), "float32", True),
        (lambda: jnp.where(jnp.array([True]), 1, 2.5), "float32", True),
        (lambda: jnp.int8(1) + 300, "int8", False),
    ],
)
def test_promotion(expression, dtype, weak):
    out = expression()
    assert (out.dtype.name, out.weak_type) == (dtype, weak)


def test_integer_powers():
    x = jnp.arange(-3, 4)
    np.testing.assert_array_equal(x**3, np.arange(-3, 4) ** 3)
    np.testing.assert_array_equal(x ** jnp.array(3), np.arange(-3, 4) ** 3)
    np.testing.assert_array_equal(2 ** jnp.arange(5), 2 ** np.arange(5))
    with pytest.raises(TypeError, match=r"negative powers.*astype"):
        x**-1


def test_scalars_are_not_broadcast_in_jaxprs():
    text = str(jax.make_jaxpr(lambda x: x * 2 + 1)(jnp.ones((3, 4))))
    assert "broadcast" not in text and "mul a 2.0:f32[]" in text


@pytest.mark.parametrize("name", ["logaddexp", "hypot", "arctan2", "power"])
def test_derivatives_match_differences(name):
    function = getattr(jnp, name)
    x, y, h = jnp.float32(1.3), jnp.float32(0.7), 1e-2
    for argument in (0, 1):
        moved = [(x + h, y), (x - h, y)] if argument == 0 else [(x, y + h), (x, y - h)]
        difference = (float(function(*moved[0])) - float(function(*moved[1]))) / (2 * h)
        slope = jax.grad(function, argnums=argument)(x, y)
        # The central difference is off by h**2 / 6 times a third derivative, and by rounding / h.
        np.testing.assert_allclose(slope, difference, rtol=1e-3, atol=1e-4)


def test_logaddexp_of_equal_infinities():
    np.testing.assert_array_equal(jnp.logaddexp(-jnp.inf, -jnp.inf), -np.inf)
    assert not np.isnan(jax.grad(jnp.logaddexp)(-jnp.inf, -jnp.inf))


def test_sinc_is_exact_at_whole_numbers_and_smooth_at_zero():
    np.testing.assert_array_equal(jnp.sinc(jnp.array([0.0, 1, 2, -3, np.inf])), [1, 0, 0, 0, 0])
    # The second derivative of sin(pi x) / (pi x) at 0 is -pi**2 / 3.
    np.testing.assert_allclose(jax.grad(jax.grad(jnp.sinc))(0.0), -(np.pi**2) / 3, rtol=4 * F32)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: jnp.add(jnp.ones(3), [1, 2, 3]),
            TypeError,
            r"add requires .*list.*position 1.*jnp\.array\(\[1, 2, 3\]\)",
        ),
        (lambda: jnp.ones(3) + "a", TypeError, "unsupported operand"),
        (lambda: jnp.ones(3) + None, TypeError, "unsupported operand"),
        (lambda: jnp.ones(3) + jnp.ones(4), TypeError, r"add got incompatible shapes.*\(3,\), \(4,\)"),
        (lambda: jnp.ones((2, 3)) + jnp.ones(4), ValueError, r"Incompatible shapes.*\(2, 3\), \(4,\)"),
        (lambda: ~jnp.ones(3), TypeError, "not does not accept dtype float32"),
        (lambda: jnp.array([1], jnp.float16) + jax.random.key(0), ValueError, "key"),
    ],
)
def test_bad_operands(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_other_classes_get_their_turn():
    class Other:
        def __radd__(self, x):
            return "mine"

    assert jnp.ones(3) + Other() == "mine"
