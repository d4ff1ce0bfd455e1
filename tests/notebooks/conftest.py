"""The tutorial, executed once for all tests of this folder."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
TUTORIAL = ROOT / "notebooks" / "01_first_steps.ipynb"
SHARDING = ROOT / "notebooks" / "02_sharding.ipynb"


@pytest.fixture(scope="session")
def python_path() -> dict[str, str]:
    """The environment of a kernel that imports this checkout's jaxlite."""
    return {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'extension'}"}


def execute(path: Path, folder: Path, environment: dict[str, str]) -> Any:
    """A notebook with the outputs of a run in ``folder``; a failing cell fails here."""
    import nbclient
    import nbformat

    notebook = nbformat.read(path, as_version=4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Jupyter's own parts
        client = nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}})
        client.execute(env=environment)
    return notebook


@pytest.fixture(scope="session")
def executed(tmp_path_factory: pytest.TempPathFactory, python_path: dict[str, str]) -> Any:
    """The tutorial with the outputs of a run."""
    return execute(TUTORIAL, tmp_path_factory.mktemp("tutorial"), python_path)


@pytest.fixture(scope="session")
def sharded(tmp_path_factory: pytest.TempPathFactory, python_path: dict[str, str]) -> dict[str, Any]:
    """Each code cell's outputs of the notebook about meshes, by the cell's id."""
    notebook = execute(SHARDING, tmp_path_factory.mktemp("sharding"), python_path)
    return {c.id: c.outputs for c in notebook.cells if c.cell_type == "code"}


@pytest.fixture(scope="session")
def outputs(executed: Any) -> dict[str, Any]:
    """Each code cell's outputs, by the cell's id."""
    return {c.id: c.outputs for c in executed.cells if c.cell_type == "code"}
