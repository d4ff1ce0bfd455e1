"""Adding a primitive, by following CONTRIBUTING.md to the letter: one class in one file."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jaxlite as jax
from jaxlite.core.primitive import registry

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text("utf-8")


(CODE,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


@pytest.fixture(scope="module")
def softsign(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The module that CONTRIBUTING.md shows, imported as a file of its own."""
    path = tmp_path_factory.mktemp("contributing") / "softsign.py"
    path.write_text(CODE, "utf-8")
    spec = importlib.util.spec_from_file_location("contributed_softsign", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module.softsign
    del sys.modules[spec.name], registry["softsign"]


X = np.array([[-3.0, -0.5, 0.0], [0.25, 1.0, 7.0]], np.float32)
EXACT = X / (1 + abs(X.astype(np.float64)))
# An addition and a division, each rounded once: under 2 ulp, and an ulp is at most 2**-23 of it.
TOLERANCE = 2 * 2.0**-23


def test_eager_and_compiled_agree_with_numpy(softsign):
    eager, compiled = np.asarray(softsign(X)), np.asarray(jax.jit(softsign)(X))
    np.testing.assert_allclose(eager, EXACT, rtol=TOLERANCE)
    np.testing.assert_array_equal(eager, compiled)


def test_derivative(softsign):
    slope = np.asarray(jax.vmap(jax.grad(softsign))(X.ravel()))
    exact = 1 / (1 + abs(X.astype(np.float64).ravel())) ** 2
    np.testing.assert_allclose(slope, exact, rtol=2 * TOLERANCE)  # the square doubles it
    compiled = np.asarray(jax.jit(jax.vmap(jax.grad(softsign)))(X.ravel()))
    np.testing.assert_allclose(compiled, exact, rtol=2 * TOLERANCE)


def test_batches(softsign):
    np.testing.assert_array_equal(np.asarray(jax.vmap(softsign)(X)), np.asarray(softsign(X)))


def test_wrong_dtypes_are_refused(softsign):
    with pytest.raises(TypeError, match="softsign does not accept dtype int32"):
        softsign(np.arange(3, dtype=np.int32))


@pytest.mark.parametrize("check", [["check"], ["format", "--diff"]], ids=["check", "format"])
def test_the_module_passes_ruff_as_if_it_were_in_its_place(check):
    place = "jaxlite/lax/elementwise/softsign.py"
    done = subprocess.run(
        [sys.executable, "-m", "ruff", *check, "--stdin-filename", place, "-"],
        input=CODE, capture_output=True, text=True, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_text_touches_one_file_and_one_export_line():
    assert "jaxlite/lax/__init__.py" in TEXT
