"""Memory: temporaries get offsets in one workspace, shared by those that are never alive together.

In: steps over storages whose temporaries have no place yet.  Out: the storages with places, the workspace's size, and
what was decided.  A step's result may take the very place of an operand that dies there, if the step reads each element
before it writes that place (`in_place.py`); results and donated arguments are matched the same way (`takeovers.py`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from jaxlite.compiler.in_place import why_not
from jaxlite.compiler.lifetimes import Span, Timeline, timeline
from jaxlite.compiler.plan import ALIGNMENT, Copy, KernelCall, Reference, Step, Storage
from jaxlite.compiler.report import Decision

IN_PLACE = True  # tests switch it off to compare
WORTH_SAYING = 1 << 12  # bytes from which a refusal is a decision to be told


def place(storages: Sequence[Storage], steps: Sequence[Step]) -> tuple[tuple[Storage, ...], int, list[Decision]]:
    """Storages with places for the temporaries (first fit, the largest first), the workspace's size, decisions."""
    line = timeline(steps)
    decisions: list[Decision] = []
    heads = _in_place(storages, line, decisions) if IN_PLACE else {}
    members: dict[int, list[int]] = {}  # storages that share one place, by the first of them
    for number, storage in enumerate(storages):
        if storage.kind == "temporary":
            members.setdefault(heads.get(number, number), []).append(number)
    placed = np.empty((4, 0), np.int64)  # begin, end, offset, offset after it; columns in the order of offsets
    out = list(storages)
    size = 0
    for head, numbers in sorted(members.items(), key=lambda item: -max(storages[n].nbytes for n in item[1])):
        spans = [line.spans.get(n, (0, 0)) for n in numbers]
        begin, end = min(s[0] for s in spans), max(s[1] for s in spans)
        padded = max(-(-max(storages[n].nbytes for n in numbers) // ALIGNMENT) * ALIGNMENT, ALIGNMENT)
        offset = _first_fit(placed[2:, (placed[0] <= end) & (placed[1] >= begin)], padded)
        column = np.array([[begin], [end], [offset], [offset + padded]])
        placed = np.insert(placed, [np.searchsorted(placed[2], offset)], column, axis=1)
        for number in members[head]:
            out[number] = dataclasses.replace(storages[number], position=offset)
        size = max(size, offset + padded)
    return tuple(out), size, decisions


def _first_fit(taken: NDArray[np.int64], wanted: int) -> int:
    """The lowest offset where ``wanted`` bytes touch none of the ``taken`` (begin, end), given by rising begin."""
    begins, ends = taken
    after = np.maximum.accumulate(np.concatenate([np.zeros(1, np.int64), ends]))  # all before begins[i] ends by here
    fits = np.flatnonzero(begins - after[:-1] >= wanted)
    return int(after[fits[0]] if len(fits) else after[-1])


# -- in place ----------------------------------------------------------------------------------


def _in_place(storages: Sequence[Storage], line: Timeline, decisions: list[Decision]) -> dict[int, int]:
    """For temporaries that begin where another ends, the first of those whose place they take over."""
    heads: dict[int, int] = {}
    gone: set[int] = set()  # those whose place is taken over
    for number, step in enumerate(line.steps):
        for read, written in operand_pairs(step):
            ends = (storages[read].kind, storages[written].kind) == ("temporary", "temporary")
            if not ends or read in gone or written in heads or not _dies_for(line, number, read, written):
                continue
            reason = (
                "another size"
                if not _similar(storages[read], storages[written])
                else why_not_shared(step, read, written)
            )
            if not reason:
                gone.add(read)
                heads[written] = heads.get(read, read)
            if not reason or storages[written].nbytes >= WORTH_SAYING:
                decisions.append(in_place_decision(step, reason, storages[written].nbytes))
    return heads


def in_place_decision(step: Step, reason: str, nbytes: int) -> Decision:
    """What was decided of one result and one operand."""
    subject = step.kernel.name if isinstance(step, KernelCall) else type(step).__name__.lower()
    if reason:
        return Decision(subject, "not in place", f"the result does not take a dying operand's place: {reason}")
    why = "the operand dies here, and each of its elements is read before its place is written"
    return Decision(subject, "in place", why, {"bytes": nbytes})


def operand_pairs(step: Step) -> Iterator[tuple[int, int]]:
    """What a step reads and what it writes, each pair of storages once."""
    if isinstance(step, Copy):
        yield step.source.storage, step.destination.storage
    if isinstance(step, KernelCall):
        roles = [b.role for b in step.kernel.buffers if b.role != "local"]
        read = [r.storage for r, role in zip(step.buffers, roles, strict=True) if role == "input"]
        written = [r.storage for r, role in zip(step.buffers, roles, strict=True) if role == "output"]
        for w in dict.fromkeys(written):
            yield from ((r, w) for r in dict.fromkeys(read) if r not in written)


def why_not_shared(step: Step, read: int, written: int) -> str:
    """Why storage ``written`` may not begin where ``read`` does while ``step`` runs; '' if it may."""
    if isinstance(step, Copy):
        return "" if _whole(step.source) and _whole(step.destination) else "only a part is copied"
    if not isinstance(step, KernelCall):
        return "only kernels and copies are known to read before they write"
    shared = [n for n, b in enumerate(step.kernel.buffers) if b.role != "local"]
    by_storage = [(n, r) for n, r in zip(shared, step.buffers, strict=True) if r.storage in (read, written)]
    if not all(_whole(r) for _, r in by_storage):
        return "a loop moves through it"
    for n, r in by_storage:
        for m, other in by_storage:
            if r.storage == read and other.storage == written:
                reason = why_not(step.kernel, n, m)
                if reason:
                    return reason
    return ""


def _whole(reference: Reference) -> bool:
    return reference.offset == 0 and not reference.strides


def _similar(old: Storage, new: Storage) -> bool:
    """Whether sharing one place does not make the old one much larger for its whole life."""
    return new.nbytes <= 2 * old.nbytes + ALIGNMENT


def _dies_for(line: Timeline, number: int, read: int, written: int) -> bool:
    """Whether step ``number`` is the last that touches the one, in every iteration, and the first that touches the
    other."""
    first, last = line.spans[read]
    return last == number == line.spans[written][0] and all(begin < first for begin, _ in line.loops_around(number))


def overlapping(storages: Sequence[Storage], line: Timeline) -> Iterator[tuple[int, int, Span]]:
    """Temporaries that share bytes of the workspace, and the steps in which both are alive, if there are any."""
    temporaries = [n for n, s in enumerate(storages) if s.kind == "temporary" and n in line.spans]
    for at, one in enumerate(temporaries):
        for other in temporaries[at + 1 :]:
            a, b = storages[one], storages[other]
            if a.position < b.position + b.nbytes and b.position < a.position + a.nbytes:
                begin = max(line.spans[one][0], line.spans[other][0])
                end = min(line.spans[one][1], line.spans[other][1])
                if begin <= end:
                    yield one, other, (begin, end)
