"""In place: may a kernel's output lie where one of its inputs does?

In: a kernel and two of its buffers.  Out: '' if every element of the input is read before its place is written,
whatever the order in which the iterations of parallel and vector loops run; else the reason why that is not sure.

A load and a store share their first loops, and differ in those inside.  Both indices must be sums of loop axes times
constants, with the same factors for the shared axes; iterations of the shared loops must then be further apart than all
that one of them touches, so that they never meet; and within an iteration the load must come first.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias, final

from jaxlite.compiler.loops import Constant, Kernel, Load, Loop, Op, Statement, Store, Value

Affine: TypeAlias = dict[Value | None, int]  # factor of each axis; under None, what is added


@final
@dataclass(frozen=True, eq=False)
class Access:
    """A load or store: the loops around it, its place among the statements of each, its index."""

    buffer: int
    writes: bool
    loops: tuple[Loop, ...]
    places: tuple[int, ...]
    index: Affine | None


@functools.lru_cache(maxsize=256)
def accesses(kernel: Kernel) -> tuple[Access, ...]:
    """Every load and store of a kernel."""
    defined: dict[Value, Affine | None] = {}
    return tuple(_accesses(kernel.body, (), (), defined))


def _accesses(
    body: tuple[Statement, ...], loops: tuple[Loop, ...], places: tuple[int, ...], known: dict[Value, Affine | None]
) -> Iterator[Access]:
    for number, statement in enumerate(body):
        here = (*places, number)
        match statement:
            case Constant():
                known[statement.result] = {None: int(statement.value)} if statement.value.dtype.kind in "iu" else None
            case Op():
                known[statement.result] = _sum(statement, known)
            case Load():
                yield Access(statement.buffer, False, loops, here, known.get(statement.index))
            case Store():
                yield Access(statement.buffer, True, loops, here, known.get(statement.index))
            case Loop():
                known[statement.axis] = {statement.axis: 1}
                yield from _accesses(statement.body, (*loops, statement), here, known)
                for reduction in statement.reductions:
                    if reduction.combine is not None:
                        yield from _accesses(reduction.combine.body, (*loops, statement), here, known)


def _sum(op: Op, known: dict[Value, Affine | None]) -> Affine | None:
    """The value of an operation as a sum of axes, if it is one."""
    parts = [known.get(a) for a in op.args]
    if any(p is None for p in parts) or op.opcode not in ("add", "sub", "mul"):
        return None
    x, y = (p or {} for p in parts)
    if op.opcode == "mul":
        if set(x) <= {None}:
            x, y = y, x
        factor = y.get(None, 0)
        return {axis: k * factor for axis, k in x.items()} if set(y) <= {None} else None
    sign = 1 if op.opcode == "add" else -1
    return {axis: x.get(axis, 0) + sign * y.get(axis, 0) for axis in {*x, *y}}


def why_not(kernel: Kernel, read: int, written: int) -> str:
    """Why buffer ``written`` may not lie where buffer ``read`` does; '' if it may."""
    if kernel.buffers[read].dtype.itemsize != kernel.buffers[written].dtype.itemsize:
        return "its elements are of another size"
    found = accesses(kernel)
    if any(a.writes for a in found if a.buffer == read):
        return "the operand is written too"
    for store in (a for a in found if a.buffer == written and a.writes):
        for load in (a for a in found if a.buffer == read):
            reason = _conflict(load, store)
            if reason:
                return reason
    return ""


def _conflict(load: Access, store: Access) -> str:
    """Why the load might find what the store wrote; '' if it cannot."""
    shared = 0
    while shared < min(len(load.loops), len(store.loops)) and load.loops[shared] is store.loops[shared]:
        shared += 1
    if load.places[shared] >= store.places[shared]:
        return "it is read after the result's element is written"
    if not shared:  # the loops that read end before those that write begin, if nothing is split
        split = bool(store.loops) and store.loops[0].parallel
        return "each part of the parallel loop that writes reads it first" if split else ""
    if load.index is None or store.index is None:
        return "where it is read or written is known only while running"
    common = load.loops[:shared]
    extents = {loop.axis: loop.extent for loop in common}
    factors = {axis: load.index.get(axis, 0) for axis in extents}
    if any(store.index.get(axis, 0) != factor for axis, factor in factors.items() if extents[axis] != 1):
        return "an element is read in other iterations than that which writes it"
    if any(not isinstance(loop.extent, int) for loop in (*load.loops, *store.loops)):
        only_axis = load.loops == store.loops == common and len(common) == 1 and factors[common[0].axis] == 1
        equal = load.index == store.index
        return "" if only_axis and equal else "the extents of its loops are known only while running"
    reach = _span(load, common)
    wrote = _span(store, common)
    if reach[0] > reach[1] or wrote[0] > wrote[1]:
        return ""  # a loop of no iterations
    width = max(reach[1] - wrote[0], wrote[1] - reach[0])  # how far apart the two may be in one iteration
    return (
        ""
        if width < _distance(factors, extents)
        else "an element is read in other iterations than that which writes it"
    )


def _span(access: Access, common: tuple[Loop, ...]) -> tuple[int, int]:
    """The lowest and the highest index that one iteration of the common loops touches, relative to its begin."""
    assert access.index is not None
    low = high = access.index.get(None, 0)
    for loop in access.loops[len(common) :]:
        assert isinstance(loop.extent, int)
        if loop.extent == 0:
            return 1, 0
        last = access.index.get(loop.axis, 0) * (loop.extent - 1)
        low, high = low + min(last, 0), high + max(last, 0)
    return low, high


def _distance(factors: dict[Value, int], extents: Mapping[Value, object]) -> float:
    """The least distance between the indices of two iterations; 0 if two may be the same."""
    moving = sorted((abs(k), n) for axis, k in factors.items() if isinstance(n := extents[axis], int) and n > 1)
    least: float = math.inf
    below = 0  # how far the axes of smaller factors reach
    for factor, extent in moving:
        least = min(least, factor - below)
        below += factor * (extent - 1)
    return max(least, 0)
