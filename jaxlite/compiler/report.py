"""The compile report: every pass with what it decided and why, the kernels, the plan, the generated code.

Data first: a viewer reads the fields; ``text()`` says the same in words.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, final

from jaxlite.compiler.memory_report import MemoryReport, memory_report
from jaxlite.compiler.plan import HostCall, Label, Plan, all_steps, block_work
from jaxlite.core.jaxpr import ClosedJaxpr
from jaxlite.core.source import SourceInfo

if TYPE_CHECKING:
    from jaxlite.compiler.groups import Group
    from jaxlite.compiler.partition import Partition


@final
@dataclasses.dataclass(frozen=True)
class Decision:
    """One choice: what it was about, what was chosen, why, and the numbers that it went by."""

    subject: str
    verdict: str
    reason: str
    numbers: Mapping[str, int] = dataclasses.field(default_factory=dict)
    source: SourceInfo | None = None


@final
@dataclasses.dataclass(frozen=True)
class PassRecord:
    """One pass: its name and purpose, how long it took, what it decided, and what it gave."""

    name: str
    why: str
    seconds: float
    decisions: tuple[Decision, ...]
    equations: int
    scope: str = ""  # the program, or the loop or branch whose body it ran over


@final
@dataclasses.dataclass(frozen=True)
class KernelRecord:
    """One kernel: its name, the equations that it computes (as text, with their lines), its loop nest."""

    name: str
    kind: str
    equations: tuple[str, ...]
    sources: tuple[SourceInfo, ...]
    loop_nest: Callable[[], str]
    reads_bytes: int
    writes_bytes: int


@final
@dataclasses.dataclass(eq=False)
class CompileReport:
    """How one program was compiled."""

    name: str
    jaxpr: ClosedJaxpr
    simplified: ClosedJaxpr
    passes: list[PassRecord]
    groups: list[Group]
    kernels: list[KernelRecord]
    plan: Plan
    seconds: dict[str, float]
    target: Callable[[], str]
    machine: Callable[[], str]
    origin: str = "compiled"  # or where it was loaded from; the passes were then run again for the report
    labels: Mapping[int, Label] = dataclasses.field(default_factory=dict)  # what the plan's storages are to the user
    partition: Partition | None = None  # of a program over a mesh

    @property
    def decisions(self) -> list[Decision]:
        """Every decision of every pass, in order."""
        return [d for p in self.passes for d in p.decisions]

    @property
    def target_text(self) -> str:
        """The generated code (LLVM IR)."""
        return self.target()

    @property
    def assembly(self) -> str:
        """The machine code, as assembly."""
        return self.machine()

    @property
    def operations(self) -> int:
        """Scalar operations of one call, predicted."""
        return block_work(self.plan.steps)

    @property
    def bytes_accessed(self) -> int:
        """Bytes that the kernels of one call read and write, predicted."""
        return sum(k.reads_bytes + k.writes_bytes for k in self.kernels)

    def bytes_of(self, kind: str) -> int:
        """Bytes of the plan's storages of a kind: "argument", "result" or "constant"."""
        return sum(s.nbytes for s in self.plan.storages if s.kind == kind)

    @functools.cached_property
    def memory(self) -> MemoryReport:
        """What is in memory at each step, predicted."""
        return memory_report(self.plan, self.labels)

    @property
    def host_calls(self) -> list[str]:
        """Names of the steps that call back into Python."""
        return [s.name for s in all_steps(self.plan.steps) if isinstance(s, HostCall)]

    def text(self) -> str:
        """Kernels, passes and decisions in words: those of the notebook's fusion view."""
        from jaxlite.inspect import fusion_payload, fusion_text

        return fusion_text(fusion_payload(self))

    def __str__(self) -> str:
        return self.text()
