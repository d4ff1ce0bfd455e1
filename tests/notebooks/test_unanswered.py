"""A breakpoint where a notebook is run without anybody to answer: it says so and goes on."""

from __future__ import annotations

import warnings
from pathlib import Path

import nbclient
import nbformat

CELL = """import jaxlite as jax

@jax.jit
def f(x):
    jax.debug.breakpoint()
    return 2 * x

print(float(f(1.5)))"""


def test_a_breakpoint_goes_on_where_nobody_answers(tmp_path: Path, python_path: dict[str, str]) -> None:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Jupyter's own parts
        client = nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}})
        client.execute(env=python_path)
    text = "".join(output.text for output in notebook.cells[0].outputs)
    assert "No commands can be read" in text and "goes on" in text and text.endswith("3.0\n")
