"""What a partition did: each collective with its bytes, and each choice with what it was made against."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

from jaxlite.core.source import SourceInfo


@final
@dataclass(frozen=True)
class Communication:
    """One collective of one device's program: its kind, the mesh axes, the bytes that a device receives, for which
    operation it is, and the user's line.  ``times``: how often a loop runs it, where that is known."""

    kind: str
    axes: tuple[Any, ...]
    nbytes: int
    why: str
    source: SourceInfo
    times: int | None = 1

    def text(self) -> str:
        """``all_reduce over data: 1,024 bytes, for dot_general, train.py:12 (loss)``."""
        often = "" if self.times == 1 else " in a loop" if self.times is None else f", {self.times:,} times"
        where = self.source.summary()
        names = ", ".join(map(str, self.axes))
        return f"{self.kind} over {names}: {self.nbytes:,} bytes{often}, for {self.why}" + (
            f", {where}" if where else ""
        )
