"""The notebook's variables that a cell reads: leaves that are traced, and constants.

In: the namespace and the names read. Out: :class:`Variables`: pytrees are taken leaf by leaf,
jaxlite and NumPy arrays are traced, every other leaf is a constant; ``key`` tells constants apart
by value, functions by identity and code.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Collection, Iterator, Mapping
from types import CodeType, FunctionType, MethodType
from typing import Any, final

import numpy as np

from jaxlite.core.array import Array
from jaxlite.core.avals import aval_of, is_valid
from jaxlite.core.pytree import tree_flatten, tree_unflatten
from jaxlite.transforms.jit import JitFunction

_BY_VALUE = (bool, int, str, bytes, type(None), range, slice)


@final
class Identity:
    """A key that equals only that of the same object, which it keeps alive."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


@final
@dataclasses.dataclass(frozen=True)
class Variable:
    """One variable: its structure, its leaves, and which of them are traced."""

    structure: Any
    leaves: list[Any]
    traced: tuple[bool, ...]

    def arguments(self) -> Any:
        """The variable with None, a node without leaves, in the place of each constant."""
        kept = [x if t else None for x, t in zip(self.leaves, self.traced, strict=True)]
        return tree_unflatten(self.structure, kept)

    def rebuilt(self, values: Iterator[Any]) -> Any:
        """The variable with the next of ``values`` in the place of each traced leaf."""
        pairs = zip(self.leaves, self.traced, strict=True)
        return tree_unflatten(self.structure, [next(values) if t else x for x, t in pairs])

    def key(self, by_identity: bool) -> Any:
        """What a program compiled for this variable depends on."""
        parts = [
            aval_of(x) if t else Identity(x) if by_identity else constant_key(x)
            for x, t in zip(self.leaves, self.traced, strict=True)
        ]
        return self.structure, self.traced, tuple(parts)


@final
@dataclasses.dataclass(frozen=True)
class Variables:
    """Every variable that a cell reads, by name, in sorted order."""

    by_name: dict[str, Variable]
    key: Any

    def arguments(self) -> dict[str, Any]:
        """The traced leaves, as keyword arguments of the cell's function."""
        named = {n: v.arguments() for n, v in self.by_name.items() if any(v.traced)}
        return named

    def rebuilt(self, leaves: list[Any]) -> dict[str, Any]:
        """Every variable, with ``leaves`` in the places of the traced ones."""
        values = iter(leaves)
        return {n: v.rebuilt(values) for n, v in self.by_name.items()}


def read_variables(
    namespace: Mapping[str, Any],
    names: Collection[str],
    trace: Collection[str] = (),
    static: Collection[str] = (),
) -> Variables:
    """The variables ``names`` and those that functions among them use."""
    found, baked = set[str](), set[str]()
    for name in names:
        if name in namespace:
            found.add(name)
            _follow(namespace[name], namespace, found, baked, False)
    by_name, keys = {}, []
    for name in sorted(found | baked):
        leaves, structure = tree_flatten(namespace[name])
        constant = name in static or name in baked
        traced = tuple([not constant and _is_traced(x, name in trace) for x in leaves])
        by_name[name] = Variable(structure, leaves, traced)
        keys.append((name, by_name[name].key(name in baked and name not in static)))
    return Variables(by_name, tuple(keys))


def _is_traced(leaf: Any, numbers_too: bool) -> bool:
    if isinstance(leaf, (Array, np.ndarray)):
        return is_valid(leaf)
    return numbers_too and is_valid(leaf)


def _follow(value: Any, namespace: Mapping[str, Any], found: set[str], baked: set[str], in_jit: bool) -> None:
    """Adds the notebook's variables that functions in ``value`` use.

    What a jitted function uses is ``baked``: it stays a constant, as the function's own cache of
    compiled programs has it.
    """
    for leaf in tree_flatten(value)[0]:
        for function, jitted in _functions(leaf, in_jit):
            if function.__globals__ is not namespace:
                continue
            names = baked if jitted else found
            for name in _global_names(function.__code__):
                if name in namespace and name not in names:
                    names.add(name)
                    _follow(namespace[name], namespace, found, baked, jitted)


def _functions(value: Any, in_jit: bool) -> Iterator[tuple[FunctionType, bool]]:
    """The plain functions inside a callable, and whether a jitted function stands around each."""
    match value:
        case JitFunction():
            yield from _functions(value.fun, True)
        case functools.partial():
            for part in (value.func, *value.args, *value.keywords.values()):
                yield from _functions(part, in_jit)
        case MethodType():
            yield from _functions(value.__func__, in_jit)
        case FunctionType():
            yield value, in_jit
            for cell in value.__closure__ or ():
                if callable(_contents(cell)):
                    yield from _functions(_contents(cell), in_jit)
        case _ if callable(value) and hasattr(value, "__wrapped__"):
            yield from _functions(value.__wrapped__, in_jit)


def _contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not bound yet
        return None


def _global_names(code: CodeType) -> set[str]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _global_names(constant)
    return names


def constant_key(value: Any) -> Any:
    """What tells constants apart: type and value; identity where values do not compare."""
    if isinstance(value, _BY_VALUE):
        return type(value), value
    if isinstance(value, (float, complex)):  # -0.0 is not 0.0, and NaN is itself
        return type(value), repr(value)
    if isinstance(value, FunctionType):
        return Identity(value), value.__code__
    if isinstance(value, (np.ndarray, np.generic, Array)) and is_valid(value):
        array = np.asarray(value)
        return type(value), array.dtype.str, array.shape, array.tobytes()
    if isinstance(value, (set, frozenset)):
        return type(value), frozenset(map(constant_key, value))
    equality: Any = type(value).__eq__
    if equality is object.__eq__ or not _is_hashable(value):
        return Identity(value)
    return type(value), value


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True
