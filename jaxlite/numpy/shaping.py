"""Shape and order of axes: ``reshape``, ``transpose``, ``squeeze``, ``broadcast_to`` and the like."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxlite import lax
from jaxlite.core.avals import aval_of
from jaxlite.core.trace import Tracer
from jaxlite.lax.convert import operand_of
from jaxlite.lax.placed import placed
from jaxlite.numpy.promotion import array_operand, axes_of, axis_of, check_arraylike, expand_to, result_shape


def shape(a: Any) -> tuple[int, ...]:
    """The lengths of the axes."""
    check_arraylike("shape", a)
    return a.shape if isinstance(a, np.ndarray) else aval_of(operand_of(a)).shape


def ndim(a: Any) -> int:
    """The number of axes."""
    check_arraylike("ndim", a)
    return len(shape(a))


def size(a: Any, axis: Any = None) -> int:
    """The number of elements, or of those along ``axis``."""
    check_arraylike("size", a)
    lengths = shape(a)
    return math.prod(lengths[d] for d in axes_of(axis, len(lengths)))


def new_shape(old: tuple[int, ...], wanted: Any) -> tuple[int, ...]:
    """``wanted`` as lengths, the one -1 among them worked out; ``TypeError`` where the sizes differ."""
    given = tuple(wanted) if isinstance(wanted, (tuple, list)) or np.ndim(wanted) == 1 else (wanted,)
    try:
        lengths = tuple([operator.index(n) for n in given])
    except TypeError:
        if any(isinstance(n, Tracer) for n in given):
            raise
        raise TypeError(f"Shapes must be 1D sequences of concrete values of integer type, got {wanted!r}.") from None
    count = math.prod(old)
    unknown = lengths.count(-1)
    if unknown > 1:
        raise ValueError(f"can only specify one unknown dimension, got {lengths}")
    if unknown:
        known = -math.prod(lengths)
        if known == 0 or count % known:
            raise TypeError(
                f"cannot reshape array of shape {old} (size {count}) into shape {lengths} because the product of "
                f"specified axis sizes ({known}) does not evenly divide {count}"
            )
        return tuple(count // known if n == -1 else n for n in lengths)
    if math.prod(lengths) != count or any(n < 0 for n in lengths):
        asked = lengths if len(lengths) != 1 else lengths[0]
        raise TypeError(
            f"cannot reshape array of shape {old} (size {count}) into shape {asked} (size {math.prod(lengths)})"
        )
    return lengths


@placed
def reshape(a: Any, shape: Any, order: str = "C", *, copy: Any = None, out_sharding: Any = None) -> Any:
    """The elements in the same order under another shape; one length may be -1.

    >>> import jaxlite.numpy as jnp
    >>> reshape(jnp.arange(4), (2, -1))
    Array([[0, 1],
           [2, 3]], dtype=int32)
    """
    x = array_operand("reshape", a)
    lengths = new_shape(x.shape, shape)
    if order == "C":
        return lax.reshape(x, lengths)
    if order != "F":
        raise NotImplementedError(f"Unknown order {order!r} for reshape: use 'C' or 'F'.")
    backward = lax.reshape(_reversed(x), lengths[::-1])
    return _reversed(backward)


def _reversed(x: Any) -> Any:
    return lax.transpose(x, tuple(range(len(aval_of(x).shape)))[::-1])


@placed
def ravel(a: Any, order: str = "C", *, out_sharding: Any = None) -> Any:
    """All elements along one axis."""
    if order == "K":
        raise NotImplementedError("Ravel not implemented for order='K'.")
    return reshape(a, (-1,) if aval_of(array_operand("ravel", a)).size else (0,), order)


def transpose(a: Any, axes: Any = None) -> Any:
    """The axes in the order ``axes`` (None: reversed)."""
    x = array_operand("transpose", a)
    rank = len(x.shape)
    order = range(rank)[::-1] if axes is None else [axis_of(d, rank) for d in axes]
    if len(set(order)) != rank:
        raise ValueError(f"axes don't match array: got {tuple(order)} for an array of {rank} dimensions")
    return lax.transpose(x, tuple(order))


def permute_dims(a: Any, /, axes: Any) -> Any:
    """The axes in the order ``axes``."""
    return transpose(a, axes)


def matrix_transpose(x: Any, /) -> Any:
    """The last two axes swapped."""
    value = array_operand("matrix_transpose", x)
    if len(value.shape) < 2:
        raise ValueError(f"x must be at least two-dimensional for matrix_transpose; got shape {value.shape}")
    return swapaxes(value, -1, -2)


def swapaxes(a: Any, axis1: Any, axis2: Any) -> Any:
    """Two axes swapped."""
    x = array_operand("swapaxes", a)
    order = list(range(len(x.shape)))
    i, j = axis_of(axis1, len(order)), axis_of(axis2, len(order))
    order[i], order[j] = order[j], order[i]
    return lax.transpose(x, order)


def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    """Axes moved to other places, the rest in their order."""
    x = array_operand("moveaxis", a)
    rank = len(x.shape)
    sources, places = (
        [axis_of(d, rank) for d in (given if isinstance(given, (tuple, list)) else (given,))]
        for given in (source, destination)
    )
    if len(sources) != len(places):
        raise ValueError(f"Inconsistent number of elements: {len(sources)} vs {len(places)}")
    order = [d for d in range(rank) if d not in sources]
    for place, axis in sorted(zip(places, sources, strict=True)):
        order.insert(place, axis)
    return lax.transpose(x, order)


def rollaxis(a: Any, axis: int, start: int = 0) -> Any:
    """An axis moved to before position ``start``."""
    x = array_operand("rollaxis", a)
    number, rank = axis_of(axis, len(x.shape)), len(x.shape)
    if not -rank <= start <= rank:
        raise ValueError(f"start={start} must satisfy {-rank}<=start<={rank}")
    place = start + rank if start < 0 else start
    return moveaxis(x, number, place - (number < place))


def expand_dims(a: Any, axis: Any) -> Any:
    """New axes of length 1, which have the positions ``axis`` in the result."""
    x = array_operand("expand_dims", a)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    rank = len(x.shape) + len(axes)
    numbers = [axis_of(d, rank) for d in axes]
    if len(set(numbers)) != len(numbers):
        raise ValueError(f"repeated axis in expand_dims: {tuple(axes)}")
    return lax.expand_dims(x, numbers)


def squeeze(a: Any, axis: Any = None) -> Any:
    """Without its axes of length 1 (those given, or all)."""
    x = array_operand("squeeze", a)
    if axis is None:
        axes = tuple(d for d, n in enumerate(x.shape) if n == 1)
    else:
        axes = axes_of(axis, len(x.shape))
        if any(x.shape[d] != 1 for d in axes):
            raise ValueError(
                f"cannot select an axis to squeeze out which has size not equal to one, got shape={x.shape} and "
                f"dimensions={axes}"
            )
    return lax.squeeze(x, axes)


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The shape that ``shapes`` broadcast to; ``ValueError`` where they do not."""
    lengths = [tuple(s) if isinstance(s, (tuple, list)) else (s,) for s in shapes]
    if not lengths:
        return ()
    try:
        return result_shape("broadcast_shapes", lengths)
    except (TypeError, ValueError):
        raise ValueError(f"Incompatible shapes for broadcasting: shapes={lengths}") from None


@placed
def broadcast_to(array: Any, shape: Any, *, out_sharding: Any = None) -> Any:
    """``array`` repeated to ``shape`` by NumPy's rules."""
    x = array_operand("broadcast_to", array)
    wanted = tuple(map(operator.index, shape)) if isinstance(shape, (tuple, list)) else (operator.index(shape),)
    lead = len(wanted) - len(x.shape)
    if lead < 0 or any(n not in (1, m) for n, m in zip(x.shape, wanted[lead:], strict=True)):
        asked = aval_of(x).update(shape=wanted)
        raise ValueError(f"Incompatible types for broadcasting: input type={aval_of(x)} and requested type={asked}")
    return expand_to(x, wanted)


def broadcast_arrays(*args: Any) -> list[Any]:
    """The arrays repeated to one shape."""
    arrays = [array_operand("broadcast_arrays", a) for a in args]
    wanted = broadcast_shapes(*(a.shape for a in arrays))
    return [expand_to(a, wanted) for a in arrays]


def _at_least(name: str, rank: int, args: Sequence[Any]) -> Any:
    if len(args) == 1:
        return _with_rank(array_operand(name, args[0]), rank)
    return [_with_rank(array_operand(name, a), rank) for a in args]


def _with_rank(x: Any, rank: int) -> Any:
    own = x.shape
    if len(own) >= rank:
        return x
    if rank < 3:
        return lax.reshape(x, (1,) * (rank - len(own)) + own)
    shapes = {0: (1, 1, 1), 1: (1, *own, 1), 2: (*own, 1)}
    return lax.reshape(x, shapes[len(own)])


def atleast_1d(*arys: Any) -> Any:
    """Arrays with at least one axis."""
    return _at_least("atleast_1d", 1, arys)


def atleast_2d(*arys: Any) -> Any:
    """Arrays with at least two axes, new ones in front."""
    return _at_least("atleast_2d", 2, arys)


def atleast_3d(*arys: Any) -> Any:
    """Arrays with at least three axes: a vector lies along the middle one."""
    return _at_least("atleast_3d", 3, arys)
