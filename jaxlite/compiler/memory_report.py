"""Memory over a program's steps, predicted: what is alive at each, how many bytes, and which values are the largest.

In: a plan, and what its storages are to the user.  Out: a `MemoryReport`, as data and as text.  Arguments lie in memory
from before the call to its end; results from the step that begins them; temporaries in the workspace, where one that is
alive may lie in the place of another that it was computed from: bytes are counted once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import final

from jaxlite.compiler.lifetimes import Timeline, timeline
from jaxlite.compiler.plan import HostCall, KernelCall, Label, LibraryCall, Plan, Step

LARGEST = 3  # values that are named for each step


@final
@dataclass(frozen=True)
class Held:
    """One value in memory: ``kind`` of storage, bytes, what it is to the user."""

    kind: str
    nbytes: int
    label: Label

    def text(self) -> str:
        """``temporary f32[5000,5000]: 100,000,000 bytes, model.py:12 (loss)``."""
        where = self.label.source.summary()
        what = self.label.what if self.kind != "temporary" else f"temporary ({self.label.what})"
        return f"{what} {self.label.type}: {self.nbytes:,} bytes" + (f", {where}" if where else "")


@final
@dataclass(frozen=True)
class MemoryStep:
    """One step: its name, how deep in loops and branches it stands, the bytes of results begun and of temporaries
    alive, and the largest of both."""

    name: str
    depth: int
    results: int
    temporaries: int
    largest: tuple[Held, ...]


@final
@dataclass(frozen=True)
class MemoryReport:
    """``arguments``, ``results``, ``workspace``, ``constants``: bytes that a call holds; ``steps`` in order."""

    name: str
    arguments: int
    results: int
    workspace: int
    constants: int
    steps: tuple[MemoryStep, ...]
    largest: tuple[Held, ...]  # of the whole call

    @property
    def peak(self) -> int:
        """Bytes of everything that one call holds at once."""
        return self.arguments + self.results + self.workspace + self.constants

    def largest_text(self) -> str:
        """The prediction for a whole call, and its largest values."""
        head = (
            f"Predicted: {self.peak:,} bytes at once: arguments {self.arguments:,}, results {self.results:,}, "
            f"workspace {self.workspace:,}, constants {self.constants:,}.  The largest:"
        )
        return "\n".join([head, *[f"  {held.text()}" for held in self.largest]])

    def text(self) -> str:
        """A line for each step."""
        lines = [self.largest_text(), "Alive at each step (bytes of results, of temporaries):"]
        for step in self.steps:
            names = "; ".join(held.text() for held in step.largest)
            lines.append(f"  {'  ' * step.depth}{step.name}: {step.results:,}, {step.temporaries:,}   {names}")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.text()


def memory_report(plan: Plan, labels: Mapping[int, Label]) -> MemoryReport:
    """The report of a plan; ``labels`` by storage."""
    line = timeline(plan.steps, plan.storages)
    held = [Held(s.kind, s.nbytes, labels[n]) if n in labels else None for n, s in enumerate(plan.storages)]
    sums = {kind: sum(s.nbytes for s in plan.storages if s.kind == kind) for kind in ("argument", "result", "constant")}
    return MemoryReport(
        plan.name,
        sums["argument"],
        sums["result"],
        plan.workspace_bytes,
        sums["constant"],
        tuple(_steps(plan, line, held)),
        _largest(held),
    )


def _steps(plan: Plan, line: Timeline, held: list[Held | None]) -> Iterator[MemoryStep]:
    open_until: list[int] = []
    for number, step in enumerate(line.steps):
        while open_until and open_until[-1] < number:
            open_until.pop()
        alive = [n for n, (begin, end) in line.spans.items() if begin <= number <= end]
        results = [n for n in alive if plan.storages[n].kind == "result"]
        temporaries = [n for n in alive if plan.storages[n].kind == "temporary"]
        yield MemoryStep(
            _name(step),
            len(open_until),
            sum(plan.storages[n].nbytes for n in results),
            _covered((s.position, s.position + s.nbytes) for n in temporaries for s in [plan.storages[n]]),
            _largest(held[n] for n in (*results, *temporaries)),
        )
        if line.ends[number] > number:
            open_until.append(line.ends[number])


def _covered(intervals: Iterable[tuple[int, int]]) -> int:
    """How many bytes lie in at least one of the intervals."""
    total = reached = 0
    for begin, end in sorted(intervals):
        total += max(0, end - max(begin, reached))
        reached = max(reached, end)
    return total


def _largest(held: Iterable[Held | None]) -> tuple[Held, ...]:
    known = [h for h in held if h is not None]
    return tuple(sorted(known, key=lambda h: -h.nbytes)[:LARGEST])


def _name(step: Step) -> str:
    match step:
        case KernelCall():
            return step.kernel.name
        case LibraryCall():
            return step.routine
        case HostCall():
            return f"host call {step.name}"
        case _:
            return type(step).__name__.lower()
