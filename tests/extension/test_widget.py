"""The live widget without a browser: a recording comm stands in for the front end."""

from __future__ import annotations

import base64

import numpy as np
import pytest

import jaxlite as jax
import jaxlite_jupyter
from jaxlite import lax


def program(x):
    return lax.sin(lax.mul(x, x))


@pytest.fixture
def view():
    return jaxlite_jupyter.graph(program, np.ones((2, 3), np.float32))


def test_selection_goes_to_python_and_back(sent, view):
    widget = view.widget
    opened = next(d["state"] for t, d in sent if t == "comm_open" and "payload" in d["state"])
    assert opened["payload"] == view.payload
    widget.set_state({"selected": "e1"})  # what a click in the front end does
    assert view.selected == "e1" and view.node["label"] == "sin"
    assert view.node["source"]["text"] == "return lax.sin(lax.mul(x, x))"
    before = len(sent)
    view.selected = "e0"
    assert sent[before][1]["state"] == {"selected": "e0"}


def test_an_unknown_node_is_refused(sent, view):
    with pytest.raises(KeyError, match="find\\(\\)"):
        view.selected = "nothing"


def test_folding_reaches_the_saved_picture(sent, view):
    cluster = view.payload["groups"][0]["id"]
    view.widget.set_state({"closed": [cluster]})
    assert f'id="{cluster}"' in view.svg() and 'id="e0"' not in view.svg()


def test_the_bundle_has_text_html_and_the_widget(sent, view):
    data, _ = view._repr_mimebundle_()
    assert set(data) == {
        "text/plain",
        "text/html",
        "application/vnd.jupyter.widget-view+json",
    }
    start = data["text/html"].index("base64,") + len("base64,")
    picture = data["text/html"][start : data["text/html"].index('"', start)]
    assert base64.b64decode(picture).startswith(b"<svg") and "<script" not in data["text/html"]


def test_find_looks_at_labels_and_equations(view):
    assert [n["label"] for n in view.find("sin")] == ["sin"]
    assert [n["label"] for n in view.find("f32[2,3]")] == ["x", "mul", "sin", "result"]


@pytest.mark.parametrize("suffix", [".html", ".svg", ".dot", ".txt"])
def test_saves(view, tmp_path, suffix):
    text = view.save(tmp_path / f"graph{suffix}").read_text("utf-8")
    assert "sin" in text


def test_saving_to_an_unknown_kind_says_which_there_are(view, tmp_path):
    with pytest.raises(ValueError, match=r"\.html, \.svg, \.dot, \.txt"):
        view.save(tmp_path / "graph.jpeg")


def test_a_jaxpr_is_shown_without_compiling():
    view = jaxlite_jupyter.graph(jax.make_jaxpr(program)(1.0))
    assert [n["label"] for n in view.payload["nodes"]] == ["x", "mul", "sin", "result"]
    assert view.payload["groups"] == []


def test_what_is_no_program_is_refused():
    with pytest.raises(TypeError, match=r"graph\(f, x\)"):
        jaxlite_jupyter.graph(3)
