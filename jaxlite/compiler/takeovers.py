"""Takeovers: which results may be written where an argument lies, if that is donated.

In: a plan's storages and steps.  Out: pairs (result, argument) by position, and decisions.  A pair is allowed if every
read of the argument comes before the first write to the result, or in the same step, which then must be able to run in
place (`in_place.py`).  The program itself is the same either way: it is told where its results go at each call.
"""

from __future__ import annotations

from collections.abc import Sequence

from jaxlite.compiler.lifetimes import Timeline, timeline
from jaxlite.compiler.memory_plan import in_place_decision, operand_pairs, why_not_shared
from jaxlite.compiler.plan import Step, Storage
from jaxlite.compiler.report import Decision

Takeover = tuple[int, int]  # positions of a result and an argument

LEAST = (1 << 12) + 1  # bytes: smaller results share blocks, where nothing is gained
MOST = 16  # arguments noted for each result


def takeovers(storages: Sequence[Storage], steps: Sequence[Step]) -> tuple[tuple[Takeover, ...], list[Decision]]:
    """Every pair that is allowed: for each result, the arguments that are read last first."""
    results = [n for n, s in enumerate(storages) if s.kind == "result" and s.nbytes >= LEAST]
    sizes = {storages[n].nbytes for n in results}
    arguments = [n for n, s in enumerate(storages) if s.kind == "argument" and s.nbytes in sizes]
    if not arguments:
        return (), []
    line = timeline(steps, storages)
    arguments.sort(key=lambda n: -line.spans[n][1])
    pairs: list[Takeover] = []
    decisions: list[Decision] = []
    for result in results:
        allowed: list[int] = []
        refusals: list[Decision] = []
        for argument in arguments:
            if storages[argument].nbytes != storages[result].nbytes or len(allowed) == MOST:
                continue
            reason, number = why_not_taken_over(line, argument, result)
            if not reason:
                allowed.append(argument)
            elif number >= 0:
                refusals.append(in_place_decision(line.steps[number], reason, storages[result].nbytes))
        pairs += [(storages[result].position, storages[a].position) for a in allowed]
        numbers = {"bytes": storages[result].nbytes, "arguments": len(allowed)}
        verdict = "takes over" if allowed else "own memory"
        why = "arguments that, if donated, end before it begins" if allowed else "every argument of its size is read on"
        decisions += [Decision(f"result {storages[result].position}", verdict, why, numbers), *refusals[:1]]
    return tuple(pairs), decisions


def why_not_taken_over(line: Timeline, argument: int, result: int) -> tuple[str, int]:
    """Why a result may not lie where an argument does ('' if it may), and the step where the two meet (-1: none)."""
    last, first = line.spans[argument][1], line.spans[result][0]
    if last < first:
        return "", -1
    if last > first:
        return "it is read after the result is begun", first
    step = line.steps[first]
    if (argument, result) not in operand_pairs(step):
        return "it is read and the result written by one step", first
    return why_not_shared(step, argument, result), first
