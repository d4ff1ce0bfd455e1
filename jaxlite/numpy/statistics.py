"""Mean, variance, standard deviation, weighted average, quantiles, covariance."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from jaxlite import lax
from jaxlite.core import dtypes
from jaxlite.core.avals import aval_of
from jaxlite.core.errors import refuse
from jaxlite.lax.convert import operand_of
from jaxlite.lax.elementwise.casts import convert
from jaxlite.lax.placed import placed
from jaxlite.numpy.arithmetic import _select, divide2, multiply2, subtract2
from jaxlite.numpy.promotion import array_operand, axes_of, constant_like, expand_to, refuse_out, to_float, user_dtype
from jaxlite.numpy.reductions import sum_


def _computing(dtype: Any, x: Any) -> tuple[Any, Any]:
    """The dtype of the result, and that of the sums behind it: at least 32 bits wide."""
    wanted = dtypes.canonicalize(to_float(x.dtype)) if dtype is None else user_dtype(dtype)
    return wanted, np.dtype(np.float32) if dtypes.is_narrow_float(wanted) else wanted


def _count(x: Any, axis: Any, where: Any, keepdims: bool, dtype: Any) -> Any:
    """How many elements go into each result."""
    axes = axes_of(axis, len(x.shape))
    if where is None:
        return dtype.type(math.prod(x.shape[d] for d in axes))
    return sum_(expand_to(array_operand("mean", where), x.shape), axis, dtype=dtype, keepdims=keepdims)


def mean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, *, where: Any = None
) -> Any:
    """The mean over ``axis`` (None: all axes).

    >>> import jaxlite.numpy as jnp
    >>> mean(jnp.arange(4))
    Array(1.5, dtype=float32)
    """
    refuse_out("mean", out)
    x = array_operand("mean", a)
    wanted, computing = _computing(dtype, x)
    total = sum_(convert(x, computing), axis, keepdims=keepdims, where=where)
    return convert(lax.div(total, _count(x, axis, where, keepdims, computing)), wanted)


def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, keepdims: bool = False) -> Any:
    """The weighted mean; with ``returned``, the sum of weights beside it."""
    x = array_operand("average", a)
    if weights is None:
        result = mean(x, axis, keepdims=keepdims)
        count = _count(x, axis, None, keepdims, aval_of(result).dtype)
        return (result, lax.full(result.shape, count)) if returned else result
    w = array_operand("average", weights)
    if w.shape != x.shape:
        if axis is None or not isinstance(axis, (int, np.integer)):
            raise ValueError("Axis must be specified when shapes of a and weights differ.")
        number = axes_of(axis, len(x.shape))[0]
        if w.shape != (x.shape[number],):
            raise ValueError(f"Length of weights {w.shape} not compatible with axis {axis} of shape {x.shape}.")
        w = lax.broadcast_in_dim(w, x.shape, (number,))
    total = sum_(w, axis, keepdims=keepdims)
    result = divide2(sum_(multiply2(x, w), axis, keepdims=keepdims), total)
    return (result, expand_to(total, result.shape)) if returned else result


def var(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: bool = False, *,
    where: Any = None, mean: Any = None, correction: Any = None,
) -> Any:  # fmt: skip
    """The variance over ``axis``: the mean squared distance from the mean, ``ddof`` taken from the count."""
    refuse_out("var", out)
    freedom = ddof if correction is None else correction
    x = array_operand("var", a)
    wanted, computing = _computing(dtype, x)
    x = convert(x, computing)
    centre = _mean(x, axis, keepdims=True, where=where) if mean is None else array_operand("var", mean)
    squares = lax.square(subtract2(x, centre))
    total = sum_(squares, axis, keepdims=keepdims, where=where)
    count = _count(x, axis, where, keepdims, computing)
    if isinstance(freedom, (int, float)) and where is None:
        count = computing.type(float(count) - freedom)
        result = lax.div(total, count) if count > 0 else lax.full_like(total, np.nan)
    else:
        count = lax.sub(count, convert(operand_of(freedom), computing))
        positive = lax.gt(count, constant_like(count, 0))
        result = _select(positive, lax.div(total, count), constant_like(count, np.nan))
    return convert(result, wanted)


_mean = mean


def std(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: bool = False, *,
    where: Any = None, mean: Any = None, correction: Any = None,
) -> Any:  # fmt: skip
    """The standard deviation over ``axis``: the square root of ``var``."""
    refuse_out("std", out)
    spread = var(a, axis, dtype, None, ddof, keepdims, where=where, mean=mean, correction=correction)
    return lax.sqrt(spread)


_METHODS = ("linear", "lower", "higher", "midpoint", "nearest")


def quantile(
    a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, method: str = "linear",
    keepdims: bool = False, *, weights: Any = None,
) -> Any:  # fmt: skip
    """The values below which a share ``q`` of the elements lies."""
    refuse("quantile", "overwrite_input", overwrite_input, False, "arrays are immutable")
    refuse_out("quantile", out)
    return _quantile(array_operand("quantile", a), array_operand("quantile", q), axis, method, keepdims, weights, False)


def _quantile(x: Any, q: Any, axis: Any, method: str, keepdims: bool, weights: Any, ignore_nan: bool) -> Any:
    if method not in _METHODS:
        raise ValueError(f"method can only be 'linear', 'lower', 'higher', 'midpoint', or 'nearest', got {method!r}")
    if weights is not None:
        raise NotImplementedError("quantile: weights= is not supported.")
    if len(q.shape) > 1:
        raise ValueError(f"q must be have rank <= 1, got shape {q.shape}")
    dtype = dtypes.canonicalize(to_float(x.dtype))
    x, q = convert(x, dtype), convert(q, dtype)
    shape = x.shape
    axes = axes_of(axis, len(shape))
    kept = [d for d in range(len(shape)) if d not in axes]
    x = lax.transpose(x, (*kept, *axes))
    n = math.prod(shape[d] for d in axes)
    x = lax.sort(lax.reshape(x, (*(shape[d] for d in kept), n)))
    out = _at_quantile(x, q, n, method, ignore_nan)
    if keepdims:
        out = lax.reshape(out, (*q.shape, *(1 if d in axes else m for d, m in enumerate(shape))))
    return out


def _at_quantile(x: Any, q: Any, n: int, method: str, ignore_nan: bool) -> Any:
    """Sorted values along the last axis, read at the places that ``q`` names; NaN is sorted last."""
    lead = x.shape[:-1]
    missing = lax.ne(x, x)
    valid = sum_(lax.bitwise_not(missing), -1, dtype=x.dtype, keepdims=True)
    last = lax.max(lax.sub(valid if ignore_nan else lax.full_like(valid, n), constant_like(x, 1)), constant_like(x, 0))
    flat_q = lax.reshape(q, (*q.shape, *(1,) * (len(lead) + 1)))
    places = multiply2(flat_q, lax.reshape(last, (*(1,) * len(q.shape), *last.shape)))
    below, above = lax.floor(places), lax.ceil(places)
    low, high = (_read(x, p) for p in (below, above))
    fraction = lax.sub(places, below)
    mixed = {
        "linear": lambda: lax.add(lax.mul(low, lax.sub(constant_like(x, 1), fraction)), lax.mul(high, fraction)),
        "lower": lambda: low,
        "higher": lambda: high,
        "midpoint": lambda: lax.mul(lax.add(low, high), constant_like(x, 0.5)),
        "nearest": lambda: lax.select(lax.lt(fraction, lax.full_like(fraction, 0.5)), low, high),
    }[method]()
    bad = lax.bitwise_not(lax.gt(valid, constant_like(x, 0))) if ignore_nan else lax.lt(valid, constant_like(x, n))
    bad = expand_to(lax.reshape(bad, (*(1,) * len(q.shape), *bad.shape)), mixed.shape)
    out = lax.select(bad, lax.full_like(mixed, np.nan), mixed)
    return lax.squeeze(out, (len(out.shape) - 1,))


def _read(x: Any, places: Any) -> Any:
    from jaxlite.numpy.picking import take_along_axis

    extra = len(places.shape) - len(x.shape)
    spread = lax.broadcast_in_dim(x, (*places.shape[:extra], *x.shape), tuple(range(extra, extra + len(x.shape))))
    return take_along_axis(spread, convert(places, np.dtype(np.int32)), -1)


@placed
def percentile(
    a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, method: str = "linear",
    keepdims: bool = False, *, weights: Any = None, out_sharding: Any = None,
) -> Any:  # fmt: skip
    """``quantile`` with ``q`` in percent."""
    refuse_out("percentile", out)
    share = divide2(array_operand("percentile", q), 100)
    return quantile(a, share, axis, None, overwrite_input, method, keepdims, weights=weights)


def median(a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: bool = False) -> Any:
    """The middle value (the mean of the two middle ones)."""
    refuse_out("median", out)
    return quantile(a, 0.5, axis, None, overwrite_input, "midpoint", keepdims)


def cov(
    m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: Any = None, fweights: Any = None,
    aweights: Any = None, dtype: Any = None,
) -> Any:  # fmt: skip
    """The covariance matrix of variables in rows (columns, unless ``rowvar``)."""
    if fweights is not None or aweights is not None:
        raise NotImplementedError("cov: fweights= and aweights= are not supported; repeat or scale the observations.")
    parts = [array_operand("cov", v) for v in (m, y) if v is not None]
    rows = []
    for part in parts:
        part = convert(part, to_float(part.dtype) if dtype is None else user_dtype(dtype))
        part = lax.reshape(part, (1, *part.shape)) if len(part.shape) < 2 else part
        rows.append(lax.transpose(part, (1, 0)) if not rowvar and part.shape[0] != 1 else part)
    x = lax.concatenate(rows, 0)
    freedom = (0 if bias else 1) if ddof is None else ddof
    centred = subtract2(x, mean(x, 1, keepdims=True))
    total = lax.dot_general(centred, centred, (((1,), (1,)), ((), ())))
    # As NumPy: too few observations for the degrees of freedom count as none left, so the result is NaN or infinite.
    out = lax.div(total, x.dtype.type(max(x.shape[1] - freedom, 0)))
    return lax.reshape(out, ()) if out.shape == (1, 1) else out


def corrcoef(x: Any, y: Any = None, rowvar: bool = True, dtype: Any = None) -> Any:
    """The matrix of correlation coefficients."""
    matrix = cov(x, y, rowvar, dtype=dtype)
    if not matrix.shape:
        return divide2(matrix, matrix)
    from jaxlite.numpy.triangles import diagonal

    spread = lax.sqrt(diagonal(matrix))
    n = spread.shape[0]
    ratio = lax.div(
        matrix, lax.mul(lax.broadcast_in_dim(spread, (n, n), (0,)), lax.broadcast_in_dim(spread, (n, n), (1,)))
    )
    return lax.clamp(ratio.dtype.type(-1), ratio, ratio.dtype.type(1))
