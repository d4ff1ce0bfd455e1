"""Inlining: equations that only apply a jaxpr give way to its equations.

In: a closed jaxpr.  Out: one without calls, and a decision for each call.  Jaxprs of loops and branches are done when
they are compiled themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxlite.compiler.report import Decision
from jaxlite.core.jaxpr import Atom, ClosedJaxpr, DropVar, JaxprEqn, Literal, Var, join_effects


def inline_calls(closed: ClosedJaxpr) -> tuple[ClosedJaxpr, list[Decision]]:
    """``closed`` with every call replaced by its body."""
    if all(e.primitive.inlined(**e.params) is None for e in closed.eqns):
        return closed, []
    work = _Inliner()
    env: dict[Var, Atom] = {}
    work.copy(closed, env)
    jaxpr = closed.jaxpr
    outvars = tuple(_read(a, env) for a in jaxpr.outvars)
    constvars = (*jaxpr.constvars, *work.constvars)
    flat = jaxpr.replace(constvars=constvars, outvars=outvars, eqns=tuple(work.eqns), effects=join_effects(work.eqns))
    return ClosedJaxpr(flat, [*closed.consts, *work.consts]), work.decisions


class _Inliner:
    def __init__(self) -> None:
        self.eqns: list[JaxprEqn] = []
        self.constvars: list[Var] = []
        self.consts: list[Any] = []
        self.decisions: list[Decision] = []

    def copy(self, closed: ClosedJaxpr, env: dict[Var, Atom]) -> None:
        """Adds the equations of ``closed``, its variables renamed by ``env``."""
        for eqn in closed.eqns:
            operands = tuple(_read(a, env) for a in eqn.invars)
            body = eqn.primitive.inlined(**eqn.params)
            if body is None:
                outvars = tuple(v if isinstance(v, DropVar) else _fresh(v, env) for v in eqn.outvars)
                self.eqns.append(eqn.replace(invars=operands, outvars=outvars))
            else:
                self._expand(eqn, body, operands, env)

    def _expand(self, eqn: JaxprEqn, body: ClosedJaxpr, operands: Sequence[Atom], env: dict[Var, Atom]) -> None:
        inner: dict[Var, Atom] = dict(zip(body.jaxpr.invars, operands, strict=True))
        for var, value in zip(body.jaxpr.constvars, body.consts, strict=True):
            inner[var] = new = Var(var.aval)
            self.constvars.append(new)
            self.consts.append(value)
        self.copy(body, inner)
        for out, atom in zip(eqn.outvars, body.jaxpr.outvars, strict=True):
            if isinstance(out, Var):
                env[out] = _read(atom, inner)
        name = str(eqn.params.get("name", ""))
        self.decisions.append(
            Decision(
                f"{eqn.primitive.name} {name}".strip(),
                "inlined",
                "calls cost nothing here",
                {"equations": len(body.eqns)},
                eqn.source,
            )
        )


def _read(atom: Atom, env: dict[Var, Atom]) -> Atom:
    return atom if isinstance(atom, Literal) else env.get(atom, atom)


def _fresh(var: Var, env: dict[Var, Atom]) -> Var:
    """A new variable for ``var``: the same jaxpr may be inlined several times."""
    new = Var(var.aval)
    env[var] = new
    return new
