"""New shapes for the same elements: broadcast, reshape, transpose, squeeze, reverse."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterator, Sequence
from typing import Any, final

import numpy as np

from jaxlite.core import dtypes
from jaxlite.core.avals import ShapedArray, aval_of
from jaxlite.core.device import check_placement
from jaxlite.core.factors import Factors, axes_of
from jaxlite.core.primitive import AxisData, Sample
from jaxlite.interpreters.batch import move_axis
from jaxlite.lax.convert import array_of, constant, operand_of
from jaxlite.lax.families.layout import Layout
from jaxlite.lax.placed import placed
from jaxlite.lax.reductions.sums import reduce_sum


@final
class BroadcastInDim(Layout):
    """Repeats along new axes and along axes of length 1; axis ``i`` becomes ``broadcast_dimensions[i]``."""

    name = "broadcast_in_dim"
    samples = (
        Sample(((3,),), {"shape": (2, 3), "broadcast_dimensions": (1,), "sharding": None}),
        Sample(((3, 1),), {"shape": (3, 4), "broadcast_dimensions": (0, 1), "sharding": None}),
        Sample(((),), {"shape": (2, 2), "broadcast_dimensions": (), "sharding": None}),
    )

    def keeps_place(self, *avals: ShapedArray, **params: Any) -> bool:
        return not avals[0].shape or avals[0].size == math.prod(params["shape"])

    def repeats_along(self, **params: Any) -> tuple[int, ...] | None:
        return tuple(params["broadcast_dimensions"])

    def abstract_eval(self, *avals: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        (aval,) = avals
        shape, dims = params["shape"], params["broadcast_dimensions"]
        if len(dims) != aval.ndim or any(b <= a for a, b in itertools.pairwise(dims)):
            raise TypeError(
                f"broadcast_in_dim: broadcast_dimensions {dims} must be increasing, one for each of {aval.ndim} axes."
            )
        for d, n in zip(dims, aval.shape, strict=True):
            if not 0 <= d < len(shape) or n not in (1, shape[d]):
                raise TypeError(
                    f"broadcast_in_dim: operand of shape {aval.shape} does not broadcast to {shape} along {dims}."
                )
        return (ShapedArray(tuple(shape), aval.dtype, aval.weak_type),)

    def factors(self, avals: Sequence[ShapedArray], results: Sequence[ShapedArray], **params: Any) -> Factors | None:
        (aval,), shape, dims = avals, params["shape"], params["broadcast_dimensions"]
        rank = len(shape)
        own = axes_of([d if n == shape[d] else rank + i for i, (d, n) in enumerate(zip(dims, aval.shape, strict=True))])
        sizes = {**dict(enumerate(shape)), **{rank + i: n for i, n in enumerate(aval.shape)}}
        return Factors((own,), (axes_of(range(rank)),), sizes)

    def localized(
        self, params: dict[str, Any], avals: Sequence[ShapedArray], results: Sequence[ShapedArray]
    ) -> dict[str, Any]:
        return {**params, "shape": results[0].shape}

    def evaluate(self, *arrays: np.ndarray[Any, Any], **params: Any) -> tuple[np.ndarray[Any, Any], ...]:
        shape, dims = params["shape"], params["broadcast_dimensions"]
        aligned = [1] * len(shape)
        for d, n in zip(dims, arrays[0].shape, strict=True):
            aligned[d] = n
        return (np.broadcast_to(arrays[0].reshape(aligned), shape),)

    def element(
        self, e: Any, number: int, index: tuple[Any, ...], read: Any, avals: Sequence[ShapedArray], **params: Any
    ) -> Any:
        dims = params["broadcast_dimensions"]
        zero = e.constant(0, np.dtype(np.int64))
        return read(0, tuple(index[d] if n != 1 else zero for d, n in zip(dims, avals[0].shape, strict=True)))

    def transpose(self, cotangents: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
        shape, dims = operands[0].aval.shape, params["broadcast_dimensions"]
        out = params["shape"]
        stretched = [d for d, n in zip(dims, shape, strict=True) if n == 1 and out[d] != 1]
        added = [d for d in range(len(out)) if d not in dims]
        summed = reduce_sum(cotangents[0], tuple(sorted((*added, *stretched))))
        return [reshape(summed, shape)]

    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[int | None], /, **params: Any
    ) -> tuple[list[Any], list[int | None]]:
        assert dims[0] is not None
        operand = move_axis(operands[0], dims[0], 0)
        kept = (0, *(d + 1 for d in params["broadcast_dimensions"]))
        shape = (axis.size, *params["shape"])
        return [self.bind(operand, shape=shape, broadcast_dimensions=kept, sharding=None)], [0]


def matching_groups(old: Sequence[int], new: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """Runs of axes of ``old`` and ``new`` with equal products, as short as can be."""
    groups: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(old) or j < len(new):
        left, right = (
            ([i], [j]) if i < len(old) and j < len(new) else (list(range(i, len(old))), list(range(j, len(new))))
        )
        if i < len(old) and j < len(new):
            a, b, i, j = old[i], new[j], i + 1, j + 1
            while a != b:
                if a < b and i < len(old):
                    left.append(i)
                    a, i = a * old[i], i + 1
                elif j < len(new):
                    right.append(j)
                    b, j = b * new[j], j + 1
                else:
                    left.append(i)
                    a, i = a * old[i], i + 1
        else:
            i, j = len(old), len(new)
        groups.append((left, right))
    return groups


def reshaped(old: Sequence[int], new: Sequence[int]) -> Factors:
    """The factors of the same elements under another shape: axes are split where both shapes have a boundary."""
    sizes: dict[int, int] = {}
    sides: tuple[list[tuple[int, ...]], list[tuple[int, ...]]] = ([()] * len(old), [()] * len(new))
    for left, right in matching_groups(old, new):
        for side, axes, factors in _common_factors([old[a] for a in left], [new[b] for b in right], sizes):
            sides[side][(left, right)[side][axes]] = factors
    of_sides = [{f for axis in axes for f in axis if sizes[f] != 1} for axes in sides]
    alone = of_sides[0] ^ of_sides[1]  # of axes that lie across each other's boundaries
    why = (
        "This reshape is not supported. Please specify the sharding of the output via the `out_sharding` argument of "
        "jax.lax.reshape."
    )
    return Factors((tuple(sides[0]),), (tuple(sides[1]),), sizes, whole=dict.fromkeys(sorted(alone), why))


def _common_factors(
    left: Sequence[int], right: Sequence[int], sizes: dict[int, int]
) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """(side, axis, factors) of a run of axes with equal products; where sizes do not nest, each has its own."""
    wide = [[n for n in side if n != 1] for side in (left, right)]
    bounds = [[math.prod(side[k:]) for k in range(len(side) + 1)] for side in wide]
    every = sorted({*bounds[0], *bounds[1]}, reverse=True)
    nested = all(n and b % n == 0 for b, n in itertools.pairwise(every))
    first = len(sizes)
    if nested:
        sizes.update({first + k: b // n for k, (b, n) in enumerate(itertools.pairwise(every))})
    for side, axes in enumerate((left, right)):
        place = 0
        for axis, length in enumerate(axes):
            if length == 1 or not nested:
                number = len(sizes)
                sizes[number] = length
                yield side, axis, (number,)
                continue
            begin, end = every.index(bounds[side][place]), every.index(bounds[side][place + 1])
            place += 1
            yield side, axis, tuple(range(first + begin, first + end))


def linear_index(e: Any, index: Sequence[Any], shape: Sequence[int]) -> Any:
    """The row-major position of ``index`` in an array of ``shape``."""
    position = e.constant(0, np.dtype(np.int64))
    for i, n in zip(index, shape, strict=True):
        position = e.add(e.mul(position, n), i)
    return position


def index_of_position(e: Any, position: Any, shape: Sequence[int]) -> list[Any]:
    """The index of a row-major position in an array of ``shape``."""
    index: list[Any] = []
    for n in reversed(shape):
        index.append(e.rem(position, n) if len(index) + 1 < len(shape) else position)
        position = e.div(position, n) if n else position
    return index[::-1]


@final
class Reshape(Layout):
    """The same elements, in row-major order, under another shape."""

    name = "reshape"
    samples = (
        Sample(((3, 4),), {"new_sizes": (2, 6), "dimensions": None, "sharding": None}),
        Sample(((2, 3, 4),), {"new_sizes": (6, 4), "dimensions": None, "sharding": None}),
        Sample(((1, 4),), {"new_sizes": (4,), "dimensions": None, "sharding": None}),
    )

    def keeps_place(self, *avals: ShapedArray, **params: Any) -> bool:
        return True

    def abstract_eval(self, *avals: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        (aval,) = avals
        if math.prod(params["new_sizes"]) != aval.size:
            raise TypeError(
                f"reshape total size must be unchanged, got new_sizes {params['new_sizes']} "
                f"(product {math.prod(params['new_sizes'])}) for shape {aval.shape} (product "
                f"{aval.size})."
            )
        return (ShapedArray(tuple(params["new_sizes"]), aval.dtype, aval.weak_type),)

    def factors(self, avals: Sequence[ShapedArray], results: Sequence[ShapedArray], **params: Any) -> Factors | None:
        return reshaped(avals[0].shape, params["new_sizes"])

    def localized(
        self, params: dict[str, Any], avals: Sequence[ShapedArray], results: Sequence[ShapedArray]
    ) -> dict[str, Any]:
        return {**params, "new_sizes": results[0].shape}

    def evaluate(self, *arrays: np.ndarray[Any, Any], **params: Any) -> tuple[np.ndarray[Any, Any], ...]:
        return (np.reshape(arrays[0], params["new_sizes"]),)

    def element(
        self, e: Any, number: int, index: tuple[Any, ...], read: Any, avals: Sequence[ShapedArray], **params: Any
    ) -> Any:
        old, new = avals[0].shape, params["new_sizes"]
        inner: list[Any] = [e.constant(0, np.dtype(np.int64))] * len(old)
        for left, right in matching_groups(old, new):
            wide = [a for a in left if old[a] != 1]
            narrow = [b for b in right if new[b] != 1]
            position = linear_index(e, [index[b] for b in narrow], [new[b] for b in narrow])
            for axis, i in zip(wide, index_of_position(e, position, [old[a] for a in wide]), strict=True):
                inner[axis] = i
        return read(0, tuple(inner))

    def transpose(self, cotangents: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
        return [reshape(cotangents[0], operands[0].aval.shape)]

    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[int | None], /, **params: Any
    ) -> tuple[list[Any], list[int | None]]:
        assert dims[0] is not None
        return [reshape(move_axis(operands[0], dims[0], 0), (axis.size, *params["new_sizes"]))], [0]


@final
class Transpose(Layout):
    """Axis ``i`` of the result is axis ``permutation[i]`` of the operand."""

    name = "transpose"
    samples = (Sample(((3, 4),), {"permutation": (1, 0)}), Sample(((2, 3, 4),), {"permutation": (2, 0, 1)}))

    def abstract_eval(self, *avals: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        (aval,) = avals
        permutation = params["permutation"]
        if sorted(permutation) != list(range(aval.ndim)):
            raise TypeError(
                "transpose permutation isn't a permutation of operand dimensions, got permutation "
                f"{permutation} for operand shape {aval.shape}."
            )
        return (ShapedArray(tuple(aval.shape[p] for p in permutation), aval.dtype, aval.weak_type),)

    def factors(self, avals: Sequence[ShapedArray], results: Sequence[ShapedArray], **params: Any) -> Factors | None:
        every = axes_of(range(avals[0].ndim))
        return Factors((every,), (tuple([every[p] for p in params["permutation"]]),), dict(enumerate(avals[0].shape)))

    def evaluate(self, *arrays: np.ndarray[Any, Any], **params: Any) -> tuple[np.ndarray[Any, Any], ...]:
        return (np.transpose(arrays[0], params["permutation"]),)

    def element(
        self, e: Any, number: int, index: tuple[Any, ...], read: Any, avals: Sequence[ShapedArray], **params: Any
    ) -> Any:
        inner: list[Any] = [None] * len(index)
        for i, p in zip(index, params["permutation"], strict=True):
            inner[p] = i
        return read(0, tuple(inner))

    def transpose(self, cotangents: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
        return [transpose(cotangents[0], tuple(int(i) for i in np.argsort(params["permutation"])))]

    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[int | None], /, **params: Any
    ) -> tuple[list[Any], list[int | None]]:
        dim = dims[0]
        assert dim is not None
        moved = (dim, *(p + (p >= dim) for p in params["permutation"]))
        return [self.bind(operands[0], permutation=moved)], [0]


@final
class Squeeze(Layout):
    """Without the axes ``dimensions``, each of length 1."""

    name = "squeeze"
    samples = (Sample(((3, 1),), {"dimensions": (1,)}), Sample(((1, 4, 1),), {"dimensions": (0, 2)}))

    def keeps_place(self, *avals: ShapedArray, **params: Any) -> bool:
        return True

    def abstract_eval(self, *avals: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        (aval,) = avals
        dims = params["dimensions"]
        if any(not 0 <= d < aval.ndim or aval.shape[d] != 1 for d in dims):
            raise ValueError(
                "cannot select an axis to squeeze out which has size not equal to one, got "
                f"shape={aval.shape} and dimensions={dims}"
            )
        return (ShapedArray(tuple(n for d, n in enumerate(aval.shape) if d not in dims), aval.dtype, aval.weak_type),)

    def factors(self, avals: Sequence[ShapedArray], results: Sequence[ShapedArray], **params: Any) -> Factors | None:
        every = axes_of(range(avals[0].ndim))
        kept = tuple([a for d, a in enumerate(every) if d not in params["dimensions"]])
        return Factors((every,), (kept,), dict(enumerate(avals[0].shape)))

    def evaluate(self, *arrays: np.ndarray[Any, Any], **params: Any) -> tuple[np.ndarray[Any, Any], ...]:
        return (np.squeeze(arrays[0], tuple(params["dimensions"])),)

    def element(
        self, e: Any, number: int, index: tuple[Any, ...], read: Any, avals: Sequence[ShapedArray], **params: Any
    ) -> Any:
        given, zero = iter(index), e.constant(0, np.dtype(np.int64))
        return read(0, tuple(zero if d in params["dimensions"] else next(given) for d in range(avals[0].ndim)))

    def transpose(self, cotangents: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
        return [reshape(cotangents[0], operands[0].aval.shape)]

    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[int | None], /, **params: Any
    ) -> tuple[list[Any], list[int | None]]:
        assert dims[0] is not None
        operand = move_axis(operands[0], dims[0], 0)
        return [self.bind(operand, dimensions=tuple(d + 1 for d in params["dimensions"]))], [0]


@final
class Rev(Layout):
    """Reversed along ``dimensions``."""

    name = "rev"
    samples = (Sample(((3, 4),), {"dimensions": (0,)}), Sample(((3, 4),), {"dimensions": (0, 1)}))

    def abstract_eval(self, *avals: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        (aval,) = avals
        if any(not 0 <= d < aval.ndim for d in params["dimensions"]):
            raise ValueError(f"rev: dimensions {params['dimensions']} do not fit shape {aval.shape}.")
        return (aval,)

    def factors(self, avals: Sequence[ShapedArray], results: Sequence[ShapedArray], **params: Any) -> Factors | None:
        every = axes_of(range(avals[0].ndim))
        return Factors((every,), (every,), dict(enumerate(avals[0].shape)), moved=frozenset(params["dimensions"]))

    def evaluate(self, *arrays: np.ndarray[Any, Any], **params: Any) -> tuple[np.ndarray[Any, Any], ...]:
        return (np.flip(arrays[0], params["dimensions"]),)

    def element(
        self, e: Any, number: int, index: tuple[Any, ...], read: Any, avals: Sequence[ShapedArray], **params: Any
    ) -> Any:
        reversed_axes = params["dimensions"]
        shape = avals[0].shape
        return read(0, tuple(e.sub(shape[d] - 1, i) if d in reversed_axes else i for d, i in enumerate(index)))

    def transpose(self, cotangents: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
        return [self.bind(cotangents[0], **params)]

    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[int | None], /, **params: Any
    ) -> tuple[list[Any], list[int | None]]:
        dim = dims[0]
        assert dim is not None
        shifted = tuple(d + (d >= dim) for d in params["dimensions"])
        return [self.bind(operands[0], dimensions=shifted)], [dim]


broadcast_in_dim_p, reshape_p, transpose_p, squeeze_p, rev_p = (
    BroadcastInDim(), Reshape(), Transpose(), Squeeze(), Rev()
)  # fmt: skip


def as_shape(shape: Any) -> tuple[int, ...]:
    """``shape`` as a tuple of ints; ``TypeError`` names an entry that is none."""
    if isinstance(shape, (int, np.integer)):
        return (int(shape),)
    try:
        return tuple(operator.index(n) for n in shape)
    except TypeError as error:
        if hasattr(error, "__notes__") or "traced" in str(error):
            raise
        raise TypeError(f"Shapes must be 1D sequences of concrete values of integer type, got {shape!r}.") from None


@placed
def broadcast_in_dim(operand: Any, shape: Any, broadcast_dimensions: Any, *, out_sharding: Any = None) -> Any:
    """``operand`` repeated to ``shape``; its axis ``i`` becomes axis ``broadcast_dimensions[i]``."""
    operand, shape, dims = array_of(operand), as_shape(shape), tuple(broadcast_dimensions)
    if aval_of(operand).shape == shape and dims == tuple(range(len(shape))):
        return operand
    return broadcast_in_dim_p.bind(operand, shape=shape, broadcast_dimensions=dims, sharding=None)


@placed
def broadcast(operand: Any, sizes: Any, *, out_sharding: Any = None) -> Any:
    """``operand`` repeated along new leading axes of lengths ``sizes``."""
    sizes, shape = as_shape(sizes), aval_of(operand).shape
    return broadcast_in_dim(operand, (*sizes, *shape), range(len(sizes), len(sizes) + len(shape)))


@placed
def reshape(operand: Any, new_sizes: Any, dimensions: Any = None, *, out_sharding: Any = None) -> Any:
    """``operand`` under the shape ``new_sizes``, its axes first put in the order ``dimensions`` if given."""
    operand, new_sizes = array_of(operand), as_shape(new_sizes)
    if dimensions is not None:
        operand = transpose(operand, dimensions)
    if aval_of(operand).shape == new_sizes:
        return operand
    return reshape_p.bind(operand, new_sizes=new_sizes, dimensions=None, sharding=None)


def transpose(operand: Any, permutation: Any) -> Any:
    """``operand`` with its axes in the order ``permutation``."""
    operand, permutation = array_of(operand), tuple(operator.index(p) for p in permutation)
    if permutation == tuple(range(len(aval_of(operand).shape))):
        return operand
    return transpose_p.bind(operand, permutation=permutation)


def squeeze(array: Any, dimensions: Any) -> Any:
    """``array`` without the axes ``dimensions``, each of length 1."""
    array = array_of(array)
    rank = len(aval_of(array).shape)
    dims = tuple(sorted(d + rank if d < 0 else d for d in map(operator.index, dimensions)))
    return squeeze_p.bind(array, dimensions=dims) if dims else array


def expand_dims(array: Any, dimensions: Any) -> Any:
    """``array`` with new axes of length 1, which have the positions ``dimensions`` in the result."""
    array = array_of(array)
    shape = list(aval_of(array).shape)
    rank = len(shape) + len(tuple(dimensions))
    dims = sorted(d + rank if d < 0 else d for d in map(operator.index, dimensions))
    if len(set(dims)) != len(dims) or any(not 0 <= d < rank for d in dims):
        raise ValueError(
            f"expand_dims: axes {tuple(dimensions)} do not fit a result of {rank} axes: each once, "
            f"from {-rank} to {rank - 1}."
        )
    for d in dims:
        shape.insert(d, 1)
    return broadcast_in_dim(array, shape, [d for d in range(rank) if d not in dims])


def rev(operand: Any, dimensions: Any) -> Any:
    """``operand`` reversed along ``dimensions``."""
    return rev_p.bind(operand_of(operand), dimensions=tuple(dimensions))


def full(shape: Any, fill_value: Any, dtype: Any = None, *, sharding: Any = None) -> Any:
    """An array of ``shape`` filled with a scalar."""
    check_placement("full", sharding=sharding)
    shape = as_shape(shape)
    value = operand_of(fill_value)
    aval = aval_of(value)
    if aval.shape:
        raise TypeError(f"full must be called with scalar fill_value, got fill_value.shape {aval.shape}.")
    from jaxlite.lax.elementwise.casts import convert

    weak = dtype is None and aval.weak_type
    wanted = aval.dtype if dtype is None else dtypes.canonicalize(dtype)
    if isinstance(value, (bool, int, float)) and not weak:
        value = constant(value, wanted)
    return broadcast_in_dim(convert(value, wanted, weak), shape, ())


def full_like(x: Any, fill_value: Any, dtype: Any = None, shape: Any = None, sharding: Any = None) -> Any:
    """An array like ``x`` (shape and dtype, unless given) filled with a scalar."""
    check_placement("full_like", sharding=sharding)
    aval = aval_of(x)
    lengths = as_shape(aval.shape if shape is None else shape)
    if dtype is None and isinstance(fill_value, (bool, int, float)):  # of the very dtype, 64 bits with x64 off too
        return broadcast_in_dim(constant(fill_value, aval.dtype), lengths, ())
    return full(lengths, fill_value, aval.dtype if dtype is None else dtype)
