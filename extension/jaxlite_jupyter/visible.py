"""Folding: which nodes and edges are seen while some groups are closed.

In: a graph payload and the ids of closed groups. Out: items to draw (nodes, and closed groups as
one item each) with sizes, open groups, and edges. ``static/graph.js`` has the same steps.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from typing import Any, final

HEIGHT = 28.0
MANY = 300  # nodes: above, nested jaxprs start closed


@final
@dataclasses.dataclass(frozen=True)
class Visible:
    """What is drawn."""

    items: list[dict[str, Any]]
    groups: list[dict[str, Any]]
    edges: list[list[str]]
    shown_as: dict[str, str]


def visible(payload: Mapping[str, Any], closed: Collection[str] = ()) -> Visible:
    """The part of the graph that is seen while the groups ``closed`` are folded."""
    groups = {g["id"]: g for g in payload["groups"]}
    shown_as = {n["id"]: _outermost(n["id"], n["parent"], groups, closed) for n in payload["nodes"]}
    items: dict[str, dict[str, Any]] = {}
    for node in payload["nodes"]:
        key = shown_as[node["id"]]
        if key not in items:
            item = groups.get(key, node)
            kind = "folded" if key in groups else node["kind"]
            items[key] = _item(key, item["label"], item["parent"], kind)
    edges: dict[tuple[str, str], None] = {}
    for a, b in payload["edges"]:
        if shown_as[a] != shown_as[b]:
            edges[shown_as[a], shown_as[b]] = None
    used = _ancestors(items.values(), groups)
    seen = [g for g in payload["groups"] if g["id"] in used]
    return Visible(list(items.values()), seen, [list(e) for e in edges], shown_as)


def initially_closed(payload: Mapping[str, Any]) -> list[str]:
    """The groups that a view starts with closed: none, but for large graphs."""
    if len(payload["nodes"]) <= MANY:
        return []
    return [g["id"] for g in payload["groups"]]


def _outermost(node: str, parent: str | None, groups: Mapping[str, Any], closed: Collection[str]) -> str:
    shown = node
    while parent is not None:
        if parent in closed:
            shown = parent
        parent = groups[parent]["parent"]
    return shown


def _ancestors(items: Any, groups: Mapping[str, Any]) -> set[str]:
    used: set[str] = set()
    for item in items:
        parent = item["parent"]
        while parent is not None:
            used.add(parent)
            parent = groups[parent]["parent"]
    return used


def _item(key: str, label: str, parent: str | None, kind: str) -> dict[str, Any]:
    width = max(46.0, 7.0 * len(label) + 18.0)
    item = {"id": key, "label": label, "parent": parent, "kind": kind}
    return {**item, "width": width, "height": HEIGHT}
