"""Reductions that leave NaN out: ``nansum``, ``nanmean``, ``nanmax`` and the like."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxlite import lax
from jaxlite.core import dtypes
from jaxlite.core.errors import refuse
from jaxlite.lax.elementwise.casts import convert
from jaxlite.numpy import reductions, statistics
from jaxlite.numpy.arithmetic import divide2
from jaxlite.numpy.logic import isnan, logical_and2
from jaxlite.numpy.promotion import array_operand, refuse_out
from jaxlite.numpy.reductions import highest, lowest, without_nan


def nansum(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None,
    where: Any = None,
) -> Any:  # fmt: skip
    """``sum`` with NaN taken for 0."""
    x = without_nan(array_operand("nansum", a), 0)
    return reductions.sum_(x, axis, dtype, out, keepdims, initial, where)


def nanprod(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None,
    where: Any = None,
) -> Any:  # fmt: skip
    """``prod`` with NaN taken for 1."""
    x = without_nan(array_operand("nanprod", a), 1)
    return reductions.prod(x, axis, dtype, out, keepdims, initial, where)


def _extremum(
    name: str, reduce: Any, identity: Any, a: Any, axis: Any, keepdims: bool, initial: Any, where: Any
) -> Any:
    x = array_operand(name, a)
    found = reduce(without_nan(x, identity(x.dtype)), axis, None, keepdims, initial, where)
    if not dtypes.is_inexact(x.dtype) or initial is not None:
        return found
    none = reductions.all_(isnan(x), axis, keepdims=keepdims, where=where)
    return lax.select(none, lax.full_like(found, np.nan), found)


def nanmax(
    a: Any, axis: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Any:
    """The largest that is not NaN."""
    refuse_out("nanmax", out)
    return _extremum("nanmax", reductions.max_, lowest, a, axis, keepdims, initial, where)


def nanmin(
    a: Any, axis: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Any:
    """The smallest that is not NaN."""
    refuse_out("nanmin", out)
    return _extremum("nanmin", reductions.min_, highest, a, axis, keepdims, initial, where)


def _present(x: Any, where: Any) -> Any:
    there = lax.bitwise_not(isnan(x))
    return there if where is None else logical_and2(there, where)


def nanmean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, where: Any = None
) -> Any:
    """The mean of what is not NaN."""
    refuse_out("nanmean", out)
    x = array_operand("nanmean", a)
    if not dtypes.is_inexact(x.dtype):
        return statistics.mean(x, axis, dtype, None, keepdims, where=where)
    wanted = x.dtype if dtype is None else dtype
    count = reductions.sum_(_present(x, where), axis, np.int32, keepdims=keepdims)
    total = nansum(x, axis, wanted, None, keepdims, where=where)
    return convert(divide2(total, convert(count, total.dtype)), total.dtype)


def nanvar(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: bool = False,
    where: Any = None, mean: Any = None,
) -> Any:  # fmt: skip
    """The variance of what is not NaN."""
    refuse_out("nanvar", out)
    x = array_operand("nanvar", a)
    if not dtypes.is_inexact(x.dtype):
        return statistics.var(x, axis, dtype, None, ddof, keepdims, where=where, mean=mean)
    there = _present(x, where)
    safe = lax.select(there, x, lax.full_like(x, 0))
    return statistics.var(safe, axis, dtype, None, ddof, keepdims, where=there, mean=mean)


def nanstd(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: bool = False,
    where: Any = None, mean: Any = None,
) -> Any:  # fmt: skip
    """The standard deviation of what is not NaN."""
    refuse_out("nanstd", out)
    return lax.sqrt(nanvar(a, axis, dtype, None, ddof, keepdims, where, mean))


def _place(name: str, place: Any, instead: Any, a: Any, axis: Any, keepdims: Any) -> Any:
    x = array_operand(name, a)
    found = place(without_nan(x, instead), axis, None, keepdims)
    if not dtypes.is_inexact(x.dtype):
        return found
    none = reductions.all_(isnan(x), axis, keepdims=bool(keepdims))
    return lax.select(none, lax.full_like(found, -1), found)


def nanargmax(a: Any, axis: Any = None, out: Any = None, keepdims: Any = None) -> Any:
    """The place of the first largest that is not NaN, -1 where all are."""
    refuse_out("nanargmax", out)
    return _place("nanargmax", reductions.argmax, -np.inf, a, axis, keepdims)


def nanargmin(a: Any, axis: Any = None, out: Any = None, keepdims: Any = None) -> Any:
    """The place of the first smallest that is not NaN, -1 where all are."""
    refuse_out("nanargmin", out)
    return _place("nanargmin", reductions.argmin, np.inf, a, axis, keepdims)


def nanquantile(
    a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, method: str = "linear",
    keepdims: bool = False, *, weights: Any = None,
) -> Any:  # fmt: skip
    """``quantile`` of what is not NaN."""
    refuse("nanquantile", "overwrite_input", overwrite_input, False, "arrays are immutable")
    refuse_out("nanquantile", out)
    x, share = array_operand("nanquantile", a), array_operand("nanquantile", q)
    return statistics._quantile(x, share, axis, method, keepdims, weights, True)


def nanpercentile(
    a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, method: str = "linear",
    keepdims: bool = False, *, weights: Any = None,
) -> Any:  # fmt: skip
    """``percentile`` of what is not NaN."""
    refuse("nanpercentile", "overwrite_input", overwrite_input, False, "arrays are immutable")
    refuse_out("nanpercentile", out)
    return nanquantile(
        a, divide2(array_operand("nanpercentile", q), 100), axis, None, False, method, keepdims, weights=weights
    )


def nanmedian(a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: bool = False) -> Any:
    """``median`` of what is not NaN."""
    refuse("nanmedian", "overwrite_input", overwrite_input, False, "arrays are immutable")
    refuse_out("nanmedian", out)
    return nanquantile(a, 0.5, axis, None, False, "midpoint", keepdims)
