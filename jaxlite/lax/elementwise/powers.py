"""Powers and roots."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from jaxlite.core import dtypes
from jaxlite.core.avals import aval_of
from jaxlite.core.dtypes import plain_number
from jaxlite.core.primitive import Sample, get
from jaxlite.interpreters.series import Series, convolved, logarithm, minus, over, power, product, solved, squared
from jaxlite.lax.convert import full_like, operands_of
from jaxlite.lax.elementwise.arithmetic import div, mul, sub
from jaxlite.lax.families.elementwise import Elementwise, to_shape


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
        power, factor, result = abs(y), x, None
        while power:
            if power & 1:
                result = factor if result is None else e.mul(result, factor)
            power >>= 1
            if power:
                factor = e.mul(factor, factor)
        result = e.constant(1, x.dtype) if result is None else result
        return e.div(e.constant(1, x.dtype), result) if y < 0 else result

    def numpy(self, x: Any, y: int) -> Any:
        power, factor, result = abs(y), x, np.ones_like(x)
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
    name, exact, accepts, samples = "square", True, "iuf", (Sample(((3, 5),)), Sample(((),)), Sample(((0,),)))

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


pow_p, integer_pow_p, square_p = Pow(), IntegerPow(), Square()
sqrt_p, rsqrt_p, cbrt_p = Sqrt(), Rsqrt(), Cbrt()


def pow(x: Any, y: Any) -> Any:
    """Elementwise ``x ** y``; a Python int ``y`` becomes repeated squaring."""
    y = plain_number(y)
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
