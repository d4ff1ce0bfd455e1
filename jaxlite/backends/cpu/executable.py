"""compile_plan: a plan in, an `Executable` out: native code with all that running it needs.

`Executable.run(addresses)` takes the addresses of the arguments and returns (address, owner) for
each result, in memory of its own. It may be called from several threads, and from a host call of
its own.
"""

from __future__ import annotations

import ctypes
import struct
import time
import weakref
from collections.abc import Mapping, Sequence
from typing import final

from jaxlite.backends.cpu import blas, engine, hostcall, memory
from jaxlite.backends.cpu.emit import emit_kernel
from jaxlite.backends.cpu.functions import KernelEmitter
from jaxlite.backends.cpu.pool import Pool, pool, python_symbols
from jaxlite.backends.cpu.program import ENTRY, Program, program_text
from jaxlite.backends.cpu.target import Target, host_target
from jaxlite.compiler.plan import Plan
from jaxlite.compiler.plan_verifier import verify_plan


def compile_plan(plan: Plan, target: Target | None = None, emit: KernelEmitter = emit_kernel) -> Executable:
    """Check `plan` and make native code of it. `emit` writes a kernel's LLVM text."""
    start = time.perf_counter()
    verify_plan(plan)
    program = program_text(plan, target or host_target(), emit)
    emitted = time.perf_counter() - start
    code = engine.compile_text(program.text, [ENTRY], _symbols(program))
    return Executable(plan, program, code, {"emit": emitted, **code.seconds})


@final
class Executable:
    """A compiled plan. `seconds`: what its compilation took, by stage."""

    def __init__(
        self,
        plan: Plan,
        program: Program,
        code: engine.MachineCode,
        seconds: Mapping[str, float],
    ) -> None:
        self.plan = plan
        self.program = program
        self.code = code
        self.seconds = seconds
        number = hostcall.register(program.host_calls) if program.host_calls else 0
        if number:
            weakref.finalize(self, hostcall.forget, number).atexit = False
        constants = [array.ctypes.data for array in plan.constants]
        self._context = (ctypes.c_uint64 * (1 + len(constants)))(number, *constants)
        self._context_address = ctypes.addressof(self._context)
        # PYFUNCTYPE keeps the interpreter lock: the entry itself gives it up if it may take long
        self._entry = ctypes.PYFUNCTYPE(ctypes.c_int32, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p)(
            code.addresses[ENTRY]
        )
        self._pool: Pool | None = pool() if program.splits else None
        self._arguments = plan.count("argument")
        results = sorted((storage.position, storage.nbytes) for storage in plan.storages if storage.kind == "result")
        self._results = memory.ResultLayout([nbytes for _, nbytes in results])
        self._pack = struct.Struct(f"{self._arguments + len(results)}Q").pack
        self._workspace = memory.size_class(plan.workspace_bytes) if plan.workspace_bytes else None

    @property
    def llvm_ir(self) -> str:
        """The module's text, as given to LLVM."""
        return self.program.text

    def assembly(self) -> str:
        """The machine code, as assembly text."""
        return engine.assembly(self.program.text)

    def run(self, argument_addresses: Sequence[int]) -> list[tuple[int, memory.Block]]:
        """Run once; the results' addresses, each with the owner that keeps its memory alive."""
        results = self._results.take()
        workspace = self._workspace.take() if self._workspace is not None else None
        if self._pool is not None and not self._pool.started:
            self._pool.start()
        status = self._entry(
            self._pack(*argument_addresses, *[address for address, _ in results]),
            workspace.address if workspace is not None else None,
            self._context_address,
        )
        if status:
            raise hostcall.take_error() or RuntimeError(
                f"{self.plan.name}: native code stopped with status {status} and no exception"
            )
        return results


def _symbols(program: Program) -> dict[str, int]:
    """What the program's code may call."""
    symbols = {"jl_host_call": hostcall.callback_address()}
    if program.long:  # else the pool's code, 5 ms, need not be there
        symbols |= pool().symbols | python_symbols()
    for name in program.blas:
        symbols[f"jl_{name}"] = blas.routine(name)
    return symbols
