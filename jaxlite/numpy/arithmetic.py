"""Arithmetic: sums, products, quotients, remainders, powers, extrema.  Operands promote to one dtype and shape.

The binary functions first try the case that matters for speed: two arrays of one dtype and shape, or an array and a
Python number of its kind.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jaxlite import lax
from jaxlite.core import config, dtypes
from jaxlite.core.array import Array
from jaxlite.core.avals import aval_of
from jaxlite.core.primitive import Primitive, get
from jaxlite.lax.convert import operand_of
from jaxlite.lax.elementwise.casts import convert
from jaxlite.numpy.promotion import (
    array_operand,
    as_type,
    broadcast_operands,
    check_arraylike,
    common_type,
    constant_like,
    full_shape,
    promoted,
    promoted_float,
)

Binary = Callable[[Any, Any], Any]


def quick(primitive: Primitive, kinds: str, slowly: Binary) -> Binary:
    """``primitive.bind`` of two operands, by way of ``slowly`` unless they clearly need no promotion.

    ``kinds`` are the dtype kinds for which the primitive is the whole meaning.
    """
    bind = primitive.bind

    def apply(x: Any, y: Any) -> Any:
        a, b = getattr(x, "aval", None), getattr(y, "aval", None)
        if a is not None and b is not None:
            weak_and_wide = a.weak_type and a.dtype.itemsize == 8  # promotion narrows it while x64 is off
            if a.dtype is b.dtype and a.shape == b.shape and a.dtype.kind in kinds and not weak_and_wide:
                return bind(x, y)
        elif a is not None and not a.weak_type:
            scalar = _fitting(y, a.dtype, kinds)
            if scalar is not None:
                return bind(x, scalar)
        elif b is not None and not b.weak_type:
            scalar = _fitting(x, b.dtype, kinds)
            if scalar is not None:
                return bind(scalar, y)
        return slowly(x, y)

    return apply


def _fitting(value: Any, dtype: Any, kinds: str) -> Any:
    """A Python number as a scalar of a float ``dtype`` (or of int32), None where that takes promotion."""
    kind = type(value)
    if dtype.kind == "f":
        if dtype.itemsize == 8 and not config.enable_x64.value:  # made while it was on: promotion narrows it
            return None
        return dtype.type(value) if (kind is float or kind is int) and "f" in kinds else None
    if kind is int and dtype.name == "int32" and "i" in kinds and -(2**31) <= value < 2**31:
        return np.int32(value)
    return None


def _promoting(name: str, primitive: Primitive, on_bools: Primitive | None = None) -> Binary:
    def apply(x: Any, y: Any) -> Any:
        a, b = promoted(name, x, y)
        if on_bools is not None and dtypes.is_bool(aval_of(a).dtype):
            return on_bools.bind(a, b)
        return primitive.bind(a, b)

    return apply


_or, _and, _xor = get("or"), get("and"), get("xor")
# The operation, the kinds of dtype that need no more than the primitive, and what to do with everything else.
add2 = quick(get("add"), "iuf", _promoting("add", get("add"), _or))
subtract2 = quick(get("sub"), "iuf", _promoting("subtract", get("sub")))
multiply2 = quick(get("mul"), "iuf", _promoting("multiply", get("mul"), _and))
maximum2 = quick(get("max"), "biuf", _promoting("maximum", get("max")))
minimum2 = quick(get("min"), "biuf", _promoting("minimum", get("min")))


def _true_divide(x: Any, y: Any) -> Any:
    return get("div").bind(*promoted_float("true_divide", x, y))


divide2 = quick(get("div"), "f", _true_divide)


def true_divide(x1: Any, x2: Any, /) -> Any:
    """Elementwise ``x1 / x2``; integers become floats."""
    return divide2(x1, x2)


def divide(x1: Any, x2: Any, /) -> Any:
    """Elementwise ``x1 / x2``; integers become floats."""
    return divide2(x1, x2)


def floor_divide(x1: Any, x2: Any, /) -> Any:
    """Elementwise quotient, rounded down."""
    x, y = promoted("floor_divide", x1, x2)
    dtype = aval_of(x).dtype
    if dtype.kind == "u":
        return lax.div(x, y)
    if dtypes.is_bool(dtype):
        return floor_divide(convert(x, np.dtype(np.int32)), convert(y, np.dtype(np.int32)))
    if dtype.kind == "i":
        quotient, rest = lax.div(x, y), lax.rem(x, y)
        down = _both(lax.ne(lax.sign(x), lax.sign(y)), lax.ne(rest, constant_like(rest, 0)))
        return _select(down, lax.sub(quotient, constant_like(quotient, 1)), quotient)
    return float_divmod(x, y)[0]


def _both(a: Any, b: Any) -> Any:
    return lax.bitwise_and(*broadcast_operands("logical_and", [a, b]))


def _select(condition: Any, on_true: Any, on_false: Any) -> Any:
    """``where`` of values of one dtype; those without axes take the shape of the others."""
    shape = aval_of(condition).shape or aval_of(on_true).shape or aval_of(on_false).shape
    cases = [full_shape(v, shape) for v in (on_true, on_false)]
    return lax.select(condition, *cases)


def float_divmod(x: Any, y: Any) -> tuple[Any, Any]:
    """Quotient rounded down, and remainder with the sign of the divisor, of floats."""
    rest = lax.rem(x, y)
    zero = constant_like(y, 0)
    no_divisor = lax.eq(y, zero)
    numerator = _select(no_divisor, full_shape(x, aval_of(rest).shape), lax.sub(x, rest))
    quotient = lax.div(numerator, y)
    wrong_sign = _both(lax.ne(rest, zero), lax.ne(lax.sign(y), lax.sign(rest)))
    remainder_ = _select(wrong_sign, lax.add(rest, y), rest)
    quotient = _select(wrong_sign, lax.sub(quotient, constant_like(quotient, 1)), quotient)
    return lax.round(quotient, lax.RoundingMethod.AWAY_FROM_ZERO), remainder_


def remainder(x1: Any, x2: Any, /) -> Any:
    """Elementwise remainder with the sign of ``x2``, as Python's ``%``."""
    x, y = promoted("remainder", x1, x2)
    if dtypes.is_bool(aval_of(x).dtype):
        x, y = (convert(v, np.dtype(np.int32)) for v in (x, y))
    zero = constant_like(y, 0)
    if not dtypes.is_float(aval_of(x).dtype):
        y = _select(lax.eq(y, zero), constant_like(y, 1), y)  # x % 0 is 0
    rest = lax.rem(x, y)
    if aval_of(x).dtype.kind == "u":
        return rest
    wrong_sign = _both(lax.ne(lax.lt(rest, zero), lax.lt(y, zero)), lax.ne(rest, zero))
    return _select(wrong_sign, lax.add(rest, y), rest)


mod = remainder


def fmod(x1: Any, x2: Any, /) -> Any:
    """Elementwise remainder with the sign of ``x1``, as C's ``fmod``."""
    x, y = map(as_integers, promoted("fmod", x1, x2))
    if not dtypes.is_float(aval_of(x).dtype):
        y = _select(lax.eq(y, constant_like(y, 0)), constant_like(y, 1), y)  # fmod(x, 0) is 0
    return lax.rem(x, y)


def divmod(x1: Any, x2: Any, /) -> tuple[Any, Any]:
    """``floor_divide`` and ``remainder`` together."""
    x, y = promoted("divmod", x1, x2)
    if dtypes.is_float(aval_of(x).dtype):
        return float_divmod(x, y)
    return floor_divide(x, y), remainder(x, y)


def power(x1: Any, x2: Any, /) -> Any:
    """Elementwise ``x1 ** x2``; one known integer ``x2`` is a fixed power, by multiplications in ``x1``'s type."""
    check_arraylike("power", x1, x2)
    known = isinstance(x2, (int, np.integer)) and not isinstance(x2, bool)
    if known or (type(x2) is Array and not x2.shape and dtypes.is_integer(x2.dtype)):
        return _fixed_power(array_operand("power", x1), int(x2))
    base, exponent = array_operand("power", x1), operand_of(x2)
    types = [aval_of(base), aval_of(exponent)]
    dtype, weak = common_type(types)
    if dtypes.is_float(dtype):
        if types[1].dtype.kind in "iu" and dtypes.is_float(types[0].dtype):
            return get("pow").bind(*broadcast_operands("power", [base, array_operand("power", exponent)]))
        pair = [as_type(base, dtype, weak), as_type(exponent, dtype, weak)]
        return get("pow").bind(*broadcast_operands("power", pair))
    return _integer_power(*promoted("power", x1, x2))


pow = power


def _fixed_power(base: Any, exponent: int) -> Any:
    dtype = base.dtype
    if dtypes.is_bool(dtype):
        base = convert(base, np.dtype(np.int32))
    if exponent < 0 and not dtypes.is_float(base.dtype):
        raise TypeError(
            f"Integers cannot be raised to negative powers, got integer_pow({aval_of(base)}, {exponent}).  Write "
            f"x.astype(float) ** {exponent}."
        )
    if exponent == 0:
        return lax.full_like(base, 1)
    return base if exponent == 1 else lax.integer_pow(base, exponent)


def _integer_power(base: Any, exponent: Any) -> Any:
    """Powers of integers by squaring: one step for each bit of the exponent."""
    base, exponent = as_integers(base), as_integers(exponent)
    shape = aval_of(base).shape or aval_of(exponent).shape
    base, exponent = full_shape(base, shape), full_shape(exponent, shape)
    result = full_shape(constant_like(base, 1), shape)
    for _ in range(6):  # as many bits as an exponent has before powers of 2 overflow; JAX's results rest on it
        odd = lax.ne(lax.bitwise_and(exponent, constant_like(exponent, 1)), constant_like(exponent, 0))
        result = lax.select(odd, lax.mul(result, base), result)
        base = lax.mul(base, base)
        exponent = lax.shift_right_logical(exponent, constant_like(exponent, 1))
    return result


def float_power(x: Any, y: Any, /) -> Any:
    """``power`` of floats."""
    return get("pow").bind(*promoted_float("float_power", x, y))


def square(x: Any, /) -> Any:
    """Elementwise ``x * x``."""
    return lax.square(as_integers(array_operand("square", x)))


def as_integers(x: Any) -> Any:
    """``x``, bools as int32."""
    return convert(x, np.dtype(np.int32)) if dtypes.is_bool(aval_of(x).dtype) else x


def reciprocal(x: Any, /) -> Any:
    """Elementwise ``1 / x``."""
    (value,) = promoted_float("reciprocal", x)
    return lax.integer_pow(value, -1)


def positive(x: Any, /) -> Any:
    """``x`` itself."""
    return array_operand("positive", x)


def negative2(x: Any) -> Any:
    """Elementwise ``-x``."""
    value = array_operand("negative", x)
    if dtypes.is_bool(value.dtype):
        raise TypeError(
            "neg does not accept dtype bool. Accepted dtypes are subtypes of number: use ~x or logical_not."
        )
    return lax.neg(value)


def absolute(x: Any, /) -> Any:
    """Elementwise absolute value; bools and unsigned integers are their own."""
    value = array_operand("absolute", x)
    return value if value.dtype.kind in "bu" else lax.abs(value)


abs = absolute


def fabs(x: Any, /) -> Any:
    """``absolute`` as a float."""
    return lax.abs(*promoted_float("fabs", x))


def sign(x: Any, /) -> Any:
    """Elementwise sign: -1, 0 or 1, NaN for NaN."""
    return lax.sign(array_operand("sign", x))


def _ignoring_nan(name: str, x1: Any, x2: Any, chooses: Callable[[Any, Any], Any]) -> Any:
    x, y = promoted(name, x1, x2)
    if not dtypes.is_float(aval_of(x).dtype):
        return _select(chooses(x, y), x, y)
    takes_x = lax.bitwise_or(*broadcast_operands(name, [chooses(x, y), lax.ne(y, y)]))
    return _select(takes_x, x, y)


def fmax(x1: Any, x2: Any) -> Any:
    """Elementwise larger of two, NaN only where both are."""
    return _ignoring_nan("fmax", x1, x2, lax.gt)


def fmin(x1: Any, x2: Any) -> Any:
    """Elementwise smaller of two, NaN only where both are."""
    return _ignoring_nan("fmin", x1, x2, lax.lt)


def heaviside(x1: Any, x2: Any, /) -> Any:
    """0 where ``x1`` is negative, 1 where positive, ``x2`` where zero, NaN where NaN."""
    x, y = promoted_float("heaviside", x1, x2)
    zero = constant_like(x, 0)
    step = _select(lax.lt(x, zero), constant_like(x, 0), _select(lax.gt(x, zero), constant_like(x, 1), y))
    out = _select(lax.ne(x, x), x, step)
    aval = aval_of(out)
    return convert(out, aval.dtype, aval.weak_type and not aval.shape)  # arrays of steps are not weak, as in JAX
