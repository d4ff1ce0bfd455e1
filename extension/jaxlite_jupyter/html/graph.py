"""The graph payload as HTML: the picture, then every node with type, bytes, line and kernel."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from jaxlite_jupyter.html.base import (
    block,
    details,
    lines_html,
    number_html,
    source_html,
    table,
    text,
)
from jaxlite_jupyter.svg import data_uri, graph_svg

MOST_ROWS = 1000
_HEAD = ("node", "type", "bytes (predicted)", "equation", "your line", "kernel")


def graph_html(payload: Mapping[str, Any], closed: Collection[str] = (), selected: str = "") -> str:
    """The view of ``payload``; groups that are ``closed`` are folded in the picture only."""
    picture = data_uri(graph_svg(payload, closed, selected))
    name, count = text(payload["name"]), len(payload["nodes"])
    image = f'<img class="jx-graph" alt="graph of {name}, {count} nodes" src="{picture}">'
    rows = [_row(node) for node in payload["nodes"][:MOST_ROWS]]
    title = f"The {count} nodes"
    if count > MOST_ROWS:
        title = f"The first {MOST_ROWS} of {count} nodes (all are in view.text())"
    parts = [
        f"<p><b>{name}</b>: {count} nodes, {len(payload['edges'])} edges</p>",
        f'<div class="jx-scroll">{image}</div>',
        lines_html(payload),
        details(title, table(_HEAD, rows)),
    ]
    return block(payload, parts)


def _row(node: Mapping[str, Any]) -> tuple[str, list[str]]:
    keys = [node["source"]["key"]] if node["source"] else []
    keys += [node["kernel"]] if node["kernel"] else []
    kernel = text(node["kernel_name"] or "")
    if node["recomputed_in"] and not node["kernel"]:
        kernel = f"recomputed in {text(', '.join(node['recomputed_in']))}"
    cells = [
        f"<b>{text(node['label'])}</b>",
        "<br>".join(text(v["type"]) for v in node["values"]),
        "<br>".join(number_html(v["bytes"]) for v in node["values"]),
        f"<pre>{text(node['equation'])}</pre>",
        source_html(node["source"]),
        kernel,
    ]
    return " ".join(keys), cells
