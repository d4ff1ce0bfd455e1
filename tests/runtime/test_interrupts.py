"""Ctrl-C: a signal ends any run soon, loses nothing and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import jaxlite as jax
import jaxlite.numpy as jnp
from jaxlite import lax
from jaxlite.backends.cpu import polling, products
from jaxlite.backends.cpu.functions import LONG_CHUNK, chunk_of
from jaxlite.compiler.builder import Builder, Carry
from jaxlite.compiler.plan import KernelCall, Reference
from jaxlite.core import locks

SOON = 2.0  # seconds: ten times what is promised, for a busy machine


class Interrupt(Exception):
    """What the alarm of these tests raises."""


@pytest.fixture
def alarm():
    """Interrupts the test after some seconds; what `SIGALRM` did before is restored."""

    def ring(*_):
        raise Interrupt

    before = signal.signal(signal.SIGALRM, ring)
    yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def ends_soon(alarm, work) -> None:
    """The work, which takes long, is interrupted and ends soon after."""
    began = time.perf_counter()
    with pytest.raises(Interrupt):
        alarm(0.2)
        work()
    assert time.perf_counter() - began < 0.2 + SOON


def rows(*shape):
    return jnp.asarray(np.random.default_rng(0).random(shape, np.float32))


def test_an_endless_loop_ends(alarm):
    loop = jax.jit(lambda x: lax.while_loop(lambda v: v >= 0, lambda v: v + 0.0, x))
    ends_soon(alarm, lambda: loop(1.0))
    assert jax.jit(lambda x: lax.while_loop(lambda v: v < 10, lambda v: v + 1.0, x))(1.0) == 10.0


def test_a_short_loop_in_a_long_one_ends(alarm):
    inner = lambda _, y: lax.fori_loop(0, 10, lambda _, z: z * 0.5 + 1.0, y)
    loop = jax.jit(lambda x: lax.fori_loop(0, 2_000_000_000, inner, x))
    ends_soon(alarm, lambda: loop(1.0))


LONG_KERNELS = {
    "full reduction": lambda x: sum(lax.lgamma(x + k).sum() for k in range(12)),
    "a row of which nothing is split": lambda x: sum(jnp.cumsum(x * k) for k in range(100)),
    "scatter": lambda x: sum(x.at[(x * 1000).astype(int)].add(float(k)) for k in range(40)),
    "elementwise": lambda x: sum(jnp.sin(x + k) for k in range(200)),
}


@pytest.mark.parametrize("name", LONG_KERNELS)
def test_long_kernels_end(alarm, name):
    program = jax.jit(LONG_KERNELS[name]).lower(rows(4_000_000)).compile()
    x = rows(4_000_000)
    ends_soon(alarm, lambda: [program(x) for _ in range(100)])


def test_sorts_end(alarm):
    """NumPy's: a helper finishes it."""
    x = rows(30_000_000)
    ends_soon(alarm, lambda: [jnp.sort(x) for _ in range(10)])


def test_callbacks_are_interrupted_themselves(alarm):
    shape = jax.ShapeDtypeStruct((), np.float32)
    sleeping = jax.jit(lambda x: jax.pure_callback(lambda v: time.sleep(60), shape, x) + 1)
    ends_soon(alarm, lambda: sleeping(1.0))
    body = lambda _, y: jax.pure_callback(lambda v: np.float32(v + 1), shape, y)
    many = jax.jit(lambda x: lax.fori_loop(0, 100_000_000, body, x))
    ends_soon(alarm, lambda: many(1.0))
    once = jax.jit(lambda x: lax.fori_loop(0, 5, body, x))
    assert once(1.0) == 6.0


def test_eager_operations_end(alarm):
    def work():
        x = jnp.ones(10)
        while True:
            x = jnp.sin(x) + x

    ends_soon(alarm, work)


def test_tracing_ends_and_leaves_no_trace(alarm):
    def endless(x):
        while True:
            x = jnp.sin(x)

    ends_soon(alarm, lambda: jax.jit(jax.grad(endless))(1.0))
    assert jnp.sin(jnp.zeros(3)).tolist() == [0.0, 0.0, 0.0]
    assert jax.grad(jnp.sin)(0.0) == 1.0


def test_donated_arguments_count_as_deleted_after_an_interrupt(alarm):
    program = jax.jit(lambda x: lax.fori_loop(0, 1_000_000_000, lambda _, y: jnp.sin(y), x), donate_argnums=0)
    given = jnp.ones(1000)
    ends_soon(alarm, lambda: program(given))
    assert given.is_deleted()


def test_a_thousand_interrupts_a_sample():
    assert "interrupted" in interrupt(60, seed=7)


@pytest.mark.long
@pytest.mark.skipif(os.environ.get("JAXLITE_LONG_TESTS") != "1", reason="minutes: JAXLITE_LONG_TESTS=1 runs it")
def test_a_thousand_interrupts():
    assert "interrupted" in interrupt(1000, seed=0)


def interrupt(runs: int, seed: int) -> str:
    command = [sys.executable, "-W", "error", "-m", "tests.runtime.interrupted", str(runs), str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1500)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr[-3000:]
    return done.stdout


# -- where kernels poll ------------------------------------------------------------------------------


def fold_kernel(rows: int, columns: int):
    b = Builder()
    x = b.buffer("x", np.float32, rows * columns, "input")
    out = b.buffer("out", np.float32, rows, "output")
    add = Carry((np.float32(0),), lambda b, a, c: (b.add(a[0], c[0]),))
    with b.loop(rows, parallel=True) as r:
        with b.fold(columns, add, vector=True, unroll=4) as loop:
            loop.update(b.add(loop.carried[0], b.load(x, b.add(b.mul(r, columns), loop.axis))))
        b.store(out, r, loop.results[0])
    return b.finish("fold")


@pytest.mark.parametrize(("columns", "polled"), [(1000, False), (100_000, False), (10_000_000, True)])
def test_long_loops_in_kernels_poll(columns, polled):
    assert polling.polls(fold_kernel(4, columns)) is polled


def test_chunks_are_short_however_large_the_kernel():
    kernel = fold_kernel(1_000_000, 1000)
    call = KernelCall(kernel, (Reference(0), Reference(1)), (), 1_000_000, work=1_000_000_000)
    assert chunk_of(call) * polling.kernel_work(kernel) / 1_000_000 <= 2 * LONG_CHUNK


@pytest.mark.parametrize(("m", "n", "k"), [(20_000, 20_000, 20_000), (5_000, 5_000, 1_000_000), (100, 100, 10_000_000)])
def test_tiles_of_large_products_are_short_unless_they_are_small(m, n, k):
    tiles = products.tiling(m, n, k)
    smallest = tiles.tile_rows < 2 * products.TILE_UNIT and tiles.tile_columns < 2 * products.TILE_UNIT
    assert smallest or 2 * tiles.tile_rows * tiles.tile_columns * k <= 2 * products.LONG_TILE_FLOPS


@pytest.mark.parametrize("columns", [1, 63, 1 << 19, (1 << 20) + 1, 3_000_017])
def test_loops_in_blocks_fold_every_element_once(columns):
    x = np.random.default_rng(columns).integers(0, 9, (2, columns)).astype(np.int32)
    assert jax.jit(lambda v: jnp.sum(v, axis=1))(x).tolist() == x.sum(1).tolist()
    assert np.array_equal(jax.jit(lambda v: jnp.cumsum(v, axis=1))(x), np.cumsum(x, axis=1, dtype=np.int32))


# -- a helper's work is done or dropped, never halved ------------------------------------------------


def test_elsewhere_gives_results_and_errors():
    assert locks.elsewhere(divmod, 17, 5) == (3, 2)
    with pytest.raises(ZeroDivisionError):
        locks.elsewhere(divmod, 1, 0)


def test_elsewhere_finishes_what_nobody_waits_for(alarm):
    done = []

    def work():
        time.sleep(0.5)
        done.append(True)

    ends_soon(alarm, lambda: locks.elsewhere(work))
    assert not done
    time.sleep(1.0)
    assert done
