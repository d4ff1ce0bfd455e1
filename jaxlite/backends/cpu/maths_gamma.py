"""lgamma and digamma: Stirling's series from 8 upwards, the recurrence below, reflection below 1/2.

float32 is computed in float64. In float64 the error is at most 4 ulp of max(1, |result|): near the
zeros (lgamma at 1 and 2, digamma at 1.46...) it is absolute, as JAX's is.
"""

from __future__ import annotations

from jaxlite.backends.cpu import coefficients as c
from jaxlite.backends.cpu.instructions import Instructions
from jaxlite.backends.cpu.maths_common import INF, NAN
from jaxlite.backends.cpu.maths_log import log
from jaxlite.backends.cpu.maths_trig import sin_common, tan_common
from jaxlite.backends.cpu.words import F32, F64, Word

_HALF_LOG_2PI = 0.9189385332046728
_PI = 3.141592653589793
_LIMIT = 8


def lgamma(e: Instructions, x: Word) -> Word:
    """log |gamma(x)|."""
    if x.dtype == F32:
        return e.cast("fptrunc", lgamma(e, e.cast("fpext", x, F64)), F32)
    mirror = e.lt(x, 0.5)
    y = e.select(mirror, e.sub(1.0, x), x)
    positive = _lgamma_positive(e, y)
    distance = _distance_to_integer(e, x)
    reflected = e.sub(log(e, e.div(_PI, e.abs(sin_common(e, e.mul(_PI, distance))))), positive)
    value = e.select(mirror, reflected, positive)
    pole = e.and_(e.le(x, 0.0), e.eq(distance, 0.0))
    value = e.select(e.or_(pole, e.eq(e.abs(x), INF)), INF, value)
    value = e.select(e.or_(e.eq(x, 1.0), e.eq(x, 2.0)), 0.0, value)
    tiny = e.lt(e.abs(x), 1e-300)  # -log |x|
    return e.select(tiny, e.neg(log(e, e.abs(x))), value)


def _distance_to_integer(e: Instructions, x: Word) -> Word:
    """x less the nearest integer."""
    return e.sub(x, e.round_even(x))


def _lgamma_positive(e: Instructions, x: Word) -> Word:
    """lgamma from 1/2 upwards: lgamma(x) = lgamma(x + n) - log(x (x + 1) ... (x + n - 1))."""
    product, y = e.constant(1.0, F64), x
    for _ in range(_LIMIT):
        low = e.lt(y, float(_LIMIT))
        product = e.mul(product, e.select(low, y, 1.0))
        y = e.select(low, e.add(y, 1.0), y)
    huge = e.gt(y, 1e17)
    inverse = e.div(1.0, y)
    series = e.mul(inverse, e.polynomial(e.mul(inverse, inverse), c.STIRLING_64))
    log_y = log(e, y)
    main = e.fma(e.sub(y, 0.5), log_y, e.neg(y))
    large = e.add(main, e.add(_HALF_LOG_2PI, series))
    large = e.select(huge, e.mul(y, e.sub(log_y, 1.0)), large)
    return e.select(e.lt(x, float(_LIMIT)), e.sub(large, log(e, product)), large)


def digamma(e: Instructions, x: Word) -> Word:
    """The derivative of lgamma; -inf at 0 and NaN at the negative integers, as JAX has it."""
    if x.dtype == F32:
        return e.cast("fptrunc", digamma(e, e.cast("fpext", x, F64)), F32)
    mirror = e.lt(x, 0.5)
    y = e.select(mirror, e.sub(1.0, x), x)
    shift = e.constant(0.0, F64)
    for _ in range(_LIMIT):
        low = e.lt(y, float(_LIMIT))
        shift = e.add(shift, e.select(low, e.div(1.0, y), 0.0))
        y = e.select(low, e.add(y, 1.0), y)
    inverse = e.div(1.0, y)
    w = e.mul(inverse, inverse)
    tail = e.fma(w, e.polynomial(w, c.DIGAMMA_64), e.mul(0.5, inverse))
    positive = e.sub(e.sub(log(e, y), tail), shift)
    distance = _distance_to_integer(e, x)
    reflected = e.sub(positive, e.div(_PI, tan_common(e, e.mul(_PI, distance))))
    value = e.select(mirror, reflected, positive)
    pole = e.and_(e.le(x, 0.0), e.eq(distance, 0.0))
    return e.select(e.eq(x, 0.0), -INF, e.select(pole, NAN, value))
