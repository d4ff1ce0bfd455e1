"""From groups to a plan: every group becomes steps over storages; loops and branches hold the steps of their bodies.

In: a closed jaxpr and the front passes (for bodies).  Out: steps, storages and constants, with temporaries still to be
placed.  Slices of what a scan reads and writes are addresses that move with the loop's counter; a carry alternates
between two places.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np

from jaxlite.compiler.groups import Group
from jaxlite.compiler.lower_contraction import Contraction, analyse, by_blas, lower_contraction
from jaxlite.compiler.lower_cumulative import lower_cumulative
from jaxlite.compiler.lower_kernel import Lowered, Scratch, lower_group
from jaxlite.compiler.lower_linalg import LoweredRoutine, lower_linalg
from jaxlite.compiler.lower_scatter import lower_scatter
from jaxlite.compiler.plan import (
    ALIGNMENT,
    Branch,
    Copy,
    Counter,
    Fill,
    For,
    HostCall,
    HostOperand,
    KernelCall,
    Label,
    LibraryCall,
    MatrixOperand,
    MatrixProduct,
    Pointer,
    Reference,
    Step,
    Storage,
    StorageKind,
    While,
)
from jaxlite.compiler.report import Decision
from jaxlite.core import dtypes, locks
from jaxlite.core.array import numpy_of
from jaxlite.core.avals import ShapedArray
from jaxlite.core.jaxpr import Atom, ClosedJaxpr, JaxprEqn, Literal, Var
from jaxlite.core.progress import loop_of
from jaxlite.core.source import UNKNOWN
from jaxlite.lax.families.linalg import Memory
from jaxlite.lax.layout.shaping import transpose_p

LONG_HOST = 1 << 18  # elements from which a function of NumPy works on copies, so that Ctrl-C need not wait for it

FrontPasses = Callable[[ClosedJaxpr, str], tuple[ClosedJaxpr, Sequence[Group]]]


@final
@dataclasses.dataclass(eq=False)
class Lowering:
    """What grows while a program is lowered: storages, constants, decisions, and every kernel with its group."""

    front: FrontPasses
    storages: list[Storage] = dataclasses.field(default_factory=list)
    constants: list[np.ndarray[Any, Any]] = dataclasses.field(default_factory=list)
    decisions: list[Decision] = dataclasses.field(default_factory=list)
    kernels: list[tuple[Group, Lowered]] = dataclasses.field(default_factory=list)
    groups: list[Group] = dataclasses.field(default_factory=list)
    labels: dict[int, Label] = dataclasses.field(default_factory=dict)
    _known: dict[Any, Reference] = dataclasses.field(default_factory=dict)

    def temporary(self, nbytes: int, label: Label) -> Reference:
        """New memory in the workspace."""
        return self.storage("temporary", nbytes, 0, label)

    def storage(self, kind: StorageKind, nbytes: int, position: int, label: Label) -> Reference:
        """New memory of a kind."""
        self.labels[len(self.storages)] = label
        self.storages.append(Storage(kind, max(nbytes, 1), position))
        return Reference(len(self.storages) - 1)

    def constant(self, value: np.ndarray[Any, Any]) -> Reference:
        """Memory that holds ``value``; equal small ones share it."""
        array = np.ascontiguousarray(value)
        key = (array.dtype.str, array.shape, array.tobytes()) if array.nbytes <= 256 else id(value)
        if key not in self._known:
            self.storages.append(Storage("constant", max(array.nbytes, 1), len(self.constants)))
            self.constants.append(array if array.nbytes else np.zeros(1, array.dtype))
            self._known[key] = Reference(len(self.storages) - 1)
        return self._known[key]


def nbytes_of(aval: ShapedArray) -> int:
    """Bytes of a value in memory."""
    return aval.size * int(dtypes.physical(aval.dtype).itemsize)


def lower_program(
    closed: ClosedJaxpr, groups: Sequence[Group], front: FrontPasses
) -> tuple[Lowering, tuple[Step, ...]]:
    """The steps of a whole program."""
    lowering = Lowering(front)
    places: dict[Var, Reference] = {}
    lines = {v: e.source for e in closed.eqns for v in e.outvars if isinstance(v, Var)}
    for number, var in enumerate(closed.jaxpr.invars):
        label = Label(f"argument {number}", var.aval.short(), UNKNOWN)
        places[var] = lowering.storage("argument", nbytes_of(var.aval), number, label)
    results = []
    for number, atom in enumerate(closed.jaxpr.outvars):
        line = lines.get(atom, UNKNOWN) if isinstance(atom, Var) else UNKNOWN
        label = Label(f"result {number}", atom.aval.short(), line)
        results.append(lowering.storage("result", nbytes_of(atom.aval), number, label))
    block = _Block(lowering, closed, groups, places)
    return lowering, tuple(block.steps_into(results))


@final
class _Block:
    """One jaxpr being lowered: where its variables lie, and the steps so far."""

    def __init__(
        self, lowering: Lowering, closed: ClosedJaxpr, groups: Sequence[Group], places: dict[Var, Reference]
    ) -> None:
        self.lowering, self.closed, self.places = lowering, closed, dict(places)
        self.steps: list[Step] = []
        self.lines = {v: e.source for e in closed.eqns for v in e.outvars if isinstance(v, Var)}
        written = {v for g in groups for e in g.eqns for v in e.outvars if isinstance(v, Var)}
        self.makers: dict[Var, JaxprEqn] = {
            v: e for e in closed.eqns for v in e.outvars if isinstance(v, Var) and v not in written
        }
        for var, value in zip(closed.jaxpr.constvars, closed.consts, strict=True):
            self.places[var] = lowering.constant(numpy_of(value))
        first = len(lowering.groups)  # bodies of loops and branches have groups of their own: no two share a name
        self.groups = [dataclasses.replace(g, name=f"{g.kind}_{first + n}") for n, g in enumerate(groups)]
        lowering.groups.extend(self.groups)

    def steps_into(self, results: Sequence[Reference]) -> list[Step]:
        """All steps, so that the jaxpr's results lie at ``results``."""
        copies: list[tuple[Atom, Reference]] = []
        for atom, reference in zip(self.closed.jaxpr.outvars, results, strict=True):
            if isinstance(atom, Literal) or atom in self.places:
                copies.append((atom, reference))
            else:
                self.places[atom] = reference  # written there by the step that makes it
        for group in self.groups:
            self._lower(group)
        for atom, reference in copies:
            self.steps.append(Copy(reference, self.place(atom), nbytes_of(atom.aval)))
        return self.steps

    def place(self, atom: Atom) -> Reference:
        """Where a value lies; a literal becomes a constant."""
        if isinstance(atom, Literal):
            return self.lowering.constant(np.asarray(atom.val, dtypes.physical(atom.aval.dtype)))
        return self.places[atom]

    def destination(self, var: Any) -> Reference:
        """Where a result is to be written."""
        if var not in self.places:
            label = Label("value", var.aval.short(), self.lines.get(var, UNKNOWN))
            self.places[var] = self.lowering.temporary(nbytes_of(var.aval), label)
        return self.places[var]

    def _lower(self, group: Group) -> None:
        if group.kind in ("map", "row", "reduce", "cumulative") and all(not v.aval.size for v in group.outputs):
            for var in group.outputs:
                self.steps.append(Fill(self.destination(var), 1))  # no elements: the place itself counts as written
            return
        match group.kind:
            case "map" | "row" | "reduce":
                self._kernels(group, lower_group(group, self.makers))
            case "scatter":
                self._scatter(group)
            case "contraction":
                self._contraction(group)
            case "cumulative":
                self._kernels(group, [lower_cumulative(group, self.makers)])
            case "linalg":
                self._linalg(group)
            case "barrier":
                self._barrier(group.eqns[0])
            case "branch":
                self._branch(group.eqns[0])
            case "loop":
                (self._scan if group.eqns[0].primitive.family == "scan" else self._while)(group.eqns[0])
            case _:
                self._host(group.eqns[0])

    def _kernels(self, group: Group, kernels: Sequence[Lowered | LoweredRoutine]) -> None:
        scratch: dict[Scratch, Reference] = {}
        for lowered in kernels:
            buffers: list[Reference] = []
            for what in lowered.buffers:
                if isinstance(what, Scratch):
                    if what not in scratch:
                        label = Label("partial results", f"{what.dtype}[{what.elements}]", group.eqns[-1].source)
                        scratch[what] = self.lowering.temporary(what.elements * what.dtype.itemsize, label)
                    buffers.append(scratch[what])
                else:
                    buffers.append(self.destination(what))
            if isinstance(lowered, LoweredRoutine):
                self._routine(lowered, buffers)
                continue
            self.lowering.kernels.append((group, lowered))
            self.steps.append(KernelCall(lowered.kernel, tuple(buffers), (), lowered.extent, lowered.work))

    def _linalg(self, group: Group) -> None:
        results = group.eqns[0].outvars
        empty = [v for v in results if not v.aval.size]
        self.steps += [Fill(self.destination(v), 1) for v in empty]
        if len(empty) < len(results):
            self._kernels(group, lower_linalg(group, self.makers))

    def _routine(self, lowered: LoweredRoutine, buffers: Sequence[Reference]) -> None:
        routine, letter = lowered.routine, "s" if lowered.dtype.itemsize == 4 else "d"
        arguments = tuple(
            Pointer(lowered.memories.index(a), math.prod(a.shape) * a.dtype.itemsize) if isinstance(a, Memory) else a
            for a in routine.arguments
        )
        writes = tuple(m in routine.writes for m in lowered.memories)
        self.steps.append(
            LibraryCall(
                letter + routine.name, arguments, tuple(buffers), writes, lowered.dtype, lowered.batch, routine.work
            )
        )

    def _scatter(self, group: Group) -> None:
        (eqn,) = group.eqns
        out = self.destination(eqn.outvars[0])
        self.steps.append(Copy(out, self.place(eqn.invars[0]), nbytes_of(eqn.outvars[0].aval)))
        self._kernels(group, [lower_scatter(group, self.makers)])

    def _barrier(self, eqn: JaxprEqn) -> None:
        """Results lie where the operands do."""
        for var, atom in zip(eqn.outvars, eqn.invars, strict=True):
            if var in self.places:
                self.steps.append(Copy(self.places[var], self.place(atom), nbytes_of(atom.aval)))
            else:
                self.places[var] = self.place(atom)  # type: ignore[index]

    # -- contractions -------------------------------------------------------------------------

    def _contraction(self, group: Group) -> None:
        (eqn,) = group.eqns
        contraction = analyse(eqn)
        use, why = by_blas(eqn, contraction)
        sizes = {"m": contraction.m, "n": contraction.n, "k": contraction.k, "batch": contraction.batch}
        self.lowering.decisions.append(
            Decision(eqn.primitive.name, "BLAS" if use else "own kernel", why, sizes, eqn.source)
        )
        if not use:
            self._kernels(group, [lower_contraction(group, self.makers)])
            return
        place = self.lowering.groups.index(group)
        self.lowering.groups[place] = dataclasses.replace(group, kind="library", reason=why)
        dtype = np.dtype(eqn.invars[0].aval.dtype)
        left = self._matrix(eqn.invars[0], contraction.left, contraction, contraction.m, contraction.k, False)
        right = self._matrix(eqn.invars[1], contraction.right, contraction, contraction.k, contraction.n, True)
        out = MatrixOperand(self.destination(eqn.outvars[0]), max(contraction.n, 1), contraction.m * contraction.n)
        self.steps.append(
            MatrixProduct(dtype, left, right, out, contraction.m, contraction.n, contraction.k, contraction.batch)
        )

    def _matrix(
        self, atom: Atom, form: Any, contraction: Contraction, rows: int, columns: int, right: bool
    ) -> MatrixOperand:
        """An operand as matrices of (rows, columns); the right one's free axes are its columns."""
        reference = self.place(atom)
        if not form.in_place:
            reference = self._transposed(atom, form.order)
        # In memory: (free, contracted), or its transpose.  The product reads left as (free, contracted), right as
        # (contracted, free).
        transposed = form.transposed != right
        leading = rows if transposed else columns
        return MatrixOperand(reference, max(leading, 1), rows * columns, transposed)

    def _transposed(self, atom: Atom, order: tuple[int, ...]) -> Reference:
        """A copy of ``atom`` with its axes in ``order``."""
        shape = tuple(atom.aval.shape[d] for d in order)
        var = Var(atom.aval.update(shape=shape))
        eqn = JaxprEqn(transpose_p, (atom,), (var,), {"permutation": order})
        group = Group(
            "map",
            shape,
            [eqn],
            outputs=[var],
            name=f"transposed_{len(self.lowering.kernels)}",
            reason="BLAS reads matrices with their rows or columns adjacent",
        )
        self.lowering.decisions.append(
            Decision("transpose", "own kernel", group.reason, {"bytes": nbytes_of(atom.aval)})
        )
        self._kernels(group, lower_group(group, self.makers))
        return self.places[var]

    # -- loops and branches -------------------------------------------------------------------

    def _inner(
        self, scope: str, closed: ClosedJaxpr, operands: Sequence[Reference], results: Sequence[Reference]
    ) -> tuple[Step, ...]:
        """The steps of a body whose arguments lie at ``operands``."""
        simplified, groups = self.lowering.front(closed, scope)
        places = dict(zip(simplified.jaxpr.invars, operands, strict=True))
        return tuple(_Block(self.lowering, simplified, groups, places).steps_into(results))

    def _branch(self, eqn: JaxprEqn) -> None:
        operands = [self.place(a) for a in eqn.invars[1:]]
        results = [self.destination(v) for v in eqn.outvars]
        branches = tuple(
            self._inner(_scope(eqn, f"branch {n}"), b, operands, results) for n, b in enumerate(eqn.params["branches"])
        )
        self.steps.append(Branch(self.place(eqn.invars[0]), branches))

    def _scan(self, eqn: JaxprEqn) -> None:
        p = eqn.params
        body, nc, nk, length = p["jaxpr"], p["num_consts"], p["num_carry"], p["length"]
        counter = Counter()
        last = length - 1 if p["reverse"] else None
        places = [self.place(a) for a in eqn.invars]
        carry_avals = body.out_avals[:nk]
        slots = [self._two_places(a, eqn) for a in carry_avals]
        for (slot, _), source, aval in zip(slots, places[nc : nc + nk], carry_avals, strict=True):
            self.steps.append(Copy(slot, source, nbytes_of(aval)))
        now = [slot.along(counter, stride, modulo=2) for slot, stride in slots]
        after = [slot.along(counter, stride, phase=1, modulo=2) for slot, stride in slots]
        xs = [
            r.along(counter, nbytes_of(a), reverse_from=last)
            for r, a in zip(places[nc + nk :], body.in_avals[nc + nk :], strict=True)
        ]
        ys = [
            self.destination(v).along(counter, nbytes_of(a), reverse_from=last)
            for v, a in zip(eqn.outvars[nk:], body.out_avals[nk:], strict=True)
        ]
        steps = self._inner(_scope(eqn, "body"), body, [*places[:nc], *now, *xs], [*after, *ys])
        if length == 0:  # nothing runs, and outputs without elements count as written
            self.steps += [Fill(self.destination(v), 1) for v in eqn.outvars[nk:]]
        else:
            self.steps.append(For(counter, length, steps, loop_of(eqn)))
        for var, (slot, stride), aval in zip(eqn.outvars[:nk], slots, carry_avals, strict=True):
            final_place = slot.plus(stride * (length % 2))
            if var in self.places:
                self.steps.append(Copy(self.places[var], final_place, nbytes_of(aval)))
            else:
                self.places[var] = final_place  # type: ignore[index]

    def _two_places(self, aval: ShapedArray, eqn: JaxprEqn) -> tuple[Reference, int]:
        """Memory for a carry that alternates, and the distance of its two places."""
        stride = -(-max(nbytes_of(aval), 1) // ALIGNMENT) * ALIGNMENT
        return self.lowering.temporary(2 * stride, Label("carry, twice", aval.short(), eqn.source)), stride

    def _while(self, eqn: JaxprEqn) -> None:
        p = eqn.params
        n_cond, n_body = p["cond_nconsts"], p["body_nconsts"]
        places = [self.place(a) for a in eqn.invars]
        for_cond, for_body, initial = places[:n_cond], places[n_cond : n_cond + n_body], places[n_cond + n_body :]
        avals = p["body_jaxpr"].out_avals
        now = [self.destination(v) for v in eqn.outvars]
        for reference, source, aval in zip(now, initial, avals, strict=True):
            self.steps.append(Copy(reference, source, nbytes_of(aval)))
        predicate = self.lowering.temporary(1, Label("condition", "bool[]", eqn.source))
        condition = self._inner(_scope(eqn, "condition"), p["cond_jaxpr"], [*for_cond, *now], [predicate])
        after = [self.lowering.temporary(nbytes_of(a), Label("next carry", a.short(), eqn.source)) for a in avals]
        body = self._inner(_scope(eqn, "body"), p["body_jaxpr"], [*for_body, *now], after)
        back = tuple(Copy(a, b, nbytes_of(aval)) for a, b, aval in zip(now, after, avals, strict=True))
        self.steps.append(While(Counter(), condition, predicate, (*body, *back), loop_of(eqn)))

    # -- Python -------------------------------------------------------------------------------

    def _host(self, eqn: JaxprEqn) -> None:
        """A call of the primitive's NumPy meaning: for what has no native form yet."""
        primitive, compute = eqn.primitive, functools.partial(eqn.primitive.evaluate, **eqn.params)
        elements = sum(a.aval.size for a in eqn.invars)
        long = elements >= LONG_HOST and primitive.family != "callback"  # the user's functions run on the user's thread

        def call(inputs: list[np.ndarray[Any, Any]], outputs: list[np.ndarray[Any, Any]]) -> None:
            values = locks.elsewhere(compute, *map(locks.copied, inputs)) if long else compute(*inputs)
            for out, value in zip(outputs, values, strict=True):
                locks.copy_into(out, value)

        inputs = tuple(_host_operand(self.place(a), a.aval) for a in eqn.invars)
        outputs = tuple(_host_operand(self.destination(v), v.aval) for v in eqn.outvars)
        self.lowering.decisions.append(
            Decision(
                primitive.name,
                "host call",
                "no native form yet: NumPy computes it",
                {"bytes": sum(nbytes_of(v.aval) for v in eqn.outvars)},
                eqn.source,
            )
        )
        self.steps.append(HostCall(call, inputs, outputs, primitive.name))


def _scope(eqn: JaxprEqn, part: str) -> str:
    """What passes over a body are recorded under."""
    return f"{part} of {eqn.primitive.name} {eqn.source.summary()}".strip()


def _host_operand(reference: Reference, aval: ShapedArray) -> HostOperand:
    return HostOperand(reference, aval.shape, dtypes.physical(aval.dtype))
