"""What every HTML view shares: escaping, the style, links between lines, equations and kernels.

Pointing at a line, an equation or a kernel lights up the others, by style rules alone: each element
carries the keys of its line and its kernel as classes, and a rule per key marks what shares it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

from jaxlite.inspect.quantities import amount_text

MOST_RULES = 400


@cache
def static_text(name: str) -> str:
    """A file of ``static/``."""
    return files("jaxlite_jupyter").joinpath("static", name).read_text("utf-8")


def block(payload: Mapping[str, Any], parts: Sequence[str]) -> str:
    """The view's element, with its style and the rules that light up what belongs together."""
    body = "\n".join(parts)
    key = "jx" + hashlib.sha256(body.encode()).hexdigest()[:10]
    keys = [line["key"] for line in payload["lines"]]
    keys += [k["id"] for k in payload.get("kernels", ())]
    keys += [g["id"] for g in payload.get("groups", ()) if g["kind"] == "kernel"]
    rules = "".join(
        f"#{key}:has(.{k}:hover) .{k},#{key}:has(.{k}:focus) .{k}{{background:#ffe08280}}" for k in keys[:MOST_RULES]
    )
    style = f"<style>{static_text('style.css')}{rules}</style>"
    return f'<div class="jaxlite" id="{key}">{style}\n{body}\n</div>'


def text(value: object) -> str:
    """Escaped."""
    return escape(str(value))


def source_html(source: Mapping[str, Any] | None) -> str:
    """A line of the user's as an element that lights up with what was made of it."""
    if source is None:
        return ""
    made_by = f" <i>{text(source['made_by'])}</i>" if source.get("made_by") else ""
    at = f'<span class="jx-at">{text(source["label"])}</span>'
    line = f"<code>{text(source['text'])}</code>"
    return f'<span class="{source["key"]}" tabindex="0">{at} {line}{made_by}</span>'


def number_html(quantity: Mapping[str, Any] | None) -> str:
    """A number that says whether it is predicted or measured."""
    if quantity is None:
        return ""
    basis = quantity["basis"]
    return f'<span class="jx-{basis}" title="{basis}">{text(amount_text(quantity).strip())}</span>'


def table(head: Sequence[str], rows: Sequence[tuple[str, Sequence[str]]]) -> str:
    """A table; each row is its classes and its cells (HTML)."""
    cells = "".join(f"<th>{text(h)}</th>" for h in head)
    body = "".join(f'<tr class="{classes}">{"".join(f"<td>{c}</td>" for c in row)}</tr>' for classes, row in rows)
    return f"<table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>"


def details(summary: str, body: str, is_open: bool = False) -> str:
    """A part that can be folded without scripts."""
    return f"<details{' open' if is_open else ''}><summary>{text(summary)}</summary>{body}</details>"


def lines_html(payload: Mapping[str, Any]) -> str:
    """The user's lines that the view speaks of."""
    rows = [(line["key"], [source_html(line)]) for line in payload["lines"]]
    return details("Your lines", table(["line"], rows), is_open=True) if rows else ""


def text_html(title: str, content: str) -> str:
    """A text under a title that folds it."""
    body = details(title, f"<pre>{text(content)}</pre>", is_open=True)
    return f'<div class="jaxlite"><style>{static_text("style.css")}</style>{body}</div>'


def page(title: str, body: str) -> str:
    """A whole HTML document."""
    head = f'<meta charset="utf-8"><title>{text(title)}</title>'
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head>\n<body>\n{body}\n</body></html>\n'
