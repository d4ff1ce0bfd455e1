"""Locks that a fork leaves usable, and calls that a signal cannot cut in two.

``lock()`` gives a lock that is free in a forked child, whoever held it in the parent.  ``elsewhere(f, x)`` gives
``f(x)`` computed by a helper thread: Python runs signal handlers in the main thread alone, so Ctrl-C ends the waiting
at once, and never ``f`` halfway.
"""

from __future__ import annotations

import _thread
import atexit
import contextvars
import os
import threading
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")
PIECE = 1 << 21  # elements that are copied at once
LAST_SECONDS = 60.0  # that the process waits at exit for a helper

_locks: weakref.WeakSet[Any] = weakref.WeakSet()


def lock() -> Any:
    """A new lock, which a forked child finds free: the thread that held it does not exist there."""
    made = threading.Lock()
    _locks.add(made)
    return made


def _free_all() -> None:
    for known in _locks:
        known._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_all)


def held_at_fork() -> Any:
    """A new lock that a fork waits for: what it guards is at rest in the child."""
    made = threading.RLock()  # the thread that forks may hold it
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=made.acquire, after_in_parent=made.release, after_in_child=made.release)
    return made


def elsewhere(function: Callable[..., T], *args: Any) -> T:
    """``function(*args)``, for what must run to its end once begun, or is one long call into native code.

    In the main thread it is handed to a helper; a signal handler that raises ends the waiting, while the helper
    finishes and its result is dropped.  So ``function`` must own, or copy, what it works on.

    >>> elsewhere(sorted, [3, 1, 2])
    [1, 2, 3]
    """
    if threading.get_ident() != threading.main_thread().ident:
        return function(*args)
    results: list[T] = []
    errors: list[BaseException] = []
    running = threading.Lock()  # not Thread.join: interrupted, that takes the thread for finished
    running.acquire()

    def run() -> None:
        _helpers.add(running)
        try:
            results.append(context.run(function, *args))
        except BaseException as error:
            errors.append(error)
        finally:
            _helpers.discard(running)
            running.release()

    context = contextvars.copy_context()  # NumPy's error state, for one
    _thread.start_new_thread(run, ())  # not Thread.start: interrupted, that leaves a thread that waits for ever
    running.acquire()
    if errors:
        raise errors[0]
    return results[0]


_helpers: set[Any] = set()  # locks of those at work


@atexit.register
def _wait_for_helpers() -> None:
    """The process does not end inside LLVM or NumPy."""
    for running in list(_helpers):
        running.acquire(timeout=LAST_SECONDS)


def copy_into(destination: np.ndarray[Any, Any], source: Any) -> None:
    """Copies in pieces: between two of them a signal is heard."""
    if destination.size <= PIECE or not destination.flags.c_contiguous:
        destination[...] = source
        return
    to, values = destination.reshape(-1), np.broadcast_to(source, destination.shape).reshape(-1)
    for at in range(0, to.size, PIECE):
        to[at : at + PIECE] = values[at : at + PIECE]


def copied(source: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A copy, made as ``copy_into`` does.

    >>> copied(np.arange(3))
    array([0, 1, 2])
    """
    made = np.empty(source.shape, source.dtype)
    copy_into(made, source)
    return made
