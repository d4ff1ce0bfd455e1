"""Collectives over named axes, of ``vmap`` or of a mesh: sums, extrema, exchanges and the index along an axis."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, final

import numpy as np

from jaxlite.core.avals import ShapedArray, aval_of
from jaxlite.core.context import context
from jaxlite.core.primitive import AxisData, Primitive
from jaxlite.interpreters.batch import broadcast_axis, move_axis
from jaxlite.interpreters.zeros import Zero, instantiate, zero_of
from jaxlite.lax.elementwise.arithmetic import div, mul
from jaxlite.lax.elementwise.casts import convert
from jaxlite.lax.indexing.gather import gather
from jaxlite.lax.indexing.places import GatherDimensionNumbers
from jaxlite.lax.layout.iota import iota
from jaxlite.lax.layout.shaping import reshape
from jaxlite.lax.reductions.extrema import reduce_max, reduce_min
from jaxlite.lax.reductions.sums import reduce_sum


def axis_size(axis_name: Any) -> int:
    """The number of examples along the named axis (or axes); ``NameError`` where it is not in scope."""
    if isinstance(axis_name, (tuple, list)):
        size = 1
        for name in axis_name:
            size *= axis_size(name)
        return size
    if axis_name not in context.axis_sizes:
        known = ", ".join(map(repr, context.axis_sizes)) or "none"
        raise NameError(
            f"unbound axis name: {axis_name}. The named axes in scope are: {known}.  Name one with "
            f"jax.vmap(..., axis_name={axis_name!r})."
        )
    return context.axis_sizes[axis_name]


class Collective(Primitive):
    """Base of collectives over one named axis, ``axis_name``, of one operand."""

    family: ClassVar[str] = "collective"
    accepts: ClassVar[str] = "biuf"
    piecewise_linear = True
    types_variation = True

    def axis_names(self, **params: Any) -> tuple[Any, ...]:
        return (params["axis_name"],)

    def evaluate(self, *arrays: np.ndarray[Any, Any], **params: Any) -> tuple[np.ndarray[Any, Any], ...]:
        raise NameError(f"unbound axis name: {params['axis_name']}.")

    def abstract_eval(self, *avals: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        axis_size(params["axis_name"])
        return avals

    @abstractmethod
    def across(self, axis: AxisData, operand: Any, **params: Any) -> tuple[Any, int | None]:
        """The result over a whole batch (its axis first in ``operand``), and where the result's batch axis is."""

    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[int | None], /, **params: Any
    ) -> tuple[list[Any], list[int | None]]:
        (operand,), (dim,) = operands, dims
        if params["axis_name"] != axis.name:
            return [self.bind(move_axis(operand, dim, 0), **self.shifted(params))], [0]  # type: ignore[arg-type]
        whole = broadcast_axis(operand, axis.size, 0) if dim is None else move_axis(operand, dim, 0)
        out, where = self.across(axis, whole, **params)
        return [out], [where]

    def shifted(self, params: dict[str, Any]) -> dict[str, Any]:
        """The parameters where operands have one more axis in front."""
        return params

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        out = self.bind(*primals, **params)
        if type(tangents[0]) is Zero:
            return [out], [zero_of(out)]
        return [out], [self.bind(instantiate(tangents[0]), **params)]

    def transpose(self, cotangents: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
        raise NotImplementedError(f"{self.name} is not linear, so it has no transpose.")


@final
class Psum(Collective):
    name = "psum"
    accepts = "iuf"

    def across(self, axis: AxisData, operand: Any, **params: Any) -> tuple[Any, int | None]:
        return reduce_sum(operand, (0,)), None

    def transpose(self, cotangents: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
        return [self.bind(cotangents[0], **params)]


@final
class AllReduce(Primitive):
    """The sums of several operands over named axes, in one exchange: what a program over a mesh is given where sums are
    due together."""

    name, family, multiple_results, accepts = "all_reduce", "collective", True, "iuf"
    types_variation = True

    def axis_names(self, **params: Any) -> tuple[Any, ...]:
        return tuple(params["axes"])

    def abstract_eval(self, *avals: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        return avals

    def evaluate(self, *arrays: np.ndarray[Any, Any], **params: Any) -> tuple[np.ndarray[Any, Any], ...]:
        raise NameError(f"unbound axis names: {params['axes']}.")

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        return self.bind(*primals, **params), self.bind(*map(instantiate, tangents), **params)

    def transpose(self, cotangents: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
        return self.bind(*map(instantiate, cotangents), **params)  # type: ignore[no-any-return]

    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[int | None], /, **params: Any
    ) -> tuple[list[Any], list[int | None]]:
        if axis.name not in params["axes"]:
            return self.bind(*operands, **params), list(dims)
        whole = [
            broadcast_axis(o, axis.size, 0) if d is None else move_axis(o, d, 0)
            for o, d in zip(operands, dims, strict=True)
        ]
        sums = [reduce_sum(w, (0,)) for w in whole]
        rest = tuple(n for n in params["axes"] if n != axis.name)
        return self.bind(*sums, axes=rest) if rest else sums, [None] * len(sums)


@final
class PsumInvariant(Collective):
    """``psum`` inside ``shard_map``: its result is the same on all devices, and what flows back to each is what flows
    back to that one value."""

    name = "psum_invariant"
    accepts = "iuf"

    def abstract_eval(self, *avals: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        axis_size(params["axis_name"])
        return _invariant(avals[0], params)

    def across(self, axis: AxisData, operand: Any, **params: Any) -> tuple[Any, int | None]:
        return reduce_sum(operand, (0,)), None

    def transpose(self, cotangents: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
        return [pvary_p.bind(cotangents[0], axes=(params["axis_name"],))]


@final
class Pvary(Primitive):
    """The operand, marked as varying along ``axes``; nothing is computed."""

    name, family, accepts, types_variation = "pvary", "collective", "biufK", True

    def axis_names(self, **params: Any) -> tuple[Any, ...]:
        return tuple(params["axes"])

    def abstract_eval(self, *avals: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        return (avals[0].update(varying=avals[0].varying | set(params["axes"])),)

    def evaluate(self, *arrays: np.ndarray[Any, Any], **params: Any) -> tuple[np.ndarray[Any, Any], ...]:
        return arrays

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        out = self.bind(*primals, **params)
        tangent = zero_of(out) if type(tangents[0]) is Zero else self.bind(tangents[0], **params)
        return [out], [tangent]

    def transpose(self, cotangents: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
        total = cotangents[0]
        for name in params["axes"]:
            total = psum_invariant_p.bind(total, axis_name=name)
        return [total]

    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[int | None], /, **params: Any
    ) -> tuple[list[Any], list[int | None]]:
        rest = tuple(name for name in params["axes"] if name != axis.name)
        return [self.bind(operands[0], axes=rest) if rest else operands[0]], [dims[0]]


def _invariant(aval: ShapedArray, params: dict[str, Any]) -> tuple[ShapedArray, ...]:
    """The type of a result that is the same along the axis."""
    return (aval.update(varying=aval.varying - {params["axis_name"]}) if aval.varying else aval,)


def _varying(aval: ShapedArray, params: dict[str, Any]) -> tuple[ShapedArray, ...]:
    """The type of a result that differs along the axis, where types speak of it."""
    axes = context.manual & {params["axis_name"]}
    return (aval.update(varying=aval.varying | axes) if axes else aval,)


@final
class Pmax(Collective):
    name = "pmax"

    def abstract_eval(self, *avals: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        axis_size(params["axis_name"])
        return _invariant(avals[0], params)

    def across(self, axis: AxisData, operand: Any, **params: Any) -> tuple[Any, int | None]:
        return reduce_max(operand, (0,)), None

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        return _extremum_jvp(self, primals, tangents, params)


@final
class Pmin(Collective):
    name = "pmin"

    def abstract_eval(self, *avals: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        axis_size(params["axis_name"])
        return _invariant(avals[0], params)

    def across(self, axis: AxisData, operand: Any, **params: Any) -> tuple[Any, int | None]:
        return reduce_min(operand, (0,)), None

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        return _extremum_jvp(self, primals, tangents, params)


def _extremum_jvp(
    primitive: Collective, primals: Any, tangents: Any, params: dict[str, Any]
) -> tuple[list[Any], list[Any]]:
    """The examples that attain the extremum share the tangent."""
    from jaxlite.lax.elementwise.comparison import eq

    out = primitive.bind(*primals, **params)
    if type(tangents[0]) is Zero:
        return [out], [zero_of(out)]
    attains = convert(eq(primals[0], out), aval_of(out).dtype)
    total = sum_over(mul(tangents[0], attains), params["axis_name"])
    return [out], [div(total, sum_over(attains, params["axis_name"]))]


def sum_over(x: Any, axis_name: Any) -> Any:
    return (psum_invariant_p if axis_name in context.manual else psum_p).bind(x, axis_name=axis_name)


@final
class AllGather(Collective):
    """Every example's operand, along a new axis at ``all_gather_dimension`` (``tiled``: along that axis itself)."""

    name = "all_gather"
    accepts = "biufK"

    def abstract_eval(self, *avals: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        (aval,), d, n = avals, params["all_gather_dimension"], axis_size(params["axis_name"])
        shape = list(aval.shape)
        if params["tiled"]:
            shape[d] *= n
        else:
            shape.insert(d, n)
        return _varying(aval.update(shape=tuple(shape)), params)

    def across(self, axis: AxisData, operand: Any, **params: Any) -> tuple[Any, int | None]:
        d = params["all_gather_dimension"]
        moved = move_axis(operand, 0, d)
        if params["tiled"]:
            shape = aval_of(moved).shape
            moved = reshape(moved, (*shape[:d], shape[d] * shape[d + 1], *shape[d + 2 :]))
        return moved, None

    def shifted(self, params: dict[str, Any]) -> dict[str, Any]:
        return {**params, "all_gather_dimension": params["all_gather_dimension"] + 1}

    def transpose(self, cotangents: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
        total = sum_over(cotangents[0], params["axis_name"])
        d, n = params["all_gather_dimension"], axis_size(params["axis_name"])
        shape = aval_of(total).shape
        if params["tiled"]:
            total = reshape(total, (*shape[:d], n, shape[d] // n, *shape[d + 1 :]))
        from jaxlite.lax.indexing.dynamic import dynamic_index_in_dim

        here = axis_index_p.bind(axis_name=params["axis_name"])
        return [dynamic_index_in_dim(total, here, d, keepdims=False)]


@final
class ReduceScatter(Collective):
    """The sum over the examples, of which each keeps its part along ``scatter_dimension`` (not ``tiled``: that axis has
    the length of the named one, and goes)."""

    name = "reduce_scatter"
    accepts = "iuf"

    def abstract_eval(self, *avals: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        (aval,), d, n = avals, params["scatter_dimension"], axis_size(params["axis_name"])
        shape = list(aval.shape)
        if not -len(shape) <= d < len(shape) or (shape[d] % n if params["tiled"] else shape[d] != n):
            must = f"be a multiple of {n}" if params["tiled"] else f"be {n} (or give tiled=True)"
            raise ValueError(
                f"psum_scatter: axis {d} of shape {aval.shape} must {must}, the size of the axis "
                f"{params['axis_name']!r}."
            )
        if params["tiled"]:
            shape[d] //= n
        else:
            del shape[d]
        return _varying(aval.update(shape=tuple(shape)), params)

    def across(self, axis: AxisData, operand: Any, **params: Any) -> tuple[Any, int | None]:
        total, d = reduce_sum(operand, (0,)), params["scatter_dimension"]
        if not params["tiled"]:
            return total, d
        shape = aval_of(total).shape
        return reshape(total, (*shape[:d], axis.size, shape[d] // axis.size, *shape[d + 1 :])), d

    def shifted(self, params: dict[str, Any]) -> dict[str, Any]:
        return {**params, "scatter_dimension": params["scatter_dimension"] + 1}

    def transpose(self, cotangents: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
        name, d, tiled = params["axis_name"], params["scatter_dimension"], params["tiled"]
        return [all_gather_p.bind(cotangents[0], axis_name=name, all_gather_dimension=d, tiled=tiled)]


@final
class Ppermute(Collective):
    """Example ``a`` sends its operand to example ``b`` for each pair in ``perm``; who gets none has zeros."""

    name = "ppermute"

    def across(self, axis: AxisData, operand: Any, **params: Any) -> tuple[Any, int | None]:
        source = np.full(axis.size, axis.size, np.int32)
        for a, b in params["perm"]:
            source[b] = a
        shape = aval_of(operand).shape
        numbers = GatherDimensionNumbers(tuple(range(1, len(shape))), (0,), (0,))
        return gather(operand, source[:, None], numbers, (1, *shape[1:]), mode="fill", fill_value=0), 0

    def transpose(self, cotangents: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
        back = tuple((b, a) for a, b in params["perm"])
        return [self.bind(cotangents[0], axis_name=params["axis_name"], perm=back)]


@final
class AllToAll(Collective):
    """Splits axis ``split_axis`` over the examples and joins what they send along ``concat_axis``."""

    name = "all_to_all"

    def abstract_eval(self, *avals: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        (aval,), n = avals, axis_size(params["axis_name"])
        shape = list(aval.shape)
        if shape[params["split_axis"]] % n:
            raise ValueError(
                f"all_to_all: axis {params['split_axis']} of shape {aval.shape} does not split over {n} examples."
            )
        shape[params["split_axis"]] //= n
        shape[params["concat_axis"]] *= n
        return _varying(aval.update(shape=tuple(shape)), params)

    def across(self, axis: AxisData, operand: Any, **params: Any) -> tuple[Any, int | None]:
        s, c, n = params["split_axis"], params["concat_axis"], axis.size
        shape = aval_of(operand).shape
        parts = reshape(operand, (*shape[: s + 1], n, shape[s + 1] // n, *shape[s + 2 :]))
        swapped = move_axis(parts, s + 1, 0)  # (to, from, ..., piece, ...)
        rows = [move_axis(swapped, 1, 1 + c)]
        whole = aval_of(rows[0]).shape
        return reshape(rows[0], (whole[0], *whole[1 : 1 + c], n * whole[2 + c], *whole[3 + c :])), 0

    def shifted(self, params: dict[str, Any]) -> dict[str, Any]:
        return {**params, "split_axis": params["split_axis"] + 1, "concat_axis": params["concat_axis"] + 1}

    def transpose(self, cotangents: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
        swapped = {"split_axis": params["concat_axis"], "concat_axis": params["split_axis"]}
        return [self.bind(cotangents[0], axis_name=params["axis_name"], **swapped)]


@final
class AxisIndex(Primitive):
    """The position of this example along a named axis, int32."""

    name, family, accepts, types_variation = "axis_index", "collective", "", True

    def axis_names(self, **params: Any) -> tuple[Any, ...]:
        return (params["axis_name"],)

    def abstract_eval(self, *avals: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        axis_size(params["axis_name"])
        return _varying(ShapedArray((), np.dtype(np.int32)), params)

    def evaluate(self, *arrays: np.ndarray[Any, Any], **params: Any) -> tuple[np.ndarray[Any, Any], ...]:
        raise NameError(f"unbound axis name: {params['axis_name']}.")

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        out = self.bind(**params)
        return [out], [zero_of(out)]

    def transpose(self, cotangents: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
        return []

    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[int | None], /, **params: Any
    ) -> tuple[list[Any], list[int | None]]:
        return [iota(np.int32, axis.size)], [0]


psum_p, pmax_p, pmin_p, all_gather_p = Psum(), Pmax(), Pmin(), AllGather()
ppermute_p, all_to_all_p, axis_index_p = Ppermute(), AllToAll(), AxisIndex()
psum_invariant_p, pvary_p, reduce_scatter_p, all_reduce_p = PsumInvariant(), Pvary(), ReduceScatter(), AllReduce()
