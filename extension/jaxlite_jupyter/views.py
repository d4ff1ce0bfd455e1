"""Views: what a cell shows of a function's graph and kernels.

In: a function with arguments, a jaxpr, or a compile report. Out: an object that a notebook shows
as a live widget, as HTML where nothing runs, and as text elsewhere; ``save`` writes it to a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, final

import jaxlite
from jaxlite.compiler.report import CompileReport
from jaxlite.core.array import Array
from jaxlite.core.jaxpr import ClosedJaxpr
from jaxlite.core.sharding_drawing import drawing
from jaxlite.inspect import (
    fusion_payload,
    fusion_text,
    graph_payload,
    graph_text,
    sharding_payload,
    sharding_text,
)
from jaxlite_jupyter.dot import graph_dot
from jaxlite_jupyter.html import fusion_html, graph_html, page, sharding_html, text_html
from jaxlite_jupyter.labels import file_label
from jaxlite_jupyter.live import standalone
from jaxlite_jupyter.svg import graph_svg
from jaxlite_jupyter.visible import initially_closed

Bundle = tuple[dict[str, Any], dict[str, Any]]


@final
class GraphView:
    """A traced graph, with its kernels as clusters.

    ``selected`` is the id of the node that was last clicked, ``node`` its data (None before).
    """

    def __init__(self, payload: Mapping[str, Any]) -> None:
        self.payload = dict(payload)
        self._selected = ""
        self._closed = initially_closed(payload)
        self._widget: Any = None

    @property
    def selected(self) -> str:
        """The id of the selected node or folded group; "" if there is none."""
        return str(self._widget.selected) if self._widget is not None else self._selected

    @selected.setter
    def selected(self, key: str) -> None:
        known = [n["id"] for n in (*self.payload["nodes"], *self.payload["groups"])]
        if key and key not in known:
            raise KeyError(f"No node {key!r}: find() looks nodes up by name; ids are {known[:8]}.")
        self._selected = key
        if self._widget is not None:
            self._widget.selected = key

    @property
    def node(self) -> dict[str, Any] | None:
        """The selected node's data: label, equation, values, source, kernel."""
        chosen = self.selected
        return next((n for n in self.payload["nodes"] if n["id"] == chosen), None)

    @property
    def closed(self) -> list[str]:
        """The folded groups' ids."""
        return list(self._widget.closed) if self._widget is not None else list(self._closed)

    def find(self, name: str) -> list[dict[str, Any]]:
        """The nodes whose label or equation contains ``name``."""
        return [n for n in self.payload["nodes"] if name in n["label"] or name in n["equation"]]

    @property
    def widget(self) -> Any:
        """The live view: an anywidget."""
        if self._widget is None:
            from jaxlite_jupyter.widget import GraphWidget

            self._widget = GraphWidget(payload=self.payload, selected=self._selected, closed=self._closed)
        return self._widget

    def svg(self) -> str:
        """The picture as SVG text."""
        return graph_svg(self.payload, self.closed, self.selected)

    def dot(self) -> Any:
        """The graph as a ``graphviz.Digraph``."""
        return graph_dot(self.payload)

    def html(self) -> str:
        """The view as HTML without scripts."""
        return graph_html(self.payload, self.closed, self.selected)

    def text(self) -> str:
        """The view in words."""
        return graph_text(self.payload)

    def save(self, path: str | Path) -> Path:
        """Writes the view: ``.html`` (live where scripts run), ``.svg``, ``.dot`` or ``.txt``."""
        title = f"graph of {self.payload['name']}"
        return _write(
            path,
            {
                ".html": lambda: page(
                    title,
                    standalone({"payload": self.payload, "selected": "", "closed": self.closed}, "graph.js")
                    + self.html(),
                ),
                ".svg": self.svg,
                ".dot": lambda: str(self.dot().source),
                ".txt": self.text,
            },
        )

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Bundle:
        data, metadata = _widget_bundle(self)
        return {**data, "text/plain": self.text(), "text/html": self.html()}, metadata

    def __repr__(self) -> str:
        return f"<GraphView of {self.payload['name']}: {len(self.payload['nodes'])} nodes>"


@final
class FusionView:
    """The kernels of a compiled program, what is in each, and why each boundary is there."""

    def __init__(self, payload: Mapping[str, Any]) -> None:
        self.payload = dict(payload)

    def html(self) -> str:
        """The view as HTML without scripts."""
        return fusion_html(self.payload)

    def text(self) -> str:
        """The view in words."""
        return fusion_text(self.payload)

    def save(self, path: str | Path) -> Path:
        """Writes the view: ``.html`` or ``.txt``."""
        title = f"kernels of {self.payload['name']}"
        return _write(path, {".html": lambda: page(title, self.html()), ".txt": self.text})

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Bundle:
        return {"text/plain": self.text(), "text/html": self.html()}, {}

    def __repr__(self) -> str:
        kernels = len(self.payload["kernels"])
        return f"<FusionView of {self.payload['name']}: {kernels} kernels and steps>"


@final
class ShardingView:
    """The sharding board: how arrays lie on a mesh, what each operation moves, what a device holds.

    ``operation`` is the data of the one that was last clicked (None before).
    """

    def __init__(self, payload: Mapping[str, Any]) -> None:
        self.payload = dict(payload)
        self._widget: Any = None

    @property
    def operation(self) -> dict[str, Any] | None:
        """The selected operation's data: specs, collectives, choice, source."""
        number = -1 if self._widget is None else self._widget.selected
        return self.payload["operations"][number] if 0 <= number < len(self.payload["operations"]) else None

    @property
    def widget(self) -> Any:
        """The live view: an anywidget."""
        if self._widget is None:
            from jaxlite_jupyter.widget import BoardWidget

            self._widget = BoardWidget(payload=self.payload)
        return self._widget

    def html(self) -> str:
        """The view as HTML without scripts."""
        return sharding_html(self.payload)

    def text(self) -> str:
        """The view in words."""
        return sharding_text(self.payload)

    def save(self, path: str | Path) -> Path:
        """Writes the view: ``.html`` or ``.txt``."""
        title = f"sharding of {self.payload['name']}"
        live = standalone({"payload": self.payload, "selected": -1}, "board.js")
        return _write(path, {".html": lambda: page(title, live + self.html()), ".txt": self.text})

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Bundle:
        data, metadata = _widget_bundle(self)
        return {**data, "text/plain": self.text(), "text/html": self.html()}, metadata

    def __repr__(self) -> str:
        return f"<ShardingView of {self.payload['name']}: {len(self.payload['communications'])} collectives>"


@final
class TextView:
    """A text that a notebook shows in a frame of its own."""

    def __init__(self, title: str, text: str) -> None:
        self.title, self._text = title, text

    def text(self) -> str:
        """The text."""
        return self._text

    def html(self) -> str:
        """The text as HTML."""
        return text_html(self.title, self._text)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Bundle:
        return {"text/plain": self.text(), "text/html": self.html()}, {}

    def __repr__(self) -> str:
        return self._text


def graph(program: Any, *args: Any, **kwargs: Any) -> GraphView:
    """The graph of ``program(*args, **kwargs)`` as compiled, or of a jaxpr or a report.

    >>> graph(jax.jit(f), x)                    # with its kernels
    >>> graph(jax.make_jaxpr(f)(x))             # as traced, nothing compiled
    """
    if isinstance(program, ClosedJaxpr):
        return GraphView(graph_payload(program, file_label=file_label))
    report = _report(program, args, kwargs, "graph")
    return GraphView(graph_payload(report.simplified, report.groups, report.name, file_label))


def fusion(program: Any, *args: Any, **kwargs: Any) -> FusionView:
    """The kernels of ``program(*args, **kwargs)``, or of a report."""
    return FusionView(fusion_payload(_report(program, args, kwargs, "fusion"), file_label))


def sharding(program: Any, *args: Any, measure: bool = False, **kwargs: Any) -> ShardingView | TextView:
    """The sharding board of ``program(*args, **kwargs)``, or of a report; of an array, its parts.

    With ``measure`` each collective is run alone and timed.
    """
    if type(program) is Array and not args:
        return TextView(f"{jaxlite.typeof(program)}, {program.sharding}", drawing(program.shape, program.sharding))
    return ShardingView(sharding_payload(_report(program, args, kwargs, "sharding"), file_label, measure))


def _report(program: Any, args: Any, kwargs: Any, what: str) -> CompileReport:
    report = getattr(program, "report", program)
    if isinstance(report, CompileReport):
        return report
    if not callable(program):
        raise TypeError(
            f"{what}() got {program!r} of type {type(program).__name__}; it takes a function and "
            f"its arguments, as in {what}(f, x), or a compile report."
        )
    function = program if hasattr(program, "lower") else jaxlite.jit(program)
    compiled: CompileReport = function.lower(*args, **kwargs).compile().report
    return compiled


def _widget_bundle(view: GraphView | ShardingView) -> Bundle:
    """The widget's part of the bundle; nothing where its packages are not installed."""
    try:
        widget = view.widget
    except ModuleNotFoundError:
        return {}, {}
    bundle = widget._repr_mimebundle_()
    if not bundle:
        return {}, {}
    data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
    return dict(data), dict(metadata)


def _write(path: str | Path, writers: Mapping[str, Any]) -> Path:
    target = Path(path)
    writer = writers.get(target.suffix)
    if writer is None:
        raise ValueError(f"save() cannot write {target.name!r}: use one of {', '.join(writers)}.")
    target.write_text(writer(), "utf-8")
    return target
