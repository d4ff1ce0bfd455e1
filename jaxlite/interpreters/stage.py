"""Staging: runs a function on tracers that record every primitive, and gives the jaxpr.

In: a function of flat arguments and their avals.  Out: a ``ClosedJaxpr`` whose constants are the arrays (or outer
tracers) that the function closes over.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np

from jaxlite.core import config, dtypes, source
from jaxlite.core.array import Array
from jaxlite.core.avals import ShapedArray, aval_of
from jaxlite.core.context import context, context_kept
from jaxlite.core.errors import UnexpectedTracerError
from jaxlite.core.jaxpr import (
    NO_DEBUG_INFO,
    ClosedJaxpr,
    DebugInfo,
    Jaxpr,
    JaxprEqn,
    Literal,
    Var,
    join_effects,
)
from jaxlite.core.primitive import Primitive
from jaxlite.core.propagation import are_sharded, asks_for_sharding, in_program, with_shardings
from jaxlite.core.trace import Trace, Tracer, current_trace, escaped_message
from jaxlite.core.varying import results_of


@final
class StageTracer(Tracer):
    """A variable of the jaxpr being recorded."""

    __slots__ = ("source", "variable")

    def __init__(self, trace: StageTrace, var: Var, where: source.SourceInfo) -> None:
        self._trace, self.aval, self.variable, self.source = trace, var.aval, var, where

    def describe(self) -> str:
        trace: StageTrace = self._trace
        names = trace.arguments_behind(self.variable)
        info = trace.debug_info
        at = f"{info.function} at {info.file}:{info.line}" if info.file else info.function
        made = f"It was made on line {self.source.summary()}" if self.source.summary() else "It is an argument"
        if not names:
            return f"{made}, while tracing {at}."
        plural = "s" if len(names) > 1 else ""
        return f"It depends on the value of the argument{plural} {', '.join(names)} of the function {at}.  {made}."

    def __repr__(self) -> str:
        return f"JitTracer<{self.aval}>"


@final
class StageTrace(Trace):
    """Records equations.  ``constants`` maps the values closed over to their variables, by identity."""

    __slots__ = ("__weakref__", "captured", "constants", "debug_info", "eqns", "finished", "invars", "kept", "made_by")

    def __init__(self, debug_info: DebugInfo = NO_DEBUG_INFO) -> None:
        self.debug_info = debug_info
        self.eqns: list[JaxprEqn] = []
        self.invars: list[Var] = []
        self.constants: dict[int, Var] = {}
        self.kept: list[Any] = []  # keeps the constants alive, so that their identities stay theirs
        self.made_by: dict[Var, JaxprEqn] = {}
        self.captured: Exception | None = None  # a ref from outside was used, which must be passed in
        self.finished = False

    def argument(self, aval: ShapedArray) -> StageTracer:
        """A new argument of the jaxpr."""
        var = Var(in_program(aval))
        self.invars.append(var)
        return StageTracer(self, var, source.UNKNOWN)

    def atom(self, value: Any) -> Var | Literal:
        """The variable or literal for an operand; values from outside become constants."""
        if type(value) is StageTracer and value._trace is self:
            return value.variable
        if not isinstance(value, Tracer):
            aval = aval_of(value)
            if not aval.shape and not dtypes.is_key(aval.dtype):
                return Literal(_scalar(value, aval), aval)
        var = self.constants.get(id(value))
        if var is None:
            var = self.constants[id(value)] = Var(in_program(aval_of(value)))
            self.kept.append(value)
        return var

    def process(self, primitive: Primitive, operands: Sequence[Any], params: dict[str, Any]) -> Sequence[Any]:
        if self.finished:
            raise UnexpectedTracerError("An operation was staged into a jaxpr that is already finished.")
        operands, params = primitive.to_staged(operands, params)
        atoms = tuple([self.atom(o) for o in operands])
        given = [a.aval for a in atoms]
        avals: Sequence[ShapedArray] = primitive.abstract_eval(*given, **params)
        if context.manual:
            avals = results_of(primitive, given, avals)
        if are_sharded(given) or asks_for_sharding(params):
            avals = with_shardings(primitive, given, avals, params)
        outvars = tuple([Var(a) for a in avals])
        where = source.current()
        eqn = JaxprEqn(primitive, atoms, outvars, params, primitive.effects(**params), where)
        self.eqns.append(eqn)
        for var in outvars:
            self.made_by[var] = eqn
        return [StageTracer(self, v, where) for v in outvars]

    def arguments_behind(self, var: Var) -> list[str]:
        """Names of the arguments that ``var`` was computed from, in their order."""
        seen: set[Var] = set()
        pending = [var]
        while pending:
            v = pending.pop()
            if v in seen:
                continue
            seen.add(v)
            if v in self.made_by:
                pending.extend(a for a in self.made_by[v].invars if isinstance(a, Var))
        names = self.debug_info.argument_names
        return [name for name, v in zip(names, self.invars, strict=False) if v in seen]

    def finish(self, results: Sequence[Any]) -> ClosedJaxpr:
        """The jaxpr of what was recorded, with these results."""
        outvars = tuple([self.atom(r) for r in results])
        self.finished = True
        jaxpr = Jaxpr(
            tuple(self.constants.values()),
            tuple(self.invars),
            outvars,
            tuple(self.eqns),
            join_effects(self.eqns),
            self.debug_info,
        )
        return ClosedJaxpr(jaxpr, self.kept)


def _scalar(value: Any, aval: ShapedArray) -> Any:
    """The value of a literal: a Python scalar where it is weakly typed, so that it stays so when it is used."""
    scalar = value.elements[()] if isinstance(value, Array) else np.asarray(value, aval.dtype)[()]
    if aval.weak_type:
        plain = scalar.item()
        if aval_of(plain).dtype == aval.dtype:
            return plain
    return scalar


@context_kept
def stage(
    function: Callable[..., Sequence[Any]], avals: Sequence[ShapedArray], debug_info: DebugInfo = NO_DEBUG_INFO
) -> ClosedJaxpr:
    """The jaxpr of ``function``, which takes and gives flat values."""
    trace = StageTrace(debug_info)
    tracers = [trace.argument(a) for a in avals]
    with current_trace(trace):
        results = function(*tracers)
        if trace.captured is not None:
            raise trace.captured
        closed = trace.finish(results)
    if config.check_tracer_leaks.value:
        watched = weakref.ref(trace)
        del trace, tracers, results
        refuse_leaks(watched, debug_info)
    return closed


def refuse_leaks(trace: weakref.ref[StageTrace], debug_info: DebugInfo) -> None:
    """An exception where something outside still holds tracers of a finished trace."""
    gc.collect()
    alive = trace()
    if alive is None:
        return
    leaked = [t for t in gc.get_referrers(alive) if isinstance(t, StageTracer)]
    if leaked:
        names = ", ".join(f"{t.aval} ({t.describe()})" for t in leaked[:3])
        raise Exception(f"Leaked trace of {debug_info.function}: {len(leaked)} tracers are still held: {names}")


def closed_over_nothing(closed: ClosedJaxpr) -> tuple[ClosedJaxpr, tuple[Any, ...]]:
    """The same jaxpr with its constants as leading arguments, and their values: what equations may hold."""
    if not closed.consts:
        return closed, ()
    jaxpr = closed.jaxpr
    names = ("",) * len(jaxpr.constvars) + jaxpr.debug_info.argument_names
    info = DebugInfo(jaxpr.debug_info.function, jaxpr.debug_info.file, jaxpr.debug_info.line, names)
    opened = jaxpr.replace(constvars=(), invars=jaxpr.constvars + jaxpr.invars, debug_info=info)
    return ClosedJaxpr(opened), closed.consts


def refuse_escaped(values: Sequence[Any]) -> None:
    """``UnexpectedTracerError`` where one of the values is a tracer of a trace that is over."""
    for value in values:
        if isinstance(value, StageTracer) and value._trace.finished:
            raise UnexpectedTracerError(escaped_message(value))
