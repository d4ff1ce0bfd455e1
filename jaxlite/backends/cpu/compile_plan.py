"""compile_plan: a plan in, native code out: its `Image`, and the host calls that go with it.

A program that is loaded from the disk cache does not come through here, and so needs none of the emitter's modules.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from jaxlite.backends.cpu import engine
from jaxlite.backends.cpu.emit import emit_kernel
from jaxlite.backends.cpu.executable import Executable
from jaxlite.backends.cpu.functions import KernelEmitter
from jaxlite.backends.cpu.image import Image
from jaxlite.backends.cpu.program import Program, program_text
from jaxlite.backends.cpu.target import Target, host_target
from jaxlite.compiler.plan import HostCall, Plan
from jaxlite.compiler.plan_verifier import verify_plan


@final
@dataclass(frozen=True, eq=False)
class NativeCode:
    """A compiled plan. `seconds`: what it took, by stage."""

    image: Image
    host_calls: tuple[HostCall, ...]
    seconds: Mapping[str, float]


def compile_plan(plan: Plan, target: Target | None = None, emit: KernelEmitter = emit_kernel) -> NativeCode:
    """Check `plan` and make native code of it. `emit` writes a kernel's LLVM text."""
    start = time.perf_counter()
    verify_plan(plan)
    program = program_text(plan, target or host_target(), emit)
    emitted = time.perf_counter() - start
    object_bytes, seconds = engine.generate(program.text)
    return NativeCode(_image(plan, program, object_bytes), program.host_calls, {"emit": emitted, **seconds})


def load_plan(plan: Plan) -> Executable:
    """`compile_plan`, ready to run."""
    code = compile_plan(plan)
    return Executable(code.image, code.host_calls)


def _image(plan: Plan, program: Program, object_bytes: bytes) -> Image:
    results = sorted((storage.position, storage.nbytes) for storage in plan.storages if storage.kind == "result")
    return Image(
        plan.name,
        plan.count("argument"),
        tuple([nbytes for _, nbytes in results]),
        plan.workspace_bytes,
        program.blas,
        program.long,
        program.splits,
        object_bytes,
        plan.constants,
    )
