"""Linearising: evaluates the primal side as it goes and records only the linear side, as a jaxpr.

The rule of a primitive is its ``jvp``, run in a :class:`MixedTrace`: what touches a tangent is recorded, everything
else runs in the parent trace (eagerly, outside ``jit``), so derivatives pass through Python control flow.  The
constants of the recorded jaxpr are the residuals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, final

from jaxlite.core.avals import ShapedArray, aval_of
from jaxlite.core.context import context_kept
from jaxlite.core.jaxpr import ClosedJaxpr, evaluate
from jaxlite.core.primitive import Primitive, get
from jaxlite.core.source import made_by
from jaxlite.core.trace import Trace, Tracer, current_trace, process
from jaxlite.interpreters.dce import dce
from jaxlite.interpreters.jvp import concrete_value
from jaxlite.interpreters.stage import StageTrace, StageTracer, closed_over_nothing
from jaxlite.interpreters.zeros import Zero, has_tangent, instantiate, zero_of


@final
class LinearizeTracer(Tracer):
    """A primal value, and the variable that stands for its tangent."""

    __slots__ = ("primal", "tangent")

    def __init__(self, trace: LinearizeTrace, primal: Any, tangent: StageTracer) -> None:
        self._trace, self.primal, self.tangent = trace, primal, tangent
        self.aval = aval_of(primal)

    def concrete(self) -> Any:
        return concrete_value(self.primal)

    def describe(self) -> str:
        return self.primal.describe() if isinstance(self.primal, Tracer) else "It is being differentiated."

    def __repr__(self) -> str:
        return f"GradTracer<{self.aval}>"


@final
class MixedTrace(Trace):
    """Records what touches a tangent; runs the rest in the parent."""

    __slots__ = ("parent", "tangents")

    def __init__(self, parent: Trace | None, tangents: StageTrace) -> None:
        self.parent, self.tangents = parent, tangents

    def process(self, primitive: Primitive, operands: Sequence[Any], params: dict[str, Any]) -> Sequence[Any]:
        tangents = self.tangents
        if any(type(o) is StageTracer and o._trace is tangents for o in operands):
            return tangents.process(primitive, operands, params)
        return process(self.parent, primitive, operands, params)


@final
class LinearizeTrace(Trace):
    """Runs primitives in ``parent`` and records their linear parts in ``tangents``."""

    __slots__ = ("mixed", "parent", "tangents")

    def __init__(self, parent: Trace | None, tangents: StageTrace) -> None:
        self.parent, self.tangents = parent, tangents
        self.mixed = MixedTrace(parent, tangents)

    def split(self, value: Any) -> tuple[Any, Any]:
        """Primal and tangent of an operand."""
        if type(value) is LinearizeTracer and value._trace is self:
            return value.primal, value.tangent
        return value, zero_of(value)

    def join(self, primal: Any, tangent: Any) -> Any:
        """What the function sees: a tracer, or the bare primal where the tangent vanishes or is constant."""
        if type(tangent) is Zero:
            return primal
        if not (type(tangent) is StageTracer and tangent._trace is self.tangents):
            with current_trace(self.tangents):
                tangent = _recorded(tangent, self.tangents)
        return LinearizeTracer(self, primal, tangent)

    def process(self, primitive: Primitive, operands: Sequence[Any], params: dict[str, Any]) -> Sequence[Any]:
        primals, tangents = zip(*map(self.split, operands), strict=True) if operands else ((), ())
        if all(type(t) is Zero for t in tangents):
            return process(self.parent, primitive, primals, params)
        with current_trace(self.mixed), made_by("jvp"):
            results, moved = primitive.linearize(primals, tangents, **params)
        return [self.join(p, t) for p, t in zip(results, moved, strict=True)]


def _recorded(value: Any, trace: StageTrace) -> StageTracer:
    """A variable of ``trace`` with this (constant) value."""
    result = get("copy").bind(value)
    assert type(result) is StageTracer and result._trace is trace
    return result


@context_kept
def linearize(
    function: Callable[..., Sequence[Any]], primals: Sequence[Any], active: Sequence[bool], parent: Trace | None
) -> tuple[list[Any], ClosedJaxpr, list[bool]]:
    """Results at ``primals``, the linear map from the active tangents to the results' non-zero ones, and which those
    are."""
    tangents = StageTrace()
    trace = LinearizeTrace(parent, tangents)
    arguments = [
        trace.join(p, tangents.argument(aval_of(p).to_tangent_aval())) if a else p
        for p, a in zip(primals, active, strict=True)
    ]
    with current_trace(trace):
        results = function(*arguments)
    pairs = [trace.split(r) for r in results]
    nonzero = [type(t) is not Zero for _, t in pairs]
    closed = tangents.finish([t for _, t in pairs if type(t) is not Zero])
    return [p for p, _ in pairs], dce(closed), nonzero


@final
class LinearizedJaxpr:
    """A jaxpr split in two: ``primal`` also gives the residuals, ``tangent`` takes them first, then the tangents."""

    __slots__ = ("out_nonzero", "primal", "residuals", "tangent")

    def __init__(self, primal: ClosedJaxpr, tangent: ClosedJaxpr, residuals: int, out_nonzero: list[bool]) -> None:
        self.primal, self.tangent, self.residuals, self.out_nonzero = primal, tangent, residuals, out_nonzero

    @property
    def residual_avals(self) -> list[ShapedArray]:
        """Types of the residuals."""
        return self.tangent.in_avals[: self.residuals]


@context_kept
def linearize_jaxpr(
    closed: ClosedJaxpr, nonzero: Sequence[bool], force: Sequence[bool] | bool = False
) -> LinearizedJaxpr:
    """Splits ``closed`` into what is computed with the primals and what is linear in the non-zero tangents."""
    primal_trace = StageTrace(closed.jaxpr.debug_info)
    primals = [primal_trace.argument(a) for a in closed.in_avals]
    tangents = StageTrace()
    trace = LinearizeTrace(primal_trace, tangents)
    arguments = [
        trace.join(p, tangents.argument(p.aval.to_tangent_aval())) if nz else p
        for p, nz in zip(primals, nonzero, strict=True)
    ]
    with current_trace(trace):
        results = evaluate(closed.jaxpr, closed.consts, arguments)
    pairs = [trace.split(r) for r in results]
    forced = [force] * len(pairs) if isinstance(force, bool) else list(force)
    forced = [f and has_tangent(aval_of(p)) for f, (p, _) in zip(forced, pairs, strict=True)]
    out_nonzero = [f or type(t) is not Zero for f, (_, t) in zip(forced, pairs, strict=True)]
    with current_trace(primal_trace):
        moved = [instantiate(t) for (_, t), nz in zip(pairs, out_nonzero, strict=True) if nz]
    tangent, residuals = closed_over_nothing(dce(tangents.finish(moved)))
    with current_trace(primal_trace):
        primal = primal_trace.finish([p for p, _ in pairs] + list(residuals))
    return LinearizedJaxpr(primal, tangent, len(residuals), out_nonzero)
