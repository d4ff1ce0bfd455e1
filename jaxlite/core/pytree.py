"""Pytrees: nested containers as flat lists of leaves, and the structure to build them again.

Tuples, lists, dicts (keys sorted), namedtuples, ``OrderedDict``, ``defaultdict``, ``None`` (a node without leaves) and
registered classes are nodes; everything else is a leaf.  Structures print as JAX's do.
"""

from __future__ import annotations

import dataclasses
import functools
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, final

Flatten = Callable[[Any], tuple[Iterable[Any], Any]]
Unflatten = Callable[[Any, Sequence[Any]], Any]


@final
@dataclasses.dataclass(frozen=True)
class SequenceKey:
    """The step into entry ``idx`` of a tuple or list."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx}]"


@final
@dataclasses.dataclass(frozen=True)
class DictKey:
    """The step into the entry under ``key`` of a dict."""

    key: Hashable

    def __str__(self) -> str:
        return f"[{self.key!r}]"


@final
@dataclasses.dataclass(frozen=True)
class GetAttrKey:
    """The step into attribute ``name``."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"


@final
@dataclasses.dataclass(frozen=True)
class FlattenedIndexKey:
    """The step into child number ``key`` of a class registered without keys."""

    key: int

    def __str__(self) -> str:
        return f"[<flat index {self.key}>]"


KeyPath = tuple[Any, ...]


@final
@dataclasses.dataclass(frozen=True)
class Node:
    """How one container type is taken apart (``flatten``, ``keys``) and put together (``unflatten``)."""

    flatten: Flatten
    unflatten: Unflatten
    keys: Callable[[Any, Any, int], Sequence[Any]]


def _sorted_keys(tree: dict[Any, Any]) -> list[Any]:
    try:
        return sorted(tree)
    except TypeError as error:
        raise ValueError(
            "Comparator raised exception while sorting pytree dictionary keys: "
            f"{[type(k).__name__ for k in tree]} do not compare ({error}).  Use keys of one type."
        ) from error


def _flatten_dict(tree: dict[Any, Any]) -> tuple[list[Any], tuple[Any, ...]]:
    keys = _sorted_keys(tree)
    return [tree[k] for k in keys], tuple(keys)


def _flatten_defaultdict(tree: defaultdict[Any, Any]) -> tuple[list[Any], Any]:
    keys = _sorted_keys(tree)
    return [tree[k] for k in keys], (tree.default_factory, tuple(keys))


def _sequence_keys(tree: Any, data: Any, count: int) -> Sequence[Any]:
    return [SequenceKey(i) for i in range(count)]


def _dict_keys(tree: Any, data: Any, count: int) -> Sequence[Any]:
    return [DictKey(k) for k in data]


def flat_index_keys(tree: Any, data: Any, count: int) -> Sequence[Any]:
    return [FlattenedIndexKey(i) for i in range(count)]


_REGISTRY: dict[type, Node] = {
    tuple: Node(lambda t: (t, None), lambda d, c: tuple(c), _sequence_keys),
    list: Node(lambda t: (t, None), lambda d, c: list(c), _sequence_keys),
    dict: Node(_flatten_dict, lambda d, c: dict(zip(d, c, strict=True)), _dict_keys),
    OrderedDict: Node(
        lambda t: (list(t.values()), tuple(t)), lambda d, c: OrderedDict(zip(d, c, strict=True)), _dict_keys
    ),
    defaultdict: Node(
        _flatten_defaultdict,
        lambda d, c: defaultdict(d[0], zip(d[1], c, strict=True)),
        lambda t, d, n: [DictKey(k) for k in d[1]],
    ),
    type(None): Node(lambda t: ((), None), lambda d, c: None, _sequence_keys),
}

_NAMEDTUPLE = Node(
    lambda t: (tuple(tuple.__iter__(t)), type(t)),
    lambda d, c: d(*c),
    lambda t, d, n: [GetAttrKey(name) for name in d._fields],
)


def node_kind(kind: type) -> Node | None:
    """How a class that is registered, or built in, is taken apart and put together; None for any other."""
    return _REGISTRY.get(kind)


def _node_of(tree: Any) -> Node | None:
    node = _REGISTRY.get(type(tree))
    if node is None and isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return _NAMEDTUPLE
    return node


@final
class PyTreeDef:
    """A structure: kind of node, its data (keys, class), its children.  A leaf has kind ``None``."""

    __slots__ = ("_hash", "children_", "data", "kind", "num_leaves", "shared")

    def __init__(self, kind: Any, data: Any, children: tuple[PyTreeDef, ...]) -> None:
        self.kind, self.data, self.children_ = kind, data, children
        self.num_leaves: int = sum(c.num_leaves for c in children) if kind is not None else 1
        self.shared = False  # whether equal structures are this very object
        self._hash: int | None = None

    @property
    def num_nodes(self) -> int:
        """Nodes and leaves in all."""
        return 1 + sum(c.num_nodes for c in self.children_)

    def children(self) -> list[PyTreeDef]:
        """The structures of the children."""
        return list(self.children_)

    def node_data(self) -> tuple[type, Any] | None:
        """Class and data of the node; None for a leaf."""
        return None if self.kind is None else (self.kind, self.data)

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """The tree of this structure with these leaves."""
        leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise ValueError(f"Expected {self.num_leaves} leaves for {self}, got {len(leaves)}.")
        return self._build(iter(leaves).__next__)

    def _build(self, take: Callable[[], Any]) -> Any:
        if self.kind is None:
            return take()
        children = [c._build(take) for c in self.children_]
        kind = self.kind
        if kind is tuple:
            return tuple(children)
        if kind is dict:
            return dict(zip(self.data, children, strict=True))
        node = _REGISTRY.get(kind, _NAMEDTUPLE)
        return node.unflatten(self.data, children)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """The subtrees of ``tree`` where this structure has leaves; ``ValueError`` where it is no prefix."""
        out: list[Any] = []
        self._up_to(tree, (), out)
        return out

    def _up_to(self, tree: Any, path: KeyPath, out: list[Any]) -> None:
        if self.kind is None:
            out.append(tree)
            return
        node = _node_of(tree)
        if node is None or type(tree) is not self.kind:
            raise ValueError(
                f"Expected {self.kind.__name__} at tree{keystr(path)}, got {type(tree).__name__}: {_brief(tree)}."
            )
        children, data = node.flatten(tree)
        children = list(children)
        if not _same_data(self, data) or len(children) != len(self.children_):
            expected = f"{self.data}" if self.kind in (dict, OrderedDict) else f"{len(self.children_)} children"
            got = f"{data}" if self.kind in (dict, OrderedDict) else f"{len(children)}"
            raise ValueError(f"{self.kind.__name__} mismatch at tree{keystr(path)}: expected {expected}, got {got}.")
        keys = node.keys(tree, data, len(children))
        for key, child, structure in zip(keys, children, self.children_, strict=True):
            structure._up_to(child, (*path, key), out)

    def compose(self, inner: PyTreeDef) -> PyTreeDef:
        """This structure with ``inner`` at every leaf."""
        if self.kind is None:
            return inner
        return PyTreeDef(self.kind, self.data, tuple(c.compose(inner) for c in self.children_))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, PyTreeDef)
            and self.kind is other.kind
            and self.num_leaves == other.num_leaves
            and _same_data(self, other.data)
            and self.children_ == other.children_
        )

    def __hash__(self) -> int:
        if self._hash is None:
            try:
                self._hash = hash((self.kind, self.data, self.children_))
            except TypeError:  # data that does not hash: equality tells such structures apart
                self._hash = hash((self.kind, self.children_))
        return self._hash

    def _text(self) -> str:
        if self.kind is None:
            return "*"
        inner = [c._text() for c in self.children_]
        if self.kind is type(None):
            return "None"
        if self.kind is tuple:
            return f"({', '.join(inner)}{',' if len(inner) == 1 else ''})"
        if self.kind is list:
            return f"[{', '.join(inner)}]"
        if self.kind is dict:
            return "{" + ", ".join(f"{k!r}: {v}" for k, v in zip(self.data, inner, strict=True)) + "}"
        if self.kind not in _REGISTRY:
            return f"CustomNode(namedtuple[{self.kind.__name__}], [{', '.join(inner)}])"
        return f"CustomNode({self.kind.__name__}[{self.data}], [{', '.join(inner)}])"

    def __repr__(self) -> str:
        return f"PyTreeDef({self._text()})"

    def __reduce__(self) -> Any:
        return PyTreeDef, (self.kind, self.data, self.children_)


def _same_data(structure: PyTreeDef, data: Any) -> bool:
    """Whether the structure's data is ``data``; ``ValueError`` where ``==`` does not say."""
    if structure.data is data:
        return True
    try:
        return bool(structure.data == data)
    except ValueError as error:
        kind = structure.kind.__name__
        raise ValueError(
            f"The data of a pytree node of class {kind} do not compare: {structure.data!r} == {data!r} gives no bool "
            f"({error}). Arrays are no such data: make them children of {kind}, or use tuples."
        ) from error


_LEAF = PyTreeDef(None, None, ())
_NONE = PyTreeDef(type(None), None, ())
_LEAF.shared = _NONE.shared = True
_LEAF_TYPES: set[type] = {int, float, bool}  # asked for first; ``array`` adds its own
_SHARED: dict[Any, PyTreeDef] = {}
_MOST_SHARED = 1 << 16  # structures kept for sharing; beyond, equal ones may be different objects
_STRINGS = frozenset([str])


def _is_plain(kind: type, data: Any) -> bool:
    """Whether equal data are the same for all purposes: nothing, or strings.  Numbers are equal that are not the same,
    and what other classes call equal, and how much memory they hold, is not known."""
    return data is None or data is kind or (type(data) is tuple and _STRINGS.issuperset(map(type, data)))


def _structure(kind: Any, data: Any, children: tuple[PyTreeDef, ...]) -> PyTreeDef:
    """The structure; one object for equal ones with plain data, so that comparing signatures compares identities."""
    if not _is_plain(kind, data):
        return PyTreeDef(kind, data, children)
    key = (kind, data, *map(id, children))
    found = _SHARED.get(key)
    if found is None:
        found = PyTreeDef(kind, data, children)
        if len(_SHARED) < _MOST_SHARED and all(c.shared for c in children):
            found.shared = True
            _SHARED[key] = found  # it keeps its children, and so their identities, alive
    return found


def forget_shared() -> None:
    """Forgets the structures that are kept for sharing; those in use live on."""
    _SHARED.clear()


IsLeaf = Callable[[Any], bool] | None
_UNSET = object()


def _brief(tree: Any) -> str:
    text = repr(tree)
    return text if len(text) < 60 else text[:57] + "..."


def tree_flatten(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], PyTreeDef]:
    """The leaves of ``tree``, depth first, and its structure.

    >>> tree_flatten({"b": (1, None), "a": 2})
    ([2, 1], PyTreeDef({'a': *, 'b': (*, None)}))
    """
    leaves: list[Any] = []
    return leaves, _flatten(tree, is_leaf, leaves.append)


def _flatten(tree: Any, is_leaf: IsLeaf, emit: Callable[[Any], None]) -> PyTreeDef:
    if type(tree) in _LEAF_TYPES and is_leaf is None:
        emit(tree)
        return _LEAF
    if is_leaf is not None and is_leaf(tree):
        emit(tree)
        return _LEAF
    if tree is None:
        return _NONE
    node = _node_of(tree)
    if node is None:
        emit(tree)
        return _LEAF
    children, data = node.flatten(tree)
    return _structure(type(tree), data, tuple([_flatten(c, is_leaf, emit) for c in children]))


def tree_flatten_with_path(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[tuple[KeyPath, Any]], PyTreeDef]:
    """Like :func:`tree_flatten`, each leaf with the path of keys that leads to it."""
    leaves: list[tuple[KeyPath, Any]] = []

    def walk(tree: Any, path: KeyPath) -> PyTreeDef:
        node = None if is_leaf is not None and is_leaf(tree) else _node_of(tree)
        if node is None:
            leaves.append((path, tree))
            return _LEAF
        children, data = node.flatten(tree)
        children = list(children)
        keys = node.keys(tree, data, len(children))
        return PyTreeDef(type(tree), data, tuple(walk(c, (*path, k)) for k, c in zip(keys, children, strict=True)))

    return leaves, walk(tree, ())


def tree_leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves of ``tree``."""
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: IsLeaf = None) -> PyTreeDef:
    """The structure of ``tree``."""
    return tree_flatten(tree, is_leaf)[1]


def tree_unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    """The tree of structure ``treedef`` with these leaves."""
    return treedef.unflatten(leaves)


def tree_map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None) -> Any:
    """``f`` applied to the leaves of ``tree`` and to what stands there in ``rest``.

    >>> tree_map(lambda x, y: x + y, {"a": 1}, {"a": 2})
    {'a': 3}
    """
    leaves, treedef = tree_flatten(tree, is_leaf)
    columns = [leaves, *(treedef.flatten_up_to(r) for r in rest)]
    return treedef.unflatten([f(*xs) for xs in zip(*columns, strict=True)])


def tree_map_with_path(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None) -> Any:
    """Like :func:`tree_map`, ``f`` given the key path first."""
    leaves, treedef = tree_flatten_with_path(tree, is_leaf)
    columns = [treedef.flatten_up_to(r) for r in rest]
    return treedef.unflatten([f(path, x, *xs) for (path, x), *xs in zip(leaves, *columns, strict=True)])


def tree_leaves_with_path(tree: Any, is_leaf: IsLeaf = None) -> list[tuple[KeyPath, Any]]:
    """The leaves of ``tree`` with their key paths."""
    return tree_flatten_with_path(tree, is_leaf)[0]


def tree_reduce(
    function: Callable[[Any, Any], Any], tree: Any, initializer: Any = _UNSET, is_leaf: IsLeaf = None
) -> Any:
    """``functools.reduce`` over the leaves, from ``initializer`` if given."""
    leaves = tree_leaves(tree, is_leaf)
    return (
        functools.reduce(function, leaves) if initializer is _UNSET else functools.reduce(function, leaves, initializer)
    )


def tree_all(tree: Any, *, is_leaf: IsLeaf = None) -> bool:
    """Whether all leaves are true."""
    return all(tree_leaves(tree, is_leaf))


def all_leaves(iterable: Iterable[Any], is_leaf: IsLeaf = None) -> bool:
    """Whether nothing in ``iterable`` is a node."""
    return all(tree_structure(x, is_leaf) == _LEAF for x in iterable)


def tree_transpose(outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: Any) -> Any:
    """A tree of trees with the levels exchanged."""
    parts = outer_treedef.flatten_up_to(pytree_to_transpose)
    if inner_treedef is None:
        inner_treedef = tree_structure(parts[0])
    columns = [inner_treedef.flatten_up_to(p) for p in parts]
    return inner_treedef.unflatten([outer_treedef.unflatten(c) for c in zip(*columns, strict=True)])


def keystr(keys: Iterable[Any], *, simple: bool = False, separator: str = "") -> str:
    """A key path as it is written in Python: ``['a'][0].b``."""
    return separator.join(_simple_key(k) if simple else str(k) for k in keys)


def _simple_key(key: Any) -> str:
    for field in ("idx", "name", "key"):
        if hasattr(key, field):
            return str(getattr(key, field))
    return str(key)


def register(nodetype: type, node: Node) -> None:
    """Makes a class a node; ``ValueError`` where it is one already."""
    if nodetype in _REGISTRY:
        raise ValueError(f"Duplicate custom PyTreeDef type registration for {nodetype}.")
    _REGISTRY[nodetype] = node


def add_leaf_type(kind: type) -> None:
    """Says that instances of ``kind`` are leaves, so that nothing else needs to be looked up."""
    _LEAF_TYPES.add(kind)


def broadcast_prefix(prefix: Any, tree: Any, what: str, is_leaf: IsLeaf = None) -> list[Any]:
    """One entry of ``prefix`` for each leaf of ``tree``; None counts as an entry.  ``ValueError`` says where they
    part."""

    def leaf(x: Any) -> bool:
        return x is None or (is_leaf is not None and is_leaf(x))

    entries, treedef = tree_flatten(prefix, leaf)
    try:
        subtrees = treedef.flatten_up_to(tree)
    except ValueError as error:
        raise ValueError(f"{what} must be a tree prefix of the value it applies to: {error}") from None
    out: list[Any] = []
    for entry, subtree in zip(entries, subtrees, strict=True):
        out.extend([entry] * len(tree_leaves(subtree)))
    return out
