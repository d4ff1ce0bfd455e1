"""Memory: temporaries get offsets in one workspace, shared by those that are never alive together.

In: steps over storages whose temporaries have no place yet.  Out: the storages with places, and the workspace's size.
A temporary is alive from the first step that touches it to the last; one that is touched inside a loop and outside it
is alive for the whole loop.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from jaxlite.compiler.plan import (
    ALIGNMENT,
    Branch,
    Copy,
    Fill,
    For,
    HostCall,
    KernelCall,
    LibraryCall,
    MatrixProduct,
    Reference,
    Step,
    Storage,
    While,
    inner_blocks,
)


def references(step: Step) -> Iterator[Reference]:
    """The addresses that a step itself (not what it holds) reads or writes."""
    match step:
        case KernelCall():
            yield from step.buffers
        case MatrixProduct():
            yield from (step.left.reference, step.right.reference, step.out.reference)
        case LibraryCall():
            yield from step.buffers
        case HostCall():
            yield from (o.reference for o in (*step.inputs, *step.outputs))
        case Copy():
            yield from (step.destination, step.source)
        case Fill():
            yield step.destination
        case While():
            yield step.predicate
        case Branch():
            yield step.index
        case For():
            return


def lifetimes(steps: Sequence[Step]) -> dict[int, tuple[int, int]]:
    """For each storage, the numbers of the first and the last step that touch it."""
    alive: dict[int, tuple[int, int]] = {}
    clock = 0

    def touch(storage: int, begin: int, end: int) -> None:
        old = alive.get(storage)
        alive[storage] = (begin, end) if old is None else (min(old[0], begin), max(old[1], end))

    def walk(block: Sequence[Step]) -> set[int]:
        nonlocal clock
        touched: set[int] = set()
        for step in block:
            begin = clock
            clock += 1
            own = {r.storage for r in references(step)}
            inside: set[int] = set()
            for inner in inner_blocks(step):
                inside |= walk(inner)
            end = clock - 1
            for storage in own:
                touch(storage, begin, end)
            if isinstance(step, (For, While)):
                loops.append((begin, end, inside))
            touched |= own | inside
        return touched

    loops: list[tuple[int, int, set[int]]] = []
    walk(steps)
    for begin, end, inside in loops:  # read after a loop what was written in it: alive for the whole loop
        for storage in inside:
            first, last = alive[storage]
            if first < begin or last > end:
                alive[storage] = (min(first, begin), max(last, end))
    return alive


def place(storages: Sequence[Storage], steps: Sequence[Step]) -> tuple[tuple[Storage, ...], int]:
    """Storages with places for the temporaries (first fit, the largest first), and the workspace's size."""
    alive = lifetimes(steps)
    placed: list[tuple[int, int, int, int]] = []  # begin, end, offset, padded size
    out = list(storages)
    size = 0
    temporaries = [i for i, s in enumerate(storages) if s.kind == "temporary"]
    for number in sorted(temporaries, key=lambda i: -storages[i].nbytes):
        begin, end = alive.get(number, (0, 0))
        padded = max(-(-storages[number].nbytes // ALIGNMENT) * ALIGNMENT, ALIGNMENT)
        offset = 0
        for _, _, other, length in sorted((p for p in placed if p[0] <= end and begin <= p[1]), key=lambda p: p[2]):
            if offset + padded <= other:
                break
            offset = max(offset, other + length)
        placed.append((begin, end, offset, padded))
        out[number] = dataclasses.replace(storages[number], position=offset)
        size = max(size, offset + padded)
    return tuple(out), size
