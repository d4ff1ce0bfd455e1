"""``scatter`` and its relatives: windows of updates put into (or combined with) an operand, one after the other.

Updates are applied in the order of their row-major index, so of several ``scatter`` updates for one place the last
stands, every time.
"""

from __future__ import annotations

import operator
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, final

import numpy as np

from jaxlite.core import dtypes
from jaxlite.core.avals import ShapedArray, aval_of
from jaxlite.core.factors import Factors, axes_of
from jaxlite.core.primitive import AxisData, Primitive, Sample
from jaxlite.interpreters.batch import place_axis
from jaxlite.interpreters.zeros import Zero, instantiate, is_linear, zero_of
from jaxlite.lax.convert import constant, operands_of
from jaxlite.lax.elementwise.arithmetic import add, div, mul
from jaxlite.lax.elementwise.casts import convert
from jaxlite.lax.elementwise.comparison import eq
from jaxlite.lax.elementwise.select import select
from jaxlite.lax.indexing.gather import gather_p
from jaxlite.lax.indexing.places import GatherScatterMode, ScatterDimensionNumbers, array_places, window_axes
from jaxlite.lax.layout.iota import flat_iota
from jaxlite.lax.layout.shaping import full


class Scatter(Primitive):
    """Base of scatters: a member says how an update and what stands there combine."""

    family: ClassVar[str] = "scatter"
    accepts: ClassVar[str] = "biuf"
    samples = tuple(
        Sample(
            ((5, 3), (4, 1), (4, 3)),
            {"dimension_numbers": ScatterDimensionNumbers((1,), (0,), (0,)), "mode": mode,
             "indices_are_sorted": False, "unique_indices": False},
            low=-2, high=6, dtypes=("float32", "int32", "float32"),
        )
        for mode in (
            GatherScatterMode.CLIP,
            GatherScatterMode.FILL_OR_DROP,
            GatherScatterMode.PROMISE_IN_BOUNDS,
        )
    )  # fmt: skip

    @abstractmethod
    def combine(self, e: Any, old: Any, update: Any) -> Any:
        """What stands at a place after an update, in terms of the emitter ``e``."""

    @abstractmethod
    def put(self, out: np.ndarray[Any, Any], places: Any, updates: np.ndarray[Any, Any]) -> None:
        """Applies updates with NumPy, in order."""

    def abstract_eval(self, *avals: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        operand, indices, updates = avals
        n = params["dimension_numbers"]
        if not dtypes.is_integer(indices.dtype):
            raise ValueError(f"Scatter indices must be integers, got {indices.dtype.name}.")
        if operand.dtype != updates.dtype:
            raise TypeError(
                f"{self.name} requires operand and updates of one dtype, got {operand.dtype.name} "
                f"and {updates.dtype.name}."
            )
        if indices.ndim < 1 or indices.shape[-1] != len(n.scatter_dims_to_operand_dims):
            raise TypeError(
                f"{self.name}: the last axis of the indices, of shape {indices.shape}, must have "
                f"one entry for each of {n.scatter_dims_to_operand_dims}."
            )
        axes = window_axes(n.as_gather(), operand.ndim)
        if len(axes) != len(n.update_window_dims) or updates.ndim != len(axes) + indices.ndim - 1:
            raise TypeError(
                f"{self.name}: updates of shape {updates.shape} must have "
                f"{len(axes) + indices.ndim - 1} axes, {len(axes)} of them in update_window_dims "
                f"{n.update_window_dims}."
            )
        if any(updates.shape[d] > operand.shape[a] for a, d in zip(axes, n.update_window_dims, strict=True)):
            raise TypeError(
                f"{self.name}: windows of updates of shape {updates.shape} are larger than the "
                f"operand, of shape {operand.shape}."
            )
        batch = tuple(s for d, s in enumerate(updates.shape) if d not in n.update_window_dims)
        if batch != indices.shape[:-1]:
            raise TypeError(
                f"{self.name}: updates of shape {updates.shape} do not fit indices of shape {indices.shape}."
            )
        return (ShapedArray(operand.shape, operand.dtype, operand.weak_type),)

    @staticmethod
    def window(numbers: ScatterDimensionNumbers, shape: Sequence[int], updates: Sequence[int]) -> tuple[int, ...]:
        """The window's length along each axis of the operand."""
        lengths = [1] * len(shape)
        for axis, d in zip(window_axes(numbers.as_gather(), len(shape)), numbers.update_window_dims, strict=True):
            lengths[axis] = updates[d]
        return tuple(lengths)

    def factors(self, avals: Sequence[ShapedArray], results: Sequence[ShapedArray], **params: Any) -> Factors | None:
        (operand, indices, updates), n = avals, params["dimension_numbers"]
        rank = operand.ndim
        at = [rank + d for d in range(indices.ndim)]
        for own, other in zip(n.operand_batching_dims, n.scatter_indices_batching_dims, strict=True):
            at[other] = own
        axes = dict(zip(n.update_window_dims, window_axes(n.as_gather(), rank), strict=True))
        partial = {d for d, a in axes.items() if updates.shape[d] != operand.shape[a]}
        examples, after = iter(at[:-1]), rank + indices.ndim
        update = [after + d if d in partial else axes[d] if d in axes else next(examples) for d in range(updates.ndim)]
        sizes = {
            **dict(enumerate(operand.shape)),
            **{rank + d: s for d, s in enumerate(indices.shape)},
            **{after + d: s for d, s in enumerate(updates.shape)},
        }
        why = (
            "Use `.at[...].set/add/mul/...(out_sharding=)` to provide output PartitionSpec for the scatter update as "
            "out sharding could not be resolved unambiguously (or would require collectives on inputs)."
        )
        through = {axes[d] for d in axes if d not in partial} | set(n.operand_batching_dims)
        whole = {f: why for f in sizes if f not in through}
        every = axes_of(range(rank))
        return Factors((every, axes_of(at), axes_of(update)), (every,), sizes, whole=whole)

    def evaluate(self, *arrays: np.ndarray[Any, Any], **params: Any) -> tuple[np.ndarray[Any, Any], ...]:
        operand, indices, updates = arrays
        out = np.array(operand)
        if not updates.size or not operand.size:
            return (out,)
        n = params["dimension_numbers"]
        window = self.window(n, operand.shape, updates.shape)
        mode = params["mode"].when_writing
        places, inside = array_places(n.as_gather(), mode, operand.shape, window, updates.shape, indices)
        self.put(out, tuple(p[inside] for p in places), updates[inside])
        return (out,)

    def gathered(self, values: Any, indices: Any, updates: ShapedArray, params: dict[str, Any]) -> Any:
        """``values``, of the operand's shape, read at the places of the updates; 0 outside."""
        n = params["dimension_numbers"]
        window = self.window(n, aval_of(values).shape, updates.shape)
        return gather_p.bind(
            values, indices, dimension_numbers=n.as_gather(), slice_sizes=window, mode=params["mode"].when_writing,
            fill_value=0,
            indices_are_sorted=params["indices_are_sorted"], unique_indices=params["unique_indices"],
        )  # fmt: skip

    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[int | None], /, **params: Any
    ) -> tuple[list[Any], list[int | None]]:
        operand, indices, updates = operands
        operand = place_axis(operand, dims[0], axis.size, 0)
        updates = place_axis(updates, dims[2], axis.size, 0)
        n = params["dimension_numbers"]
        up = {k: tuple(d + 1 for d in getattr(n, k)) for k in n._fields if k != "scatter_indices_batching_dims"}
        n = n._replace(**up)
        if dims[1] is None:  # the batch is one more axis of the window
            n = n._replace(update_window_dims=(0, *n.update_window_dims))
        else:
            indices = place_axis(indices, dims[1], axis.size, 0)
            n = n._replace(
                operand_batching_dims=(0, *n.operand_batching_dims),
                scatter_indices_batching_dims=(0, *(d + 1 for d in n.scatter_indices_batching_dims)),
            )
        return [self.bind(operand, indices, updates, **{**params, "dimension_numbers": n})], [0]

    def transpose(self, cotangents: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
        raise NotImplementedError(f"{self.name} is not linear, so it has no transpose.")


@final
class ScatterSet(Scatter):
    name = "scatter"
    accepts = "biufK"
    piecewise_linear = True

    def combine(self, e: Any, old: Any, update: Any) -> Any:
        return update

    def put(self, out: np.ndarray[Any, Any], places: Any, updates: np.ndarray[Any, Any]) -> None:
        out[places] = updates

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        out = self.bind(*primals, **params)
        if type(tangents[0]) is Zero and type(tangents[2]) is Zero:
            return [out], [zero_of(out)]
        return [out], [self.bind(instantiate(tangents[0]), primals[1], instantiate(tangents[2]), **params)]

    def transpose(self, cotangents: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
        (cotangent,) = cotangents
        operand, indices, updates = operands
        to_operand = to_updates = None
        shape = aval_of(updates).shape
        if is_linear(operand):
            to_operand = self.bind(cotangent, indices, full(shape, constant(0, aval_of(cotangent).dtype)), **params)
        if is_linear(updates):
            to_updates = self.gathered(cotangent, indices, aval_of(updates), params)
            if not params["unique_indices"]:  # only the update that stands in the end has a derivative
                mine = flat_iota(np.int32, shape)
                nobody = full(aval_of(cotangent).shape, np.int32(-1))
                stands = self.gathered(self.bind(nobody, indices, mine, **params), indices, aval_of(updates), params)
                to_updates = select(eq(stands, mine), to_updates, full(shape, constant(0, aval_of(cotangent).dtype)))
        return [to_operand, None, to_updates]


@final
class ScatterAdd(Scatter):
    name = "scatter-add"
    accepts = "iuf"
    piecewise_linear = True

    def combine(self, e: Any, old: Any, update: Any) -> Any:
        return e.add(old, update)

    def put(self, out: np.ndarray[Any, Any], places: Any, updates: np.ndarray[Any, Any]) -> None:
        np.add.at(out, places, updates)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        out = self.bind(*primals, **params)
        if type(tangents[0]) is Zero and type(tangents[2]) is Zero:
            return [out], [zero_of(out)]
        return [out], [self.bind(instantiate(tangents[0]), primals[1], instantiate(tangents[2]), **params)]

    def transpose(self, cotangents: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
        operand, indices, updates = operands
        to_operand = cotangents[0] if is_linear(operand) else None
        to_updates = self.gathered(cotangents[0], indices, aval_of(updates), params) if is_linear(updates) else None
        return [to_operand, None, to_updates]


@final
class ScatterMul(Scatter):
    name = "scatter_mul"
    accepts = "iuf"

    def combine(self, e: Any, old: Any, update: Any) -> Any:
        return e.mul(old, update)

    def put(self, out: np.ndarray[Any, Any], places: Any, updates: np.ndarray[Any, Any]) -> None:
        np.multiply.at(out, places, updates)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        operand, indices, updates = primals
        out = self.bind(*primals, **params)
        total: Any = None
        if type(tangents[0]) is not Zero:
            ones = full(aval_of(operand).shape, constant(1, aval_of(operand).dtype))
            total = mul(tangents[0], self.bind(ones, indices, updates, **params))
        if type(tangents[2]) is not Zero:
            if not params["unique_indices"]:
                raise NotImplementedError(
                    "scatter_mul has derivatives with respect to its updates only with unique_indices=True: say "
                    ".at[...].multiply(updates, unique_indices=True) if no place is named twice."
                )
            slope = mul(tangents[2], self.gathered(operand, indices, aval_of(updates), params))
            zeros = full(aval_of(operand).shape, constant(0, aval_of(operand).dtype))
            moved = scatter_add_p.bind(zeros, indices, slope, **params)
            total = moved if total is None else add(total, moved)
        return [out], [zero_of(out) if total is None else total]


class _ScatterExtremum(Scatter):
    """Base of ``scatter_min`` and ``scatter_max``: those that attain the extremum share the tangent evenly."""

    piecewise_linear = True

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        operand, indices, updates = primals
        out = self.bind(*primals, **params)
        if type(tangents[0]) is Zero and type(tangents[2]) is Zero:
            return [out], [zero_of(out)]
        dtype = aval_of(out).dtype
        mine = convert(eq(operand, out), dtype)
        reached = self.gathered(out, indices, aval_of(updates), params)
        theirs = convert(eq(updates, reached), dtype)
        count = scatter_add_p.bind(mine, indices, theirs, **params)
        total = scatter_add_p.bind(
            mul(instantiate(tangents[0]), mine), indices, mul(instantiate(tangents[2]), theirs), **params
        )
        return [out], [div(total, count)]


@final
class ScatterMin(_ScatterExtremum):
    name = "scatter_min"

    def combine(self, e: Any, old: Any, update: Any) -> Any:
        return e.min(old, update)

    def put(self, out: np.ndarray[Any, Any], places: Any, updates: np.ndarray[Any, Any]) -> None:
        np.minimum.at(out, places, updates)


@final
class ScatterMax(_ScatterExtremum):
    name = "scatter_max"

    def combine(self, e: Any, old: Any, update: Any) -> Any:
        return e.max(old, update)

    def put(self, out: np.ndarray[Any, Any], places: Any, updates: np.ndarray[Any, Any]) -> None:
        np.maximum.at(out, places, updates)


scatter_p, scatter_add_p, scatter_mul_p = ScatterSet(), ScatterAdd(), ScatterMul()
scatter_min_p, scatter_max_p = ScatterMin(), ScatterMax()


def _bind(primitive: Scatter, operand: Any, indices: Any, updates: Any, numbers: Any, options: dict[str, Any]) -> Any:
    numbers = ScatterDimensionNumbers(*(tuple(map(operator.index, part)) for part in numbers))
    return primitive.bind(
        *operands_of(operand, indices, updates), dimension_numbers=numbers,
        mode=GatherScatterMode.from_any(options.get("mode")),
        indices_are_sorted=bool(options.get("indices_are_sorted", False)),
        unique_indices=bool(options.get("unique_indices", False)),
    )  # fmt: skip


def scatter(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: Any,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Any = None,
) -> Any:
    """``operand`` with windows of ``updates`` put at ``scatter_indices``; the last of several for one place stands."""
    options = {"mode": mode, "indices_are_sorted": indices_are_sorted, "unique_indices": unique_indices}
    return _bind(scatter_p, operand, scatter_indices, updates, dimension_numbers, options)


def scatter_add(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: Any,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Any = None,
) -> Any:
    """``operand`` with ``updates`` added at ``scatter_indices``."""
    options = {"mode": mode, "indices_are_sorted": indices_are_sorted, "unique_indices": unique_indices}
    return _bind(scatter_add_p, operand, scatter_indices, updates, dimension_numbers, options)


def scatter_mul(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: Any,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Any = None,
) -> Any:
    """``operand`` multiplied by ``updates`` at ``scatter_indices``."""
    options = {"mode": mode, "indices_are_sorted": indices_are_sorted, "unique_indices": unique_indices}
    return _bind(scatter_mul_p, operand, scatter_indices, updates, dimension_numbers, options)


def scatter_min(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: Any,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Any = None,
) -> Any:
    """The smaller of ``operand`` and ``updates`` at ``scatter_indices``."""
    options = {"mode": mode, "indices_are_sorted": indices_are_sorted, "unique_indices": unique_indices}
    return _bind(scatter_min_p, operand, scatter_indices, updates, dimension_numbers, options)


def scatter_max(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: Any,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Any = None,
) -> Any:
    """The larger of ``operand`` and ``updates`` at ``scatter_indices``."""
    options = {"mode": mode, "indices_are_sorted": indices_are_sorted, "unique_indices": unique_indices}
    return _bind(scatter_max_p, operand, scatter_indices, updates, dimension_numbers, options)
