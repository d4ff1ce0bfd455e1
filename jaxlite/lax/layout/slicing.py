"""Parts and wholes: slice, pad, concatenate, split."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Sequence
from typing import Any, final

import numpy as np

from jaxlite.core.avals import ShapedArray, aval_of
from jaxlite.core.factors import Factors, axes_of
from jaxlite.core.primitive import AxisData, Sample
from jaxlite.interpreters.batch import move_axis, place_axis
from jaxlite.interpreters.zeros import instantiate, is_linear
from jaxlite.lax.convert import constant, operand_of, operands_of
from jaxlite.lax.elementwise.arithmetic import add, neg
from jaxlite.lax.families.layout import Layout
from jaxlite.lax.reductions.sums import reduce_sum

INDEX = np.dtype(np.int64)


@final
class Slice(Layout):
    """Elements ``start, start + stride, ...`` below ``limit`` along each axis."""

    name = "slice"
    samples = (
        Sample(((5, 6),), {"start_indices": (1, 2), "limit_indices": (4, 6), "strides": None}),
        Sample(((7,),), {"start_indices": (1,), "limit_indices": (7,), "strides": (3,)}),
    )

    def abstract_eval(self, *avals: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        (aval,) = avals
        starts, limits = params["start_indices"], params["limit_indices"]
        strides = params["strides"] or (1,) * aval.ndim
        if not len(starts) == len(limits) == len(strides) == aval.ndim:
            raise TypeError(
                f"slice: start_indices {starts}, limit_indices {limits} and strides "
                f"{params['strides']} must have one entry for each of {aval.ndim} axes."
            )
        shape = []
        for start, limit, stride, n in zip(starts, limits, strides, aval.shape, strict=True):
            if not 0 <= start <= limit <= n or stride < 1:
                raise TypeError(
                    f"slice: start_indices {starts}, limit_indices {limits}, strides {strides} do "
                    f"not fit shape {aval.shape}: each needs 0 <= start <= limit <= length, stride "
                    ">= 1."
                )
            shape.append(-(-(limit - start) // stride))
        return (ShapedArray(tuple(shape), aval.dtype, aval.weak_type),)

    def factors(self, avals: Sequence[ShapedArray], results: Sequence[ShapedArray], **params: Any) -> Factors | None:
        shape, out = avals[0].shape, results[0].shape
        moved = [d for d, (n, m) in enumerate(zip(shape, out, strict=True)) if n != m or params["start_indices"][d]]
        every = axes_of(range(len(shape)))
        return Factors((every,), (every,), dict(enumerate(shape)), moved=frozenset(moved))

    def localized(
        self, params: dict[str, Any], avals: Sequence[ShapedArray], results: Sequence[ShapedArray]
    ) -> dict[str, Any]:
        limits = [
            r if r < m and start == 0 else m  # an axis taken whole, of which there is a part
            for m, r, start in zip(params["limit_indices"], results[0].shape, params["start_indices"], strict=True)
        ]
        strided = params["strides"] or (1,) * len(limits)
        limits = [m if t != 1 else n for n, m, t in zip(limits, params["limit_indices"], strided, strict=True)]
        return {**params, "limit_indices": tuple(limits)}

    def evaluate(self, *arrays: np.ndarray[Any, Any], **params: Any) -> tuple[np.ndarray[Any, Any], ...]:
        strides = params["strides"] or (1,) * arrays[0].ndim
        return (arrays[0][tuple(map(builtins.slice, params["start_indices"], params["limit_indices"], strides))],)

    def element(
        self, e: Any, number: int, index: tuple[Any, ...], read: Any, avals: Sequence[ShapedArray], **params: Any
    ) -> Any:
        strides = params["strides"] or (1,) * len(index)
        return read(0, tuple(
            e.add(e.mul(i, stride), start)
            for i, start, stride in zip(index, params["start_indices"], strides, strict=True)
        ))  # fmt: skip

    def transpose(self, cotangents: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
        shape = operands[0].aval.shape
        strides = params["strides"] or (1,) * len(shape)
        part = aval_of(cotangents[0]).shape
        config = [
            (start, n - start - (max(kept - 1, 0) * stride + (kept > 0)), stride - 1)
            for start, n, kept, stride in zip(params["start_indices"], shape, part, strides, strict=True)
        ]
        return [pad(cotangents[0], constant(0, aval_of(cotangents[0]).dtype), config)]

    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[int | None], /, **params: Any
    ) -> tuple[list[Any], list[int | None]]:
        assert dims[0] is not None
        operand = move_axis(operands[0], dims[0], 0)
        strides = params["strides"]
        return [self.bind(
            operand,
            start_indices=(0, *params["start_indices"]),
            limit_indices=(axis.size, *params["limit_indices"]),
            strides=None if strides is None else (1, *strides),
        )], [0]  # fmt: skip


@final
class Pad(Layout):
    """``padding_value`` around and between elements: (low, high, interior) per axis; negative low or high cut."""

    name = "pad"
    samples = (
        Sample(((3, 4), ()), {"padding_config": ((1, 2, 0), (0, 1, 1))}),
        Sample(((5,), ()), {"padding_config": ((-1, 2, 0),)}),
        Sample(((5,), ()), {"padding_config": ((1, -2, 2),)}),
    )

    def abstract_eval(self, *avals: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        aval, value = avals
        config = params["padding_config"]
        if value.shape or value.dtype != aval.dtype:
            raise TypeError(f"pad: the padding value must be a scalar of dtype {aval.dtype.name}, got {value}.")
        if len(config) != aval.ndim:
            raise TypeError(
                "length of padding_config must equal the number of axes of operand, got "
                f"padding_config {config} for operand shape {aval.shape}."
            )
        if any(interior < 0 for _, _, interior in config):
            raise TypeError(f"interior padding in padding_config must be nonnegative, got padding_config {config}.")
        shape = tuple(
            low + high + max(n + (n - 1) * interior, 0)
            for n, (low, high, interior) in zip(aval.shape, config, strict=True)
        )
        if any(n < 0 for n in shape):
            raise TypeError(f"pad: padding_config {config} cuts more than shape {aval.shape} has.")
        return (ShapedArray(shape, aval.dtype, aval.weak_type and value.weak_type),)

    def factors(self, avals: Sequence[ShapedArray], results: Sequence[ShapedArray], **params: Any) -> Factors | None:
        rank = avals[0].ndim
        every = axes_of(range(rank))
        moved = frozenset([d for d, c in enumerate(params["padding_config"]) if tuple(c) != (0, 0, 0)])
        return Factors((every, ()), (every,), dict(enumerate(avals[0].shape)), moved=moved)

    def evaluate(self, *arrays: np.ndarray[Any, Any], **params: Any) -> tuple[np.ndarray[Any, Any], ...]:
        x, value = arrays
        config = params["padding_config"]
        spread = np.full(
            [max(n + (n - 1) * i, 0) for n, (_, _, i) in zip(x.shape, config, strict=True)], value, x.dtype
        )
        spread[tuple(builtins.slice(None, None, i + 1) for _, _, i in config)] = x
        spread = np.pad(spread, [(max(low, 0), max(high, 0)) for low, high, _ in config], constant_values=value)
        cut = tuple(
            builtins.slice(max(-low, 0), n - max(-high, 0))
            for n, (low, high, _) in zip(spread.shape, config, strict=True)
        )
        return (spread[cut],)

    def element(
        self, e: Any, number: int, index: tuple[Any, ...], read: Any, avals: Sequence[ShapedArray], **params: Any
    ) -> Any:
        inside, inner = None, []
        for i, n, (low, high, interior) in zip(index, avals[0].shape, params["padding_config"], strict=True):
            position = e.sub(i, low)
            tests = []
            if low > 0:
                tests.append(e.ge(position, 0))
            if high > 0:
                tests.append(e.lt(position, max(n + (n - 1) * interior, 0)))
            if interior:
                tests.append(e.eq(e.rem(position, interior + 1), 0))
                position = e.div(position, interior + 1)
            for test in tests:
                inside = test if inside is None else e.and_(inside, test)
            inner.append(position)
        if inside is None:
            return read(0, tuple(inner))
        return e.select(inside, read(0, tuple(inner), inside), read(1, ()))

    def transpose(self, cotangents: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
        (cotangent,) = cotangents
        operand, value = operands
        config = params["padding_config"]
        inverse = tuple((-low, -high, 0) for low, high, _ in config)
        zero = constant(0, aval_of(cotangent).dtype)
        unpadded = pad(cotangent, zero, inverse)
        shape = aval_of(unpadded).shape
        inner = slice(unpadded, (0,) * len(shape), shape, tuple(i + 1 for _, _, i in config))
        everything = tuple(range(len(config)))
        to_value = None
        if is_linear(value):
            total, kept = reduce_sum(cotangent, everything), reduce_sum(inner, everything)
            to_value = add(total, neg(kept))
        return [inner if is_linear(operand) else None, to_value]

    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[int | None], /, **params: Any
    ) -> tuple[list[Any], list[int | None]]:
        operand, value = operands
        config = ((0, 0, 0), *params["padding_config"])
        operand = place_axis(operand, dims[0], axis.size, 0)
        if dims[1] is None:
            return [self.bind(operand, value, padding_config=config)], [0]
        from jaxlite.lax.elementwise.select import select
        from jaxlite.lax.layout.shaping import broadcast_in_dim, full_like

        aval = aval_of(operand)
        padded = self.bind(operand, constant(0, aval.dtype), padding_config=config)
        inside = self.bind(full_like(operand, True, np.bool_), constant(False, np.dtype(bool)), padding_config=config)
        values = broadcast_in_dim(value, aval_of(padded).shape, (0,))
        return [select(inside, padded, values)], [0]


@final
class Concatenate(Layout):
    """The operands one after the other along ``dimension``."""

    name = "concatenate"
    samples = (Sample(((2, 3), (4, 3)), {"dimension": 0}), Sample(((2, 3), (2, 1), (2, 2)), {"dimension": 1}))

    def abstract_eval(self, *avals: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        d = params["dimension"]
        shapes = [a.shape for a in avals]
        if not avals or any(len(s) != len(shapes[0]) for s in shapes) or not 0 <= d < len(shapes[0]):
            raise TypeError(
                f"Cannot concatenate arrays of shapes {shapes} along dimension {d}: they need the "
                "same number of axes, and that dimension."
            )
        if any(s[:d] + s[d + 1 :] != shapes[0][:d] + shapes[0][d + 1 :] for s in shapes):
            raise TypeError(
                "Cannot concatenate arrays with shapes that differ in dimensions other than the "
                f"one being concatenated: concatenating along dimension {d} for shapes "
                f"{', '.join(map(str, shapes))}."
            )
        if any(a.dtype != avals[0].dtype for a in avals):
            raise TypeError(
                f"concatenate requires arguments to have the same dtypes, got {', '.join(a.dtype.name for a in avals)}."
            )
        shape = list(shapes[0])
        shape[d] = sum(s[d] for s in shapes)
        return (ShapedArray(tuple(shape), avals[0].dtype, all(a.weak_type for a in avals)),)

    def factors(self, avals: Sequence[ShapedArray], results: Sequence[ShapedArray], **params: Any) -> Factors | None:
        every = axes_of(range(results[0].ndim))
        moved = frozenset([params["dimension"]])
        return Factors((every,) * len(avals), (every,), dict(enumerate(results[0].shape)), moved=moved)

    def evaluate(self, *arrays: np.ndarray[Any, Any], **params: Any) -> tuple[np.ndarray[Any, Any], ...]:
        return (np.concatenate(arrays, params["dimension"]),)

    def element(
        self, e: Any, number: int, index: tuple[Any, ...], read: Any, avals: Sequence[ShapedArray], **params: Any
    ) -> Any:
        d = params["dimension"]
        parts, start = [], 0
        for operand, aval in enumerate(avals):
            if aval.shape[d]:
                parts.append((operand, start, start + aval.shape[d]))
                start += aval.shape[d]
        result = None
        for operand, begin, end in reversed(parts):
            at = (*index[:d], e.sub(index[d], begin), *index[d + 1 :])
            if len(parts) == 1:
                return read(operand, at)
            mask = e.lt(index[d], end) if begin == 0 else e.ge(index[d], begin)
            mask = e.and_(mask, e.lt(index[d], end)) if begin and end < start else mask
            value = read(operand, at, mask)
            result = value if result is None else e.select(e.lt(index[d], end), value, result)
        return result

    def transpose(self, cotangents: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
        d = params["dimension"]
        parts, start = [], 0
        for operand in operands:
            shape = aval_of(operand).shape
            starts, limits = [0] * len(shape), list(shape)
            starts[d], limits[d] = start, start + shape[d]
            start += shape[d]
            parts.append(slice(cotangents[0], starts, limits) if is_linear(operand) else None)
        return parts

    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[int | None], /, **params: Any
    ) -> tuple[list[Any], list[int | None]]:
        placed = [place_axis(o, d, axis.size, 0) for o, d in zip(operands, dims, strict=True)]
        return [self.bind(*placed, dimension=params["dimension"] + 1)], [0]


@final
class Split(Layout):
    """Consecutive parts of lengths ``sizes`` along ``axis``."""

    name, multiple_results = "split", True
    samples = (Sample(((5, 3),), {"sizes": (2, 3), "axis": 0}), Sample(((2, 6),), {"sizes": (1, 2, 3), "axis": 1}))

    def abstract_eval(self, *avals: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        (aval,) = avals
        sizes, d = params["sizes"], params["axis"]
        if not 0 <= d < aval.ndim or sum(sizes) != aval.shape[d] or any(n < 0 for n in sizes):
            raise ValueError(f"split: sizes {sizes} along axis {d} do not add up to shape {aval.shape}.")
        return tuple(aval.update(shape=(*aval.shape[:d], n, *aval.shape[d + 1 :])) for n in sizes)

    def factors(self, avals: Sequence[ShapedArray], results: Sequence[ShapedArray], **params: Any) -> Factors | None:
        every = axes_of(range(avals[0].ndim))
        moved = frozenset([params["axis"]])
        return Factors((every,), (every,) * len(results), dict(enumerate(avals[0].shape)), moved=moved)

    def evaluate(self, *arrays: np.ndarray[Any, Any], **params: Any) -> tuple[np.ndarray[Any, Any], ...]:
        return tuple(np.split(arrays[0], np.cumsum(params["sizes"])[:-1], params["axis"]))

    def element(
        self, e: Any, number: int, index: tuple[Any, ...], read: Any, avals: Sequence[ShapedArray], **params: Any
    ) -> Any:
        d = params["axis"]
        return read(0, (*index[:d], e.add(index[d], sum(params["sizes"][:number])), *index[d + 1 :]))

    def transpose(self, cotangents: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
        return [concatenate([instantiate(c) for c in cotangents], params["axis"])]

    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[int | None], /, **params: Any
    ) -> tuple[list[Any], list[int | None]]:
        dim = dims[0]
        assert dim is not None
        along = params["axis"] + (params["axis"] >= dim)
        return self.bind(operands[0], sizes=params["sizes"], axis=along), [dim] * len(params["sizes"])


slice_p, pad_p, concatenate_p, split_p = Slice(), Pad(), Concatenate(), Split()


def slice(operand: Any, start_indices: Any, limit_indices: Any, strides: Any = None) -> Any:
    """``operand[start:limit:stride]`` along each axis (``jax.lax.slice``)."""
    operand = operand_of(operand)
    starts = tuple(operator.index(i) for i in start_indices)
    limits = tuple(operator.index(i) for i in limit_indices)
    steps = None if strides is None else tuple(operator.index(i) for i in strides)
    if steps is not None and all(s == 1 for s in steps):
        steps = None
    shape = aval_of(operand).shape
    if steps is None and limits == shape and not any(starts):
        return operand
    return slice_p.bind(operand, start_indices=starts, limit_indices=limits, strides=steps)


def slice_in_dim(operand: Any, start_index: int | None, limit_index: int | None, stride: int = 1, axis: int = 0) -> Any:
    """``operand[start:limit:stride]`` along one axis; negative bounds count from the end."""
    shape = aval_of(operand).shape
    axis = operator.index(axis) % len(shape)
    start, limit, step = (
        builtins.slice(start_index, limit_index).indices(shape[axis])[0],
        builtins.slice(start_index, limit_index).indices(shape[axis])[1],
        operator.index(stride),
    )
    starts, limits, steps = [0] * len(shape), list(shape), [1] * len(shape)
    starts[axis], limits[axis], steps[axis] = start, max(start, limit), step
    return slice(operand, starts, limits, steps)


def index_in_dim(operand: Any, index: int, axis: int = 0, keepdims: bool = True) -> Any:
    """``operand[index]`` along one axis, which stays as an axis of length 1 unless ``keepdims`` is False."""
    from jaxlite.lax.layout.shaping import squeeze

    n = aval_of(operand).shape[axis]
    wrapped = operator.index(index) + n if index < 0 else operator.index(index)
    if not 0 <= wrapped < n:
        raise IndexError(f"index {index} is out of bounds for axis {axis} with size {n}.")
    part = slice_in_dim(operand, wrapped, wrapped + 1, 1, axis)
    return part if keepdims else squeeze(part, (axis,))


def pad(operand: Any, padding_value: Any, padding_config: Any) -> Any:
    """``operand`` with ``padding_value`` around and between its elements: (low, high, interior) per axis."""
    operand, value = operands_of(operand, padding_value)
    dtype = aval_of(operand).dtype
    if isinstance(value, (bool, int, float)):
        value = constant(value, dtype)
    config = tuple(tuple(operator.index(n) for n in triple) for triple in padding_config)
    if all(triple == (0, 0, 0) for triple in config) and config:
        return operand
    return pad_p.bind(operand, value, padding_config=config)


def concatenate(operands: Any, dimension: int) -> Any:
    """The arrays one after the other along ``dimension``."""
    values = operands_of(*operands)
    if not values:
        raise ValueError("concatenate requires a non-empty sequence of arrays.")
    if len(values) == 1:
        return values[0]
    return concatenate_p.bind(*values, dimension=operator.index(dimension))


def split(operand: Any, sizes: Any, axis: int = 0) -> list[Any]:
    """Consecutive parts of lengths ``sizes`` along ``axis``."""
    return list(split_p.bind(operand_of(operand), sizes=tuple(map(operator.index, sizes)), axis=operator.index(axis)))
