"""What a partition did: each operation with its layouts, collectives and choice, each collective with its bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

from jaxlite.compiler.partition.layouts import Layout, Names
from jaxlite.core.avals import ShapedArray
from jaxlite.core.primitive import Primitive
from jaxlite.core.source import SourceInfo


@final
@dataclass(frozen=True)
class Communication:
    """One collective of one device's program: its kind, the mesh axes, the bytes that a device receives, for which
    operation it is, and the user's line.  ``times``: how often a loop runs it (None: not known).

    ``primitive`` with ``params`` on values of types ``avals`` is the collective itself.
    """

    kind: str
    axes: tuple[Any, ...]
    nbytes: int
    why: str
    source: SourceInfo
    times: int | None
    primitive: Primitive
    params: Mapping[str, Any]
    avals: tuple[ShapedArray, ...]

    def text(self) -> str:
        """``all_reduce over data: 1,024 bytes, for dot_general, train.py:12 (loss)``."""
        often = "" if self.times == 1 else " in a loop" if self.times is None else f", {self.times:,} times"
        where = self.source.summary()
        names = ", ".join(map(str, self.axes))
        text = f"{self.kind} over {names}: {self.nbytes:,} bytes{often}, for {self.why}"
        return f"{text}, {where}" if where else text


@final
@dataclass(frozen=True)
class Operation:
    """One equation: whole types, layouts and sums due of its operands and results, numbers of its collectives in the
    list of all, and its choice in words."""

    name: str
    source: SourceInfo
    operands: tuple[tuple[ShapedArray, Layout, Names], ...]
    results: tuple[tuple[ShapedArray, Layout, Names], ...]
    communications: tuple[int, ...]
    choice: str
