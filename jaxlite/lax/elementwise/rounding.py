"""Rounding, and tests on floats."""

from __future__ import annotations

import enum
from typing import Any, final

import numpy as np

from jaxlite.core import dtypes
from jaxlite.core.primitive import Sample
from jaxlite.lax.convert import operands_of
from jaxlite.lax.families.elementwise import Elementwise
from jaxlite.lax.families.mapped import Mapped

_ANY = (Sample(((3, 5),), low=-3, high=3), Sample(((),)))


class RoundingMethod(enum.IntEnum):
    """What ``round`` does with halves."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


@final
class Floor(Mapped):
    name, opcode, function, exact, accepts, samples = "floor", "floor", np.floor, True, "f", _ANY
    partials = None  # type: ignore[assignment]


@final
class Ceil(Mapped):
    name, opcode, function, exact, accepts, samples = "ceil", "ceil", np.ceil, True, "f", _ANY
    partials = None  # type: ignore[assignment]


@final
class Round(Elementwise):
    name, accepts = "round", "f"
    samples = tuple(Sample(((3, 5),), {"rounding_method": m}, low=-3, high=3) for m in RoundingMethod)
    partials = None  # type: ignore[assignment]

    def scalar(self, e: Any, x: Any, rounding_method: RoundingMethod) -> Any:
        if rounding_method == RoundingMethod.TO_NEAREST_EVEN:
            return e.round_even(x)
        whole = e.trunc(x)
        away = e.add(whole, e.select(e.lt(x, 0.0), e.constant(-1, x.dtype), e.constant(1, x.dtype)))
        rounded = e.select(e.ge(e.abs(e.sub(x, whole)), 0.5), away, whole)
        return e.select(e.eq(rounded, 0.0), e.mul(x, 0.0), rounded)  # -0.3 rounds to -0.0

    def numpy(self, x: Any, rounding_method: RoundingMethod) -> Any:
        if rounding_method == RoundingMethod.TO_NEAREST_EVEN:
            return np.rint(x)
        whole = np.trunc(x)
        return np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(1, x), whole).astype(x.dtype)


@final
class IsFinite(Elementwise):
    name, exact, accepts, samples = "is_finite", True, "f", _ANY
    partials = None  # type: ignore[assignment]

    def result_dtype(self, *operands: Any, **params: Any) -> Any:
        return np.dtype(bool)

    def scalar(self, e: Any, x: Any) -> Any:
        return e.is_finite(x)

    def numpy(self, x: Any) -> Any:
        return np.isfinite(x)


@final
class Nextafter(Mapped):
    """The float after ``x`` in the direction of ``y``."""

    name, opcode, function, accepts = "nextafter", "nextafter", np.nextafter, "f"
    samples = (Sample(((3, 5), (3, 5)), dtypes=("float32", "float32")),)
    partials = None  # type: ignore[assignment]


@final
class ReducePrecision(Elementwise):
    """Rounds to a float of fewer exponent and mantissa bits, kept in the same dtype."""

    name, accepts = "reduce_precision", "f"
    samples = (Sample(((3, 5),), {"exponent_bits": 5, "mantissa_bits": 10}, dtypes=("float32",)),)
    piecewise_linear = True

    def scalar(self, e: Any, x: Any, exponent_bits: int, mantissa_bits: int) -> Any:
        unsigned = dtypes.as_dtype(f"uint{x.dtype.itemsize * 8}")
        bits, have_mantissa, have_exponent = x.dtype.itemsize * 8, *_layout(x.dtype)
        pattern = e.bitcast(x, unsigned)
        if mantissa_bits < have_mantissa:
            drop = have_mantissa - mantissa_bits
            odd = e.and_(e.shift_right_logical(pattern, drop), 1)
            rounded = e.add(pattern, e.add(odd, (1 << (drop - 1)) - 1))
            pattern = e.and_(rounded, ((1 << bits) - 1) ^ ((1 << drop) - 1))
        if exponent_bits < have_exponent:
            bias, new_bias = (1 << (have_exponent - 1)) - 1, (1 << (exponent_bits - 1)) - 1
            sign = e.and_(pattern, 1 << (bits - 1))
            magnitude = e.and_(pattern, (1 << (bits - 1)) - 1)
            infinity = ((1 << have_exponent) - 1) << have_mantissa
            largest = ((bias + new_bias) << have_mantissa) | ((1 << have_mantissa) - 1)
            least = (bias - new_bias + 1) << have_mantissa
            magnitude = e.select(e.gt(magnitude, largest), e.constant(infinity, unsigned), magnitude)
            magnitude = e.select(e.lt(magnitude, least), e.constant(0, unsigned), magnitude)
            pattern = e.or_(sign, magnitude)
        return e.select(e.ne(x, x), x, e.bitcast(pattern, x.dtype))

    def numpy(self, x: Any, exponent_bits: int, mantissa_bits: int) -> Any:
        have_mantissa, have_exponent = _layout(x.dtype)
        mantissa, exponent = np.frexp(x.astype(np.float64))
        kept = np.ldexp(np.rint(np.ldexp(mantissa, mantissa_bits + 1)), exponent - mantissa_bits - 1)
        kept = kept if mantissa_bits < have_mantissa else x.astype(np.float64)
        if exponent_bits < have_exponent:
            top = (1 << (exponent_bits - 1)) - 1
            largest = np.ldexp(2.0 - np.ldexp(1.0, -have_mantissa), top)
            kept = np.where(np.abs(kept) > largest, np.copysign(np.inf, kept), kept)
            kept = np.where(np.abs(kept) < np.ldexp(1.0, 1 - top), np.copysign(0.0, kept), kept)
        return np.where(np.isfinite(x), kept, x).astype(x.dtype)

    def partials(self, out: Any, x: Any, exponent_bits: int, mantissa_bits: int) -> Any:
        return (lambda t: reduce_precision(t, exponent_bits, mantissa_bits),)

    def pull_back(self, cotangent: Any, x: Any, exponent_bits: int, mantissa_bits: int) -> list[Any]:
        return [reduce_precision(cotangent, exponent_bits, mantissa_bits)]


def _layout(dtype: Any) -> tuple[int, int]:
    """Mantissa and exponent bits of a float dtype."""
    table = {"float16": (10, 5), "bfloat16": (7, 8), "float32": (23, 8), "float64": (52, 11)}
    return table[dtype.name]


floor_p, ceil_p, round_p, is_finite_p = Floor(), Ceil(), Round(), IsFinite()
nextafter_p, reduce_precision_p = Nextafter(), ReducePrecision()


def floor(x: Any) -> Any:
    """Elementwise largest whole number not above ``x``."""
    return floor_p.bind(*operands_of(x))


def ceil(x: Any) -> Any:
    """Elementwise smallest whole number not below ``x``."""
    return ceil_p.bind(*operands_of(x))


def round(x: Any, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Any:
    """Elementwise nearest whole number; halves go away from zero, or to even."""
    return round_p.bind(*operands_of(x), rounding_method=RoundingMethod(rounding_method))


def is_finite(x: Any) -> Any:
    """Elementwise whether ``x`` is neither NaN nor infinite."""
    return is_finite_p.bind(*operands_of(x))


def nextafter(x1: Any, x2: Any) -> Any:
    """Elementwise next float after ``x1`` toward ``x2``."""
    return nextafter_p.bind(*operands_of(x1, x2))


def reduce_precision(operand: Any, exponent_bits: int, mantissa_bits: int) -> Any:
    """Elementwise rounding to a float format of that many bits, the dtype unchanged."""
    return reduce_precision_p.bind(
        *operands_of(operand), exponent_bits=int(exponent_bits), mantissa_bits=int(mantissa_bits)
    )
