"""Progress: how far the outermost loop of a running program is.

In: what native code tells 20 times a second, on the thread that runs the program, the interpreter lock held
(`tell`): numbers of the run, the program, its loop, and iterations. Out: a `Progress` for whoever watches: the
functions that `watching` was given, and a bar for runs longer than a second. Bars are displays: objects that `show`
a record and `close`; the one for terminals is imported when it is needed, a notebook installs its own.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import re
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias, final

from jaxlite.core import config
from jaxlite.core.jaxpr import ClosedJaxpr, JaxprEqn, subjaxprs
from jaxlite.core.source import UNKNOWN, SourceInfo

logger = logging.getLogger("jaxlite")

BAR_SECONDS = 1.0  # a run that takes longer gets a bar
BETWEEN_LOOPS, RUN_OVER = -1, -2  # what native code tells in place of a loop's number
_WORDS = re.compile(r"\b(fori_loop|while_loop|associative_scan|scan|map)\b")


@final
@dataclasses.dataclass(frozen=True, slots=True)
class Loop:
    """A loop: its kind, and where it is written; ``total`` iterations, None where nobody knows."""

    name: str
    source: SourceInfo
    total: int | None = None


Loops: TypeAlias = Callable[[], Sequence[Loop]]


@final
@dataclasses.dataclass(frozen=True, slots=True)
class Progress:
    """How far a loop is: ``done`` of ``total`` iterations (None where the number is not known), ``rate`` of them a
    second, ``elapsed`` seconds since it began.  ``name`` says which loop, ``source`` where it is written."""

    name: str
    source: SourceInfo
    done: int
    total: int | None
    rate: float
    elapsed: float

    @property
    def remaining(self) -> float | None:
        """Seconds until the end at this rate, where the number of iterations is known."""
        if self.total is None or not self.rate:
            return None
        return (self.total - self.done) / self.rate

    def __str__(self) -> str:
        of = "" if self.total is None else f"/{self.total:,}"
        where = f" {self.source.summary()}" if self.source.file else ""
        return f"{self.name}{where}: {self.done:,}{of} at {self.rate:,.4g}/s"


class Program(Protocol):
    """What native code tells of: ``loops()`` are those that it means by their numbers."""

    @property
    def loops(self) -> Loops: ...


class Display(Protocol):
    """A bar: shows one run's records, then goes."""

    def show(self, record: Progress) -> None: ...

    def close(self) -> None: ...


# -- loops and their names -------------------------------------------------------------------------


def loops_of(closed: ClosedJaxpr) -> list[Loop]:
    """The loops of a program, those inside others included, in the order of its equations."""
    found: list[Loop] = []
    for eqn in closed.jaxpr.eqns:
        if eqn.primitive.family in ("scan", "while_loop"):
            found.append(loop_of(eqn))
        for _, inner in subjaxprs(eqn.params):
            found += loops_of(inner)
    return found


def loop_of(eqn: JaxprEqn) -> Loop:
    """What an equation that is a loop is known by."""
    return Loop(eqn.primitive.name, eqn.source)


def name_of(loop: Loop) -> str:
    """The function that the user's line calls, where it says so, else the primitive's name."""
    word = _WORDS.search(loop.source.text())
    return word[1] if word else loop.name


# -- watching ---------------------------------------------------------------------------------------


class _Watching(threading.local):
    """Of one thread: its open blocks, and whether one of their functions is at work. A block lives as long as it is
    open: one that an interrupt ended before it could close is forgotten."""

    def __init__(self) -> None:
        self.blocks: tuple[weakref.ref[watching], ...] = ()
        self.busy = False

    def functions(self) -> list[Callable[[Progress], Any]]:
        """What to call, outermost first."""
        return [block.function for reference in self.blocks if (block := reference()) is not None]


_watching = _Watching()


@final
class watching:
    """A block in which ``function`` is called with a :class:`Progress` about 20 times a second, while programs that
    this thread runs are in loops.

    What it raises ends the program and is raised by its caller.

    >>> with watching(print):
    ...     pass
    """

    def __init__(self, function: Callable[[Progress], Any]) -> None:
        if not callable(function):
            raise TypeError(f"watching takes a function of one Progress, got {function!r}.")
        self.function = function
        self._before = _watching.blocks

    def __enter__(self) -> None:
        self._before = _watching.blocks
        _watching.blocks = (*self._before, weakref.ref(self))

    def __exit__(self, *exception: Any) -> None:
        _watching.blocks = self._before


make_display: Callable[[], Display | None] | None = None  # set by a notebook; None: the terminal's


@final
class _Run:
    """One run that native code has told of: the loop it is in, when that began, and the bar if it has one."""

    __slots__ = ("began", "display", "elapsed", "loop", "number", "program")

    def __init__(self, program: Program) -> None:
        self.program, self.number = program, BETWEEN_LOOPS
        self.loop = Loop("loop", UNKNOWN)
        self.began = self.elapsed = 0.0
        self.display: Display | None = None

    def enter(self, number: int) -> None:
        """Another loop than at the last look: it began since then."""
        known = self.program.loops()
        loop = known[number] if number < len(known) else Loop("loop", UNKNOWN)
        self.loop = dataclasses.replace(loop, name=name_of(loop))
        self.number, self.began = number, self.elapsed

    def record(self, done: int, elapsed: float) -> Progress:
        self.elapsed = elapsed
        seconds = elapsed - self.began
        return Progress(self.loop.name, self.loop.source, done, self.loop.total, done / (seconds or 1.0), seconds)


_runs: dict[int, _Run] = {}
_bar_of: list[int] = []  # the run that has the bar: one at a time


def tell(run: int, program: Program, loop: int, done: int, nanoseconds: int) -> None:
    """Called by native code: ``run``, so many nanoseconds old, is in ``loop`` of ``program``, ``done`` iterations
    on."""
    if loop == RUN_OVER:
        _over(run)
        return
    functions, bars = _watching.functions(), config.progress.value == "auto"
    if _watching.busy or not (functions or bars):
        return
    elapsed = nanoseconds / 1e9
    known = _runs.get(run)
    if known is None or known.program is not program or elapsed < known.elapsed:
        _over(run)  # one at the same place, whose end an interrupt kept from being heard of
        known = _runs[run] = _Run(program)
    if loop == BETWEEN_LOOPS:
        known.elapsed = elapsed
        return
    if known.number != loop:
        known.enter(loop)
    record = known.record(done, elapsed)
    _watching.busy = True
    try:
        for function in functions:
            function(record)
        if bars and elapsed >= BAR_SECONDS:
            _show(run, known, record)
    finally:
        _watching.busy = False


def _show(run: int, known: _Run, record: Progress) -> None:
    """Shows the bar, if it can be had: a display that fails is not asked again in this run."""
    if not _bar_of or _bar_of[0] not in _runs:
        _bar_of[:] = [run]
        try:
            known.display = _new_display()
        except Exception:
            _warn("The progress bar could not be made; this run goes on without.")
    if _bar_of[0] == run and known.display is not None:
        try:
            known.display.show(record)
        except Exception:
            _warn("The progress bar failed; this run goes on without.")
            known.display = None


def _new_display() -> Display | None:
    if make_display is not None:
        return make_display()
    try:
        if not sys.stderr.isatty():
            return None
    except (AttributeError, ValueError):  # there is none, something stands in for it, or it is closed
        return None
    from jaxlite.core.progress_bar import TerminalBar

    return TerminalBar(sys.stderr)


def _over(run: int) -> None:
    known = _runs.pop(run, None)
    if _bar_of and _bar_of[0] == run:
        _bar_of.clear()
    if known is not None and known.display is not None:
        try:
            known.display.close()
        except Exception:
            _warn("The progress bar could not be closed.")


def _warn(message: str) -> None:
    """Logs the exception that is being handled; where the log fails too, as it does on a closed stderr, nothing."""
    with contextlib.suppress(Exception):
        logger.warning(message, exc_info=True)
