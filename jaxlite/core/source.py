"""Source lines: where in the user's program an equation was written, and which transformation made it.

In: the running Python stack.  Out: a :class:`SourceInfo`, small enough for every equation to keep one.
"""

from __future__ import annotations

import dataclasses
import linecache
import os
import sys
from types import CodeType, FrameType
from typing import final

from jaxlite.core.context import context

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_is_library: dict[CodeType, bool] = {}


@final
@dataclasses.dataclass(frozen=True, slots=True)
class SourceInfo:
    """A line of the user's, and the transformations (innermost last) that derived an equation from it."""

    file: str
    line: int
    function: str
    transformations: tuple[str, ...] = ()
    names: tuple[str, ...] = ()

    def summary(self) -> str:
        """``file:line (function)``, the file without its folders."""
        return f"{os.path.basename(self.file)}:{self.line} ({self.function})" if self.file else ""

    def text(self) -> str:
        """The line itself, stripped; '' where the file is gone."""
        return linecache.getline(self.file, self.line).strip()

    def origin(self) -> str:
        """``transpose of jvp of line 4``, or ``line 4``."""
        return " of ".join([*reversed(self.transformations), f"line {self.line}"])


UNKNOWN = SourceInfo("", 0, "")


def is_library_code(code: CodeType) -> bool:
    """Whether ``code`` is jaxlite's own (its notebook half included), so not a line of the user's."""
    known = _is_library.get(code)
    if known is None:
        file = code.co_filename
        known = file.startswith(_PACKAGE) or file.startswith("<frozen") or f"{os.sep}jaxlite_jupyter{os.sep}" in file
        known = known or os.path.basename(file) in ("functools.py", "contextlib.py")
        _is_library[code] = known
    return known


def user_frame() -> FrameType | None:
    """The innermost frame of the stack that is not jaxlite's own."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_library_code(frame.f_code):
        frame = frame.f_back
    return frame


def current() -> SourceInfo:
    """Where the user is now; inside a rule applied to an equation, where that equation was written."""
    if context.source is not None:
        source = context.source
        if not context.transformation:
            return source
        return dataclasses.replace(source, transformations=source.transformations + context.transformation)
    frame = user_frame()
    if frame is None:
        return UNKNOWN
    code = frame.f_code
    return SourceInfo(code.co_filename, frame.f_lineno, code.co_name, context.transformation, context.name_stack)


class working_on:
    """A block in which equations stem from ``source``, by ``transformation``."""

    __slots__ = ("_before", "_source", "_transformation")

    def __init__(self, source: SourceInfo, transformation: str | None = None) -> None:
        self._source = source
        self._transformation = () if transformation is None else (transformation,)

    def __enter__(self) -> None:
        self._before = context.source, context.transformation
        context.source, context.transformation = self._source, self._transformation

    def __exit__(self, *exception: object) -> None:
        context.source, context.transformation = self._before


class made_by:
    """A block in which equations come from the user's line by ``transformation``."""

    __slots__ = ("_before", "_transformation")

    def __init__(self, transformation: str) -> None:
        self._transformation = transformation

    def __enter__(self) -> None:
        before = self._before = context.transformation
        if self._transformation not in before:
            context.transformation = (*before, self._transformation)

    def __exit__(self, *exception: object) -> None:
        context.transformation = self._before
