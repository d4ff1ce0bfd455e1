"""Many user threads, first calls included; the pool's size, its CPUs, and its rest."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import jaxlite as jax
import jaxlite.numpy as jnp
from jaxlite import lax
from jaxlite.backends.cpu.pool import pool, usable_cpus
from jaxlite.core import runtime
from jaxlite.core.config import config

THREADS = 16


def in_threads(work, count: int = THREADS) -> list[object]:
    """What `work(k)` gives or raises, in `count` threads that begin together."""
    results: list[object] = [None] * count
    gate = threading.Barrier(count)

    def run(k):
        gate.wait()
        try:
            results[k] = work(k)
        except BaseException as error:
            results[k] = error

    threads = [threading.Thread(target=run, args=(k,)) for k in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads)
    return results


def test_first_and_warm_calls_of_shared_functions():
    functions = [jax.jit(lambda x, k=k: jnp.sum(jnp.sin(x) * k) + lax.fori_loop(0, 3, _add, k)) for k in range(6)]
    x = np.linspace(0.0, 1.0, 200_000, dtype=np.float32)
    total = np.sin(x.astype(np.float64)).sum()

    def work(k):
        order = np.random.default_rng(k).permutation(np.repeat(np.arange(len(functions)), 5))
        return [(int(n), float(functions[n](x))) for n in order]

    for results in in_threads(work):
        assert not isinstance(results, BaseException), results
        for n, value in results:
            # 200,000 additions in float32, pairwise in blocks: far below 1e-4 of the sum
            assert abs(value - (n * total + n + 3)) <= 1e-4 * (n * total + 10)


def _add(i, total):
    return total + i


def test_gradients_batches_and_eager_operations_in_all_threads():
    def work(k):
        for _ in range(20):
            value = jax.vmap(jax.grad(lambda v: jnp.tanh(v) * k))(jnp.zeros(5))
            assert value.tolist() == [float(k)] * 5
            assert jnp.sort(jnp.asarray([3.0, k, -1.0]))[0] == -1.0
            assert jax.jit(lambda v: v + k)(1) == 1 + k
        return True

    assert in_threads(work) == [True] * THREADS


def test_a_loop_in_one_thread_lets_others_run():
    going = threading.Event()
    loop = jax.jit(lambda x: lax.fori_loop(0, 300, lambda _, y: jnp.sin(y), x))
    x, results = jnp.ones(500_000), []
    expected = np.asarray(loop(x))

    def work():
        while not going.is_set():
            results.append(np.array_equal(loop(x), expected))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for k in range(50):
        assert jnp.sum(jnp.ones(100_000) * k) == 100_000 * k
    going.set()
    for thread in threads:
        thread.join(60)
    assert results and all(results)


@pytest.fixture
def threads_flag():
    before = config.jaxlite_num_threads
    yield lambda n: config.update("jaxlite_num_threads", n)
    config.update("jaxlite_num_threads", before)


def test_a_changed_number_of_threads_holds_from_the_next_run_on(threads_flag):
    double = jax.jit(lambda x: jnp.sin(x) * 2)
    x = jnp.linspace(0.0, 1.0, 2_000_000)
    expected = np.asarray(double(x))
    for count in (1, 3, 2, 20, 1, 2):
        threads_flag(count)
        assert np.array_equal(double(x), expected)
        assert pool().participants == count
        assert sum(t.name.startswith("jaxlite-") for t in threading.enumerate()) == count - 1


def test_more_threads_than_cores_give_the_same(threads_flag):
    program = jax.jit(lambda x: jnp.cumsum(jnp.sin(x), axis=1).sum(0))
    x = jnp.asarray(np.random.default_rng(0).random((500, 2000), np.float32))
    threads_flag(1)
    alone = np.asarray(program(x))
    threads_flag(3 * (os.cpu_count() or 1) + 1)
    assert all(np.array_equal(program(x), alone) for _ in range(20))


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system does not say which CPUs may be used")
def test_the_cpus_that_a_process_may_use_are_respected_also_when_they_change():
    script = """
import os, threading, time, numpy as np
import jaxlite as jax, jaxlite.numpy as jnp
from jaxlite.backends.cpu.pool import pool
f, x = jax.jit(lambda x: jnp.sin(x)), jnp.ones(2_000_000)
all_cpus = sorted(os.sched_getaffinity(0))
seen = []
for cpus in (all_cpus, all_cpus[:1], all_cpus):
    os.sched_setaffinity(0, cpus)
    time.sleep(0.15)
    f(x)
    workers = [t for t in threading.enumerate() if t.name.startswith("jaxlite-")]
    assert all(os.sched_getaffinity(t.native_id) == set(cpus) for t in workers)
    seen.append(pool().participants == len(cpus) == 1 + len(workers))
print(seen)
"""
    environment = {k: v for k, v in os.environ.items() if k != "JAXLITE_NUM_THREADS"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, env=environment)
    assert (done.stdout, done.stderr) == ("[True, True, True]\n", "")


def test_an_idle_process_uses_no_cpu():
    x = jnp.ones(1_000_000)
    for _ in range(3):
        jax.jit(jnp.sin)(x)
    time.sleep(0.05)  # workers spin for 0.1 ms
    before = time.process_time()
    time.sleep(1.0)
    assert time.process_time() - before < 0.1


def test_exit_while_another_thread_runs_a_program():
    script = """
import threading, time, sys
import jaxlite as jax, jaxlite.numpy as jnp
from jaxlite import lax
f = jax.jit(lambda x: lax.fori_loop(0, 100_000_000, lambda _, y: jnp.sin(y), x))
threading.Thread(target=f, args=(jnp.ones(1_000_000),), daemon=True).start()
time.sleep(1.5)
print("leaving", flush=True)
"""
    began = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "leaving\n", "")
    assert time.perf_counter() - began < 30


def test_usable_cpus_is_what_the_system_says():
    if hasattr(os, "sched_getaffinity"):
        assert usable_cpus() == os.sched_getaffinity(0)
    else:
        assert usable_cpus() is None


def test_caches_are_cleared_while_other_threads_run():
    done = threading.Event()
    x = np.linspace(0.0, 1.0, 100, dtype=np.float32)
    program = jax.jit(lambda v: jnp.cos(v) + 1)
    given = jnp.asarray(x)

    def work(k):
        if k:
            while not done.is_set():
                # a few ulps of values of at most 2
                np.testing.assert_allclose(jnp.sin(given), np.sin(x), atol=1e-6)
                np.testing.assert_allclose(program(given), np.cos(x) + 1, atol=1e-6)
            return
        try:
            for i in range(50):
                jax.clear_caches()
                assert float(jax.jit(lambda v, i=i: v * i)(1.0)) == i
        finally:
            done.set()

    assert in_threads(work, 5) == [None] * 5


def test_ways_outlive_the_kernels_that_are_forgotten():
    x = jnp.float32(3.0)
    assert float(lax.integer_pow(x, 5)) == 243.0
    runtime.current()._eager._flat.clear()
    for n in range(6, 40):  # linking lets go of code that nobody holds, and takes its place
        lax.integer_pow(x, n)
    assert float(lax.integer_pow(x, 5)) == 243.0
