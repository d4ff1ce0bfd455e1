"""Calls of jitted functions that use refs: their values are passed in, and their last values come out.

In: the jitted function, and arguments among which there are refs; ``captured`` are those it closes over.  Out: the
result; the refs hold new values.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from jaxlite.core.context import context_kept
from jaxlite.core.pytree import tree_flatten
from jaxlite.core.ref import CapturedRef, Ref, away, bound, noted, read_all, ref_type, write_all
from jaxlite.transforms.arguments import debug_info_of

Split = tuple[Sequence[Any], dict[str, Any], tuple[Any, ...]]  # dynamic arguments, keywords, static ones as a key


@context_kept
def call_with_refs(
    fun: Callable[..., Any],
    captured: list[Ref],
    split: Split,
    together: Callable[..., tuple[list[Any], dict[str, Any]]],
    programs: dict[Any, Any],
    jit: Callable[[Callable[..., Any]], Any],
) -> Any:
    """``fun`` of the arguments by a jitted function of values, kept in ``programs``; ``together`` undoes ``split``."""
    args, kwargs, static = split
    leaves, tree = tree_flatten((args, kwargs))
    places = tuple([i for i, x in enumerate(leaves) if type(x) is Ref])
    refs = [*captured, *(leaves[i] for i in places)]
    if len(set(map(id, refs))) < len(refs):
        _refuse_twice(fun, captured, args, kwargs, leaves)
    key = (tree, places, static)
    if key not in programs:
        programs[key] = jit(_on_values(fun, list(captured), tree, places, functools.partial(together, static=static)))
    values = read_all(refs)
    try:
        with away(refs):
            result, values = programs[key](values, [x for x in leaves if type(x) is not Ref])
    except CapturedRef as error:
        if any(error.ref is r for r in refs):
            del programs[key]
            _refuse_twice(fun, [*captured, error.ref], args, kwargs, leaves)
        raise noted(error) from None
    write_all(refs, values)
    return result


def _on_values(
    fun: Callable[..., Any], captured: list[Ref], tree: Any, places: tuple[int, ...], together: Callable[..., Any]
) -> Callable[..., Any]:
    """``(values of refs, other leaves) -> (result, last values)``."""
    count = len(captured)

    def function(values: list[Any], rest: list[Any]) -> tuple[Any, list[Any]]:
        own = [Ref(v) for v in values[count:]]
        refs = [*captured, *own]
        given: dict[int, Any] = dict(zip(places, own, strict=True))
        others = iter(rest)
        leaves = [given[i] if i in given else next(others) for i in range(tree.num_leaves)]
        args, kwargs = together(*tree.unflatten(leaves))
        with bound(refs, values) as last:
            return fun(*args, **kwargs), last()

    function.__name__ = getattr(fun, "__name__", type(fun).__name__)
    function.__wrapped__ = fun  # type: ignore[attr-defined]  # where messages look for the user's line
    return function


def _refuse_twice(
    fun: Callable[..., Any], captured: Sequence[Ref], args: Sequence[Any], kwargs: dict[str, Any], leaves: Sequence[Any]
) -> None:
    """``ValueError`` where a ref comes in by two ways: a write by one would not be seen by the other."""
    ways = dict.fromkeys((id(r) for r in captured), "closed over")
    info = debug_info_of(fun, args, kwargs)
    for name, leaf in zip(info.argument_names, leaves, strict=False):
        if type(leaf) is Ref:
            if id(leaf) in ways:
                raise ValueError(
                    f"jit of {info.function}: one {ref_type(leaf.type)} is both {ways[id(leaf)]} and passed as the "
                    f"argument {name}.  Pass it once."
                )
            ways[id(leaf)] = f"passed as the argument {name}"
