"""Functions written for one structure, which take its trees apart and build them without walking it.

`flattener(structure)` gives ``f(tree)``: the leaves as a list, or None where the tree has another structure.  What
stands in a leaf's place is not looked at: the caller knows which types are leaves.  `builder(structure)` gives
``f(leaves)``: the tree.  Both are Python source with one line a node; writing and compiling it takes some ten calls'
worth of walking, so it is done for structures that come again.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from jaxlite.core.pytree import PyTreeDef, node_kind, tree_flatten

Flattener: TypeAlias = Callable[[Any], list[Any] | None]
Builder: TypeAlias = Callable[[Sequence[Any]], Any]

_NOTHING = object()
LARGEST = 4096  # nodes and leaves: beyond, the source would take long to compile
DEEPEST = 50  # levels: Python's parser takes some 100 brackets in each other
MOST = 1024  # functions of each kind that are kept


def _suits(structure: PyTreeDef) -> bool:
    return structure.num_nodes <= LARGEST and _depth(structure) <= DEEPEST


def _depth(structure: PyTreeDef) -> int:
    return 1 + max(map(_depth, structure.children_), default=0)


def _walked(structure: PyTreeDef, tree: Any) -> list[Any] | None:
    leaves, found = tree_flatten(tree)
    return leaves if found == structure else None


def flattener(structure: PyTreeDef) -> Flattener:
    """Takes trees of this structure apart."""
    return _kept_flattener(structure) if structure.shared else _new_flattener(structure)


def builder(structure: PyTreeDef) -> Builder:
    """Builds trees of this structure."""
    return _kept_builder(structure) if structure.shared else _new_builder(structure)


def _new_flattener(structure: PyTreeDef) -> Flattener:
    if not _suits(structure):
        return functools.partial(_walked, structure)
    names: dict[str, Any] = {"Mismatch": (KeyError, TypeError, ValueError)}
    lines: list[str] = []
    leaves: list[str] = []
    count = 0

    def fresh(value: Any = _NOTHING) -> str:
        nonlocal count
        count += 1
        if value is not _NOTHING:
            names[f"n{count}"] = value
        return f"n{count}"

    def differs(condition: str) -> None:
        lines.append(f"  if {condition}: return None")

    def visit(node: PyTreeDef, at: str) -> None:
        kind, children = node.kind, node.children_
        if kind is None:
            leaves.append(at)
            return
        if kind is type(None):
            differs(f"{at} is not None")
            return
        inside = [fresh() for _ in children]
        differs(f"{at}.__class__ is not {fresh(kind)}")
        if kind not in (tuple, list) and node_kind(kind) is None:  # a named tuple, which may iterate in its own way
            lines.append(f"  [{', '.join(inside)}] = {fresh(tuple.__iter__)}({at})")
        elif kind in (tuple, list):
            differs(f"len({at}) != {len(children)}")
            lines.append(f"  [{', '.join(inside)}] = {at}" if children else "  pass")
        elif kind is dict:
            differs(f"len({at}) != {len(children)}")
            for key, name in zip(node.data, inside, strict=True):
                lines.append(f"  {name} = {at}[{repr(key) if type(key) in (str, int) else fresh(key)}]")
        else:
            parts, data = fresh(), fresh()
            lines.append(f"  {parts}, {data} = {fresh(node_kind(kind).flatten)}({at})")  # type: ignore[union-attr]
            expected = fresh(("data", node.data))
            differs(f"not ({data} is {expected}[1] or {data} == {expected}[1])")
            lines.append(f"  [{', '.join(inside)}] = {parts}" if children else f"  [] = {parts}")
        for child, name in zip(children, inside, strict=True):
            visit(child, name)

    visit(structure, "tree")
    body = "\n".join(["def flatten(tree):", " try:", "  pass", *lines, " except Mismatch: return None"])
    exec(compile(f"{body}\n return [{', '.join(leaves)}]", "<flattener>", "exec"), names)
    return names["flatten"]  # type: ignore[no-any-return]


def _new_builder(structure: PyTreeDef) -> Builder:
    if not _suits(structure):
        return structure.unflatten
    names: dict[str, Any] = {}
    leaves: list[str] = []

    def fresh(value: Any) -> str:
        names[f"n{len(names)}"] = value
        return f"n{len(names) - 1}"

    def expression(node: PyTreeDef) -> str:
        kind = node.kind
        if kind is None:
            leaves.append(f"x{len(leaves)}")
            return leaves[-1]
        if kind is type(None):
            return "None"
        inner = [expression(child) for child in node.children_]
        if kind is tuple:
            return f"({', '.join(inner)}{',' if len(inner) == 1 else ''})"
        if kind is list:
            return f"[{', '.join(inner)}]"
        if kind is dict:
            keys = [repr(key) if type(key) in (str, int) else fresh(key) for key in node.data]
            return "{" + ", ".join(f"{key}: {value}" for key, value in zip(keys, inner, strict=True)) + "}"
        children = f"[{', '.join(inner)}]"
        registered = node_kind(kind)
        if registered is None:  # a named tuple
            return f"{fresh(kind)}(*{children})"
        return f"{fresh(registered.unflatten)}({fresh(node.data)}, {children})"

    built = expression(structure)
    body = f"def build(leaves):\n [{', '.join(leaves)}] = leaves\n return {built}"
    exec(compile(body, "<builder>", "exec"), names)
    return names["build"]  # type: ignore[no-any-return]


# only of shared structures: others may be equal without being the same, and hold what nobody else keeps
_kept_flattener = functools.lru_cache(maxsize=MOST)(_new_flattener)
_kept_builder = functools.lru_cache(maxsize=MOST)(_new_builder)
