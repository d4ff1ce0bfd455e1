"""``associative_scan``: all prefixes of an associative operation, in a logarithmic number of parallel steps.

The recursion over pairs of Blelloch, "Prefix sums and their applications" (1990): combine neighbours, scan the half as
many results, and combine those with what stands between them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jaxlite.core.avals import aval_of
from jaxlite.core.primitive import get
from jaxlite.core.pytree import tree_flatten
from jaxlite.lax.convert import constant, operand_of
from jaxlite.lax.layout.shaping import rev
from jaxlite.lax.layout.slicing import concatenate, pad, slice_in_dim


def associative_scan(fn: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """The prefixes ``e0, fn(e0, e1), fn(fn(e0, e1), e2), ...`` along ``axis`` of a pytree of arrays.

    >>> import jaxlite.numpy as jnp
    >>> associative_scan(jnp.add, jnp.arange(4))
    Array([0, 1, 3, 6], dtype=int32)
    """
    if not callable(fn):
        raise TypeError("lax.associative_scan: fn argument should be callable.")
    leaves, tree = tree_flatten(elems)
    leaves = [operand_of(x) for x in leaves]
    ranks = [len(aval_of(x).shape) for x in leaves]
    if any(not -r <= axis < r for r in ranks):
        raise ValueError(f"associative_scan: axis {axis} is out of bounds for arrays of {ranks} axes.")
    axis = axis % ranks[0]
    lengths = {aval_of(x).shape[axis] for x in leaves}
    if len(lengths) > 1:
        shapes = [aval_of(x).shape for x in leaves]
        raise ValueError(f"Array inputs to associative_scan must have the same first dimension. (saw: {shapes})")

    def combine(a: list[Any], b: list[Any]) -> list[Any]:
        results, structure = tree_flatten(fn(tree.unflatten(a), tree.unflatten(b)))
        if structure != tree:
            raise TypeError(f"associative_scan: fn must give the structure that it takes, {tree}, got {structure}.")
        return [operand_of(r) for r in results]

    if reverse:
        leaves = [rev(x, (axis,)) for x in leaves]
    scanned = _prefixes(combine, leaves, axis)
    return tree.unflatten([rev(x, (axis,)) for x in scanned] if reverse else scanned)


def _prefixes(combine: Callable[[list[Any], list[Any]], list[Any]], xs: list[Any], axis: int) -> list[Any]:
    n = aval_of(xs[0]).shape[axis]
    if n < 2:
        return xs
    evens = [slice_in_dim(x, 0, n - n % 2, 2, axis) for x in xs]
    odds = [slice_in_dim(x, 1, n, 2, axis) for x in xs]
    at_odd = _prefixes(combine, combine(evens, odds), axis)  # prefixes that end at odd places
    later_evens = [slice_in_dim(x, 2, n, 2, axis) for x in xs]
    before = at_odd if n % 2 else [slice_in_dim(x, 0, -1, 1, axis) for x in at_odd]
    at_even = combine(before, later_evens) if n > 2 else later_evens
    at_even = [concatenate([slice_in_dim(x, 0, 1, 1, axis), e], axis) for x, e in zip(xs, at_even, strict=True)]
    return [_interleaved(e, o, axis) for e, o in zip(at_even, at_odd, strict=True)]


def _interleaved(evens: Any, odds: Any, axis: int) -> Any:
    """The elements of both, in turn, along ``axis``."""
    a, b = aval_of(evens), aval_of(odds)
    n = a.shape[axis] + b.shape[axis]
    zero = constant(0, a.dtype)

    def spread(x: Any, first: int, count: int) -> Any:
        config = [(0, 0, 0)] * a.ndim
        config[axis] = (first, n - first - (2 * count - 1), 1)
        return pad(x, zero, config)

    left, right = spread(evens, 0, a.shape[axis]), spread(odds, 1, b.shape[axis])
    return get("or" if a.dtype.kind == "b" else "add").bind(left, right)
