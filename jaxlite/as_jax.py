"""``import jax`` as jaxlite, for code written for JAX.

``python -m jaxlite.as_jax script.py``, ``%load_ext jaxlite.as_jax`` in a notebook, or :func:`install` before the first
``import jax``.  Modules that jaxlite has answer to JAX's names; a name that it lacks is an error that says which.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import runpy
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any, final

_OURS = "jaxlite"


@final
class _AliasLoader(importlib.abc.Loader):
    """Gives a module of jaxlite's under the name of one of JAX's."""

    def __init__(self, target: str) -> None:
        self._module = importlib.import_module(target)
        self._spec = self._module.__spec__

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec  # the import system has just put the alias' there


@final
class _JaxFinder(importlib.abc.MetaPathFinder):
    """Finds ``jax`` and its submodules in jaxlite."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != "jax" and not fullname.startswith("jax."):
            return None
        ours = _OURS + fullname.removeprefix("jax")
        if importlib.util.find_spec(ours) is None:
            raise ModuleNotFoundError(
                f"The program asks for {fullname}, which jaxlite does not have: there is no module {ours}.",
                name=fullname,
            )
        spec = importlib.machinery.ModuleSpec(fullname, _AliasLoader(ours), is_package=True)
        spec.submodule_search_locations = []
        return spec


def install() -> None:
    """Makes ``import jax`` mean jaxlite from now on; ``RuntimeError`` where real JAX is loaded already."""
    loaded = sys.modules.get("jax")
    if loaded is not None and not getattr(loaded, "__name__", "").startswith(_OURS):
        raise RuntimeError(
            f"JAX itself is loaded already, from {getattr(loaded, '__file__', '?')}: call "
            "jaxlite.as_jax.install() before anything "
            "imports jax, in a fresh process."
        )
    if not any(isinstance(finder, _JaxFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _JaxFinder())
    importlib.import_module("jax")


def uninstall() -> None:
    """Undoes :func:`install`: the next ``import jax`` looks for real JAX."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _JaxFinder)]
    for name in [n for n in sys.modules if n == "jax" or n.startswith("jax.")]:
        del sys.modules[name]


def load_ipython_extension(ipython: Any) -> None:
    """``%load_ext jaxlite.as_jax``."""
    install()


def main(arguments: Sequence[str]) -> None:
    """Runs a script (or, after ``-m``, a module) with ``jax`` meaning jaxlite."""
    if not arguments or arguments[0] in ("-h", "--help"):
        raise SystemExit(
            "usage: python -m jaxlite.as_jax SCRIPT.py [ARGUMENT ...]   or   python -m "
            "jaxlite.as_jax -m MODULE [ARGUMENT ...]"
        )
    install()
    if arguments[0] == "-m":
        sys.argv = list(arguments[1:])
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = list(arguments)
        runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
