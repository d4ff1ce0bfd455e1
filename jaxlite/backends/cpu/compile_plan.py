"""compile_plan: a plan in, native code out: its `Image`, and the host calls that go with it.

A program that is loaded from the disk cache does not come through here, and so needs none of the emitter's modules.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

from jaxlite.backends.cpu import engine
from jaxlite.backends.cpu.emit import emit_kernel
from jaxlite.backends.cpu.executable import Executable
from jaxlite.backends.cpu.functions import KernelEmitter
from jaxlite.backends.cpu.image import Image
from jaxlite.backends.cpu.program import Program, program_text
from jaxlite.backends.cpu.stored import stored_object
from jaxlite.backends.cpu.target import Target, host_target
from jaxlite.compiler.plan import For, HostCall, Plan, While
from jaxlite.compiler.plan_verifier import verify_plan
from jaxlite.core.progress import Loop


@final
@dataclass(frozen=True, eq=False)
class NativeCode:
    """A compiled plan. `seconds`: what it took, by stage."""

    image: Image
    host_calls: tuple[HostCall, ...]
    seconds: Mapping[str, float]


def compile_plan(
    plan: Plan, target: Target | None = None, emit: KernelEmitter = emit_kernel, loops: Sequence[Loop] = ()
) -> NativeCode:
    """Check `plan` and make native code of it. `emit` writes a kernel's LLVM text; `loops` are the jaxpr's."""
    start = time.perf_counter()
    verify_plan(plan)
    program = program_text(plan, target or host_target(), emit)
    emitted = time.perf_counter() - start
    seconds = {"emit": emitted, "parse": 0.0, "generate": 0.0}
    objects = [
        stored_object(functools.partial(_generate, text, seconds), "kernel", text) for text in program.apart.values()
    ]
    objects.append(_generate(program.main, seconds))
    return NativeCode(_image(plan, program, objects, loops), program.host_calls, seconds)


def _generate(text: str, seconds: dict[str, float]) -> bytes:
    """The object of a module; what it took is added to ``seconds``."""
    object_bytes, taken = engine.generate(text)
    for stage, value in taken.items():
        seconds[stage] += value
    return object_bytes


def load_plan(plan: Plan) -> Executable:
    """`compile_plan`, ready to run."""
    code = compile_plan(plan)
    return Executable(code.image, code.host_calls)


def _image(plan: Plan, program: Program, objects: Sequence[bytes], loops: Sequence[Loop]) -> Image:
    results = sorted((storage.position, storage.nbytes) for storage in plan.storages if storage.kind == "result")
    return Image(
        plan.name,
        plan.count("argument"),
        tuple([nbytes for _, nbytes in results]),
        plan.workspace_bytes,
        program.blas,
        program.long,
        program.splits,
        tuple(objects),
        plan.constants,
        tuple([_numbered(step, loops) for step in program.loops]),
        plan.takeovers,
    )


def _numbered(step: For | While, loops: Sequence[Loop]) -> tuple[int, int]:
    """A loop's number among the jaxpr's, and its iterations; -1 where unknown."""
    number = loops.index(step.loop) if step.loop in loops else -1
    return number, step.trips if isinstance(step, For) else -1
