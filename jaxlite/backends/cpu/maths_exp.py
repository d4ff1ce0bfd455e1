"""exp, exp2, expm1 and what follows from them: sinh, cosh, tanh.

exp(x) = 2^k (1 + r + r^2 P(r)), k = round(x / log 2), r = x - k log 2, |r| <= log(2) / 2.
"""

from __future__ import annotations

from jaxlite.backends.cpu import coefficients as c
from jaxlite.backends.cpu.instructions import Instructions
from jaxlite.backends.cpu.maths_common import (
    clamp,
    format_of,
    odd_polynomial,
    pick,
    power_of_two,
    scale,
)
from jaxlite.backends.cpu.words import F32, Word

# Below the first exp is 0, above the second it is infinite, in float32 and float64.
_EXP_RANGE = {"32": (-104.0, 89.0), "64": (-746.0, 710.0)}
_EXP2_RANGE = {"32": (-151.0, 129.0), "64": (-1076.0, 1025.0)}


def reduce(e: Instructions, x: Word) -> tuple[Word, Word, Word]:
    """(r, k, k as a float): x = k log(2) + r. `x` lies within the range of exp."""
    high, low = pick(x, c.LOG2_32, c.LOG2_64)
    k = e.round_even(e.mul(x, pick(x, c.LOG2_E_32, c.LOG2_E_64)[0]))
    r = e.fma(k, -low, e.fma(k, -high, x))
    return r, e.integer_of(k, format_of(x).signed), k


def exp_of_reduced(e: Instructions, r: Word) -> Word:
    """exp(r) - 1 = r + r^2 P(r)."""
    p = e.polynomial(r, pick(r, c.EXP_32, c.EXP_64))
    return e.fma(e.mul(r, r), p, r)


def exp_shifted(e: Instructions, x: Word, shift: int) -> Word:
    """exp(x) * 2^shift, without overflow between."""
    low, high = _EXP_RANGE[format_of(x).name]
    r, k, _ = reduce(e, clamp(e, x, low, high - shift))
    return scale(e, e.add(1.0, exp_of_reduced(e, r)), e.add(k, shift) if shift else k)


def exp(e: Instructions, x: Word) -> Word:
    """e^x."""
    return exp_shifted(e, x, 0)


def exp2(e: Instructions, x: Word) -> Word:
    """2^x: the fraction of x, exact, times log(2) goes through exp's polynomial."""
    low, high = _EXP2_RANGE[format_of(x).name]
    x = clamp(e, x, low, high)
    k = e.round_even(x)
    fraction = e.sub(x, k)
    log2 = 0.6931471805599453
    r = e.mul(fraction, log2)
    rest = e.fma(fraction, log2, e.neg(r))  # what rounding r lost
    if x.dtype == F32:
        rest = e.fma(fraction, log2 - 0.6931471824645996, rest)
    value = e.add(1.0, e.add(exp_of_reduced(e, r), rest))
    return scale(e, value, e.integer_of(k, format_of(x).signed))


def expm1(e: Instructions, x: Word) -> Word:
    """e^x - 1 = 2^k q + (2^k - 1), q = exp(r) - 1; halved between, so that k = 128 fits."""
    low, high = _EXP_RANGE[format_of(x).name]
    tiny = -18.0 if x.dtype == F32 else -40.0
    r, k, _ = reduce(e, clamp(e, x, max(low, tiny), high))
    half = power_of_two(e, e.sub(k, 1), x)
    q = exp_of_reduced(e, r)
    value = e.mul(2.0, e.fma(q, half, e.sub(half, 0.5)))
    value = e.select(e.eq(k, 0), q, value)
    return e.select(e.eq(x, 0.0), x, value)


def sinh(e: Instructions, x: Word) -> Word:
    """x + x^3 P(x^2) below 1, else (E - 1/4E) with E = exp(|x|) / 2."""
    magnitude = e.abs(x)
    half = exp_shifted(e, magnitude, -1)
    large = e.copysign(e.sub(half, e.div(0.25, half)), x)
    z = e.mul(x, x)
    small = odd_polynomial(e, x, z, pick(x, c.SINH_32, c.SINH_64))
    return e.select(e.lt(magnitude, 1.0), small, large)


def cosh(e: Instructions, x: Word) -> Word:
    """E + 1/4E with E = exp(|x|) / 2."""
    half = exp_shifted(e, e.abs(x), -1)
    return e.add(half, e.div(0.25, half))


def tanh(e: Instructions, x: Word) -> Word:
    """x + x^3 P(x^2) below 0.625, else 1 - 2 / (exp(2|x|) + 1)."""
    magnitude = e.abs(x)
    limit = 10.0 if x.dtype == F32 else 22.0
    # Within +-limit exp needs no care for overflow or subnormals: one factor.
    r, k, _ = reduce(e, e.minimum(2.0 * limit, e.add(magnitude, magnitude)))
    growth = power_of_two(e, k, x)
    exponential = e.fma(exp_of_reduced(e, r), growth, growth)
    large = e.sub(1.0, e.div(2.0, e.add(exponential, 1.0)))
    z = e.mul(x, x)
    small = odd_polynomial(e, magnitude, z, pick(x, c.TANH_32, c.TANH_64))
    return e.copysign(e.select(e.lt(magnitude, 0.625), small, large), x)
