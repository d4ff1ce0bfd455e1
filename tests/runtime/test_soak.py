"""A soak: many calls and many compilations, after which the process holds what it held before.

The usual run takes a tenth; ``python -m tests.runtime.test_soak`` makes 10^5 calls and 10^4 compilations.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

CHILD = """
import gc, sys
import jaxlite as jax, jaxlite.numpy as jnp

jax.config.update("jax_enable_compilation_cache", False)
calls, compilations = int(sys.argv[1]), int(sys.argv[2])

def held():
    gc.collect()
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * 4096 / 2**20

tree = {f"layer{i}": {"w": jnp.ones((4, 4)), "b": jnp.ones(4)} for i in range(5)}
step = jax.jit(lambda t, x: (jax.tree.map(lambda a: a * 0.5 + x, t), (x @ x.T).sum()))
give = jax.jit(lambda t: t * 0.5, donate_argnums=0)

def call(number):
    x = jnp.ones((40, 40)) * number
    out, total = step(tree, x[:4, :4])
    large = give(jnp.zeros((300, 300)))
    return float(total) + float(jnp.sin(x).sum()) + float(large[0, 0])

def compile_one(number):
    constant = float(number)

    def f(x):
        return jax.lax.scan(lambda c, t: (jnp.sin(c * constant) + t, c), 0.0, x)[0] + x.sum()

    return float(jax.jit(f)(jnp.ones(5)))

def over(work, count):
    # from a tenth on, as caches fill; growth in MiB
    for number in range(count // 10):
        work(number)
    before = held()
    for number in range(count // 10, count):
        work(number)
    return held() - before

print("calls", over(call, calls))
print("compilations", over(compile_one, compilations))
jax.clear_caches()
print("arrays", len(jax.live_arrays()))
"""


def growth(calls: int, compilations: int) -> dict[str, float]:
    """By kind of work, the MiB the process grew by after the first tenth; and the arrays alive at the end."""
    command = [sys.executable, "-c", CHILD, str(calls), str(compilations)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return {name: float(value) for name, value in map(str.split, done.stdout.splitlines())}


def check(calls: int, compilations: int) -> None:
    """Fails where memory is not flat."""
    grown = growth(calls, compilations)
    print(grown)
    # A leak of one small result a call would be 64 bytes: 4 MiB is less than 10^5 of them, and more than what the
    # allocator's arenas wander by.
    assert grown["calls"] < 4
    # The allocator's arenas settle over the first few hundred programs; a leaked program is 50 KiB or more.
    assert grown["compilations"] < 6 + compilations / 1024
    assert grown["arrays"] == 10  # the tree's ten


@pytest.mark.long
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_memory_stays_flat() -> None:
    check(10_000, 600)


if __name__ == "__main__":
    check(100_000, 10_000)
