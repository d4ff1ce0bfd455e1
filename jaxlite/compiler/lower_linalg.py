"""Linear algebra: the steps that a primitive of that family names, as kernels and library calls.

In: a group of one equation.  Out: kernels and :class:`LoweredRoutine`, in order, over variables and scratch.  A stage
runs over (matrices, its own index space): rows in parallel and the last axis in lanes where that is long enough, else
all places flat, so that many small matrices fill the lanes.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, final

from jaxlite.compiler.groups import Group
from jaxlite.compiler.loops import INDEX, Value
from jaxlite.compiler.lower_kernel import LANES, Lowered, Scratch, _Kernel
from jaxlite.compiler.reading import unravel
from jaxlite.core.jaxpr import JaxprEqn, Var
from jaxlite.lax.families.linalg import Memory, Routine, Stage


@final
@dataclasses.dataclass(frozen=True, eq=False)
class LoweredRoutine:
    """A library routine called once for each of ``batch`` matrices, on these memories."""

    routine: Routine
    memories: tuple[Memory, ...]
    buffers: tuple[Var | Scratch, ...]
    dtype: Any
    batch: int


def lower_linalg(group: Group, makers: dict[Var, JaxprEqn]) -> list[Lowered | LoweredRoutine]:
    """The kernels and library calls of one equation."""
    (eqn,) = group.eqns
    steps: Sequence[Stage | Routine] = eqn.primitive.steps(*(a.aval for a in eqn.invars), **eqn.params)  # type: ignore[attr-defined]
    work = _Work(group, makers, eqn)
    return [
        work.kernel(s) if isinstance(s, Stage) else work.call(s)
        for s in steps
        if not isinstance(s, Stage) or 0 not in s.domain
    ]


@final
class _Work:
    """One equation: its batch, and the scratch that its steps share."""

    def __init__(self, group: Group, makers: dict[Var, JaxprEqn], eqn: JaxprEqn) -> None:
        self.group, self.makers, self.eqn = group, makers, eqn
        shape = eqn.invars[0].aval.shape
        self.batch_shape = shape[: len(shape) - eqn.primitive.core_rank]  # type: ignore[attr-defined]
        self.batch = math.prod(self.batch_shape)
        self.scratch: dict[Memory, Scratch] = {}

    def buffer(self, memory: Memory) -> Var | Scratch:
        """What stands for a memory in a call."""
        if memory.kind == "operand":
            return self.eqn.invars[memory.number]  # type: ignore[return-value]
        if memory.kind == "result":
            return self.eqn.outvars[memory.number]  # type: ignore[return-value]
        if memory not in self.scratch:
            self.scratch[memory] = Scratch(memory.dtype, self.batch * max(math.prod(memory.shape), 1))
        return self.scratch[memory]

    def call(self, routine: Routine) -> LoweredRoutine:
        memories = tuple(dict.fromkeys(a for a in routine.arguments if isinstance(a, Memory)))
        dtype = self.eqn.invars[0].aval.dtype
        return LoweredRoutine(routine, memories, tuple(map(self.buffer, memories)), dtype, self.batch)

    def kernel(self, stage: Stage) -> Lowered:
        k = _Kernel(self.group, self.makers)
        b, domain = k.b, (self.batch, *stage.domain)
        access = _Access(self, k)
        rows, row, size = math.prod(domain[:-1]), domain[-1], math.prod(domain)
        if len(domain) > 1 and row >= LANES and stage.vector:
            with b.loop(rows, parallel=True) as r, b.loop(row, vector=True) as column:
                access.run(stage, (*unravel(b, r, domain[:-1]), column))
            return k.finish(rows, size * stage.work)
        with b.loop(size, parallel=True, vector=stage.vector and size >= LANES) as place:
            access.run(stage, unravel(b, place, domain))
        return k.finish(size, size * stage.work)


@final
class _Access:
    """Reads and writes the memory of the matrix that a kernel is at."""

    def __init__(self, work: _Work, kernel: _Kernel) -> None:
        self.work, self.k = work, kernel
        self.numbers: dict[Memory, int] = {}
        self.matrix: Value | None = None
        self.batch: tuple[Value, ...] = ()

    def run(self, stage: Stage, index: tuple[Value, ...]) -> None:
        self.matrix = index[0]
        self.batch = unravel(self.k.b, index[0], self.work.batch_shape)
        stage.body(self.k.b, index[1:], self)

    def read(self, memory: Memory, place: tuple[Any, ...]) -> Value:
        b = self.k.b
        at = tuple(b.value(i, INDEX) for i in place)
        if memory.kind == "operand":
            return self.k.reader.read(self.work.eqn.invars[memory.number], (*self.batch, *at))
        return b.load(self._number(memory, "input"), self._position(memory, at))

    def write(self, memory: Memory, place: tuple[Any, ...], value: Value) -> None:
        b = self.k.b
        at = tuple(b.value(i, INDEX) for i in place)
        b.store(self._number(memory, "output"), self._position(memory, at), value)

    def _position(self, memory: Memory, at: tuple[Value, ...]) -> Value:
        assert self.matrix is not None
        inside = self.k.reader.position_of(at, memory.shape)
        return self.k.b.add(self.k.b.mul(self.matrix, math.prod(memory.shape)), inside)

    def _number(self, memory: Memory, role: Any) -> int:
        if memory not in self.numbers:
            what = self.work.buffer(memory)
            if isinstance(what, Scratch):
                self.numbers[memory] = self.k.scratch(f"scratch{memory.number}", what, role)
            else:
                self.numbers[memory] = self.k.output(what)
        return self.numbers[memory]
