"""Options: what ``jit`` was told of its arguments: which are static, and which give up their memory.

A call's arguments go in; the dynamic ones, and the static ones as a hashable key, come out, and go together again
where the function itself is called.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, final

from jaxlite.core.pytree import tree_flatten


@final
class Options:
    """Static and donated arguments, by position and by name, and how calls are divided by them."""

    def __init__(
        self,
        fun: Callable[..., Any],
        static_argnums: Any,
        static_argnames: Any,
        donate_argnums: Any,
        donate_argnames: Any,
    ) -> None:
        self.fun = fun
        parameters = _parameters(fun)
        self.static_argnums, self.static_argnames = _positions(static_argnums, static_argnames, parameters, "static")
        self.donate_argnums, self.donate_argnames = _positions(donate_argnums, donate_argnames, parameters, "donate")
        both = sorted(set(self.static_argnums) & set(self.donate_argnums))
        if both:
            raise ValueError(
                f"Arguments {both} are both static and donated: a static argument is no array, so it cannot be donated."
            )
        self.divides = bool(self.static_argnums or self.static_argnames)
        self.donates = bool(self.donate_argnums or self.donate_argnames)

    def without_static(
        self, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any], tuple[Any, ...]]:
        """Dynamic positional and keyword arguments, and the static ones as a hashable key."""
        numbers = {n + len(args) if n < 0 else n for n in self.static_argnums}
        names = set(self.static_argnames)
        by_position = tuple((n, a) for n, a in enumerate(args) if n in numbers)
        by_name = tuple((k, kwargs[k]) for k in sorted(kwargs) if k in names)
        for where, value in (*by_position, *by_name):
            try:
                hash(value)
            except TypeError as error:
                label = self._label(where)
                raise ValueError(
                    f"Non-hashable static arguments are not supported: the static argument {label} "
                    f"of {name_of(self.fun)} is {value!r} of type "
                    f"{type(value).__name__} ({error}).  Pass a hashable value (a tuple in place "
                    "of a list), or do not mark it static."
                ) from None
        static = tuple((k, type(v), v) for k, v in (*by_position, *by_name))
        dynamic = tuple(a for n, a in enumerate(args) if n not in numbers)
        return dynamic, {k: v for k, v in kwargs.items() if k not in names}, static

    def _label(self, where: Any) -> str:
        parameters = _parameters(self.fun)
        if isinstance(where, int):
            return parameters[where].name if where < len(parameters) else f"number {where}"
        return str(where)

    def together(
        self, args: Sequence[Any], kwargs: dict[str, Any], static: tuple[Any, ...]
    ) -> tuple[list[Any], dict[str, Any]]:
        """Positional and keyword arguments with the static ones back in their places."""
        fixed = {k: v for k, _, v in static if isinstance(k, int)}
        named = {k: v for k, _, v in static if not isinstance(k, int)}
        given = iter(args)
        full = [fixed[n] if n in fixed else next(given) for n in range(len(args) + len(fixed))]
        return full, {**kwargs, **named}

    def is_static_name(self, leaf: str, static: tuple[Any, ...]) -> bool:
        labels = {self._label(k) for k, _, _ in static}
        return any(leaf == label or leaf.startswith((label + "[", label + ".")) for label in labels)

    def donated(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[bool, ...]:
        """For each leaf, whether its memory is given up; ``args`` no longer hold the static ones."""
        total = len(args) + len(self.static_argnums)
        static = {n % total if n < 0 else n for n in self.static_argnums}
        places = [n for n in range(total) if n not in static][: len(args)]
        marked = [n in self.donate_argnums for n in places]
        by_leaf = [m for m, a in zip(marked, args, strict=True) for _ in tree_flatten(a)[0]]
        names = set(self.donate_argnames)
        by_leaf += [k in names for k in sorted(kwargs) for _ in tree_flatten(kwargs[k])[0]]
        return tuple(by_leaf)


def name_of(fun: Any) -> str:
    return getattr(fun, "__name__", type(fun).__name__)


def _parameters(fun: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(fun).parameters.values())
    except (TypeError, ValueError):
        return []


def _positions(
    numbers: Any, names: Any, parameters: list[inspect.Parameter], what: str
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Positions and names that go together: one given alone brings the other along, as in JAX.

    Negative positions count back from the last parameter that a position can reach, or, where there is no last one, in
    each call from its last argument.
    """
    given = () if numbers is None else (numbers,) if isinstance(numbers, int) else tuple(numbers)
    named = () if names is None else (names,) if isinstance(names, str) else tuple(names)
    if not all(isinstance(n, int) for n in given):
        raise TypeError(f"jit: {what}_argnums must be an int or a sequence of ints, got {numbers!r}.")
    by_name = {p.name: i for i, p in enumerate(parameters)}
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    takes_more = not parameters or any(p.kind is p.VAR_POSITIONAL for p in parameters)
    unknown = [n for n in named if n not in by_name]
    if unknown and parameters and not any(p.kind is p.VAR_KEYWORD for p in parameters):
        raise ValueError(f"jit got invalid argnames {unknown} in {what}_argnames: the function takes {list(by_name)}.")
    if not takes_more:
        count = len(positional)
        if any(not -count <= n < count for n in given):
            raise ValueError(
                f"jit: {what}_argnums {given} are out of range for a function of {count} positional parameters."
            )
        given = tuple([n % count for n in given])
    either = inspect.Parameter.POSITIONAL_OR_KEYWORD
    if names is None:
        named = tuple([positional[n].name for n in given if 0 <= n < len(positional) and positional[n].kind is either])
    if numbers is None:
        given = tuple([by_name[n] for n in named if n in by_name and parameters[by_name[n]].kind is either])
    return given, named
