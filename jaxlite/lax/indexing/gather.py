"""``gather``: windows of an operand at given start indices."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, final

import numpy as np

from jaxlite.core import dtypes
from jaxlite.core.avals import ShapedArray
from jaxlite.core.factors import Factors, axes_of
from jaxlite.core.primitive import AxisData, Primitive, Sample, get
from jaxlite.interpreters.batch import move_axis
from jaxlite.interpreters.zeros import Zero, zero_of
from jaxlite.lax.convert import constant, operands_of
from jaxlite.lax.indexing.places import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
    array_places,
    element_place,
)
from jaxlite.lax.layout.shaping import as_shape, full


def default_fill(dtype: Any) -> Any:
    """What is read outside: NaN, the lowest signed integer, the highest unsigned one, True."""
    if dtypes.is_key(dtype):
        return 0
    if dtypes.is_inexact(dtype):
        return float("nan")
    if dtypes.is_bool(dtype):
        return True
    info = np.iinfo(dtype)
    return info.min if dtypes.is_signed(dtype) else info.max


_SAMPLE_NUMBERS = GatherDimensionNumbers((1,), (0,), (0,))


@final
class Gather(Primitive):
    """Result axes: ``offset_dims`` run through a window, the others through the start indices."""

    name, family, accepts, exact = "gather", "indexing", "biufK", True
    samples = tuple(
        Sample(
            ((5, 3), (4, 1)),
            {"dimension_numbers": _SAMPLE_NUMBERS, "slice_sizes": (1, 3), "mode": mode, "fill_value": None,
             "indices_are_sorted": False, "unique_indices": False},
            low=-2, high=7, dtypes=("float32", "int32"),
        )
        for mode in (GatherScatterMode.CLIP, GatherScatterMode.FILL_OR_DROP)
    )  # fmt: skip
    piecewise_linear = True

    def abstract_eval(self, *avals: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        operand, indices = avals
        n, window = params["dimension_numbers"], params["slice_sizes"]
        if len(window) != operand.ndim:
            raise TypeError(f"gather: slice_sizes {window} must have one length for each axis of {operand.shape}.")
        if not dtypes.is_integer(indices.dtype):
            raise ValueError(f"Gather indices must be integers, got {indices.dtype.name}.")
        if indices.ndim < 1 or indices.shape[-1] != len(n.start_index_map):
            raise TypeError(
                f"gather: the last axis of the indices, of shape {indices.shape}, must have one "
                f"entry for each of start_index_map {n.start_index_map}."
            )
        kept = [w for d, w in enumerate(window) if d not in n.collapsed_slice_dims and d not in n.operand_batching_dims]
        if len(kept) != len(n.offset_dims):
            raise TypeError(
                f"gather: offset_dims {n.offset_dims} must name one axis for each of the window's {len(kept)}."
            )
        offsets, batch = iter(kept), iter(indices.shape[:-1])
        rank = len(kept) + indices.ndim - 1
        shape = tuple(next(offsets) if d in n.offset_dims else next(batch) for d in range(rank))
        # A result without elements reads nothing, so its windows fit anywhere: no places, or a batch of none.
        fits = all(0 <= w <= s or 0 in shape for w, s in zip(window, operand.shape, strict=True))
        if not fits:
            raise TypeError(f"gather: slice_sizes {window} must be between 0 and the operand's shape {operand.shape}.")
        return (ShapedArray(shape, operand.dtype, operand.weak_type),)

    def factors(self, avals: Sequence[ShapedArray], results: Sequence[ShapedArray], **params: Any) -> Factors | None:
        (operand, indices), n, window = avals, params["dimension_numbers"], params["slice_sizes"]
        rank, out = operand.ndim, results[0].ndim
        at = [rank + d for d in range(indices.ndim)]
        for own, other in zip(n.operand_batching_dims, n.start_indices_batching_dims, strict=True):
            at[other] = own
        kept = iter(d for d in range(rank) if d not in n.collapsed_slice_dims and d not in n.operand_batching_dims)
        batch = iter(at[:-1])
        result = [next(kept) if d in n.offset_dims else next(batch) for d in range(out)]
        why = (
            "Use `.at[...].get(out_sharding=)` to provide output PartitionSpec for the gather indexing as out sharding "
            "could not be resolved unambiguously (or would require collectives on inputs)."
        )
        through = {d for d in range(rank) if window[d] == operand.shape[d] and d not in n.collapsed_slice_dims}
        through |= set(n.operand_batching_dims)
        whole = {f: why for f in (*range(rank), *at) if f not in through}
        sizes = {**dict(enumerate(operand.shape)), **{rank + d: s for d, s in enumerate(indices.shape)}}
        return Factors((axes_of(range(rank)), axes_of(at)), (axes_of(result),), sizes, whole=whole)

    def localized(
        self, params: dict[str, Any], avals: Sequence[ShapedArray], results: Sequence[ShapedArray]
    ) -> dict[str, Any]:
        n, kept = (
            params["dimension_numbers"],
            iter([results[0].shape[d] for d in params["dimension_numbers"].offset_dims]),
        )
        window = [
            w if d in n.collapsed_slice_dims or d in n.operand_batching_dims else next(kept)
            for d, w in enumerate(params["slice_sizes"])
        ]
        return {**params, "slice_sizes": tuple(window)}

    def evaluate(self, *arrays: np.ndarray[Any, Any], **params: Any) -> tuple[np.ndarray[Any, Any], ...]:
        operand, indices = arrays
        n, mode = params["dimension_numbers"], params["mode"]
        (aval,) = self.abstract_eval(*(ShapedArray(a.shape, a.dtype) for a in arrays), **params)
        fill = default_fill(operand.dtype) if params["fill_value"] is None else params["fill_value"]
        if aval.size and not operand.size:
            return (np.full(aval.shape, fill, operand.dtype),)
        places, inside = array_places(n, mode, operand.shape, params["slice_sizes"], aval.shape, indices)
        return (np.where(inside, operand[places], np.array(fill).astype(operand.dtype)),)

    def element(
        self, e: Any, number: int, index: tuple[Any, ...], read: Any, avals: Sequence[ShapedArray], **params: Any
    ) -> Any:
        shape, dtype = avals[0].shape, dtypes.physical(avals[0].dtype)
        fill = default_fill(avals[0].dtype) if params["fill_value"] is None else params["fill_value"]
        if 0 in shape:
            return e.constant(fill, dtype)
        place, inside = element_place(
            e, params["dimension_numbers"], params["mode"], shape, params["slice_sizes"], index, lambda i: read(1, i)
        )
        if inside is None:
            return read(0, tuple(place))
        return e.select(inside, read(0, tuple(place), inside), e.constant(fill, dtype))

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        out = self.bind(*primals, **params)
        if type(tangents[0]) is Zero:
            return [out], [zero_of(out)]
        return [out], [self.bind(tangents[0], primals[1], **{**params, "fill_value": 0})]

    def transpose(self, cotangents: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
        operand, indices = operands
        zeros = full(operand.aval.shape, constant(0, operand.aval.dtype))
        n = params["dimension_numbers"]
        scattered = get("scatter-add").bind(
            zeros, indices, cotangents[0], dimension_numbers=ScatterDimensionNumbers(*n), mode=params["mode"],
            indices_are_sorted=params["indices_are_sorted"], unique_indices=params["unique_indices"],
        )  # fmt: skip
        return [scattered, None]

    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[int | None], /, **params: Any
    ) -> tuple[list[Any], list[int | None]]:
        operand, indices = operands
        n, window = params["dimension_numbers"], params["slice_sizes"]
        if dims[0] is not None:
            operand = move_axis(operand, dims[0], 0)
            up = {
                k: tuple(d + 1 for d in getattr(n, k))
                for k in ("collapsed_slice_dims", "start_index_map", "operand_batching_dims")
            }
            n = n._replace(**up)
        if dims[1] is None:  # the batch is one more axis of the window, the first of the result
            n = n._replace(offset_dims=(0, *(d + 1 for d in n.offset_dims)))
            window = (axis.size, *window)
        else:
            indices = move_axis(indices, dims[1], 0)
            n = n._replace(
                offset_dims=tuple(d + 1 for d in n.offset_dims),
                start_indices_batching_dims=tuple(d + 1 for d in n.start_indices_batching_dims),
            )
            if dims[0] is not None:
                n = n._replace(
                    operand_batching_dims=(0, *n.operand_batching_dims),
                    start_indices_batching_dims=(0, *n.start_indices_batching_dims),
                )
                window = (1, *window)
        return [self.bind(operand, indices, **{**params, "dimension_numbers": n, "slice_sizes": window})], [0]


gather_p = Gather()


def gather(
    operand: Any,
    start_indices: Any,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Any,
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: Any = None,
    fill_value: Any = None,
) -> Any:
    """Windows of ``operand`` of ``slice_sizes`` at ``start_indices`` (StableHLO's ``gather``).

    ``mode``: "fill" (the default) reads ``fill_value`` outside, "clip" moves windows inside, "promise_in_bounds"
    trusts.
    """
    numbers = GatherDimensionNumbers(*(tuple(map(operator.index, part)) for part in dimension_numbers))
    x, indices = operands_of(operand, start_indices)
    return gather_p.bind(
        x, indices, dimension_numbers=numbers, slice_sizes=as_shape(slice_sizes),
        mode=GatherScatterMode.from_any(mode), fill_value=fill_value,
        indices_are_sorted=bool(indices_are_sorted), unique_indices=bool(unique_indices),
    )  # fmt: skip
