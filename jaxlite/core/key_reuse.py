"""``jax_debug_key_reuse``: raises where a typed random key is used up twice.

Drawing from a key or splitting it uses it up; ``fold_in``, ``key_data`` and ``clone`` do not.  In a traced program the
equations say which variables they use up (:func:`used_by`); outside, each key array is remembered with the line of its
first use (:func:`use`) for as long as it lives.
"""

from __future__ import annotations

import weakref
from collections.abc import Collection, Sequence

from jaxlite.core import dtypes
from jaxlite.core.array import Array
from jaxlite.core.context import context
from jaxlite.core.errors import KeyReuseError
from jaxlite.core.jaxpr import Jaxpr, JaxprEqn, Var, subjaxprs
from jaxlite.core.source import SourceInfo, current

_first_uses: dict[int, tuple[weakref.ref[Array], SourceInfo]] = {}  # by the identity of the key


def use(key: object) -> None:
    """Remembers that the concrete ``key`` is used up now; ``KeyReuseError`` where it was before."""
    if not isinstance(key, Array) or not dtypes.is_key(key.dtype) or not _runs_now():
        return
    number = id(key)
    if number in _first_uses:
        raise KeyReuseError(_message(_first_uses[number][1], current()))
    _first_uses[number] = weakref.ref(key, lambda _: _first_uses.pop(number, None)), current()


def _runs_now() -> bool:
    """Whether the user's function runs once, not to be recorded as a program that may run often or never."""
    trace = context.trace
    while (outer := getattr(trace, "parent", trace)) is not trace:
        trace = outer
    return trace is None


def used_by(jaxpr: Jaxpr) -> dict[Var, SourceInfo]:
    """The variables that ``jaxpr`` uses up, and where; ``KeyReuseError`` where it, or a body in it, does so twice."""
    uses: dict[Var, SourceInfo] = {}
    for eqn in jaxpr.eqns:
        for key in _used_by_equation(eqn):
            if key in uses:
                raise KeyReuseError(_message(uses[key], eqn.source))
            uses[key] = eqn.source
    return uses


def _used_by_equation(eqn: JaxprEqn) -> list[Var]:
    inner = eqn.primitive.inlined(**eqn.params)
    if inner is not None:
        return _variables(eqn, used_by_steps(inner.jaxpr, ()))
    for _, body in subjaxprs(eqn.params):
        used_by(body.jaxpr)
    # Branches that close over one key get it as an operand each, and one of them runs: it counts once.
    return list(dict.fromkeys(_variables(eqn, eqn.primitive.uses_up(**eqn.params))))


def _variables(eqn: JaxprEqn, operands: Sequence[int]) -> list[Var]:
    atoms = [eqn.invars[i] for i in operands]
    return [a for a in atoms if isinstance(a, Var)]


def used_by_steps(body: Jaxpr, again: Collection[Var]) -> tuple[int, ...]:
    """The arguments that the body of a loop uses up; ``KeyReuseError`` where one of them comes ``again`` unchanged."""
    uses = used_by(body)
    for key, source in uses.items():
        if key in again:
            raise KeyReuseError(_message(source, source))
    return tuple([i for i, v in enumerate(body.invars) if v in uses])


def _message(first: SourceInfo, second: SourceInfo) -> str:
    return (
        f"A random key is used twice: first {_place(first)}, then {_place(second)}. What is drawn is the same both "
        "times. Make a key for each use, as in `first, second = jax.random.split(key)`."
    )


def _place(source: SourceInfo) -> str:
    if not source.file:
        return "at an unknown line"
    text = f" `{source.text()}`" if source.text() else ""
    return f"at {source.file}:{source.line}{text}"
