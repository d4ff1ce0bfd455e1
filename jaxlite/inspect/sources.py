"""The user's lines as plain data.

In: ``SourceInfo`` of equations, and how to call a file (a notebook says ``Cell In[3]``). Out: dicts
whose ``key`` names the line within one payload, so that views can link line, equation and kernel.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, final

from jaxlite.core.source import SourceInfo

FileLabel = Callable[[str], str]


@final
class Lines:
    """Collects the lines that a payload speaks of, in the order of their first mention."""

    def __init__(self, file_label: FileLabel | None = None) -> None:
        self._label = file_label or os.path.basename
        self._keys: dict[tuple[str, int], str] = {}
        self.lines: list[dict[str, Any]] = []

    def add(self, source: SourceInfo | None) -> dict[str, Any] | None:
        """The line of ``source``, and what derived an equation from it; None if unknown."""
        if source is None or not source.file:
            return None
        key = self._keys.get((source.file, source.line))
        if key is None:
            key = f"L{len(self.lines)}"
            self._keys[source.file, source.line] = key
            label = f"{self._label(source.file)}, line {source.line}"
            line = {"key": key, "file": source.file, "line": source.line}
            self.lines.append({**line, "label": label, "text": source.text()})
        known = self.lines[int(key[1:])]
        return {
            "key": key,
            "label": known["label"],
            "text": known["text"],
            "function": source.function,
            "made_by": " of ".join(reversed(source.transformations)),
        }


def source_text(source: dict[str, Any] | None) -> str:
    """``Cell In[3], line 4, transpose of jvp``."""
    if source is None:
        return "no line of yours"
    made_by = f", {source['made_by']}" if source["made_by"] else ""
    return f"{source['label']}{made_by}"
