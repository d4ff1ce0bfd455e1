"""``./tutorial``: opens the tutorial in JupyterLab; ``--html`` runs it and writes one HTML file.

Lab opens a copy in ``my_tutorial/``, kept from one time to the next, so that the repository stays
clean. The HTML file needs no server, no network and no scripts to be read.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tools.environment import ROOT, environment

NOTEBOOK = ROOT / "notebooks" / "01_first_steps.ipynb"
# What a reader without scripts can see comes first; widget views, which need a server, go last.
READABLE = (
    '["text/html", "image/svg+xml", "image/png", "text/markdown", "text/latex", "text/plain",'
    ' "application/vnd.jupyter.widget-view+json"]'
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Sets up, then opens or writes the tutorial."""
    parser = argparse.ArgumentParser(prog="./tutorial", description=__doc__)
    parser.add_argument("--html", action="store_true", help="run it and write an HTML file")
    parser.add_argument("--output", default="tutorial.html", help="the file that --html writes")
    options, for_lab = parser.parse_known_args(arguments)
    python = str(environment("tutorial"))
    if options.html:
        sys.exit(subprocess.run(html_command(python, Path(options.output)), check=False).returncode)
    root = ["--allow-root"] if _is_root() else []
    command = [python, "-m", "jupyterlab", *root, *for_lab, str(working_copy())]
    sys.exit(subprocess.run(command, cwd=ROOT, check=False).returncode)


def working_copy() -> Path:
    """The reader's own copy of the tutorial, made where there is none."""
    copy = ROOT / "my_tutorial" / NOTEBOOK.name
    if not copy.exists():
        copy.parent.mkdir(exist_ok=True)
        shutil.copy(NOTEBOOK, copy)
    return copy


def html_command(python: str, output: Path) -> list[str]:
    """The command that executes the tutorial and writes it to ``output``."""
    return [
        python, "-m", "nbconvert", "--to", "html", "--execute", str(NOTEBOOK),
        "--output", str(output.resolve()),
        "--HTMLExporter.mathjax_url=", "--HTMLExporter.require_js_url=",
        f"--NbConvertBase.display_data_priority={READABLE}",
        "--ExecutePreprocessor.store_widget_state=False",
    ]  # fmt: skip


def _is_root() -> bool:
    return sys.platform != "win32" and os.geteuid() == 0
