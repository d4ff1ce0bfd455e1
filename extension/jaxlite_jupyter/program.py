"""A cell as one compiled function of the variables that it reads.

In: a parsed cell, its variables and the namespace. Out: a :class:`CellProgram`, which gives what
the cell assigns. While the cell is traced its namespace holds traced values; whatever happens, the
namespace is as it was afterwards.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, final

import jaxlite
from jaxlite.core.array import Array
from jaxlite.core.pytree import tree_flatten, tree_leaves, tree_unflatten
from jaxlite.core.trace import Tracer
from jaxlite_jupyter.cell import VALUE, Cell
from jaxlite_jupyter.errors import CellError
from jaxlite_jupyter.variables import Variables


@final
class Effects:
    """What a run of a cell left behind: names that it assigned, and names that it deleted."""

    def __init__(self, assigned: dict[str, Any], deleted: list[str]) -> None:
        self.assigned, self.deleted = assigned, deleted

    def apply(self, namespace: dict[str, Any]) -> Any:
        """Puts them into ``namespace``; gives the value of the cell's last expression."""
        assigned = dict(self.assigned)
        value = assigned.pop(VALUE, None)
        namespace.update(assigned)
        for name in self.deleted:
            namespace.pop(name, None)
        return value


@contextlib.contextmanager
def restored(namespace: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A block after which ``namespace`` is what it was; gives a copy of that."""
    before = dict(namespace)
    try:
        yield before
    finally:
        namespace.clear()
        namespace.update(before)


def run_in(cell: Cell, namespace: dict[str, Any], values: dict[str, Any]) -> Effects:
    """Runs the cell with ``values`` in its namespace, which is then restored."""
    structures = {n: _snapshot(v) for n, v in values.items()}
    with restored(namespace) as before:
        namespace.update(values)
        exec(cell.code, namespace)
        after = dict(namespace)
    after.pop("__builtins__", None)
    known = {**before, **values}
    assigned = {n: v for n, v in after.items() if n not in known or v is not known[n]}
    for name, was in structures.items():
        if name not in assigned and not _same(was, _snapshot(values[name])):
            raise CellError(_changed_in_place(name), cell.source, _line_of(cell, name))
    deleted = [n for n in before if n not in after and n != "__builtins__"]
    return Effects(assigned, deleted)


def _snapshot(value: Any) -> tuple[Any, list[Any]]:
    leaves, structure = tree_flatten(value)
    return structure, leaves


def _same(a: tuple[Any, list[Any]], b: tuple[Any, list[Any]]) -> bool:
    same_leaves = len(a[1]) == len(b[1]) and all(map(lambda x, y: x is y, a[1], b[1]))
    return bool(a[0] == b[0]) and same_leaves


def _changed_in_place(name: str) -> str:
    return (
        f"the cell changes `{name}` in place, which a compiled program cannot do: assign a new "
        f"value, as in `{name} = [*{name}, x]` or `{name} = {{**{name}, 'key': x}}`."
    )


def _line_of(cell: Cell, name: str) -> int | None:
    lines = enumerate(cell.source.splitlines(), 1)
    return next((n for n, text in lines if f"{name}." in text or f"{name}[" in text), None)


@final
class CellProgram:
    """One cell compiled for one set of constants and types."""

    def __init__(self, cell: Cell, variables: Variables, namespace: dict[str, Any]) -> None:
        self._outputs: dict[str, tuple[Any, list[Any]]] = {}
        self._deleted: list[str] = []

        def traced_cell(**arguments: Any) -> list[Any]:
            values = variables.rebuilt(tree_leaves(arguments))
            effects = run_in(cell, namespace, values)
            self._deleted = effects.deleted
            return self._split(effects.assigned)

        traced_cell.__name__ = traced_cell.__qualname__ = "cell"
        traced = jaxlite.jit(traced_cell).trace(**variables.arguments())
        self.jaxpr = traced.jaxpr
        self._compiled = traced.lower().compile()

    @property
    def report(self) -> Any:
        """How the cell was compiled."""
        return self._compiled.report

    def _split(self, assigned: dict[str, Any]) -> list[Any]:
        """Notes each assigned value's structure and constants; gives the leaves to compute."""
        computed: list[Any] = []
        for name, value in assigned.items():
            leaves, structure = tree_flatten(value)
            marks = [isinstance(x, (Array, Tracer)) for x in leaves]
            computed += [x for x, m in zip(leaves, marks, strict=True) if m]
            kept = [_COMPUTED if m else x for x, m in zip(leaves, marks, strict=True)]
            self._outputs[name] = structure, kept
        return computed

    def __call__(self, variables: Variables) -> Effects:
        """Runs the compiled cell on the variables' present values."""
        results = iter(self._compiled(**variables.arguments()))
        assigned = {}
        for name, (structure, kept) in self._outputs.items():
            leaves = [next(results) if x is _COMPUTED else x for x in kept]
            assigned[name] = tree_unflatten(structure, leaves)
        return Effects(assigned, self._deleted)


_COMPUTED = object()  # in the place of a leaf that the program computes
