"""``checkpoint`` (remat): a call whose backward pass computes again what it needs, but for what a policy saves.

Linearised, the forward call gives its results and the values that the policy saves; the tangent side starts with the
operands and those, computes the residuals again behind a barrier, and goes on with the linear part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np

from jaxlite.core.jaxpr import ClosedJaxpr, JaxprEqn, Var, evaluate
from jaxlite.core.primitive import Primitive, Sample
from jaxlite.interpreters.dce import live_equations
from jaxlite.interpreters.stage import stage
from jaxlite.lax.control.barrier import optimization_barrier_p
from jaxlite.lax.convert import operand_of
from jaxlite.lax.families.call import Call
from jaxlite.lax.families.elementwise import Elementwise
from jaxlite.lax.families.higher_order import kept, linearized, nonzero, spread, zeros_for

Policy = Callable[..., bool] | None


@final
class Checkpoint(Call):
    """Params: ``jaxpr``, ``policy`` (None saves nothing), ``prevent_cse``, ``name``."""

    name = "checkpoint"

    def linearize(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        mask = nonzero(tangents)
        split = linearized(params["jaxpr"], mask, False)
        n_out = len(split.out_nonzero)
        saved = saved_variables(split.primal, n_out, params["policy"])
        primal = split.primal.jaxpr
        forward = ClosedJaxpr(primal.replace(outvars=(*primal.outvars[:n_out], *saved)), split.primal.consts)
        results = self.bind(*primals, **{**params, "jaxpr": forward})
        again = computed_again(split.primal, n_out, saved, params["prevent_cse"])
        n_known = len(again.in_avals)

        def tangent_side(*args: Any) -> list[Any]:
            residuals = evaluate(again.jaxpr, again.consts, args[:n_known])
            return evaluate(split.tangent.jaxpr, split.tangent.consts, [*residuals, *args[n_known:]])

        t_avals = [a.to_tangent_aval() for a in kept(params["jaxpr"].in_avals, mask)]
        body = stage(tangent_side, [*again.in_avals, *t_avals], params["jaxpr"].jaxpr.debug_info)
        moved = self.bind(*primals, *results[n_out:], *kept(tangents, mask), **{**params, "jaxpr": body})
        return results[:n_out], spread(moved, split.out_nonzero, zeros_for(params["jaxpr"].out_avals))


checkpoint_p = Checkpoint()


def saved_variables(primal: ClosedJaxpr, n_out: int, policy: Policy) -> tuple[Var, ...]:
    """The variables that the policy saves, of those that the residuals (the results after ``n_out``) are computed
    from."""
    if policy is None:
        return ()
    jaxpr = primal.jaxpr
    needed, _ = live_equations(jaxpr, [i >= n_out for i in range(len(jaxpr.outvars))])
    chosen = [v for e in needed if saves(policy, e) for v in e.outvars if isinstance(v, Var)]
    return tuple(chosen)


def saves(policy: Callable[..., bool], eqn: JaxprEqn) -> bool:
    """What the policy says of an equation."""
    return bool(policy(eqn.primitive, *(a.aval for a in eqn.invars), **eqn.params))


def computed_again(primal: ClosedJaxpr, n_out: int, saved: Sequence[Var], prevent_cse: bool) -> ClosedJaxpr:
    """The jaxpr of (operands, saved values) -> residuals."""
    jaxpr = primal.jaxpr
    known = set(saved)
    remaining = [e for e in jaxpr.eqns if not any(v in known for v in e.outvars)]
    opened = jaxpr.replace(
        constvars=(),
        invars=(*jaxpr.constvars, *jaxpr.invars, *saved),
        outvars=jaxpr.outvars[n_out:],
        eqns=tuple(remaining),
    )
    needed, _ = live_equations(opened)
    smaller = ClosedJaxpr(opened.replace(eqns=tuple(needed)))

    def body(*args: Any) -> list[Any]:
        behind = optimization_barrier_p.bind(*args) if prevent_cse and args else args
        return evaluate(smaller.jaxpr, (), [*primal.consts, *behind])

    return stage(body, [v.aval for v in (*jaxpr.invars, *saved)], jaxpr.debug_info)


@final
class Name(Elementwise):
    """Its operand, under a name that policies of ``checkpoint`` can ask for."""

    name, exact, accepts, samples = "name", True, "biuf", (Sample(((3, 4),), {"name": "x"}),)

    def scalar(self, e: Any, *xs: Any, **params: Any) -> Any:
        return xs[0]

    def numpy(self, *xs: Any, **params: Any) -> Any:
        return np.copy(xs[0])

    def partials(self, out: Any, *xs: Any, **params: Any) -> Any:
        return (lambda t: self.bind(t, **params),)

    def pull_back(self, cotangent: Any, *operands: Any, **params: Any) -> list[Any]:
        return [self.bind(cotangent, **params)]


name_p = Name()


def named(x: Any, name: str) -> Any:
    """``x`` under ``name``."""
    return name_p.bind(operand_of(x), name=name)


def is_name(primitive: Primitive) -> bool:
    """Whether an equation gives its operand a name."""
    return isinstance(primitive, Name)
