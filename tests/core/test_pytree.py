"""Pytrees: structures and paths as JAX 0.12 prints them, and what is refused."""

from __future__ import annotations

import collections
import dataclasses
import pickle
from typing import Any

import pytest

import jaxlite as jax
from jaxlite import tree_util

Point = collections.namedtuple("Point", "x y")

FACTS = [
    ({"b": 1, "a": (2, None)}, "PyTreeDef({'a': (*, None), 'b': *})", [2, 1], ["['a'][0]", "['b']"]),
    ([1, (2,)], "PyTreeDef([*, (*,)])", [1, 2], ["[0]", "[1][0]"]),
    (Point(1, [2]), "PyTreeDef(CustomNode(namedtuple[Point], [*, [*]]))", [1, 2], [".x", ".y[0]"]),
    (None, "PyTreeDef(None)", [], []),
    ((), "PyTreeDef(())", [], []),
    (
        collections.OrderedDict([("z", 1), ("a", 2)]),
        "PyTreeDef(CustomNode(OrderedDict[('z', 'a')], [*, *]))",
        [1, 2],
        ["['z']", "['a']"],
    ),
    (
        collections.defaultdict(list, {"k": 1}),
        "PyTreeDef(CustomNode(defaultdict[(<class 'list'>, ('k',))], [*]))",
        [1],
        ["['k']"],
    ),
    (5, "PyTreeDef(*)", [5], [""]),
]


@pytest.mark.parametrize("tree, text, leaves, paths", FACTS, ids=[f[1] for f in FACTS])
def test_structure_leaves_paths(tree: Any, text: str, leaves: list[Any], paths: list[str]) -> None:
    got, structure = jax.tree.flatten(tree)
    assert (repr(structure), got) == (text, leaves)
    assert [tree_util.keystr(p) for p, _ in jax.tree.leaves_with_path(tree)] == paths
    assert structure.unflatten(got) == tree
    assert pickle.loads(pickle.dumps(structure)) == structure


def test_keys_that_do_not_compare() -> None:
    with pytest.raises(ValueError, match="Comparator raised exception while sorting pytree dictionary keys"):
        jax.tree.flatten({1: 2, "a": 3})


def test_mismatch_names_the_path() -> None:
    with pytest.raises(ValueError, match=r"tree\['a'\]"):
        jax.tree.map(lambda x, y: x, {"a": (1, 2)}, {"a": (1, 2, 3)})


def test_registered_classes() -> None:
    @tree_util.register_pytree_node_class
    class Pair:
        def __init__(self, left: Any, right: Any) -> None:
            self.left, self.right = left, right

        def tree_flatten(self) -> Any:
            return (self.left, self.right), "pair"

        @classmethod
        def tree_unflatten(cls, data: Any, children: Any) -> Any:
            return cls(*children)

    doubled = jax.tree.map(lambda x: 2 * x, Pair(1, {"k": 2}))
    assert (doubled.left, doubled.right) == (2, {"k": 4})

    @tree_util.register_dataclass
    @dataclasses.dataclass
    class State:
        value: Any
        name: str = dataclasses.field(metadata={"static": True}, default="s")

    leaves, structure = jax.tree.flatten(State(3, "t"))
    assert leaves == [3] and structure.unflatten([4]) == State(4, "t")
    assert [tree_util.keystr(p) for p, _ in jax.tree.leaves_with_path(State(3))] == [".value"]
    assert jax.tree.structure(State(1, "a")) != jax.tree.structure(State(1, "b"))


def test_leaves_that_is_leaf_names() -> None:
    assert jax.tree.leaves([None, (1, 2)], is_leaf=lambda x: x is None or isinstance(x, tuple)) == [None, (1, 2)]


def test_transpose() -> None:
    outer, inner = jax.tree.structure([0, 0]), jax.tree.structure({"a": 0, "b": 0})
    assert jax.tree.transpose(outer, inner, [{"a": 1, "b": 2}, {"a": 3, "b": 4}]) == {"a": [1, 3], "b": [2, 4]}
