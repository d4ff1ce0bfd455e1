"""The graph as DOT, through the graphviz package: for papers, and for Graphviz' own layouts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jaxlite_jupyter.svg import COLOURS, FRAMES


def graph_dot(payload: Mapping[str, Any]) -> Any:
    """A ``graphviz.Digraph``: ``.source`` is the text, ``.render()`` needs the dot program."""
    import graphviz

    dot = graphviz.Digraph(payload["name"], node_attr={"shape": "box", "style": "rounded,filled"})
    dot.attr(fontname="sans-serif", compound="true")
    _fill(dot, None, payload)
    for a, b in payload["edges"]:
        dot.edge(_name(a), _name(b))
    return dot


def _fill(dot: Any, parent: str | None, payload: Mapping[str, Any]) -> None:
    for node in payload["nodes"]:
        if node["parent"] == parent:
            fill, stroke = COLOURS[node["kind"]]
            types = ", ".join(v["type"] for v in node["values"])
            tooltip = node["source"]["label"] if node["source"] else node["equation"]
            label = f"{node['label']}\n{types}"
            dot.node(_name(node["id"]), label, fillcolor=fill, color=stroke, tooltip=tooltip)
    for group in payload["groups"]:
        if group["parent"] == parent:
            fill, stroke, _ = FRAMES[group["kind"]]
            with dot.subgraph(name=f"cluster_{_name(group['id'])}") as inner:
                inner.attr(label=group["label"], style="filled", fillcolor=fill, color=stroke)
                _fill(inner, group["id"], payload)


def _name(key: str) -> str:
    return "n_" + "".join(c if c.isalnum() else "_" for c in key)
