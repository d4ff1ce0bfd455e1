"""compile_program: a jaxpr in, native code and the report of how it was made out.

The whole compiler stands behind this module: it is imported when a program is not found on disk, or when
somebody asks how one was compiled.
"""

from __future__ import annotations

import time

from jaxlite.backends.cpu import engine
from jaxlite.backends.cpu.compile_plan import NativeCode, compile_plan
from jaxlite.backends.cpu.program import program_text
from jaxlite.backends.cpu.target import host_target
from jaxlite.compiler.pipeline import Compiled, compile_jaxpr
from jaxlite.compiler.report import CompileReport
from jaxlite.compiler.sizes import refuse_overflow
from jaxlite.core import config
from jaxlite.core.jaxpr import ClosedJaxpr
from jaxlite.core.progress import loops_of


def compile_program(jaxpr: ClosedJaxpr, name: str) -> tuple[NativeCode, CompileReport]:
    """All passes, and LLVM."""
    start = time.perf_counter()
    refuse_overflow(jaxpr.jaxpr)
    compiled = compile_jaxpr(jaxpr, name)
    passed = time.perf_counter() - start
    code = compile_plan(compiled.plan, host_target(config.contract_fma.value), loops=loops_of(jaxpr))
    return code, _report(jaxpr, name, compiled, {"passes": passed, **code.seconds}, "compiled")


def report_of_loaded(jaxpr: ClosedJaxpr, name: str, seconds: dict[str, float], contract_fma: bool) -> CompileReport:
    """The report of a program that came from disk: its passes are run for it now; ``seconds`` tell of the loading."""
    with config.contract_fma(contract_fma):
        compiled = compile_jaxpr(jaxpr, name)
        return _report(jaxpr, name, compiled, seconds, "loaded from the disk cache")


def _report(jaxpr: ClosedJaxpr, name: str, compiled: Compiled, seconds: dict[str, float], origin: str) -> CompileReport:
    target = host_target(config.contract_fma.value)

    def text() -> str:
        return program_text(compiled.plan, target).text

    return CompileReport(
        name, jaxpr, compiled.simplified, compiled.passes, compiled.groups, compiled.kernels, compiled.plan,
        seconds, text, lambda: engine.assembly(text()), origin, compiled.labels,
    )  # fmt: skip
