"""Indexing: what stands between brackets, read by NumPy's rules and turned into slices, dynamic slices or a gather.

``parse`` gives one item for each part of an index.  Static ones become slice, rev, squeeze and broadcast; single
computed positions a ``dynamic_slice``; all else a gather, whose dimension numbers ``places`` works out (``.at`` uses
the same for scatters).
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, final

import numpy as np

from jaxlite import lax
from jaxlite.core import dtypes
from jaxlite.core.array import Array, from_numpy
from jaxlite.core.avals import aval_of, refuse_masked
from jaxlite.core.errors import NonConcreteBooleanIndexError
from jaxlite.core.primitive import get
from jaxlite.core.trace import Tracer
from jaxlite.lax.elementwise.casts import convert
from jaxlite.lax.indexing.places import GatherDimensionNumbers, GatherScatterMode
from jaxlite.numpy.promotion import expand_to
from jaxlite.numpy.shaping import broadcast_shapes

_slice_p, _squeeze_p = get("slice"), get("squeeze")
Kind = Literal["int", "slice", "new", "array"]


@final
class Item(NamedTuple):
    """One part of an index: a static position, a slice, a new axis, or an array of positions; ``axis`` is what it
    indexes."""

    kind: Kind
    value: Any
    axis: int


def parse(index: Any, shape: tuple[int, ...]) -> tuple[list[Item], bool]:
    """The items of an index into an array of ``shape``, one for every axis; and whether its arrays stand side by
    side."""
    parts = [q for position, part in enumerate(_as_tuple(index)) for q in _expanded(part, position)]
    consumed = sum(_axes_of(p) for p in parts)
    if sum(p is Ellipsis for p in parts) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    if consumed > len(shape):
        raise IndexError(f"Too many indices: array is {len(shape)}-dimensional, but {consumed} were indexed")
    if Ellipsis not in [p if p is Ellipsis else None for p in parts]:
        parts.append(Ellipsis)
    advanced = [i for i, p in enumerate(parts) if _is_position(p)]
    together = not advanced or advanced[-1] - advanced[0] == len(advanced) - 1
    items: list[Item] = []
    axis = 0
    for part in parts:
        if part is Ellipsis:
            for _ in range(len(shape) - consumed):
                items.append(Item("slice", slice(None), axis))
                axis += 1
            continue
        items.append(_item(part, axis, shape))
        axis += _axes_of(part)
    return items, together


def without_scalar_masks(index: Any) -> tuple[list[int], Any]:
    """An index with True and False as positions along new axes of length 1, and where in the array those axes go."""
    parts = _as_tuple(index)
    if not any(_is_scalar_mask(p) for p in parts):
        return [], index
    new_axes, out, axis = [], [], 0
    for part in parts:
        if _is_scalar_mask(part):
            out.append(np.zeros(int(part), np.int32))
            new_axes.append(axis)
            axis += 1
        else:
            out.append(part)
            axis += np.ndim(part) if getattr(part, "dtype", None) == np.bool_ else _axes_of(part)
    return new_axes, tuple(out)


def _is_scalar_mask(part: Any) -> bool:
    return isinstance(part, (bool, np.bool_)) or (type(part) is Array and not part.shape and dtypes.is_bool(part.dtype))


def _as_tuple(index: Any) -> tuple[Any, ...]:
    if isinstance(index, tuple):
        return index
    if isinstance(index, str):
        raise TypeError(f"JAX does not support string indexing; got idx={index!r}")
    if isinstance(index, (list, range)):
        nested = any(isinstance(i, (slice, list, tuple)) or i is None or i is Ellipsis for i in index)
        instead = "arr[tuple(seq)]" if nested else "arr[array(seq)]"
        raise TypeError(
            f"Using a non-tuple sequence for multidimensional indexing is not allowed; use `{instead}` instead of "
            "`arr[seq]`. See https://github.com/jax-ml/jax/issues/4564 for more information."
        )
    return (index,)


@final
class _Mask(NamedTuple):
    """Positions along one axis that a boolean mask gave, and that axis' length in the mask."""

    places: Any
    length: int


def _expanded(part: Any, position: int) -> list[Any]:
    """A part of an index, a boolean mask as the positions where it holds, a list as an array."""
    if part is None or part is Ellipsis or isinstance(part, slice):
        return [part]
    if isinstance(part, (int, np.integer)):
        return [part]
    if isinstance(part, str):
        raise TypeError(f"JAX does not support string indexing; got idx={part!r}")
    if isinstance(part, (list, tuple)):
        from jaxlite.numpy.creation import asarray

        part = asarray(part) if len(part) else np.zeros(0, np.int32)
    if hasattr(part, "__jax_array__"):
        part = part.__jax_array__()
    if not hasattr(part, "dtype"):
        if hasattr(part, "__index__"):
            return [operator.index(part)]
        kind = np.asarray(part).dtype.name if isinstance(part, float) else type(part).__name__
        raise TypeError(
            f"Indexer must have integer or boolean type, got indexer with type {kind} at position {position}, "
            f"indexer value {part}"
        )
    refuse_masked(part)
    if dtypes.is_bool(part.dtype):
        return _mask_places(part)
    if not dtypes.is_integer(part.dtype):
        raise TypeError(
            f"Indexer must have integer or boolean type, got indexer with type {part.dtype.name} at position "
            f"{position}, indexer value {part}"
        )
    return [part]


def _mask_places(mask: Any) -> list[Any]:
    if isinstance(mask, Tracer):
        known = mask.concrete()
        if known is None:
            raise NonConcreteBooleanIndexError(
                f"Array boolean indices must be concrete; got {mask.aval.short()}.  How many elements a traced "
                "mask picks "
                "is not known when tracing, so it cannot set a shape: write jnp.where(mask, x, other), or "
                "x.at[...] with "
                "jnp.where, or jnp.nonzero(mask, size=n)."
            )
        mask = known
    values = np.asarray(mask)
    return [_Mask(p.astype(np.int32), n) for p, n in zip(np.nonzero(values), values.shape, strict=True)]


def _axes_of(part: Any) -> int:
    return 0 if part is None or part is Ellipsis else 1


def _is_position(part: Any) -> bool:
    return not (part is None or part is Ellipsis or isinstance(part, slice))


def _item(part: Any, axis: int, shape: tuple[int, ...]) -> Item:
    if part is None:
        return Item("new", None, axis)
    if isinstance(part, slice):
        return Item("slice", _static_slice(part), axis)
    if isinstance(part, _Mask):
        if part.length not in (shape[axis], 0):
            raise IndexError(
                f"boolean index did not match shape of indexed array: mask axis of length {part.length}, array "
                f"axis {axis} of length {shape[axis]}"
            )
        return Item("array", part.places, axis)
    if isinstance(part, (int, np.integer)):
        return Item("int", int(part), axis)
    return Item("array", part, axis)


def _static_slice(part: slice) -> slice:
    bounds = []
    for bound in (part.start, part.stop, part.step):
        if isinstance(bound, Tracer) and bound.concrete() is None:
            raise IndexError(
                "Array slice indices must have static start/stop/step to be used with NumPy indexing syntax. Found "
                f"slice({part.start}, {part.stop}, {part.step}). To index a statically sized array at a dynamic "
                "position, "
                "try lax.dynamic_slice/dynamic_update_slice (JAX does not support dynamically sized arrays within JIT "
                "compiled functions)."
            )
        bounds.append(None if bound is None else operator.index(bound))
    return slice(*bounds)


def getitem(x: Any, index: Any) -> Any:
    """``x[index]``; positions outside are moved to the nearest inside, as JAX does."""
    if type(index) is int and x.shape and x.shape[0]:  # x[0], the case that matters for speed
        shape = x.shape
        start = static_place(index, shape[0])
        ends = (start + 1, *shape[1:])
        row = _slice_p.bind(x, start_indices=(start, *(0,) * (len(shape) - 1)), limit_indices=ends, strides=None)
        return _squeeze_p.bind(row, dimensions=(0,))
    return take_index(x, index, None)


def take_index(
    x: Any, index: Any, mode: Any, fill_value: Any = None, is_sorted: bool = False, unique: bool = False,
    wrap_negative: bool = True,
) -> Any:  # fmt: skip
    """``x[index]`` with a mode for positions outside ("clip", "fill", "promise_in_bounds"; None: clip)."""
    new_axes, index = without_scalar_masks(index)
    x = lax.expand_dims(x, new_axes) if new_axes else x
    shape = x.shape
    items, together = parse(index, shape)
    how = GatherScatterMode.PROMISE_IN_BOUNDS if mode is None else GatherScatterMode.from_any(mode)
    fills = how is GatherScatterMode.FILL_OR_DROP
    if _is_static(items, shape, fills):
        return static_index(x, items, wrap_negative)
    if not fills and _is_dynamic(items):
        return _dynamic_index(x, items, wrap_negative)
    plan = places(items, together, shape, wrap_negative)
    out = lax.gather(
        x, plan.indices, plan.numbers, plan.window, mode=how, fill_value=fill_value,
        indices_are_sorted=is_sorted or plan.distinct, unique_indices=unique or plan.distinct,
    )  # fmt: skip
    return lax.expand_dims(out, plan.new_axes) if plan.new_axes else out


def _is_static(items: Sequence[Item], shape: tuple[int, ...], in_bounds: bool) -> bool:
    for item in items:
        if item.kind == "array":
            return False
        if item.kind == "int":
            n = shape[item.axis]
            if n == 0:
                raise IndexError(f"index is out of bounds for axis {item.axis} with size 0")
            if in_bounds and not -n <= item.value < n:
                return False
    return True


def _is_dynamic(items: Sequence[Item]) -> bool:
    return all(
        item.kind in ("int", "new")
        or (item.kind == "slice" and item.value.step in (None, 1, -1))
        or (item.kind == "array" and not np.shape(item.value))
        for item in items
    )


def static_place(value: int, n: int, wrap_negative: bool = True) -> int:
    """A static position counted from the front, moved inside where it is not."""
    return min(max(value + n if value < 0 and wrap_negative else value, 0), n - 1)


def _slice_bounds(part: slice, n: int) -> tuple[int, int, int, bool]:
    """Start, stop and step of the elements of a slice in ascending order, and whether they are read backward."""
    start, stop, step = part.indices(n)
    count = len(range(start, stop, step))
    if step > 0:
        return start, max(start, stop), step, False
    first = min(n, start + (count - 1) * step) if count else 0
    return first, (start + 1 if count else first), -step, True


def static_index(x: Any, items: Sequence[Item], wrap_negative: bool = True) -> Any:
    """The value at an index known when tracing: slice, then rev, squeeze and broadcast as needed."""
    starts, limits, steps, backward, dropped = [], [], [], [], []
    added: list[int] = []
    kept = 0
    for item in items:
        if item.kind == "new":
            added.append(kept + len(added))
            continue
        n = x.shape[item.axis]
        if item.kind == "int":
            start = static_place(item.value, n, wrap_negative)
            stop, step, reverse = start + 1, 1, False
            dropped.append(item.axis)
        else:
            start, stop, step, reverse = _slice_bounds(item.value, n)
            kept += 1
        starts.append(start)
        limits.append(stop)
        steps.append(step)
        if reverse:
            backward.append(item.axis)
    out = lax.slice(x, starts, limits, steps)
    out = lax.rev(out, backward) if backward else out
    out = lax.squeeze(out, dropped) if dropped else out
    return lax.expand_dims(out, added) if added else out


def _dynamic_index(x: Any, items: Sequence[Item], wrap_negative: bool) -> Any:
    starts: list[Any] = []
    sizes, backward, dropped = [], [], []
    added: list[int] = []
    kept = 0
    for item in items:
        if item.kind == "new":
            added.append(kept + len(added))
            continue
        n = x.shape[item.axis]
        if item.kind == "slice":
            start, stop, _, reverse = _slice_bounds(item.value, n)
            starts.append(start)
            sizes.append(stop - start)
            kept += 1
            if reverse:
                backward.append(item.axis)
            continue
        if n == 0:
            raise IndexError(f"index is out of bounds for axis {item.axis} with size 0")
        starts.append(static_place(item.value, n, wrap_negative) if item.kind == "int" else _index_array(item.value))
        sizes.append(1)
        dropped.append(item.axis)
    starts = _one_dtype(starts)
    out = lax.dynamic_slice(x, starts, sizes, allow_negative_indices=wrap_negative)
    out = lax.rev(out, backward) if backward else out
    out = lax.squeeze(out, dropped) if dropped else out
    return lax.expand_dims(out, added) if added else out


def _index_array(value: Any) -> Any:
    """Positions as an array of int32, or int64 where they are 64 bits wide."""
    if isinstance(value, np.ndarray):
        value = from_numpy(np.array(value, dtypes.canonicalize(value.dtype), order="C"))
    dtype = aval_of(value).dtype
    wide = dtype.itemsize == 8 or (dtype.name == "uint32" and dtypes.canonicalize(np.int64).itemsize == 8)
    return convert(value, np.dtype(np.int64) if wide else np.dtype(np.int32))


def _one_dtype(values: Sequence[Any]) -> list[Any]:
    arrays = [v for v in values if not isinstance(v, int)]
    wide = any(aval_of(v).dtype.itemsize == 8 for v in arrays)
    if not wide:
        return list(values)
    return [v if isinstance(v, int) else convert(v, np.dtype(np.int64)) for v in values]


def from_the_front(value: Any, n: int) -> Any:
    """Positions with negative ones counted from the end."""
    value = _index_array(value)
    dtype = aval_of(value).dtype
    if type(value) is Array:
        known = value.elements
        return (
            value
            if not known.size or known.min() >= 0
            else from_numpy(np.where(known < 0, known + dtype.type(n), known))
        )
    return lax.select(lax.lt(value, dtype.type(0)), lax.add(value, dtype.type(n)), value)


@final
class Plan(NamedTuple):
    """A gather (or scatter) that stands for an index.

    ``indices`` and ``numbers`` and ``window`` are the gather's; ``shape`` is that of its result; ``new_axes`` are axes
    of length 1 to put into it; ``distinct`` says that no place is met twice.
    """

    indices: Any
    numbers: GatherDimensionNumbers
    window: tuple[int, ...]
    shape: tuple[int, ...]
    new_axes: tuple[int, ...]
    distinct: bool


def places(items: Sequence[Item], together: bool, shape: tuple[int, ...], wrap_negative: bool = True) -> Plan:
    """The gather that stands for parsed items.

    Positions broadcast against each other; their axes stand where the first of them stands if they are side by side,
    else in front.  Slices of step 1 are windows; others are positions along an axis of their own.
    """
    spread = any(i.kind == "array" and np.shape(i.value) for i in items)
    positions = [i for i in items if i.kind in ("int", "array")]
    arrays = [_position_array(i, shape, wrap_negative) for i in positions]
    common = broadcast_shapes(*[aval_of(a).shape for a in arrays])
    columns: list[tuple[Any, int, int]] = []  # positions, the batch axis where they begin, the operand's axis
    batch: list[int] = []
    offsets: list[int] = []
    new_axes: list[int] = []
    out: list[int] = []
    window = [1] * len(shape)

    def put_positions() -> None:
        for item, array in zip(positions, arrays, strict=True):
            columns.append((expand_to(array, common), len(batch), item.axis))
        batch.extend(common)
        out.extend(common)

    done = not positions
    if spread and not together:
        put_positions()
        done = True
    for item in items:
        if item.kind == "new":
            new_axes.append(len(out) + len(new_axes))
        elif item.kind == "slice":
            start, stop, step = item.value.indices(shape[item.axis])
            count = len(range(start, stop, step))
            if step == 1:
                window[item.axis] = count
                offsets.append(len(out))
                if count != shape[item.axis]:
                    columns.append((_index_array(np.asarray(start, np.int32)), len(batch), item.axis))
            else:
                columns.append(
                    (
                        _index_array(
                            np.arange(start, start + count * step, step, dtype=np.int32)
                            if count
                            else np.zeros(0, np.int32)
                        ),
                        len(batch),
                        item.axis,
                    )
                )
                batch.append(count)
            out.append(count)
        elif not done:
            put_positions()
            done = True
    windows = {i.axis for i in items if i.kind == "slice" and i.value.indices(shape[i.axis])[2] == 1}
    collapsed = tuple(d for d in range(len(shape)) if d not in windows)
    numbers = GatherDimensionNumbers(tuple(offsets), collapsed, tuple(axis for _, _, axis in columns))
    return Plan(_stacked(columns, batch), numbers, tuple(window), tuple(out), tuple(new_axes), not spread)


def _position_array(item: Item, shape: tuple[int, ...], wrap_negative: bool) -> Any:
    n = shape[item.axis]
    if item.kind == "int":
        value = item.value + n if item.value < 0 and wrap_negative else item.value
        return _index_array(np.asarray(max(min(value, 2**31 - 1), -(2**31)), np.int32))
    return from_the_front(item.value, n) if wrap_negative else _index_array(item.value)


def _stacked(columns: Sequence[tuple[Any, int, int]], batch: Sequence[int]) -> Any:
    """Columns of start indices side by side along a new last axis."""
    if not columns:
        return lax.full((*batch, 0), np.int32(0))
    arrays = _one_dtype([c for c, _, _ in columns])
    if any(aval_of(a).dtype.itemsize == 8 for a in arrays):
        arrays = [convert(a, np.dtype(np.int64)) for a in arrays]
    wide = []
    for array, (_, first, _) in zip(arrays, columns, strict=True):
        rank = len(aval_of(array).shape)
        wide.append(lax.broadcast_in_dim(array, (*batch, 1), tuple(range(first, first + rank))))
    return lax.concatenate(wide, len(batch))
