"""Progress of loops: what is told, to whom, and the bar in a terminal."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
import threading

import numpy as np
import pytest

import jaxlite as jax
import jaxlite.numpy as jnp
from jaxlite import lax
from jaxlite.core import progress
from jaxlite.core.config import config
from jaxlite.core.progress_bar import bar_text, duration
from jaxlite.core.source import UNKNOWN, SourceInfo
from jaxlite.inspect import Progress, watching


class Enough(Exception):
    """Ends a loop that would take long."""


def first_records(run, count: int = 4) -> list[Progress]:
    """The first records of a run, which is then ended."""
    records: list[Progress] = []

    def note(record: Progress) -> None:
        records.append(record)
        if len(records) == count:
            raise Enough

    with watching(note), pytest.raises(Enough):
        run()
    return records


def line_of(record: Progress) -> str:
    assert record.source.file == __file__
    return record.source.text()


def check_counts(records: list[Progress], total: int | None) -> None:
    done = [r.done for r in records]
    assert done == sorted(done) and done[0] >= 0 and done[-1] > done[0]
    assert all(r.total == total and r.elapsed > 0 for r in records)
    assert all(r.rate == r.done / r.elapsed for r in records)


def test_a_scan():
    f = jax.jit(lambda x: lax.scan(lambda c, _: (jnp.sin(c), None), x, None, length=50_000_000))
    records = first_records(lambda: f(jnp.ones(100)))
    check_counts(records, 50_000_000)
    assert {r.name for r in records} == {"scan"}
    assert "lax.scan(" in line_of(records[0])
    assert records[0].remaining is None or records[0].remaining > 0


def test_a_fori_loop_with_fixed_and_with_traced_bounds():
    body = lambda _, y: jnp.sin(y)
    fixed = jax.jit(lambda x: lax.fori_loop(0, 70_000_000, body, x))
    records = first_records(lambda: fixed(jnp.ones(100)))
    check_counts(records, 70_000_000)
    assert records[0].name == "fori_loop" and "70_000_000" in line_of(records[0])
    traced = jax.jit(lambda n, x: lax.fori_loop(0, n, body, x))
    records = first_records(lambda: traced(70_000_000, jnp.ones(100)))
    check_counts(records, None)
    assert records[0].name == "fori_loop" and records[0].remaining is None


def test_a_while_loop():
    f = jax.jit(lambda x: lax.while_loop(lambda v: v >= 0, lambda v: v + 0.0, x))
    records = first_records(lambda: f(1.0))
    check_counts(records, None)
    assert records[0].name == "while_loop"


def test_the_outermost_loop_is_told_of_while_kernels_of_the_pool_run():
    inner = lambda c, _: (lax.fori_loop(0, 100, lambda _, y: jnp.sin(y), c), None)
    f = jax.jit(lambda x: lax.scan(inner, x, None, length=123_456))
    records = first_records(lambda: f(jnp.ones(200_000)), 8)
    assert {(r.name, r.total) for r in records} == {("scan", 123_456)}


def test_loops_one_after_the_other():
    def both(x):
        x = lax.fori_loop(0, 1_000_000, lambda _, y: jnp.sin(y), x)
        return lax.scan(lambda c, _: (jnp.cos(c), None), x, None, length=90_000_000)

    seen: list[Progress] = []

    def note(record):
        seen.append(record)
        if record.total == 90_000_000:
            raise Enough

    with watching(note), pytest.raises(Enough):
        jax.jit(both)(jnp.ones(400))
    assert [r.total for r in seen[:-1]] == [1_000_000] * (len(seen) - 1) and len(seen) > 1
    assert seen[-1].elapsed <= 0.2 + seen[-1].done / 1e5  # counted from the second loop's beginning, nearly


def test_what_a_watcher_raises_ends_the_run_and_the_next_run_is_right():
    f = jax.jit(lambda n, x: lax.fori_loop(0, n, lambda _, y: y * 0.5 + 1.0, x))

    def fail(record):
        raise LookupError(record.name)

    with watching(fail), pytest.raises(LookupError, match="fori_loop"):
        f(2_000_000_000, 1.0)
    assert f(50, 1.0) == 2.0


def test_a_watcher_may_run_programs_and_watchers_nest():
    loop = jax.jit(lambda x: lax.fori_loop(0, 100_000_000, lambda _, y: jnp.sin(y), x))
    sums, outer = [], []

    def note(record):
        sums.append(float(jnp.sum(jnp.ones(300_000))))
        if len(sums) == 3:
            raise Enough

    with watching(outer.append):
        with watching(note), pytest.raises(Enough):
            loop(jnp.ones(200_000))
        assert len(outer) == 3
    assert sums == [300_000.0] * 3


def test_only_the_watching_threads_runs_are_told():
    loop = jax.jit(lambda x: lax.fori_loop(0, 600, lambda _, y: jnp.sin(y), x))
    seen: list[Progress] = []
    with watching(seen.append):
        other = threading.Thread(target=loop, args=(jnp.ones(200_000),))
        other.start()
        other.join(60)
    assert not seen


def test_programs_loaded_from_disk_know_their_loops(tmp_path):
    script = tmp_path / "training.py"
    lines = [
        "import jaxlite as jax, jaxlite.numpy as jnp",
        "from jaxlite.inspect import watching",
        "f = jax.jit(lambda x: jax.lax.fori_loop(0, 80_000_000, lambda _, y: jnp.sin(y), x))",
        "def note(record):",
        "    raise SystemExit(str((record.source.line, record.name, record.total)))",
        "with watching(note):",
        "    f(jnp.ones(100))",
    ]
    environment = {**os.environ, "JAXLITE_CACHE_DIR": str(tmp_path / "cache"), "JAX_ENABLE_COMPILATION_CACHE": "1"}
    for blank in (0, 0, 2):  # compiled; loaded; loaded after the lines have moved
        script.write_text("\n" * blank + "\n".join(lines))
        done = subprocess.run(
            [sys.executable, str(script)], capture_output=True, text=True, timeout=120, env=environment
        )
        assert done.stderr == f"({3 + blank}, 'fori_loop', 80000000)\n"


def test_not_a_function():
    with pytest.raises(TypeError, match="takes a function of one Progress, got 3"):
        watching(3)


# -- bars ---------------------------------------------------------------------------------------------


class Recorded:
    """A display that notes what it is asked to do."""

    def __init__(self) -> None:
        self.shown: list[Progress] = []
        self.closed = 0

    def show(self, record: Progress) -> None:
        self.shown.append(record)

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def display(monkeypatch):
    recorded = Recorded()
    monkeypatch.setattr(progress, "make_display", lambda: recorded)
    return recorded


def long_loop():
    """About two seconds."""
    return jax.jit(lambda x: lax.fori_loop(0, 4_000, lambda _, y: jnp.sin(jnp.sin(y)), x))(jnp.ones(1_000_000))


def test_a_bar_appears_after_a_second_and_is_closed(display):
    long_loop()
    assert display.shown and display.closed == 1
    assert display.shown[0].elapsed >= 0.8
    jax.jit(lambda x: lax.fori_loop(0, 10, lambda _, y: jnp.sin(y), x))(jnp.ones(100_000))
    assert display.closed == 1


def test_a_bar_is_closed_when_the_run_fails(display):
    def fail(record):
        if record.elapsed > 1.3:
            raise Enough

    with watching(fail), pytest.raises(Enough):
        jax.jit(lambda x: lax.while_loop(lambda v: v >= 0, lambda v: v + 0.0, x))(1.0)
    assert display.shown and display.closed == 1


def test_the_flag_switches_bars_off(display):
    before = config.jaxlite_progress
    try:
        config.update("jaxlite_progress", "off")
        long_loop()
    finally:
        config.update("jaxlite_progress", before)
    assert not display.shown and not display.closed
    with pytest.raises(ValueError, match="jaxlite_progress takes one of 'auto', 'off', not 'on'"):
        config.update("jaxlite_progress", "on")


def test_a_display_that_fails_does_not_end_the_run(display, monkeypatch, caplog):
    monkeypatch.setattr(display, "show", lambda record: 1 / 0)
    assert np.isfinite(np.asarray(long_loop())).all()
    assert "progress bar failed" in caplog.text


@pytest.mark.parametrize("closed", [False, True])
def test_what_stands_in_for_stderr_need_not_be_a_stream(monkeypatch, closed):
    class Sink:
        def write(self, text):
            if closed:
                raise ValueError("I/O operation on closed file.")

        flush = write

    monkeypatch.setattr(sys, "stderr", Sink())
    assert np.isfinite(np.asarray(long_loop())).all()


def test_a_display_that_cannot_be_made_or_closed_or_complained_of_does_not_end_the_run(monkeypatch):
    stream = open(os.devnull, "w")
    stream.close()
    monkeypatch.setattr(sys, "stderr", stream)
    assert np.isfinite(np.asarray(long_loop())).all()
    handler = logging.StreamHandler(stream)
    logging.getLogger("jaxlite").addHandler(handler)
    try:
        recorded = Recorded()
        for name, display in {"make": lambda: 1 / 0, "show": lambda: recorded, "close": lambda: recorded}.items():
            monkeypatch.setattr(progress, "make_display", display)
            monkeypatch.setattr(recorded, name, lambda *_: 1 / 0, raising=False)
            assert np.isfinite(np.asarray(long_loop())).all()
    finally:
        logging.getLogger("jaxlite").removeHandler(handler)


TERMINAL = """
import sys
import jaxlite as jax, jaxlite.numpy as jnp
assert "jaxlite.core.progress_bar" not in sys.modules
jax.jit(lambda x: jax.lax.fori_loop(0, 6_000, lambda _, y: jnp.sin(jnp.sin(y)), x))(jnp.ones(1_000_000))
print("done", "jaxlite.core.progress_bar" in sys.modules)
"""


def test_the_bar_of_a_terminal():
    pty = pytest.importorskip("pty")
    leader, follower = pty.openpty()
    process = subprocess.Popen([sys.executable, "-c", TERMINAL], stdout=subprocess.PIPE, stderr=follower)
    os.close(follower)
    written = b""
    while True:
        try:
            piece = os.read(leader, 4096)
        except OSError:  # Linux: the other end is closed
            break
        if not piece:
            break
        written += piece
    os.close(leader)
    output, _ = process.communicate(timeout=60)
    assert output == b"done True\n"
    drawn = written.decode().split("\r\x1b[K")
    assert drawn[0] == "" and drawn[-1] == ""  # nothing before the first, nothing left after the last
    assert len(drawn) > 3
    assert all(re.fullmatch(r"\[#* *\] \d+% [\d,]+/6,000, .*/s.*", text) for text in drawn[1:-1]), drawn


def test_no_bar_where_stderr_is_no_terminal():
    done = subprocess.run([sys.executable, "-c", TERMINAL], capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("done False\n", "")


@pytest.mark.parametrize(
    ("record", "text"),
    [
        (
            Progress("scan", SourceInfo("/a/train.py", 12, "main"), 30, 120, 10.0, 3.0),
            "[######                  ] 25% 30/120, 10/s, 9 s left: scan train.py:12 (main)",
        ),
        (
            Progress("while_loop", UNKNOWN, 1_000_000, None, 5000.0, 200.0),
            "1,000,000 iterations, 5,000/s, 3 min 20 s: while_loop",
        ),
        (Progress("scan", UNKNOWN, 0, 10, 0.0, 2.0), "[                        ] 0% 0/10, 0/s: scan"),
        (Progress("scan", UNKNOWN, 10, 10, 5.0, 2.0), "[########################] 100% 10/10, 5/s, 0 s left: scan"),
    ],
)  # fmt: skip
def test_the_text_of_a_bar(record, text):
    assert bar_text(record) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (59.6, "1 min 0 s"), (3600, "1 h 0 min"), (7325, "2 h 2 min")]
)
def test_durations(seconds, text):
    assert duration(seconds) == text
