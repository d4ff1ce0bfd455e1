"""Elementwise primitives whose scalar formula is one opcode of the emitter and whose NumPy side is one function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from jaxlite.lax.families.elementwise import Elementwise


class Mapped(Elementwise):
    """Base of such primitives: a member names ``opcode`` and ``function`` and writes ``partials``."""

    opcode: ClassVar[str]
    function: ClassVar[Callable[..., Any]]

    def scalar(self, e: Any, *xs: Any, **params: Any) -> Any:
        return getattr(e, self.opcode)(*xs)

    def numpy(self, *xs: Any, **params: Any) -> Any:
        return type(self).function(*xs)
