"""Completions on the ``%%jit`` line: options, their values, and the notebook's names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

SHOWN = ("graph", "jaxpr", "fusion", "kernels")
OPTIONS = ("--show", "--no-run", "--bench", "--trace", "--static")
SHORT = {"-s": "--show", "-n": "--no-run"}


def candidates(line: str, namespace: Mapping[str, Any]) -> tuple[list[str], str]:
    """What may stand at the end of ``line``, and the part of it that is already there."""
    words = line.split(" ")
    word, before = words[-1], SHORT.get(words[-2], words[-2])
    if before == "--show":
        given, _, word = word.rpartition(",")
        offered = [s for s in SHOWN if s not in given.split(",")]
    elif before in ("--trace", "--static"):
        offered = sorted(n for n in namespace if not n.startswith("_"))
    elif before == "--bench":
        offered = []
    else:
        offered = list(OPTIONS)
    return [o for o in offered if o.startswith(word)], word


def matcher(namespace: Mapping[str, Any]) -> Callable[[Any], Any]:
    """IPython's form of :func:`candidates`."""
    from IPython.core.completer import SimpleCompletion, context_matcher

    @context_matcher(identifier="jaxlite.jit_options", priority=100)
    def jit_options(context: Any) -> Any:
        line = context.line_with_cursor[: context.cursor_position]
        if not line.startswith("%%jit "):
            return {"completions": []}
        found, word = candidates(line, namespace)
        completions = [SimpleCompletion(text=f, type="param") for f in found]
        return {"completions": completions, "suppress": True, "matched_fragment": word}

    made: Callable[[Any], Any] = jit_options
    return made
