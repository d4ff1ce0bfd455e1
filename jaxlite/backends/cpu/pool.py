"""The one fork/join pool of the process: threads, their start, their number and their end.

The workers are Python threads that sit in native code (`pool_code.py`), off the interpreter lock;
no OpenMP, nothing to build. `start()` is called before a program that splits work runs. There are as
many threads, the caller included, as the flag `jaxlite_num_threads` says, else as there are CPUs that
this process may use; a change of either takes effect at the next run that finds the pool idle. A fork
leaves the child without workers: it starts its own when it needs them. At exit the workers are
stopped before the interpreter goes; a program that still runs in another thread goes on without them.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
import time
from typing import final

from jaxlite.backends.cpu import pool_code, watch_code
from jaxlite.backends.cpu.engine import QUICK, MachineCode, function_address, generate, load_object
from jaxlite.backends.cpu.stored import stored_object
from jaxlite.core import config, locks, progress

LOOK_SECONDS = 0.1  # how often a run asks which CPUs this process may use
JOIN_SECONDS = 5.0


@final
class Pool:
    """Worker threads parked in native code; make one by `pool()`."""

    def __init__(self, futex: bool) -> None:
        text = pool_code.pool_text(futex)
        object_bytes = stored_object(lambda: generate(text, QUICK)[0], "pool", text, QUICK)
        self.code: MachineCode = load_object(object_bytes, pool_code.EXPORTS, _symbols(futex))
        self._threads: list[threading.Thread] = []
        self._lock = locks.lock()
        self._cpus: set[int] | None = None  # that the workers may run on
        self._asked: int | None = None  # what the flag said, and when the CPUs were last asked for
        self._looked = 0.0
        address = self.code.addresses
        self._memory = address["jl_pool"]
        self._participants = ctypes.c_int64.from_address(self._memory + pool_code.PARTICIPANTS)
        self._stop_word = ctypes.c_int32.from_address(self._memory + pool_code.STOP)
        self._worker = ctypes.CFUNCTYPE(None, ctypes.c_int64)(address["jl_worker"])
        self._reset = ctypes.PYFUNCTYPE(None)(address["jl_pool_reset"])
        self._stop = ctypes.PYFUNCTYPE(None)(address["jl_pool_stop"])
        self._claim = ctypes.PYFUNCTYPE(ctypes.c_int32)(address["jl_pool_claim"])
        self._release = ctypes.PYFUNCTYPE(None)(address["jl_pool_release"])
        self._reset()
        hook = ctypes.c_void_p.from_address(self._memory + watch_code.HOOK)
        hook.value = id(progress.tell)  # a module's function: it lives as long as the process

    @property
    def symbols(self) -> dict[str, int]:
        """What a program's native code may call."""
        return {name: self.code.addresses[name] for name in pool_code.PROGRAM_SYMBOLS}

    @property
    def participants(self) -> int:
        """Threads that take part in a job, the caller included."""
        return max(self._participants.value, 1)

    @property
    def started(self) -> bool:
        """Whether workers are there to be had."""
        return self._participants.value > 0

    def ready(self) -> None:
        """Called before each run that splits work: starts the workers, or others where their number is to change."""
        if self._participants.value and self._asked == config.num_threads.value:
            now = time.monotonic()
            if now < self._looked + LOOK_SECONDS:
                return
            self._looked = now
            if self._cpus == usable_cpus():
                return
        self.start()

    def start(self, threads: int | None = None) -> None:
        """Make the workers what flags and CPUs ask for; `threads` counts the caller and overrides them.

        While a program has the pool nothing changes.
        """
        locks.elsewhere(self._start, threads)  # a thread whose start is cut short would wait for ever

    def _start(self, threads: int | None) -> None:
        with self._lock:
            try:
                if self._claim():
                    self._make(threads)
            finally:
                self._release()  # what `_claim` got, even if an interrupt lost its answer

    def _make(self, threads: int | None) -> None:
        asked, cpus = config.num_threads.value, usable_cpus()
        count = min(threads or thread_count(), pool_code.MAX_PARTICIPANTS)
        if count != self._participants.value:
            self._end_threads()
            for number in range(1, count):
                thread = threading.Thread(target=self._worker, args=(number,), name=f"jaxlite-{number}", daemon=True)
                self._threads.append(thread)  # before it starts: an interrupt must not lose it
                thread.start()
        if cpus is not None and cpus != self._cpus:
            for thread in self._threads:
                if thread.native_id is not None and os.sched_getaffinity(thread.native_id) != cpus:
                    os.sched_setaffinity(thread.native_id, cpus)
        self._participants.value = count
        self._asked, self._cpus, self._looked = asked, cpus, time.monotonic()

    def _end_threads(self) -> None:
        """Stop the workers and wait for them; jobs go on, run by their callers."""
        self._participants.value = 0
        self._cpus = None
        if self._threads:
            self._stop()
            deadline = time.monotonic() + JOIN_SECONDS
            while any(thread.is_alive() for thread in self._threads) and time.monotonic() < deadline:
                time.sleep(0.0002)  # not Thread.join: interrupted, that takes a thread for finished
            self._threads.clear()
        self._stop_word.value = 0

    def stop(self) -> None:
        """Stop the workers and wait for them; a program that runs goes on without them."""
        with self._lock:
            self._end_threads()

    def after_fork(self) -> None:
        """In a forked child: the workers did not come along, and a job may have been under way."""
        self._threads = []
        self._cpus = None
        ctypes.memset(self._memory, 0, watch_code.HOOK)  # no participants: jobs run serially
        tickets = self._memory + pool_code.TICKETS
        ctypes.memset(tickets, 0, pool_code.POOL_BYTES - pool_code.TICKETS)
        self._reset()


def usable_cpus() -> set[int] | None:
    """The CPUs that this process (its main thread) may run on; None where the system does not say."""
    return os.sched_getaffinity(os.getpid()) if hasattr(os, "sched_getaffinity") else None


def thread_count() -> int:
    """How many threads to use: the flag `jaxlite_num_threads`, else the CPUs this process may run on."""
    if config.num_threads.value is not None:
        return int(config.num_threads.value)
    cpus = usable_cpus()
    return len(cpus) if cpus else os.cpu_count() or 1


_pools: list[Pool] = []
_making = locks.lock()


def pool() -> Pool:
    """The process's pool, compiled at the first call; its workers start when needed."""
    if not _pools:
        with _making:
            if not _pools:
                made = Pool(pool_code.has_futex())
                atexit.register(made.stop)
                if hasattr(os, "register_at_fork"):
                    os.register_at_fork(after_in_child=made.after_fork)
                _pools.append(made)
    return _pools[0]


def _symbols(futex: bool) -> dict[str, int]:
    process = ctypes.CDLL(None)
    names = pool_code.system_symbols(futex)
    return {
        **{name: function_address(process, name) for name in names},
        **python_symbols(),
    }


def python_symbols() -> dict[str, int]:
    """The functions by which native code leaves and takes the interpreter lock, and calls Python."""
    return {name: function_address(ctypes.pythonapi, name) for name in watch_code.PYTHON_SYMBOLS}
