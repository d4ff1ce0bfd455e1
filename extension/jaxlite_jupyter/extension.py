"""``%load_ext jaxlite`` and ``%unload_ext jaxlite``: magic, completions, views, progress bars."""

from __future__ import annotations

from typing import Any

from jaxlite.compiler.report import CompileReport
from jaxlite.core import progress
from jaxlite_jupyter.completions import matcher
from jaxlite_jupyter.views import fusion, graph, sharding

_MATCHER = "jaxlite.jit_options"


def load_ipython_extension(ipython: Any) -> None:
    """Loads, or loads again."""
    from jaxlite_jupyter.magics import JitMagic
    from jaxlite_jupyter.sharding_magic import sharding_magic

    unload_ipython_extension(ipython)
    ipython.register_magic_function(JitMagic(ipython).function(), "cell", "jit")
    ipython.register_magic_function(sharding_magic(ipython), "line", "sharding")
    ipython.Completer.custom_matchers.append(matcher(ipython.user_ns))
    formatter = ipython.display_formatter.mimebundle_formatter
    formatter.for_type(CompileReport, _report_bundle)
    if hasattr(ipython, "kernel"):  # a notebook: IPython in a terminal has the terminal's bar
        progress.make_display = _notebook_bar


def unload_ipython_extension(ipython: Any) -> None:
    """Takes everything back."""
    ipython.magics_manager.magics["cell"].pop("jit", None)
    ipython.magics_manager.magics["line"].pop("sharding", None)
    matchers = ipython.Completer.custom_matchers
    matchers[:] = [m for m in matchers if getattr(m, "matcher_identifier", "") != _MATCHER]
    ipython.display_formatter.mimebundle_formatter.type_printers.pop(CompileReport, None)
    progress.make_display = None


def _notebook_bar() -> progress.Display:
    from jaxlite_jupyter.progress import NotebookBar

    return NotebookBar()


def _report_bundle(report: CompileReport, **_: Any) -> dict[str, str]:
    """A report as a cell shows it: its graph, then its kernels."""
    views: tuple[Any, ...] = graph(report), fusion(report)
    if report.partition is not None:
        views = (*views, sharding(report))
    joined = {"text/plain": "\n\n".join(v.text() for v in views)}
    return {**joined, "text/html": "\n".join(v.html() for v in views)}
