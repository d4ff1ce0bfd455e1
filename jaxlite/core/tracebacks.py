"""Tracebacks in the user's terms: frames of jaxlite's own are taken out where an exception leaves it.

``jax_traceback_filtering``: "off" keeps every frame; every other value filters.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

from jaxlite.core import config
from jaxlite.core.source import is_library_code

F = TypeVar("F", bound=Callable[..., Any])


def filtered(traceback: TracebackType | None) -> TracebackType | None:
    """The same traceback without jaxlite's own frames."""
    kept: list[TracebackType] = []
    while traceback is not None:
        if not is_library_code(traceback.tb_frame.f_code):
            kept.append(traceback)
        traceback = traceback.tb_next
    result: TracebackType | None = None
    for tb in reversed(kept):
        result = TracebackType(result, tb.tb_frame, tb.tb_lasti, tb.tb_lineno)
    return result


def shorten(error: BaseException) -> None:
    """Takes jaxlite's frames out of an exception's traceback, and out of those that it came from."""
    if config.traceback_filtering.value == "off":
        return
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        current.__traceback__ = filtered(current.__traceback__)
        current = current.__cause__ or current.__context__


def boundary(function: F) -> F:
    """``function``, as users call it: what it raises carries their frames, and one of ours at most."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True  # IPython and pytest leave this frame out
        try:
            return function(*args, **kwargs)
        except Exception as error:
            shorten(error)
            raise

    return call  # type: ignore[return-value]
