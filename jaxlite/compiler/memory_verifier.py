"""verify_memory: check that no storage of a plan is overwritten before its last read.

Raises `PlanError` naming the two storages that share memory: temporaries of overlapping lifetimes, or a result and an
argument that it may take over.  The one step in which one ends and the other begins must be able to run in place.
"""

from __future__ import annotations

from jaxlite.compiler.lifetimes import timeline
from jaxlite.compiler.memory_plan import operand_pairs, overlapping, why_not_shared
from jaxlite.compiler.plan import Plan
from jaxlite.compiler.plan_verifier import PlanError
from jaxlite.compiler.takeovers import why_not_taken_over


def verify_memory(plan: Plan) -> None:
    """Raise `PlanError` unless what shares memory is never needed at once."""
    line = timeline(plan.steps)
    for one, other, (begin, end) in overlapping(plan.storages, line):
        old, new = (one, other) if line.spans[one][0] < line.spans[other][0] else (other, one)
        step = line.steps[begin]
        if begin != end or (old, new) not in operand_pairs(step):
            why = f"both are alive in steps {begin} to {end}"
        else:
            why = why_not_shared(step, old, new)
        if any(line.spans[old][0] <= loop for loop, _ in line.loops_around(begin)):
            why = why or "the next iteration reads the first again"
        if why:
            raise PlanError(f"plan {plan.name}: storages {old} and {new} share bytes of the workspace, but {why}")
    line = timeline(plan.steps, plan.storages)
    numbers = {(s.kind, s.position): n for n, s in enumerate(plan.storages)}
    for result, argument in plan.takeovers:
        taken, taking = numbers["argument", argument], numbers["result", result]
        reason, _ = why_not_taken_over(line, taken, taking)
        if plan.storages[taking].nbytes > plan.storages[taken].nbytes:
            reason = "it is larger"
        if reason:
            raise PlanError(f"plan {plan.name}: result {result} may not take over argument {argument}: {reason}")
