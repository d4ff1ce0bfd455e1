"""sin, cos, tan and their inverses.

x = k pi/2 + r, |r| <= pi/4: by three parts of pi/2 for common arguments, and by the binary digits
of 2/pi (`huge_reduction`) behind one branch for huge ones. r is the pair (high, low).
"""

from __future__ import annotations

from jaxlite.backends.cpu import coefficients as c
from jaxlite.backends.cpu.instructions import Instructions, Operand
from jaxlite.backends.cpu.maths_common import (
    INF,
    NAN,
    format_of,
    pick,
    two_difference,
    two_product,
)
from jaxlite.backends.cpu.maths_huge import huge_reduction
from jaxlite.backends.cpu.words import I32, Word

# Up to here the three parts of pi/2 are enough.
_COMMON = {"32": 2.0**16, "64": 2.0**28}


def reduce_common(e: Instructions, x: Word) -> tuple[Word, Word, Word]:
    """(high, low, k): x = k pi/2 + high + low, for x that is not huge. k: int32, modulo 4."""
    first, second, third = pick(x, c.HALF_PI_32, c.HALF_PI_64)
    k = e.round_even(e.mul(x, 0.6366197723675814))
    exact = e.fma(k, -first, x)
    product, product_low = two_product(e, k, second)
    near, lost = two_difference(e, exact, product)
    rest = e.fma(k, -third, e.sub(lost, product_low))
    high = e.add(near, rest)
    return high, e.add(e.sub(near, high), rest), e.integer_of(k, I32)


def _reduce(e: Instructions, x: Word) -> tuple[Word, Word, Word]:
    """The same for every x; infinities and NaN give NaN."""
    limit = _COMMON[format_of(x).name]
    usual = reduce_common(e, e.select(e.lt(e.abs(x), limit), x, 0.0))

    def rare() -> list[Word]:
        high, low, k = huge_reduction(e, x)
        return [e.select(e.lt(e.abs(x), INF), high, NAN), low, k]

    huge = e.compare("ge", e.abs(x), limit, unordered=True)
    high, low, k = e.when_any(huge, usual, rare)
    return high, low, k


def _sin_parts(e: Instructions, high: Word, low: Word) -> Word:
    """sin(high + low) - high."""
    z = e.mul(high, high)
    p = e.polynomial(z, pick(high, c.SIN_32, c.SIN_64))
    return e.fma(e.mul(z, high), p, e.fma(e.mul(z, -0.5), low, low))


def _cos_parts(e: Instructions, high: Word, low: Word) -> tuple[Word, Word]:
    """cos(high + low) as a pair whose first part is 1 - high^2 / 2, rounded."""
    z = e.mul(high, high)
    half = e.mul(z, 0.5)
    first = e.sub(1.0, half)
    lost = e.sub(e.sub(1.0, first), half)
    p = e.polynomial(z, pick(high, c.COS_32, c.COS_64))
    return first, e.add(lost, e.fma(e.mul(z, z), p, e.mul(e.neg(high), low)))


def _quadrant_value(e: Instructions, high: Word, low: Word, k: Word) -> Word:
    """sin(k pi/2 + high + low)."""
    sine = e.add(high, _sin_parts(e, high, low))
    cosine = e.add(*_cos_parts(e, high, low))
    value = e.select(e.eq(e.and_(k, 1), 0), sine, cosine)
    return e.select(e.eq(e.and_(k, 2), 0), value, e.neg(value))


def sin(e: Instructions, x: Word) -> Word:
    """The sine."""
    return e.select(e.eq(x, 0.0), x, _quadrant_value(e, *_reduce(e, x)))


def cos(e: Instructions, x: Word) -> Word:
    """The cosine: the sine a quarter turn later."""
    high, low, k = _reduce(e, x)
    return _quadrant_value(e, high, low, e.add(k, 1))


def tan(e: Instructions, x: Word) -> Word:
    """The tangent."""
    return e.select(e.eq(x, 0.0), x, _tan_value(e, *_reduce(e, x)))


def sin_common(e: Instructions, x: Word) -> Word:
    """The sine of an x that is known not to be huge."""
    return _quadrant_value(e, *reduce_common(e, x))


def tan_common(e: Instructions, x: Word) -> Word:
    """The tangent of an x that is known not to be huge."""
    return _tan_value(e, *reduce_common(e, x))


def _tan_value(e: Instructions, high: Word, low: Word, k: Word) -> Word:
    """Sine over cosine, or minus cosine over sine, the quotient corrected by what rounding lost."""
    rest = _sin_parts(e, high, low)
    sine = e.add(high, rest)
    sine_low = e.add(e.sub(high, sine), rest)
    first, second = _cos_parts(e, high, low)
    cosine = e.add(first, second)
    cosine_low = e.add(e.sub(first, cosine), second)
    even = e.eq(e.and_(k, 1), 0)
    top, top_low = e.select(even, sine, e.neg(cosine)), e.select(even, sine_low, e.neg(cosine_low))
    under, under_low = e.select(even, cosine, sine), e.select(even, cosine_low, sine_low)
    quotient = e.div(top, under)
    residue = e.fma(e.neg(quotient), under, top)
    residue = e.add(residue, e.fma(e.neg(quotient), under_low, top_low))
    return e.add(quotient, e.div(residue, under))


def _asin_rest(e: Instructions, z: Word) -> Word:
    """asin(x) / x - 1, z = x^2 <= 1/4."""
    return e.mul(z, e.polynomial(z, pick(z, c.ASIN_32, c.ASIN_64)))


def _root(e: Instructions, z: Word) -> tuple[Word, Word]:
    """sqrt(z) as a pair."""
    s = e.sqrt(z)
    low = e.div(e.fma(e.neg(s), s, z), e.add(s, s))
    return s, e.select(e.gt(s, 0.0), low, 0.0)


def asin(e: Instructions, x: Word) -> Word:
    """x + x z P(z), z = x^2; beyond 1/2: pi/2 - 2 asin(sqrt((1 - |x|) / 2)); beyond 1: NaN."""
    a = e.abs(x)
    high, low, _ = pick(x, c.HALF_PI_32, c.HALF_PI_64)
    large = e.gt(a, 0.5)
    z = e.select(large, e.mul(0.5, e.sub(1.0, a)), e.mul(a, a))
    rest = _asin_rest(e, z)
    small_value = e.fma(a, rest, a)
    s, s_low = _root(e, z)
    tail = e.sub(e.mul(2.0, e.fma(s, rest, s_low)), low)
    large_value = e.sub(e.sub(high, e.add(s, s)), tail)
    value = e.copysign(e.select(large, large_value, small_value), x)
    return e.select(e.compare("gt", a, 1.0, unordered=True), NAN, value)


def acos(e: Instructions, x: Word) -> Word:
    """pi/2 - asin(x) near 0; 2 asin(sqrt((1 - x) / 2)) near 1; pi less that near -1."""
    a = e.abs(x)
    high, low, _ = pick(x, c.HALF_PI_32, c.HALF_PI_64)
    large = e.gt(a, 0.5)
    z = e.select(large, e.mul(0.5, e.sub(1.0, a)), e.mul(a, a))
    rest = _asin_rest(e, z)
    middle = e.sub(high, e.sub(x, e.fma(e.neg(x), rest, low)))
    s, s_low = _root(e, z)
    tail = e.fma(s, rest, s_low)
    right = e.mul(2.0, e.add(s, tail))
    left = e.mul(2.0, e.sub(high, e.add(s, e.sub(tail, low))))
    value = e.select(large, e.select(e.lt(x, 0.0), left, right), middle)
    return e.select(e.compare("gt", a, 1.0, unordered=True), NAN, value)


def atan(e: Instructions, x: Word) -> Word:
    """atan2(x, 1)."""
    a = e.abs(x)
    value = _first_quadrant(e, a, e.constant(1.0, x.dtype))
    return e.select(e.is_nan(x), x, e.copysign(value, x))


def atan2(e: Instructions, y: Operand, x: Operand) -> Word:
    """The angle of the point (x, y), signed zeros and infinities as IEEE has them."""
    (y_word, x_word), _ = e.align(y, x)
    b, a = e.abs(y_word), e.abs(x_word)
    halve = e.gt(e.maximum(a, b), 2.0**100)  # so that sums stay finite
    factor = e.select(halve, 0.25, e.constant(1.0, x_word.dtype))
    both_infinite = e.and_(e.eq(a, INF), e.eq(b, INF))
    a = e.select(both_infinite, 1.0, e.mul(a, factor))
    b = e.select(both_infinite, 1.0, e.mul(b, factor))
    high, low, _ = pick(x_word, c.HALF_PI_32, c.HALF_PI_64)
    angle = _first_quadrant(e, b, a)
    negative = e.lt(e.bits(x_word, format_of(x_word).signed), 0)
    mirrored = e.sub(2.0 * high, e.sub(angle, 2.0 * low))
    value = e.copysign(e.select(negative, mirrored, angle), y_word)
    value = e.select(e.is_nan(y_word), y_word, value)
    return e.select(e.is_nan(x_word), x_word, value)


def _first_quadrant(e: Instructions, y: Word, x: Word) -> Word:
    """atan(y / x) for y, x >= 0 (0 / 0 is 0), in one division.

    t = min / max, above tan(pi/8) (min - max) / (min + max) + pi/4; then pi/2 - that if y > x.
    """
    high, low, _ = pick(y, c.HALF_PI_32, c.HALF_PI_64)
    steep = e.gt(y, x)
    small, large = e.select(steep, x, y), e.select(steep, y, x)
    diagonal = e.and_(e.gt(small, e.mul(large, 0.41421356)), e.lt(large, INF))
    top = e.select(diagonal, e.sub(small, large), small)
    under = e.select(diagonal, e.add(small, large), large)
    t = e.div(top, e.select(e.eq(under, 0.0), 1.0, under))
    z = e.mul(t, t)
    rest = e.mul(e.mul(t, z), e.polynomial(z, pick(y, c.ATAN_32, c.ATAN_64)))
    # base + t + rest, base 0 or pi/4; seen from pi/2 if steep
    base = e.select(diagonal, 0.5 * high, e.constant(0.0, y.dtype))
    base_low = e.select(diagonal, 0.5 * low, e.constant(0.0, y.dtype))
    turned_base = e.select(steep, e.sub(high, base), base)
    turned_low = e.select(steep, e.sub(low, base_low), base_low)
    t, rest = e.select(steep, e.neg(t), t), e.select(steep, e.neg(rest), rest)
    total = e.add(turned_base, t)
    lost = e.add(e.sub(turned_base, total), t)  # |base| >= |t| or base = 0
    tail = e.add(rest, e.add(lost, turned_low))
    plain = e.eq(turned_base, 0.0)
    return e.add(e.select(plain, t, total), e.select(plain, rest, tail))
