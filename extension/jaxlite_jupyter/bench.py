"""``%%jit --bench N``: the compiled cell beside the cell as Python runs it."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any, final

from jaxlite.inspect.quantities import amount_text, measured
from jaxlite_jupyter.html.base import number_html, static_text, table, text


@final
class BenchView:
    """Measured times of a cell, compiled and not; medians and the fastest of each."""

    def __init__(self, runs: int, compiled: list[float], plain: list[float], first: float) -> None:
        self.runs = runs
        self.rows = {
            "compiled": _row(compiled),
            "uncompiled": _row(plain),
            "trace and compile, once": {"median": measured(first, "s"), "fastest": None},
        }
        self.ratio = statistics.median(plain) / statistics.median(compiled)

    def text(self) -> str:
        """The table in words."""
        lines = [f"measured, {self.runs} runs each; compiled is {self.ratio:.3g} times as fast"]
        for name, row in self.rows.items():
            fastest = f", fastest {amount_text(row['fastest'])}" if row["fastest"] else ""
            lines.append(f"  {name}: {amount_text(row['median'])}{fastest}")
        return "\n".join(lines)

    def html(self) -> str:
        """The table as HTML."""
        rows = [("", [text(n), number_html(r["median"]), number_html(r["fastest"])]) for n, r in self.rows.items()]
        head = f"<p>{text(self.text().splitlines()[0])}</p>"
        body = table(("cell", "median (measured)", "fastest (measured)"), rows)
        style = f"<style>{static_text('style.css')}</style>"
        return f'<div class="jaxlite">{style}{head}{body}</div>'

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": self.text(), "text/html": self.html()}

    def __repr__(self) -> str:
        return self.text()


def _row(seconds: list[float]) -> dict[str, Any]:
    median = measured(statistics.median(seconds), "s")
    return {"median": median, "fastest": measured(min(seconds), "s")}


def times(run: Callable[[], Any], runs: int) -> list[float]:
    """The seconds of ``runs`` runs, after one that is not counted."""
    run()
    seconds = []
    for _ in range(runs):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return seconds
