"""Errors of the magic: messages with the cell's own line, tracebacks without jaxlite's frames."""

from __future__ import annotations

from types import TracebackType
from typing import final

from jaxlite.core.source import is_library_code

AROUND = 2  # lines shown before and after the one in question


@final
class CellError(Exception):
    """A cell that cannot be made one function, with the line that is in the way."""

    def __init__(self, message: str, source: str = "", line: int | None = None) -> None:
        super().__init__(message)
        self.source, self.line = source, line

    def _render_traceback_(self) -> list[str]:
        """What IPython shows in place of a traceback."""
        shown = [f"CellError: {self}"]
        if self.line is not None:
            for number, text in enumerate(self.source.splitlines(), 1):
                if abs(number - self.line) <= AROUND:
                    mark = "---->" if number == self.line else "     "
                    shown.append(f"{mark} {number:3d} {text}")
        return shown


@final
class UserTraceback:
    """A block whose errors keep the frames of the user's code alone; where there are none, all."""

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            kept = user_frames(error.__traceback__)
            if kept is not None:
                error.__traceback__ = kept


def user_frames(trace: TracebackType | None) -> TracebackType | None:
    """The traceback without the frames of jaxlite's own code."""
    frames = []
    while trace is not None:
        if not is_library_code(trace.tb_frame.f_code):
            frames.append(trace)
        trace = trace.tb_next
    kept: TracebackType | None = None
    for frame in reversed(frames):
        kept = TracebackType(kept, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return kept
