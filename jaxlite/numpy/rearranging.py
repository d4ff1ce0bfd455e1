"""Elements in another order, or repeated: ``flip``, ``roll``, ``rot90``, ``tile``, ``repeat``, ``resize``, ``diff``."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from jaxlite import lax
from jaxlite.core import dtypes
from jaxlite.core.array import Array
from jaxlite.core.avals import aval_of
from jaxlite.core.errors import ConcretizationTypeError
from jaxlite.core.trace import Tracer, concretization_message
from jaxlite.lax.elementwise.casts import convert
from jaxlite.lax.placed import placed
from jaxlite.numpy.arithmetic import remainder, subtract2
from jaxlite.numpy.joining import concatenate, joined
from jaxlite.numpy.logic import not_equal
from jaxlite.numpy.promotion import array_operand, axes_of, axis_of
from jaxlite.numpy.shaping import moveaxis, ravel


def flip(m: Any, axis: Any = None) -> Any:
    """The order along ``axis`` (None: all axes) reversed."""
    x = array_operand("flip", m)
    axes = axes_of(axis, len(x.shape))
    return lax.rev(x, axes) if axes else x


def fliplr(m: Any) -> Any:
    """The order along the second axis reversed."""
    return flip(m, 1)


def flipud(m: Any) -> Any:
    """The order along the first axis reversed."""
    return flip(m, 0)


def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Any:
    """Turned by ``k`` quarter turns in the plane of two axes."""
    x = array_operand("rot90", m)
    first, second = (axis_of(d, len(x.shape)) for d in axes)
    if first == second:
        raise ValueError(f"Axes must be different, got {tuple(axes)}")
    order = list(range(len(x.shape)))
    order[first], order[second] = second, first
    turned = {
        0: lambda: x,
        1: lambda: lax.transpose(lax.rev(x, (second,)), order),
        2: lambda: lax.rev(x, (first, second)),
        3: lambda: lax.rev(lax.transpose(x, order), (second,)),
    }
    return turned[k % 4]()


def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    """Elements moved by ``shift`` along ``axis``, those that fall off coming in at the other end.

    >>> import jaxlite.numpy as jnp
    >>> roll(jnp.arange(4), 1)
    Array([3, 0, 1, 2], dtype=int32)
    """
    x = array_operand("roll", a)
    if axis is None:
        return lax.reshape(roll(ravel(x), shift, 0), x.shape)
    axes = [axis_of(d, len(x.shape)) for d in (axis if isinstance(axis, (tuple, list)) else (axis,))]
    shifts = _shifts(shift, len(axes))
    if len(shifts) > len(axes) == 1:
        axes = axes * len(shifts)
    for by, d in zip(shifts, axes, strict=True):
        x = _rolled(x, by, d)
    return x


def _shifts(shift: Any, count: int) -> list[Any]:
    if isinstance(shift, (tuple, list)):
        shifts = list(shift)
    elif isinstance(shift, Tracer):
        traced: Any = shift
        shifts = [traced[i] for i in range(traced.shape[0])] if traced.shape else [traced]
    else:
        shifts = list(np.ravel(np.asarray(shift)))
    if len(shifts) == 1:
        return shifts * count
    if count not in (1, len(shifts)):
        raise ValueError(f"roll: {len(shifts)} shifts do not fit {count} axes.")
    return shifts


def _rolled(x: Any, by: Any, axis: int) -> Any:
    n = x.shape[axis]
    if n == 0:
        return x
    if isinstance(by, Tracer):
        start = remainder(subtract2(0, convert(by, np.dtype(np.int32))), n)
        return lax.dynamic_slice_in_dim(lax.concatenate([x, x], axis), start, n, axis)
    cut = -operator.index(by if not isinstance(by, Array) else int(by)) % n
    if not cut:
        return x
    return lax.concatenate([lax.slice_in_dim(x, cut, n, 1, axis), lax.slice_in_dim(x, 0, cut, 1, axis)], axis)


def tile(A: Any, reps: Any) -> Any:
    """The array repeated ``reps`` times along each axis, as whole copies."""
    x = array_operand("tile", A)
    counts = [operator.index(r) for r in (reps if isinstance(reps, (tuple, list, np.ndarray)) else (reps,))]
    rank = max(len(counts), len(x.shape))
    counts = [1] * (rank - len(counts)) + counts
    shape = (1,) * (rank - len(x.shape)) + x.shape
    doubled = [m for pair in zip(counts, shape, strict=True) for m in pair]
    kept = tuple(2 * (d + rank - len(x.shape)) + 1 for d in range(len(x.shape)))
    return lax.reshape(lax.broadcast_in_dim(x, doubled, kept), [c * n for c, n in zip(counts, shape, strict=True)])


@placed
def repeat(a: Any, repeats: Any, axis: Any = None, *, total_repeat_length: Any = None, out_sharding: Any = None) -> Any:
    """Each element ``repeats`` times (a number, or one for each) along ``axis`` (None: flattened)."""
    x = array_operand("repeat", a)
    if axis is None:
        x, axis = ravel(x), 0
    place = axis_of(axis, len(x.shape))
    if isinstance(repeats, Tracer):
        if total_repeat_length is None:
            instead = "Give total_repeat_length=, which fixes the length of the result, or make repeats static."
            raise ConcretizationTypeError(concretization_message(repeats, "repeats of jnp.repeat", instead))
        return _traced_repeat(x, repeats, place, operator.index(total_repeat_length))
    counts = np.asarray(repeats)
    if counts.size == 1 and total_repeat_length is None:
        return _each(x, int(counts.reshape(-1)[0]), place)
    counts = np.broadcast_to(counts.reshape(-1), (x.shape[place],))
    places = np.repeat(np.arange(x.shape[place], dtype=np.int32), counts)
    if total_repeat_length is not None:
        length = operator.index(total_repeat_length)
        last = places[-1] if places.size else 0
        places = np.concatenate([places[:length], np.full(max(0, length - places.size), last, np.int32)])
    return _taken(x, places, place)


def _each(x: Any, count: int, axis: int) -> Any:
    shape = x.shape
    wide = lax.broadcast_in_dim(
        x, (*shape[: axis + 1], count, *shape[axis + 1 :]), [d + (d > axis) for d in range(len(shape))]
    )
    return lax.reshape(wide, (*shape[:axis], shape[axis] * count, *shape[axis + 1 :]))


def _taken(x: Any, places: Any, axis: int) -> Any:
    from jaxlite.numpy.picking import take

    return take(x, places, axis, mode="clip")


def _traced_repeat(x: Any, repeats: Any, axis: int, length: int) -> Any:
    from jaxlite.numpy.cumulative import cumsum
    from jaxlite.numpy.sorting import searchsorted

    counts = repeats if repeats.shape else lax.broadcast_in_dim(repeats, (x.shape[axis],), ())
    ends = cumsum(counts)
    return _taken(x, searchsorted(ends, lax.iota(np.int32, length), side="right"), axis)


def resize(a: Any, new_shape: Any) -> Any:
    """The elements under a shape of another size, repeated or cut as needed."""
    x = ravel(a)
    shape = (
        tuple(map(operator.index, new_shape)) if isinstance(new_shape, (tuple, list)) else (operator.index(new_shape),)
    )
    count = math.prod(shape)
    if not aval_of(x).size or not count:
        return lax.full(shape, x.dtype.type(0))
    copies = tile(x, -(-count // x.shape[0]))
    return lax.reshape(lax.slice_in_dim(copies, 0, count), shape)


def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """Differences of neighbours along ``axis``, taken ``n`` times."""
    x = array_operand("diff", a)
    if not x.shape:
        raise ValueError(f"diff requires input that is at least one dimensional; got {aval_of(x)}")
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n}")
    place = axis_of(axis, len(x.shape))
    parts = [_edge(p, x, place) for p in (prepend,) if p is not None] + [x]
    parts += [_edge(p, x, place) for p in (append,) if p is not None]
    x = concatenate(parts, place) if len(parts) > 1 else x
    minus = not_equal if dtypes.is_bool(x.dtype) else lax.sub
    for _ in range(n):
        m = x.shape[place]
        x = minus(lax.slice_in_dim(x, min(1, m), m, 1, place), lax.slice_in_dim(x, 0, max(m - 1, 0), 1, place))
    return x


def _edge(value: Any, x: Any, axis: int) -> Any:
    edge = array_operand("diff", value)
    return (
        edge
        if edge.shape
        else lax.broadcast_in_dim(edge, tuple(1 if d == axis else n for d, n in enumerate(x.shape)), ())
    )


def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    """Differences of neighbours of the flattened array, with values put before and after."""
    x = ravel(ary)
    inner = lax.sub(lax.slice_in_dim(x, min(1, x.shape[0]), x.shape[0]), lax.slice_in_dim(x, 0, max(x.shape[0] - 1, 0)))
    begin, end = (
        convert(ravel(v), x.dtype)
        for v in (
            to_begin if to_begin is not None else np.zeros(0, x.dtype),
            to_end if to_end is not None else np.zeros(0, x.dtype),
        )
    )
    return joined([begin, inner, end], 0)


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """The integral along ``axis`` by the trapezoidal rule."""
    from jaxlite.numpy.arithmetic import add2, multiply2
    from jaxlite.numpy.promotion import to_float
    from jaxlite.numpy.reductions import sum_

    values = array_operand("trapezoid", y)
    values = convert(values, to_float(values.dtype))
    values = moveaxis(values, axis, -1)
    width: Any = dx
    if x is not None:
        points = array_operand("trapezoid", x)
        width = diff(points if len(points.shape) == 1 else moveaxis(points, axis, -1))
    n = values.shape[-1]
    pairs = add2(
        lax.slice_in_dim(values, 1, n, 1, len(values.shape) - 1),
        lax.slice_in_dim(values, 0, n - 1, 1, len(values.shape) - 1),
    )
    return multiply2(sum_(multiply2(pairs, width), -1), 0.5)
