"""Functions written for one structure agree with walking it, and refuse every other."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, namedtuple

import numpy as np
import pytest
from hypothesis import given, strategies as st

from jaxlite.core.flatteners import DEEPEST, LARGEST, builder, flattener
from jaxlite.core.pytree import tree_flatten, tree_structure
from jaxlite.core.pytree_classes import register_pytree_node

Point = namedtuple("Point", "x y")


class Boxed:
    def __init__(self, inside, label):
        self.inside, self.label = inside, label

    def __eq__(self, other):
        return (self.inside, self.label) == (other.inside, other.label)


register_pytree_node(Boxed, lambda b: ((b.inside,), b.label), lambda label, inside: Boxed(inside[0], label))

keys = st.one_of(st.text(max_size=3), st.just("a'\"\\\n"))
trees = st.recursive(
    st.one_of(st.integers(), st.none()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(keys, inner, max_size=3),
        st.dictionaries(st.integers(), inner, max_size=3),
        st.dictionaries(st.tuples(st.integers()), inner, max_size=2),
        st.dictionaries(keys, inner, max_size=3).map(OrderedDict),
        st.dictionaries(keys, inner, max_size=3).map(lambda d: defaultdict(list, d)),
        st.tuples(inner, inner).map(lambda xy: Point(*xy)),
        inner.map(lambda x: Boxed(x, "label")),
    ),
    max_leaves=12,
)


@given(trees, trees)
def test_they_agree_with_walking(tree, other):
    leaves, structure = tree_flatten(tree)
    assert flattener(structure)(tree) == leaves
    built = builder(structure)(leaves)
    assert built == structure.unflatten(leaves) and type(built) is type(tree)
    if tree_structure(other) != structure and not structure_is_leaf(structure):
        taken = flattener(structure)(other)
        # what stands in a leaf's place is not looked at
        assert taken is None or builder(structure)(taken) == other


def test_keys_of_any_kind():
    for key in (None, 1, True, 2.5, frozenset(), (None,)):
        structure = tree_structure({key: 0})
        assert flattener(structure)({key: 1.0}) == [1.0]
        assert repr(builder(structure)([2.0])) == repr({key: 2.0})


def test_trees_that_are_equal_are_not_taken_for_each_other():
    assert [repr(builder(tree_structure({key: 0}))([2.0])) for key in (1, True, 1.0)] == [
        "{1: 2.0}",
        "{True: 2.0}",
        "{1.0: 2.0}",
    ]


class Odd(Point):
    def __iter__(self):
        return iter([7, 8, 9])


def test_named_tuples_that_iterate_in_their_own_way():
    structure = tree_structure(Odd(1, 2))
    assert flattener(structure)(Odd(3, 4)) == [3, 4] and tree_flatten(Odd(1, 2))[0] == [1, 2]
    built = builder(structure)([5, 6])
    assert type(built) is Odd and (built.x, built.y) == (5, 6)


def structure_is_leaf(structure):
    return structure.num_nodes == 1


@pytest.mark.parametrize(
    ("tree", "other"),
    [
        ({"a": 1}, {"b": 1}), ({"a": 1}, {"a": 1, "b": 2}), ({"a": 1, "b": 2}, {"a": 1}), ({}, {"a": 1}),
        ((1, 2), [1, 2]), ((1, 2), (1, 2, 3)), ((1, 2), (1,)), ([1], []), ([], [1]), (None, 1), ((None,), (1,)),
        (Point(1, 2), (1, 2)), ((1, 2), Point(1, 2)), (Boxed(1, "a"), Boxed(1, "b")), ({"a": 1}, OrderedDict(a=1)),
        (defaultdict(list, a=1), defaultdict(int, a=1)), (OrderedDict(a=1, b=2), OrderedDict(b=2, a=1)), ((1,), 1),
        ({"a": {"b": 1}}, {"a": 1}), ({1: 2}, {"1": 2}),
    ],
)  # fmt: skip
def test_another_structure(tree, other):
    assert flattener(tree_structure(tree))(other) is None


def test_data_that_does_not_compare():
    """`==` of the data gives an array: left to the walk, which says what is wrong."""
    tree = Boxed(1, np.arange(3))
    assert flattener(tree_structure(tree))(Boxed(1, np.arange(3))) is None
    assert flattener(tree_structure(tree))(tree) == [1]


@pytest.mark.parametrize("tree", [[0] * (LARGEST + 1), "deep"])
def test_what_is_too_large_is_walked(tree):
    if tree == "deep":
        tree = 1
        for _ in range(3 * DEEPEST):
            tree = (tree,)
    leaves, structure = tree_flatten(tree)
    assert flattener(structure)(tree) == leaves
    assert flattener(structure)({"other": 1}) is None
    assert builder(structure)(leaves) == tree


def test_too_few_leaves():
    with pytest.raises(ValueError, match="not enough values"):
        builder(tree_structure((1, 2)))([1])
