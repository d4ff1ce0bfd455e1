"""Memory: temporaries get offsets in one workspace, shared by those that are never alive together.

In: steps over storages whose temporaries have no place yet.  Out: the storages with places, and the workspace's size.
A temporary is alive from the first step that touches it to the last; one that is touched inside a loop and outside it
is alive for the whole loop.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

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
    placed = np.empty((4, 0), np.int64)  # begin, end, offset, offset after it; columns in the order of offsets
    out = list(storages)
    size = 0
    temporaries = [i for i, s in enumerate(storages) if s.kind == "temporary"]
    for number in sorted(temporaries, key=lambda i: -storages[i].nbytes):
        begin, end = alive.get(number, (0, 0))
        padded = max(-(-storages[number].nbytes // ALIGNMENT) * ALIGNMENT, ALIGNMENT)
        offset = _first_fit(placed[2:, (placed[0] <= end) & (placed[1] >= begin)], padded)
        column = np.array([[begin], [end], [offset], [offset + padded]])
        placed = np.insert(placed, [np.searchsorted(placed[2], offset)], column, axis=1)
        out[number] = dataclasses.replace(storages[number], position=offset)
        size = max(size, offset + padded)
    return tuple(out), size


def _first_fit(taken: NDArray[np.int64], wanted: int) -> int:
    """The lowest offset where ``wanted`` bytes touch none of the ``taken`` (begin, end), given by rising begin."""
    begins, ends = taken
    after = np.maximum.accumulate(np.concatenate([np.zeros(1, np.int64), ends]))  # all before begins[i] ends by here
    fits = np.flatnonzero(begins - after[:-1] >= wanted)
    return int(after[fits[0]] if len(fits) else after[-1])
