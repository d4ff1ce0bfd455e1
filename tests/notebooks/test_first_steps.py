"""The tutorial: runs, prints what the article prints, learns the digits, shows its views."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))


def printed(outputs):
    return "".join(o["text"] for o in outputs if o["output_type"] == "stream")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_is_committed_without_outputs(path):
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        assert not cell.get("outputs") and cell.get("execution_count") is None, cell["id"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        # The article's values, to the printed f32 digits but the last.
        ("grad", ["0.41997", "-0.63969", "0.6216"]),
        ("python", ["6.0 -1.0", "15.58", "80.0"]),
        ("jit", ["(5000, 5000) float32 True"]),
        ("vmap", ["(100, 100) float32", "1.622", "4.0889"]),
        ("pitfalls", [".at[0].set(5)", "[5. 0. 0.] [0. 0. 0.]", "tracing\n2.0 3.0 4.0"]),
    ],
)
def test_the_articles_programs_print_what_they_must(outputs, cell, expected):
    text = printed(outputs[cell])
    assert all(e in text for e in expected), text


@pytest.mark.long
def test_learns_to_read_digits(outputs):
    found = re.search(r"held-out accuracy ([\d.]+)%", printed(outputs["train"]))
    assert found is not None and float(found[1]) >= 95.0


@pytest.mark.long
def test_shows_the_loss_as_a_picture(outputs):
    assert any("image/png" in o.get("data", {}) for o in outputs["loss-plot"])


@pytest.mark.long
@pytest.mark.parametrize("cell", ["graph", "fusion"])
def test_shows_graph_and_kernels_for_every_reader(outputs, cell):
    (shown,) = outputs[cell]
    assert "Cell In[" in shown["data"]["text/plain"]
    assert shown["data"]["text/html"].startswith('<div class="jaxlite"')
    live = "application/vnd.jupyter.widget-view+json" in shown["data"]
    assert live == (cell == "graph")
