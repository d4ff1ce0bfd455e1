"""Reverse mode: pulls cotangents back through a linear jaxpr, equation by equation, from the last to the first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxlite.core.avals import ShapedArray, aval_of
from jaxlite.core.context import context, context_kept
from jaxlite.core.jaxpr import Jaxpr, JaxprEqn, Literal, Var
from jaxlite.core.partition_spec import PartitionSpec
from jaxlite.core.primitive import get
from jaxlite.core.propagation import in_program
from jaxlite.core.shardings import NamedSharding
from jaxlite.core.source import working_on
from jaxlite.interpreters.zeros import LinearOperand, Zero, add


@context_kept
def backward_pass(
    jaxpr: Jaxpr, consts: Sequence[Any], arguments: Sequence[Any], cotangents: Sequence[Any]
) -> list[Any]:
    """Cotangents of the linear arguments (None for known ones).

    ``arguments`` holds a ``LinearOperand`` for each linear argument and the value of each known one; equations
    that depend on no linear argument are run forward first.  A cotangent that vanishes is a ``Zero``.
    """
    linear: set[Var] = {v for v, a in zip(jaxpr.invars, arguments, strict=True) if type(a) is LinearOperand}
    known: dict[Any, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    known.update((v, a) for v, a in zip(jaxpr.invars, arguments, strict=True) if v not in linear)
    linear_eqns = []
    for eqn in jaxpr.eqns:
        if any(a in linear for a in eqn.invars if isinstance(a, Var)):
            linear_eqns.append(eqn)
            linear.update(v for v in eqn.outvars if isinstance(v, Var))
        else:
            _run_forward(eqn, known)
    pending: dict[Any, Any] = {}
    for atom, cotangent in zip(jaxpr.outvars, cotangents, strict=True):
        if isinstance(atom, Var) and atom in linear:
            pending[atom] = add(pending.get(atom), cotangent)
    for eqn in reversed(linear_eqns):
        _pull_back(eqn, known, linear, pending)
    return [
        (pending.get(v) if pending.get(v) is not None else Zero(v.aval)) if type(a) is LinearOperand else None
        for v, a in zip(jaxpr.invars, arguments, strict=True)
    ]


def _run_forward(eqn: JaxprEqn, known: dict[Any, Any]) -> None:
    operands = [a.val if isinstance(a, Literal) else known[a] for a in eqn.invars]
    with working_on(eqn.source):
        results = eqn.primitive.bind(*operands, **eqn.params)
    known.update(zip(eqn.outvars, results if eqn.primitive.multiple_results else [results], strict=True))


def _pull_back(eqn: JaxprEqn, known: dict[Any, Any], linear: set[Var], pending: dict[Any, Any]) -> None:
    cotangents = [pending.pop(v, None) for v in eqn.outvars]
    if all(c is None or type(c) is Zero for c in cotangents):
        return
    given = [Zero(v.aval) if c is None else c for v, c in zip(eqn.outvars, cotangents, strict=True)]
    operands = []
    for atom in eqn.invars:
        if isinstance(atom, Literal):
            operands.append(atom.val)
        else:
            operands.append(LinearOperand(atom.aval) if atom in linear else known[atom])
    with working_on(eqn.source, "transpose"):
        before, context.resolving = context.resolving, True
        pulled = eqn.primitive.transpose(given, *operands, **eqn.params)
        context.resolving = before
        for atom, operand, cotangent in zip(eqn.invars, operands, pulled, strict=True):
            if type(operand) is LinearOperand and cotangent is not None:
                pending[atom] = add(pending.get(atom), _laid_out(cotangent, operand.aval))


def _laid_out(cotangent: Any, aval: ShapedArray) -> Any:
    """The cotangent laid out as the value whose it is."""
    if type(cotangent) is Zero:
        return cotangent
    given = in_program(aval_of(cotangent))
    if given.lies_like(aval):
        return cotangent
    sharding = aval.sharding or NamedSharding(given.sharding.mesh, PartitionSpec())
    return get("reshard").bind(cotangent, dst_sharding=sharding)
