"""What the running thread is doing: its current trace, the named axes in scope, the source line that rules work for.

One small thread-local object; each field is set with a context manager beside its users.  A signal handler may raise
between any two bytecodes, also as such a block begins or ends; so these are plain classes, which do nothing when they
are thrown away, and whatever runs a user's function is ``context_kept``.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from jaxlite.core.ref import Cell
    from jaxlite.core.source import SourceInfo
    from jaxlite.core.trace import Trace


class _Context(threading.local):
    """Per-thread state; ``trace`` None means eager evaluation."""

    def __init__(self) -> None:
        self.trace: Trace | None = None
        self.refs: dict[int, Cell] = {}  # what refs hold in the programs being traced, by their identity
        self.axis_sizes: dict[Any, int] = {}
        self.manual: frozenset[Any] = frozenset()  # mesh axes whose devices the program being traced is written for
        self.resolving = False  # whether what is ambiguous about shardings is resolved, as in derivatives
        self.source: SourceInfo | None = None
        self.transformation: tuple[str, ...] = ()
        self.name_stack: tuple[str, ...] = ()


context = _Context()

F = TypeVar("F", bound=Callable[..., Any])


def context_kept(function: F) -> F:
    """``function``, after which the thread's context is what it was before, whatever exception ends it and wherever."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        before = context.__dict__.copy()
        try:
            return function(*args, **kwargs)
        except BaseException:
            context.__dict__.update(before)
            raise

    return call  # type: ignore[return-value]
