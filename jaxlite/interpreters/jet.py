"""Taylor mode: each value carries the coefficients of its power series in one variable, ``x(t) = x0 + x1 t + ...``.

A primitive moves them by its own ``jet`` rule, or as its ``jvp`` says: where it is piecewise linear, each coefficient
as a tangent; else by ``(d/dt) f(x(t)) = jvp of f at x(t) along x'(t)``, in series of one order less, integrated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, final

from jaxlite.core.avals import aval_of
from jaxlite.core.context import context, context_kept
from jaxlite.core.jaxpr import ClosedJaxpr, evaluate
from jaxlite.core.primitive import Primitive
from jaxlite.core.source import made_by
from jaxlite.core.trace import Trace, Tracer, current_trace, process
from jaxlite.interpreters.caching import remembered
from jaxlite.interpreters.jvp import concrete_value
from jaxlite.interpreters.series import over, slope
from jaxlite.interpreters.stage import stage
from jaxlite.interpreters.zeros import Zero, has_tangent, instantiate, zero_of

Terms = list[Any]  # coefficients 1, 2, ..., order


@final
class JetTracer(Tracer):
    """A primal value and its coefficients after that, or the function that computes them when they are asked for."""

    __slots__ = ("primal", "terms")

    def __init__(self, trace: JetTrace, primal: Any, terms: Terms | Callable[[], Terms]) -> None:
        self._trace, self.primal, self.terms = trace, primal, terms
        self.aval = aval_of(primal)

    def concrete(self) -> Any:
        return concrete_value(self.primal)

    def describe(self) -> str:
        return self.primal.describe() if isinstance(self.primal, Tracer) else "It was made by jet."


@final
class JetTrace(Trace):
    """Pushes series with ``order`` coefficients after the primal through the primitives, which run in ``parent``."""

    __slots__ = ("order", "parent")

    def __init__(self, parent: Trace | None, order: int) -> None:
        self.parent, self.order = parent, order

    def split(self, value: Any) -> tuple[Any, Terms]:
        """Primal and further coefficients of an operand."""
        if type(value) is JetTracer and value._trace is self:
            if callable(value.terms):
                with current_trace(self.parent):
                    value.terms = value.terms()
            return value.primal, value.terms
        return value, [zero_of(value)] * self.order

    def join(self, primal: Any, terms: Terms) -> Any:
        """What the function sees: a tracer, or the bare primal where all other coefficients vanish."""
        return JetTracer(self, primal, terms) if moves(terms) else primal

    def process(self, primitive: Primitive, operands: Sequence[Any], params: dict[str, Any]) -> Sequence[Any]:
        primals, series = zip(*map(self.split, operands), strict=True) if operands else ((), ())
        if not any(map(moves, series)):
            return process(self.parent, primitive, primals, params)
        with current_trace(self.parent), made_by("jet"):
            found = primitive.jet(primals, series, **params)
            if found is None:
                by_jvp = term_by_term if primitive.piecewise_linear else integrated
                found = by_jvp(primitive, primals, series, params)
        return [self.join(p, t) for p, t in zip(*found, strict=True)]


def moves(terms: Sequence[Any]) -> bool:
    """Whether any coefficient is not known to vanish."""
    return any(type(t) is not Zero for t in terms)


@context_kept
def jet(
    function: Callable[..., Sequence[Any]],
    primals: Sequence[Any],
    series: Sequence[Terms],
    order: int,
    parent: Trace | None,
) -> tuple[list[Any], list[Terms]]:
    """Results of the flat ``function`` at ``primals`` and their further coefficients (``Zero`` where they vanish)."""
    trace = JetTrace(parent, order)
    with current_trace(trace):
        results = function(*[trace.join(p, s) for p, s in zip(primals, series, strict=True)])
    pairs = [trace.split(r) for r in results]
    return [p for p, _ in pairs], [s for _, s in pairs]


def term_by_term(
    primitive: Primitive, primals: Sequence[Any], series: Sequence[Terms], params: dict[str, Any]
) -> tuple[list[Any], list[Terms]]:
    """A piecewise linear primitive: every coefficient moves as a tangent does."""
    results: list[Any] = []
    columns: list[list[Any] | None] = []
    for tangents in zip(*series, strict=True):
        if moves(tangents):
            results, moved = primitive.jvp(primals, tangents, **params)
            columns.append(moved)
        else:
            columns.append(None)
    return results, [[zero_of(r) if c is None else c[i] for c in columns] for i, r in enumerate(results)]


def integrated(
    primitive: Primitive, primals: Sequence[Any], series: Sequence[Terms], params: dict[str, Any]
) -> tuple[list[Any], list[Terms]]:
    """Any other primitive: the integral of its ``jvp``, which runs on series of one order less."""

    def rule(points: Sequence[Any], velocities: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        return primitive.jvp(points, velocities, **params)

    return along(rule, primals, series)


@context_kept
def along(
    rule: Callable[[Sequence[Any], Sequence[Any]], tuple[list[Any], list[Any]]],
    primals: Sequence[Any],
    series: Sequence[Sequence[Any]],
) -> tuple[list[Any], list[Terms]]:
    """Results and coefficients of a function whose results and tangents are ``rule(primals, tangents)``."""
    order = len(series[0])
    lower = JetTrace(context.trace, order - 1)
    points = [lower.join(p, [*s[:-1]]) for p, s in zip(primals, series, strict=True)]
    with current_trace(lower):
        velocities = [lower_velocity(lower, p, s) for p, s in zip(primals, series, strict=True)]
        results, moved = rule(points, velocities)
    outs = [r.primal if type(r) is JetTracer and r._trace is lower else r for r in results]
    return outs, [coefficients_of(lower, out, m) for out, m in zip(outs, moved, strict=True)]


def lower_velocity(lower: JetTrace, primal: Any, terms: Sequence[Any]) -> Any:
    """``x'(t)`` as a value of ``lower``, or a ``Zero``."""
    if not moves(terms):
        return zero_of(primal)
    with current_trace(lower.parent):
        first, *rest = [zero_of(primal) if c is None else c for c in slope([primal, *map(known, terms)])]
        return lower.join(instantiate(first), rest)


def coefficients_of(lower: JetTrace, out: Any, velocity: Any) -> Terms:
    """The coefficients after ``out`` of what has this derivative."""
    zero = zero_of(out)
    if type(velocity) is Zero:
        return [zero] * (lower.order + 1)
    first, rest = lower.split(velocity)
    with current_trace(lower.parent):
        divided = [over(known(c), k) for k, c in enumerate((first, *rest), 1)]
    return [zero if c is None else c for c in divided]


def known(term: Any) -> Any:
    """A coefficient as ``interpreters.series`` takes it: None for a ``Zero``."""
    return None if type(term) is Zero else term


@remembered
def jet_jaxpr(
    closed: ClosedJaxpr, order: int, nonzero: tuple[bool, ...], force: tuple[bool, ...] | bool
) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    """The jaxpr of (primals, all coefficients of each that has some) -> (results, theirs), and which have some.

    ``force`` says which results must have coefficients even where they vanish.
    """
    count = len(closed.in_avals)
    out_nonzero: list[bool] = []

    def run(*args: Any) -> list[Any]:
        primals, given = args[:count], iter(args[count:])
        series = [
            [next(given) for _ in range(order)] if nz else [zero_of(p)] * order
            for p, nz in zip(primals, nonzero, strict=True)
        ]
        results, moved = jet(
            lambda *xs: evaluate(closed.jaxpr, closed.consts, xs), primals, series, order, context.trace
        )
        forced = [force] * len(results) if isinstance(force, bool) else list(force)
        forced = [f and has_tangent(aval_of(r)) for f, r in zip(forced, results, strict=True)]
        out_nonzero[:] = [f or moves(s) for f, s in zip(forced, moved, strict=True)]
        return results + [instantiate(t) for s, nz in zip(moved, out_nonzero, strict=True) if nz for t in s]

    term_avals = [
        a.to_tangent_aval() for a, nz in zip(closed.in_avals, nonzero, strict=True) if nz for _ in range(order)
    ]
    staged = stage(run, [*closed.in_avals, *term_avals], closed.jaxpr.debug_info)
    return staged, tuple(out_nonzero)
