"""Lifetimes: when each storage of a plan holds something that is still to be read.

In: steps.  Out: a `Timeline`: the steps numbered in the order in which they run (those of loops and branches inside
theirs), and for each storage the numbers of the first and the last step that touch it.  A storage that is touched
inside a loop and outside it is alive for the whole loop.  Arguments are alive from before the first step, results until
after the last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import final

from jaxlite.compiler.plan import (
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

Span = tuple[int, int]


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


@final
@dataclass
class Timeline:
    """``steps`` by number; ``ends``: the number of the last step that each holds (its own, if it holds none);
    ``spans``: by storage."""

    steps: list[Step] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    spans: dict[int, Span] = field(default_factory=dict)

    def loops_around(self, number: int) -> Iterator[Span]:
        """Begin and end of each loop that holds a step."""
        for begin, (step, end) in enumerate(zip(self.steps, self.ends, strict=True)):
            if begin >= number:
                return
            if isinstance(step, (For, While)) and number <= end:
                yield begin, end


def timeline(steps: Sequence[Step], storages: Sequence[Storage] = ()) -> Timeline:
    """The timeline of a program; without ``storages``, arguments and results count as temporaries do."""
    line = Timeline()
    touched_in = _number(line, steps)
    for number, storage in enumerate(storages):
        if storage.kind in ("argument", "constant"):
            _touch(line.spans, number, (-1, -1))
        elif storage.kind == "result":
            _touch(line.spans, number, (len(line.steps), len(line.steps)))
    for begin, inside in touched_in:  # inner loops come before those around them
        for storage_number in inside:
            first, last = line.spans[storage_number]
            if first < begin or last > line.ends[begin]:
                _touch(line.spans, storage_number, (begin, line.ends[begin]))
    return line


def _number(line: Timeline, steps: Sequence[Step]) -> list[tuple[int, set[int]]]:
    """Numbers the steps and notes what they touch; gives each loop's number and the storages touched inside."""
    loops: list[tuple[int, set[int]]] = []

    def walk(block: Iterable[Step]) -> set[int]:
        touched: set[int] = set()
        for step in block:
            number = len(line.steps)
            line.steps.append(step)
            line.ends.append(number)
            inside: set[int] = set()
            for inner in inner_blocks(step):
                inside |= walk(inner)
            line.ends[number] = len(line.steps) - 1
            own = {r.storage for r in references(step)}
            for storage in own:
                _touch(line.spans, storage, (number, line.ends[number]))
            if isinstance(step, (For, While)):
                loops.append((number, inside))
            touched |= own | inside
        return touched

    walk(steps)
    return loops


def _touch(spans: dict[int, Span], storage: int, span: Span) -> None:
    old = spans.get(storage)
    spans[storage] = span if old is None else (min(old[0], span[0]), max(old[1], span[1]))
