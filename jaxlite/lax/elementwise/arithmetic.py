"""Arithmetic: sums, products, quotients, powers, extrema."""

from __future__ import annotations

import builtins
from typing import Any, final

import numpy as np

from jaxlite.core import dtypes
from jaxlite.core.avals import aval_of
from jaxlite.core.primitive import Sample, get
from jaxlite.interpreters.series import (
    Series,
    convolved,
    logarithm,
    minus,
    over,
    power,
    product,
    quotient,
    solved,
    squared,
)
from jaxlite.interpreters.zeros import Zero, is_linear
from jaxlite.lax.convert import full_like, operands_of
from jaxlite.lax.families.elementwise import Elementwise, to_shape

_PAIR = (Sample(((3, 4), (3, 4))), Sample(((5,), ())), Sample(((), ())), Sample(((0, 3), (0, 3))))
_ONE = (Sample(((3, 5),)), Sample(((),)), Sample(((0,),)))


def _identity(tangent: Any) -> Any:
    return tangent


def _shaped_like(cotangent: Any, operand: Any) -> Any:
    return cotangent if is_linear(operand) else None


@final
class Add(Elementwise):
    name, exact, accepts, samples = "add", True, "iuf", _PAIR
    piecewise_linear = True

    def scalar(self, e: Any, x: Any, y: Any) -> Any:
        return e.add(x, y)

    def numpy(self, x: Any, y: Any) -> Any:
        return np.add(x, y)

    def partials(self, out: Any, x: Any, y: Any) -> Any:
        return _identity, _identity

    def pull_back(self, cotangent: Any, x: Any, y: Any) -> list[Any]:
        return [_shaped_like(cotangent, x), _shaped_like(cotangent, y)]


@final
class AddAny(Elementwise):
    """The sum of two tangents or cotangents of one type."""

    name, exact, accepts, samples = "add_any", True, "iuf", (Sample(((3, 4), (3, 4))),)
    piecewise_linear = True

    def scalar(self, e: Any, x: Any, y: Any) -> Any:
        return e.add(x, y)

    def numpy(self, x: Any, y: Any) -> Any:
        return np.add(x, y)

    def partials(self, out: Any, x: Any, y: Any) -> Any:
        return _identity, _identity

    def pull_back(self, cotangent: Any, x: Any, y: Any) -> list[Any]:
        return [_shaped_like(cotangent, x), _shaped_like(cotangent, y)]


@final
class Sub(Elementwise):
    name, exact, accepts, samples = "sub", True, "iuf", _PAIR
    piecewise_linear = True

    def scalar(self, e: Any, x: Any, y: Any) -> Any:
        return e.sub(x, y)

    def numpy(self, x: Any, y: Any) -> Any:
        return np.subtract(x, y)

    def partials(self, out: Any, x: Any, y: Any) -> Any:
        return _identity, neg

    def pull_back(self, cotangent: Any, x: Any, y: Any) -> list[Any]:
        return [_shaped_like(cotangent, x), neg(cotangent) if is_linear(y) else None]


@final
class Neg(Elementwise):
    name, exact, accepts, samples = "neg", True, "iuf", _ONE
    piecewise_linear = True

    def scalar(self, e: Any, x: Any) -> Any:
        return e.neg(x)

    def numpy(self, x: Any) -> Any:
        return np.negative(x)

    def partials(self, out: Any, x: Any) -> Any:
        return (neg,)

    def pull_back(self, cotangent: Any, x: Any) -> list[Any]:
        return [neg(cotangent)]


@final
class Mul(Elementwise):
    name, exact, accepts, samples = "mul", True, "iuf", _PAIR
    identities = ("1 * x", "x * 1")

    def scalar(self, e: Any, x: Any, y: Any) -> Any:
        return e.mul(x, y)

    def numpy(self, x: Any, y: Any) -> Any:
        return np.multiply(x, y)

    def partials(self, out: Any, x: Any, y: Any) -> Any:
        return (lambda t: mul(t, y)), (lambda t: mul(x, t))

    def pull_back(self, cotangent: Any, x: Any, y: Any) -> list[Any]:
        if is_linear(x) and is_linear(y):
            raise NotImplementedError("mul of two linear operands is not linear, so it has no transpose.")
        return [mul(cotangent, y), None] if is_linear(x) else [None, mul(x, cotangent)]

    def coefficients(self, out: Any, *xs: Series) -> list[Any]:
        x, y = xs
        return [convolved(x, y, k) for k in range(1, len(x))]


@final
class Div(Elementwise):
    name, accepts, identities = "div", "iuf", ("x / 1",)
    samples = (Sample(((3, 4), (3, 4)), low=0.5), Sample(((5,), ()), low=1.0), Sample(((), ()), low=0.5))

    def scalar(self, e: Any, x: Any, y: Any) -> Any:
        return e.div(x, y)

    def numpy(self, x: Any, y: Any) -> Any:
        if x.dtype.kind not in "iu":
            return np.divide(x, y)
        safe = np.where(y == 0, np.ones_like(y), y)
        with np.errstate(over="ignore"):
            quotient = np.floor_divide(x, safe)
            inexact = (quotient * safe != x) & ((x < 0) != (safe < 0))
            quotient = np.where(inexact, quotient + 1, quotient)
        return np.where(y == 0, np.array(-1).astype(x.dtype), quotient).astype(x.dtype)

    def partials(self, out: Any, x: Any, y: Any) -> Any:
        return (lambda t: div(t, y)), (lambda t: mul(neg(t), div(out, y)))

    def pull_back(self, cotangent: Any, x: Any, y: Any) -> list[Any]:
        if is_linear(y):
            raise NotImplementedError("div is not linear in its divisor, so it has no transpose there.")
        return [div(cotangent, y), None]

    def coefficients(self, out: Any, *xs: Series) -> list[Any]:
        return quotient(out, *xs)


@final
class Rem(Elementwise):
    name, accepts, samples = "rem", "iuf", (Sample(((3, 4), (3, 4)), low=0.5), Sample(((5,), ()), low=1.0))
    piecewise_linear = True

    def scalar(self, e: Any, x: Any, y: Any) -> Any:
        return e.rem(x, y)

    def numpy(self, x: Any, y: Any) -> Any:
        if x.dtype.kind not in "iu":
            return np.fmod(x, y)
        return np.where(y == 0, x, np.fmod(x, np.where(y == 0, np.ones_like(y), y))).astype(x.dtype)

    def partials(self, out: Any, x: Any, y: Any) -> Any:
        toward_zero = get("select_n").bind

        def quotient(t: Any) -> Any:
            ratio = div(x, y)
            floor, ceil = get("floor").bind(ratio), get("ceil").bind(ratio)
            whole = toward_zero(get("lt").bind(ratio, full_like(ratio, 0)), floor, ceil)
            return mul(neg(t), whole)

        return _identity, quotient


@final
class Max(Elementwise):
    name, accepts, samples = "max", "biuf", _PAIR
    piecewise_linear = True

    def scalar(self, e: Any, x: Any, y: Any) -> Any:
        return e.max(x, y)

    def numpy(self, x: Any, y: Any) -> Any:
        return np.maximum(x, y)

    def partials(self, out: Any, x: Any, y: Any) -> Any:
        return _extremum_partials(out, x, y)


@final
class Min(Elementwise):
    name, accepts, samples = "min", "biuf", _PAIR
    piecewise_linear = True

    def scalar(self, e: Any, x: Any, y: Any) -> Any:
        return e.min(x, y)

    def numpy(self, x: Any, y: Any) -> Any:
        return np.minimum(x, y)

    def partials(self, out: Any, x: Any, y: Any) -> Any:
        return _extremum_partials(out, x, y)


def _extremum_partials(out: Any, x: Any, y: Any) -> Any:
    """The operand that won takes the tangent; where both did, each takes half."""
    select, eq = get("select_n").bind, get("eq").bind
    shape = aval_of(out).shape

    def share(mine: Any, other: Any) -> Any:
        mine, other = to_shape(mine, shape), to_shape(other, shape)
        one, half, zero = full_like(out, 1), full_like(out, 0.5), full_like(out, 0)
        weight = select(eq(mine, out), zero, select(eq(other, out), one, half))
        return lambda t: mul(to_shape(t, shape), weight)

    return share(x, y), share(y, x)


@final
class Pow(Elementwise):
    """``x ** y`` for a float ``x`` and a float or integer ``y``."""

    name, accepts, same_dtypes = "pow", "iuf", False
    samples = (Sample(((3, 4), (3, 4)), low=0.25), Sample(((5,), ()), low=0.5))

    def result_dtype(self, *operands: Any, **params: Any) -> Any:
        x, y = operands
        if not dtypes.is_float(x) or not (y == x or dtypes.is_integer(y)):
            raise TypeError(f"lax.pow takes a float and the same float or an integer type, got {x.name} and {y.name}.")
        return x

    def scalar(self, e: Any, x: Any, y: Any) -> Any:
        return e.pow(x, e.convert(y, x.dtype))

    def numpy(self, x: Any, y: Any) -> Any:
        return np.power(x, y.astype(x.dtype))

    def partials(self, out: Any, x: Any, y: Any) -> Any:
        select, eq, log = get("select_n").bind, get("eq").bind, get("log").bind
        convert = get("convert_element_type").bind
        dtype = aval_of(x).dtype

        def along_x(t: Any) -> Any:
            shape = aval_of(out).shape
            exponent = y if aval_of(y).dtype == dtype else convert(y, new_dtype=dtype, weak_type=False, sharding=None)
            exponent = to_shape(exponent, shape)
            slope = mul(exponent, pow(to_shape(x, shape), sub(exponent, full_like(exponent, 1))))
            if dtypes.is_integer(aval_of(y).dtype):  # x ** 0 is 1 everywhere; a float 0 may be any small exponent
                slope = select(eq(exponent, full_like(exponent, 0)), slope, full_like(slope, 0))
            return mul(to_shape(t, shape), slope)

        def along_y(t: Any) -> Any:
            base = to_shape(x, aval_of(out).shape)
            safe = select(eq(base, full_like(base, 0)), base, full_like(base, 1))
            return mul(to_shape(t, aval_of(out).shape), mul(log(safe), out))

        return along_x, (along_y if dtypes.is_float(aval_of(y).dtype) else None)

    def coefficients(self, out: Any, *xs: Series) -> list[Any] | None:
        x, y = xs
        if not any(c is not None for c in y[1:]):
            return None  # along the base alone the partials hold at 0 too
        log = get("log").bind(x[0])
        return solved(out, product(y, [log, *logarithm(x, x[0])]), lambda z, k: z[k], out)


@final
class IntegerPow(Elementwise):
    """``x ** y`` for a fixed integer ``y``, by repeated squaring."""

    name, accepts = "integer_pow", "iuf"
    samples = (
        *(Sample(((4, 3),), {"y": y}, low=0.5) for y in (3, 2, 7)),
        Sample(((4,),), {"y": -2}, low=0.5, dtypes=("float32",)),
    )

    def result_dtype(self, *operands: Any, **params: Any) -> Any:
        if params["y"] < 0 and not dtypes.is_float(operands[0]):
            raise TypeError(f"Integers cannot be raised to the negative power {params['y']}.")
        return operands[0]

    def scalar(self, e: Any, x: Any, y: int) -> Any:
        power, factor, result = builtins.abs(y), x, None
        while power:
            if power & 1:
                result = factor if result is None else e.mul(result, factor)
            power >>= 1
            if power:
                factor = e.mul(factor, factor)
        result = e.constant(1, x.dtype) if result is None else result
        return e.div(e.constant(1, x.dtype), result) if y < 0 else result

    def numpy(self, x: Any, y: int) -> Any:
        power, factor, result = builtins.abs(y), x, np.ones_like(x)
        while power:
            if power & 1:
                result = result * factor
            power >>= 1
            if power:
                factor = factor * factor
        return np.ones_like(x) / result if y < 0 else result

    def partials(self, out: Any, x: Any, y: int) -> Any:
        if y == 0:
            return (None,)
        return (lambda t: mul(t, mul(full_like(x, y), integer_pow(x, y - 1))),)

    def coefficients(self, out: Any, *xs: Series, y: int) -> list[Any]:
        (x,) = xs
        if y < 0:
            return power(out, x, y)
        result: list[Any] = [full_like(out, 1), *([None] * (len(x) - 1))]
        for digit in bin(y)[2:]:
            result = product(result, result)
            result = product(result, x) if digit == "1" else result
        return result[1:]


@final
class Square(Elementwise):
    name, exact, accepts, samples = "square", True, "iuf", _ONE

    def scalar(self, e: Any, x: Any) -> Any:
        return e.mul(x, x)

    def numpy(self, x: Any) -> Any:
        return np.multiply(x, x)

    def partials(self, out: Any, x: Any) -> Any:
        return (lambda t: mul(t, mul(full_like(x, 2), x)),)

    def coefficients(self, out: Any, *xs: Series) -> list[Any]:
        (x,) = xs
        return [squared(x, k) for k in range(1, len(x))]


@final
class Abs(Elementwise):
    name, exact, accepts, samples = "abs", True, "iuf", _ONE
    piecewise_linear = True

    def scalar(self, e: Any, x: Any) -> Any:
        return e.abs(x)

    def numpy(self, x: Any) -> Any:
        return np.abs(x)

    def partials(self, out: Any, x: Any) -> Any:
        def along_x(t: Any) -> Any:
            # 1 at 0, as in JAX: the slope on the right.
            upward = get("ge").bind(x, full_like(x, 0))
            one = to_shape(full_like(x, 1), aval_of(x).shape)
            return mul(t, get("select_n").bind(upward, neg(one), one))

        return (along_x,)


@final
class Sign(Elementwise):
    """-1, 0 or 1; keeps the sign of a zero and NaN."""

    name, accepts, samples = "sign", "iuf", _ONE

    def scalar(self, e: Any, x: Any) -> Any:
        return e.sign(x)

    def numpy(self, x: Any) -> Any:
        return np.where(x == 0, x, np.sign(x)).astype(x.dtype) if x.dtype.kind != "u" else np.sign(x)

    partials = None  # type: ignore[assignment]


@final
class Sqrt(Elementwise):
    name, exact, accepts, samples = "sqrt", True, "f", (Sample(((3, 5),), low=0.1), Sample(((),), low=0.1))

    def scalar(self, e: Any, x: Any) -> Any:
        return e.sqrt(x)

    def numpy(self, x: Any) -> Any:
        return np.sqrt(x)

    def partials(self, out: Any, x: Any) -> Any:
        return (lambda t: mul(t, div(full_like(x, 0.5), out)),)

    def coefficients(self, out: Any, *xs: Series) -> list[Any]:
        (x,), y = xs, [out]
        for k in range(1, len(x)):  # y^2 = x
            y.append(over(minus(x[k], convolved(y, y, k, 1, k - 1)), mul(full_like(out, 2), out)))
        return y[1:]


@final
class Rsqrt(Elementwise):
    name, accepts, samples = "rsqrt", "f", (Sample(((3, 5),), low=0.1), Sample(((),), low=0.1))

    def scalar(self, e: Any, x: Any) -> Any:
        return e.rsqrt(x)

    def numpy(self, x: Any) -> Any:
        return 1 / np.sqrt(x)

    def partials(self, out: Any, x: Any) -> Any:
        return (lambda t: mul(t, mul(full_like(x, -0.5), div(out, x))),)

    def coefficients(self, out: Any, *xs: Series) -> list[Any]:
        return power(out, xs[0], -1 / 2)


@final
class Cbrt(Elementwise):
    name, accepts, samples = "cbrt", "f", (Sample(((3, 5),), low=0.1), Sample(((),), low=0.1))

    def scalar(self, e: Any, x: Any) -> Any:
        return e.cbrt(x)

    def numpy(self, x: Any) -> Any:
        return np.cbrt(x)

    def partials(self, out: Any, x: Any) -> Any:
        return (lambda t: mul(t, mul(full_like(x, 1 / 3), integer_pow(out, -2))),)


add_p, add_any_p, sub_p, neg_p, mul_p, div_p, rem_p = Add(), AddAny(), Sub(), Neg(), Mul(), Div(), Rem()
max_p, min_p, pow_p, integer_pow_p, square_p = Max(), Min(), Pow(), IntegerPow(), Square()
abs_p, sign_p, sqrt_p, rsqrt_p, cbrt_p = Abs(), Sign(), Sqrt(), Rsqrt(), Cbrt()


def add(x: Any, y: Any) -> Any:
    """Elementwise ``x + y``; one shape (or scalars) and one dtype."""
    return add_p.bind(*operands_of(x, y))


def sub(x: Any, y: Any) -> Any:
    """Elementwise ``x - y``."""
    return sub_p.bind(*operands_of(x, y))


def neg(x: Any) -> Any:
    """Elementwise ``-x``; a symbolic zero stays one."""
    return x if type(x) is Zero else neg_p.bind(*operands_of(x))


def mul(x: Any, y: Any) -> Any:
    """Elementwise ``x * y``."""
    return mul_p.bind(*operands_of(x, y))


def div(x: Any, y: Any) -> Any:
    """Elementwise ``x / y``; integers truncate toward zero, and give -1 where ``y`` is 0."""
    return div_p.bind(*operands_of(x, y))


def rem(x: Any, y: Any) -> Any:
    """Elementwise remainder with the sign of ``x``; ``x`` where an integer ``y`` is 0."""
    return rem_p.bind(*operands_of(x, y))


def max(x: Any, y: Any) -> Any:
    """Elementwise larger of two; NaN where either is."""
    return max_p.bind(*operands_of(x, y))


def min(x: Any, y: Any) -> Any:
    """Elementwise smaller of two; NaN where either is."""
    return min_p.bind(*operands_of(x, y))


def pow(x: Any, y: Any) -> Any:
    """Elementwise ``x ** y``; a Python int ``y`` becomes repeated squaring."""
    if type(y) is int:
        return integer_pow(x, y)
    return pow_p.bind(*operands_of(x, y))


def integer_pow(x: Any, y: int) -> Any:
    """Elementwise ``x ** y`` for a fixed integer ``y``."""
    if y == 2:
        return square(x)
    return integer_pow_p.bind(*operands_of(x), y=y)


def square(x: Any) -> Any:
    """Elementwise ``x * x``."""
    return square_p.bind(*operands_of(x))


def abs(x: Any) -> Any:
    """Elementwise absolute value."""
    return abs_p.bind(*operands_of(x))


def sign(x: Any) -> Any:
    """Elementwise sign: -1, 0 or 1, NaN for NaN."""
    return sign_p.bind(*operands_of(x))


def sqrt(x: Any) -> Any:
    """Elementwise square root."""
    return sqrt_p.bind(*operands_of(x))


def rsqrt(x: Any) -> Any:
    """Elementwise ``1 / sqrt(x)``."""
    return rsqrt_p.bind(*operands_of(x))


def cbrt(x: Any) -> Any:
    """Elementwise cube root."""
    return cbrt_p.bind(*operands_of(x))


def reciprocal(x: Any) -> Any:
    """Elementwise ``1 / x``."""
    return integer_pow(x, -1)
