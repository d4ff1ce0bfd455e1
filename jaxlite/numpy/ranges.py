"""Evenly spaced values and grids: ``arange``, ``linspace``, ``logspace``, ``geomspace``, ``meshgrid``, ``indices``."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from jaxlite import lax
from jaxlite.core import dtypes
from jaxlite.core.avals import aval_of
from jaxlite.core.errors import ConcretizationTypeError
from jaxlite.core.trace import Tracer, concretization_message
from jaxlite.lax.elementwise.casts import convert
from jaxlite.lax.placed import placed
from jaxlite.numpy.arithmetic import _select
from jaxlite.numpy.creation import asarray
from jaxlite.numpy.promotion import (
    array_operand,
    axis_of,
    check_arraylike,
    common_type,
    expand_to,
    result_shape,
    to_float,
    user_dtype,
)


def _concrete(name: str, value: Any) -> Any:
    if isinstance(value, Tracer):
        known = value.concrete()
        if known is None:
            instead = (
                "Its length would set a shape: mark the argument static (static_argnums), or write a fixed length and "
                "mask."
            )
            raise ConcretizationTypeError(concretization_message(value, f"argument {name!r} of jnp.arange", instead))
        value = known
    if np.ndim(value):
        raise ValueError(f"jax.numpy.arange: arguments must be scalars; got {name}={value}")
    return value


@placed
def arange(
    start: Any, stop: Any = None, step: Any = None, dtype: Any = None, *, device: Any = None, out_sharding: Any = None
) -> Any:
    """Values from ``start`` to below ``stop``, ``step`` apart.

    >>> arange(3)
    Array([0, 1, 2], dtype=int32)
    """
    wanted = None if dtype is None else user_dtype(dtype)
    given = {"start": start, "stop": stop, "step": step}
    for name, value in given.items():
        if value is not None:
            check_arraylike("arange", value)
            given[name] = _concrete("stop" if stop is None and name == "start" else name, value)
    if wanted is None:
        wanted = common_type([aval_of(v) for v in given.values() if v is not None])[0]
    first, last, step = given["start"], given["stop"], given["step"]
    if last is None:
        first, last = type(first)(0) if isinstance(first, (int, float)) else 0, first
    if first == 0 and step is None and wanted.kind in "iuf" and float(last) == int(last):
        return lax.iota(wanted, max(0, int(last)))
    ends: list[Any] = [np.asarray(v)[()] for v in (first, last, 1 if step is None else step)]
    values: np.ndarray[Any, Any] = np.arange(ends[0], ends[1], ends[2])
    return asarray(values.astype(wanted))


@placed
def linspace(
    start: Any, stop: Any, num: Any = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None,
    axis: int = 0, *, device: Any = None,
) -> Any:  # fmt: skip
    """``num`` values from ``start`` to ``stop`` (left out unless ``endpoint``), evenly spaced.

    >>> linspace(0, 1, 3)
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    number = operator.index(num)
    if number < 0:
        raise ValueError(f"Number of samples, {number}, must be non-negative.")
    check_arraylike("linspace", start, stop)
    ends = [array_operand("linspace", v) for v in (start, stop)]
    computing = to_float(common_type([aval_of(v) for v in ends])[0])
    wanted = computing if dtype is None else user_dtype(dtype)
    if not dtypes.is_inexact(wanted) or (dtypes.is_float(computing) and computing.itemsize < wanted.itemsize):
        computing = to_float(wanted)
    first, last = (convert(v, computing) for v in ends)
    shape = result_shape("linspace", [first.shape, last.shape])
    first, last = expand_to(first, shape), expand_to(last, shape)
    steps = number - 1 if endpoint else number
    out, delta = _spaced(first, last, shape, number, steps, computing, endpoint)
    if not dtypes.is_inexact(wanted):
        out = lax.floor(out)
    axis = axis_of(axis, len(shape) + 1)
    if axis:
        out = lax.transpose(out, (*range(1, axis + 1), 0, *range(axis + 1, len(shape) + 1)))
    out = convert(out, wanted)
    return (out, delta) if retstep else out


def _spaced(first: Any, last: Any, shape: tuple[int, ...], number: int, steps: int, dtype: Any, endpoint: bool) -> Any:
    """``number`` points along a new leading axis, weighted from both ends so that each end is met exactly."""
    rank = len(shape)
    nan = lax.full(shape, dtype.type(np.nan))
    delta = nan if steps <= 0 else lax.div(lax.sub(last, first), dtype.type(steps))
    if number == 0:
        return lax.full((0, *shape), dtype.type(0)), delta
    if number == 1 or steps <= 0:
        return lax.reshape(first, (1, *shape)), nan if endpoint else delta
    count = steps if endpoint else number
    weight = lax.div(lax.iota(dtype, count), dtype.type(steps))
    weight = lax.broadcast_in_dim(weight, (count, *shape), (0,))
    low, high = (lax.broadcast_in_dim(v, (count, *shape), tuple(range(1, rank + 1))) for v in (first, last))
    points = lax.add(lax.mul(low, lax.sub(dtype.type(1), weight)), lax.mul(high, weight))
    return (lax.concatenate([points, lax.reshape(last, (1, *shape))], 0) if endpoint else points), delta


def logspace(
    start: Any, stop: Any, num: Any = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None, axis: int = 0
) -> Any:
    """``base`` to the powers that ``linspace(start, stop)`` gives."""
    from jaxlite.numpy.arithmetic import power

    wanted = None if dtype is None else user_dtype(dtype)
    computing = to_float(common_type([aval_of(array_operand("logspace", v)) for v in (start, stop)])[0])
    exponents = linspace(start, stop, num, endpoint, dtype=computing if wanted is None else to_float(wanted), axis=axis)
    out = power(base, exponents)
    return out if wanted is None else convert(out, wanted)


def geomspace(start: Any, stop: Any, num: Any = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Any:
    """Values from ``start`` to ``stop`` with equal ratios; both of one sign."""
    from jaxlite.numpy.float_functions import log10

    ends = [array_operand("geomspace", v) for v in (start, stop)]
    computing = to_float(common_type([aval_of(v) for v in ends])[0])
    wanted = computing if dtype is None else user_dtype(dtype)
    first, last = (convert(v, computing) for v in ends)
    zero = computing.type(0)
    sign = _select(lax.lt(first, zero), lax.full_like(first, -1), lax.full_like(first, 1))
    powers = logspace(log10(sign * first), log10(sign * last), num, endpoint, 10.0, computing, axis)
    return convert(sign * powers if not sign.shape or axis == 0 else powers * sign, wanted)


def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> tuple[Any, ...]:
    """Coordinate arrays of the grid that vectors span; "xy" puts the second vector along rows."""
    if indexing not in ("xy", "ij"):
        raise ValueError(f"Valid values for indexing are 'xy' and 'ij', got {indexing!r}")
    if not copy:
        raise ValueError("jax.numpy.meshgrid only supports copy=True")
    vectors = [array_operand("meshgrid", x) for x in xi]
    vectors = [lax.reshape(v, (1,)) if not v.shape else v for v in vectors]
    if any(len(v.shape) != 1 for v in vectors):
        raise ValueError("Arguments to jax.numpy.meshgrid must be at most 1D")
    rank = len(vectors)
    places = [1 - i if indexing == "xy" and rank > 1 and i < 2 else i for i in range(rank)]
    lengths = [0] * rank
    for place, vector in zip(places, vectors, strict=True):
        lengths[place] = vector.shape[0]

    def spread(vector: Any, place: int) -> Any:
        shape = [n if i == place or not sparse else 1 for i, n in enumerate(lengths)]
        return lax.broadcast_in_dim(vector, shape, (place,))

    return tuple(spread(v, p) for v, p in zip(vectors, places, strict=True))


def indices(dimensions: Any, dtype: Any = None, sparse: bool = False) -> Any:
    """The index of every element along each axis, stacked (a tuple of open grids where ``sparse``)."""
    shape = tuple(operator.index(n) for n in dimensions)
    wanted = dtypes.canonicalize(int if dtype is None else dtype)
    grids = []
    for axis, n in enumerate(shape):
        own = tuple(n if i == axis else 1 for i in range(len(shape))) if sparse else shape
        grids.append(lax.broadcasted_iota(wanted, own, axis))
    if sparse:
        return tuple(grids)
    if not grids:
        return lax.full((0,), wanted.type(0))
    return lax.concatenate([lax.reshape(g, (1, *shape)) for g in grids], 0)


def tri(N: Any, M: Any = None, k: int = 0, dtype: Any = None) -> Any:
    """Ones at and below diagonal ``k`` of an ``N`` by ``M`` matrix of zeros."""
    rows, columns = operator.index(N), operator.index(N if M is None else M)
    wanted = dtypes.canonicalize(np.float64 if dtype is None else dtype)
    return convert(lower_mask((rows, columns), k), wanted)


def lower_mask(shape: tuple[int, int], k: int) -> Any:
    """True at and below diagonal ``k``."""
    i32 = np.dtype(np.int32)
    row, column = (lax.broadcasted_iota(i32, shape, d) for d in (0, 1))
    return lax.ge(lax.add(row, np.int32(k)), column)
