"""The fusion payload as HTML: the kernels and what is in each, then why each boundary is there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jaxlite.inspect.fusion import decisions_of
from jaxlite_jupyter.html.base import (
    block,
    details,
    lines_html,
    number_html,
    source_html,
    table,
    text,
)

FEW = 20  # decisions: more start folded


def fusion_html(payload: Mapping[str, Any]) -> str:
    """The view of ``payload``."""
    head = (
        f"<p><b>{text(payload['name'])}</b>: {payload['traced']} equations traced, "
        f"{payload['equations']} after simplification, "
        f"{len(payload['kernels'])} kernels and steps</p>"
    )
    host = payload["host_calls"]
    calls = f"<p>Calls into Python: {text(', '.join(host))}</p>" if host else ""
    kernels = "".join(map(_kernel, payload["kernels"]))
    return block(payload, [head, lines_html(payload), kernels, _decisions(payload), _passes(payload), calls])


def _kernel(kernel: Mapping[str, Any]) -> str:
    traffic = [
        f"{what} {number_html(kernel[what])} ({kernel[what]['basis']})" for what in ("reads", "writes") if kernel[what]
    ]
    key = kernel["id"]
    title = f"<p><b>{text(kernel['name'])}</b> ({text(kernel['kind'])}): {', '.join(traffic)}</p>"
    rows = [_equation(e, key, "") for e in kernel["equations"]]
    rows += [_equation(e, key, "recomputed here") for e in kernel["recomputed"]]
    reason = f"<p>{text(kernel['reason'])}</p>" if kernel["reason"] else ""
    nest = details("Loop nest", f"<pre>{text(kernel['loop_nest'])}</pre>") if kernel["loop_nest"] else ""
    body = table(("equation", "your line", ""), rows)
    return f'<div class="jx-kernel {key}" tabindex="0">{title}{reason}{body}{nest}</div>'


def _equation(equation: Mapping[str, Any], kernel: str, note: str) -> tuple[str, list[str]]:
    source = equation["source"]
    keys = source["key"] if source else ""
    return keys, [f"<pre>{text(equation['text'])}</pre>", source_html(source), note]


def _decisions(payload: Mapping[str, Any]) -> str:
    rows = []
    for name, decision in decisions_of(payload):
        numbers = ", ".join(
            f"{text(k.replace('_', ' '))} {number_html(v)} ({v['basis']})" for k, v in decision["numbers"].items()
        )
        key = decision["source"]["key"] if decision["source"] else ""
        cells = [text(name), text(decision["subject"]), f"<b>{text(decision['verdict'])}</b>"]
        rows.append((key, [*cells, text(decision["reason"]), numbers, source_html(decision["source"])]))
    head = ("pass", "what", "decision", "reason", "numbers", "your line")
    return details(f"Why: {len(rows)} decisions", table(head, rows), is_open=len(rows) <= FEW)


def _passes(payload: Mapping[str, Any]) -> str:
    rows = [
        ("", [text(p["name"]), text(p["why"]), str(p["equations"]), number_html(p["seconds"])])
        for p in payload["passes"]
    ]
    return details("Passes", table(("pass", "what for", "equations", "time (measured)"), rows))
