"""log, log2, log1p and what follows from them: asinh, acosh, atanh.

x = 2^k m with sqrt(1/2) <= m < sqrt(2), f = m - 1, log(x) = k log(2) + log(1 + f).
"""

from __future__ import annotations

from jaxlite.backends.cpu import coefficients as c
from jaxlite.backends.cpu.instructions import Instructions
from jaxlite.backends.cpu.maths_common import (
    INF,
    NAN,
    format_of,
    odd_polynomial,
    pick,
    power_of_two,
)
from jaxlite.backends.cpu.words import F32, Word


def split(e: Instructions, x: Word) -> tuple[Word, Word]:
    """(k, m) of a positive x, subnormals included; k an integer of x's size."""
    form = format_of(x)
    tiny = e.lt(x, form.smallest_normal)
    bits = e.bits(e.select(tiny, e.mul(x, 2.0 ** (form.mantissa + 1)), x), form.signed)
    # Counting from sqrt(1/2) makes the exponent the k that we want.
    origin = 0x3F3504F3 if form.name == "32" else 0x3FE6A09E667F3BCD
    offset = e.sub(bits, origin)
    k = e.ashr(offset, form.mantissa)
    m = e.bits(e.add(e.and_(offset, (1 << form.mantissa) - 1), origin), x.dtype)
    return e.select(tiny, e.sub(k, form.mantissa + 1), k), m


def log1p_of_reduced(e: Instructions, f: Word) -> tuple[Word, Word]:
    """log(1 + f) as the pair (f, rest)."""
    half_square = e.mul(e.mul(f, 0.5), f)
    if f.dtype == F32:  # f - f^2/2 + f^3 P(f)
        cube = e.mul(e.mul(f, f), f)
        return f, e.fma(cube, e.polynomial(f, c.LOG_32), e.neg(half_square))
    s = e.div(f, e.add(2.0, f))  # log(1 + f) = f - (f^2/2 - s (f^2/2 + s^2 P(s^2)))
    z = e.mul(s, s)
    p = e.mul(z, e.polynomial(z, c.LOG_64))
    return f, e.fma(s, e.add(half_square, p), e.neg(half_square))


def join(e: Instructions, k: Word, f: Word, shift: int = 0) -> Word:
    """(k + shift) log(2) + log(1 + f)."""
    high, low = pick(f, c.LOG2_32, c.LOG2_64)
    exponent = e.float_of(e.add(k, shift) if shift else k, f.dtype)
    main, rest = log1p_of_reduced(e, f)
    return e.fma(exponent, high, e.add(main, e.fma(exponent, low, rest)))


def _specials(e: Instructions, x: Word, value: Word, pole: float = 0.0) -> Word:
    """log's values at the pole (-inf), below it (NaN), at infinity and for NaN."""
    value = e.select(e.lt(x, INF), value, x)  # inf, NaN
    value = e.select(e.eq(x, pole), -INF, value)
    return e.select(e.lt(x, pole), NAN, value)


def log_shifted(e: Instructions, x: Word, shift: int) -> Word:
    """log(x * 2^shift)."""
    k, m = split(e, x)
    return _specials(e, x, join(e, k, e.sub(m, 1.0), shift))


def log(e: Instructions, x: Word) -> Word:
    """The natural logarithm."""
    return log_shifted(e, x, 0)


def log2(e: Instructions, x: Word) -> Word:
    """k + log(m) / log(2), the quotient in two parts."""
    k, m = split(e, x)
    main, rest = log1p_of_reduced(e, e.sub(m, 1.0))
    natural = e.add(main, rest)
    lost = e.add(e.sub(main, natural), rest)
    high, low = pick(x, c.LOG2_E_32, c.LOG2_E_64)
    product = e.mul(natural, high)
    rounding = e.fma(natural, high, e.neg(product))
    tail = e.fma(lost, high, e.fma(natural, low, rounding))
    exponent = e.float_of(k, x.dtype)
    total = e.add(exponent, product)
    missing = e.add(e.sub(exponent, total), product)  # |k| >= |product| or k = 0
    return _specials(e, x, e.add(total, e.add(missing, tail)))


def log1p(e: Instructions, x: Word) -> Word:
    """log(1 + x): 1 + x chooses k, then f = x 2^-k + (2^-k - 1) is exact enough."""
    form = format_of(x)
    total = e.add(1.0, x)
    safe = e.select(e.gt(total, 0.0), e.select(e.lt(total, INF), total, 1.0), 1.0)
    k, m = split(e, safe)
    large = e.gt(k, form.mantissa + 2)  # adding 1 changes nothing
    shrink = power_of_two(e, e.neg(e.select(large, 0, k)), x)
    f = e.select(large, e.sub(m, 1.0), e.fma(x, shrink, e.sub(shrink, 1.0)))
    value = _specials(e, x, join(e, k, f), -1.0)
    return e.select(e.eq(x, 0.0), x, value)


def asinh(e: Instructions, x: Word) -> Word:
    """x + x^3 P(x^2) below 1/2; log1p(a + a^2 / (1 + sqrt(a^2 + 1))); log(2a) when huge."""
    a = e.abs(x)
    z = e.mul(x, x)
    small = odd_polynomial(e, a, z, pick(x, c.ASINH_32, c.ASINH_64))
    huge = e.gt(a, 1e9)
    medium = e.minimum(1e9, a)
    square = e.mul(medium, medium)
    root = e.sqrt(e.add(square, 1.0))
    middle = log1p(e, e.add(medium, e.div(square, e.add(1.0, root))))
    value = e.select(e.lt(a, 0.5), small, e.select(huge, log_shifted(e, a, 1), middle))
    return e.copysign(e.select(e.is_nan(x), x, value), x)


def acosh(e: Instructions, x: Word) -> Word:
    """log1p(t + sqrt(t^2 + 2t)) with t = x - 1; log(2x) when huge; NaN below 1."""
    t = e.sub(e.minimum(1e9, x), 1.0)
    root = e.sqrt(e.fma(t, t, e.add(t, t)))
    near = log1p(e, e.add(t, root))
    value = e.select(e.gt(x, 1e9), log_shifted(e, x, 1), near)
    return e.select(e.is_nan(x), x, e.select(e.lt(x, 1.0), NAN, value))


def atanh(e: Instructions, x: Word) -> Word:
    """log1p(2a / (1 - a)) / 2, below 1/2 as 2a + 2a a / (1 - a); infinite at +-1, NaN beyond."""
    a = e.abs(x)
    twice = e.add(a, a)
    small = e.lt(a, 0.5)
    quotient = e.div(e.select(small, e.mul(twice, a), twice), e.sub(1.0, a))
    value = e.mul(0.5, log1p(e, e.add(e.select(small, twice, 0.0), quotient)))
    value = e.select(e.eq(a, 1.0), INF, value)
    value = e.select(e.gt(a, 1.0), NAN, value)
    tiny = e.lt(a, 1e-4 if x.dtype == F32 else 1e-9)
    return e.copysign(e.select(tiny, a, value), x)
