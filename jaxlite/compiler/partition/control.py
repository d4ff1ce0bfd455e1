"""Loops and branches over a mesh: bodies as one device runs them, the carry under a layout that the body keeps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from jaxlite.compiler.partition.exchanges import Exchanges, Part
from jaxlite.compiler.partition.layouts import Layout, Names
from jaxlite.core.jaxpr import ClosedJaxpr, JaxprEqn, Var
from jaxlite.interpreters.stage import closed_over_nothing

_PASSES = 8  # over the body of a loop, until the layout of its carry stays


class Walker(Protocol):
    """What a partitioner offers to the rules of loops."""

    exchanges: Exchanges

    def staged(
        self,
        body: ClosedJaxpr,
        arguments: Sequence[Part],
        results: Sequence[Layout] | None,
        times: int | None,
        dry: bool = False,
    ) -> tuple[ClosedJaxpr, list[Layout]]:
        """A body as one device runs it, its first results laid out as ``results`` say, and the layouts of all."""
        ...


def partition_scan(walker: Walker, eqn: JaxprEqn, operands: list[Part]) -> list[Part]:
    params = eqn.params
    c, k = params["num_consts"], params["num_carry"]
    walker.exchanges.settle(operands)
    xs = [walker.exchanges.moved(o, ((), *o.layout[1:])) for o in operands[c + k :]]
    body = params["jaxpr"]
    given = [*operands[:c], *[Part(None, o.aval.without_axis(0), o.layout[1:]) for o in xs]]
    carry = _steady(walker, body, given[:c], [o.layout for o in operands[c : c + k]], given[c:])
    init = [walker.exchanges.moved(o, layout) for o, layout in zip(operands[c : c + k], carry, strict=True)]
    inner = [*given[:c], *[Part(None, o.aval, o.layout) for o in init], *given[c:]]
    local, outs = walker.staged(body, inner, [*carry], params["length"])
    opened, consts = closed_over_nothing(local)
    values = eqn.primitive.bind(
        *consts, *[o.value for o in (*operands[:c], *init, *xs)],
        **{**params, "jaxpr": opened, "num_consts": c + len(consts)},
    )  # fmt: skip
    layouts = [*outs[:k], *[((), *layout) for layout in outs[k:]]]
    return [Part(v, var.aval, lay) for v, var, lay in zip(values, eqn.outvars, layouts, strict=True)]


def partition_while(walker: Walker, eqn: JaxprEqn, operands: list[Part]) -> list[Part]:
    params = eqn.params
    n_cond, n_body = params["cond_nconsts"], params["body_nconsts"]
    walker.exchanges.settle(operands)
    for_cond, for_body, start = operands[:n_cond], operands[n_cond : n_cond + n_body], operands[n_cond + n_body :]
    carry = _steady(walker, params["body_jaxpr"], for_body, [o.layout for o in start], [])
    init = [walker.exchanges.moved(o, layout) for o, layout in zip(start, carry, strict=True)]
    inner = [Part(None, o.aval, o.layout) for o in init]
    cond, _ = walker.staged(params["cond_jaxpr"], [*for_cond, *inner], [()], None)
    body, outs = walker.staged(params["body_jaxpr"], [*for_body, *inner], [*carry], None)
    (cond, cond_consts), (body, body_consts) = closed_over_nothing(cond), closed_over_nothing(body)
    parts = [*cond_consts, *for_cond, *body_consts, *for_body, *init]
    values = eqn.primitive.bind(
        *[p.value if isinstance(p, Part) else p for p in parts],
        **{
            **params, "cond_jaxpr": cond, "body_jaxpr": body,
            "cond_nconsts": n_cond + len(cond_consts), "body_nconsts": n_body + len(body_consts),
        },
    )  # fmt: skip
    return [Part(v, var.aval, lay) for v, var, lay in zip(values, eqn.outvars, outs, strict=True)]


def partition_branch(walker: Walker, eqn: JaxprEqn, operands: list[Part]) -> list[Part]:
    walker.exchanges.settle(operands)
    index = walker.exchanges.moved(operands[0], ((),) * operands[0].aval.ndim)
    given = operands[1:]
    _, layouts = walker.staged(eqn.params["branches"][0], given, None, 1, dry=True)
    staged = [walker.staged(branch, given, [*layouts], 1)[0] for branch in eqn.params["branches"]]
    consts = [c for local in staged for c in local.consts]
    values = eqn.primitive.bind(
        index.value, *consts, *[o.value for o in given],
        **{**eqn.params, "branches": tuple(_with_constants_of_all(staged))},
    )  # fmt: skip
    return [Part(v, var.aval, lay) for v, var, lay in zip(values, eqn.outvars, layouts, strict=True)]


def _steady(
    walker: Walker, body: ClosedJaxpr, consts: Sequence[Part], carry: list[Layout], xs: Sequence[Part]
) -> list[Layout]:
    """The layout of a loop's carry that its body keeps: what the body changes is whole."""
    for number in range(_PASSES):
        avals = body.in_avals[len(consts) : len(consts) + len(carry)]
        inner = [Part(None, a, layout) for a, layout in zip(avals, carry, strict=True)]
        _, outs = walker.staged(body, [*consts, *inner, *xs], None, 1, dry=True)
        kept = [
            tuple([_settled(a, b, number == 0) for a, b in zip(old, new, strict=True)])
            for old, new in zip(carry, outs[: len(carry)], strict=True)
        ]
        if kept == carry:
            break
        carry = kept
    return carry


def _settled(before: Names, after: Names, first: bool) -> Names:
    """How a loop's carry is split along an axis, where its body finds and leaves it so: as the body leaves what begins
    whole, if the next pass says so again; else whole."""
    return before if before == after else after if first and not before else ()


def _with_constants_of_all(branches: Sequence[ClosedJaxpr]) -> list[ClosedJaxpr]:
    """Branches that take the constants of all of them as leading arguments."""
    out = []
    for number, branch in enumerate(branches):
        before = [Var(v.aval) for b in branches[:number] for v in b.jaxpr.constvars]
        after = [Var(v.aval) for b in branches[number + 1 :] for v in b.jaxpr.constvars]
        invars = (*before, *branch.jaxpr.constvars, *after, *branch.jaxpr.invars)
        out.append(ClosedJaxpr(branch.jaxpr.replace(constvars=(), invars=invars)))
    return out
