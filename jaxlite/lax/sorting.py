"""``sort``: stable, of several operands by the first ``num_keys`` of them, NaN last, -0.0 equal to 0.0."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, final

import numpy as np

from jaxlite.core import dtypes
from jaxlite.core.avals import ShapedArray, aval_of
from jaxlite.core.factors import Factors, along
from jaxlite.core.primitive import AxisData, Primitive, Sample
from jaxlite.interpreters.batch import place_axis
from jaxlite.interpreters.zeros import Zero, zero_of
from jaxlite.lax.convert import operand_of
from jaxlite.lax.families.elementwise import check_accepts
from jaxlite.lax.indexing.gather import gather_p
from jaxlite.lax.indexing.places import GatherDimensionNumbers, GatherScatterMode
from jaxlite.lax.layout.iota import broadcasted_iota
from jaxlite.lax.layout.shaping import reshape


@final
class Sort(Primitive):
    name, family, multiple_results, accepts = "sort", "sort", True, "biuf"
    samples = (
        Sample(((7,),), {"dimension": 0, "is_stable": True, "num_keys": 1}),
        Sample(((4, 5), (4, 5)), {"dimension": 1, "is_stable": True, "num_keys": 1}),
        Sample(((6, 2), (6, 2)), {"dimension": 0, "is_stable": True, "num_keys": 2}),
    )
    piecewise_linear = True

    def abstract_eval(self, *avals: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        check_accepts(self, avals)
        if any(a.shape != avals[0].shape for a in avals):
            raise TypeError(f"Arguments to sort must have equal shapes, got: {', '.join(str(a.shape) for a in avals)}.")
        if not 0 <= params["dimension"] < max(avals[0].ndim, 1):
            raise ValueError(f"sort: dimension {params['dimension']} is out of bounds for shape {avals[0].shape}.")
        return avals

    def factors(self, avals: Sequence[ShapedArray], results: Sequence[ShapedArray], **params: Any) -> Factors | None:
        why = "Arguments to sort must be unsharded over the sorting dimension."
        one = along(avals[0].shape, [params["dimension"]], why)
        return Factors(one.operands * len(avals), one.results * len(results), one.sizes, whole=one.whole)

    def evaluate(self, *arrays: np.ndarray[Any, Any], **params: Any) -> tuple[np.ndarray[Any, Any], ...]:
        axis = params["dimension"]
        keys = [a.astype(np.float32) if dtypes.is_narrow_float(a.dtype) else a for a in arrays[: params["num_keys"]]]
        order = np.lexsort(keys[::-1], axis=axis) if len(keys) > 1 else np.argsort(keys[0], axis=axis, kind="stable")
        return tuple(np.take_along_axis(a, order, axis) for a in arrays)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        shape, axis = aval_of(primals[0]).shape, params["dimension"]
        places = broadcasted_iota(np.int32, shape, axis)
        *outs, order = self.bind(*primals, places, **params)
        moved = [zero_of(o) if type(t) is Zero else _taken(t, order, axis) for o, t in zip(outs, tangents, strict=True)]
        return outs, moved

    def transpose(self, cotangents: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
        raise NotImplementedError("sort is not linear, so it has no transpose.")

    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[int | None], /, **params: Any
    ) -> tuple[list[Any], list[int | None]]:
        placed = [place_axis(o, d, axis.size, 0) for o, d in zip(operands, dims, strict=True)]
        outs = self.bind(*placed, **{**params, "dimension": params["dimension"] + 1})
        return outs, [0] * len(outs)


def _taken(values: Any, order: Any, axis: int) -> Any:
    """``values`` in the order of ``order`` along ``axis``, all other axes in step."""
    shape = aval_of(values).shape
    others = tuple(d for d in range(len(shape)) if d != axis)
    numbers = GatherDimensionNumbers((), (axis,), (axis,), others, others)
    return gather_p.bind(
        values, reshape(order, (*shape, 1)), dimension_numbers=numbers, slice_sizes=(1,) * len(shape),
        mode=GatherScatterMode.PROMISE_IN_BOUNDS, fill_value=None, indices_are_sorted=False, unique_indices=True,
    )  # fmt: skip


sort_p = Sort()


def sort(operand: Any, dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> Any:
    """``operand`` (an array, or a sequence sorted together by its first ``num_keys`` arrays) sorted along
    ``dimension``."""
    several = isinstance(operand, (tuple, list))
    values = [operand_of(o) for o in (operand if several else [operand])]
    if not values:
        raise TypeError("Sort requires at least one operand.")
    if not 1 <= num_keys <= len(values):
        raise ValueError(f"sort: num_keys={num_keys} must be between 1 and the number of operands, {len(values)}.")
    rank = len(aval_of(values[0]).shape)
    if not -rank <= dimension < rank:
        raise ValueError(f"dimension {dimension} is out of bounds for array of dimension {rank}.")
    outs = sort_p.bind(
        *values, dimension=operator.index(dimension) % rank, is_stable=bool(is_stable), num_keys=num_keys
    )
    return tuple(outs) if several else outs[0]
