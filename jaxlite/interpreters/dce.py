"""Dead code: drops the equations that no result needs."""

from __future__ import annotations

from collections.abc import Sequence

from jaxlite.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, join_effects


def live_equations(jaxpr: Jaxpr, used: Sequence[bool] | None = None) -> tuple[list[JaxprEqn], set[Var]]:
    """The equations that the (used) results or an effect need, in order, and every variable needed."""
    wanted = jaxpr.outvars if used is None else [v for v, u in zip(jaxpr.outvars, used, strict=True) if u]
    live = {a for a in wanted if isinstance(a, Var)}
    kept: list[JaxprEqn] = []
    for eqn in reversed(jaxpr.eqns):
        if eqn.effects or any(v in live for v in eqn.outvars):
            kept.append(eqn)
            live.update(a for a in eqn.invars if not isinstance(a, Literal))
    kept.reverse()
    return kept, live


def dce(closed: ClosedJaxpr) -> ClosedJaxpr:
    """``closed`` without unneeded equations and constants; arguments and results stay."""
    jaxpr = closed.jaxpr
    eqns, live = live_equations(jaxpr)
    pairs = [(v, c) for v, c in zip(jaxpr.constvars, closed.consts, strict=True) if v in live]
    smaller = jaxpr.replace(constvars=tuple(v for v, _ in pairs), eqns=tuple(eqns), effects=join_effects(eqns))
    return ClosedJaxpr(smaller, [c for _, c in pairs])
