"""Slices whose start is computed: ``dynamic_slice`` and ``dynamic_update_slice``.  Starts are clamped into bounds."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, final

import numpy as np

from jaxlite.core import dtypes
from jaxlite.core.avals import ShapedArray, aval_of
from jaxlite.core.factors import Factors, axes_of
from jaxlite.core.primitive import AxisData, Primitive, Sample
from jaxlite.interpreters.batch import move_axis, place_axis
from jaxlite.interpreters.zeros import Zero, instantiate, is_linear, zero_of
from jaxlite.lax.convert import constant, operand_of
from jaxlite.lax.elementwise.casts import convert
from jaxlite.lax.indexing.gather import gather_p
from jaxlite.lax.indexing.places import GatherDimensionNumbers, GatherScatterMode, ScatterDimensionNumbers
from jaxlite.lax.indexing.scatter import scatter_p
from jaxlite.lax.layout.shaping import as_shape, broadcast_in_dim, full, reshape
from jaxlite.lax.layout.slicing import concatenate

_STARTS = ("float32", "int32", "int32")


def _check_starts(name: str, shape: tuple[int, ...], window: tuple[int, ...], starts: Sequence[ShapedArray]) -> None:
    if len(starts) != len(shape) or len(window) != len(shape):
        raise TypeError(
            f"{name}: an operand of shape {shape} takes {len(shape)} start indices and sizes, got "
            f"{len(starts)} and sizes {window}."
        )
    if any(w > n or w < 0 for w, n in zip(window, shape, strict=True)):
        raise TypeError(f"{name}: sizes {window} must be at most the operand's shape {shape}.")
    if any(s.shape or not dtypes.is_integer(s.dtype) for s in starts):
        raise TypeError(f"{name}: start indices must be integer scalars, got {', '.join(map(str, starts))}.")


def _clamped(e: Any, starts: Sequence[Any], shape: Sequence[int], window: Sequence[int]) -> list[Any]:
    return [
        e.max(e.min(e.convert(s, np.dtype(np.int64)), n - w), 0) for s, n, w in zip(starts, shape, window, strict=True)
    ]


def _numpy_window(starts: Sequence[Any], shape: Sequence[int], window: Sequence[int]) -> tuple[slice, ...]:
    begin = [int(np.clip(int(s), 0, n - w)) for s, n, w in zip(starts, shape, window, strict=True)]
    return tuple(slice(b, b + w) for b, w in zip(begin, window, strict=True))


@final
class DynamicSlice(Primitive):
    """The window of ``slice_sizes`` of an operand that starts at the given index."""

    name, family, accepts, exact = "dynamic_slice", "indexing", "biufK", True
    samples = (Sample(((5, 6), (), ()), {"slice_sizes": (2, 3)}, low=-3, high=7, dtypes=_STARTS),)
    piecewise_linear = True

    def abstract_eval(self, *avals: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        operand, *starts = avals
        _check_starts(self.name, operand.shape, params["slice_sizes"], starts)
        return (ShapedArray(params["slice_sizes"], operand.dtype, operand.weak_type),)

    def factors(self, avals: Sequence[ShapedArray], results: Sequence[ShapedArray], **params: Any) -> Factors | None:
        shape, out = avals[0].shape, results[0].shape
        every = axes_of(range(len(shape)))
        moved = frozenset([d for d, (n, m) in enumerate(zip(shape, out, strict=True)) if n != m])
        return Factors((every, *[()] * len(shape)), (every,), dict(enumerate(shape)), moved=moved)

    def localized(
        self, params: dict[str, Any], avals: Sequence[ShapedArray], results: Sequence[ShapedArray]
    ) -> dict[str, Any]:
        return {**params, "slice_sizes": results[0].shape}

    def evaluate(self, *arrays: np.ndarray[Any, Any], **params: Any) -> tuple[np.ndarray[Any, Any], ...]:
        operand, *starts = arrays
        return (operand[_numpy_window(starts, operand.shape, params["slice_sizes"])],)

    def element(
        self, e: Any, number: int, index: tuple[Any, ...], read: Any, avals: Sequence[ShapedArray], **params: Any
    ) -> Any:
        shape = avals[0].shape
        starts = _clamped(e, [read(i + 1, ()) for i in range(len(shape))], shape, params["slice_sizes"])
        return read(0, tuple(e.add(i, s) for i, s in zip(index, starts, strict=True)))

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        out = self.bind(*primals, **params)
        if type(tangents[0]) is Zero:
            return [out], [zero_of(out)]
        return [out], [self.bind(tangents[0], *primals[1:], **params)]

    def transpose(self, cotangents: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
        operand, *starts = operands
        zeros = full(operand.aval.shape, constant(0, operand.aval.dtype))
        return [dynamic_update_slice_p.bind(zeros, cotangents[0], *starts), *([None] * len(starts))]

    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[int | None], /, **params: Any
    ) -> tuple[list[Any], list[int | None]]:
        operand, *starts = operands
        window = params["slice_sizes"]
        if all(d is None for d in dims[1:]):
            operand = move_axis(operand, dims[0], 0)  # type: ignore[arg-type]
            zero = constant(0, aval_of(starts[0]).dtype)
            return [self.bind(operand, zero, *starts, slice_sizes=(axis.size, *window))], [0]
        rank = len(window)
        indices = stacked_starts(starts, dims[1:], axis.size)
        numbers = GatherDimensionNumbers(tuple(range(rank)), (), tuple(range(rank)))
        return gather_p.batch(
            axis, [operand, indices], [dims[0], 0], dimension_numbers=numbers, slice_sizes=window,
            mode=GatherScatterMode.CLIP, fill_value=None, indices_are_sorted=True, unique_indices=True,
        )  # fmt: skip


def stacked_starts(starts: Sequence[Any], dims: Sequence[int | None], size: int) -> Any:
    """Start indices as one array: a row for each example, a column for each axis."""
    columns = []
    for start, dim in zip(starts, dims, strict=True):
        wide = convert(start, np.dtype(np.int32) if aval_of(start).dtype.itemsize <= 4 else aval_of(start).dtype)
        column = broadcast_in_dim(wide, (size,), ()) if dim is None else wide
        columns.append(reshape(column, (size, 1)))
    widest = max((aval_of(c).dtype for c in columns), key=lambda d: d.itemsize)
    return concatenate([convert(c, widest) for c in columns], 1)


@final
class DynamicUpdateSlice(Primitive):
    """The operand with a window, starting at the given index, replaced by an update."""

    name, family, accepts, exact = "dynamic_update_slice", "indexing", "biufK", True
    samples = (Sample(((5, 6), (2, 3), (), ()), low=-3, high=7, dtypes=("float32", "float32", "int32", "int32")),)
    piecewise_linear = True

    def abstract_eval(self, *avals: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        operand, update, *starts = avals
        _check_starts(self.name, operand.shape, update.shape, starts)
        if operand.dtype != update.dtype:
            raise TypeError(
                "dynamic_update_slice requires operand and update of one dtype, got "
                f"{operand.dtype.name} and {update.dtype.name}."
            )
        return (ShapedArray(operand.shape, operand.dtype, operand.weak_type and update.weak_type),)

    def factors(self, avals: Sequence[ShapedArray], results: Sequence[ShapedArray], **params: Any) -> Factors | None:
        shape, part = avals[0].shape, avals[1].shape
        rank = len(shape)
        every = axes_of(range(rank))
        partial = [d for d in range(rank) if shape[d] != part[d]]
        update = axes_of([rank + d if d in partial else d for d in range(rank)])
        sizes = {**dict(enumerate(shape)), **{rank + d: n for d, n in enumerate(part)}}
        why = "dynamic_update_slice takes an update that is whole along the axes of which it is a part."
        whole = {rank + d: why for d in partial}
        return Factors((every, update, *[()] * rank), (every,), sizes, whole=whole, moved=frozenset(partial))

    def evaluate(self, *arrays: np.ndarray[Any, Any], **params: Any) -> tuple[np.ndarray[Any, Any], ...]:
        operand, update, *starts = arrays
        out = np.array(operand)
        out[_numpy_window(starts, operand.shape, update.shape)] = update
        return (out,)

    def element(
        self, e: Any, number: int, index: tuple[Any, ...], read: Any, avals: Sequence[ShapedArray], **params: Any
    ) -> Any:
        shape, window = avals[0].shape, avals[1].shape
        if 0 in window:
            return read(0, index)
        starts = _clamped(e, [read(i + 2, ()) for i in range(len(shape))], shape, window)
        inner = tuple(e.sub(i, s) for i, s in zip(index, starts, strict=True))
        inside: Any = None
        for i, n, w in zip(inner, shape, window, strict=True):
            if w != n:
                test = e.and_(e.ge(i, 0), e.lt(i, w))
                inside = test if inside is None else e.and_(inside, test)
        if inside is None:
            return read(1, inner)
        return e.select(inside, read(1, inner, inside), read(0, index))

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        out = self.bind(*primals)
        if type(tangents[0]) is Zero and type(tangents[1]) is Zero:
            return [out], [zero_of(out)]
        return [out], [self.bind(instantiate(tangents[0]), instantiate(tangents[1]), *primals[2:])]

    def transpose(self, cotangents: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
        (cotangent,) = cotangents
        operand, update, *starts = operands
        to_operand = to_update = None
        shape = aval_of(update).shape
        if is_linear(operand):
            to_operand = self.bind(cotangent, full(shape, constant(0, aval_of(cotangent).dtype)), *starts)
        if is_linear(update):
            to_update = dynamic_slice_p.bind(cotangent, *starts, slice_sizes=shape)
        return [to_operand, to_update, *([None] * len(starts))]

    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[int | None], /, **params: Any
    ) -> tuple[list[Any], list[int | None]]:
        operand, update, *starts = operands
        if all(d is None for d in dims[2:]):
            operand, update = place_axis(operand, dims[0], axis.size, 0), place_axis(update, dims[1], axis.size, 0)
            return [self.bind(operand, update, constant(0, aval_of(starts[0]).dtype), *starts)], [0]
        rank = len(starts)
        indices = stacked_starts(starts, dims[2:], axis.size)
        numbers = ScatterDimensionNumbers(tuple(range(rank)), (), tuple(range(rank)))
        return scatter_p.batch(
            axis, [operand, indices, update], [dims[0], 0, dims[1]], dimension_numbers=numbers,
            mode=GatherScatterMode.CLIP, indices_are_sorted=True, unique_indices=True,
        )  # fmt: skip


dynamic_slice_p, dynamic_update_slice_p = DynamicSlice(), DynamicUpdateSlice()


def _starts(operand: Any, start_indices: Any, allow_negative_indices: Any = True) -> list[Any]:
    """Start indices as scalars, negative ones counted from the end."""
    shape = aval_of(operand).shape
    if not isinstance(start_indices, (tuple, list)):
        start_indices = (
            [start_indices[i] for i in range(len(shape))] if len(shape) or aval_of(start_indices).shape else []
        )
    allowed = (
        allow_negative_indices
        if isinstance(allow_negative_indices, (tuple, list))
        else [allow_negative_indices] * len(start_indices)
    )
    if len(start_indices) != len(shape):
        raise TypeError(f"an operand of shape {shape} takes {len(shape)} start indices, got {len(start_indices)}.")
    from jaxlite.lax.elementwise.arithmetic import add
    from jaxlite.lax.elementwise.comparison import lt
    from jaxlite.lax.elementwise.select import select

    starts = []
    for start, n, negative in zip(start_indices, shape, allowed, strict=True):
        if isinstance(start, (int, np.integer)):
            wrapped = operator.index(start) + n if start < 0 and negative else operator.index(start)
            starts.append(np.int32(max(min(wrapped, 2**31 - 1), -(2**31))))
            continue
        start = operand_of(start)
        dtype = aval_of(start).dtype
        if negative and dtypes.is_integer(dtype) and dtypes.is_signed(dtype):
            start = select(lt(start, constant(0, dtype)), add(start, constant(n, dtype)), start)
        starts.append(start)
    return starts


def dynamic_slice(operand: Any, start_indices: Any, slice_sizes: Any, *, allow_negative_indices: Any = True) -> Any:
    """The window of ``slice_sizes`` at ``start_indices``, moved inside where it would stick out."""
    operand = operand_of(operand)
    starts = _starts(operand, start_indices, allow_negative_indices)
    sizes = as_shape(slice_sizes)
    return dynamic_slice_p.bind(operand, *starts, slice_sizes=sizes) if sizes else operand


def dynamic_update_slice(operand: Any, update: Any, start_indices: Any, *, allow_negative_indices: Any = True) -> Any:
    """``operand`` with the window at ``start_indices`` replaced by ``update``."""
    operand, update = operand_of(operand), operand_of(update)
    starts = _starts(operand, start_indices, allow_negative_indices)
    return dynamic_update_slice_p.bind(operand, update, *starts) if starts else update


def dynamic_slice_in_dim(
    operand: Any, start_index: Any, slice_size: int, axis: int = 0, *, allow_negative_indices: bool = True
) -> Any:
    """:func:`dynamic_slice` along one axis."""
    shape = aval_of(operand).shape
    axis = operator.index(axis) % len(shape)
    starts, sizes = [0] * len(shape), list(shape)
    starts[axis], sizes[axis] = start_index, operator.index(slice_size)
    return dynamic_slice(operand, starts, sizes, allow_negative_indices=allow_negative_indices)


def dynamic_index_in_dim(
    operand: Any, index: Any, axis: int = 0, keepdims: bool = True, *, allow_negative_indices: bool = True
) -> Any:
    """One entry along ``axis``, which stays as an axis of length 1 unless ``keepdims`` is False."""
    from jaxlite.lax.layout.shaping import squeeze

    part = dynamic_slice_in_dim(operand, index, 1, axis, allow_negative_indices=allow_negative_indices)
    return part if keepdims else squeeze(part, (axis,))


def dynamic_update_slice_in_dim(
    operand: Any, update: Any, start_index: Any, axis: int, *, allow_negative_indices: bool = True
) -> Any:
    """:func:`dynamic_update_slice` along one axis."""
    shape = aval_of(operand).shape
    starts: list[Any] = [0] * len(shape)
    starts[operator.index(axis) % len(shape)] = start_index
    return dynamic_update_slice(operand, update, starts, allow_negative_indices=allow_negative_indices)


def dynamic_update_index_in_dim(
    operand: Any, update: Any, index: Any, axis: int, *, allow_negative_indices: bool = True
) -> Any:
    """``operand`` with one entry along ``axis`` replaced by ``update``."""
    from jaxlite.lax.layout.shaping import expand_dims

    rank = len(aval_of(operand).shape)
    if len(aval_of(update).shape) != rank:
        update = expand_dims(update, (operator.index(axis) % rank,))
    return dynamic_update_slice_in_dim(operand, update, index, axis, allow_negative_indices=allow_negative_indices)
