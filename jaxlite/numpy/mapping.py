"""``vectorize`` and functions that apply others along axes: ``apply_along_axis``, ``apply_over_axes``,
``piecewise``."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

from jaxlite.numpy.creation import asarray
from jaxlite.numpy.promotion import array_operand, axis_of
from jaxlite.numpy.selection import select
from jaxlite.numpy.shaping import broadcast_shapes, broadcast_to, expand_dims, squeeze
from jaxlite.transforms.batching import vmap

_DIMS = r"\(((?:\s*[\w]+\s*,?)*)\)"


def _parsed(signature: str) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    sides = signature.replace(" ", "").split("->")
    term = r"\((?:\w+(?:,\w+)*)?\)"
    if len(sides) != 2 or not all(re.fullmatch(f"{term}(?:,{term})*", side) for side in sides):
        raise ValueError(f"not a valid gufunc signature: {signature}")
    first, second = ([tuple(n for n in m.split(",") if n) for m in re.findall(_DIMS, side)] for side in sides)
    return first, second


def vectorize(pyfunc: Any, *, excluded: Any = frozenset(), signature: str | None = None) -> Callable[..., Any]:
    """``pyfunc`` over all elements (or the core axes that ``signature`` names), broadcasting the others.

    >>> import jaxlite.numpy as jnp
    >>> vectorize(lambda x, y: x + y)(jnp.arange(2), 1)
    Array([1, 2], dtype=int32)
    """

    @functools.wraps(pyfunc)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        fixed = {i for i in excluded if isinstance(i, int)}
        live = [i for i in range(len(args)) if i not in fixed]
        arrays = [asarray(args[i]) for i in live]
        cores: list[tuple[str, ...]] = _parsed(signature)[0] if signature is not None else [()] * len(arrays)
        if len(cores) != len(arrays):
            raise TypeError(f"wrong number of positional arguments: expected {len(cores)}, got {len(arrays)}")
        _check_cores(arrays, cores)
        function = functools.partial(_with_fixed, pyfunc, args, live, kwargs)
        return _mapped(function, arrays, [len(c) for c in cores])

    return wrapped


def _with_fixed(pyfunc: Any, args: Any, live: list[int], kwargs: Any, *values: Any) -> Any:
    given = list(args)
    for i, value in zip(live, values, strict=True):
        given[i] = value
    return pyfunc(*given, **kwargs)


def _check_cores(arrays: list[Any], cores: list[tuple[str, ...]]) -> None:
    sizes: dict[str, int] = {}
    for array, core in zip(arrays, cores, strict=True):
        if len(array.shape) < len(core):
            raise ValueError(
                f"input with shape {array.shape} does not have enough dimensions for all core dimensions {core}"
            )
        for name, n in zip(core, array.shape[len(array.shape) - len(core) :], strict=True):
            if sizes.setdefault(name, n) != n:
                raise ValueError(f"inconsistent size for core dimension {name!r}: {n} vs {sizes[name]}")


def _mapped(function: Callable[..., Any], arrays: list[Any], core_ranks: list[int]) -> Any:
    """``function`` under one ``vmap`` for each leading axis; arrays that lack an axis are not mapped over it."""
    leads = [a.shape[: len(a.shape) - r] for a, r in zip(arrays, core_ranks, strict=True)]
    lead = broadcast_shapes(*leads) if leads else ()
    squeezed = [
        squeeze(a, tuple(d for d, n in enumerate(own) if n == 1 != lead[d - len(own)]))
        for a, own in zip(arrays, leads, strict=True)
    ]
    mapped = function
    for d in range(1, len(lead) + 1):
        axes = [0 if len(own) >= d and (own[-d] != 1 or lead[-d] == 1) else None for own in leads]
        mapped = vmap(mapped, in_axes=tuple(axes))
    return mapped(*squeezed)


def apply_along_axis(func1d: Any, axis: Any, arr: Any, *args: Any, **kwargs: Any) -> Any:
    """``func1d`` of every vector along ``axis``."""
    x = array_operand("apply_along_axis", arr)
    number = axis_of(axis, len(x.shape))

    def function(v: Any) -> Any:
        return func1d(v, *args, **kwargs)

    mapped: Callable[..., Any] = function
    for _ in range(number + 1, len(x.shape)):
        mapped = vmap(mapped, in_axes=1, out_axes=-1)
    for _ in range(number):
        mapped = vmap(mapped, in_axes=0, out_axes=0)
    return mapped(x)


def apply_over_axes(func: Any, a: Any, axes: Any) -> Any:
    """``func(x, axis)`` for each of ``axes``, one after the other."""
    x = array_operand("apply_over_axes", a)
    for axis in axes if isinstance(axes, (tuple, list)) else (axes,):
        out = func(x, axis=axis)
        x = out if len(out.shape) == len(x.shape) else expand_dims(out, axis)
    return x


def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Any:
    """Per element, the function (or value) whose condition holds; one more function is for where none does."""
    value = array_operand("piecewise", x)
    conditions = [asarray(c) for c in condlist]
    functions = list(funclist)
    if len(functions) not in (len(conditions), len(conditions) + 1):
        raise ValueError(
            f"with {len(conditions)} condition(s), either {len(conditions)} or {len(conditions) + 1} functions "
            f"are expected; got {len(functions)}"
        )
    default = functions.pop() if len(functions) > len(conditions) else 0
    results = [asarray(f(value, *args, **kw) if callable(f) else f).astype(value.dtype) for f in (*functions, default)]
    # Later conditions win, as NumPy assigns them one after the other.
    return select([broadcast_to(c, value.shape) for c in conditions[::-1]], results[-2::-1], results[-1])
