"""pow and cbrt.

pow(x, y) = exp(y log |x|) with the logarithm as a pair of float64, at most 2 ulp; float32 is
computed in float64. The table of special values is IEEE's.
"""

from __future__ import annotations

from jaxlite.backends.cpu import coefficients as c
from jaxlite.backends.cpu.instructions import Instructions
from jaxlite.backends.cpu.maths_common import (
    INF,
    NAN,
    clamp,
    format_of,
    scale,
    two_product,
    two_sum,
)
from jaxlite.backends.cpu.maths_exp import exp_of_reduced, reduce
from jaxlite.backends.cpu.maths_log import log, split
from jaxlite.backends.cpu.words import F32, F64, I64, U32, U64, Word


def power(e: Instructions, x: Word, y: Word) -> Word:
    """x ** y."""
    x, y = e.align(x, y)[0]
    if x.dtype == F32:
        wide = power_of_magnitude_single(e, e.cast("fpext", x, F64), e.cast("fpext", y, F64))
        return _with_sign_and_specials(e, x, y, e.cast("fptrunc", wide, F32))
    return _with_sign_and_specials(e, x, y, _power_of_magnitude(e, e.abs(x), y))


def power_of_magnitude_single(e: Instructions, x: Word, y: Word) -> Word:
    """|x| ** y in float64, accurate enough for float32."""
    logarithm = log(e, e.abs(x))
    t = clamp(e, e.mul(y, logarithm), -746.0, 710.0)
    r, k, _ = reduce(e, t)
    return scale(e, e.add(1.0, exp_of_reduced(e, r)), k)


def _log_pair(e: Instructions, x: Word) -> tuple[Word, Word]:
    """log(x) of a positive finite x as a pair, to about 2^-65.

    log(m) = 2s + (2/3) s^3 + s^5 Q(s^2), s = f / (2 + f): s and (2/3) s^3 as pairs.
    """
    k, m = split(e, x)
    f = e.sub(m, 1.0)
    under, under_low = two_sum(e, 2.0, f)
    s = e.div(f, under)
    rest = e.fma(e.neg(s), under_low, e.fma(e.neg(s), under, f))
    s_low = e.div(rest, under)
    z, z_low = two_product(e, s, s)
    z_low = e.fma(e.add(s, s), s_low, z_low)
    cube, cube_low = two_product(e, z, s)
    cube_low = e.add(cube_low, e.fma(z, s_low, e.mul(z_low, s)))
    third, third_low = two_product(e, cube, 2.0 / 3.0)
    third_low = e.add(third_low, e.fma(cube, 2.0 / 3.0 * 2.0**-54, e.mul(cube_low, 2.0 / 3.0)))
    fifth = e.mul(e.mul(cube, z), e.polynomial(z, c.LOG_TAIL_64))
    log2, log2_low = c.LOG2_64
    exponent = e.float_of(k, F64)
    high, low = two_sum(e, e.mul(exponent, log2), e.add(s, s))
    low = e.add(low, e.add(e.mul(exponent, log2_low), e.add(s_low, s_low)))
    high, more = two_sum(e, high, third)
    low = e.add(e.add(low, more), e.add(third_low, fifth))
    return two_sum(e, high, low)


def _power_of_magnitude(e: Instructions, x: Word, y: Word) -> Word:
    """x ** y for positive finite x."""
    high, low = _log_pair(e, x)
    product, product_low = two_product(e, y, high)
    product_low = e.fma(y, low, product_low)
    inside = e.lt(e.abs(product), 800.0)
    product_low = e.select(inside, product_low, 0.0)
    product = clamp(e, product, -800.0, 800.0)
    r, k, _ = reduce(e, product)
    q = exp_of_reduced(e, r)
    grown = e.add(1.0, e.add(q, e.fma(product_low, q, product_low)))
    return scale(e, grown, k)


def _with_sign_and_specials(e: Instructions, x: Word, y: Word, magnitude: Word) -> Word:
    """IEEE's table: signs for odd y, zeros, infinities, NaN, 1 ** y and x ** 0."""
    form = format_of(x)
    a, b = e.abs(x), e.abs(y)
    integral = e.or_(e.eq(e.trunc(y), y), e.eq(b, INF))
    half = e.mul(y, 0.5)
    odd = e.and_(e.lt(b, 2.0 ** (form.mantissa + 1)), e.compare("ne", e.trunc(half), half))
    odd = e.and_(odd, integral)
    zero_or_infinite = e.or_(e.eq(a, 0.0), e.eq(a, INF))
    grows = e.compare("eq", e.gt(y, 0.0), e.eq(a, INF))
    limit = e.select(grows, INF, e.constant(0.0, x.dtype))
    value = e.select(zero_or_infinite, limit, magnitude)
    beyond = e.compare("eq", e.gt(y, 0.0), e.gt(a, 1.0))
    at_infinity = e.select(beyond, INF, e.constant(0.0, x.dtype))
    at_infinity = e.select(e.eq(a, 1.0), 1.0, at_infinity)
    value = e.select(e.eq(b, INF), at_infinity, value)
    negative = e.lt(e.bits(x, form.signed), 0)
    value = e.select(e.and_(negative, odd), e.neg(value), value)
    invalid = e.and_(e.lt(x, 0.0), e.and_(e.lt(a, INF), e.eq(integral, False)))
    invalid = e.or_(invalid, e.or_(e.is_nan(x), e.is_nan(y)))
    value = e.select(invalid, NAN, value)
    return e.select(e.or_(e.eq(y, 0.0), e.eq(x, 1.0)), 1.0, value)


def cbrt(e: Instructions, x: Word) -> Word:
    """The cube root: a third of the exponent to start, two steps of Halley's, one of Newton's."""
    form = format_of(x)
    a = e.abs(x)
    tiny = e.lt(a, form.smallest_normal)
    huge = e.gt(a, 2.0**100)  # its cubes below would overflow
    scaled = e.mul(a, e.select(tiny, 2.0**54, e.select(huge, 2.0**-54, e.constant(1.0, x.dtype))))
    if form.name == "32":
        start = e.bits(e.add(e.udiv(e.bits(scaled, U32), 3), 709958130), F32)
    else:
        upper = e.cast("trunc", e.lshr(e.bits(scaled, U64), 32), U32)
        third = e.cast("zext", e.add(e.udiv(upper, 3), 715094163), I64)
        start = e.bits(e.shl(third, 32), F64)
    t = start
    for _ in range(2):
        cube = e.mul(e.mul(t, t), t)
        t = e.mul(t, e.div(e.add(cube, e.add(scaled, scaled)), e.add(e.add(cube, cube), scaled)))
    square, square_low = two_product(e, t, t)
    excess = e.fma(square_low, t, e.fma(square, t, e.neg(scaled)))
    t = e.sub(t, e.div(excess, e.mul(3.0, square)))
    back = e.select(tiny, 2.0**-18, e.select(huge, 2.0**18, e.constant(1.0, x.dtype)))
    value = e.copysign(e.mul(t, back), x)
    unchanged = e.or_(e.eq(a, 0.0), e.compare("ge", a, INF, unordered=True))
    return e.select(unchanged, x, value)
