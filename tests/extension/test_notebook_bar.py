"""The progress bar of a notebook: what widgets are told, and that they go."""

from __future__ import annotations

from jaxlite.core import progress
from jaxlite.core.progress import Progress
from jaxlite.core.source import UNKNOWN
from jaxlite_jupyter.progress import NotebookBar

LOOP = "jax.jit(lambda x: jax.lax.fori_loop(0, {}, lambda _, y: jnp.sin(jnp.sin(y)), x))(jnp.ones(1_000_000)).shape"


def test_a_long_run_in_a_notebook_shows_a_bar_and_takes_it_away(shell, sent, monkeypatch):
    monkeypatch.setattr(shell.ipython, "kernel", object(), raising=False)
    shell.run("%load_ext jaxlite\n%reload_ext jaxlite")
    result, _ = shell.run(LOOP.format(6_000))
    assert result == (1_000_000,)
    opened = [data for kind, data in sent if kind == "comm_open"]
    closed = [data for kind, data in sent if kind == "comm_close"]
    assert opened and len(opened) == len(closed)
    states = [data["state"] for kind, data in sent if kind == "comm_msg" and data.get("method") == "update"]
    labels = [state["value"] for state in states if isinstance(state.get("value"), str)]
    assert labels and all("fori_loop" in label and "/6,000" in label for label in labels)
    shares = [state["value"] for state in states if isinstance(state.get("value"), float)]
    assert shares == sorted(shares) and 0 < shares[-1] <= 1


def test_a_short_run_shows_none(shell, sent, monkeypatch):
    monkeypatch.setattr(shell.ipython, "kernel", object(), raising=False)
    shell.run("%reload_ext jaxlite")
    shell.run(LOOP.format(5))
    assert not sent


def test_ipython_in_a_terminal_has_the_terminals_bar_and_unloading_takes_the_notebooks_away(shell, monkeypatch):
    assert progress.make_display is None
    monkeypatch.setattr(shell.ipython, "kernel", object(), raising=False)
    shell.run("%reload_ext jaxlite")
    assert progress.make_display is not None
    shell.run("%unload_ext jaxlite")
    assert progress.make_display is None


def test_a_loop_whose_end_is_not_known(sent):
    bar = NotebookBar()
    bar.show(Progress("while_loop", UNKNOWN, 5000, None, 100.0, 50.0))
    assert bar.label.value == "5,000 iterations, 100/s, 50 s: while_loop"
    assert (bar.bar.value, bar.bar.bar_style) == (1.0, "info")
    bar.close()
    assert bar.box.comm is None
