"""Collectives over the named axes of ``vmap``: sums, extrema, exchanges and the index along an axis."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, final

import numpy as np

from jaxlite.core import dtypes
from jaxlite.core.avals import ShapedArray, aval_of
from jaxlite.core.context import context
from jaxlite.core.errors import refuse
from jaxlite.core.primitive import AxisData, Primitive
from jaxlite.core.pytree import tree_map
from jaxlite.interpreters.batch import broadcast_axis, move_axis
from jaxlite.interpreters.zeros import Zero, instantiate, zero_of
from jaxlite.lax.convert import full_like, operand_of
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
class Pmax(Collective):
    name = "pmax"

    def across(self, axis: AxisData, operand: Any, **params: Any) -> tuple[Any, int | None]:
        return reduce_max(operand, (0,)), None

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        return _extremum_jvp(self, primals, tangents, params)


@final
class Pmin(Collective):
    name = "pmin"

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
    total = psum_p.bind(mul(tangents[0], attains), **params)
    return [out], [div(total, psum_p.bind(attains, **params))]


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
        return (aval.update(shape=tuple(shape)),)

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
        total = psum_p.bind(cotangents[0], axis_name=params["axis_name"])
        d, n = params["all_gather_dimension"], axis_size(params["axis_name"])
        shape = aval_of(total).shape
        if params["tiled"]:
            total = reshape(total, (*shape[:d], n, shape[d] // n, *shape[d + 1 :]))
        from jaxlite.lax.indexing.dynamic import dynamic_index_in_dim

        here = axis_index_p.bind(axis_name=params["axis_name"])
        return [dynamic_index_in_dim(total, here, d, keepdims=False)]


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
        return (aval.update(shape=tuple(shape)),)

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

    name, family, accepts = "axis_index", "collective", ""

    def axis_names(self, **params: Any) -> tuple[Any, ...]:
        return (params["axis_name"],)

    def abstract_eval(self, *avals: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        axis_size(params["axis_name"])
        return (ShapedArray((), np.dtype(np.int32)),)

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


def _names(axis_name: Any) -> tuple[Any, ...]:
    return tuple(axis_name) if isinstance(axis_name, (tuple, list)) else (axis_name,)


def _over(primitive: Collective, x: Any, axis_name: Any) -> Any:
    def leaf(value: Any) -> Any:
        value = operand_of(value)
        for name in _names(axis_name):
            axis_size(name)
            value = primitive.bind(value, axis_name=name)
        return value

    return tree_map(leaf, x)


def psum(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The sum of ``x`` (a pytree) over the named axis; a Python number is multiplied by the axis' size."""
    refuse("psum", "axis_index_groups", axis_index_groups, None, "collectives act on the whole axis")
    if isinstance(x, (int, float)) and not isinstance(x, bool):
        return x * axis_size(axis_name)
    return _over(psum_p, x, axis_name)


def pmean(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The mean of ``x`` over the named axis."""
    refuse("pmean", "axis_index_groups", axis_index_groups, None, "collectives act on the whole axis")
    n = axis_size(axis_name)

    def leaf(total: Any) -> Any:
        total = operand_of(total)
        if not dtypes.is_inexact(aval_of(total).dtype):
            total = convert(total, dtypes.canonicalize(np.float64))
        return div(total, full_like(total, n))

    return tree_map(leaf, psum(x, axis_name))


def pmax(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The largest of ``x`` over the named axis."""
    refuse("pmax", "axis_index_groups", axis_index_groups, None, "collectives act on the whole axis")
    return _over(pmax_p, x, axis_name)


def pmin(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The smallest of ``x`` over the named axis."""
    refuse("pmin", "axis_index_groups", axis_index_groups, None, "collectives act on the whole axis")
    return _over(pmin_p, x, axis_name)


def all_gather(x: Any, axis_name: Any, *, axis_index_groups: Any = None, axis: int = 0, tiled: bool = False) -> Any:
    """Every example's ``x``, along a new axis (or, ``tiled``, along ``axis`` itself)."""
    refuse("all_gather", "axis_index_groups", axis_index_groups, None, "collectives act on the whole axis")
    axis_size(axis_name)
    return tree_map(
        lambda v: all_gather_p.bind(operand_of(v), axis_name=axis_name, all_gather_dimension=axis, tiled=bool(tiled)), x
    )


def ppermute(x: Any, axis_name: Any, perm: Any) -> Any:
    """``x`` sent along the named axis by the (source, destination) pairs of ``perm``; zeros where nothing arrives."""
    pairs = tuple((int(a), int(b)) for a, b in perm)
    n = axis_size(axis_name)
    if len({a for a, _ in pairs}) != len(pairs) or len({b for _, b in pairs}) != len(pairs):
        raise ValueError(f"ppermute sources and destinations must be unique, got {pairs}.")
    if any(not (0 <= a < n and 0 <= b < n) for a, b in pairs):
        raise ValueError(f"ppermute: pairs {pairs} must lie within an axis of size {n}.")
    return tree_map(lambda v: ppermute_p.bind(operand_of(v), axis_name=axis_name, perm=pairs), x)


def pshuffle(x: Any, axis_name: Any, perm: Any) -> Any:
    """``ppermute`` with destination ``i`` taking from ``perm[i]``."""
    return ppermute(x, axis_name, [(s, d) for d, s in enumerate(perm)])


def all_to_all(
    x: Any, axis_name: Any, split_axis: int, concat_axis: int, *, axis_index_groups: Any = None, tiled: bool = False
) -> Any:
    """Exchanges parts of ``x``: splits ``split_axis`` over the named axis and joins what arrives along
    ``concat_axis``."""
    refuse("all_to_all", "axis_index_groups", axis_index_groups, None, "collectives act on the whole axis")
    n = axis_size(axis_name)

    def leaf(value: Any) -> Any:
        value = operand_of(value)
        if tiled:
            return all_to_all_p.bind(value, axis_name=axis_name, split_axis=split_axis, concat_axis=concat_axis)
        shape = aval_of(value).shape
        if shape[split_axis] != n:
            raise ValueError(
                f"all_to_all requires the size of the mapped axis {axis_name!r}, {n}, to equal "
                f"x.shape[{split_axis}], {shape[split_axis]}."
            )
        value = move_axis(value, split_axis, concat_axis)
        shape = aval_of(value).shape
        merged = (*shape[:concat_axis], *shape[concat_axis:])
        wide = reshape(value, merged)
        return all_to_all_p.bind(wide, axis_name=axis_name, split_axis=concat_axis, concat_axis=concat_axis)

    return tree_map(leaf, x)


def axis_index(axis_name: Any) -> Any:
    """This example's position along the named axis (row-major over several), int32."""
    position: Any = None
    for name in _names(axis_name):
        size = axis_size(name)
        here = axis_index_p.bind(axis_name=name)
        position = here if position is None else position * np.int32(size) + here
    return position
