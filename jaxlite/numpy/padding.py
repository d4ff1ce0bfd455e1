"""``pad``: an array with a border, filled with a constant or with values of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jaxlite import lax
from jaxlite.lax.convert import operand_of
from jaxlite.lax.elementwise.casts import convert
from jaxlite.numpy.joining import joined
from jaxlite.numpy.promotion import array_operand, is_arraylike
from jaxlite.numpy.reductions import max_, min_
from jaxlite.numpy.statistics import mean, median

_STATISTICS: dict[str, Callable[..., Any]] = {"maximum": max_, "minimum": min_, "mean": mean, "median": median}
_ALLOWED: dict[str, tuple[str, ...]] = {
    "constant": ("constant_values",),
    "edge": (),
    "wrap": (),
    "empty": (),
    "reflect": ("reflect_type",),
    "symmetric": ("reflect_type",),
    "linear_ramp": ("end_values",),
    **dict.fromkeys(_STATISTICS, ("stat_length",)),
}


def pad(array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Any:
    """``array`` with ``pad_width`` ((before, after) for each axis) more elements around it.

    >>> import jaxlite.numpy as jnp
    >>> pad(jnp.arange(3), 1, mode="wrap")
    Array([2, 0, 1, 2, 0], dtype=int32)
    """
    x = array_operand("pad", array)
    rank = len(x.shape)
    widths = _pairs("pad_width", _widths_of(pad_width, rank), rank)
    if any(w < 0 for pair in widths for w in pair):
        raise ValueError(f"index can't contain negative values: pad_width={pad_width}")
    if callable(mode):
        raise NotImplementedError("pad: mode must be a name, not a function.")
    if mode not in _ALLOWED:
        raise NotImplementedError(f"Unimplemented padding mode {mode!r} for jnp.pad: use one of {sorted(_ALLOWED)}.")
    unknown = set(kwargs) - set(_ALLOWED[mode])
    if unknown:
        raise ValueError(f"unsupported keyword arguments for mode {mode!r}: {unknown}")
    if mode in ("constant", "empty"):
        return _constant(x, widths, kwargs.get("constant_values", 0))
    if kwargs.get("reflect_type", "even") != "even":
        raise NotImplementedError("pad: only reflect_type='even' is supported.")
    for axis, (before, after) in enumerate(widths):
        if before or after:
            x = _along(x, axis, before, after, mode, kwargs)
    return x


def _widths_of(pad_width: Any, rank: int) -> Any:
    if isinstance(pad_width, dict):
        by_axis = {axis % rank: width for axis, width in pad_width.items()}
        return [by_axis.get(d, (0, 0)) for d in range(rank)]
    return pad_width


def _pairs(name: str, given: Any, rank: int) -> list[tuple[int, int]]:
    """(before, after) for each axis, from a number, a pair, or a pair for each axis."""
    values = np.asarray(given)
    if values.dtype.kind not in "iu":
        raise TypeError(f"`{name}` must be of integral type, got {given!r}.")
    if values.ndim == 2 and values.shape[1] == 1:
        values = np.broadcast_to(values, (values.shape[0], 2))
    try:
        return [(int(a), int(b)) for a, b in np.broadcast_to(values, (rank, 2))]
    except ValueError:
        raise ValueError(
            f"jnp.pad: {name} with nd={rank} has unsupported shape {values.shape}. Valid shapes are ({rank}, 2), "
            "(1, 2), "
            "(2,), (1,), or ()."
        ) from None


def _constant(x: Any, widths: list[tuple[int, int]], fill: Any) -> Any:
    rank = len(x.shape)
    value = fill if is_arraylike(fill) else np.asarray(fill)
    if not np.shape(value):
        return lax.pad(x, convert(operand_of(value), x.dtype), [(a, b, 0) for a, b in widths])
    fills = np.broadcast_to(np.asarray(value), (rank, 2))
    for axis, pair in enumerate(widths):
        for side, count in enumerate(pair):
            config = [(0, 0, 0)] * rank
            config[axis] = (0, count, 0) if side else (count, 0, 0)
            x = lax.pad(x, convert(operand_of(fills[axis, side]), x.dtype), config)
    return x


def _along(x: Any, axis: int, before: int, after: int, mode: str, options: dict[str, Any]) -> Any:
    n = x.shape[axis]
    if n == 0:
        raise ValueError(f"can't extend empty axis {axis} using modes other than 'constant' or 'empty'")
    if mode == "edge":
        sides = [
            _repeated(lax.slice_in_dim(x, i, i + 1, 1, axis), count, axis) for i, count in ((0, before), (n - 1, after))
        ]
        return joined([sides[0], x, sides[1]], axis)
    if mode in _STATISTICS:
        return _statistic(x, axis, before, after, mode, options)
    if mode == "linear_ramp":
        return _ramp(x, axis, before, after, options.get("end_values", 0))
    return _periodic(x, axis, before, after, mode)


def _repeated(x: Any, count: int, axis: int) -> Any:
    return lax.broadcast_in_dim(x, [count if d == axis else n for d, n in enumerate(x.shape)], range(len(x.shape)))


def _periodic(x: Any, axis: int, before: int, after: int, mode: str) -> Any:
    """Borders from a period of the values: themselves ("wrap"), or themselves there and back."""
    n = x.shape[axis]

    def part(a: int, b: int, backward: bool) -> Any:
        piece = lax.slice_in_dim(x, a, b, 1, axis)
        return lax.rev(piece, (axis,)) if backward else piece

    if mode == "reflect" and n == 1:
        return _along(x, axis, before, after, "edge", {})
    edge = 1 if mode == "reflect" else 0  # whether the end itself is left out
    period = n if mode == "wrap" else n - edge
    left: list[Any] = []
    right: list[Any] = []
    for count, pieces, is_left in ((before, left, True), (after, right, False)):
        turns = 0
        while count:
            step = min(count, period)
            backward = mode != "wrap" and turns % 2 == 0
            if mode == "wrap":
                piece = part(n - step, n, False) if is_left else part(0, step, False)
            elif is_left == backward:
                piece = part(edge, edge + step, backward)
            else:
                piece = part(n - edge - step, n - edge, backward)
            pieces.append(piece)
            count, turns = count - step, turns + 1
    return joined([*left[::-1], x, *right], axis)


def _statistic(x: Any, axis: int, before: int, after: int, mode: str, options: dict[str, Any]) -> Any:
    length = options.get("stat_length")
    lengths = _pairs("stat_length", length, len(x.shape))[axis] if length is not None else (x.shape[axis],) * 2
    parts = []
    for side, count in ((0, before), (1, after)):
        n, m = x.shape[axis], min(lengths[side], x.shape[axis])
        piece = lax.slice_in_dim(x, 0, m, 1, axis) if side == 0 else lax.slice_in_dim(x, n - m, n, 1, axis)
        value = _STATISTICS[mode](piece, axis=axis, keepdims=True)
        if x.dtype.kind in "iu" and value.dtype != x.dtype:
            value = lax.round(value, lax.RoundingMethod.TO_NEAREST_EVEN)
        parts.append(_repeated(convert(value, x.dtype), count, axis))
    return joined([parts[0], x, parts[1]], axis)


def _ramp(x: Any, axis: int, before: int, after: int, end_values: Any) -> Any:
    from jaxlite.numpy.ranges import linspace

    ends = np.broadcast_to(np.asarray(end_values), (len(x.shape), 2))[axis]
    n = x.shape[axis]
    shape = [m for d, m in enumerate(x.shape) if d != axis]
    first, last = (lax.reshape(lax.slice_in_dim(x, i, i + 1, 1, axis), shape) for i in (0, n - 1))
    ramps = [linspace(ends[0], first, before, endpoint=False, dtype=x.dtype, axis=axis)]
    ramps.append(lax.rev(linspace(ends[1], last, after, endpoint=False, dtype=x.dtype, axis=axis), (axis,)))
    return joined([ramps[0], x, ramps[1]], axis)
