"""The one fork/join pool of the process: threads, their start and their end.

The workers are Python threads that sit in native code (`pool_code.py`), off the interpreter lock;
no OpenMP, nothing to build. `start()` is called when a program that splits work is compiled or
first run after a fork. There are as many threads, the caller included, as the flag
`jaxlite_num_threads` says when they start, else as there are CPUs this process may use. A fork
leaves the child without workers: it starts its own when it needs them. At exit the workers are
stopped before the interpreter goes.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import os
import threading
from typing import final

from jaxlite.backends.cpu import pool_code
from jaxlite.backends.cpu.engine import QUICK, MachineCode, function_address, generate, load_object
from jaxlite.backends.cpu.stored import stored_object
from jaxlite.core import config


@final
class Pool:
    """Worker threads parked in native code; make one by `pool()`."""

    def __init__(self, futex: bool) -> None:
        text = pool_code.pool_text(futex)
        object_bytes = stored_object(lambda: generate(text, QUICK)[0], "pool", text, QUICK)
        self.code: MachineCode = load_object(object_bytes, pool_code.EXPORTS, _symbols(futex))
        self.started = False
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        address = self.code.addresses
        self._memory = address["jl_pool"]
        self._worker = ctypes.CFUNCTYPE(None, ctypes.c_int64)(address["jl_worker"])
        self._reset = ctypes.CFUNCTYPE(None)(address["jl_pool_reset"])
        self._stop = ctypes.CFUNCTYPE(None)(address["jl_pool_stop"])

    @property
    def symbols(self) -> dict[str, int]:
        """What a program's native code may call."""
        return {name: self.code.addresses[name] for name in ("jl_pool_run", "jl_poll")}

    @property
    def participants(self) -> int:
        """Threads that take part in a job, the caller included."""
        return len(self._threads) + 1

    def start(self, threads: int | None = None) -> None:
        """Start the workers unless they run; `threads` counts the caller."""
        with self._lock:
            if self.started:
                return
            count = min(threads or thread_count(), pool_code.MAX_PARTICIPANTS)
            ctypes.memset(self._memory, 0, pool_code.POOL_BYTES)
            self._reset()
            self._threads = [
                threading.Thread(target=self._worker, args=(k,), name=f"jaxlite-{k}", daemon=True)
                for k in range(1, count)
            ]
            ctypes.c_int64.from_address(self._memory + pool_code.PARTICIPANTS).value = count
            for thread in self._threads:
                thread.start()
            self.started = True

    def stop(self) -> None:
        """Stop the workers and wait for them. No program may be running."""
        with self._lock:
            if not self.started:
                return
            self._stop()
            for thread in self._threads:
                thread.join(timeout=5.0)
            self._forget()

    def after_fork(self) -> None:
        """In a forked child: the workers did not come along, and a job may have been under way."""
        self._lock = threading.Lock()
        self._forget()

    def _forget(self) -> None:
        self._threads = []
        ctypes.memset(self._memory, 0, pool_code.POOL_BYTES)  # no participants: jobs run serially
        self.started = False


def thread_count() -> int:
    """How many threads to use: the flag `jaxlite_num_threads`, else the CPUs this process may run on."""
    if config.num_threads.value is not None:
        return int(config.num_threads.value)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@functools.cache
def pool() -> Pool:
    """The process's pool, compiled at the first call; its workers start when needed."""
    made = Pool(pool_code.has_futex())
    atexit.register(made.stop)
    os.register_at_fork(after_in_child=made.after_fork)
    return made


def _symbols(futex: bool) -> dict[str, int]:
    process = ctypes.CDLL(None)
    names = pool_code.system_symbols(futex)
    return {
        **{name: function_address(process, name) for name in names},
        **python_symbols(),
    }


def python_symbols() -> dict[str, int]:
    """The functions by which native code leaves and takes the interpreter lock."""
    return {name: function_address(ctypes.pythonapi, name) for name in pool_code.PYTHON_SYMBOLS}
