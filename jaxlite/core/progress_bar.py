"""The progress bar of terminals: one line of stderr, drawn over itself and cleared at the end.

In: `Progress` records. Imported when the first bar is drawn.
"""

from __future__ import annotations

import shutil
import time
from typing import TextIO, final

from jaxlite.core.progress import Progress

CELLS = 24
SECONDS = 0.1  # between two drawings
_CLEAR = "\r\x1b[K"


@final
class TerminalBar:
    """Draws on ``stream``."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._next = 0.0

    def show(self, record: Progress) -> None:
        """Draws the record, unless the last was drawn just now."""
        now = time.monotonic()
        if now >= self._next:
            self._next = now + SECONDS
            width = shutil.get_terminal_size().columns - 1
            self._stream.write(_CLEAR + bar_text(record)[:width])
            self._stream.flush()

    def close(self) -> None:
        """Leaves the line as it was."""
        self._stream.write(_CLEAR)
        self._stream.flush()


def bar_text(record: Progress) -> str:
    """One line: bar, iterations, rate, time left; then, as a narrow terminal cuts the end off, name and line.

    >>> from jaxlite.core.source import SourceInfo
    >>> bar_text(Progress("scan", SourceInfo("train.py", 12, "main"), 30, 120, 10.0, 3.0))
    '[######                  ] 25% 30/120, 10/s, 9 s left: scan train.py:12 (main)'
    """
    bar = "" if record.total is None else f"[{('#' * int(share_of(record) * CELLS)).ljust(CELLS)}] "
    return bar + label_text(record)


def label_text(record: Progress) -> str:
    """The same without the bar."""
    return f"{_numbers(record)}: {_name(record)}"


def share_of(record: Progress) -> float:
    """How much of the loop is done, from 0 to 1; of one whose end is not known, 1."""
    return 1.0 if record.total is None else min(record.done / max(record.total, 1), 1.0)


def _name(record: Progress) -> str:
    return f"{record.name} {record.source.summary()}" if record.source.file else record.name


def _numbers(record: Progress) -> str:
    if record.total is None:
        return f"{record.done:,} iterations, {record.rate:,.4g}/s, {duration(record.elapsed)}"
    left = "" if record.remaining is None else f", {duration(record.remaining)} left"
    return f"{share_of(record):.0%} {record.done:,}/{record.total:,}, {record.rate:,.4g}/s{left}"


def duration(seconds: float) -> str:
    """``9 s``, ``2 min 5 s``, ``1 h 3 min``.

    >>> duration(125)
    '2 min 5 s'
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
