"""Blocks that change how what is in them is traced: names for its equations, or no tracing at all."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

from jaxlite.core.context import context
from jaxlite.core.trace import current_trace


@contextlib.contextmanager
def named_scope(name: str) -> Iterator[None]:
    """Equations traced in the block carry ``name``, which views and reports show.

    >>> with named_scope("attention"):
    ...     pass
    """
    if not isinstance(name, str):
        raise TypeError(f"named_scope name argument must be a string, got {name!r}.")
    before = context.name_stack
    context.name_stack = (*before, name)
    try:
        yield
    finally:
        context.name_stack = before


def named_call(fun: Callable[..., Any], *, name: str | None = None) -> Callable[..., Any]:
    """``fun`` inside a :func:`named_scope` of its own name."""
    label = name if name is not None else getattr(fun, "__name__", "call")

    @functools.wraps(fun, updated=())
    def named(*args: Any, **kwargs: Any) -> Any:
        with named_scope(label):
            return fun(*args, **kwargs)

    return named


@contextlib.contextmanager
def ensure_compile_time_eval() -> Iterator[None]:
    """What is computed in the block is computed now, also inside ``jit``: its operands must be known."""
    with current_trace(None):
        yield
