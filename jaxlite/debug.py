"""``jax.debug``: looking into programs while they run."""

from __future__ import annotations

import builtins
import string
from collections.abc import Callable
from typing import Any

import numpy as np

from jaxlite.core import dtypes
from jaxlite.core.array import Array
from jaxlite.core.avals import aval_of
from jaxlite.core.errors import refuse
from jaxlite.core.pytree import tree_map
from jaxlite.core.sharding_drawing import drawing
from jaxlite.lax.control.callback import debug_callback_p
from jaxlite.transforms.breakpoint import breakpoint as breakpoint
from jaxlite.transforms.callback import bind_callback


def callback(
    callback: Callable[..., Any], *args: Any, ordered: bool = False, partitioned: bool = False, **kwargs: Any
) -> None:
    """Calls a Python function with the values of its arguments each time the program gets here.

    What it returns is not looked at, and derivatives do not see it.
    """
    refuse("debug.callback", "partitioned", partitioned, False, "there is one device")

    def run(*given: Any, **keywords: Any) -> tuple[()]:
        callback(*given, **keywords)
        return ()

    bind_callback(debug_callback_p, run, (), args, kwargs, ordered=bool(ordered))


def print(
    fmt: str,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    **kwargs: Any,
) -> None:
    """Prints ``fmt.format(*args, **kwargs)`` each time the program gets here.

    >>> print("x = {x}", x=3)
    x = 3
    """
    refuse("debug.print", "partitioned", partitioned, False, "there is one device")
    if not skip_format_check:
        _check_format(fmt, args, kwargs)

    def show(*given: Any, **keywords: Any) -> None:
        readable = tree_map(_readable, (given, keywords))
        builtins.print(fmt.format(*readable[0], **readable[1]))

    callback(show, *args, ordered=ordered, **kwargs)


def _readable(value: Any) -> Any:
    """An array as it is formatted: a NumPy array, a scalar where it has no axes."""
    if not isinstance(value, Array) or dtypes.is_key(value.dtype):
        return value
    array = np.asarray(value)
    return array[()] if not array.shape else array


def _check_format(fmt: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """``ValueError`` where the format leaves arguments out, or is an f-string that was filled in already."""
    used_names: set[str] = set()
    count = 0
    for _, field, _, _ in string.Formatter().parse(fmt):
        if field is None:
            continue
        head = field.split(".")[0].split("[")[0]
        if head == "" or head.isdigit():
            count += 1
        else:
            used_names.add(head)
    unused = sorted(set(kwargs) - used_names)
    if unused or (args and not count):
        what = ", ".join(unused) or f"{len(args)} positional arguments"
        raise ValueError(
            f"Unused keyword arguments to the format string {fmt!r}: {what}.  Write them in braces: {{{what}}}."
        )
    missing = sorted(used_names - set(kwargs))
    if missing:
        raise KeyError(f"The format string {fmt!r} names {missing}, which are not given.")


def visualize_sharding(
    shape: Any, sharding: Any, *, use_color: bool = True, scale: float = 1.0, min_width: int = 9, max_width: int = 80,
    color_map: Any = None,
) -> None:  # fmt: skip
    """Prints which device holds which part of an array of ``shape``; the picture has no colours.

    >>> import jaxlite as jax
    >>> visualize_sharding((4,), jax.NamedSharding(jax.make_mesh((1,), ("x",)), jax.P("x")))
    ┌─────────┐
    │  CPU 0  │
    └─────────┘
    """
    refuse("visualize_sharding", "color_map", color_map, None, "the picture has no colours")
    refuse("visualize_sharding", "scale", scale, 1.0, "cells are as wide as their text: set min_width")
    del use_color
    builtins.print(drawing(shape, sharding, min_width, max_width))


def visualize_array_sharding(arr: Any, **kwargs: Any) -> None:
    """:func:`visualize_sharding` of an array."""
    inspect_array_sharding(arr, callback=lambda sharding: visualize_sharding(arr.shape, sharding, **kwargs))


def inspect_array_sharding(value: Any, *, callback: Callable[[Any], None]) -> None:
    """Calls ``callback`` with how an array lies; of a traced one with what its type says.

    How it lies along automatic axes is in ``jit(f).lower(...).compile().report.partition``.
    """
    sharding = value.sharding if isinstance(value, Array) else aval_of(value).sharding
    if sharding is None:
        raise ValueError(
            f"The type {aval_of(value)} does not say how it lies: look at "
            "jax.jit(f).lower(...).compile().report.partition."
        )
    callback(sharding)
