"""Layered layout of a graph with nested groups, group by group.

In: items (``id``, ``parent``, ``width``, ``height``), open groups and edges, as ``visible.py``
gives them. Out: the centre and size of every item and group, the layer of each within its group,
and the points that each edge runs through. ``static/graph.js`` does the same steps in the same
order, so that both give the same picture.

1. Within a group, edges between descendants are edges between its direct members.
2. A member's layer is the longest path to it; members without predecessors sink to their readers.
3. Edges over several layers get a dummy member in each layer between; so do those that come into
   the group from above, or leave it below. Where that would be too many, the longest edges are
   ``far``: drawn as stubs at their ends.
4. Layers are ordered by the mean position of their neighbours, sweeping down and up.
5. Positions are the least-squares fit to the neighbours' that keeps order and gaps.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, final

SWEEPS = 6
FEW_DUMMIES, DUMMIES_PER_MEMBER = 600, 3  # how many dummies a group may have
GAP = 18.0  # between members of a layer
LAYER_GAP = 34.0
PADDING = 14.0  # inside a group's frame
TITLE = 20.0  # room for a group's name
STUB = 14.0  # length of a far edge's stub
DUMMY = 6.0  # width that a passing edge takes

TOP, BOTTOM = "\ntop", "\nbottom"  # a group's borders, as ends of edges

Point = tuple[float, float]


@final
@dataclasses.dataclass
class Box:
    """Centre and size."""

    x: float
    y: float
    width: float
    height: float


@final
@dataclasses.dataclass
class Placed:
    """The picture: boxes by id, layers by id, and the points of each edge."""

    boxes: dict[str, Box]
    layers: dict[str, int]
    edges: list[tuple[str, str, list[Point]]]
    far: set[tuple[str, str]]
    width: float
    height: float


@final
@dataclasses.dataclass
class _Level:
    """One group's members laid out, relative to the group's upper left corner."""

    layers: dict[str, int]
    boxes: dict[str, Box]
    routes: dict[tuple[str, str], list[Point]]  # with TOP and BOTTOM for the group's borders
    far: set[tuple[str, str]]
    width: float
    height: float


def layout(
    items: Sequence[dict[str, Any]],
    groups: Sequence[dict[str, Any]],
    edges: Sequence[Sequence[str]],
) -> Placed:
    """Lays out the whole graph."""
    parent = {m["id"]: m["parent"] for m in (*items, *groups)}
    members: dict[str | None, list[str]] = {None: []}
    for group in groups:
        members[group["id"]] = []
    for member in (*items, *groups):
        members[member["parent"]].append(member["id"])
    paths = {m: _path(m, parent) for m in parent}
    projected: dict[str | None, dict[tuple[str, str], None]] = {g: {} for g in members}
    for a, b in edges:
        home, first, second = _common(paths[a], paths[b])
        if first != second:
            projected[home][first, second] = None
        for frame, inner in _inside(paths[a], home):
            projected[frame][inner, BOTTOM] = None
        for frame, inner in _inside(paths[b], home):
            projected[frame][TOP, inner] = None
    sizes = {i["id"]: (float(i["width"]), float(i["height"])) for i in items}
    levels: dict[str | None, _Level] = {}
    for group in sorted(groups, key=lambda g: -len(paths[g["id"]])):
        key = group["id"]
        level = _lay_level(members[key], list(projected[key]), sizes)
        title = 7.0 * len(group["label"]) + 2 * PADDING
        sizes[key] = (max(level.width + 2 * PADDING, title), level.height + 2 * PADDING + TITLE)
        levels[key] = level
    levels[None] = _lay_level(members[None], list(projected[None]), sizes)
    return _assemble(members, levels, sizes, paths, edges)


def _path(member: str, parent: dict[str, Any]) -> list[str]:
    """The member and the groups around it, outermost first."""
    path = [member]
    while parent[path[-1]] is not None:
        path.append(parent[path[-1]])
    return path[::-1]


def _common(a: list[str], b: list[str]) -> tuple[str | None, str, str]:
    """The innermost group around both, and the member of it on either side."""
    depth = 0
    while depth < len(a) - 1 and depth < len(b) - 1 and a[depth] == b[depth]:
        depth += 1
    return (a[depth - 1] if depth else None), a[depth], b[depth]


def _inside(path: list[str], home: str | None) -> list[tuple[str, str]]:
    """The groups on ``path`` below ``home``, outermost first, each with its member on the path."""
    start = 0 if home is None else path.index(home) + 1
    return list(zip(path[start:-1], path[start + 1 :], strict=True))


def _lay_level(members: list[str], edges: list[tuple[str, str]], sizes: dict[str, tuple[float, float]]) -> _Level:
    layers = layers_of(members, [e for e in edges if e[0] != TOP and e[1] != BOTTOM])
    last = max(layers.values(), default=-1)
    bordered = {**layers, TOP: -1, BOTTOM: last + 1}
    near = near_edges(members, edges, bordered)
    rows, links, chains = _with_dummies(members, near, bordered)
    widths = {m: sizes[m][0] if m in sizes else DUMMY for row in rows for m in row}
    _order(rows, links)
    x = _positions(rows, links, widths)
    boxes, y = dict[str, Box](), 0.0
    middles = []
    for row in rows:
        height = max((sizes[m][1] for m in row if m in sizes), default=0.0)
        middles.append(y + height / 2)
        for m in row:
            if m in sizes:
                boxes[m] = Box(x[m], y + height / 2, *sizes[m])
        y += height + LAYER_GAP
    routes = {
        edge: [(x[d], middles[layers.get(edge[0], -1) + 1 + i]) for i, d in enumerate(chain)]
        for edge, chain in chains.items()
    }
    right = max((x[m] + widths[m] / 2 for row in rows for m in row), default=0.0)
    far = set(edges) - set(near)
    return _Level(layers, boxes, routes, far, right, max(y - LAYER_GAP, 0.0))


def layers_of(members: Sequence[str], edges: Sequence[tuple[str, str]]) -> dict[str, int]:
    """The layer of each member: one below its lowest predecessor; edges that close a cycle wait."""
    before: dict[str, list[str]] = {m: [] for m in members}
    after: dict[str, list[str]] = {m: [] for m in members}
    for a, b in edges:
        before[b].append(a)
        after[a].append(b)
    waiting = {m: len(before[m]) for m in members}
    layers: dict[str, int] = {}
    ready = [m for m in members if waiting[m] == 0]
    queued = set(ready)
    done = 0
    while len(layers) < len(members):
        if done == len(ready):  # a cycle: break it at the first member that is left
            ready.append(next(m for m in members if m not in queued))
            queued.add(ready[-1])
        member = ready[done]
        done += 1
        layers[member] = 1 + max((layers[p] for p in before[member] if p in layers), default=-1)
        for reader in after[member]:
            waiting[reader] -= 1
            if waiting[reader] == 0 and reader not in queued:
                ready.append(reader)
                queued.add(reader)
    for member in members:  # what reads nothing stands just above its first reader
        if not before[member] and after[member]:
            layers[member] = max(0, min(layers[r] for r in after[member]) - 1)
    return layers


def near_edges(members: Sequence[str], edges: list[tuple[str, str]], layers: dict[str, int]) -> list[tuple[str, str]]:
    """The edges that are drawn as lines: the shortest, as far as the dummies go."""
    left = FEW_DUMMIES + DUMMIES_PER_MEMBER * len(members)
    near = set()
    for edge in sorted(edges, key=lambda e: layers[e[1]] - layers[e[0]]):
        left -= max(layers[edge[1]] - layers[edge[0]] - 1, 0)
        if left < 0:
            break
        near.add(edge)
    return [e for e in edges if e in near]


def _with_dummies(
    members: list[str], edges: list[tuple[str, str]], layers: dict[str, int]
) -> tuple[list[list[str]], list[tuple[str, str]], dict[tuple[str, str], list[str]]]:
    """Rows with dummies, links between neighbouring rows only, and each long edge's dummies."""
    rows: list[list[str]] = [[] for _ in range(layers[BOTTOM])]
    for member in members:
        rows[layers[member]].append(member)
    links: list[tuple[str, str]] = []
    chains: dict[tuple[str, str], list[str]] = {}
    for a, b in edges:
        chain = []
        last = a
        for layer in range(layers[a] + 1, layers[b]):
            dummy = f"{a}\n{b}\n{layer}"
            rows[layer].append(dummy)
            chain.append(dummy)
            if last != TOP:
                links.append((last, dummy))
            last = dummy
        if layers[a] < layers[b] and last != TOP and b != BOTTOM:
            links.append((last, b))
        if chain:
            chains[a, b] = chain
    return rows, links, chains


def _neighbours(links: list[tuple[str, str]]) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    above: dict[str, list[str]] = {}
    below: dict[str, list[str]] = {}
    for a, b in links:
        above.setdefault(b, []).append(a)
        below.setdefault(a, []).append(b)
    return above, below


def _mean(xs: list[float]) -> float:
    total = 0.0  # left to right, as JavaScript adds
    for x in xs:
        total += x
    return total / len(xs)


def _order(rows: list[list[str]], links: list[tuple[str, str]]) -> None:
    above, below = _neighbours(links)
    place = {m: float(i) for row in rows for i, m in enumerate(row)}
    for sweep in range(SWEEPS):
        near = above if sweep % 2 == 0 else below
        for row in rows if sweep % 2 == 0 else rows[::-1]:
            wanted = {m: _mean([place[n] for n in near[m]]) if m in near else place[m] for m in row}
            row.sort(key=wanted.__getitem__)
            for i, m in enumerate(row):
                place[m] = float(i)


def _positions(rows: list[list[str]], links: list[tuple[str, str]], widths: dict[str, float]) -> dict[str, float]:
    above, below = _neighbours(links)
    x: dict[str, float] = {}
    for row in rows:
        edge = 0.0
        for m in row:
            x[m] = edge + widths[m] / 2
            edge += widths[m] + GAP
    for sweep in range(SWEEPS):
        near = above if sweep % 2 == 0 else below
        for row in rows if sweep % 2 == 0 else rows[::-1]:
            wanted = [_mean([x[n] for n in near[m]]) if m in near else x[m] for m in row]
            x.update(zip(row, spread(wanted, [widths[m] for m in row]), strict=True))
    left = min((x[m] - widths[m] / 2 for m in x), default=0.0)
    return {m: value - left for m, value in x.items()}


def spread(wanted: Sequence[float], widths: Sequence[float]) -> list[float]:
    """The positions nearest to ``wanted`` (least squares) at which boxes stand apart, in order."""
    offsets, edge = [], 0.0
    for width in widths:
        offsets.append(edge + width / 2)
        edge += width + GAP
    blocks: list[tuple[float, int]] = []  # mean and count of boxes that touch each other
    for want, offset in zip(wanted, offsets, strict=True):
        mean, count = want - offset, 1
        while blocks and blocks[-1][0] > mean:
            other, size = blocks.pop()
            mean = (mean * count + other * size) / (count + size)
            count += size
        blocks.append((mean, count))
    means = [mean for mean, count in blocks for _ in range(count)]
    return [mean + offset for mean, offset in zip(means, offsets, strict=True)]


def _assemble(
    members: dict[str | None, list[str]],
    levels: dict[str | None, _Level],
    sizes: dict[str, tuple[float, float]],
    paths: dict[str, list[str]],
    edges: Sequence[Sequence[str]],
) -> Placed:
    """Moves every level to its place in the whole picture."""
    boxes: dict[str, Box] = {}
    corners: dict[str | None, Point] = {None: (0.0, 0.0)}
    layers: dict[str, int] = {}
    for key in sorted(members, key=lambda g: len(paths[g]) if g is not None else 0):
        level = levels[key]
        if key is not None:
            box = boxes[key]
            top = box.y - box.height / 2 + PADDING + TITLE
            corners[key] = (box.x - level.width / 2, top)
        left, top = corners[key]
        layers.update(level.layers)
        for m in members[key]:
            b = level.boxes[m]
            boxes[m] = Box(left + b.x, top + b.y, b.width, b.height)
    routes, far = [], set[tuple[str, str]]()
    for source, target in edges:
        home, first, second = _common(paths[source], paths[target])
        start, end = boxes[source], boxes[target]
        if (first, second) in levels[home].far:
            far.add((source, target))
            tip = end.y - end.height / 2
            routes.append((source, target, [(end.x - STUB, tip - STUB), (end.x, tip)]))
            continue
        points = [(start.x, start.y + start.height / 2)]
        legs: list[tuple[str | None, str, str]] = [(home, first, second)]
        legs[:0] = [(g, m, BOTTOM) for g, m in reversed(_inside(paths[source], home))]
        legs += [(g, TOP, m) for g, m in _inside(paths[target], home)]
        for group, above, below in legs:
            left, top = corners[group]
            points += [(left + x, top + y) for x, y in levels[group].routes.get((above, below), [])]
        points.append((end.x, end.y - end.height / 2))
        routes.append((source, target, points))
    return Placed(boxes, layers, routes, far, levels[None].width, levels[None].height)
