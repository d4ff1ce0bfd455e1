"""The reduction of huge arguments of sin, cos and tan, and the remainder of floats.

x = m 2^s with m an integer of 53 bits. Of the binary digits of 2/pi only those matter that are
neither multiples of 4 after the product, nor below its precision: a window of 192 bits. The
product, modulo 4, is a fixed-point number of 2 + 126 bits: quadrant and fraction.
"""

from __future__ import annotations

import itertools

from jaxlite.backends.cpu.instructions import Instructions
from jaxlite.backends.cpu.maths_common import (
    SINGLE,
    format_of,
    multiply_high,
    power_of_two,
    two_product,
)
from jaxlite.backends.cpu.subroutines import each_lane
from jaxlite.backends.cpu.tables import TWO_OVER_PI_TABLE
from jaxlite.backends.cpu.words import F32, F64, I32, I64, U64, Word
from jaxlite.compiler.loops import DType


def _table_word(e: Instructions, index: Word) -> Word:
    """An entry of the table of digits."""
    pointer = e.pure(f"getelementptr i64, ptr @{TWO_OVER_PI_TABLE}, i64 {index.text}", I64, 1)
    return e.impure(f"load i64, ptr {pointer.text}", U64, 1)


def _window(e: Instructions, s: Word) -> tuple[Word, Word, Word]:
    """Digits of 2/pi from weight 2^(1-s) downwards, 192 of them, as three words."""
    start = e.add(s, 126)  # digit -1 is weight 2; two zero words lie in front of the first digit
    start = e.select(e.lt(start, 0), 0, start)
    word = e.lshr(start, 6)
    shift = e.bits(e.and_(start, 63), U64)
    back = e.sub(63, shift)
    words = [_table_word(e, e.add(word, i) if i else word) for i in range(4)]
    joined = [e.or_(e.shl(upper, shift), e.lshr(e.lshr(lower, 1), back)) for upper, lower in itertools.pairwise(words)]
    return joined[0], joined[1], joined[2]


def huge_reduction(e: Instructions, x: Word) -> list[Word]:
    """[high, low, k]: x = k pi/2 + high + low (mod 2 pi) for |x| >= 2^16. k: int32 in -3..3."""
    return each_lane(e, "huge_reduction", x, [x.dtype, x.dtype, I32], _reduce_scalar)


def _reduce_scalar(e: Instructions, x: Word) -> list[Word]:
    if x.dtype == F32:
        high, low, k = _reduce_scalar(e, e.cast("fpext", x, F64))
        single = e.cast("fptrunc", high, F32)
        rest = e.add(e.sub(high, e.cast("fpext", single, F64)), low)
        return [single, e.cast("fptrunc", rest, F32), k]
    bits = e.bits(e.abs(x), I64)
    s = e.sub(e.lshr(bits, 52), 1075)
    s = e.select(e.gt(s, 971), 971, s)  # infinity and NaN read inside the table; replaced later
    m = e.bits(e.or_(e.and_(bits, (1 << 52) - 1), 1 << 52), U64)
    first, second, third = _window(e, s)
    middle_low = e.mul(m, second)
    low_word = e.add(middle_low, multiply_high(e, m, third))
    carry = e.cast("zext", e.lt(low_word, middle_low), U64)
    top_word = e.add(e.add(e.mul(m, first), multiply_high(e, m, second)), carry)
    # The nearest quadrant, and the signed fraction of 126 bits left over.
    quadrant = e.lshr(e.add(top_word, 1 << 61), 62)
    fraction = e.or_(e.shl(top_word, 2), e.lshr(low_word, 62))
    upper = e.ashr(e.bits(fraction, I64), 32)
    lower = e.bits(e.and_(fraction, 0xFFFFFFFF), I64)
    rest = e.bits(e.lshr(e.shl(low_word, 2), 12), I64)
    turns = e.mul(e.float_of(upper, F64), 2.0**-32)
    part = e.mul(e.float_of(lower, F64), 2.0**-64)
    tail = e.mul(e.float_of(rest, F64), 2.0**-116)
    high = e.add(turns, part)
    low = e.add(e.sub(part, e.sub(high, turns)), tail)
    total = e.add(high, low)
    low = e.add(e.sub(high, total), low)
    angle, angle_low = two_product(e, total, 1.5707963267948966)
    angle_low = e.add(angle_low, e.fma(total, 6.123233995736766e-17, e.mul(low, 1.5707963267948966)))
    negative = e.lt(x, 0.0)
    k = e.cast("trunc", quadrant, I32)
    k = e.select(negative, e.neg(k), k)
    angle, angle_low = (e.select(negative, e.neg(word), word) for word in (angle, angle_low))
    return [angle, angle_low, k]


def remainder(e: Instructions, x: Word, y: Word) -> Word:
    """x - trunc(x / y) y, exact, with x's sign: chunks of the quotient are taken off the top."""
    x, y = e.align(x, y)[0]
    form = format_of(x)
    a, b = e.abs(x), e.abs(y)
    valid = e.and_(e.lt(a, float("inf")), e.gt(b, 0.0))
    valid = e.and_(valid, e.compare("eq", b, b))
    safe_b = e.select(valid, b, 1.0)
    start = e.select(valid, a, 0.0)
    result = e.while_any(start, lambda r: e.ge(r, safe_b), lambda r: _reduced_once(e, r, safe_b, form.signed))
    return e.select(valid, e.copysign(result, x), float("nan"))


def _reduced_once(e: Instructions, r: Word, b: Word, signed: DType) -> Word:
    """r less a multiple of b, so that its quotient by b loses up to 20 bits."""
    form = format_of(r)
    exponent_r = e.lshr(e.bits(r, signed), form.mantissa)
    subnormal = e.lt(e.bits(b, signed), 1 << form.mantissa)
    normal_b = e.select(subnormal, e.mul(b, float(1 << form.mantissa)), b)
    exponent_b = e.lshr(e.bits(normal_b, signed), form.mantissa)
    exponent_b = e.select(subnormal, e.sub(exponent_b, form.mantissa), exponent_b)
    room = 20 if form is SINGLE else 48
    excess = e.sub(e.sub(exponent_r, exponent_b), room)
    excess = e.select(e.lt(excess, 0), 0, excess)
    half = e.lshr(excess, 1)
    large = e.mul(e.mul(b, power_of_two(e, half, b)), power_of_two(e, e.sub(excess, half), b))
    quotient = e.trunc(e.div(r, large))
    rest = e.fma(e.neg(quotient), large, r)
    return e.select(e.lt(rest, 0.0), e.add(rest, large), rest)
