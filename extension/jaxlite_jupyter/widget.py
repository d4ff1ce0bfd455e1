"""The live views: anywidgets whose modules are ``static/graph.js`` and ``static/board.js``."""

from __future__ import annotations

from typing import final

import anywidget
import traitlets

from jaxlite_jupyter.html.base import static_text


@final
class GraphWidget(anywidget.AnyWidget):
    """Draws a graph payload; ``selected`` and ``closed`` follow what the reader does."""

    _esm = static_text("graph.js")
    _css = static_text("style.css")
    payload = traitlets.Dict().tag(sync=True)
    selected = traitlets.Unicode("").tag(sync=True)
    closed = traitlets.List(traitlets.Unicode()).tag(sync=True)

    def __repr__(self) -> str:
        return f"<GraphWidget of {self.payload['name']}>"


@final
class BoardWidget(anywidget.AnyWidget):
    """Draws a sharding payload; ``selected`` is the number of the operation that was clicked, -1 before."""

    _esm = static_text("board.js")
    _css = static_text("style.css")
    payload = traitlets.Dict().tag(sync=True)
    selected = traitlets.Int(-1).tag(sync=True)

    def __repr__(self) -> str:
        return f"<BoardWidget of {self.payload['name']}>"
