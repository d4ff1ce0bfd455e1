"""Where the time of one call goes, and that of one compilation: rows of (stage, seconds), and their text.

A call is taken apart by running it up to the end of each stage, many times in turn, and subtracting medians.
"""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, final

from jaxlite.inspect.quantities import duration_text

if TYPE_CHECKING:
    from jaxlite.compiler.report import CompileReport

ROUNDS = 41  # medians of so many
ROUND_SECONDS = 2e-4  # calls are repeated until a round takes about this long


@final
@dataclasses.dataclass(frozen=True)
class Split:
    """``rows``: stages in order, with seconds; ``what``: what was taken apart."""

    what: str
    rows: tuple[tuple[str, float], ...]

    @property
    def total(self) -> float:
        """Seconds of all stages."""
        return sum(seconds for _, seconds in self.rows)

    def __str__(self) -> str:
        width = max(len(stage) for stage, _ in self.rows)
        lines = [f"{self.what}: {duration_text(self.total)}"]
        for stage, seconds in self.rows:
            share = seconds / self.total if self.total else 0.0
            lines.append(f"  {stage:{width}}  {duration_text(max(seconds, 0.0)):>8}  {share:4.0%}")
        return "\n".join(lines)

    __repr__ = __str__


def call_split(function: Any, *args: Any, **kwargs: Any) -> Split:
    """Where a warm call of a jitted function goes: flatten, look-up, native code, results made arrays, the rest.

    ``ValueError`` where the function has static or donated arguments.

    >>> import jaxlite as jax, jaxlite.numpy as jnp
    >>> split = call_split(jax.jit(lambda x: x + 1), jnp.ones(3))
    >>> [stage for stage, _ in split.rows]
    ['flatten', 'look-up', 'native', 'wrap', 'enter']
    """
    if not hasattr(function, "stages_of_a_call"):
        raise TypeError(f"call_split takes a jitted function, got {function!r}: write jax.jit(it).")
    prefixes = {**function.stages_of_a_call(args, kwargs), "enter": lambda: function(*args, **kwargs)}
    medians = _medians(prefixes)
    rows, before = [], 0.0
    for stage, seconds in medians.items():
        rows.append((stage, seconds - before))
        before = seconds
    return Split(f"a call of {getattr(function, '__name__', 'a function')}", tuple(rows))


def _medians(functions: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """The median seconds of a call of each, measured in turn."""
    repeats = {}
    for name, function in functions.items():
        start, calls = time.perf_counter(), 0
        while calls < 3 or time.perf_counter() - start < ROUND_SECONDS:
            function()
            calls += 1
        repeats[name] = calls
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(ROUNDS):
        for name, function in functions.items():
            start = time.perf_counter()
            for _ in range(repeats[name]):
                function()
            seconds[name].append((time.perf_counter() - start) / repeats[name])
    return {name: statistics.median(values) for name, values in seconds.items()}


def compilation_split(report: CompileReport) -> Split:
    """Where a compilation went: trace, each pass (with the bodies of loops), emit, LLVM's stages; or, for a program
    loaded from the disk cache, fingerprint, read and link."""
    seconds = dict(report.seconds)
    rows = [("trace", seconds.pop("trace"))] if "trace" in seconds else []
    if seconds.pop("passes", None) is not None:
        passes: dict[str, float] = {}
        for record in report.passes:
            passes[record.name] = passes.get(record.name, 0.0) + record.seconds
        rows += [(f"pass {name}", taken) for name, taken in passes.items()]
    rows += list(seconds.items())
    return Split(f"{report.name}, {report.origin}", tuple(rows))
