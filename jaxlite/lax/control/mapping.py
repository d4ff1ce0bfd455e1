"""``map``: a function applied to each slice in turn, or to batches of slices."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from jaxlite.core.avals import aval_of
from jaxlite.core.context import context
from jaxlite.core.primitive import AxisData
from jaxlite.core.pytree import tree_flatten, tree_map
from jaxlite.interpreters.batch import batch, place_axis
from jaxlite.lax.control.scan import scan
from jaxlite.lax.convert import operand_of
from jaxlite.lax.layout.shaping import reshape
from jaxlite.lax.layout.slicing import concatenate, slice_in_dim


def map(f: Callable[[Any], Any], xs: Any, *, batch_size: int | None = None) -> Any:
    """``f`` of each slice of ``xs`` along its first axis, one after the other; ``batch_size`` slices at once if given.

    >>> import jaxlite.numpy as jnp
    >>> map(lambda x: x * 2, jnp.arange(3))
    Array([0, 2, 4], dtype=int32)
    """
    if batch_size is None:
        return scan(lambda _, x: (None, f(x)), None, xs)[1]
    size = operator.index(batch_size)
    if size < 1:
        raise ValueError(f"map: batch_size must be at least 1, got {batch_size}.")
    leaves, _ = tree_flatten(xs)
    length = aval_of(operand_of(leaves[0])).shape[0]
    whole = length - length % size

    def grouped(x: Any) -> Any:
        part = slice_in_dim(operand_of(x), 0, whole)
        return reshape(part, (whole // size, size, *aval_of(part).shape[1:]))

    parts = []
    if whole:
        stacked = scan(lambda _, x: (None, _batched(f, x, size)), None, tree_map(grouped, xs))[1]
        parts.append(tree_map(lambda y: reshape(y, (whole, *aval_of(y).shape[2:])), stacked))
    if length % size or not length:
        rest = tree_map(lambda x: slice_in_dim(operand_of(x), whole, length), xs)
        parts.append(_batched(f, rest, length - whole))
    return parts[0] if len(parts) == 1 else tree_map(lambda a, b: concatenate([a, b], 0), *parts)


def _batched(f: Callable[[Any], Any], xs: Any, size: int) -> Any:
    """``f`` over the first axis of ``xs`` at once."""
    leaves, tree = tree_flatten(xs)
    out: list[Any] = []

    def flat(*values: Any) -> list[Any]:
        results, structure = tree_flatten(f(tree.unflatten(values)))
        out[:] = [structure]
        return [operand_of(r) for r in results]

    results, dims = batch(flat, leaves, [0] * len(leaves), AxisData(None, size), context.trace)
    return out[0].unflatten([place_axis(r, d, size, 0) for r, d in zip(results, dims, strict=True)])
