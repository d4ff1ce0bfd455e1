"""A saved HTML page that is live where scripts run: nothing to fetch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from jaxlite_jupyter.html.base import static_text

# Stands in for the notebook: the widget asks it for its state and tells it what changed.
_PAGE = """
<div id="jaxlite-live"></div>
<script type="application/json" id="jaxlite-state">{state}</script>
<script type="module">
{module}
const state = JSON.parse(document.getElementById("jaxlite-state").textContent);
const heard = {{}};
const model = {{
  get: (key) => state[key],
  set: (key, value) => {{
    state[key] = value;
    for (const f of heard["change:" + key] ?? []) f();
  }},
  on: (what, f) => {{ (heard[what] ??= []).push(f); }},
  off: (what, f) => {{ heard[what] = (heard[what] ?? []).filter((g) => g !== f); }},
  save_changes: () => {{}},
}};
widget.render({{ model, el: document.getElementById("jaxlite-live") }});
for (const picture of document.querySelectorAll(".jx-scroll > img.jx-graph")) picture.remove();
</script>
"""


def standalone(state: Mapping[str, Any], module: str) -> str:
    """The scripts of a page that shows ``state`` live by a module of ``static/``; without scripts they show nothing."""
    return _PAGE.format(state=json.dumps(state).replace("</", "<\\/"), module=static_text(module))
