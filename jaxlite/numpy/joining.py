"""Joining arrays and taking them apart: ``concatenate``, ``stack``, ``split`` and their variants."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxlite import lax
from jaxlite.core.array import Array
from jaxlite.core.avals import aval_of
from jaxlite.core.trace import Tracer
from jaxlite.numpy.creation import asarray
from jaxlite.numpy.promotion import array_operand, as_type, axis_of, check_arraylike, common_type, user_dtype
from jaxlite.numpy.shaping import atleast_1d, atleast_2d, atleast_3d


def _arrays(name: str, arrays: Any, dtype: Any = None) -> list[Any]:
    """The arrays of a sequence (or the rows of one array), with one dtype."""
    if isinstance(arrays, (Array, Tracer, np.ndarray)):
        if not np.ndim(arrays) if isinstance(arrays, np.ndarray) else not arrays.shape:
            raise ValueError(f"{name}: zero-dimensional arrays cannot be joined; give a sequence of arrays.")
        rows: Any = arrays
        arrays = [rows[i] for i in range(rows.shape[0])]
    elif not isinstance(arrays, (tuple, list)):
        raise TypeError(f"{name} requires a sequence of arrays, got {type(arrays).__name__}.")
    if not arrays:
        raise ValueError("Need at least one array to concatenate.")
    check_arraylike(name, *arrays)
    values = [array_operand(name, a) for a in arrays]
    wanted, weak = common_type([aval_of(v) for v in values]) if dtype is None else (user_dtype(dtype), False)
    return [as_type(v, wanted, weak) for v in values]


def concatenate(arrays: Any, axis: Any = 0, dtype: Any = None) -> Any:
    """The arrays one after the other along ``axis`` (None: flattened).

    >>> import jaxlite.numpy as jnp
    >>> concatenate([jnp.arange(2), jnp.arange(2)])
    Array([0, 1, 0, 1], dtype=int32)
    """
    values = _arrays("concatenate", arrays, dtype)
    if axis is None:
        values, axis = [lax.reshape(v, (aval_of(v).size,)) for v in values], 0
    shapes = [v.shape for v in values]
    if not shapes[0]:
        raise ValueError("Zero-dimensional arrays cannot be concatenated.")
    if len({len(s) for s in shapes}) > 1:
        raise TypeError(
            f"Cannot concatenate arrays with different numbers of dimensions: got {', '.join(map(str, shapes))}."
        )
    return lax.concatenate(values, axis_of(axis, len(shapes[0])))


def concat(arrays: Any, /, *, axis: Any = 0) -> Any:
    """``concatenate``."""
    return concatenate(arrays, axis)


def append(arr: Any, values: Any, axis: Any = None) -> Any:
    """``values`` after ``arr`` along ``axis`` (None: both flattened)."""
    return concatenate([array_operand("append", arr), array_operand("append", values)], axis)


def stack(arrays: Any, axis: Any = 0, out: Any = None, dtype: Any = None) -> Any:
    """The arrays, of one shape, along a new axis."""
    if out is not None:
        raise NotImplementedError("The 'out' argument to jnp.stack is not supported.")
    values = _arrays("stack", arrays, dtype)
    shapes = [v.shape for v in values]
    if len(set(shapes)) > 1:
        raise ValueError(f"All input arrays must have the same shape. Got {', '.join(map(str, shapes))}.")
    place = axis_of(axis, len(shapes[0]) + 1)
    return lax.concatenate([lax.expand_dims(v, (place,)) for v in values], place)


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Any, ...]:
    """The parts along ``axis``."""
    value = array_operand("unstack", x)
    if not value.shape:
        raise ValueError("Unstack requires arrays with rank > 0, however a scalar array was passed.")
    place = axis_of(axis, len(value.shape))
    return tuple(lax.index_in_dim(value, i, place, keepdims=False) for i in range(value.shape[place]))


def _raised(arrays: Any, raising: Any) -> list[Any]:
    if isinstance(arrays, (Array, Tracer)):
        rows: Any = arrays
        arrays = list(rows)
    return [raising(a) for a in arrays]


def vstack(tup: Any, dtype: Any = None) -> Any:
    """The arrays below each other, vectors as rows."""
    return concatenate(_raised(tup, atleast_2d), 0, dtype)


def hstack(tup: Any, dtype: Any = None) -> Any:
    """The arrays beside each other."""
    values = _raised(tup, atleast_1d)
    return concatenate(values, 0 if values and len(aval_of(values[0]).shape) == 1 else 1, dtype)


def dstack(tup: Any, dtype: Any = None) -> Any:
    """The arrays behind each other, along the third axis."""
    return concatenate(_raised(tup, atleast_3d), 2, dtype)


def column_stack(tup: Any) -> Any:
    """The arrays beside each other, vectors as columns."""
    values = [array_operand("column_stack", a) for a in tup]
    columns = [lax.reshape(v, (aval_of(v).size, 1)) if len(v.shape) < 2 else v for v in values]
    return concatenate(columns, 1)


def block(arrays: Any) -> Any:
    """An array put together from nested lists of blocks: the innermost lists run along the last axis."""

    def depth(x: Any) -> int:
        return 1 + depth(x[0]) if isinstance(x, list) else 0

    def flat(x: Any) -> list[Any]:
        return [leaf for part in x for leaf in flat(part)] if isinstance(x, list) else [asarray(x)]

    levels = depth(arrays)
    rank = max(levels, *(len(leaf.shape) for leaf in flat(arrays)), 1)

    def join(x: Any, level: int) -> Any:
        if not isinstance(x, list):
            value = asarray(x)
            return lax.reshape(value, (1,) * (rank - len(value.shape)) + value.shape)
        if not x:
            raise ValueError("block: lists must not be empty.")
        return concatenate([join(part, level + 1) for part in x], rank - levels + level)

    return join(arrays, 0)


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """Equal parts along ``axis`` (a number of them), or parts that end at given places."""
    return _split("split", ary, indices_or_sections, axis, exact=True)


def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """``split`` that allows parts to differ by one."""
    return _split("array_split", ary, indices_or_sections, axis, exact=False)


def _split(name: str, ary: Any, sections: Any, axis: int, exact: bool) -> list[Any]:
    x = array_operand(name, ary)
    place = axis_of(axis, len(x.shape))
    n = x.shape[place]
    if isinstance(sections, (tuple, list)) or np.ndim(sections) > 0:
        stops = [_bound(operator.index(s), n) for s in sections]
        starts = [0, *stops]
        return [lax.slice_in_dim(x, a, max(a, b), 1, place) for a, b in zip(starts, [*stops, n], strict=True)]
    count = operator.index(sections)
    each, rest = divmod(n, count)
    if rest and exact:
        raise ValueError(f"array split does not result in an equal division: rest is {rest}")
    return lax.split(x, [each + (i < rest) for i in range(count)], place)


def _bound(place: int, n: int) -> int:
    return max(place + n, 0) if place < 0 else min(place, n)


def vsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """``split`` along the first axis."""
    return split(ary, indices_or_sections, 0)


def hsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """``split`` along the second axis (the first of a vector)."""
    x = array_operand("hsplit", ary)
    return split(x, indices_or_sections, 0 if len(x.shape) == 1 else 1)


def dsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """``split`` along the third axis."""
    return split(ary, indices_or_sections, 2)


def joined(parts: Sequence[Any], axis: int) -> Any:
    """Parts of one dtype along ``axis``, empty ones left out."""
    kept = [p for p in parts if aval_of(p).shape[axis]] or list(parts[:1])
    return lax.concatenate(kept, axis)
