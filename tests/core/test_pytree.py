"""Pytrees: structures and paths as JAX 0.12 prints them, and what is refused."""

from __future__ import annotations

import collections
import dataclasses
import gc
import pickle
import weakref
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


@pytest.mark.parametrize("same", [(1, True, 1.0), (0, False, 0.0, -0.0)])
def test_structures_that_are_only_equal_are_not_mixed_up(same: tuple[Any, ...]) -> None:
    @tree_util.register_dataclass
    @dataclasses.dataclass
    class State:
        value: Any
        static: Any = dataclasses.field(metadata={"static": True})

    for static in same:
        assert repr(jax.tree.map(lambda x: x, {static: 0.0})) == repr({static: 0.0})
        assert repr(jax.tree.map(lambda x: x, State(2, static)).static) == repr(static)

    class Name(str):
        pass

    jax.tree.leaves({"k": 1})
    (key,) = jax.tree.map(lambda x: x, {Name("k"): 1})
    assert type(key) is Name


def test_data_of_nodes_is_compared_with_that_of_its_own_kind_alone_and_not_kept() -> None:
    class Data:
        def __init__(self, name: str) -> None:
            self.name = name

        def __eq__(self, other: Any) -> bool:
            return bool(self.name == other.name)

        def __hash__(self) -> int:
            return hash("name")

    class Held:
        def __init__(self, value: Any, data: Any) -> None:
            self.value, self.data = value, data

    tree_util.register_pytree_node(Held, lambda h: ((h.value,), h.data), lambda data, values: Held(values[0], data))
    jax.tree.leaves(Held(1, "name"))
    data = Data("mine")
    assert jax.tree.map(lambda x: x, Held(1, data)).data is data
    assert jax.tree.structure(Held(1, Data("a"))) == jax.tree.structure(Held(2, Data("a")))
    gone = weakref.ref(data)
    del data
    gc.collect()
    assert gone() is None


NO_NODES = {
    "nothing": (lambda: None, "return a .children, aux_data. tuple, got None for Odd"),
    "children alone": (lambda: ((1,),), r"tuple, got \(\(1,\),\) for Odd"),
    "too much": (lambda: ((1,), 2, 3), "return a .children, aux_data. tuple, got"),
    "a list": (lambda: [(1,), None], "return a .children, aux_data. tuple, got"),
    "no children": (lambda: (5, None), r"tuple where 'children' is iterable, got \(5, None\)"),
}


@pytest.mark.parametrize("given, message", NO_NODES.values(), ids=list(NO_NODES))
def test_functions_that_take_a_node_apart_and_give_something_else(given: Any, message: str) -> None:
    class Odd:
        pass

    tree_util.register_pytree_node(Odd, lambda _: given(), lambda data, children: Odd())
    for use in (jax.tree.leaves, jax.tree.leaves_with_path, jax.jit(lambda x: 1)):
        with pytest.raises(ValueError, match=message):
            use(Odd())
