"""Functions of floats: exponentials, trigonometry, hyperbolics, roots.  Integers become floats first."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from jaxlite import lax
from jaxlite.core import dtypes
from jaxlite.core.avals import aval_of
from jaxlite.core.primitive import Primitive, get
from jaxlite.lax.elementwise.casts import convert
from jaxlite.numpy.arithmetic import _select
from jaxlite.numpy.promotion import array_operand, broadcast_operands, constant_like, full_shape, promoted_float
from jaxlite.transforms.custom import custom_jvp


def _function(name: str, primitive: Primitive, text: str) -> Callable[[Any], Any]:
    bind = primitive.bind

    def apply(x: Any, /) -> Any:
        aval = getattr(x, "aval", None)
        if aval is not None and aval.dtype.kind == "f":
            return bind(x)
        (value,) = promoted_float(name, x)
        return bind(value)

    apply.__name__ = apply.__qualname__ = name
    apply.__doc__ = text
    return apply


exp = _function("exp", get("exp"), "Elementwise e to the power ``x``.")
exp2 = _function("exp2", get("exp2"), "Elementwise 2 to the power ``x``.")
expm1 = _function("expm1", get("expm1"), "Elementwise ``exp(x) - 1``, exact near 0.")
log = _function("log", get("log"), "Elementwise natural logarithm.")
log1p = _function("log1p", get("log1p"), "Elementwise ``log(1 + x)``, exact near 0.")
sqrt = _function("sqrt", get("sqrt"), "Elementwise square root.")
cbrt = _function("cbrt", get("cbrt"), "Elementwise cube root.")
sin = _function("sin", get("sin"), "Elementwise sine.")
cos = _function("cos", get("cos"), "Elementwise cosine.")
tan = _function("tan", get("tan"), "Elementwise tangent.")
asin = _function("arcsin", get("asin"), "Elementwise inverse sine.")
acos = _function("arccos", get("acos"), "Elementwise inverse cosine.")
atan = _function("arctan", get("atan"), "Elementwise inverse tangent.")
sinh = _function("sinh", get("sinh"), "Elementwise hyperbolic sine.")
cosh = _function("cosh", get("cosh"), "Elementwise hyperbolic cosine.")
tanh = _function("tanh", get("tanh"), "Elementwise hyperbolic tangent.")
asinh = _function("arcsinh", get("asinh"), "Elementwise inverse hyperbolic sine.")
acosh = _function("arccosh", get("acosh"), "Elementwise inverse hyperbolic cosine.")
atanh = _function("arctanh", get("atanh"), "Elementwise inverse hyperbolic tangent.")
arcsin, arccos, arctan, arcsinh, arccosh, arctanh = asin, acos, atan, asinh, acosh, atanh


def atan2(x1: Any, x2: Any, /) -> Any:
    """Elementwise angle of the point (``x2``, ``x1``), from -pi to pi."""
    return lax.atan2(*promoted_float("arctan2", x1, x2))


arctan2 = atan2


def _over_log(name: str, x: Any, base: float) -> Any:
    (value,) = promoted_float(name, x)
    return lax.div(lax.log(value), constant_like(value, np.log(base)))


def log2(x: Any, /) -> Any:
    """Elementwise logarithm to base 2."""
    return _over_log("log2", x, 2)


def log10(x: Any, /) -> Any:
    """Elementwise logarithm to base 10."""
    return _over_log("log10", x, 10)


@custom_jvp
def _logaddexp(x: Any, y: Any) -> Any:
    top, gap = lax.max(x, y), lax.sub(x, y)
    return _select(lax.ne(gap, gap), lax.add(x, y), lax.add(top, lax.log1p(lax.exp(lax.neg(lax.abs(gap))))))


def _minus(x: Any, y: Any) -> Any:
    """``x - y``, 0 where both are the same infinity."""
    return _select(lax.eq(x, y), constant_like(x, 0), lax.sub(x, y))


@_logaddexp.defjvp
def _logaddexp_jvp(primals: Any, tangents: Any) -> Any:
    (x, y), (tx, ty) = primals, tangents
    out = _logaddexp(x, y)
    shape = aval_of(out).shape
    shares = [lax.mul(t, lax.exp(_minus(v, out))) for v, t in ((x, tx), (y, ty))]
    return out, lax.add(*(full_shape(s, shape) for s in shares))


def logaddexp2_(x: Any, y: Any) -> Any:
    """``log2(2 ** x + 2 ** y)`` of floats."""
    scale = constant_like(x, np.log(2))
    return lax.div(_logaddexp(lax.mul(x, scale), lax.mul(y, scale)), scale)


def logaddexp_(x1: Any, x2: Any) -> Any:
    """``log(exp(x1) + exp(x2))`` without overflow."""
    return _logaddexp(*promoted_float("logaddexp", x1, x2))


def hypot(x1: Any, x2: Any, /) -> Any:
    """Elementwise length of (``x1``, ``x2``), without overflow."""
    return _hypot(*promoted_float("hypot", x1, x2))


@custom_jvp
def _hypot(x: Any, y: Any) -> Any:
    x, y = lax.abs(x), lax.abs(y)
    large, small = lax.max(x, y), lax.min(x, y)
    safe = _select(lax.eq(large, constant_like(large, 0)), constant_like(large, 1), large)
    ratio = lax.div(small, safe)
    length = lax.mul(large, lax.sqrt(lax.add(constant_like(x, 1), lax.square(ratio))))
    length = _select(lax.eq(large, constant_like(large, 0)), large, length)
    infinite = constant_like(x, np.inf)
    either = lax.bitwise_or(*broadcast_operands("hypot", [lax.eq(x, infinite), lax.eq(y, infinite)]))
    return _select(either, infinite, length)


@_hypot.defjvp
def _hypot_jvp(primals: Any, tangents: Any) -> Any:
    out = _hypot(*primals)
    shape = aval_of(out).shape
    # The cosine and sine of the angle: of the zero vector there are none, so NaN.
    parts = [lax.mul(t, lax.div(full_shape(v, shape), out)) for v, t in zip(primals, tangents, strict=True)]
    return out, lax.add(*(full_shape(p, shape) for p in parts))


def deg2rad(x: Any, /) -> Any:
    """Degrees to radians."""
    (value,) = promoted_float("deg2rad", x)
    return lax.mul(value, constant_like(value, np.pi / 180))


def rad2deg(x: Any, /) -> Any:
    """Radians to degrees."""
    (value,) = promoted_float("rad2deg", x)
    return lax.mul(value, constant_like(value, 180 / np.pi))


radians, degrees = deg2rad, rad2deg


def sinc(x: Any, /) -> Any:
    """``sin(pi x) / (pi x)``, 1 at 0, and exactly 0 at other whole numbers and at infinity."""
    (value,) = promoted_float("sinc", x)
    angle = lax.mul(constant_like(value, np.pi), value)
    # Derivatives of the quotient cancel near 0: there the series and its derivatives serve.
    near = lax.lt(lax.abs(angle), constant_like(angle, _SERIES_UP_TO))
    safe = _select(near, constant_like(angle, _SERIES_UP_TO), angle)
    sine = _select(lax.eq(lax.abs(value), constant_like(value, np.inf)), constant_like(value, 0), _sine_of_turns(value))
    return _select(near, _sinc_series(_select(near, angle, constant_like(angle, 0))), lax.div(sine, safe))


_SERIES_UP_TO = 2.0


def _sine_of_turns(x: Any) -> Any:
    """``sin(pi x)``: ``x`` is first brought to [-1/2, 1/2], which is exact."""
    even, one, half = lax.RoundingMethod.TO_NEAREST_EVEN, constant_like(x, 1), constant_like(x, 0.5)
    turn = lax.sub(x, lax.mul(constant_like(x, 2), lax.round(lax.mul(x, half), even)))
    size = lax.abs(turn)
    folded = _select(lax.gt(size, half), lax.sub(one, size), size)
    return lax.mul(lax.sign(turn), lax.sin(lax.mul(constant_like(x, np.pi), folded)))


def _sinc_series(angle: Any) -> Any:
    """``sin(t) / t`` as ``sum((-t^2)^k / (2 k + 1)!)``: with |t| <= 2 the terms left out are below a tenth of an ulp,
    in the first two derivatives too."""
    count = 15 if angle.dtype.itemsize == 8 else 9
    squared = lax.square(angle)
    total = constant_like(angle, (-1) ** count / math.factorial(2 * count + 1))
    for k in range(count - 1, -1, -1):
        total = lax.add(lax.mul(total, squared), constant_like(angle, (-1) ** k / math.factorial(2 * k + 1)))
    return total


def nextafter(x: Any, y: Any, /) -> Any:
    """The next float after ``x`` toward ``y``."""
    return lax.nextafter(*broadcast_full("nextafter", *promoted_float("nextafter", x, y)))


def broadcast_full(name: str, *values: Any) -> list[Any]:
    """Values repeated to one shape, scalars too."""
    values = tuple(broadcast_operands(name, values))
    shape = next((aval_of(v).shape for v in values if aval_of(v).shape), ())
    return [full_shape(v, shape) for v in values]


def copysign(x1: Any, x2: Any, /) -> Any:
    """``x1`` with the sign of ``x2``."""
    x, y = promoted_float("copysign", x1, x2)
    size = lax.abs(x)
    return _select(signbit(y), lax.neg(size), size)


def signbit(x: Any, /) -> Any:
    """Whether the sign is minus; that of -0.0 and of NaN counts."""
    value = array_operand("signbit", x)
    if not dtypes.is_float(value.dtype):
        return lax.lt(value, constant_like(value, 0)) if value.dtype.kind == "i" else lax.ne(value, value)
    bits = lax.bitcast_convert_type(value, np.dtype(f"i{value.dtype.itemsize}"))
    return lax.lt(bits, constant_like(bits, 0))


def ldexp(x1: Any, x2: Any, /) -> Any:
    """``x1 * 2 ** x2``."""
    (x,) = promoted_float("ldexp", x1)
    exponent = array_operand("ldexp", x2)
    if not (dtypes.is_integer(exponent.dtype) or dtypes.is_bool(exponent.dtype)):
        raise ValueError(f"ldexp: x2 must be an integer, got {exponent.dtype.name}.")
    x, power = promoted_float("ldexp", x, exponent)
    return convert(lax.mul(x, lax.exp2(power)), aval_of(x).dtype)  # not weak, as in JAX
