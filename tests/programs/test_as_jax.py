"""Code written for JAX runs with ``jax`` meaning jaxlite: scripts, notebooks, and optax's optimisers."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType

import pytest

import jaxlite
from jaxlite import as_jax

HERE = Path(__file__).parent
OPTAX = ("optax==0.2.8", "absl-py>=2")


def python(*arguments: str, path: Sequence[Path] = ()) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path))}
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False, env=environment)


@pytest.fixture
def installed() -> Iterator[None]:
    as_jax.install()
    yield
    as_jax.uninstall()


@pytest.mark.usefixtures("installed")
def test_modules_are_jaxlites_own() -> None:
    assert importlib.import_module("jax") is jaxlite
    assert importlib.import_module("jax.numpy") is jaxlite.numpy
    assert importlib.import_module("jax.scipy.special") is jaxlite.scipy.special


@pytest.mark.usefixtures("installed")
def test_a_missing_name_is_named() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"asks for jax\.no_such_part, which jaxlite does not have"):
        importlib.import_module("jax.no_such_part")
    with pytest.raises(AttributeError, match="no_such_function"):
        importlib.import_module("jax.numpy").no_such_function  # noqa: B018 the access is the test


def test_real_jax_in_the_way_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jax", ModuleType("jax"))
    with pytest.raises(RuntimeError, match="JAX itself is loaded already"):
        as_jax.install()


def test_script_with_its_arguments(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import sys, jax\nprint(__name__, sys.argv[1:], jax.grad(jax.numpy.square)(3.0))\n")
    done = python("-m", "jaxlite.as_jax", str(script), "--steps", "2")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "__main__ ['--steps', '2'] 6.0\n"
    done = python("-m", "jaxlite.as_jax")
    assert done.returncode != 0 and "usage" in done.stderr


def test_optax_trains_with_each_optimiser(tmp_path: Path) -> None:
    pip = python("-m", "pip", "install", "--quiet", "--no-deps", "--target", str(tmp_path), *OPTAX)
    assert pip.returncode == 0, pip.stderr
    done = python("-m", "jaxlite.as_jax", str(HERE / "optax_training.py"), path=[tmp_path])
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
    losses = {name: (float(first), float(last)) for name, first, last in map(str.split, done.stdout.splitlines())}
    assert len(losses) == 29
    assert not {name: pair for name, pair in losses.items() if not pair[1] < pair[0]}, losses
