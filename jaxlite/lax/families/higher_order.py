"""The higher-order family: primitives that hold jaxprs.  They write every rule by hand; here is what they share."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from jaxlite.core.array import numpy_of
from jaxlite.core.avals import ShapedArray
from jaxlite.core.context import context_kept
from jaxlite.core.effects import NO_EFFECTS, Effects
from jaxlite.core.jaxpr import ClosedJaxpr, evaluate, subjaxprs
from jaxlite.core.primitive import AxisData, Primitive
from jaxlite.core.ref import Ref, bound, write_all
from jaxlite.core.trace import current_trace
from jaxlite.interpreters.batch import batch_jaxpr, move_axis, place_axis
from jaxlite.interpreters.caching import remembered
from jaxlite.interpreters.jvp import jvp_jaxpr
from jaxlite.interpreters.linearize import LinearizedJaxpr, linearize_jaxpr
from jaxlite.interpreters.stage import stage
from jaxlite.interpreters.transpose import backward_pass
from jaxlite.interpreters.zeros import LinearOperand, Zero, instantiate

Mask = tuple[bool, ...]


class HigherOrder(Primitive):
    """Base of primitives with jaxprs among their parameters."""

    family: ClassVar[str] = "higher_order"
    types_sharding: ClassVar[bool] = True
    types_variation: ClassVar[bool] = True
    multiple_results: ClassVar[bool] = True
    accepts: ClassVar[str] = "biufK"

    def effects(self, **params: Any) -> Effects:
        return NO_EFFECTS.union(*(inner.effects for _, inner in subjaxprs(params)))

    def axis_names(self, **params: Any) -> tuple[Any, ...]:
        return tuple(name for _, inner in subjaxprs(params) for name in _names_in(inner))


@remembered
def _names_in(closed: ClosedJaxpr) -> tuple[Any, ...]:
    names = (name for eqn in closed.eqns for name in eqn.primitive.axis_names(**eqn.params))
    return tuple(dict.fromkeys(names))


@context_kept
def run(closed: ClosedJaxpr, operands: Sequence[Any]) -> list[np.ndarray[Any, Any]]:
    """The results of ``closed`` by eager evaluation, as NumPy arrays."""
    with current_trace(None):
        return [numpy_of(v) for v in evaluate(closed.jaxpr, closed.consts, list(operands))]


def nonzero(tangents: Sequence[Any]) -> Mask:
    """Which tangents do not vanish."""
    return tuple(type(t) is not Zero for t in tangents)


def kept(values: Sequence[Any], mask: Sequence[bool]) -> list[Any]:
    """The values where ``mask`` holds."""
    return [v for v, m in zip(values, mask, strict=True) if m]


def spread(values: Sequence[Any], mask: Sequence[bool], others: Sequence[Any]) -> list[Any]:
    """``values`` where ``mask`` holds, in order; ``others`` elsewhere."""
    given: Iterator[Any] = iter(values)
    return [next(given) if m else o for m, o in zip(mask, others, strict=True)]


def zeros_for(avals: Sequence[ShapedArray]) -> list[Zero]:
    """A symbolic zero tangent for each type."""
    return [Zero(a.to_tangent_aval()) for a in avals]


def flat_series(series: Sequence[Sequence[Any]], mask: Sequence[bool]) -> list[Any]:
    """The coefficients of the operands that have some, as arrays."""
    return [instantiate(t) for s in kept(series, mask) for t in s]


def spread_series(terms: Sequence[Any], mask: Sequence[bool], order: int, avals: Sequence[ShapedArray]) -> Any:
    """For each result the next ``order`` coefficients where ``mask`` holds, zeros elsewhere."""
    given: Iterator[Any] = iter(terms)
    return [[next(given) if m else zero for _ in range(order)] for m, zero in zip(mask, zeros_for(avals), strict=True)]


@remembered
def jvp_of(closed: ClosedJaxpr, mask: Mask, force: Mask | bool) -> tuple[ClosedJaxpr, Mask]:
    """Remembered :func:`jvp_jaxpr`."""
    derived, out = jvp_jaxpr(closed, mask, force)
    return derived, tuple(out)


@remembered
def linearized(closed: ClosedJaxpr, mask: Mask, force: Mask | bool) -> LinearizedJaxpr:
    """Remembered :func:`linearize_jaxpr`."""
    return linearize_jaxpr(closed, mask, force)


@remembered
def batched(closed: ClosedJaxpr, axis: AxisData, mask: Mask, force: Mask | bool) -> tuple[ClosedJaxpr, Mask]:
    """Remembered :func:`batch_jaxpr`."""
    derived, out = batch_jaxpr(closed, axis, mask, force)
    return derived, tuple(out)


@remembered
def transposed(closed: ClosedJaxpr, linear: Mask, given: Mask, refs: tuple[Ref, ...] = ()) -> ClosedJaxpr:
    """The jaxpr of (known operands, given cotangents, values of ``refs``) -> cotangents of the linear operands, zeros
    where they vanish, and the last values of ``refs``, which rules of the user's use."""
    avals = closed.in_avals
    known = sum(not m for m in linear)
    cotangents_end = known + sum(given)

    def pull(*args: Any) -> list[Any]:
        operands = spread(args[:known], [not m for m in linear], [LinearOperand(a) for a in avals])
        cotangents = spread(args[known:cotangents_end], given, [Zero(a) for a in closed.out_avals])
        with bound(refs, args[cotangents_end:]) as last:
            pulled = backward_pass(closed.jaxpr, closed.consts, operands, cotangents)
            return [*(instantiate(c) for c in kept(pulled, linear)), *last()]

    known_avals = kept(avals, [not m for m in linear])
    return stage(pull, [*known_avals, *kept(closed.out_avals, given), *(r.type for r in refs)])


_used_backward: weakref.WeakKeyDictionary[ClosedJaxpr, list[Ref]] = weakref.WeakKeyDictionary()


def written_backward(closed: ClosedJaxpr) -> list[Ref]:
    """The refs that rules of the user's were found to use when ``closed`` was transposed, of those that can be used
    now: a list that grows."""
    used = _used_backward.setdefault(closed, [])
    used[:] = [ref for ref in used if ref.usable()]
    return used


def pulled_with(refs: Sequence[Ref], results: Sequence[Any]) -> list[Any]:
    """The results but for the last values of ``refs``, which the refs get."""
    count = len(results) - len(refs)
    write_all(refs, results[count:])
    return list(results[:count])


def batch_first(operands: Sequence[Any], dims: Sequence[int | None]) -> list[Any]:
    """Operands with their batch axes (where there are) first."""
    return [o if d is None else move_axis(o, d, 0) for o, d in zip(operands, dims, strict=True)]


def batch_where(operands: Sequence[Any], dims: Sequence[int | None], mask: Sequence[bool], size: int) -> list[Any]:
    """Operands with batch axes first where ``mask`` holds (made by repetition if need be)."""
    return [place_axis(o, d, size, 0) if m else o for o, d, m in zip(operands, dims, mask, strict=True)]
