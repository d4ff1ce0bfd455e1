"""The functions of users over named axes: ``psum`` and its kin, on pytrees and over several axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxlite.core import dtypes
from jaxlite.core.avals import aval_of
from jaxlite.core.context import context
from jaxlite.core.errors import refuse
from jaxlite.core.pytree import tree_map
from jaxlite.interpreters.batch import move_axis
from jaxlite.lax.control.collectives import (
    Collective,
    all_gather_p,
    all_to_all_p,
    axis_index_p,
    axis_size,
    pmax_p,
    pmin_p,
    ppermute_p,
    psum_p,
    pvary_p,
    reduce_scatter_p,
    sum_over,
)
from jaxlite.lax.convert import full_like, operand_of
from jaxlite.lax.elementwise.arithmetic import div
from jaxlite.lax.elementwise.casts import convert
from jaxlite.lax.layout.shaping import reshape


def _names(axis_name: Any) -> tuple[Any, ...]:
    return tuple(axis_name) if isinstance(axis_name, (tuple, list)) else (axis_name,)


def _over(primitive: Collective, x: Any, axis_name: Any) -> Any:
    def leaf(value: Any) -> Any:
        value = operand_of(value)
        for name in _names(axis_name):
            axis_size(name)
            value = sum_over(value, name) if primitive is psum_p else primitive.bind(value, axis_name=name)
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


def pbroadcast(x: Any, axis_name: Any, source: int) -> Any:
    """``x`` of example ``source`` along the named axis, for all."""
    n = axis_size(axis_name)
    if not 0 <= source < n:
        raise ValueError(f"pbroadcast: source {source} must be one of the {n} examples along {axis_name!r}.")

    def leaf(value: Any) -> Any:
        every = all_gather_p.bind(operand_of(value), axis_name=axis_name, all_gather_dimension=0, tiled=False)
        return every[source]

    return tree_map(leaf, x)


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


def psum_scatter(
    x: Any, axis_name: Any, *, scatter_dimension: int = 0, axis_index_groups: Any = None, tiled: bool = False
) -> Any:
    """The sum over the named axis, of which each example keeps its part along ``scatter_dimension``; unless ``tiled``,
    that axis has the named one's length and goes."""
    refuse("psum_scatter", "axis_index_groups", axis_index_groups, None, "collectives act on the whole axis")
    axis_size(axis_name)
    params = {"axis_name": axis_name, "scatter_dimension": scatter_dimension, "tiled": bool(tiled)}
    return tree_map(lambda v: reduce_scatter_p.bind(operand_of(v), **params), x)


def pswapaxes(x: Any, axis_name: Any, axis: int, *, axis_index_groups: Any = None) -> Any:
    """The named axis exchanged with array axis ``axis``, of the same length."""
    refuse("pswapaxes", "axis_index_groups", axis_index_groups, None, "collectives act on the whole axis")
    return all_to_all(x, axis_name, axis, axis)


def pcast(x: Any, axis_name: Any, *, to: str) -> Any:
    """``x`` (a pytree) typed as varying along the named mesh axes, inside ``shard_map``."""
    if to != "varying":
        raise ValueError(
            f"pcast takes to='varying', got to={to!r}: to have a value that does not vary, sum it (lax.psum)."
        )

    def leaf(value: Any) -> Any:
        value = operand_of(value)
        for name in _names(axis_name):
            axis_size(name)
            if name in aval_of(value).varying:
                raise ValueError(f"Unsupported pcast from=varying, to='varying': it varies along {name!r} already.")
        axes = tuple(name for name in _names(axis_name) if name in context.manual)
        return pvary_p.bind(value, axes=axes) if axes else value

    return tree_map(leaf, x)


def pvary(x: Any, axis_name: Any) -> Any:
    """The older name of ``pcast(x, axis_name, to="varying")``."""
    return pcast(x, axis_name, to="varying")
