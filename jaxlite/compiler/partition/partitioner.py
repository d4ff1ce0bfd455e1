"""Partitioner: walks a program and writes that of one device of the mesh.

In: a closed jaxpr and how its arguments lie.  Out: a `Partition`: one device's jaxpr on parts of the arrays, with
collectives where devices need each other's; the same for all devices of this process; what is communicated, and why.

A value is a part with its layout.  A sum over devices is put off until somebody needs it: linear operations pass it on,
and sums over the same mesh axes that are due together are one all-reduce.  Where the sum is wanted in parts it is a
reduce-scatter.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, final

from jaxlite.compiler.inline import inline_calls
from jaxlite.compiler.partition.choice import Choice, choose, layout_under
from jaxlite.compiler.partition.control import partition_branch, partition_scan, partition_while
from jaxlite.compiler.partition.engine import engine_of
from jaxlite.compiler.partition.exchanges import Exchanges, Origin, Part
from jaxlite.compiler.partition.layouts import (
    Layout,
    Names,
    layout_of,
    names_in,
    parts,
)
from jaxlite.compiler.partition.record import Communication, Operation
from jaxlite.compiler.report import Decision
from jaxlite.compiler.simplify import simplify
from jaxlite.core.avals import ShapedArray
from jaxlite.core.context import context, context_kept
from jaxlite.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from jaxlite.core.mesh import AnyMesh
from jaxlite.core.partition_spec import PartitionSpec
from jaxlite.core.propagation import asked_of, meshes_inside
from jaxlite.core.shardings import NamedSharding
from jaxlite.core.source import UNKNOWN, working_on
from jaxlite.interpreters.stage import stage


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Partition:
    """``local``: one device's program; ``whole``: the same for all devices at once, on whole arrays."""

    mesh: AnyMesh
    local: ClosedJaxpr
    whole: ClosedJaxpr
    in_layouts: tuple[Layout, ...]
    out_layouts: tuple[Layout, ...]
    communications: tuple[Communication, ...]
    decisions: tuple[Decision, ...]
    operations: tuple[Operation, ...]

    @property
    def out_shardings(self) -> list[NamedSharding]:
        """How the results lie."""
        return [NamedSharding(self.mesh, PartitionSpec(*layout)) for layout in self.out_layouts]

    def text(self) -> str:
        """The collectives and the choices in words."""
        total = sum(c.nbytes * (c.times or 1) for c in self.communications)
        head = f"On each device of {self.mesh!s}: {len(self.communications)} collectives, {total:,} bytes received."
        lines = [f"  {c.text()}" for c in self.communications]
        lines += [f"  {d.subject}: {d.verdict}: {d.reason}" for d in self.decisions]
        return "\n".join([head, *lines])

    __str__ = text


def partition(closed: ClosedJaxpr, shardings: Sequence[NamedSharding | None]) -> Partition | None:
    """The partition of a program whose arguments (and constants) lie so; None where nothing is split."""
    closed, _ = inline_calls(closed)
    closed, _ = simplify(closed)
    meshes = [s.mesh for s in shardings if s is not None] or list(meshes_inside(closed))
    if not meshes:
        return None
    mesh = meshes[0]
    ins = tuple([layout_of(s, a.ndim) for s, a in zip(shardings, closed.in_avals, strict=True)])
    return _whole_partition(closed, mesh, ins)


@context_kept
def _whole_partition(closed: ClosedJaxpr, mesh: AnyMesh, ins: tuple[Layout, ...]) -> Partition:
    walker = _Partitioner(mesh)
    outs: list[Layout] = []

    def device(*values: Any) -> list[Any]:
        parts = [Part(v, a, layout) for v, a, layout in zip(values, closed.in_avals, ins, strict=True)]
        results = walker.program(closed, parts)
        walker.finish(results)
        outs[:] = [r.layout for r in results]
        return [r.value for r in results]

    sizes = {n: s for n, s in mesh.shape.items() if s > 1}
    before, context.axis_sizes = context.axis_sizes, {**context.axis_sizes, **sizes}
    local = stage(device, [walker.exchanges.local(a, layout) for a, layout in zip(closed.in_avals, ins, strict=True)])
    local, _ = simplify(local)
    context.axis_sizes = before
    in_specs, out_specs = ([PartitionSpec(*layout) for layout in layouts] for layouts in (ins, outs))
    info = closed.jaxpr.debug_info
    whole = engine_of(mesh).program(local, mesh, closed.in_avals, in_specs, out_specs, info)
    return Partition(
        mesh, local, whole, ins, tuple(outs),
        tuple(walker.exchanges.communications), tuple(walker.decisions), tuple(walker.operations),
    )  # fmt: skip


def _last_uses(jaxpr: Jaxpr) -> dict[int, list[Var]]:
    """For each equation's number, the variables that are not used after it."""
    last = {a: n for n, eqn in enumerate(jaxpr.eqns) for a in (*eqn.outvars, *eqn.invars) if isinstance(a, Var)}
    kept = {a for a in jaxpr.outvars if isinstance(a, Var)}
    out: dict[int, list[Var]] = {}
    for var, number in last.items():
        if var not in kept:
            out.setdefault(number, []).append(var)
    return out


@final
class _Partitioner:
    """Writes equations of one device into the trace at hand."""

    def __init__(self, mesh: AnyMesh) -> None:
        self.mesh = mesh
        self.sizes = mesh.shape
        self.explicit = set(mesh.explicit_axes)
        self.exchanges = Exchanges(mesh)
        self.decisions: list[Decision] = []
        self.operations: list[Operation] = []

    # -- programs --------------------------------------------------------------------------------------

    def program(self, closed: ClosedJaxpr, arguments: Sequence[Part]) -> list[Part]:
        """The results of a program's equations, one after the other."""
        jaxpr = closed.jaxpr
        known: dict[Var, Part] = dict(zip(jaxpr.invars, arguments, strict=True))
        known.update((v, self._same(c, v.aval)) for v, c in zip(jaxpr.constvars, closed.consts, strict=True))

        def part(atom: Var | Literal) -> Part:
            return self._same(atom.val, atom.aval) if isinstance(atom, Literal) else known[atom]

        last = _last_uses(jaxpr)
        for number, eqn in enumerate(jaxpr.eqns):
            with working_on(eqn.source):
                self.exchanges.eqn = eqn
                results = self._noted(eqn, [part(a) for a in eqn.invars])
            known.update((v, r) for v, r in zip(eqn.outvars, results, strict=True) if isinstance(v, Var))
            for var in last.get(number, ()):  # a sum that nobody waits for any more is not taken
                known.pop(var, None)
            del results
        return [part(a) for a in jaxpr.outvars]

    def _same(self, value: Any, aval: ShapedArray) -> Part:
        """A value that every device has."""
        return Part(value, aval, ((),) * aval.ndim)

    def _noted(self, eqn: JaxprEqn, operands: list[Part]) -> list[Part]:
        """The parts of an equation's results; what became of the equation is recorded."""
        before, decided = len(self.exchanges.communications), len(self.decisions)
        given = tuple([(o.aval, o.layout, o.due) for o in operands])
        results = self.equation(eqn, operands)
        made = tuple([(r.aval, r.layout, r.due) for r in results])
        collectives = tuple(range(before, len(self.exchanges.communications)))
        choice = "; ".join(f"{d.verdict}: {d.reason}" for d in self.decisions[decided:])
        self.operations.append(Operation(eqn.primitive.name, eqn.source, given, made, collectives, choice))
        return results

    def equation(self, eqn: JaxprEqn, operands: list[Part]) -> list[Part]:
        """The parts of an equation's results."""
        asked = asked_of(eqn)
        if asked is not None:
            (operand,) = operands
            goal = list(layout_of(asked, operand.aval.ndim))
            for d, entry in enumerate(asked.spec):
                if entry is PartitionSpec.UNCONSTRAINED:
                    goal[d] = operand.layout[d]
                elif operand.aval.shape[d] % parts(goal[d], self.sizes):
                    self._decide(
                        "whole", f"its axis {d} of {operand.aval.shape[d]} does not come out even over {entry}"
                    )
                    goal[d] = ()
            return [self.exchanges.moved(operand, tuple(goal))]
        match eqn.primitive.family:
            case "scan":
                return partition_scan(self, eqn, operands)
            case "while_loop":
                return partition_while(self, eqn, operands)
            case "branch":
                return partition_branch(self, eqn, operands)
        results = [v.aval for v in eqn.outvars]
        factors = eqn.primitive.factors([o.aval for o in operands], results, **eqn.params)
        if factors is None:
            if any(names_in(o.layout) for o in operands):
                self._decide("gathered", "no rule says how it could be split")
            whole = [self.exchanges.moved(o, ((),) * o.aval.ndim) for o in operands]
            self.exchanges.settle(whole)
            return [self._same(v, a) for v, a in zip(self.exchanges.bind(eqn, whole, results), results, strict=True)]
        passed = self._passed_on(eqn, operands, results)
        waiting = [n for n, o in enumerate(operands) if o.due]
        if not passed:
            self.exchanges.settle(operands)
        goals = [self._goal(a) for a in results]
        layouts = [o.layout for o in operands]
        choice = choose(factors, [o.aval for o in operands], layouts, results, goals, self.sizes)
        self._note(choice)
        split = choice.split
        ready = [
            self.exchanges.moved(o, layout_under(axes, split))
            for o, axes in zip(operands, factors.operands, strict=True)
        ]
        if passed and any(ready[n].due != passed for n in waiting):
            self.exchanges.settle(ready)  # a move has taken a sum that was to be passed on
            passed = ()
        outs = [layout_under(axes, split) for axes in factors.results]
        values = self.exchanges.bind(
            eqn, ready, [self.exchanges.local(a, out) for a, out in zip(results, outs, strict=True)]
        )
        made = [Part(v, a, out, passed) for v, a, out in zip(values, results, outs, strict=True)]
        if not split and not passed and eqn.primitive.family in ("elementwise", "layout"):
            for number, part in enumerate(made):
                part.origin = Origin(eqn, tuple(ready), factors, number)
        self.exchanges.put_off(made if passed else [])
        for factor, how in factors.reduced.items():
            if split.get(factor):
                self.exchanges.fold(made, how, split[factor])
        return [self._as_typed(m, g) for m, g in zip(made, goals, strict=True)]

    def _passed_on(self, eqn: JaxprEqn, operands: Sequence[Part], results: Sequence[ShapedArray]) -> Names:
        """The mesh axes over which the result is to be summed instead of the operands, if that is the same."""
        due = [n for n, o in enumerate(operands) if o.due]
        if not due or not any(set(group) == set(due) for group in eqn.primitive.linear_in):
            return ()
        names = operands[due[0]].due
        exact = all(r.dtype == operands[due[0]].aval.dtype for r in results)
        larger = any(r.size > max(operands[n].aval.size for n in due) for r in results)
        return names if exact and not larger and all(operands[n].due == names for n in due) else ()

    def _goal(self, aval: ShapedArray) -> Layout | None:
        """The layout that an explicit type asks of a result; None where types do not speak of it."""
        return None if aval.sharding is None else layout_of(aval.sharding, aval.ndim)

    def _as_typed(self, part: Part, goal: Layout | None) -> Part:
        """A result under the layout of its type; what lies along automatic axes stays."""
        if goal is None:
            return part
        wanted = tuple(
            [
                (*names, *[n for n in own if n not in self.explicit])
                for names, own in zip(goal, part.layout, strict=True)
            ]
        )
        return self.exchanges.moved(part, wanted)

    def finish(self, results: Sequence[Part]) -> None:
        """Settles the results of the whole program."""
        before, given = len(self.exchanges.communications), tuple([(r.aval, r.layout, r.due) for r in results])
        self.exchanges.settle(results)
        collectives = tuple(range(before, len(self.exchanges.communications)))
        if collectives:
            made = tuple([(r.aval, r.layout, r.due) for r in results])
            self.operations.append(Operation("results", UNKNOWN, given, made, collectives, ""))

    def staged(
        self,
        body: ClosedJaxpr,
        arguments: Sequence[Part],
        results: Sequence[Layout] | None,
        times: int | None,
        dry: bool = False,
    ) -> tuple[ClosedJaxpr, list[Layout]]:
        """A body as one device runs it, its first results laid out as ``results`` say, and the layouts of all."""
        body, _ = inline_calls(body)
        body, _ = simplify(body)
        walker = _Partitioner(self.mesh)
        outer = self.exchanges.times
        walker.exchanges.times = None if times is None or outer is None else outer * times
        outs: list[Layout] = []

        def run(*values: Any) -> list[Any]:
            parts = [Part(v, p.aval, p.layout) for v, p in zip(values, arguments, strict=True)]
            made = walker.program(body, parts)
            wanted = [*(results or []), *[m.layout for m in made[len(results or []) :]]]
            moved = [walker.exchanges.moved(m, layout) for m, layout in zip(made, wanted, strict=True)]
            walker.exchanges.settle(moved)
            outs[:] = [m.layout for m in moved]
            return [m.value for m in moved]

        local = stage(run, [self.exchanges.local(p.aval, p.layout) for p in arguments], body.jaxpr.debug_info)
        if not dry:
            self.exchanges.communications += walker.exchanges.communications
            self.decisions += walker.decisions
        return local, outs

    # -- records ---------------------------------------------------------------------------------------

    def _note(self, choice: Choice) -> None:
        """Notes a choice that was made against something."""
        if choice.others and choice.others[0][1] != choice.nbytes:
            listed = "; ".join(f"{_split_text(s)}: {n:,} bytes" for s, n in choice.others[:3])
            self._decide(_split_text(choice.split), f"{choice.nbytes:,} bytes move; against {listed}")

    def _decide(self, verdict: str, why: str) -> None:
        assert self.exchanges.eqn is not None
        self.decisions.append(Decision(self.exchanges.eqn.primitive.name, verdict, why))


def _split_text(split: dict[int, Names]) -> str:
    if not split:
        return "whole"
    return "split over " + ", ".join(str(n) for names in split.values() for n in names)
