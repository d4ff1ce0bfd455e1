"""What the running thread is doing: its current trace, the named axes in scope, the source line that rules work for.

One small thread-local object; each field is set with a context manager beside its users.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

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
        self.source: SourceInfo | None = None
        self.transformation: tuple[str, ...] = ()
        self.name_stack: tuple[str, ...] = ()


context = _Context()
