"""Arguments of transformed functions: which are differentiated, batched or static; leaves and back; errors that name
them."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

from jaxlite.core import dtypes
from jaxlite.core.avals import aval_of
from jaxlite.core.pytree import PyTreeDef, keystr, tree_flatten, tree_leaves_with_path
from jaxlite.lax.control.keeping_refs import KeepingRefs
from jaxlite.lax.control.trace_functions import debug_info
from jaxlite.lax.convert import operand_of

debug_info_of = debug_info


def as_argnums(argnums: int | Sequence[int], count: int, what: str) -> tuple[int, ...]:
    """``argnums`` as non-negative ints; errors say how many arguments there are."""
    given = (argnums,) if isinstance(argnums, int) else argnums
    try:
        numbers = tuple(operator.index(n) for n in given)
    except TypeError:
        raise TypeError(f"{what}: argnums must be an int or a sequence of ints, got {argnums!r}.") from None
    for n in numbers:
        if not -count <= n < count:
            raise ValueError(
                f"{what} got argnums={argnums}, but the function was called with only {count} positional arguments: "
                f"argnums must be from {-count} to {count - 1}."
            )
    places = tuple(n % count for n in numbers)
    twice = sorted({n for n in places if places.count(n) > 1})
    if twice:
        raise TypeError(
            f"{what} got argnums={argnums}, which names argument {twice[0]} more than once (of {count} arguments): "
            f"write argnums={tuple(dict.fromkeys(places))}."
        )
    return places


def check_enough(argnums: int | Sequence[int], count: int, what: str) -> None:
    """``TypeError``, as of any call that lacks an argument, where fewer were given than ``argnums`` names."""
    needed = max((n for n in ([argnums] if isinstance(argnums, int) else argnums) if isinstance(n, int)), default=-1)
    if needed >= count:
        raise TypeError(
            f"{what}: differentiating with respect to argnums={argnums} requires at least {needed + 1} positional "
            f"arguments, but the function was called with {count}. Pass them by position, or give a smaller argnums."
        )


def check_callable(function: Any, what: str) -> None:
    """``TypeError`` where ``function`` cannot be called."""
    if not callable(function):
        raise TypeError(f"{what} expected a callable value, got {function!r} of type {type(function).__name__}.")


def flat_operands(tree: Any, names: str = "argument") -> tuple[list[Any], PyTreeDef]:
    """The leaves of ``tree`` as operands, and its structure; ``TypeError`` names a leaf that is no array."""
    leaves, structure = tree_flatten(tree)
    try:
        return [operand_of(x) for x in leaves], structure
    except TypeError:
        for path, leaf in tree_leaves_with_path(tree):
            try:
                operand_of(leaf)
            except TypeError:
                raise TypeError(
                    f"The {names}{keystr(path)} is {leaf!r} of type {type(leaf).__name__}, which "
                    "is not a valid JAX type: "
                    "expected an array, a number, or a pytree of them."
                ) from None
        raise


def operands_but_refs(tree: Any, names: str = "argument") -> KeepingRefs:
    """``tree`` with its refs set aside: the other leaves as operands."""
    given = KeepingRefs(tree)
    given.leaves = flat_operands(given.leaves if given.has_refs else tree, names)[0]
    return given


def positional(
    function: Callable[..., Any], argnums: Sequence[int], args: Sequence[Any], kwargs: dict[str, Any]
) -> Callable[..., Any]:
    """``function`` of its arguments ``argnums`` alone, the others fixed."""

    @functools.wraps(function, updated=())
    def partial(*chosen: Any) -> Any:
        full = list(args)
        for n, value in zip(argnums, chosen, strict=True):
            full[n] = value
        return function(*full, **kwargs)

    return partial


def flat_function(
    function: Callable[..., Any], in_tree: PyTreeDef | KeepingRefs, out: list[Any]
) -> Callable[..., list[Any]]:
    """``function`` on leaves of its arguments; the structure of its result is put into ``out``."""

    def flat(*leaves: Any) -> list[Any]:
        result = function(*in_tree.unflatten(leaves))
        results, tree = flat_operands(result, "result")
        out[:] = [tree]
        return results

    return flat


def check_inexact(leaves: Sequence[Any], paths: Sequence[str], what: str, allow_int: bool) -> None:
    """``TypeError`` where a leaf has no tangents."""
    for leaf, path in zip(leaves, paths, strict=True):
        dtype = aval_of(leaf).dtype
        if dtypes.is_key(dtype) or not (dtypes.is_inexact(dtype) or allow_int):
            raise TypeError(
                f"{what} requires real- or complex-valued inputs (input dtype that is a sub-dtype "
                "of np.inexact), but got "
                f"{dtype.name} for argument {path}.  If you want to use Boolean- or integer-valued "
                "inputs, use vjp or set allow_int "
                "to True."
            )


def leaf_paths(tree: Any, name: str) -> list[str]:
    """Each leaf's path, as it is written in Python after ``name``."""
    return [name + keystr(path) for path, _ in tree_leaves_with_path(tree)]
