"""Saved HTML is read with scripts off and the network cut: a view's page, and the tutorial's."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import jaxlite as jax
import jaxlite.numpy as jnp
import jaxlite_jupyter
from jaxlite import lax
from jaxlite.core.device import device_of
from jaxlite.sharding import Mesh, NamedSharding, PartitionSpec as P
from tools.tutorial import html_command

pytestmark = pytest.mark.browser


def program(x):
    return lax.sin(lax.mul(x, x))


@pytest.fixture
def saved(tmp_path):
    view = jaxlite_jupyter.graph(program, np.ones((2, 3), np.float32))
    return view.save(tmp_path / "graph.html").as_uri()


def is_drawn(image):
    return image.evaluate("e => e.complete && e.naturalWidth > 0")


def test_a_saved_graph_is_read_without_scripts(saved, offline):
    page = offline(java_script_enabled=False)
    page.goto(saved)
    assert is_drawn(page.locator("img.jx-graph"))
    page.get_by_text("The 4 nodes").click()
    row = page.locator("tr", has_text="mul")
    text = row.last.inner_text()
    assert "f32[2,3]" in text and "24 B" in text and "lax.sin(lax.mul(x, x))" in text
    assert not page.refused


def test_pointing_at_a_line_lights_up_its_kernel_without_scripts(saved, offline):
    page = offline(java_script_enabled=False)
    page.goto(saved)
    page.get_by_text("The 4 nodes").click()
    row = page.locator("tr.L0", has_text="f32[2,3]").first
    colour = "e => getComputedStyle(e).backgroundColor"
    plain = row.evaluate(colour)
    page.locator("summary", has_text="Your lines").hover()
    assert row.evaluate(colour) == plain
    page.locator("span.L0").first.hover()
    assert row.evaluate(colour) != plain


def test_a_saved_graph_is_live_with_scripts(saved, offline):
    page = offline()
    page.goto(saved)
    graph = page.locator("[data-testid=jaxlite-graph][data-state=ready]")
    graph.locator("[data-node=e1]").click()
    assert graph.locator("[data-node=e1]").get_attribute("aria-pressed") == "true"
    assert "shape (2, 3), dtype float32, 24 B (predicted)" in graph.inner_text()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    assert graph.locator("[data-node=e0]").get_attribute("aria-pressed") == "true"
    graph.get_by_role("button", name="unfold all").wait_for()
    graph.get_by_role("button", name="fold all", exact=True).click()
    assert graph.locator("[data-node=e0]").count() == 0
    graph.locator("[data-node=K0]").dblclick()
    assert graph.locator("[data-node=e0]").count() == 1
    graph.get_by_label("find by name").fill("sin")
    assert "1 found" in graph.inner_text()
    assert not page.problems and not page.refused


@pytest.mark.long
def test_the_tutorial_is_read_without_scripts(python_path, offline, tmp_path):
    """What ``./tutorial --html`` leaves behind."""
    command = html_command(sys.executable, tmp_path / "tutorial.html")
    done = subprocess.run(command, env=python_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    page = offline(java_script_enabled=False)
    page.goto((tmp_path / "tutorial.html").as_uri())
    images = page.locator("img.jx-graph")
    assert images.count() == 2 and all(is_drawn(images.nth(i)) for i in range(2))
    page.get_by_text("The ", exact=False).locator("xpath=self::summary").last.click()
    assert page.locator("td code", has_text="log_softmax").first.is_visible()


@pytest.fixture
def board(tmp_path):
    mesh = Mesh(np.array([device_of(n) for n in range(4)], object).reshape(2, 2), ("a", "b"))
    x, w = (
        jax.device_put(np.ones((4, 4), np.float32), NamedSharding(mesh, spec)) for spec in (P("a", "b"), P("b", None))
    )
    view = jaxlite_jupyter.sharding(lambda x, w: jnp.tanh(x @ w), x, w)
    return view.save(tmp_path / "board.html").as_uri()


def test_a_saved_board_is_read_without_scripts(board, offline):
    page = offline(java_script_enabled=False)
    page.goto(board)
    row = page.locator("tr", has_text="dot_general").first
    assert "P('a', 'b'), P('b', None)" in row.inner_text() and "jnp.tanh(x @ w)" in row.inner_text()
    assert page.get_by_text("all_reduce over b").first.is_visible()
    assert not page.refused


def test_a_saved_board_is_live_with_scripts(board, offline):
    page = offline()
    page.goto(board)
    live = page.locator("[data-testid=jaxlite-board][data-state=ready]")
    live.locator("[data-operation='0']").click()
    assert live.locator("[data-operation='0']").get_attribute("aria-pressed") == "true"
    detail = live.locator("[data-testid=jaxlite-board-detail]")
    assert "f32[4,4] P('a', 'b')" in detail.inner_text() and "jnp.tanh(x @ w)" in detail.inner_text()
    # the left operand lies in four parts, the right one in two
    values = detail.locator(".jx-value")
    parts = [[c.split(": ")[1] for c in values.nth(n).locator(".jx-device").all_inner_texts()] for n in (0, 1)]
    assert parts == [["0", "1", "2", "3"], ["0", "1", "0", "1"]]
    live.locator("[data-operation='1']").focus()
    page.keyboard.press("Enter")
    assert live.locator("[data-operation='1']").get_attribute("aria-pressed") == "true"
    assert "all_reduce over b" in detail.inner_text()
    assert not page.problems and not page.refused
