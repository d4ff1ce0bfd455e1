"""In place: what is proved is safe in every order, and results do not depend on who shares whose memory."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import jaxlite as jax
import jaxlite.numpy as jnp
from jaxlite.compiler import memory_plan
from jaxlite.compiler.builder import Builder
from jaxlite.compiler.in_place import why_not
from jaxlite.compiler.loops import INDEX, Constant, Kernel, Load, Loop, Op, Store
from jaxlite.compiler.memory_verifier import verify_memory
from jaxlite.compiler.plan import Copy, Plan, Reference, Storage
from jaxlite.compiler.plan_verifier import PlanError
from tests.properties.test_random_programs import EVERYTHING, Program, inputs, programs, run

F32 = np.dtype(np.float32)


# -- the proof, against the addresses themselves ------------------------------------------------------

Sum = tuple[int, ...]  # factor of each axis, and what is added


def kernel_of(shared: tuple[int, ...], reads: Sum, reading: int, writes: Sum, writing: int, late: bool) -> Kernel:
    """In ``shared`` loops, a loop that reads and then a loop that writes; ``late``: the other way round."""
    b = Builder()
    x = b.buffer("x", F32, None, "input")
    out = b.buffer("out", F32, None, "output")

    def index(factors: Sum, axes: list[Any]) -> Any:
        total: Any = b.constant(factors[-1], np.int64)
        for factor, axis in zip(factors, axes, strict=False):
            total = b.add(b.mul(axis, factor), total)
        return total

    def load(axes: list[Any]) -> Any:
        return b.reduce(reading, lambda i: b.load(x, index(reads, [*axes, i])), "add", np.float32(0))

    def store(axes: list[Any], value: Any) -> None:
        with b.loop(writing) as i:
            b.store(out, index(writes, [*axes, i]), value)

    with contextlib.ExitStack() as stack:
        axes = [stack.enter_context(b.loop(extent)) for extent in shared]
        if late:
            store(axes, b.constant(1, F32))
            b.store(out, index(writes, [*axes, b.constant(0, np.int64)]), load(axes))
        else:
            store(axes, load(axes))
    return b.finish("k")


@dataclasses.dataclass
class Access:
    """One access of one iteration: the loops around it with their iterations, its place in each body."""

    writes: bool
    address: int
    at: tuple[tuple[Loop, int], ...]
    places: tuple[int, ...]


def accesses(kernel: Kernel) -> list[Access]:
    """Every access that a run makes, the indices computed as a run does."""
    known: dict[Any, int] = {}
    found: list[Access] = []

    def walk(body: tuple[Any, ...], at: tuple[tuple[Loop, int], ...], places: tuple[int, ...]) -> None:
        for number, step in enumerate(body):
            match step:
                case Constant():
                    known[step.result] = step.value.item()
                case Op() if step.opcode in ("add", "mul") and step.result.dtype == INDEX:
                    x, y = (known[a] for a in step.args)
                    known[step.result] = x + y if step.opcode == "add" else x * y
                case Load() | Store():
                    found.append(Access(isinstance(step, Store), known[step.index], at, (*places, number)))
                case Loop():
                    for iteration in range(int(step.extent)):  # type: ignore[arg-type]
                        known[step.axis] = iteration
                        walk(step.body, (*at, (step, iteration)), (*places, number))

    walk(kernel.body, (), ())
    return found


def is_safe(kernel: Kernel) -> bool:
    """Whether each element is read before it is written, in whatever order the iterations of a loop run."""
    found = accesses(kernel)
    for read, written in itertools.product(found, found):
        if written.writes and not read.writes and read.address == written.address:
            for depth, (place, other) in enumerate(zip(read.places, written.places, strict=False)):
                if place != other:
                    if place > other:
                        return False
                    break
                if read.at[depth][1] != written.at[depth][1]:
                    return False
    return True


SHARED = st.sampled_from([(2,), (3,), (1, 3), (2, 3), (3, 2), (3, 1), (2, 2, 2)])
FACTOR = st.integers(-7, 7)


@given(st.data())
def test_what_is_proved_holds_for_every_address(data: st.DataObject) -> None:
    shared = data.draw(SHARED)
    factors = [data.draw(FACTOR) for _ in shared]
    reads, writes = ((*factors, data.draw(FACTOR), data.draw(FACTOR)) for _ in range(2))
    reading, writing = (data.draw(st.integers(1, 4)) for _ in range(2))
    late = data.draw(st.booleans())
    kernel = kernel_of(shared, reads, reading, writes, writing, late)
    reason = why_not(kernel, 0, 1)
    if not reason:
        assert is_safe(kernel)


@pytest.mark.parametrize(
    ("shared", "reads", "reading", "writes", "writing", "reason"),
    [
        ((4,), (5, 1, 0), 5, (5, 1, 0), 5, ""),  # rows
        ((4,), (5, 1, 0), 5, (5, 0, 2), 1, ""),  # a row's sum into the row
        ((4, 3), (6, 2, 1, 0), 2, (6, 2, 1, 0), 2, ""),  # rows of rows
        ((4,), (-5, 1, 15), 5, (-5, -1, 19), 5, ""),  # rows from the last on, backwards
        ((4,), (5, 1, 0), 6, (5, 1, 0), 5, "an element is read in other iterations"),  # one into the next row
        ((4,), (5, 1, 0), 5, (1, 0, 0), 1, "an element is read in other iterations"),  # sums packed
        ((4,), (1, 4, 0), 5, (5, 1, 0), 5, "an element is read in other iterations"),  # a transpose
        ((4,), (0, 1, 0), 5, (0, 1, 0), 5, "an element is read in other iterations"),  # all over again
    ],
)
def test_known_cases(shared: tuple[int, ...], reads: Sum, reading: int, writes: Sum, writing: int, reason: str) -> None:
    kernel = kernel_of(shared, reads, reading, writes, writing, False)
    found = why_not(kernel, 0, 1)
    assert found.startswith(reason) and bool(found) == bool(reason)
    assert is_safe(kernel) == (not reason)


def test_reasons_that_are_not_of_places() -> None:
    rows = ((4,), (5, 1, 0), 5, (5, 1, 0), 5)
    assert why_not(kernel_of(*rows, late=True), 0, 1) == "it is read after the result's element is written"
    b = Builder()
    x = b.buffer("x", F32, None, "input")
    at = b.buffer("at", np.int64, None, "input")
    wide, out = b.buffer("wide", np.float64, None, "output"), b.buffer("out", F32, None, "output")
    with b.loop(4) as i:
        value = b.load(x, b.load(at, i))
        b.store(wide, i, b.convert(value, np.float64))
        b.store(out, i, value)
    kernel = b.finish("k")
    assert why_not(kernel, x, wide) == "its elements are of another size"
    assert why_not(kernel, x, out) == "where it is read or written is known only while running"


# -- plans ----------------------------------------------------------------------------------------------


def test_a_plan_that_overwrites_what_is_still_read_is_refused() -> None:
    n = 256
    storages = (
        Storage("argument", n, 0),
        Storage("temporary", n, 0),
        Storage("temporary", n, 0),
        Storage("result", n, 0),
        Storage("result", n, 1),
    )
    copies = [(1, 0), (2, 0), (3, 1), (4, 2)]
    steps = tuple(Copy(Reference(to), Reference(of), n) for to, of in copies)
    with pytest.raises(PlanError, match="storages 1 and 2 share bytes of the workspace, but both are alive"):
        verify_memory(Plan("p", storages, steps, (), n))


def test_who_shares_memory_changes_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    shared: list[int] = []

    @given(programs(EVERYTHING, 8))
    def same(program: Program) -> None:
        results = []
        for in_place in (True, False):
            monkeypatch.setattr(memory_plan, "IN_PLACE", in_place)
            compiled = jax.jit(functools.partial(run, EVERYTHING, program)).lower(*inputs()).compile()
            results.append([np.asarray(out).tobytes() for out in compiled(*inputs())])
            verdicts = [d.verdict for d in compiled.report.decisions]
            assert in_place or "in place" not in verdicts
            shared.append(verdicts.count("in place"))
        assert results[0] == results[1]

    same()
    assert sum(shared)


def test_a_chain_of_steps_needs_one_place() -> None:
    def f(x: Any) -> Any:
        for _ in range(4):
            x = jnp.cumsum(x, 1) * 0.5
            x = x - jax.lax.cummax(x, axis=1)
        return x.sum()

    x = jnp.ones((64, 64))
    compiled = jax.jit(f).lower(x).compile()
    assert compiled.report.plan.workspace_bytes <= 2 * x.nbytes
