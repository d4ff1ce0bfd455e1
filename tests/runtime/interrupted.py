"""Runs that are interrupted at random moments; after each, values and memory are checked.

    python -m tests.runtime.interrupted [RUNS] [SEED]

In: how many runs.  An alarm whose handler raises KeyboardInterrupt, as Ctrl-C does, goes off at a random moment of
each, of tracing, compiling and running.  Out: exit status 0 and a line of numbers, or the first thing that was wrong.
"""

from __future__ import annotations

import gc
import random
import resource
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import jaxlite as jax
import jaxlite.numpy as jnp
from jaxlite import lax
from jaxlite.backends.cpu import memory
from jaxlite.core.context import context

Work = Callable[[], Any]

GROWN_MIB = 700  # that the process may grow by: what sorts that nobody waits for leave in malloc's arenas
KEPT = 1 << 16  # bytes of small constants that caches may hold on to
LONGEST = 2.0  # seconds from an alarm to its exception: ten times what is promised, for a busy machine


def endless_loop() -> Work:
    loop = jax.jit(lambda x: lax.while_loop(lambda v: v >= 0, lambda v: v + 0.0, x))
    return lambda: loop(1.0)


def loop_over_rows() -> Work:
    loop = jax.jit(lambda x: lax.scan(lambda c, _: (jnp.sin(c) + 1.0, c[0]), x, None, length=100_000))
    x = jnp.ones(1_000_000)
    return lambda: loop(x)


def long_kernels() -> Work:
    def function(x: Any) -> Any:
        for _ in range(40):
            x = jnp.sin(x) + jnp.cumsum(x) * 1e-9
        return x

    program, x = jax.jit(function), jnp.ones(1_000_000)
    return lambda: [program(x) for _ in range(50)]


def warm_calls() -> Work:
    step = jax.jit(lambda p, x: ({k: v - 0.1 * x for k, v in p.items()}, (p["w"] * x).sum()))

    def run() -> None:
        parameters = {"w": jnp.ones(1000), "b": jnp.zeros(1000)}
        while True:
            parameters, _ = step(parameters, jnp.ones(1000))

    return run


def eager_calls() -> Work:
    def run() -> None:
        while True:
            x = jnp.linspace(0.0, 1.0, 50)
            y = jnp.sin(x) @ x + jnp.sort(x)[::-1]
            y.at[3].set(1.0).reshape(5, 10).sum(0)

    return run


def large_blocks() -> Work:
    def run() -> None:
        x = jnp.ones(1_000_000)
        while True:
            x = jnp.sin(x * 0.5)

    return run


def first_calls() -> Work:
    """A new function each time: traced, differentiated, compiled and run."""

    def run() -> None:
        for k in range(1000):
            f = jax.jit(jax.value_and_grad(lambda x, k=k: jnp.sum(jnp.tanh(x * k) ** 2) + lax.fori_loop(0, 3, _add, k)))
            f(jnp.arange(7.0))

    return run


def _add(i: Any, total: Any) -> Any:
    return total + i


def batches_and_branches() -> Work:
    """Transformations that run eagerly: their traces begin and end again and again."""
    f = jax.vmap(jax.grad(lambda x: lax.cond(x > 0, jnp.sin, jnp.cos, x)), axis_name="batch")

    def run() -> None:
        while True:
            f(jnp.linspace(-1.0, 1.0, 9))
            jax.jvp(jnp.tanh, (1.0,), (1.0,))
            jax.make_jaxpr(jax.hessian(lambda x: jnp.sum(x**3)))(jnp.ones(2))

    return run


def callbacks() -> Work:
    shape = jax.ShapeDtypeStruct((3,), np.float32)
    body = lambda _, y: jax.pure_callback(lambda v: np.asarray(v) * 0.5 + 1.0, shape, y)
    loop = jax.jit(lambda x: lax.fori_loop(0, 10_000_000, body, x))
    return lambda: loop(jnp.ones(3))


def program_inside_a_callback() -> Work:
    inner = jax.jit(lambda x: lax.fori_loop(0, 2000, lambda _, y: jnp.sin(y), x))
    shape = jax.ShapeDtypeStruct((1000,), np.float32)
    body = lambda _, y: jax.pure_callback(inner, shape, y)
    loop = jax.jit(lambda x: lax.fori_loop(0, 10_000_000, body, x))
    return lambda: loop(jnp.ones(1000))


def effects() -> Work:
    heard: list[Any] = []

    def step(c: Any, _: Any) -> Any:
        jax.debug.callback(heard.append, c)
        return c + 1.0, None

    loop = jax.jit(lambda x: lax.scan(step, x, None, length=1_000_000)[0])

    def run() -> None:
        heard.clear()
        loop(0.0)

    return run


def donated() -> Work:
    step = jax.jit(lambda x, y: (jnp.sin(x) + y, x.sum()), donate_argnums=0)

    def run() -> None:
        x, y = jnp.ones(500_000), jnp.ones(500_000)
        while True:
            old = x
            x, _ = step(x, y)
            assert old.is_deleted()

    return run


def refs() -> Work:
    counter = jax.new_ref(jnp.zeros(1000))

    @jax.jit
    def step(x: Any) -> Any:
        counter[...] += x
        return counter[...].sum()

    def run() -> None:
        while True:
            before = counter[...][0]
            step(jnp.ones(1000))
            assert counter[...][0] == before + 1

    return run


def sorts() -> Work:
    x = jnp.asarray(np.random.default_rng(0).random(3_000_000, np.float32))
    return lambda: [jnp.sort(x) for _ in range(20)]


KINDS: list[Callable[[], Work]] = [
    endless_loop, loop_over_rows, long_kernels, warm_calls, eager_calls, large_blocks, first_calls,
    batches_and_branches, callbacks, program_inside_a_callback, effects, donated, refs, sorts,
]  # fmt: skip


class Witnesses:
    """Arrays that live through everything: memory given out twice would change them."""

    def __init__(self) -> None:
        self.kept: list[tuple[Any, np.ndarray[Any, Any]]] = []

    def add(self, chance: random.Random) -> None:
        size = chance.choice([1, 10, 100, 1000, 1_000_000])
        array = jnp.sin(jnp.arange(size) * chance.random())
        self.kept.append((array, np.array(array)))
        if len(self.kept) > 30:
            self.kept.pop(chance.randrange(30))

    def check(self) -> None:
        for array, copy in self.kept:
            assert np.array_equal(np.asarray(array), copy), "a live array has changed"


def check_values() -> None:
    """Eager, compiled before, compiled now; no trace, name or source line left over."""
    assert (context.trace, context.axis_sizes, context.source) == (None, {}, None), vars(context)
    assert (context.refs, context.transformation, context.name_stack) == ({}, (), ()), vars(context)
    x = np.linspace(0.0, 1.0, 1001, dtype=np.float32)
    # sums of 1001 numbers of at most 2.8: each of the 10 levels of a pairwise sum rounds by half an ulp of 2048 at most
    assert abs(float(_known(x)) - float(np.sum(x * np.exp(x), dtype=np.float64))) < 1e-2
    assert abs(float(jax.grad(_known)(jnp.float32(0.5))) - 1.5 * np.exp(0.5)) < 1e-5  # (1 + x) exp(x), a few ulps of 2
    assert jax.jit(lambda v: v + len(KINDS))(1) == 1 + len(KINDS)
    assert np.array_equal(lax.fori_loop(0, 10, _add, jnp.zeros(3, np.int32)), [45, 45, 45])


_known = jax.jit(lambda v: jnp.sum(v * jnp.exp(v)))


def owned() -> int:
    """Bytes of arrays' memory that somebody owns: exact, so that one lost block shows."""
    gc.collect()
    return sum(size.owned_blocks * size.nbytes for size in list(memory._classes.values()))


def resident() -> int:
    """Bytes of memory that the process has."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * resource.getpagesize()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main(runs: int, seed: int) -> None:
    """Interrupts ``runs`` runs."""
    jax.config.update("jax_enable_compilation_cache", False)
    chance = random.Random(seed)
    fired: list[float] = []

    def handler(*_: Any) -> None:
        fired.append(time.perf_counter())
        if len(fired) > 1:
            raise AssertionError(f"{name}: nothing came of the interrupt")
        signal.setitimer(signal.ITIMER_REAL, LONGEST)
        raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, handler)
    name = ""
    check_values()
    works = [kind() for kind in KINDS]
    witnesses = Witnesses()
    before, base = owned(), resident()
    caught = 0
    longest = 0.0
    for _ in range(runs):
        witnesses.add(chance)
        kind = chance.randrange(len(KINDS))
        name = KINDS[kind].__name__
        delay = 10 ** chance.uniform(-4.0, -0.7)
        fired.clear()
        began = time.perf_counter()
        try:
            signal.setitimer(signal.ITIMER_REAL, delay)
            works[kind]()
            signal.setitimer(signal.ITIMER_REAL, 0)
            assert not fired, f"{name}: the interrupt was lost"
        except KeyboardInterrupt:
            signal.setitimer(signal.ITIMER_REAL, 0)
            longest = max(longest, time.perf_counter() - began - delay)
            caught += 1
        check_values()
        witnesses.check()
    witnesses.kept.clear()
    more, grown = owned() - before, (resident() - base) / 2**20
    print(
        f"{runs} runs, {caught} interrupted, at most {1e3 * longest:.0f} ms late, {more:,} bytes of arrays lost, "
        f"{grown:.0f} MiB more in the process"
    )
    assert more <= KEPT and grown < GROWN_MIB


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000, int(sys.argv[2]) if len(sys.argv) > 2 else 0)
