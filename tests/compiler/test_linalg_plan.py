"""Linear algebra as steps: small matrices in one kernel, large ones by LAPACK between kernels; verified and printed."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from jaxlite.compiler.pipeline import compile_jaxpr
from jaxlite.compiler.plan import HostCall, KernelCall, LibraryCall, Plan, Step
from jaxlite.compiler.plan_printer import plan_text
from jaxlite.compiler.plan_verifier import PlanError, verify_plan
from jaxlite.core.avals import ShapedArray
from jaxlite.interpreters.stage import stage
from jaxlite.lax.linalg import cholesky_p, lu_p, triangular_solve


def plan_of(function: object, *shapes: tuple[int, ...]) -> Plan:
    avals = [ShapedArray(s, np.dtype(np.float32)) for s in shapes]
    return compile_jaxpr(stage(function, avals), "f").plan  # type: ignore[arg-type]


def kinds(plan: Plan) -> list[str]:
    return [type(s).__name__ for s in plan.steps]


def solve(a: object, b: object) -> list[object]:
    return [triangular_solve(a, b, left_side=True, lower=True)]


@pytest.mark.parametrize("shapes", [((3, 3),), ((50, 4, 4),)])
def test_small_matrices_are_one_kernel(shapes: tuple[tuple[int, ...], ...]) -> None:
    assert kinds(plan_of(lambda a: lu_p.bind(a), *shapes)) == ["KernelCall"]
    assert kinds(plan_of(lambda a: [cholesky_p.bind(a, symmetrize_input=False)], *shapes)) == ["KernelCall"]


def test_many_small_matrices_run_in_parallel() -> None:
    (step,) = plan_of(lambda a: lu_p.bind(a), (50, 4, 4)).steps
    assert isinstance(step, KernelCall) and step.extent == 50


def library_calls(plan: Plan) -> list[LibraryCall]:
    return [s for s in plan.steps if isinstance(s, LibraryCall)]


def test_large_matrices_call_lapack_and_never_python() -> None:
    plan = plan_of(lambda a: lu_p.bind(a), (5, 20, 30))
    assert kinds(plan) == ["KernelCall", "LibraryCall", "KernelCall", "KernelCall"]
    (call,) = library_calls(plan)
    assert (call.routine, call.batch, call.arguments[:2]) == ("sgetrf", 5, (20, 30))
    (call,) = library_calls(plan_of(solve, (12, 12), (12, 3)))
    # In memory rows are columns to BLAS: x^T a^T = b^T, a^T upper.
    assert (call.routine, call.arguments[:6]) == ("strsm", ("R", "U", "N", "N", 3, 12))
    plan = plan_of(lambda a: [cholesky_p.bind(a, symmetrize_input=False)], (12, 12))
    assert not any(isinstance(s, HostCall) for s in plan.steps)


def test_matrices_without_elements_need_no_step() -> None:
    assert kinds(plan_of(lambda a: lu_p.bind(a), (2, 0, 0))) == ["Fill"] * 3
    assert kinds(plan_of(solve, (12, 12), (12, 0))) == ["Fill"]


def test_printed() -> None:
    text = plan_text(plan_of(solve, (2, 12, 12), (2, 12, 3)))
    assert "strsm(R, U, N, N, 3, 12, 1.0, argument0[+576], 12, result0[+144], 3) x 2   work 432" in text


def changed(plan: Plan, **changes: object) -> Plan:
    steps: list[Step] = [
        dataclasses.replace(s, **changes) if isinstance(s, LibraryCall) else s  # type: ignore[arg-type]
        for s in plan.steps
    ]
    return dataclasses.replace(plan, steps=tuple(steps))


def test_verified() -> None:
    plan = plan_of(solve, (2, 12, 12), (2, 12, 3))
    verify_plan(plan)
    with pytest.raises(PlanError, match="strsm: buffer 0 reaches bytes 0 to 1728"):
        verify_plan(changed(plan, batch=3))
    with pytest.raises(PlanError, match="strsm: buffer 0 writes to argument 0"):
        verify_plan(changed(plan, writes=(True, True)))
