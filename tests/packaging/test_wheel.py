"""The wheel: pure Python, with the extension's static files, and working where nothing else is."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
TUTORIAL = ROOT / "notebooks" / "01_first_steps.ipynb"
# Runs the tutorial's cells whose ids are given, in a shell, as a notebook does.
RUN_CELLS = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
notebook, *wanted = sys.argv[1:]
for cell in json.load(open(notebook, encoding="utf-8"))["cells"]:
    if cell["id"] in wanted:
        result = shell.run_cell("".join(cell["source"]), store_history=True)
        result.raise_error()
import jaxlite, jaxlite_jupyter
print("FROM", jaxlite.__file__, jaxlite_jupyter.__file__)
"""


def run(command: Sequence[str], **options: Any) -> str:
    """What the command prints; its errors on failure."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder)]
    run([*build, str(ROOT)])
    (made,) = folder.glob("*.whl")
    return made


@pytest.mark.long
def test_is_pure_python_and_holds_the_static_files(wheel: Path) -> None:
    assert wheel.name.endswith("-py3-none-any.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {"jaxlite_jupyter/static/graph.js", "jaxlite_jupyter/static/style.css"} <= set(names)
    top = {n.split("/")[0] for n in names}
    assert {t for t in top if not t.endswith(".dist-info")} == {"jaxlite", "jaxlite_jupyter"}
    assert {Path(n).suffix for n in names if ".dist-info" not in n} <= {".py", ".js", ".css", ".typed"}


@pytest.mark.long
def test_works_in_an_empty_environment_from_another_folder(wheel: Path, tmp_path: Path) -> None:
    run([sys.executable, "-m", "venv", str(tmp_path / "venv")])
    python = str(tmp_path / "venv" / "bin" / "python")
    quiet = ["--quiet", "--disable-pip-version-check"]
    run([python, "-m", "pip", "install", *quiet, str(wheel), "ipython>=8.18"])
    cells = ["imports", "grad", "python", "jit", "magic", "vmap", "pitfalls"]
    assert set(cells) <= {c["id"] for c in json.loads(TUTORIAL.read_text("utf-8"))["cells"]}
    script = tmp_path / "run_cells.py"
    script.write_text(RUN_CELLS, "utf-8")
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "IPYTHONDIR": str(tmp_path / "ipython")}
    text = run([python, str(script), str(TUTORIAL), *cells], cwd=tmp_path, env=env)
    for expected in ("6.0 -1.0", "(5000, 5000) float32 True", "measured, 5 runs each", "tracing"):
        assert expected in text
    places = text.rsplit("FROM", 1)[1].split()
    assert all("site-packages" in place for place in places), places
