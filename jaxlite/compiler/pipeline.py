"""The compiler, as one visible list of passes over jaxprs, and what follows: lowering to a plan and placing memory.

In: a closed jaxpr.  Out: a plan and the report.  Each pass is a pure function ``IR -> (IR, decisions)``.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import final

from jaxlite.compiler.fuse import fuse
from jaxlite.compiler.groups import Group
from jaxlite.compiler.inline import inline_calls
from jaxlite.compiler.loop_printer import print_kernel
from jaxlite.compiler.lower_kernel import Lowered, Scratch
from jaxlite.compiler.lower_program import Lowering, lower_program, nbytes_of
from jaxlite.compiler.memory_plan import place
from jaxlite.compiler.plan import Plan
from jaxlite.compiler.report import Decision, KernelRecord, PassRecord
from jaxlite.compiler.simplify import simplify
from jaxlite.core import config
from jaxlite.core.jaxpr import ClosedJaxpr, JaxprEqn, check
from jaxlite.core.printing import equation_text, namer


@final
@dataclasses.dataclass(frozen=True)
class Pass:
    """A named step from jaxpr to jaxpr."""

    name: str
    why: str
    run: Callable[[ClosedJaxpr], tuple[ClosedJaxpr, list[Decision]]]


# The order matters: calls hide equal equations from each other, and what is dead need not be fused.
JAXPR_PASSES = (
    Pass("inline", "calls of jitted functions and custom rules cost nothing", inline_calls),
    Pass("simplify", "exact algebra, equal equations once, dead ones dropped", simplify),
)


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Compiled:
    """What the passes made of a program."""

    plan: Plan
    simplified: ClosedJaxpr
    passes: list[PassRecord]
    groups: list[Group]
    kernels: list[KernelRecord]


def front_passes(closed: ClosedJaxpr, records: list[PassRecord]) -> tuple[ClosedJaxpr, list[Group]]:
    """The passes over a jaxpr (a whole program's, or a body's), and its groups."""
    for step in JAXPR_PASSES:
        start = time.perf_counter()
        closed, decisions = step.run(closed)
        if config.enable_checks.value:
            check(closed.jaxpr)
        records.append(PassRecord(step.name, step.why, time.perf_counter() - start, tuple(decisions), len(closed.eqns)))
    start = time.perf_counter()
    groups, decisions = fuse(closed)
    records.append(
        PassRecord(
            "fuse",
            "equations that run over the same elements or rows share a kernel",
            time.perf_counter() - start,
            tuple(decisions),
            len(closed.eqns),
        )
    )
    return closed, groups


def compile_jaxpr(closed: ClosedJaxpr, name: str) -> Compiled:
    """The plan of a program, and every decision on the way."""
    records: list[PassRecord] = []
    simplified, groups = front_passes(closed, records)
    start = time.perf_counter()
    lowering, steps = lower_program(simplified, groups, lambda body: front_passes(body, records))
    records.append(
        PassRecord(
            "lower",
            "loop nests and steps",
            time.perf_counter() - start,
            tuple(lowering.decisions),
            len(simplified.eqns),
        )
    )
    start = time.perf_counter()
    storages, workspace = place(lowering.storages, steps)
    decision = Decision(
        "workspace",
        "placed",
        "temporaries that are never alive together share memory",
        {
            "bytes": workspace,
            "temporaries": sum(s.kind == "temporary" for s in storages),
            "bytes if apart": sum(s.nbytes for s in storages if s.kind == "temporary"),
        },
    )
    records.append(
        PassRecord(
            "memory", "temporaries share one workspace", time.perf_counter() - start, (decision,), len(simplified.eqns)
        )
    )
    plan = Plan(name, storages, steps, workspace, tuple(lowering.constants))
    return Compiled(plan, simplified, records, lowering.groups, _kernel_records(lowering))


def _kernel_records(lowering: Lowering) -> list[KernelRecord]:
    return [_kernel_record(group, lowered) for group, lowered in lowering.kernels]


def _kernel_record(group: Group, lowered: Lowered) -> KernelRecord:
    names = namer()
    eqns: list[JaxprEqn] = [*group.inlined, *group.eqns]
    roles = {b.name: b.role for b in lowered.kernel.buffers}
    totals = {"input": 0, "output": 0}
    for buffer, what in zip((b for b in lowered.kernel.buffers if b.role != "local"), lowered.buffers, strict=True):
        nbytes = what.elements * what.dtype.itemsize if isinstance(what, Scratch) else nbytes_of(what.aval)
        totals[roles[buffer.name]] += nbytes
    return KernelRecord(
        lowered.kernel.name, group.kind, tuple(equation_text(e, names) for e in eqns), tuple(e.source for e in eqns),
        lambda: print_kernel(lowered.kernel), totals["input"], totals["output"],
    )  # fmt: skip
