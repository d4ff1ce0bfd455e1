"""Forks: also while other threads compile and run programs, and while locks are held."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from jaxlite.core import locks

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
    pytest.mark.filterwarnings("ignore:This process:DeprecationWarning"),  # Python 3.12 on fork
]

FORKING = """
import os, sys, threading, warnings
import numpy as np
import jaxlite as jax, jaxlite.numpy as jnp
from jaxlite import lax
warnings.filterwarnings("ignore", category=DeprecationWarning)
going = True
shared = jax.jit(lambda x: lax.fori_loop(0, 20, lambda _, y: jnp.sin(y), x))
x = jnp.ones(300_000)
expected = np.asarray(shared(x))

def compute():
    while going:
        shared(x)

def compile_programs():
    k = 0
    while going:
        k += 1
        jax.jit(lambda v: jnp.sin(v) * k)(1.0)

threads = [threading.Thread(target=t, daemon=True) for t in {threads}]
for t in threads:
    t.start()
for n in range(12):
    child = os.fork()
    if child == 0:
        good = np.array_equal(shared(x), expected)
        good &= float(jax.jit(lambda v: v * 2 + n)(1.0)) == 2.0 + n
        good &= jnp.sum(jnp.ones(500_000)) == 500_000
        os._exit(0 if good else 1)
    _, status = os.waitpid(child, 0)
    assert status == 0, (n, status)
    assert np.array_equal(shared(x), expected)
going = False
for t in threads:
    t.join(60)
print("good")
"""


@pytest.mark.parametrize("threads", ["[]", "[compute]", "[compile_programs]", "[compute, compile_programs]"])
def test_children_compute_and_compile(threads):
    script = FORKING.replace("{threads}", threads)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=240)
    assert (done.stdout, done.stderr) == ("good\n", "")


def test_a_lock_held_by_another_thread_is_free_in_the_child():
    lock, taken, leave = locks.lock(), threading.Event(), threading.Event()

    def hold():
        with lock:
            taken.set()
            leave.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    taken.wait(60)
    child = os.fork()
    if child == 0:
        os._exit(0 if lock.acquire(timeout=5) else 1)
    _, status = os.waitpid(child, 0)
    assert lock.locked()
    leave.set()
    holder.join()
    assert status == 0


def test_a_fork_waits_for_what_is_at_work():
    at_rest, taken, finished = locks.held_at_fork(), threading.Event(), []

    def hold():
        with at_rest:
            taken.set()
            threading.Event().wait(0.3)
            finished.append(True)

    holder = threading.Thread(target=hold)
    holder.start()
    taken.wait(60)
    child = os.fork()
    if child == 0:
        os._exit(0 if finished and at_rest.acquire(timeout=5) else 1)
    _, status = os.waitpid(child, 0)
    holder.join()
    assert status == 0
    assert at_rest.acquire(timeout=5)  # and is free again here
    at_rest.release()


def test_a_fork_inside_a_callback():
    script = """
import os, warnings
import numpy as np
import jaxlite as jax, jaxlite.numpy as jnp
warnings.filterwarnings("ignore", category=DeprecationWarning)
children = []

def fork(v):
    child = os.fork()
    children.append(child)
    return v

shape = jax.ShapeDtypeStruct((), np.float32)
f = jax.jit(lambda x: jnp.sum(jnp.sin(x)) + jax.pure_callback(fork, shape, x[0]))
value = float(f(jnp.zeros(1_000_000)))
if children[-1] == 0:
    os._exit(0 if value == 0.0 else 1)
_, status = os.waitpid(children[-1], 0)
print(value, status)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("0.0 0\n", "")
