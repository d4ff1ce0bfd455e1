"""Varying values: inside ``shard_map``, types say along which mesh axes devices hold different values.

An operation whose operands differ in that applies to values that vary alike: those that vary less are first marked
as varying (``pvary``, which computes nothing).  It is an operation of the program like any other, and its transpose
sums: the derivative with respect to a value that all devices share is the sum of what each contributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxlite.core.avals import NO_AXES, ShapedArray, aval_of
from jaxlite.core.trace import Tracer


def mark_alike(pvary: Any, primitive: Any, operands: Sequence[Any]) -> Sequence[Any]:
    """Operands that vary along the same axes; constants are left as they are."""
    if len(operands) < 2 or primitive.types_variation:
        return operands
    traced = [isinstance(o, Tracer) for o in operands]
    every = union([aval_of(o) for o, t in zip(operands, traced, strict=True) if t])
    if not every:
        return operands
    return [vary_along(pvary, o, every) if t else o for o, t in zip(operands, traced, strict=True)]


def vary_along(pvary: Any, operand: Any, axes: frozenset[Any]) -> Any:
    """``operand``, marked as varying along ``axes``."""
    missing = axes - aval_of(operand).varying
    return pvary.bind(operand, axes=in_order(missing)) if missing else operand


def union(avals: Sequence[ShapedArray]) -> frozenset[Any]:
    """The axes along which any of them varies."""
    return NO_AXES.union(*[a.varying for a in avals])


def results_of(primitive: Any, avals: Sequence[ShapedArray], results: Sequence[ShapedArray]) -> Sequence[ShapedArray]:
    """The types of results: they vary as the operands do."""
    axes = NO_AXES if primitive.types_variation else union(avals)
    return [r.update(varying=r.varying | axes) for r in results] if axes else results


def in_order(axes: frozenset[Any]) -> tuple[Any, ...]:
    """The axes in an order that does not depend on hashes."""
    return tuple(sorted(axes, key=str))
