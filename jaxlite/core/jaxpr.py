"""Jaxprs: the typed functional programs that tracing makes and every transformation reads.

A :class:`Jaxpr` is data: variables, equations, results.  :func:`check` verifies one; ``printing`` shows one in
JAX's notation.  Jaxprs inside equations (of loops, branches, calls) are closed and hold no constants: what they
use of the outside are operands of their equation.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, final

from jaxlite.core.avals import ShapedArray, aval_of
from jaxlite.core.context import context_kept
from jaxlite.core.effects import NO_EFFECTS, Effects
from jaxlite.core.errors import refuse
from jaxlite.core.primitive import Primitive
from jaxlite.core.source import UNKNOWN, SourceInfo


@final
class Var:
    """A variable: an aval and an identity."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray) -> None:
        self.aval = aval

    def __repr__(self) -> str:
        return f"Var:{self.aval.short()}"


@final
class DropVar:
    """A result that nobody reads; prints as ``_``."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray) -> None:
        self.aval = aval

    def __repr__(self) -> str:
        return "_"


@final
class Literal:
    """A scalar constant written in place."""

    __slots__ = ("aval", "val")

    def __init__(self, val: Any, aval: ShapedArray) -> None:
        self.val = val
        self.aval = aval

    def __repr__(self) -> str:
        return f"{self.val}:{self.aval.short()}"


Atom = Var | Literal


@final
@dataclasses.dataclass(frozen=True, eq=False, slots=True)
class JaxprEqn:
    """One application of a primitive."""

    primitive: Primitive
    invars: tuple[Atom, ...]
    outvars: tuple[Var | DropVar, ...]
    params: dict[str, Any]
    effects: Effects = NO_EFFECTS
    source: SourceInfo = UNKNOWN

    def replace(self, **changes: Any) -> JaxprEqn:
        """A copy with some fields replaced."""
        return dataclasses.replace(self, **changes)


@final
@dataclasses.dataclass(frozen=True, eq=False)
class DebugInfo:
    """Which function was traced, where it stands, and what its arguments are called (a name per flat leaf)."""

    function: str = "<unknown>"
    file: str = ""
    line: int = 0
    argument_names: tuple[str, ...] = ()


NO_DEBUG_INFO = DebugInfo()


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Jaxpr:
    """``lambda constvars ; invars. let eqns in outvars``."""

    constvars: tuple[Var, ...]
    invars: tuple[Var, ...]
    outvars: tuple[Atom, ...]
    eqns: tuple[JaxprEqn, ...]
    effects: Effects = NO_EFFECTS
    debug_info: DebugInfo = NO_DEBUG_INFO

    def replace(self, **changes: Any) -> Jaxpr:
        """A copy with some fields replaced."""
        return dataclasses.replace(self, **changes)

    def pretty_print(self, *, source_info: bool = False, name_stack: bool = False, **_: Any) -> str:
        """The text that ``print`` shows, with each equation's line of the user's if ``source_info``."""
        from jaxlite.core import printing

        refuse("pretty_print", "name_stack", name_stack, False, "equations keep no names of scopes")
        return printing.jaxpr_text(self, source_info=source_info)

    def __str__(self) -> str:
        return self.pretty_print()

    __repr__ = __str__


@final
class ClosedJaxpr:
    """A jaxpr with the values of its constants."""

    __slots__ = ("__weakref__", "consts", "jaxpr")

    def __init__(self, jaxpr: Jaxpr, consts: Sequence[Any] = ()) -> None:
        if len(jaxpr.constvars) != len(consts):
            raise ValueError(f"The jaxpr has {len(jaxpr.constvars)} constants, not {len(consts)}.")
        self.jaxpr = jaxpr
        self.consts = tuple(consts)

    @property
    def in_avals(self) -> list[ShapedArray]:
        """Types of the arguments."""
        return [v.aval for v in self.jaxpr.invars]

    @property
    def out_avals(self) -> list[ShapedArray]:
        """Types of the results."""
        return [v.aval for v in self.jaxpr.outvars]

    @property
    def eqns(self) -> tuple[JaxprEqn, ...]:
        """The equations."""
        return self.jaxpr.eqns

    @property
    def effects(self) -> Effects:
        """The effects of all equations."""
        return self.jaxpr.effects

    @property
    def literals(self) -> tuple[Any, ...]:
        """The constants, under JAX's older name."""
        return self.consts

    def pretty_print(self, **options: Any) -> str:
        """The text that ``print`` shows."""
        return self.jaxpr.pretty_print(**options)

    def __str__(self) -> str:
        return str(self.jaxpr)

    __repr__ = __str__


def subjaxprs(params: dict[str, Any]) -> Iterator[tuple[str, ClosedJaxpr]]:
    """The jaxprs among an equation's parameters, with the parameter's name (and index, in tuples)."""
    for name, value in params.items():
        if isinstance(value, ClosedJaxpr):
            yield name, value
        elif isinstance(value, tuple) and value and isinstance(value[0], ClosedJaxpr):
            yield from ((f"{name}[{i}]", v) for i, v in enumerate(value) if isinstance(v, ClosedJaxpr))


def join_effects(eqns: Sequence[JaxprEqn]) -> Effects:
    """The union of the equations' effects."""
    return NO_EFFECTS.union(*(e.effects for e in eqns if e.effects))


def check(jaxpr: Jaxpr) -> None:
    """Raises ``TypeError`` where a variable is undefined or bound twice, or an equation's types do not hold."""
    bound: set[Var] = set()
    for argument in (*jaxpr.constvars, *jaxpr.invars):
        _define(argument, bound)
    for eqn in jaxpr.eqns:
        for atom in eqn.invars:
            _use(atom, bound, eqn)
        avals = eqn.primitive.abstract_eval(*(a.aval for a in eqn.invars), **eqn.params)
        if len(avals) != len(eqn.outvars):
            raise TypeError(f"{eqn.primitive} gives {len(avals)} results, the equation binds {len(eqn.outvars)}.")
        for var, aval in zip(eqn.outvars, avals, strict=True):
            if not var.aval.looks_like(aval):
                raise TypeError(f"{eqn.primitive} gives {aval.short()}, the equation says {var.aval.short()}.")
            if isinstance(var, Var):
                _define(var, bound)
        for _, inner in subjaxprs(eqn.params):
            check(inner.jaxpr)
    for atom in jaxpr.outvars:
        _use(atom, bound, None)


def _define(var: Any, bound: set[Var]) -> None:
    if var in bound:
        raise TypeError(f"A variable of type {var.aval.short()} is bound twice.")
    bound.add(var)


def _use(atom: Atom, bound: set[Var], eqn: JaxprEqn | None) -> None:
    if isinstance(atom, Literal):
        if aval_of(atom.val).shape != atom.aval.shape:
            raise TypeError(f"The literal {atom.val} is not of type {atom.aval.short()}.")
    elif atom not in bound:
        where = f"an operand of {eqn.primitive}" if eqn is not None else "a result"
        raise TypeError(f"A variable of type {atom.aval.short()}, {where}, is not defined before its use.")


@context_kept
def evaluate(jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
    """Runs the equations one by one in the current trace; values are dropped after their last use."""
    from jaxlite.core.source import working_on

    last = last_uses(jaxpr)
    env: dict[Var, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    env.update(zip(jaxpr.invars, args, strict=True))
    for number, eqn in enumerate(jaxpr.eqns):
        operands = [a.val if isinstance(a, Literal) else env[a] for a in eqn.invars]
        with working_on(eqn.source):
            results = eqn.primitive.bind(*operands, **eqn.params)
        results = results if eqn.primitive.multiple_results else [results]
        env.update(zip(eqn.outvars, results, strict=True))  # type: ignore[arg-type]
        for var in last.get(number, ()):
            env.pop(var, None)
    return [a.val if isinstance(a, Literal) else env[a] for a in jaxpr.outvars]


def last_uses(jaxpr: Jaxpr) -> dict[int, list[Any]]:
    """For each equation, the variables that nobody reads after it."""
    last: dict[Any, int] = {}
    for number, eqn in enumerate(jaxpr.eqns):
        for atom in (*eqn.invars, *eqn.outvars):
            if not isinstance(atom, Literal):
                last[atom] = number
    for atom in jaxpr.outvars:
        if not isinstance(atom, Literal):
            last.pop(atom, None)
    by_equation: dict[int, list[Any]] = {}
    for var, number in last.items():
        by_equation.setdefault(number, []).append(var)
    return by_equation
