"""Forward mode: each value carries its tangent; each primitive's ``jvp`` says how tangents move."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, final

from jaxlite.core.avals import aval_of
from jaxlite.core.context import context, context_kept
from jaxlite.core.jaxpr import ClosedJaxpr, evaluate
from jaxlite.core.primitive import Primitive
from jaxlite.core.source import made_by
from jaxlite.core.trace import Trace, Tracer, current_trace, process
from jaxlite.interpreters.stage import stage
from jaxlite.interpreters.zeros import Zero, has_tangent, instantiate, zero_of


def concrete_value(value: Any) -> Any:
    """The value itself where it is known now, None where it is traced."""
    return value.concrete() if isinstance(value, Tracer) else value


@final
class JVPTracer(Tracer):
    """A primal value and its tangent (never a ``Zero``)."""

    __slots__ = ("primal", "tangent")

    def __init__(self, trace: JVPTrace, primal: Any, tangent: Any) -> None:
        self._trace, self.primal, self.tangent = trace, primal, tangent
        self.aval = aval_of(primal)

    def concrete(self) -> Any:
        return concrete_value(self.primal)

    def describe(self) -> str:
        return self.primal.describe() if isinstance(self.primal, Tracer) else "It was made by jvp."


@final
class JVPTrace(Trace):
    """Pushes tangents forward through the primitives, which run in ``parent``."""

    __slots__ = ("parent",)

    def __init__(self, parent: Trace | None) -> None:
        self.parent = parent

    def split(self, value: Any) -> tuple[Any, Any]:
        """Primal and tangent of an operand."""
        if type(value) is JVPTracer and value._trace is self:
            return value.primal, value.tangent
        return value, zero_of(value)

    def join(self, primal: Any, tangent: Any) -> Any:
        """What the function sees: a tracer, or the bare primal where the tangent vanishes."""
        return primal if type(tangent) is Zero else JVPTracer(self, primal, tangent)

    def process(self, primitive: Primitive, operands: Sequence[Any], params: dict[str, Any]) -> Sequence[Any]:
        primals, tangents = zip(*map(self.split, operands), strict=True) if operands else ((), ())
        if all(type(t) is Zero for t in tangents):
            return process(self.parent, primitive, primals, params)
        with current_trace(self.parent), made_by("jvp"):
            results, moved = primitive.jvp(primals, tangents, **params)
        return [self.join(p, t) for p, t in zip(results, moved, strict=True)]


@context_kept
def jvp(
    function: Callable[..., Sequence[Any]], primals: Sequence[Any], tangents: Sequence[Any], parent: Trace | None
) -> tuple[list[Any], list[Any]]:
    """Results of the flat ``function`` at ``primals`` and their tangents (``Zero`` where they vanish)."""
    trace = JVPTrace(parent)
    with current_trace(trace):
        results = function(*[trace.join(p, t) for p, t in zip(primals, tangents, strict=True)])
    pairs = [trace.split(r) for r in results]
    return [p for p, _ in pairs], [t for _, t in pairs]


def jvp_jaxpr(
    closed: ClosedJaxpr, nonzero: Sequence[bool], force: Sequence[bool] | bool
) -> tuple[ClosedJaxpr, list[bool]]:
    """The jaxpr of (primals, non-zero tangents) -> (results, their non-zero tangents), and which those are.

    ``force`` says which results must have a tangent even where it vanishes.
    """
    count = len(closed.in_avals)
    out_nonzero: list[bool] = []

    def run(*args: Any) -> list[Any]:
        primals, given = args[:count], iter(args[count:])
        tangents = [next(given) if nz else zero_of(p) for p, nz in zip(primals, nonzero, strict=True)]
        results, moved = jvp(lambda *xs: evaluate(closed.jaxpr, closed.consts, xs), primals, tangents, context.trace)
        forced = [force] * len(results) if isinstance(force, bool) else list(force)
        forced = [f and has_tangent(aval_of(r)) for f, r in zip(forced, results, strict=True)]
        out_nonzero[:] = [f or type(t) is not Zero for f, t in zip(forced, moved, strict=True)]
        return results + [instantiate(t) for t, nz in zip(moved, out_nonzero, strict=True) if nz]

    tangent_avals = [a.to_tangent_aval() for a, nz in zip(closed.in_avals, nonzero, strict=True) if nz]
    staged = stage(run, [*closed.in_avals, *tangent_avals], closed.jaxpr.debug_info)
    return staged, out_nonzero
