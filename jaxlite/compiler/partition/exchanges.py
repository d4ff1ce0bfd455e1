"""Exchanges: one device's parts of values, laid out otherwise, and sums over devices, which are put off.

In: parts.  Out: parts, and a record of each collective that was written into the trace at hand.
"""

from __future__ import annotations

import dataclasses
import weakref
from collections.abc import Sequence
from typing import Any, final

from jaxlite.compiler.partition.choice import exact, layout_under, part_bytes
from jaxlite.compiler.partition.layouts import (
    Layout,
    Names,
    Step,
    local_shape,
    names_in,
    received,
    steps_between,
)
from jaxlite.compiler.partition.record import Communication
from jaxlite.core.avals import ShapedArray, aval_of
from jaxlite.core.factors import Factors, spread
from jaxlite.core.jaxpr import JaxprEqn
from jaxlite.core.mesh import AnyMesh
from jaxlite.core.primitive import Primitive
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

_EXTREMA = {"pmax": pmax_p, "pmin": pmin_p}


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
class Exchanges:
    """Moves parts on a mesh; ``eqn`` is the equation that they are for, ``times`` how often it runs."""

    def __init__(self, mesh: AnyMesh) -> None:
        self.sizes = mesh.shape
        self.communications: list[Communication] = []
        self.eqn: JaxprEqn | None = None
        self.times: int | None = 1
        self._due: list[weakref.ref[Part]] = []  # parts that are still to be summed, in the order they were made

    def local(self, aval: ShapedArray, layout: Layout) -> ShapedArray:
        """The type of a part."""
        return aval.update(shape=local_shape(aval.shape, layout, self.sizes), sharding=None)

    def bind(self, eqn: JaxprEqn, operands: Sequence[Part], results: Sequence[ShapedArray]) -> list[Any]:
        params = eqn.primitive.localized(eqn.params, [aval_of(o.value) for o in operands], results)
        out = eqn.primitive.bind(*[o.value for o in operands], **params)
        return list(out) if eqn.primitive.multiple_results else [out]

    def fold(self, made: Sequence[Part], how: str, names: Names) -> None:
        """Folds results over the devices along ``names``: sums are put off."""
        for part in made:
            if how == "psum":
                if not part.due:
                    self.put_off([part])
                part.due = (*part.due, *names)
                continue
            for name in names:
                nbytes = received("all_reduce", part_bytes(part.aval, part.layout, self.sizes), self.sizes[name])
                part.value = self._collective(
                    "all_reduce", (name,), nbytes, _EXTREMA[how], [part.value], axis_name=name
                )

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
            self.put_off([out])
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
        return Part(self.bind(origin.eqn, ready, local)[origin.number], part.aval, goal)

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
        self.put_off([out])
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
            values = {id(p.value): p.value for p in together}  # each once, whoever waits for it
            nbytes = sum(received("all_reduce", aval_of(v).nbytes, self._count(names)) for v in values.values())
            what = f"{len(values)} values" if len(values) > 1 else ""
            given = list(values.values())
            totals = self._collective("all_reduce", names, nbytes, all_reduce_p, given, what, axes=names)
            sums = dict(zip(values, totals, strict=True))
            for p in together:
                p.value, p.due = sums[id(p.value)], ()
            self._due = [weakref.ref(p) for p in alive if p.due]

    def put_off(self, made: Sequence[Part]) -> None:
        """Notes parts whose sum is due."""
        self._due += [weakref.ref(p) for p in made]

    def _count(self, names: Names) -> int:
        count = 1
        for name in names:
            count *= self.sizes[name]
        return count

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
        assert self.eqn is not None
        avals = tuple(map(aval_of, values))
        why = what or self.eqn.primitive.name
        self.communications.append(
            Communication(kind, names, nbytes, why, self.eqn.source, self.times, primitive, params, avals)
        )
        return primitive.bind(*values, **params)
