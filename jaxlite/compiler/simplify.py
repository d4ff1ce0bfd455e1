"""Simplification of jaxprs: algebra that is exact in IEEE arithmetic, equal equations computed once, dead ones dropped.

In: a jaxpr without calls.  Out: a smaller one with the same bits, and what was done.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from jaxlite.compiler.report import Decision
from jaxlite.core.jaxpr import Atom, ClosedJaxpr, JaxprEqn, Literal, Var, join_effects
from jaxlite.interpreters.dce import dce

Rule = Callable[[JaxprEqn], Atom | None]


def _is(atom: Atom, value: float) -> bool:
    return isinstance(atom, Literal) and not isinstance(atom.val, np.void) and bool(np.all(atom.val == value))


def _same_type(atom: Atom, eqn: JaxprEqn) -> bool:
    return atom.aval.looks_like(eqn.outvars[0].aval)


def _neutral(position: int, value: float) -> Rule:
    """The operand beside a neutral one, where it has the result's shape."""

    def rule(eqn: JaxprEqn) -> Atom | None:
        other = eqn.invars[1 - position]
        return other if _is(eqn.invars[position], value) and _same_type(other, eqn) else None

    return rule


def _itself(eqn: JaxprEqn) -> Atom | None:
    return eqn.invars[0] if _same_type(eqn.invars[0], eqn) else None


# By name of the primitive's own table (``identities`` on the class): what an equation equals without computing.
RULES: dict[str, Rule] = {
    "1 * x": _neutral(0, 1),  # mul 1 x -> x
    "x * 1": _neutral(1, 1),  # mul x 1 -> x
    "x / 1": _neutral(1, 1),  # div x 1 -> x
    "same": _itself,  # copy x, convert to its own type, transpose by identity -> x
}


def simplify(closed: ClosedJaxpr) -> tuple[ClosedJaxpr, list[Decision]]:
    """``closed`` with rules applied, equal equations shared and dead ones dropped."""
    jaxpr = closed.jaxpr
    env: dict[Var, Atom] = {}
    known: dict[Hashable, JaxprEqn] = {}
    kept: list[JaxprEqn] = []
    decisions: list[Decision] = []
    for eqn in jaxpr.eqns:
        eqn = eqn.replace(invars=tuple(env.get(a, a) if isinstance(a, Var) else a for a in eqn.invars))
        applied = _first_rule(eqn)
        if applied is not None:
            name, atom = applied
            env[eqn.outvars[0]] = atom  # type: ignore[index]
            decisions.append(Decision(eqn.primitive.name, "removed", f"rule {name}", {}, eqn.source))
            continue
        key = _key(eqn)
        earlier = known.get(key) if key is not None else None
        if earlier is not None:
            env.update(zip(eqn.outvars, earlier.outvars, strict=True))  # type: ignore[arg-type]
            decisions.append(
                Decision(
                    eqn.primitive.name, "shared", f"equal to an equation of {earlier.source.summary()}", {}, eqn.source
                )
            )
            continue
        if key is not None:
            known[key] = eqn
        kept.append(eqn)
    outvars = tuple(env.get(a, a) if isinstance(a, Var) else a for a in jaxpr.outvars)
    smaller = dce(
        ClosedJaxpr(jaxpr.replace(outvars=outvars, eqns=tuple(kept), effects=join_effects(kept)), closed.consts)
    )
    dead = len(kept) - len(smaller.eqns)
    if dead:
        decisions.append(Decision(f"{dead} equations", "dropped", "no result needs them"))
    return smaller, decisions


def _first_rule(eqn: JaxprEqn) -> tuple[str, Atom] | None:
    for name in eqn.primitive.identities:
        atom = RULES[name](eqn)
        if atom is not None:
            return name, atom
    return None


def _key(eqn: JaxprEqn) -> Hashable | None:
    """Equal keys, equal results; None where that cannot be told (effects, jaxprs among the parameters)."""
    if eqn.effects:
        return None
    try:
        params = tuple((k, _frozen(v)) for k, v in sorted(eqn.params.items()))
        key = (eqn.primitive, tuple(map(_atom_key, eqn.invars)), params)
        hash(key)
    except TypeError:
        return None
    return key


def _frozen(value: Any) -> Hashable:
    if callable(value) or isinstance(value, ClosedJaxpr):
        raise TypeError
    return tuple(map(_frozen, value)) if isinstance(value, (tuple, list)) else value


def _atom_key(atom: Atom) -> Hashable:
    if isinstance(atom, Var):
        return atom
    return (np.asarray(atom.val).tobytes(), atom.aval.dtype, atom.aval.weak_type)
