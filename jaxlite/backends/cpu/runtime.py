"""The CPU runtime: eager evaluation and compiled programs, behind the Runtime protocol."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, final

from jaxlite.backends.cpu import limits, memory
from jaxlite.backends.cpu.eager import Eager
from jaxlite.backends.cpu.programs import Program, build
from jaxlite.core.jaxpr import ClosedJaxpr
from jaxlite.core.primitive import Primitive
from jaxlite.core.runtime import MemoryInUse


@final
class CpuRuntime:
    """Runs primitives and compiles programs for this machine's CPU."""

    def __init__(self) -> None:
        self._eager = Eager()
        self.evaluate: Callable[[Primitive, Sequence[Any], dict[str, Any]], Sequence[Any]] = self._eager.evaluate

    def compile(self, jaxpr: ClosedJaxpr, name: str, shardings: Sequence[Any] = ()) -> Program:
        """Machine code for a whole program, whose arguments lie so."""
        return build(jaxpr, name, shardings)

    def clear(self) -> None:
        """Forgets compiled programs; those in use live on."""
        self._eager.clear()

    def memory_in_use(self) -> MemoryInUse:
        """How much memory is given out, and how much is kept warm."""
        return MemoryInUse(memory.owned_bytes(), memory.warm_bytes(), memory.warm_limit())

    def refuse_too_large(self, nbytes: int, what: str) -> None:
        """``DoesNotFitError`` where the system has no such memory."""
        limits.refuse_too_large([nbytes], what)

    def release_memory(self) -> int:
        """Returns what is kept warm to the system; how many bytes."""
        return memory.trim()
