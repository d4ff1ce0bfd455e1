"""From groups to loop nests: one kernel for each ``map``, ``row`` or ``reduce`` group.

In: a group and what makes the variables that it inlines.  Out: :class:`Lowered`: kernels, the variables that they read
and write, and estimates.  The loops: a ``map`` runs flat over elements, or over rows and a vector axis where the index
matters; a ``row`` group runs parallel over rows, with one pass along the row for each stage of reductions and one for
what is written; a ``reduce`` group keeps its kept axes outside and folds inside, in two steps where little is kept.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, final

import numpy as np

from jaxlite.compiler.builder import Builder, Carry
from jaxlite.compiler.groups import Group, Shape, operand_vars
from jaxlite.compiler.loops import INDEX, DType, Kernel, Value
from jaxlite.compiler.reading import Index, Reader, needs_index, unravel
from jaxlite.core import dtypes
from jaxlite.core.jaxpr import JaxprEqn, Var

LANES = 16  # a vector axis shorter than this is run element by element, and another axis in lanes
CHUNK = 1 << 15  # elements that one partial result folds, about: large enough to pay for itself
FEW = 32  # kept elements below which a large reduction is folded in two steps


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Scratch:
    """Memory between two kernels of one group: ``elements`` of ``dtype``."""

    dtype: DType
    elements: int


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Lowered:
    """A kernel, what its buffers stand for (in order), the extent of its parallel loop, its estimated work, and the
    layout
    equations that it computes for itself."""

    kernel: Kernel
    buffers: tuple[Var | Scratch, ...]
    extent: int
    work: int
    inlined: tuple[JaxprEqn, ...] = ()


def lower_group(group: Group, makers: dict[Var, JaxprEqn]) -> list[Lowered]:
    """The kernels of a fused group."""
    if group.kind == "map":
        return [_lower_map(group, makers)]
    if group.kind == "row":
        return [_lower_rows(group, makers)]
    return _lower_reduce(group, makers)


# -- shared ------------------------------------------------------------------------------------


def accumulator_dtype(dtype: Any) -> Any:
    """What a fold of ``dtype`` is carried in: 16-bit floats in float32."""
    return np.dtype(np.float32) if dtypes.is_narrow_float(dtype) else dtype


def carry_of(eqn: JaxprEqn) -> Carry:
    """How a reduction's partial states start and merge."""
    primitive: Any = eqn.primitive
    dtype = accumulator_dtype(eqn.invars[0].aval.dtype)
    if eqn.primitive.family == "arg_reduction":
        index_dtype = eqn.params["index_dtype"]
        start = (primitive.identity(dtype), index_dtype.type(np.iinfo(index_dtype).max))
        return Carry(start, lambda b, x, y: _better(primitive, b, x, y))
    return Carry((primitive.identity(dtype),), lambda b, x, y: (primitive.combine(b, x[0], y[0]),))


def _better(primitive: Any, b: Builder, x: Sequence[Value], y: Sequence[Value]) -> tuple[Value, Value]:
    wins = primitive.better(b, x[0], x[1], y[0], y[1])
    return b.select(wins, x[0], y[0]), b.select(wins, x[1], y[1])


def folded(b: Builder, eqn: JaxprEqn, carried: Sequence[Value], element: Value, place: Value) -> tuple[Value, ...]:
    """The state after one more element, which stands at ``place`` along the folded axis."""
    primitive: Any = eqn.primitive
    wide = b.convert(element, accumulator_dtype(element.dtype))
    if eqn.primitive.family == "arg_reduction":
        here = b.convert(place, eqn.params["index_dtype"])
        return _better(primitive, b, (wide, here), (carried[0], carried[1]))
    return (primitive.combine(b, carried[0], wide),)


def finished(b: Builder, eqn: JaxprEqn, state: Sequence[Value]) -> Value:
    """The reduction's result from its last state."""
    value = state[-1] if eqn.primitive.family == "arg_reduction" else state[0]
    return b.convert(value, eqn.outvars[0].aval.dtype)


class _Kernel:
    """A kernel being built: its builder, its reader, its outputs."""

    def __init__(self, group: Group, makers: dict[Var, JaxprEqn]) -> None:
        self.group, self.b = group, Builder()
        self.reader = Reader(self.b, group, makers)
        self.outputs: dict[Var, int] = {}
        self.declared: list[tuple[int, Var | Scratch]] = []

    def output(self, var: Var) -> int:
        """The kernel's number for the memory that ``var`` is written to."""
        if var not in self.outputs:
            dtype = dtypes.physical(var.aval.dtype)
            self.outputs[var] = self.b.buffer(f"out{len(self.outputs)}", dtype, var.aval.size, "output")
            self.declared.append((self.outputs[var], var))
        return self.outputs[var]

    def scratch(self, name: str, scratch: Scratch, role: Any) -> int:
        """The kernel's number for memory shared with another kernel of the group."""
        number = self.b.buffer(name, scratch.dtype, scratch.elements, role)
        self.declared.append((number, scratch))
        return number

    def finish(self, extent: int, trips: int) -> Lowered:
        """The kernel as data."""
        group = self.group
        inlined = tuple(e for e in self.reader.inlined.values() if e not in group.eqns)
        kernel = self.b.finish(group.name)
        numbered = [*((self.reader.buffers[v], v) for v in self.reader.order), *self.declared]
        order = sorted(numbered, key=lambda pair: pair[0])
        work = max(trips, 1) * max(self.reader.operations + len(order), 1)
        return Lowered(kernel, tuple(what for _, what in order), extent, work, inlined)


# -- maps --------------------------------------------------------------------------------------


def _lower_map(group: Group, makers: dict[Var, JaxprEqn]) -> Lowered:
    k = _Kernel(group, makers)
    for var in group.outputs:
        k.output(var)
    domain = group.domain
    size = math.prod(domain)
    indexed = needs_index(group.eqns, makers)
    if not indexed or not domain or (domain[-1] < LANES and len(domain) == 1):
        with k.b.loop(size, parallel=True, vector=size >= 2) as place:
            _store_all(k, unravel(k.b, place, domain) if indexed and domain else _flat_index(domain, place), place)
        return k.finish(size, size)
    rows, row = math.prod(domain[:-1]), domain[-1]
    if rows == 1:
        with k.b.loop(row, parallel=True, vector=True) as column:
            _store_all(k, _with_rows(k.b, domain, k.b.constant(0, INDEX), column), column)
        return k.finish(row, size)
    lanes_along_rows = row < LANES <= rows
    with k.b.loop(rows, parallel=True, vector=lanes_along_rows) as r:
        with k.b.loop(row, vector=not lanes_along_rows, unroll=row if lanes_along_rows else 1) as column:
            _store_all(k, _with_rows(k.b, domain, r, column), k.b.add(k.b.mul(r, row), column))
    return k.finish(rows, size)


def _flat_index(domain: Shape, place: Value) -> Index:
    """The index where nobody needs its parts."""
    return (place,) * len(domain)


def _with_rows(b: Builder, domain: Shape, r: Value, column: Value) -> Index:
    return (*unravel(b, r, domain[:-1]), column)


def _store_all(k: _Kernel, index: Index, place: Value) -> None:
    for var, number in k.outputs.items():
        k.b.store(number, place, k.reader.read(var, index, place))


# -- rows --------------------------------------------------------------------------------------


def stages_of(group: Group) -> list[list[JaxprEqn]]:
    """The group's reductions, those that depend on none first; each stage is one pass along the row."""
    level: dict[Var, int] = {}
    stages: list[list[JaxprEqn]] = []
    for eqn in group.eqns:
        depth = max((level.get(v, 0) for v in operand_vars(eqn)), default=0)
        if eqn.primitive.family in ("reduction", "arg_reduction"):
            while len(stages) <= depth:
                stages.append([])
            stages[depth].append(eqn)
            depth += 1
        level.update((v, depth) for v in eqn.outvars if isinstance(v, Var))
    return stages


def _lower_rows(group: Group, makers: dict[Var, JaxprEqn]) -> Lowered:
    k = _Kernel(group, makers)
    b, domain, rank = k.b, group.domain, group.rank
    row_shape, column_shape = domain[:rank], domain[rank:]
    rows, columns = math.prod(row_shape), math.prod(column_shape)
    for var in group.outputs:
        k.output(var)
    lanes_along_rows = columns < LANES <= rows
    stages = stages_of(group)
    with b.loop(rows, parallel=True, vector=lanes_along_rows) as r:
        row_index = unravel(b, r, row_shape)
        for stage in stages:
            _fold_row(k, stage, row_index, r, column_shape, columns, lanes_along_rows)
        whole = [v for v in group.outputs if v.aval.shape == domain and not _is_row(v, group)]
        for var in group.outputs:
            if var not in whole:
                index = row_index + (b.constant(0, INDEX),) * (len(var.aval.shape) - rank)
                b.store(k.outputs[var], r, k.reader.read(var, index, r))
        if whole:
            k.reader.forget()
            with _columns(b, columns, lanes_along_rows) as c:
                index, place = (*row_index, *unravel(b, c, column_shape)), b.add(b.mul(r, columns), c)
                for var in whole:
                    b.store(k.outputs[var], place, k.reader.read(var, index, place))
    return k.finish(rows, rows * columns * (len(stages) + 1))


def _is_row(var: Var, group: Group) -> bool:
    from jaxlite.compiler.groups import is_row_shape

    return is_row_shape(var.aval.shape, group.domain, group.rank)


@contextmanager
def _columns(b: Builder, columns: int, lanes_along_rows: bool) -> Iterator[Value]:
    with b.loop(columns, vector=not lanes_along_rows, unroll=columns if lanes_along_rows else 1) as c:
        yield c


def _fold_row(
    k: _Kernel,
    stage: Sequence[JaxprEqn],
    row_index: Index,
    r: Value,
    column_shape: Shape,
    columns: int,
    lanes_along_rows: bool,
) -> None:
    """One pass along the row for reductions that do not depend on each other."""
    b = k.b
    carries = [carry_of(e) for e in stage]
    k.reader.forget()
    unroll = columns if lanes_along_rows else _unroll(columns, True)
    with b.fold(columns, *carries, vector=not lanes_along_rows, unroll=unroll) as loop:
        index = (*row_index, *unravel(b, loop.axis, column_shape))
        place = b.add(b.mul(r, columns), loop.axis)
        given = iter(loop.carried)
        updates: list[Value] = []
        for eqn, carry in zip(stage, carries, strict=True):
            state = [next(given) for _ in carry.identities]
            element = k.reader.read(eqn.invars[0], index, place)
            updates += folded(b, eqn, state, element, loop.axis)
        loop.update(*updates)
    results = iter(loop.results)
    k.reader.forget()
    for eqn, carry in zip(stage, carries, strict=True):
        state = [next(results) for _ in carry.identities]
        k.reader.rows[eqn.outvars[0]] = finished(b, eqn, state)  # type: ignore[index]


def _unroll(extent: int, lanes: bool) -> int:
    """How many vectors a long loop in lanes takes at once: enough that no addition of a fold waits for the last, and
    that a fold over rows reads whole cache lines of each (5000 x 5000 floats: 7 ms instead of 21)."""
    return 4 if lanes and extent >= 8 * LANES else 1


# -- reductions over other axes ------------------------------------------------------------------


def _lower_reduce(group: Group, makers: dict[Var, JaxprEqn]) -> list[Lowered]:
    domain, axes = group.domain, group.axes
    kept = [d for d in range(len(domain)) if d not in axes]
    n_kept, n_folded = math.prod(domain[d] for d in kept), math.prod(domain[d] for d in axes)
    fold = next(e for e in group.eqns if e.primitive.family in ("reduction", "arg_reduction"))
    indexed = needs_index([e for e in group.eqns if e is not fold], makers) or _operand_needs_index(fold, makers)
    if not kept and not indexed and n_folded > 2 * CHUNK and fold.primitive.family == "reduction":
        return _fold_in_two(group, makers, fold, n_folded)
    first = axes[0] if axes else 0
    if n_kept <= FEW and n_folded > 4 * CHUNK and fold.primitive.family == "reduction" and domain[first] >= 2:
        return _fold_first_axis_in_two(group, makers, fold)
    return [_fold_kept_outside(group, makers, fold)]


def _operand_needs_index(fold: JaxprEqn, makers: dict[Var, JaxprEqn]) -> bool:
    operand = fold.invars[0]
    return operand in makers and needs_index([makers[operand]], makers)


def chunk_count(n: int, target: int = CHUNK) -> int:
    """In how many equal parts ``n`` elements are folded: a divisor of ``n`` near ``n / target``, else 1 part a
    target."""
    wanted = max(n // target, 1)
    for distance in range(wanted):
        for count in (wanted + distance, wanted - distance):
            if count >= 1 and n % count == 0 and n // count >= target // 8:
                return count
    return -(-n // target)


def _fold_in_two(group: Group, makers: dict[Var, JaxprEqn], fold: JaxprEqn, n: int) -> list[Lowered]:
    """A whole large array: partial results of equal chunks in parallel, then their fold."""
    parts = chunk_count(n)
    length = -(-n // parts)
    carry = carry_of(fold)
    partial = Scratch(np.dtype(carry.identities[0].dtype), parts)
    k = _Kernel(group, makers)
    out = k.scratch("partial", partial, "output")
    with k.b.loop(parts, parallel=True) as part:
        start = k.b.mul(part, length)
        with k.b.fold(length, carry, vector=True, unroll=8) as loop:
            place = k.b.add(start, loop.axis)
            mask = None if parts * length == n else k.b.lt(place, n)
            element = k.reader.read(fold.invars[0], _flat_index(group.domain, place), place, mask)
            (update,) = folded(k.b, fold, loop.carried, element, place)
            loop.update(update if mask is None else k.b.select(mask, update, loop.carried[0]))
        k.b.store(out, part, loop.results[0])
    return [k.finish(parts, n), _fold_partials(group, fold, partial, parts, 1)]


def _fold_partials(group: Group, fold: JaxprEqn, partial: Scratch, parts: int, n_kept: int) -> Lowered:
    """The second step: folds ``parts`` partial results for each kept element, in their order."""
    k = _Kernel(group, {})
    source = k.scratch("partial", partial, "input")
    out = k.output(fold.outvars[0])  # type: ignore[arg-type]
    carry = carry_of(fold)
    with k.b.loop(n_kept, parallel=True, vector=n_kept >= LANES) as kept:
        with k.b.fold(parts, carry, vector=n_kept < LANES) as loop:
            element = k.b.load(source, k.b.add(k.b.mul(loop.axis, n_kept), kept))
            loop.update(*folded(k.b, fold, loop.carried, element, loop.axis))
        k.b.store(out, kept, finished(k.b, fold, loop.results))
    lowered = k.finish(n_kept, parts * n_kept)
    return dataclasses.replace(lowered, kernel=dataclasses.replace(lowered.kernel, name=f"{group.name}_rest"))


def _fold_first_axis_in_two(group: Group, makers: dict[Var, JaxprEqn], fold: JaxprEqn) -> list[Lowered]:
    """Little is kept: the first folded axis is cut into parts, folded in parallel, then the parts are."""
    domain, axes = group.domain, group.axes
    first = axes[0]
    inner = math.prod(domain) // domain[first]
    parts = chunk_count(domain[first], max(CHUNK // inner, 1))
    if parts == 1 or domain[first] % parts:
        return [_fold_kept_outside(group, makers, fold)]
    length = domain[first] // parts
    n_kept = math.prod(n for d, n in enumerate(domain) if d not in axes)
    partial = Scratch(np.dtype(carry_of(fold).identities[0].dtype), parts * n_kept)
    k = _Kernel(group, makers)
    out = k.scratch("partial", partial, "output")
    with k.b.loop(parts * n_kept, parallel=True) as job:
        part, kept = k.b.div(job, n_kept), k.b.rem(job, n_kept)
        extents = {d: (length if d == first else domain[d]) for d in axes}
        offset = {first: k.b.mul(part, length)}
        state = _fold_axes(k, fold, _kept_index(k.b, domain, axes, kept), extents, offset, vector=True)
        k.b.store(out, job, state[0])
    return [k.finish(parts * n_kept, math.prod(domain)), _fold_partials(group, fold, partial, parts, n_kept)]


def _kept_index(b: Builder, domain: Shape, axes: Sequence[int], kept: Value) -> dict[int, Value]:
    axes_kept = [d for d in range(len(domain)) if d not in axes]
    parts = unravel(b, kept, tuple(domain[d] for d in axes_kept))
    return dict(zip(axes_kept, parts, strict=True))


def _fold_kept_outside(group: Group, makers: dict[Var, JaxprEqn], fold: JaxprEqn) -> Lowered:
    """Kept axes outside, in parallel (and in lanes where the last axis is kept), folded axes inside."""
    k = _Kernel(group, makers)
    b, domain, axes = k.b, group.domain, group.axes
    kept = [d for d in range(len(domain)) if d not in axes]
    out = k.output(fold.outvars[0])  # type: ignore[arg-type]
    n_kept = math.prod(domain[d] for d in kept)
    last_kept = bool(kept) and kept[-1] == len(domain) - 1
    extents = {d: domain[d] for d in axes}
    row = domain[-1] if last_kept else 1
    if last_kept and n_kept // row >= 1 and len(kept) > 1 and row >= LANES:
        outer_shape = tuple(domain[d] for d in kept[:-1])
        with b.loop(math.prod(outer_shape), parallel=True) as r:
            index = dict(zip(kept[:-1], unravel(b, r, outer_shape), strict=True))
            with b.loop(row, vector=True) as column:
                state = _fold_axes(k, fold, {**index, kept[-1]: column}, extents, {}, vector=False)
                b.store(out, b.add(b.mul(r, row), column), finished(b, fold, state))
        return k.finish(math.prod(outer_shape), math.prod(domain))
    in_lanes = n_kept >= LANES and (last_kept or math.prod(extents.values()) < LANES)
    with b.loop(n_kept, parallel=True, vector=in_lanes, unroll=_unroll(n_kept, in_lanes)) as r:
        state = _fold_axes(k, fold, _kept_index(b, domain, axes, r), extents, {}, vector=not in_lanes)
        b.store(out, r, finished(b, fold, state))
    return k.finish(n_kept, math.prod(domain))


def _fold_axes(
    k: _Kernel, fold: JaxprEqn, kept: dict[int, Value], extents: dict[int, int], offset: dict[int, Value], vector: bool
) -> tuple[Value, ...]:
    """Folds the axes of ``extents``, one loop each, the last innermost (in lanes if ``vector``)."""
    b = k.b
    axes = sorted(extents)
    carry = carry_of(fold)
    shape = fold.invars[0].aval.shape

    def nest(depth: int, index: dict[int, Value], initial: tuple[Value, ...]) -> tuple[Value, ...]:
        here = Carry(carry.identities, carry.combine, initial)
        innermost = depth == len(axes) - 1
        lanes = vector and innermost
        with b.fold(extents[axes[depth]], here, vector=lanes, unroll=_unroll(extents[axes[depth]], lanes)) as loop:
            at = b.add(loop.axis, offset[axes[depth]]) if axes[depth] in offset else loop.axis
            inner = {**index, axes[depth]: at}
            if innermost:
                k.reader.forget()
                full = tuple(inner[d] for d in range(len(shape)))
                place = k.reader.position_of(full, shape)
                element = k.reader.read(fold.invars[0], full, place)
                loop.update(*folded(b, fold, loop.carried, element, at))
            else:
                loop.update(*nest(depth + 1, inner, loop.carried))
        return loop.results

    if not axes:  # nothing is folded: the element itself
        full = tuple(kept[d] for d in range(len(shape)))
        start = tuple(b.constant(i, i.dtype) for i in carry.identities)
        return folded(b, fold, start, k.reader.read(fold.invars[0], full), b.constant(0, INDEX))
    return nest(0, kept, ())
