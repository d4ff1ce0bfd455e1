"""The compiler, as one visible list of passes over jaxprs, and what follows: lowering to a plan and placing memory.

In: a closed jaxpr.  Out: a plan and the report.  Each pass is a pure function ``IR -> (IR, decisions)``.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from typing import final

from jaxlite.compiler.fuse import fuse
from jaxlite.compiler.groups import Group
from jaxlite.compiler.inline import inline_calls
from jaxlite.compiler.loop_printer import print_kernel
from jaxlite.compiler.loop_verifier import verify_kernel
from jaxlite.compiler.lower_kernel import Lowered, Scratch
from jaxlite.compiler.lower_program import FrontPasses, Lowering, lower_program, nbytes_of
from jaxlite.compiler.memory_plan import place
from jaxlite.compiler.memory_verifier import verify_memory
from jaxlite.compiler.plan import Label, Plan, Step
from jaxlite.compiler.plan_verifier import verify_plan
from jaxlite.compiler.report import Decision, KernelRecord, PassRecord
from jaxlite.compiler.simplify import simplify
from jaxlite.compiler.takeovers import takeovers
from jaxlite.core import config
from jaxlite.core.jaxpr import ClosedJaxpr, JaxprEqn, check
from jaxlite.core.printing import equation_text, namer


@final
@dataclasses.dataclass(frozen=True, eq=False)
class State:
    """A program between passes; each level fills in more: jaxpr, groups, loop nests and steps, plan."""

    name: str
    jaxpr: ClosedJaxpr
    groups: tuple[Group, ...] = ()
    lowering: Lowering | None = None
    steps: tuple[Step, ...] = ()
    plan: Plan | None = None


@final
@dataclasses.dataclass(frozen=True)
class Pass:
    """A named step: ``run(state, front)`` gives the next state and decisions; ``front`` does the first passes of a
    body."""

    name: str
    why: str
    run: Callable[[State, FrontPasses], tuple[State, Sequence[Decision]]]


def _inline(state: State, front: FrontPasses) -> tuple[State, Sequence[Decision]]:
    jaxpr, decisions = inline_calls(state.jaxpr)
    return dataclasses.replace(state, jaxpr=jaxpr), decisions


def _simplify(state: State, front: FrontPasses) -> tuple[State, Sequence[Decision]]:
    jaxpr, decisions = simplify(state.jaxpr)
    return dataclasses.replace(state, jaxpr=jaxpr), decisions


def _fuse(state: State, front: FrontPasses) -> tuple[State, Sequence[Decision]]:
    groups, decisions = fuse(state.jaxpr)
    return dataclasses.replace(state, groups=tuple(groups)), decisions


def _lower(state: State, front: FrontPasses) -> tuple[State, Sequence[Decision]]:
    lowering, steps = lower_program(state.jaxpr, state.groups, front)
    return dataclasses.replace(state, lowering=lowering, steps=steps), lowering.decisions


def _place_memory(state: State, front: FrontPasses) -> tuple[State, Sequence[Decision]]:
    assert state.lowering is not None
    storages, workspace, in_place = place(state.lowering.storages, state.steps)
    allowed, may_take_over = takeovers(storages, state.steps)
    temporaries = [s.nbytes for s in storages if s.kind == "temporary"]
    numbers = {"bytes": workspace, "temporaries": len(temporaries), "bytes if apart": sum(temporaries)}
    reason = "temporaries that are never alive together share memory"
    plan = Plan(state.name, storages, state.steps, workspace, tuple(state.lowering.constants), allowed)
    placed = Decision("workspace", "placed", reason, numbers)
    return dataclasses.replace(state, plan=plan), [placed, *in_place, *may_take_over]


# The order matters: calls hide equal equations from each other, what is dead need not be fused, and memory is placed
# when
# every step is known.  The first three run over the bodies of loops and branches too, when these are lowered.
PASSES = (
    Pass("inline", "calls of jitted functions and custom rules cost nothing", _inline),
    Pass("simplify", "exact algebra, equal equations once, dead ones dropped", _simplify),
    Pass("fuse", "equations that run over the same elements or rows share a kernel", _fuse),
    Pass("lower", "loop nests and steps", _lower),
    Pass("memory", "temporaries share one workspace", _place_memory),
)
FRONT_PASSES = PASSES[:3]


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Compiled:
    """What the passes made of a program."""

    plan: Plan
    simplified: ClosedJaxpr
    passes: list[PassRecord]
    groups: list[Group]
    kernels: list[KernelRecord]
    labels: Mapping[int, Label]


def run_passes(passes: Sequence[Pass], state: State, records: list[PassRecord]) -> State:
    """The state after ``passes``; each leaves a record, and its result is verified while ``jax_enable_checks`` is
    on."""

    def front(body: ClosedJaxpr, scope: str) -> tuple[ClosedJaxpr, Sequence[Group]]:
        inner = run_passes(FRONT_PASSES, State(scope, body), records)
        return inner.jaxpr, inner.groups

    for step in passes:
        before, start = sum(r.seconds for r in records), time.perf_counter()
        state, decisions = step.run(state, front)
        inside = sum(r.seconds for r in records) - before  # passes over bodies have records of their own
        seconds = time.perf_counter() - start - inside
        if config.enable_checks.value:
            _verify(state)
        records.append(PassRecord(step.name, step.why, seconds, tuple(decisions), len(state.jaxpr.eqns), state.name))
    return state


def _verify(state: State) -> None:
    """Every IR that there is so far."""
    check(state.jaxpr.jaxpr)
    for _, lowered in state.lowering.kernels if state.lowering is not None else ():
        verify_kernel(lowered.kernel)
    if state.plan is not None:
        verify_plan(state.plan)
        verify_memory(state.plan)


def compile_jaxpr(closed: ClosedJaxpr, name: str) -> Compiled:
    """The plan of a program, and every decision on the way."""
    records: list[PassRecord] = []
    state = run_passes(PASSES, State(name, closed), records)
    assert state.plan is not None and state.lowering is not None
    groups = _with_inlined(state.lowering)
    kernels = _kernel_records(state.lowering)
    return Compiled(state.plan, state.jaxpr, records, groups, kernels, state.lowering.labels)


def _with_inlined(lowering: Lowering) -> list[Group]:
    """The groups, each with the layout equations that its kernels compute for themselves."""
    inlined: dict[str, dict[int, JaxprEqn]] = {}
    for group, lowered in lowering.kernels:
        inlined.setdefault(group.name, {}).update((id(e), e) for e in lowered.inlined)
    return [dataclasses.replace(g, inlined=list(inlined.get(g.name, {}).values())) for g in lowering.groups]


def _kernel_records(lowering: Lowering) -> list[KernelRecord]:
    return [_kernel_record(group, lowered) for group, lowered in lowering.kernels]


def _kernel_record(group: Group, lowered: Lowered) -> KernelRecord:
    names = namer()
    eqns: list[JaxprEqn] = [*lowered.inlined, *group.eqns]
    roles = {b.name: b.role for b in lowered.kernel.buffers}
    totals = {"input": 0, "output": 0}
    for buffer, what in zip((b for b in lowered.kernel.buffers if b.role != "local"), lowered.buffers, strict=True):
        nbytes = what.elements * what.dtype.itemsize if isinstance(what, Scratch) else nbytes_of(what.aval)
        totals[roles[buffer.name]] += nbytes
    return KernelRecord(
        lowered.kernel.name, group.kind, tuple(equation_text(e, names) for e in eqns), tuple(e.source for e in eqns),
        lambda: print_kernel(lowered.kernel), totals["input"], totals["output"],
    )  # fmt: skip
