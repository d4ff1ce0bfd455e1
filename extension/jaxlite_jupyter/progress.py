"""The progress bar of notebooks: two ipywidgets side by side, closed when the run is over.

In: `Progress` records of the core. Imported when the first bar is drawn.
"""

from __future__ import annotations

import time
from typing import final

import ipywidgets
from IPython.display import display

from jaxlite.core.progress import Progress
from jaxlite.core.progress_bar import label_text, share_of

SECONDS = 0.1  # between two updates


@final
class NotebookBar:
    """Shown below the cell that runs; ``box`` is what is displayed."""

    def __init__(self) -> None:
        self.bar = ipywidgets.FloatProgress(value=0.0, min=0.0, max=1.0)
        self.label = ipywidgets.Label()
        self.box = ipywidgets.HBox([self.bar, self.label])
        self._next = 0.0
        display(self.box)

    def show(self, record: Progress) -> None:
        """Draws the record, unless the last was drawn just now."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + SECONDS
        self.bar.bar_style = "info" if record.total is None else ""
        self.bar.value = share_of(record)
        self.label.value = label_text(record)

    def close(self) -> None:
        """Takes the bar away, and the models that it is made of."""
        layouts = (self.bar.layout, self.label.layout, self.box.layout)
        for widget in (self.bar, self.label, self.box, self.bar.style, self.label.style, *layouts):
            widget.close()
