"""Classes as pytree nodes: by functions, by methods, as dataclasses, as static values."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from jaxlite.core.pytree import Flatten, GetAttrKey, Node, Unflatten, flat_index_keys, register


def register_pytree_node(
    nodetype: type,
    flatten_func: Flatten,
    unflatten_func: Unflatten,
    flatten_with_keys_func: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Any]] | None = None,
) -> None:
    """Makes ``nodetype`` a node: ``flatten_func(x)`` gives (children, data), ``unflatten_func(data, children)`` x
    again."""

    def flatten(tree: Any) -> tuple[Iterable[Any], Any]:
        return _checked(nodetype, flatten_func(tree))

    keys = flat_index_keys
    if flatten_with_keys_func is not None:

        def keys(tree: Any, data: Any, count: int) -> Sequence[Any]:
            return [k for k, _ in _checked(nodetype, flatten_with_keys_func(tree))[0]]

    register(nodetype, Node(flatten, unflatten_func, keys))


def _checked(nodetype: type, flat: Any) -> tuple[Iterable[Any], Any]:
    """What a function that takes a node apart gave, if it is of the right form."""
    expected = "The to_iterable function for a custom PyTree node should return a (children, aux_data) tuple"
    if not isinstance(flat, tuple) or len(flat) != 2:
        raise ValueError(f"{expected}, got {flat!r} for {nodetype.__name__}")
    try:
        iter(flat[0])
    except TypeError:
        raise ValueError(f"{expected} where 'children' is iterable, got {flat!r} for {nodetype.__name__}") from None
    return flat


def register_pytree_with_keys(
    nodetype: type,
    flatten_with_keys: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Any]],
    unflatten_func: Unflatten,
    flatten_func: Flatten | None = None,
) -> None:
    """Like :func:`register_pytree_node`, the children given as (key, child) pairs."""

    def flatten(tree: Any) -> tuple[Iterable[Any], Any]:
        pairs, data = _checked(nodetype, flatten_with_keys(tree))
        return [c for _, c in pairs], data

    register_pytree_node(nodetype, flatten_func or flatten, unflatten_func, flatten_with_keys)


def register_pytree_node_class(cls: type) -> type:
    """Class decorator: ``cls.tree_flatten()`` and ``cls.tree_unflatten(data, children)`` make it a node."""
    register_pytree_node(cls, lambda x: x.tree_flatten(), cls.tree_unflatten)  # type: ignore[attr-defined]
    return cls


def register_pytree_with_keys_class(cls: type) -> type:
    """Class decorator: like :func:`register_pytree_node_class`, with ``tree_flatten_with_keys``."""
    plain = getattr(cls, "tree_flatten", None)
    register_pytree_with_keys(cls, lambda x: x.tree_flatten_with_keys(), cls.tree_unflatten, plain)  # type: ignore[attr-defined]
    return cls


def register_dataclass(
    nodetype: type,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> type:
    """Makes a dataclass a node: ``data_fields`` are children, ``meta_fields`` part of the structure.

    Without the two lists, fields marked ``metadata=dict(static=True)`` are meta fields.
    """
    if (data_fields is None) != (meta_fields is None):
        raise TypeError("register_dataclass takes both data_fields and meta_fields, or neither.")
    if data_fields is None or meta_fields is None:
        if not dataclasses.is_dataclass(nodetype):
            raise TypeError(f"{nodetype.__name__} is no dataclass: give data_fields and meta_fields.")
        init = [f for f in dataclasses.fields(nodetype) if f.init]
        data_fields = [f.name for f in init if not f.metadata.get("static", False)]
        meta_fields = [f.name for f in init if f.metadata.get("static", False)]
    if dataclasses.is_dataclass(nodetype):
        named = {*data_fields, *meta_fields, *drop_fields}
        fields = {f.name for f in dataclasses.fields(nodetype) if f.init}
        if named != fields:
            raise ValueError(
                f"data_fields and meta_fields must name every field of {nodetype.__name__}: missing "
                f"{sorted(fields - named)}, unknown {sorted(named - fields)}."
            )
    data, meta = tuple(data_fields), tuple(meta_fields)

    def flatten(tree: Any) -> tuple[list[Any], Any]:
        return [getattr(tree, f) for f in data], tuple(getattr(tree, f) for f in meta)

    def unflatten(aux: Any, children: Sequence[Any]) -> Any:
        return nodetype(**dict(zip(meta, aux, strict=True)), **dict(zip(data, children, strict=True)))

    register(nodetype, Node(flatten, unflatten, lambda t, d, n: [GetAttrKey(f) for f in data]))
    return nodetype


def register_static(cls: type) -> type:
    """Class decorator: instances are nodes without leaves, compared with ``==``."""
    register_pytree_node(cls, lambda x: ((), x), lambda data, children: data)
    return cls
