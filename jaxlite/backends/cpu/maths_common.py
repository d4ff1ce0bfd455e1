"""What the elementary functions share: exponents, powers of two, exact sums and products.

The formulas are written against `Instructions`; `size_of(x)` picks the constants of x's dtype.
Pairs (high, low) stand for the unrounded sum high + low.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from jaxlite.backends.cpu.instructions import Instructions, Operand
from jaxlite.backends.cpu.words import F32, I32, I64, U32, U64, Word
from jaxlite.compiler.loops import DType

INF = float("inf")
NAN = float("nan")


@final
@dataclass(frozen=True)
class Format:
    """A float format's bits: `mantissa` stored bits, exponent `bias`, and integers of its size."""

    name: str
    mantissa: int
    bias: int
    signed: DType
    unsigned: DType
    smallest_normal: float


SINGLE = Format("32", 23, 127, I32, U32, 2.0**-126)
DOUBLE = Format("64", 52, 1023, I64, U64, 2.0**-1022)


def format_of(x: Word) -> Format:
    """The format of a float32 or float64 word."""
    return SINGLE if x.dtype == F32 else DOUBLE


def pick(x: Word, single: Sequence[float], double: Sequence[float]) -> Sequence[float]:
    """The table for x's dtype."""
    return single if x.dtype == F32 else double


def power_of_two(e: Instructions, k: Word, like: Word) -> Word:
    """2^k for an integer k (of the size of `like`) within the normal range, as a float."""
    form = format_of(like)
    return e.bits(e.shl(e.add(k, form.bias), form.mantissa), like.dtype)


def scale(e: Instructions, x: Word, k: Word) -> Word:
    """x * 2^k for any k that fits two factors: subnormal results are rounded once."""
    half = e.ashr(k, 1)
    once = e.mul(x, power_of_two(e, half, x))
    return e.mul(once, power_of_two(e, e.sub(k, half), x))


def clamp(e: Instructions, x: Word, low: float, high: float) -> Word:
    """x limited to [low, high]; NaN stays."""
    return e.maximum(low, e.minimum(high, x))


def odd_polynomial(e: Instructions, x: Word, z: Word, coefficients: Sequence[float]) -> Word:
    """x + x z P(z)."""
    return e.fma(e.mul(x, z), e.polynomial(z, coefficients), x)


def two_sum(e: Instructions, a: Operand, b: Operand) -> tuple[Word, Word]:
    """a + b exactly, where |a| >= |b| or a is 0."""
    high = e.add(a, b)
    return high, e.sub(b, e.sub(high, a))


def two_difference(e: Instructions, a: Word, b: Word) -> tuple[Word, Word]:
    """a - b exactly, whichever is larger."""
    high = e.sub(a, b)
    virtual = e.sub(a, high)
    return high, e.add(e.sub(a, e.add(high, virtual)), e.sub(virtual, b))


def two_product(e: Instructions, a: Word, b: Operand) -> tuple[Word, Word]:
    """a * b exactly."""
    high = e.mul(a, b)
    return high, e.fma(a, b, e.neg(high))


def multiply_high(e: Instructions, x: Word, y: Word) -> Word:
    """The upper 64 bits of the product of two uint64, from 32-bit halves."""
    if x.lanes == 1:
        wide = [e.pure(f"zext i64 {word.text} to i128", word.dtype, 1).text for word in (x, y)]
        product = e.pure(f"mul i128 {wide[0]}, {wide[1]}", U64, 1).text
        upper = e.pure(f"lshr i128 {product}, 64", U64, 1).text
        return e.pure(f"trunc i128 {upper} to i64", U64, 1)
    mask = 0xFFFFFFFF
    x_low, x_high = e.and_(x, mask), e.lshr(x, 32)
    y_low, y_high = e.and_(y, mask), e.lshr(y, 32)
    low_carry = e.lshr(e.mul(x_low, y_low), 32)
    middle = e.add(e.mul(x_high, y_low), low_carry)
    other = e.add(e.mul(x_low, y_high), e.and_(middle, mask))
    return e.add(e.add(e.mul(x_high, y_high), e.lshr(middle, 32)), e.lshr(other, 32))
