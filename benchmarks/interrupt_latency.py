"""How long a running program takes to end after a signal, for each kind of work that could hold it up.

    python benchmarks/interrupt_latency.py [TIMES] [WORDS OF KINDS ...]

Each kind runs for seconds when left alone; an alarm whose handler raises KeyboardInterrupt, as Ctrl-C does, goes off at
a random moment of it.  Prints the median and the longest time from the alarm to the exception, in milliseconds, and
"done" where the work was over before.  One LAPACK call is indivisible: that kind is marked.
"""

from __future__ import annotations

import random
import signal
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import jaxlite as jax
import jaxlite.numpy as jnp
from jaxlite import lax

KINDS: dict[str, Callable[[], Callable[[], Any]]] = {}


def kind(name: str) -> Callable[[Callable[[], Callable[[], Any]]], None]:
    """Registers a function that prepares a kind (compiled and warm) and gives what is to be interrupted."""

    def note(prepare: Callable[[], Callable[[], Any]]) -> None:
        KINDS[name] = prepare

    return note


def compiled(function: Callable[..., Any], *args: Any) -> Callable[[], Any]:
    """A call of ``function``, compiled before."""
    program = jax.jit(function).lower(*args).compile()
    return lambda: program(*args)


def floats(*shape: int) -> Any:
    return jnp.asarray(np.random.default_rng(0).random(shape, np.float32))


def again_and_again(function: Callable[[Any], Any], x: Any, times: int = 1_000_000) -> Callable[[], Any]:
    """A compiled loop over a function of x."""
    return compiled(lambda v: lax.fori_loop(0, times, lambda _, y: function(y), v), x)


@kind("loop: scan of a scalar body")
def _() -> Callable[[], Any]:
    return compiled(lambda x: lax.scan(lambda c, _: (c * 0.5 + 1.0, None), x, None, length=4_000_000_000), 1.0)


@kind("loop: endless while_loop of scalars")
def _() -> Callable[[], Any]:
    return compiled(lambda x: lax.while_loop(lambda v: v[0] >= 0, lambda v: (v[0], v[1] + 1.0), (x, 0.0)), 1.0)


@kind("loop: nested, short inside long")
def _() -> Callable[[], Any]:
    inner = lambda c: lax.fori_loop(0, 100, lambda _, y: jnp.sin(y), c)
    return again_and_again(inner, floats(8), 1_000_000_000)


@kind("loop: scan over rows of 100,000")
def _() -> Callable[[], Any]:
    return again_and_again(lambda y: jnp.sin(y) + 0.5, floats(100_000), 1_000_000)


@kind("loop: a branch inside")
def _() -> Callable[[], Any]:
    step = lambda y: lax.cond(y[0] > 0.5, jnp.sin, lambda v: v * 2.0, y)
    return again_and_again(step, floats(64), 1_000_000_000)


@kind("loop: random numbers inside")
def _() -> Callable[[], Any]:
    step = lambda v: (v[0] + jax.random.normal(jax.random.fold_in(jax.random.key(0), v[1]), (10_000,)).sum(), v[1] + 1)
    return compiled(lambda x: lax.fori_loop(0, 10_000_000, lambda _, v: step(v), (x, 0)), 0.0)


@kind("kernel: elementwise, 200 million, 60 functions")
def _() -> Callable[[], Any]:
    def function(x: Any) -> Any:
        for _ in range(60):
            x = jnp.sin(x) + jnp.exp(-x)
        return x

    return compiled(function, floats(200_000_000))


@kind("kernel: steps, 400 of 4 million")
def _() -> Callable[[], Any]:
    def function(x: Any) -> Any:
        for _ in range(400):
            x = jnp.sin(x).reshape(2000, 2000).T.reshape(-1)
        return x

    return compiled(function, floats(4_000_000))


@kind("kernel: full reduction of lgamma")
def _() -> Callable[[], Any]:
    return compiled(lambda x: sum(jnp.sum(lax.lgamma(x + k)) for k in range(8)), floats(100_000_000))


@kind("kernel: one row, folded twice")
def _() -> Callable[[], Any]:
    return compiled(lambda x: jax.nn.softmax(jnp.sin(x), axis=1), floats(1, 400_000_000))


@kind("kernel: reduction over tall columns")
def _() -> Callable[[], Any]:
    return compiled(lambda x: jnp.sin(x).max(0) + jnp.cos(x).argmax(0), floats(10_000_000, 20))


@kind("kernel: cumsum of one row")
def _() -> Callable[[], Any]:
    return compiled(lambda x: jnp.cumsum(jnp.cumsum(jnp.cumsum(x))), floats(300_000_000))


@kind("kernel: cumsum down columns")
def _() -> Callable[[], Any]:
    return compiled(lambda x: jnp.cumsum(jnp.cumsum(x, 0), 0), floats(8_000_000, 20))


@kind("kernel: sort of 100 million")
def _() -> Callable[[], Any]:
    return compiled(jnp.sort, floats(100_000_000))


@kind("kernel: argsort of 20 million")
def _() -> Callable[[], Any]:
    return compiled(jnp.argsort, floats(20_000_000))


@kind("kernel: gather of 100 million at random")
def _() -> Callable[[], Any]:
    index = jnp.asarray(np.random.default_rng(0).integers(0, 100_000_000, 100_000_000, np.int32))
    return compiled(lambda x, i: x[i] + x[i[::-1]], floats(100_000_000), index)


@kind("kernel: scatter-add of 100 million at random")
def _() -> Callable[[], Any]:
    index = jnp.asarray(np.random.default_rng(0).integers(0, 100_000_000, 100_000_000, np.int32))
    return compiled(lambda x, i: x.at[i].add(1.0), floats(100_000_000), index)


@kind("kernel: transposes of 400 MB")
def _() -> Callable[[], Any]:
    return again_and_again(lambda y: (y.T + 1.0).reshape(10_000, 10_000), floats(10_000, 10_000), 1000)


@kind("copy: 4 GB at once")
def _() -> Callable[[], Any]:
    return compiled(lambda x: (x, x, x, x, x), floats(200_000_000))


@kind("product: 10,000 squared")
def _() -> Callable[[], Any]:
    return compiled(lambda a: a @ a, floats(10_000, 10_000))


@kind("product: double, 6,000 by 60,000 by 6,000")
def _() -> Callable[[], Any]:
    with jax.enable_x64(True):
        a = jnp.asarray(np.random.default_rng(0).random((6_000, 60_000)))
        return compiled(lambda a: a @ a.T, a)


@kind("product: batches of small matrices")
def _() -> Callable[[], Any]:
    return again_and_again(lambda a: a @ a, floats(10_000, 16, 16), 100_000)


@kind("LAPACK: one Cholesky (indivisible)")
def _() -> Callable[[], Any]:
    a = floats(12_000, 12_000)
    return compiled(jnp.linalg.cholesky, a + a.T + 12_000 * jnp.eye(12_000))


@kind("gradient of a scan")
def _() -> Callable[[], Any]:
    loss = lambda w: lax.scan(lambda c, _: (jnp.tanh(w @ c), None), jnp.ones(64), None, length=200_000)[0].sum()
    return compiled(jax.grad(loss), 0.1 * floats(64, 64))


@kind("callback: quick ones in a loop")
def _() -> Callable[[], Any]:
    def step(y: Any) -> Any:
        return jax.pure_callback(lambda v: np.asarray(v) + 1, jax.ShapeDtypeStruct((), np.float32), y)

    return again_and_again(step, jnp.float32(0), 100_000_000)


@kind("callback: one that sleeps")
def _() -> Callable[[], Any]:
    def step(y: Any) -> Any:
        return jax.pure_callback(lambda v: time.sleep(10), jax.ShapeDtypeStruct((), np.float32), y)

    return compiled(lambda y: y + step(y), jnp.float32(0))


@kind("callback: a program inside")
def _() -> Callable[[], Any]:
    inner = again_and_again(lambda y: jnp.sin(y), floats(1000), 1_000_000)

    def step(y: Any) -> Any:
        return jax.pure_callback(lambda v: inner()[0], jax.ShapeDtypeStruct((), np.float32), y)

    return again_and_again(step, jnp.float32(0), 1000)


@kind("eager: operations of 200 million")
def _() -> Callable[[], Any]:
    x = floats(200_000_000)

    def run() -> None:
        for _ in range(20):
            jnp.sin(x + x * x)

    run_once = jnp.sin(x[:10] + x[:10] * x[:10])
    assert run_once.shape == (10,)
    return run


@kind("eager: a loop of small operations")
def _() -> Callable[[], Any]:
    def run() -> None:
        x = jnp.ones(10)
        while True:
            x = jnp.sin(x) * 0.5 + 1.0

    return run


@kind("eager: warm calls of a small program")
def _() -> Callable[[], Any]:
    step = jax.jit(lambda x: jnp.sin(x) * 0.5)
    step(jnp.ones(10))

    def run() -> None:
        x = jnp.ones(10)
        while True:
            x = step(x)

    return run


@kind("eager: gather of 100 million")
def _() -> Callable[[], Any]:
    x, index = floats(100_000_000), np.random.default_rng(0).integers(0, 100_000_000, 100_000_000, np.int32)
    at = jnp.asarray(index)

    def run() -> None:
        for _ in range(5):
            x[at]

    return run


@kind("eager: sorts, products, random numbers")
def _() -> Callable[[], Any]:
    x, a, key = floats(50_000_000), floats(3000, 3000), jax.random.key(0)

    def run() -> None:
        for _ in range(4):
            jnp.sort(x)
            a @ a
            jax.random.normal(key, (50_000_000,))
            jnp.cumsum(x)
            x.reshape(5000, 10_000).T + 1.0

    return run


@kind("compiling: tracing a long program")
def _() -> Callable[[], Any]:
    def function(x: Any) -> Any:
        for _ in range(100_000):
            x = jnp.sin(x) + 1.0
        return x

    return lambda: jax.make_jaxpr(function)(1.0)


@kind("compiling: 3,000 kernels")
def _() -> Callable[[], Any]:
    def function(x: Any) -> Any:
        for k in range(1500):
            x = jnp.sin(x + k).reshape(3, 4).sum(1, keepdims=True) * x.reshape(3, 4)
            x = x.reshape(-1)
        return x

    return lambda: jax.jit(lambda x: function(x)).lower(jnp.ones(12)).compile()


def measure(run: Callable[[], Any], delay: float) -> float | None:
    """Seconds from the alarm to the exception; None where the work was over before."""
    began = time.perf_counter()
    signal.setitimer(signal.ITIMER_REAL, delay)
    try:
        run()
        signal.setitimer(signal.ITIMER_REAL, 0)
        return None
    except KeyboardInterrupt:
        return time.perf_counter() - began - delay


def main() -> None:
    """Measures and prints."""
    times = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    words = sys.argv[2:]
    jax.config.update("jax_enable_compilation_cache", False)
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    chance = random.Random(0)
    print(f"{'':48} median  longest")
    for name, prepare in KINDS.items():
        if words and not any(word in name for word in words):
            continue
        run = prepare()
        longest = 4.0 if name.startswith("compiling") else 0.4
        found = [measure(run, 0.05 + longest * chance.random()) for _ in range(times)]
        late = [1e3 * t for t in found if t is not None]
        numbers = f"{statistics.median(late):7.1f}  {max(late):7.1f}" if late else "   done"
        print(f"{name:48}{numbers}" + ("  (some were done before)" if late and len(late) < times else ""), flush=True)
        del run


if __name__ == "__main__":
    main()
