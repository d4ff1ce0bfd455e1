"""Running sums and products along an axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jaxlite import lax
from jaxlite.core import dtypes
from jaxlite.core.avals import aval_of
from jaxlite.lax.elementwise.casts import convert
from jaxlite.numpy.promotion import array_operand, axis_of, refuse_out, user_dtype
from jaxlite.numpy.reductions import sum_dtype, without_nan
from jaxlite.numpy.shaping import ravel


def _cumulative(name: str, a: Any, axis: Any, dtype: Any, fold: Callable[[Any, int], Any]) -> Any:
    x = array_operand(name, a)
    if axis is None:
        x, axis = ravel(x), 0
    number = axis_of(axis, len(x.shape))
    wanted = user_dtype(dtype) if dtype is not None else sum_dtype(x.dtype, dtypes.is_bool(x.dtype))
    return fold(convert(x, wanted), number)


def cumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """Running sums along ``axis`` (None: flattened).

    >>> import jaxlite.numpy as jnp
    >>> cumsum(jnp.array([1, 2, 3]))
    Array([1, 3, 6], dtype=int32)
    """
    refuse_out("cumsum", out)
    return _cumulative("cumsum", a, axis, dtype, lax.cumsum)


def cumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """Running products along ``axis`` (None: flattened)."""
    refuse_out("cumprod", out)
    return _cumulative("cumprod", a, axis, dtype, lax.cumprod)


def nancumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """Running sums with NaN taken for 0."""
    return cumsum(without_nan(array_operand("nancumsum", a), 0), axis, dtype, out)


def nancumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """Running products with NaN taken for 1."""
    return cumprod(without_nan(array_operand("nancumprod", a), 1), axis, dtype, out)


def _with_initial(function: Any, name: str, x: Any, axis: Any, dtype: Any, initial: bool, identity: int) -> Any:
    value = array_operand(name, x)
    if axis is None:
        if len(value.shape) > 1:
            raise ValueError(
                f"The input array has rank {len(value.shape)}, however axis was not set to an explicit value. The "
                "axis argument is only optional for one-dimensional arrays."
            )
        axis = 0
    number = axis_of(axis, len(value.shape))
    out = function(value, number, dtype)
    if not initial:
        return out
    config = [(1, 0, 0) if d == number else (0, 0, 0) for d in range(len(value.shape))]
    return lax.pad(out, aval_of(out).dtype.type(identity), config)


def cumulative_sum(x: Any, /, *, axis: Any = None, dtype: Any = None, include_initial: bool = False) -> Any:
    """``cumsum``, with a leading 0 where ``include_initial``."""
    return _with_initial(cumsum, "cumulative_sum", x, axis, dtype, include_initial, 0)


def cumulative_prod(x: Any, /, *, axis: Any = None, dtype: Any = None, include_initial: bool = False) -> Any:
    """``cumprod``, with a leading 1 where ``include_initial``."""
    return _with_initial(cumprod, "cumulative_prod", x, axis, dtype, include_initial, 1)
