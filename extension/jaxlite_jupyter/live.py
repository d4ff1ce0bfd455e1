"""A saved HTML page that is live where scripts run: nothing to fetch."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
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


def standalone(payload: Mapping[str, Any], closed: Sequence[str]) -> str:
    """The scripts of a page that shows ``payload`` live; without scripts they show nothing."""
    state = json.dumps({"payload": payload, "selected": "", "closed": list(closed)})
    return _PAGE.format(state=state.replace("</", "<\\/"), module=static_text("graph.js"))
