"""The graph as SVG text: a picture that needs neither scripts nor style sheets.

In: a graph payload, the closed groups, a selected node. Out: SVG.
"""

from __future__ import annotations

import base64
from collections.abc import Collection, Mapping
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from jaxlite_jupyter.layout import Box, Placed, Point, layout
from jaxlite_jupyter.visible import visible

MARGIN = 8.0
# kind -> fill, stroke
COLOURS = {
    "input": ("#e8f5e9", "#2e7d32"),
    "constant": ("#f1f8e9", "#689f38"),
    "result": ("#f3e5f5", "#7b1fa2"),
    "equation": ("#e3f2fd", "#1565c0"),
    "entry": ("#ede7f6", "#5e35b1"),
    "exit": ("#ede7f6", "#5e35b1"),
    "folded": ("#ffe0b2", "#ef6c00"),
}
# kind of group -> fill, stroke, dash
FRAMES = {"kernel": ("#fff8e1", "#ef6c00", "none"), "jaxpr": ("#f5f3fb", "#5e35b1", "5 4")}


def graph_svg(payload: Mapping[str, Any], closed: Collection[str] = (), selected: str = "") -> str:
    """The picture of ``payload``."""
    seen = visible(payload, closed)
    placed = layout(seen.items, seen.groups, seen.edges)
    depth = {g["id"]: 0 for g in payload["groups"]}
    for group in payload["groups"]:
        depth[group["id"]] = depth.get(group["parent"], -1) + 1
    parts = [_frame(g, placed.boxes[g["id"]]) for g in sorted(seen.groups, key=lambda g: depth[g["id"]])]
    labels = {i["id"]: i["label"] for i in seen.items}
    for source, target, points in placed.edges:
        parts.append(_edge(points, labels[source] if (source, target) in placed.far else None))
    parts += [_frame_title(g, placed.boxes[g["id"]]) for g in seen.groups]
    nodes = {n["id"]: n for n in payload["nodes"]}
    for item in seen.items:
        parts.append(_item(item, placed.boxes[item["id"]], nodes.get(item["id"]), selected))
    return _document(placed, payload["name"], parts)


def data_uri(svg: str) -> str:
    """The picture as an address, which survives where inline SVG is stripped."""
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()


def _document(placed: Placed, name: str, parts: list[str]) -> str:
    width, height = placed.width + 2 * MARGIN, placed.height + 2 * MARGIN
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="{-MARGIN:g} {-MARGIN:g} {width:.1f} {height:.1f}" role="img" '
        f'font-family="sans-serif" font-size="12">'
    )
    title = f"<title>{escape(f'graph of {name}')}</title>"
    back = f'<rect x="{-MARGIN:g}" y="{-MARGIN:g}" width="100%" height="100%" fill="#ffffff"/>'
    arrow = (
        '<defs><marker id="a" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0,0L8,4L0,8z" fill="#777"/></marker></defs>'
    )
    return "\n".join([head, title, arrow, back, *parts, "</svg>"])


def _frame(group: Mapping[str, Any], box: Box) -> str:
    fill, stroke, dash = FRAMES[group["kind"]]
    x, y = box.x - box.width / 2, box.y - box.height / 2
    return (
        f"<g><title>{escape(group['reason'] or group['label'])}</title>"
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" rx="8" '
        f'fill="{fill}" stroke="{stroke}" stroke-dasharray="{dash}"/></g>'
    )


def _frame_title(group: Mapping[str, Any], box: Box) -> str:
    """A group's name, above the edges that cross it."""
    fill, stroke, _ = FRAMES[group["kind"]]
    x, y = box.x - box.width / 2 + 8, box.y - box.height / 2 + 15
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="11" fill="{stroke}" stroke="{fill}" '
        f'stroke-width="4" paint-order="stroke">{escape(group["label"])}</text>'
    )


def _edge(points: list[Point], far_from: str | None) -> str:
    path = f'<path d="{curve(points)}" fill="none" stroke="#777" marker-end="url(#a)"'
    if far_from is None:
        return path + "/>"
    return f'{path} stroke-dasharray="3 2"><title>from {escape(far_from)}</title></path>'


def curve(points: list[Point]) -> str:
    """A path through ``points`` that leaves and enters each vertically."""
    x, y = points[0]
    path = [f"M{x:.1f},{y:.1f}"]
    for to_x, to_y in points[1:]:
        half = (to_y - y) / 2
        path.append(f"C{x:.1f},{y + half:.1f} {to_x:.1f},{to_y - half:.1f} {to_x:.1f},{to_y:.1f}")
        x, y = to_x, to_y
    return "".join(path)


def _item(item: Mapping[str, Any], box: Box, node: Mapping[str, Any] | None, selected: str) -> str:
    fill, stroke = COLOURS[item["kind"]]
    weight = 3 if item["id"] == selected else 1
    x, y = box.x - box.width / 2, box.y - box.height / 2
    about = node["equation"] if node is not None else item["label"]
    if node is not None and node["source"]:
        about += f"\n{node['source']['label']}: {node['source']['text']}"
    return (
        f"<g id={quoteattr(item['id'])}><title>{escape(about)}</title>"
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" rx="5" '
        f'fill="{fill}" stroke="{stroke}" stroke-width="{weight}"/>'
        f'<text x="{box.x:.1f}" y="{box.y + 4:.1f}" text-anchor="middle">'
        f"{escape(item['label'])}</text></g>"
    )
