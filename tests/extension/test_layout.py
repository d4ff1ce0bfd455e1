"""The layout: layers go down, boxes stand apart, and JavaScript gives the same picture."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from jaxlite_jupyter.html.base import static_text
from jaxlite_jupyter.layout import DUMMIES_PER_MEMBER, FEW_DUMMIES, GAP, layout, spread
from jaxlite_jupyter.visible import visible


@st.composite
def payloads(draw: Any) -> dict[str, Any]:
    """Random graphs whose edges go from earlier nodes to later ones, in nested groups."""
    count = draw(st.integers(1, 24))
    groups = [
        {
            "id": f"g{i}",
            "label": f"group {i}",
            "parent": draw(st.sampled_from([None, *(f"g{j}" for j in range(i))])),
        }
        for i in range(draw(st.integers(0, 4)))
    ]
    homes = st.sampled_from([None, *(g["id"] for g in groups)])
    nodes = [
        {
            "id": f"n{i}",
            "label": "x" * draw(st.integers(0, 12)),
            "parent": draw(homes),
            "kind": "equation",
        }
        for i in range(count)
    ]
    pairs = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1))
    chosen = draw(st.sets(pairs.filter(lambda p: p[0] < p[1]), max_size=3 * count)) if count > 1 else []
    edges = [[f"n{a}", f"n{b}"] for a, b in sorted(chosen)]
    return {"nodes": nodes, "groups": groups, "edges": edges}


def closed_groups(payload: dict[str, Any]) -> st.SearchStrategy[list[str]]:
    """Some of the payload's groups."""
    ids = [g["id"] for g in payload["groups"]]
    return st.lists(st.sampled_from(ids), unique=True) if ids else st.just([])


def overlap(a: Any, b: Any) -> bool:
    near = 1e-6  # of rounding, in pixels
    across = abs(a.x - b.x) < (a.width + b.width) / 2 - near
    return across and abs(a.y - b.y) < (a.height + b.height) / 2 - near


@given(payloads(), st.data())
def test_boxes_stand_apart_and_lie_in_their_groups(payload, data):
    seen = visible(payload, data.draw(closed_groups(payload)))
    placed = layout(seen.items, seen.groups, seen.edges)
    members: dict[Any, list[str]] = {}
    for member in (*seen.items, *seen.groups):
        members.setdefault(member["parent"], []).append(member["id"])
    for home, inside in members.items():
        for a, b in itertools.combinations(inside, 2):
            assert not overlap(placed.boxes[a], placed.boxes[b]), (a, b)
        for key in inside if home is not None else ():
            box, frame = placed.boxes[key], placed.boxes[home]
            assert abs(box.x - frame.x) <= (frame.width - box.width) / 2 + 1e-6
            assert abs(box.y - frame.y) <= (frame.height - box.height) / 2 + 1e-6


@given(payloads())
def test_edges_go_down_where_nothing_is_grouped(payload):
    flat = {**payload, "groups": [], "nodes": [{**n, "parent": None} for n in payload["nodes"]]}
    seen = visible(flat)
    placed = layout(seen.items, seen.groups, seen.edges)
    assert all(placed.layers[a] < placed.layers[b] for a, b in seen.edges)


@given(st.lists(st.tuples(st.floats(-1e3, 1e3), st.floats(1, 200)), min_size=1, max_size=12))
def test_spread_keeps_order_and_gaps(boxes):
    wanted, widths = [w for w, _ in boxes], [s for _, s in boxes]
    xs = spread(wanted, widths)
    for (x, w), (y, v) in itertools.pairwise(zip(xs, widths, strict=True)):
        assert y - x >= (w + v) / 2 + GAP - 1e-6
    # Least squares with a free shift: moves to the right and to the left cancel.
    assert abs(sum(x - w for x, w in zip(xs, wanted, strict=True))) < 1e-6 * len(xs)


@pytest.fixture(scope="module")
def javascript(browser):
    """The layout of ``graph.js``, in a page."""
    page = browser.new_page()
    source = static_text("graph.js")
    page.evaluate(
        """async (source) => {
            const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
            window.graph = await import(url);
        }""",
        source,
    )

    def run(payload: dict[str, Any], closed: list[str]) -> Any:
        return page.evaluate(
            """([payload, closed]) => {
                const seen = graph.visible(payload, closed);
                const placed = graph.layout(seen.items, seen.groups, seen.edges);
                return { ...seen, shownAs: [...seen.shownAs], layers: [...placed.layers],
                         boxes: [...placed.boxes], routes: placed.edges };
            }""",
            [payload, closed],
        )

    yield run
    page.close()


@pytest.mark.browser
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(payloads(), st.data())
def test_javascript_gives_the_same_picture(javascript, payload, data):
    closed = data.draw(closed_groups(payload))
    seen = visible(payload, closed)
    placed = layout(seen.items, seen.groups, seen.edges)
    found = javascript(payload, closed)
    assert dict(found["shownAs"]) == seen.shown_as
    assert found["edges"] == seen.edges
    assert [i["id"] for i in found["items"]] == [i["id"] for i in seen.items]
    assert dict(found["layers"]) == placed.layers
    for key, box in dict(found["boxes"]).items():
        mine = placed.boxes[key]
        # The same operations in the same order: equal but for nothing; 1e-9 px is far below sight.
        assert abs(box["x"] - mine.x) < 1e-9 and abs(box["y"] - mine.y) < 1e-9
    assert {(a, b) for a, b, _, far in found["routes"] if far} == placed.far
    for (a, b, theirs, _), (source, target, points) in zip(found["routes"], placed.edges, strict=True):
        assert (a, b) == (source, target)
        flat = [c for point in theirs for c in point]
        assert flat == pytest.approx([c for point in points for c in point], abs=1e-9)


@pytest.mark.browser
def test_long_edges_of_a_large_graph_are_stubs_in_both(javascript):
    """A chain of 400 steps that all read one input: the input's line would pass every step."""
    count = 400
    names = ["w", *(f"n{i}" for i in range(count))]
    nodes = [{"id": n, "label": n, "parent": None, "kind": "equation"} for n in names]
    chain = [[a, b] for a, b in itertools.pairwise(names)]
    payload = {"nodes": nodes, "groups": [], "edges": [*chain, *(["w", n] for n in names[2:])]}
    seen = visible(payload)
    placed = layout(seen.items, seen.groups, seen.edges)
    drawn = sum(len(points) - 2 for _, _, points in placed.edges)
    assert drawn <= FEW_DUMMIES + DUMMIES_PER_MEMBER * len(names)
    assert {a for a, _ in placed.far} == {"w"} and not {tuple(e) for e in chain} & placed.far
    found = javascript(payload, [])
    assert {(a, b) for a, b, _, far in found["routes"] if far} == placed.far
