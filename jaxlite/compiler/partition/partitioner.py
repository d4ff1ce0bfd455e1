"""Partitioner: walks a program and writes that of one device of the mesh.

In: a closed jaxpr and how its arguments lie.  Out: a `Partition`: one device's jaxpr on parts of the arrays, with
collectives where devices need each other's; the same for all devices of this process; what is communicated, and why.

A value is a part with its layout.  A sum over devices is put off until somebody needs it: linear operations pass it on,
and sums over the same mesh axes that are due together are one all-reduce.  Where the sum is wanted in parts it is a
reduce-scatter.
"""

from __future__ import annotations

import dataclasses
import weakref
from collections.abc import Sequence
from typing import Any, final

from jaxlite.compiler.inline import inline_calls
from jaxlite.compiler.partition.choice import Choice, choose, exact, layout_under, part_bytes
from jaxlite.compiler.partition.layouts import (
    Layout,
    Names,
    Step,
    layout_of,
    local_shape,
    names_in,
    received,
    steps_between,
)
from jaxlite.compiler.partition.record import Communication, Operation
from jaxlite.compiler.report import Decision
from jaxlite.compiler.simplify import simplify
from jaxlite.core.avals import ShapedArray, aval_of
from jaxlite.core.context import context, context_kept
from jaxlite.core.factors import Factors, spread
from jaxlite.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from jaxlite.core.mesh import AnyMesh
from jaxlite.core.partition_spec import PartitionSpec
from jaxlite.core.primitive import Primitive
from jaxlite.core.propagation import asked_of, meshes_inside
from jaxlite.core.shardings import NamedSharding
from jaxlite.core.source import UNKNOWN, working_on
from jaxlite.interpreters.stage import closed_over_nothing, stage
from jaxlite.lax.control.collectives import (
    all_gather_p,
    all_reduce_p,
    all_to_all_p,
    axis_index_p,
    pmax_p,
    pmin_p,
    reduce_scatter_p,
)
from jaxlite.lax.convert import constant
from jaxlite.lax.elementwise.arithmetic import add, mul
from jaxlite.lax.indexing.dynamic import dynamic_slice_p
from jaxlite.transforms.all_devices import run_on_all_devices

_EXTREMA = {"pmax": pmax_p, "pmin": pmin_p}
_PASSES = 8  # over the body of a loop, until the layout of its carry stays


@final
@dataclasses.dataclass(eq=False)
class Part:
    """One device's part of a value: ``aval`` is the whole's; ``due``: mesh axes over which it is still to be summed;
    ``origin``: how it was made of values that every device has whole, so that each can make what it needs of it."""

    value: Any
    aval: ShapedArray
    layout: Layout
    due: Names = ()
    origin: Origin | None = None


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Origin:
    """Result number ``number`` of an equation."""

    eqn: JaxprEqn
    operands: tuple[Part, ...]
    factors: Factors
    number: int


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
    local = stage(device, [walker.local(a, layout) for a, layout in zip(closed.in_avals, ins, strict=True)])
    local, _ = simplify(local)
    context.axis_sizes = before
    in_specs, out_specs = ([PartitionSpec(*layout) for layout in layouts] for layouts in (ins, outs))

    def every_device(*values: Any) -> list[Any]:
        return run_on_all_devices(local, values, in_specs, out_specs, sizes)

    whole = stage(every_device, [a.update(sharding=None) for a in closed.in_avals], closed.jaxpr.debug_info)
    return Partition(
        mesh, local, whole, ins, tuple(outs),
        tuple(walker.communications), tuple(walker.decisions), tuple(walker.operations),
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
        self.communications: list[Communication] = []
        self.decisions: list[Decision] = []
        self.operations: list[Operation] = []
        self._due: list[weakref.ref[Part]] = []  # parts that are still to be summed, in the order they were made
        self._eqn: JaxprEqn | None = None
        self._times: int | None = 1

    def local(self, aval: ShapedArray, layout: Layout) -> ShapedArray:
        """The type of a part."""
        return aval.update(shape=local_shape(aval.shape, layout, self.sizes), sharding=None)

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
                self._eqn = eqn
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
        before, decided = len(self.communications), len(self.decisions)
        given = tuple([(o.aval, o.layout, o.due) for o in operands])
        results = self.equation(eqn, operands)
        made = tuple([(r.aval, r.layout, r.due) for r in results])
        collectives = tuple(range(before, len(self.communications)))
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
            return [self.moved(operand, tuple(goal))]
        match eqn.primitive.family:
            case "scan":
                return self._scan(eqn, operands)
            case "while_loop":
                return self._while(eqn, operands)
            case "branch":
                return self._branch(eqn, operands)
        results = [v.aval for v in eqn.outvars]
        factors = eqn.primitive.factors([o.aval for o in operands], results, **eqn.params)
        if factors is None:
            if any(names_in(o.layout) for o in operands):
                self._decide("gathered", "no rule says how it could be split")
            whole = [self.moved(o, ((),) * o.aval.ndim) for o in operands]
            self.settle(whole)
            return [self._same(v, a) for v, a in zip(self._bind(eqn, whole, results), results, strict=True)]
        passed = self._passed_on(eqn, operands, results)
        if not passed:
            self.settle(operands)
        goals = [self._goal(a) for a in results]
        layouts = [o.layout for o in operands]
        choice = choose(factors, [o.aval for o in operands], layouts, results, goals, self.sizes)
        self._note(choice)
        split = choice.split
        ready = [self.moved(o, layout_under(axes, split)) for o, axes in zip(operands, factors.operands, strict=True)]
        outs = [layout_under(axes, split) for axes in factors.results]
        values = self._bind(eqn, ready, [self.local(a, out) for a, out in zip(results, outs, strict=True)])
        made = [Part(v, a, out, passed) for v, a, out in zip(values, results, outs, strict=True)]
        if not split and not passed and eqn.primitive.family in ("elementwise", "layout"):
            for number, part in enumerate(made):
                part.origin = Origin(eqn, tuple(ready), factors, number)
        self._put_off(made if passed else [])
        for factor, how in factors.reduced.items():
            if split.get(factor):
                self._fold(made, how, split[factor])
        return [self._as_typed(m, g) for m, g in zip(made, goals, strict=True)]

    def _bind(self, eqn: JaxprEqn, operands: Sequence[Part], results: Sequence[ShapedArray]) -> list[Any]:
        params = eqn.primitive.localized(eqn.params, [aval_of(o.value) for o in operands], results)
        out = eqn.primitive.bind(*[o.value for o in operands], **params)
        return list(out) if eqn.primitive.multiple_results else [out]

    def _fold(self, made: Sequence[Part], how: str, names: Names) -> None:
        """Folds results over the devices along ``names``: sums are put off."""
        for part in made:
            if how == "psum":
                if not part.due:
                    self._put_off([part])
                part.due = (*part.due, *names)
                continue
            for name in names:
                nbytes = received("all_reduce", part_bytes(part.aval, part.layout, self.sizes), self.sizes[name])
                part.value = self._collective(
                    "all_reduce", (name,), nbytes, _EXTREMA[how], [part.value], axis_name=name
                )

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
        return self.moved(part, wanted)

    # -- moves -----------------------------------------------------------------------------------------

    def moved(self, part: Part, goal: Layout) -> Part:
        """The part under another layout."""
        scattered = [n for n in part.due if n in names_in(goal)]
        if scattered:
            part = self._scattered(part, goal, scattered)
        if part.layout == goal:
            return part
        own = self._made_in_part(part, goal)
        if own is not None:
            return own
        if part.due and any(s.kind != "cut" for s in steps_between(part.layout, goal)):
            self.settle([part])
        out = Part(part.value, part.aval, part.layout, part.due)
        for step in steps_between(part.layout, goal):
            out.value = self._step(out, step)
        out.layout = goal
        if out.due:
            self._put_off([out])
        return out

    def _made_in_part(self, part: Part, goal: Layout) -> Part | None:
        """The part under ``goal``, computed from parts of what it was made of; None where that is not sure."""
        origin = part.origin
        if origin is None or part.due:
            return None
        factors, split = origin.factors, {}
        for axis, names in zip(factors.results[origin.number], goal, strict=True):
            found = spread(names, axis, factors.sizes, self.sizes)
            if found is None or any(f in factors.whole or f in factors.moved for f in found):
                return None
            split.update(found)
        if exact(factors, split, self.sizes) != split:
            return None
        primitive, params = origin.eqn.primitive, origin.eqn.params
        local = [
            self.local(v.aval, layout_under(axes, split))
            for v, axes in zip(origin.eqn.outvars, factors.results, strict=True)
        ]
        if not origin.operands:
            made = primitive.part_from(
                params, local[0].shape, [self._start(local[0], d, goal) for d in range(len(goal))]
            )
            return None if made is None else Part(made, part.aval, goal)
        ready = [
            self.moved(o, layout_under(axes, split)) for o, axes in zip(origin.operands, factors.operands, strict=True)
        ]
        return Part(self._bind(origin.eqn, ready, local)[origin.number], part.aval, goal)

    def _start(self, local: ShapedArray, axis: int, goal: Layout) -> Any:
        """Where this device's part begins along an axis; None for 0."""
        place: Any = None
        for name in goal[axis]:
            here = axis_index_p.bind(axis_name=name)
            size = constant(self.sizes[name], aval_of(here).dtype)
            place = here if place is None else add(mul(place, size), here)
        return None if place is None else mul(place, constant(local.shape[axis], aval_of(place).dtype))

    def _step(self, part: Part, step: Step) -> Any:
        value, n = part.value, self.sizes[step.name]
        nbytes = received(step.kind, aval_of(value).nbytes, n)
        names = (step.name,)
        match step.kind:
            case "gather":
                return self._collective(
                    "all_gather", names, nbytes, all_gather_p, [value],
                    axis_name=step.name, all_gather_dimension=step.axis, tiled=True,
                )  # fmt: skip
            case "exchange":
                return self._collective(
                    "all_to_all", names, nbytes, all_to_all_p, [value],
                    axis_name=step.name, split_axis=step.to, concat_axis=step.axis,
                )  # fmt: skip
        shape = list(aval_of(value).shape)
        shape[step.axis] //= n
        here = axis_index_p.bind(axis_name=step.name)
        zero = constant(0, aval_of(here).dtype)
        here = mul(here, constant(shape[step.axis], zero.dtype))
        starts = [here if d == step.axis else zero for d in range(len(shape))]
        return dynamic_slice_p.bind(value, *starts, slice_sizes=tuple(shape))

    def _scattered(self, part: Part, goal: Layout, names: Sequence[Any]) -> Part:
        """The sums of a part over some axes, of which each device keeps what the goal gives it."""
        out = Part(part.value, part.aval, part.layout, part.due)
        self._put_off([out])
        for name in names:
            axis = next(d for d, entry in enumerate(goal) if name in entry)
            position = goal[axis].index(name)
            if out.layout[axis] != goal[axis][:position]:
                continue  # what lies between is not there yet: summed whole, then cut
            nbytes = received("reduce_scatter", aval_of(out.value).nbytes, self.sizes[name])
            out.value = self._collective(
                "reduce_scatter", (name,), nbytes, reduce_scatter_p, [out.value],
                axis_name=name, scatter_dimension=axis, tiled=True,
            )  # fmt: skip
            out.due = tuple([d for d in out.due if d != name])
            out.layout = tuple([(*e, name) if d == axis else e for d, e in enumerate(out.layout)])
        rest = [n for n in names if n in out.due]
        if rest:
            self.settle([out])
        return out

    def settle(self, wanted: Sequence[Part]) -> None:
        """Sums what is due, if any of ``wanted`` is: all that is due over the same axes together."""
        for part in wanted:
            if not part.due:
                continue
            names = part.due
            alive = [p for reference in self._due if (p := reference()) is not None]
            together = list(dict.fromkeys([*[p for p in alive if p.due == names], part]))
            nbytes = sum(received("all_reduce", aval_of(p.value).nbytes, self._count(names)) for p in together)
            what = f"{len(together)} values" if len(together) > 1 else ""
            values = [p.value for p in together]
            sums = self._collective("all_reduce", names, nbytes, all_reduce_p, values, what, axes=names)
            for p, total in zip(together, sums, strict=True):
                p.value, p.due = total, ()
            self._due = [weakref.ref(p) for p in alive if p.due]

    def finish(self, results: Sequence[Part]) -> None:
        """Settles the results of the whole program."""
        before, given = len(self.communications), tuple([(r.aval, r.layout, r.due) for r in results])
        self.settle(results)
        collectives = tuple(range(before, len(self.communications)))
        if collectives:
            made = tuple([(r.aval, r.layout, r.due) for r in results])
            self.operations.append(Operation("results", UNKNOWN, given, made, collectives, ""))

    def _put_off(self, made: Sequence[Part]) -> None:
        """Notes parts whose sum is due."""
        self._due += [weakref.ref(p) for p in made]

    def _count(self, names: Names) -> int:
        count = 1
        for name in names:
            count *= self.sizes[name]
        return count

    # -- loops and branches ----------------------------------------------------------------------------

    def _scan(self, eqn: JaxprEqn, operands: list[Part]) -> list[Part]:
        params = eqn.params
        c, k = params["num_consts"], params["num_carry"]
        self.settle(operands)
        xs = [self.moved(o, ((), *o.layout[1:])) for o in operands[c + k :]]
        body = params["jaxpr"]
        given = [*operands[:c], *[Part(None, o.aval.without_axis(0), o.layout[1:]) for o in xs]]
        carry = self._steady(body, given[:c], [o.layout for o in operands[c : c + k]], given[c:])
        init = [self.moved(o, layout) for o, layout in zip(operands[c : c + k], carry, strict=True)]
        inner = [*given[:c], *[Part(None, o.aval, o.layout) for o in init], *given[c:]]
        local, outs = self._staged(body, inner, [*carry], params["length"])
        opened, consts = closed_over_nothing(local)
        values = eqn.primitive.bind(
            *consts, *[o.value for o in (*operands[:c], *init, *xs)],
            **{**params, "jaxpr": opened, "num_consts": c + len(consts)},
        )  # fmt: skip
        layouts = [*outs[:k], *[((), *layout) for layout in outs[k:]]]
        return [Part(v, var.aval, lay) for v, var, lay in zip(values, eqn.outvars, layouts, strict=True)]

    def _while(self, eqn: JaxprEqn, operands: list[Part]) -> list[Part]:
        params = eqn.params
        n_cond, n_body = params["cond_nconsts"], params["body_nconsts"]
        self.settle(operands)
        for_cond, for_body, start = operands[:n_cond], operands[n_cond : n_cond + n_body], operands[n_cond + n_body :]
        carry = self._steady(params["body_jaxpr"], for_body, [o.layout for o in start], [])
        init = [self.moved(o, layout) for o, layout in zip(start, carry, strict=True)]
        inner = [Part(None, o.aval, o.layout) for o in init]
        cond, _ = self._staged(params["cond_jaxpr"], [*for_cond, *inner], [()], None)
        body, outs = self._staged(params["body_jaxpr"], [*for_body, *inner], [*carry], None)
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

    def _branch(self, eqn: JaxprEqn, operands: list[Part]) -> list[Part]:
        self.settle(operands)
        index = self.moved(operands[0], ((),) * operands[0].aval.ndim)
        given = operands[1:]
        _, layouts = self._staged(eqn.params["branches"][0], given, None, 1, dry=True)
        staged = [self._staged(branch, given, [*layouts], 1)[0] for branch in eqn.params["branches"]]
        consts = [c for local in staged for c in local.consts]
        values = eqn.primitive.bind(
            index.value, *consts, *[o.value for o in given],
            **{**eqn.params, "branches": tuple(_with_constants_of_all(staged))},
        )  # fmt: skip
        return [Part(v, var.aval, lay) for v, var, lay in zip(values, eqn.outvars, layouts, strict=True)]

    def _steady(
        self, body: ClosedJaxpr, consts: Sequence[Part], carry: list[Layout], xs: Sequence[Part]
    ) -> list[Layout]:
        """The layout of a loop's carry that its body keeps: what the body changes is whole."""
        for number in range(_PASSES):
            avals = body.in_avals[len(consts) : len(consts) + len(carry)]
            inner = [Part(None, a, layout) for a, layout in zip(avals, carry, strict=True)]
            _, outs = self._staged(body, [*consts, *inner, *xs], None, 1, dry=True)
            kept = [
                tuple([_settled(a, b, number == 0) for a, b in zip(old, new, strict=True)])
                for old, new in zip(carry, outs[: len(carry)], strict=True)
            ]
            if kept == carry:
                break
            carry = kept
        return carry

    def _staged(
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
        walker._times = None if times is None or self._times is None else self._times * times
        outs: list[Layout] = []

        def run(*values: Any) -> list[Any]:
            parts = [Part(v, p.aval, p.layout) for v, p in zip(values, arguments, strict=True)]
            made = walker.program(body, parts)
            wanted = [*(results or []), *[m.layout for m in made[len(results or []) :]]]
            moved = [walker.moved(m, layout) for m, layout in zip(made, wanted, strict=True)]
            walker.settle(moved)
            outs[:] = [m.layout for m in moved]
            return [m.value for m in moved]

        local = stage(run, [self.local(p.aval, p.layout) for p in arguments], body.jaxpr.debug_info)
        if not dry:
            self.communications += walker.communications
            self.decisions += walker.decisions
        return local, outs

    # -- records ---------------------------------------------------------------------------------------

    def _collective(
        self,
        kind: str,
        names: Names,
        nbytes: int,
        primitive: Primitive,
        values: Sequence[Any],
        what: str = "",
        **params: Any,
    ) -> Any:
        """The result of a collective, which is recorded."""
        assert self._eqn is not None
        avals = tuple(map(aval_of, values))
        why = what or self._eqn.primitive.name
        self.communications.append(
            Communication(kind, names, nbytes, why, self._eqn.source, self._times, primitive, params, avals)
        )
        return primitive.bind(*values, **params)

    def _note(self, choice: Choice) -> None:
        """Notes a choice that was made against something."""
        if choice.others and choice.others[0][1] != choice.nbytes:
            listed = "; ".join(f"{_split_text(s)}: {n:,} bytes" for s, n in choice.others[:3])
            self._decide(_split_text(choice.split), f"{choice.nbytes:,} bytes move; against {listed}")

    def _decide(self, verdict: str, why: str) -> None:
        assert self._eqn is not None
        self.decisions.append(Decision(self._eqn.primitive.name, verdict, why))


def _settled(before: Names, after: Names, first: bool) -> Names:
    """How a loop's carry is split along an axis, where its body finds and leaves it so: as the body leaves what begins
    whole, if the next pass says so again; else whole."""
    return before if before == after else after if first and not before else ()


def _split_text(split: dict[int, Names]) -> str:
    if not split:
        return "whole"
    return "split over " + ", ".join(str(n) for names in split.values() for n in names)


def _with_constants_of_all(branches: Sequence[ClosedJaxpr]) -> list[ClosedJaxpr]:
    """Branches that take the constants of all of them as leading arguments."""
    out = []
    for number, branch in enumerate(branches):
        before = [Var(v.aval) for b in branches[:number] for v in b.jaxpr.constvars]
        after = [Var(v.aval) for b in branches[number + 1 :] for v in b.jaxpr.constvars]
        invars = (*before, *branch.jaxpr.constvars, *after, *branch.jaxpr.invars)
        out.append(ClosedJaxpr(branch.jaxpr.replace(constvars=(), invars=invars)))
    return out
