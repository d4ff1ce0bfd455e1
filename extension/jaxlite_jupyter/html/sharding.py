"""The sharding payload as HTML: the mesh, arrays with their parts, and what each operation moves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jaxlite_jupyter.html.base import block, details, lines_html, number_html, source_html, table, text


def sharding_html(payload: Mapping[str, Any]) -> str:
    """The view of ``payload``."""
    axes = ", ".join(f"{text(a['name'])}: {a['size']} ({text(a['type'].lower())})" for a in payload["mesh"])
    head = (
        f"<p><b>{text(payload['name'])}</b> over the mesh {axes}: each device holds {number_html(payload['held'])} at "
        f"most (predicted) and receives {number_html(payload['received'])} (predicted) in "
        f"{len(payload['communications'])} collectives</p>"
    )
    arrays = "".join(_arrays(title, payload[title]) for title in ("arguments", "results"))
    return block(payload, [head, lines_html(payload), arrays, _operations(payload)])


def _arrays(title: str, arrays: list[Mapping[str, Any]]) -> str:
    rows = [
        (
            "",
            [
                text(a["name"]), f"<code>{text(a['type'])}</code>", f"<code>{text(a['spec'])}</code>",
                f"<code>{text(a['local'])}</code>", number_html(a["bytes"]), f"<pre>{text(a['picture'])}</pre>",
            ],
        )
        for a in arrays
    ]  # fmt: skip
    head = ("array", "type", "spec", "on each device", "bytes (predicted)", "parts")
    return details(title.capitalize(), table(head, rows), is_open=True)


def _operations(payload: Mapping[str, Any]) -> str:
    rows = []
    for operation in payload["operations"]:
        moved = [payload["communications"][n] for n in operation["communications"]]
        key = operation["source"]["key"] if operation["source"] else ""
        specs = ", ".join(o["spec"] for o in operation["operands"])
        made = ", ".join(r["spec"] for r in operation["results"])
        cells = [f"<b>{text(operation['name'])}</b>", f"<code>{text(specs)}</code>", f"<code>{text(made)}</code>"]
        moves = "<br>".join(map(_communication, moved))
        rows.append((key, [*cells, moves, text(operation["choice"]), source_html(operation["source"])]))
    head = ("operation", "specs in", "specs out", "collectives", "chosen", "your line")
    return details("Operations", table(head, rows), is_open=True)


def _communication(communication: Mapping[str, Any]) -> str:
    seconds = communication["seconds"]
    taken = f", {number_html(seconds)} (measured)" if seconds else ""
    often = {1: "", None: " in a loop"}.get(communication["times"], f", {communication['times']} times")
    axes = text(", ".join(communication["axes"]))
    return f"{text(communication['kind'])} over {axes}: {number_html(communication['bytes'])} (predicted){taken}{often}"
