"""Compiled plans: splitting, loops, branches, host calls and memory, run for real."""

from __future__ import annotations

import threading
import time
import traceback

import numpy as np
import pytest

from jaxlite.backends.cpu import hostcall, memory
from jaxlite.backends.cpu.compile_plan import compile_plan, load_plan
from jaxlite.backends.cpu.pool import pool
from jaxlite.backends.cpu.program import program_text
from jaxlite.backends.cpu.target import host_target
from jaxlite.compiler.builder import Builder
from jaxlite.compiler.loops import Kernel
from jaxlite.compiler.plan import (
    Branch,
    Copy,
    Counter,
    Fill,
    For,
    HostCall,
    HostOperand,
    KernelCall,
    Plan,
    Reference,
    Storage,
    While,
)

F32 = np.dtype(np.float32)
I32 = np.dtype(np.int32)


def add_kernel(elements: int, dtype=F32, name: str = "add") -> Kernel:
    """out = left + right."""
    b = Builder()
    left = b.buffer("left", dtype, elements, "input")
    right = b.buffer("right", dtype, elements, "input")
    out = b.buffer("out", dtype, elements, "output")
    with b.loop(elements, parallel=True, vector=True) as i:
        b.store(out, i, b.add(b.load(left, i), b.load(right, i)))
    return b.finish(name)


def add_constant_kernel(constant: float, elements: int = 1, dtype=F32) -> Kernel:
    b = Builder()
    x = b.buffer("x", dtype, elements, "input")
    out = b.buffer("out", dtype, elements, "output")
    with b.loop(elements, parallel=True, vector=True) as i:
        b.store(out, i, b.add(b.load(x, i), constant))
    return b.finish("add_constant")


def less_kernel(limit: int) -> Kernel:
    """A flag: x[0] < limit."""
    b = Builder()
    x = b.buffer("x", I32, 1, "input")
    out = b.buffer("out", np.bool_, 1, "output")
    b.store(out, 0, b.lt(b.load(x, 0), limit))
    return b.finish("less")


def endless_plan() -> Plan:
    """A while loop that does not end."""
    storages = (Storage("temporary", 64, 0),)
    fill = Fill(Reference(0), 1, 1)
    return Plan("endless", storages, (While(Counter(), (fill,), Reference(0), ()),), 64)


def run(plan: Plan, arguments, shapes):
    """Run a plan on arrays; its results as arrays of (shape, dtype)."""
    results = load_plan(plan).run([array.ctypes.data for array in arguments])
    return [
        memory.view(address, shape, np.dtype(dtype), owner)
        for address, owner, (shape, dtype) in zip(*results, shapes, strict=True)
    ]


def add_plan(elements: int) -> Plan:
    nbytes = 4 * elements
    storages = (
        Storage("argument", nbytes, 0),
        Storage("argument", nbytes, 1),
        Storage("result", nbytes, 0),
    )
    references = (Reference(0), Reference(1), Reference(2))
    call = KernelCall(add_kernel(elements), references, (), elements, elements)
    return Plan("add", storages, (call,))


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_vector_add_over_the_pool(threads):
    pool().stop()
    pool().start(threads)
    x, y = np.random.default_rng(0).standard_normal((2, 300_001)).astype(F32)
    executable = load_plan(add_plan(x.size))
    assert executable.image.splits
    (address,), (owner,) = executable.run([x.ctypes.data, y.ctypes.data])
    assert np.array_equal(memory.view(address, x.shape, F32, owner), x + y)
    pool().stop()


def test_small_work_is_not_split():
    program = program_text(add_plan(100), host_target())
    assert not program.splits
    assert "call i32 @jl_pool_run" not in program.text


def test_equal_kernels_are_emitted_once():
    elements = 8
    storages = (Storage("argument", 32, 0), Storage("result", 32, 0))
    calls = tuple(
        KernelCall(add_kernel(elements), (Reference(0), Reference(s), Reference(1)), (), elements) for s in (0, 1)
    )
    plan = Plan("twice", storages, calls)
    assert program_text(plan, host_target()).kernels == ("jl_0_add",)
    executable = load_plan(plan)
    x = np.arange(8, dtype=F32)
    (address,), (owner,) = executable.run([x.ctypes.data])
    assert np.array_equal(memory.view(address, (8,), F32, owner), 3 * x)
    assert set(compile_plan(plan).seconds) == {"emit", "parse", "generate"}


def test_loop_with_alternating_carry():
    """A carry that alternates between two buffers, and no host calls on the way."""
    trips = 1_000_000
    storages = (
        Storage("argument", 4, 0),
        Storage("result", 4, 0),
        Storage("temporary", 128, 0),
    )
    i = Counter()
    here = Reference(2).along(i, 64, modulo=2)
    there = Reference(2).along(i, 64, phase=1, modulo=2)
    kernel = add_constant_kernel(1, dtype=I32)
    steps = (
        Copy(Reference(2), Reference(0), 4),
        For(i, trips, (KernelCall(kernel, (here, there)),)),
        Copy(Reference(1), Reference(2), 4),
    )
    before = hostcall.calls_made()
    start = time.perf_counter()
    (result,) = run(Plan("count", storages, steps, 128), [np.array([5], I32)], [((1,), I32)])
    print(f"compile and {trips:,} steps: {1e3 * (time.perf_counter() - start):.1f} ms")
    assert result[0] == 5 + trips
    assert hostcall.calls_made() == before


def test_reversed_scan_over_slices():
    """Reversed cumulative sum of rows: reads and writes are slices, the carry one buffer."""
    rows, columns = 5, 3
    row = 4 * columns
    storages = (
        Storage("argument", rows * row, 0),
        Storage("result", rows * row, 0),
        Storage("temporary", row, 0),
    )
    i = Counter()
    x = Reference(0).along(i, row, reverse_from=rows - 1)
    out = Reference(1).along(i, row, reverse_from=rows - 1)
    body = (
        KernelCall(add_kernel(columns), (Reference(2), x, out), (), columns),
        Copy(Reference(2), out, row),
    )
    steps = (Fill(Reference(2), row), For(i, rows, body))
    values = np.arange(rows * columns, dtype=F32).reshape(rows, columns)
    (result,) = run(Plan("scan", storages, steps, 64), [values], [((rows, columns), F32)])
    assert np.array_equal(result, values[::-1].cumsum(0)[::-1])


def test_nested_loops_follow_both_counters():
    storages = (Storage("argument", 24, 0), Storage("result", 24, 0))
    i, j = Counter(), Counter()
    source = Reference(0).along(i, 12).along(j, 4)
    destination = Reference(1).along(j, 8).along(i, 4)
    steps = (For(i, 2, (For(j, 3, (Copy(destination, source, 4),)),)),)
    x = np.arange(6, dtype=F32).reshape(2, 3)
    (result,) = run(Plan("transpose", storages, steps), [x], [((3, 2), F32)])
    assert np.array_equal(result, x.T)


@pytest.mark.parametrize(("start", "expected"), [(0, 10), (7, 10), (12, 12)])
def test_while_with_predicate_kernel(start, expected):
    storages = (
        Storage("argument", 4, 0),
        Storage("result", 4, 0),
        Storage("temporary", 1, 0),
    )
    condition = (KernelCall(less_kernel(10), (Reference(1), Reference(2))),)
    body = (KernelCall(add_constant_kernel(1, dtype=I32), (Reference(1), Reference(1))),)
    steps = (
        Copy(Reference(1), Reference(0), 4),
        While(Counter(), condition, Reference(2), body),
    )
    (result,) = run(Plan("while", storages, steps, 64), [np.array([start], I32)], [((), I32)])
    assert result == expected


@pytest.mark.parametrize(("index", "chosen"), [(-5, 0), (0, 0), (1, 1), (2, 2), (99, 2)])
def test_branch_clamps_its_index(index, chosen):
    storages = (Storage("argument", 4, 0), Storage("result", 1, 0))
    branches = tuple((Fill(Reference(1), 1, 10 + n),) for n in range(3))
    plan = Plan("branch", storages, (Branch(Reference(0), branches),))
    (result,) = run(plan, [np.array([index], I32)], [((1,), np.uint8)])
    assert result[0] == 10 + chosen


def test_constants():
    storages = (Storage("constant", 12, 0), Storage("constant", 12, 1), Storage("result", 12, 0))
    constants = (np.array([1, 2, 3], F32), np.array([10, 20, 30], F32))
    call = KernelCall(add_kernel(3), (Reference(0), Reference(1), Reference(2)), (), 3)
    (result,) = run(Plan("constant", storages, (call,), 0, constants), [], [((3,), F32)])
    assert result.tolist() == [11, 22, 33]


def host_plan(function, trips: int = 1) -> Plan:
    storages = (Storage("argument", 8, 0), Storage("result", 8, 0))
    inputs = (HostOperand(Reference(0), (2,), F32),)
    outputs = (HostOperand(Reference(1), (2,), F32),)
    call = HostCall(function, inputs, outputs, "python")
    return Plan("host", storages, (For(Counter(), trips, (call,)),))


@pytest.mark.parametrize("trips", [1, 100])  # with the interpreter lock kept, and given up
def test_host_call(trips):
    def double(inputs, outputs):
        assert not inputs[0].flags.writeable
        outputs[0][...] = 2 * inputs[0]

    before = hostcall.calls_made()
    (result,) = run(host_plan(double, trips), [np.array([1, 2], F32)], [((2,), F32)])
    assert result.tolist() == [2, 4]
    assert hostcall.calls_made() == before + trips


@pytest.mark.parametrize("trips", [1, 100])
def test_host_call_raises_as_itself(trips):
    def fail(inputs, outputs):
        raise KeyError("no such thing")

    before = hostcall.calls_made()
    executable = load_plan(host_plan(fail, trips))
    x = np.zeros(2, F32)
    with pytest.raises(KeyError, match="no such thing") as caught:
        executable.run([x.ctypes.data])
    assert "in fail" in "".join(traceback.format_tb(caught.tb))
    assert hostcall.calls_made() == before + 1  # the program ended at once


def test_program_inside_a_host_call():
    """The inner program may use the pool: the outer one is not in a parallel region."""
    x, y = np.random.default_rng(0).standard_normal((2, 200_000)).astype(F32)
    inner = load_plan(add_plan(x.size))

    def call_inner(inputs, outputs):
        (address,), (owner,) = inner.run([x.ctypes.data, y.ctypes.data])
        outputs[0][...] = memory.view(address, x.shape, F32, owner)[:2]

    (result,) = run(host_plan(call_inner, 3), [np.zeros(2, F32)], [((2,), F32)])
    assert np.array_equal(result, (x + y)[:2])


def test_programs_in_several_threads():
    x, y = np.random.default_rng(0).standard_normal((2, 200_000)).astype(F32)
    executable = load_plan(add_plan(x.size))
    good = []

    def work():
        for _ in range(20):
            (address,), (owner,) = executable.run([x.ctypes.data, y.ctypes.data])
            good.append(np.array_equal(memory.view(address, x.shape, F32, owner), x + y))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(good) == 80
    assert all(good)


def test_results_own_their_memory():
    executable = load_plan(add_plan(4))
    x = np.ones(4, F32)
    views = []
    for k in range(50):
        y = np.full(4, k, F32)
        (address,), (owner,) = executable.run([x.ctypes.data, y.ctypes.data])
        views.append(memory.view(address, (4,), F32, owner))
        del owner
    assert [v[0] for v in views] == [k + 1 for k in range(50)]
    assert all(v.ctypes.data % 64 == 0 for v in views)


def test_memory_is_reused_and_bounded(monkeypatch):
    block = memory.allocate(3 << 20)
    address = block.address
    del block
    assert memory.warm_bytes() >= 3 << 20
    assert memory.allocate((3 << 20) - 5).address == address  # of the same class, warm
    memory.trim()
    rest = memory.warm_bytes()  # parts of slabs of which other parts are in use
    monkeypatch.setattr(memory._natives[0].limit, "value", rest + (4 << 20))
    blocks = [memory.allocate(3 << 20) for _ in range(3)]
    del blocks
    assert memory.warm_bytes() == rest + (3 << 20)


def test_small_results_share_a_block():
    layout = memory.ResultLayout([4] * 3 + [1 << 20] + [4] * 80)
    results = list(zip(*layout.take(), strict=True))
    assert len(results) == 84
    assert len({address for address, _ in results}) == 84
    assert all(address % 64 == 0 for address, _ in results)
    assert results[0][1] is results[2][1]
    assert results[0][1].nbytes <= memory.SMALL
    assert results[3][1] is not results[0][1]


def test_view_of_every_shape():
    block = memory.allocate(64)
    whole = memory.view(block.address, (64,), np.dtype(np.uint8), block, writeable=True)
    whole[:] = np.arange(64)
    assert memory.view(block.address, (), np.dtype(np.uint8), block) == 0
    assert memory.view(block.address, (2, 3), np.dtype(np.uint16), block).shape == (2, 3)
    assert memory.view(block.address, (0, 3), F32, block).shape == (0, 3)
    with pytest.raises(ValueError, match="read-only"):
        memory.view(block.address, (2,), F32, block)[0] = 1
