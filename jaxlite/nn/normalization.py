"""Softmax and its kin: exponentials of differences from the largest, so that nothing overflows."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxlite import lax
from jaxlite.core import dtypes
from jaxlite.lax.elementwise.casts import convert
from jaxlite.numpy.arithmetic import absolute, add2, multiply2, subtract2
from jaxlite.numpy.logic import isfinite, not_equal
from jaxlite.numpy.promotion import array_operand, axes_of, constant_like, expand_to, promoted_float
from jaxlite.numpy.reductions import keep_axes, max_, sum_
from jaxlite.numpy.selection import clip, where as choose
from jaxlite.numpy.statistics import _count, mean as mean_of


def _largest(x: Any, axis: Any, where: Any) -> Any:
    return lax.stop_gradient(max_(x, axis, keepdims=True, initial=-np.inf, where=where))


def softmax(x: Any, axis: Any = -1, where: Any = None) -> Any:
    """``exp(x)`` divided by its sum over ``axis``; elements outside ``where`` give 0.

    >>> import jaxlite.numpy as jnp
    >>> softmax(jnp.zeros(2))
    Array([0.5, 0.5], dtype=float32)
    """
    (value,) = promoted_float("softmax", array_operand("softmax", x))
    safe = value if where is None else choose(where, value, -np.inf)
    grown = lax.exp(subtract2(safe, _largest(value, axis, where)))
    total = sum_(grown, axis, keepdims=True, where=where)
    result = lax.div(grown, expand_to(total, grown.shape))
    return result if where is None else choose(where, result, 0)


def log_softmax(x: Any, axis: Any = -1, where: Any = None) -> Any:
    """The logarithm of ``softmax``; elements outside ``where`` give -inf."""
    (value,) = promoted_float("log_softmax", array_operand("log_softmax", x))
    safe = value if where is None else choose(where, value, -np.inf)
    shifted = subtract2(safe, _largest(value, axis, where))
    total = lax.log(sum_(lax.exp(shifted), axis, keepdims=True, where=where))
    result = subtract2(shifted, total)
    return result if where is None else choose(where, result, -np.inf)


def logsumexp(
    a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False, where: Any = None
) -> Any:
    """``log(sum(b * exp(a)))``; with ``return_sign``, of the size, and the sign beside it."""
    if where is not None:
        a = choose(where, a, 0)
    if b is None:
        (x,) = promoted_float("logsumexp", a)
        x, weights = array_operand("logsumexp", x), None
    else:
        x, weights = (array_operand("logsumexp", v) for v in promoted_float("logsumexp", a, b))
        x = choose(not_equal(weights, 0), x, -np.inf)
    axes = axes_of(axis, len(x.shape))
    top = max_(x, axes, initial=-np.inf, where=where)
    top = lax.stop_gradient(lax.select(isfinite(top), top, lax.full_like(top, 0)))
    grown = lax.exp(subtract2(x, keep_axes(top, x.shape, axes)))
    if weights is not None:
        grown = multiply2(grown, weights)
    total = sum_(grown, axes, where=where)
    sign = lax.sign(total)
    # Where every term vanishes the result is -inf, and its derivative 0 rather than 0 / 0.
    nothing = lax.eq(total, constant_like(total, 0))
    size = lax.select(nothing, lax.full_like(total, 1), absolute(total))
    out = lax.select(nothing, lax.full_like(total, -np.inf), lax.add(lax.log(size), top))
    if weights is not None and not return_sign:
        out = lax.select(lax.lt(sign, constant_like(sign, 0)), lax.full_like(out, np.nan), out)
    if keepdims:
        out, sign = keep_axes(out, x.shape, axes), keep_axes(sign, x.shape, axes)
    return (out, sign) if return_sign else out


def logmeanexp(x: Any, axis: Any = None, where: Any = None, keepdims: bool = False) -> Any:
    """``log(mean(exp(x)))``."""
    total = logsumexp(x, axis, keepdims=keepdims, where=where)
    count = _count(array_operand("logmeanexp", x), axis, where, keepdims, total.dtype)
    return subtract2(total, lax.log(count))


def standardize(
    x: Any, axis: Any = -1, mean: Any = None, variance: Any = None, epsilon: Any = 1e-05, where: Any = None, *,
    algorithm: str = "fast",
) -> Any:  # fmt: skip
    """``(x - mean) / sqrt(variance + epsilon)``, both over ``axis`` unless given."""
    if algorithm not in ("fast", "stable"):
        raise ValueError(f"Unknown algorithm '{algorithm}'. Expected 'fast' or 'stable'.")
    value = array_operand("standardize", x)
    if not dtypes.is_inexact(value.dtype):
        value = convert(value, dtypes.canonicalize(np.float32))
    centre = mean_of(value, axis, keepdims=True, where=where) if mean is None else mean
    if variance is None and algorithm == "stable":
        variance = mean_of(lax.square(subtract2(value, centre)), axis, keepdims=True, where=where)
    elif variance is None:
        squares = mean_of(lax.square(value), axis, keepdims=True, where=where)
        variance = clip(subtract2(squares, multiply2(centre, centre)), 0)
    return multiply2(subtract2(value, centre), lax.rsqrt(add2(variance, epsilon)))
