"""Sorting and searching in sorted values: ``sort``, ``argsort``, ``lexsort``, ``searchsorted``, ``digitize``,
``top_k``."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from jaxlite import lax
from jaxlite.core import dtypes
from jaxlite.core.avals import aval_of
from jaxlite.lax.elementwise.casts import convert
from jaxlite.numpy.arithmetic import add2
from jaxlite.numpy.promotion import array_operand, as_type, axis_of, common_type, expand_to, user_dtype
from jaxlite.numpy.shaping import ravel


def _unsupported(name: str, kind: Any, order: Any) -> None:
    if kind is not None and kind not in ("stable", "quicksort", "mergesort", "heapsort"):
        raise ValueError(f"{name}: kind={kind!r} is not known.")
    if order is not None:
        raise ValueError(f"'order' argument to {name} is not supported.")


def sort(
    a: Any, axis: Any = -1, *, kind: Any = None, order: Any = None, stable: bool = True, descending: bool = False
) -> Any:
    """The values along ``axis`` (None: flattened) in order, NaN last.

    >>> import jaxlite.numpy as jnp
    >>> sort(jnp.array([3, 1, 2]))
    Array([1, 2, 3], dtype=int32)
    """
    _unsupported("sort", kind, order)
    x = array_operand("sort", a)
    if axis is None:
        x, axis = ravel(x), 0
    number = axis_of(axis, len(x.shape))
    out = lax.sort(x, number, stable)
    return lax.rev(out, (number,)) if descending else out


def argsort(
    a: Any, axis: Any = -1, *, kind: Any = None, order: Any = None, stable: bool = True, descending: bool = False,
    dtype: Any = None,
) -> Any:  # fmt: skip
    """The positions that put the values along ``axis`` in order; equal ones keep theirs."""
    _unsupported("argsort", kind, order)
    x = array_operand("argsort", a)
    if axis is None:
        x, axis = ravel(x), 0
    number = axis_of(axis, len(x.shape))
    wanted = dtypes.canonicalize(np.int64) if dtype is None else user_dtype(dtype)
    places = lax.broadcasted_iota(wanted, x.shape, number)
    if descending:
        # Sorted backward and reversed, equal values stand in their order.
        x, places = lax.rev(x, (number,)), lax.rev(places, (number,))
    out = lax.sort((x, places), number, stable, 1)[1]
    return lax.rev(out, (number,)) if descending else out


def lexsort(keys: Any, axis: int = -1, *, batch_size: Any = 16) -> Any:
    """The positions that sort by several keys, the last one first."""
    arrays = [array_operand("lexsort", k) for k in keys]
    if not arrays:
        raise TypeError("need sequence of keys with len > 0 in lexsort")
    if len({a.shape for a in arrays}) > 1:
        raise ValueError("all keys need to be the same shape")
    if not arrays[0].shape:
        return convert(lax.full((), np.int32(0)), dtypes.canonicalize(np.int64))
    number = axis_of(axis, len(arrays[0].shape))
    places = lax.broadcasted_iota(dtypes.canonicalize(np.int64), arrays[0].shape, number)
    return lax.sort((*arrays[::-1], places), number, True, len(arrays))[-1]


def partition(a: Any, kth: int, axis: int = -1) -> Any:
    """Values with the ``kth`` smallest in its place, smaller ones before it: sorted."""
    x = array_operand("partition", a)
    number = axis_of(axis, len(x.shape))
    axis_of(kth, x.shape[number])  # raises where it is out of bounds
    return lax.sort(x, number)


def argpartition(a: Any, kth: int, axis: int = -1) -> Any:
    """The positions that ``partition`` puts the values in."""
    x = array_operand("argpartition", a)
    number = axis_of(axis, len(x.shape))
    axis_of(kth, x.shape[number])  # raises where it is out of bounds
    return argsort(x, number)


def top_k(a: Any, k: Any, /, *, axis: int = -1, mode: str = "largest", sorted: bool = True) -> tuple[Any, Any]:
    """The ``k`` largest (or smallest) values along ``axis``, and their positions."""
    from jaxlite.numpy.picking import take_along_axis

    if mode not in ("largest", "smallest"):
        raise ValueError(f"top_k: mode must be 'largest' or 'smallest', got {mode!r}")
    x = array_operand("top_k", a)
    number = axis_of(axis, len(x.shape))
    order = argsort(x, number, descending=mode == "largest")
    order = lax.slice_in_dim(order, 0, operator.index(k), 1, number)
    return take_along_axis(x, order, number), convert(order, np.dtype(np.int32))


SEARCHES = ("compare_all", "scan", "scan_unrolled", "sort")


def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None, *, method: Any = "scan") -> Any:
    """Where ``v`` belongs in sorted ``a``: before ("left") or after ("right") equal values.  Every ``method`` is
    bisection.

    >>> import jaxlite.numpy as jnp
    >>> searchsorted(jnp.array([1, 2, 3]), 2)
    Array(1, dtype=int32)
    """
    if method not in SEARCHES:
        raise ValueError(f"searchsorted: method must be one of {SEARCHES} (all give the same), got {method!r}.")
    if side not in ("left", "right"):
        raise ValueError(f"{side!r} is an invalid value for keyword 'side'. Expected one of ['left', 'right'].")
    x, wanted = array_operand("searchsorted", a), array_operand("searchsorted", v)
    if len(x.shape) != 1:
        raise ValueError(f"a should be 1-dimensional, got shape {x.shape}")
    if sorter is not None:
        x = x[array_operand("searchsorted", sorter)]
    dtype = common_type([aval_of(x), aval_of(wanted)])[0]
    x, wanted = as_type(x, dtype), as_type(wanted, dtype)
    return _bisect(x, wanted, side == "right")


def _bisect(x: Any, wanted: Any, after_equal: bool) -> Any:
    """Halves the interval of possible places as often as its length asks."""
    shape = wanted.shape
    low, high = lax.full(shape, np.int32(0)), lax.full(shape, np.int32(x.shape[0]))
    for _ in range(x.shape[0].bit_length()):
        middle = lax.div(add2(low, high), np.int32(2))
        found = x[lax.min(middle, lax.full(shape, np.int32(max(x.shape[0] - 1, 0))))]
        left = _at_or_before(found, wanted, after_equal)
        going = lax.lt(low, high)
        low = lax.select(lax.bitwise_and(left, going), lax.add(middle, np.int32(1)), low)
        high = lax.select(lax.bitwise_and(lax.bitwise_not(left), going), middle, high)
    return convert(low, dtypes.canonicalize(np.int32))


def _at_or_before(found: Any, wanted: Any, after_equal: bool) -> Any:
    """Whether the wanted value belongs behind the one found; NaN is larger than all else."""
    before = lax.le(found, wanted) if after_equal else lax.lt(found, wanted)
    if not dtypes.is_float(aval_of(found).dtype):
        return before
    found_nan, wanted_nan = lax.ne(found, found), lax.ne(wanted, wanted)
    behind = wanted_nan if after_equal else lax.bitwise_and(wanted_nan, lax.bitwise_not(found_nan))
    return lax.bitwise_or(before, behind)


def digitize(x: Any, bins: Any, right: bool = False, *, method: Any = None) -> Any:
    """Which bin each value falls in; bins may also descend."""
    values, edges = array_operand("digitize", x), array_operand("digitize", bins)
    if len(edges.shape) != 1:
        raise ValueError(f"digitize: bins must be a 1-dimensional array; got shape {edges.shape}")
    if not edges.shape[0]:
        return lax.full(values.shape, np.int32(0))
    side = "left" if right else "right"
    method = "scan" if method is None else method
    up = searchsorted(edges, values, side, method=method)
    if edges.shape[0] == 1:
        return up
    down = lax.sub(
        np.int32(edges.shape[0]), searchsorted(lax.rev(edges, (0,)), values, "left" if side == "right" else "right")
    )
    last = edges.shape[0] - 1
    ascends = lax.ge(lax.index_in_dim(edges, last, 0, False), lax.index_in_dim(edges, 0, 0, False))
    return lax.select(expand_to(ascends, up.shape), up, down)
