"""The sharding board in a shell: the magic, what a report shows, files."""

from __future__ import annotations

import pytest

from jaxlite_jupyter import ShardingView, sharding
from jaxlite_jupyter.views import TextView

SETUP = """
from jaxlite.core.device import device_of
from jaxlite.sharding import Mesh, NamedSharding, PartitionSpec as P
mesh = Mesh(np.array([device_of(n) for n in range(4)], object), "d")
x = jax.device_put(np.ones((8, 3), np.float32), NamedSharding(mesh, P("d")))
w = jnp.ones((3, 2))
loss = lambda w, x, scale=1.0: scale * jnp.mean((x @ w) ** 2)
step = jax.jit(jax.grad(loss))
"""


@pytest.fixture
def board(shell):
    shell.run(SETUP)
    return shell


def test_the_magic_shows_a_call_without_running_it(board):
    view, _ = board.run("%sharding step(w, *[x], scale=2.0)")
    assert type(view) is ShardingView
    assert "all_reduce over d" in view.text() and "measured" not in view.text()
    timed, _ = board.run("%sharding --measure step(w, x)")
    assert "(measured)" in timed.text() and "(measured)" in timed.html()
    plain, _ = board.run("%sharding loss(w, x)")
    assert "reduce_sum" in plain.text()
    report, _ = board.run("r = step.lower(w, x).compile().report\n%sharding r")
    assert report.text() == sharding(board.names["r"]).text()


def test_an_array_shows_its_parts(board):
    view, _ = board.run("%sharding x")
    assert type(view) is TextView and view.text().count("CPU") == 4


def test_files_and_reports(board, tmp_path):
    board.run("r = step.lower(w, x).compile().report")
    view = sharding(board.names["r"])
    page = view.save(tmp_path / "board.html").read_text("utf-8")
    assert "<html" in page and "all_reduce over d" in page and "Cell In" in page
    assert "<script" not in view.html()
    assert view.save(tmp_path / "board.txt").read_text("utf-8") == view.text()
    with pytest.raises(ValueError, match=r"use one of .html, .txt"):
        view.save(tmp_path / "board.png")
    bundle, _ = board.ipython.display_formatter.format(board.names["r"])
    assert "all_reduce over d" in bundle["text/plain"] and "Operations" in bundle["text/html"]


@pytest.mark.parametrize(
    ("line", "message"),
    [("", "takes an expression"), ("step(w,", "write %sharding"), ("step(nothing)", "nothing"), ("w + ", "write")],
)
def test_bad_lines(board, line, message):
    result, shown = board.attempt(f"%sharding {line}")
    text = str(result.error_in_exec or result.error_before_exec or shown.stdout + shown.stderr)
    assert message in text


def test_a_program_on_one_device_says_what_to_do(board):
    result, _ = board.attempt("%sharding step(w, np.ones((8, 3), np.float32))")
    assert "lay an argument out over a mesh first" in str(result.error_in_exec)


def test_unloading_takes_the_magic_away(board):
    board.run("%unload_ext jaxlite")
    assert "sharding" not in board.ipython.magics_manager.magics["line"]


def test_selection_goes_to_python(board, sent):
    view, _ = board.run("%sharding step(w, x)")
    assert view.operation is None
    view.widget.set_state({"selected": 0})  # what a click in the front end does
    assert view.operation["name"] == "dot_general"
    assert view.operation["operands"][0]["layout"] == [["d"], []]
    data, _ = view._repr_mimebundle_()
    assert set(data) == {"text/plain", "text/html", "application/vnd.jupyter.widget-view+json"}
