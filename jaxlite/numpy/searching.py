"""Where values are: ``nonzero``, ``argwhere``; their number depends on values, so it is concrete, or given by
``size``."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from jaxlite import lax
from jaxlite.core import dtypes
from jaxlite.core.array import Array
from jaxlite.core.avals import aval_of
from jaxlite.core.errors import ConcretizationTypeError
from jaxlite.core.trace import Tracer, concretization_message
from jaxlite.lax.elementwise.casts import convert
from jaxlite.numpy.creation import asarray
from jaxlite.numpy.logic import truth
from jaxlite.numpy.promotion import array_operand
from jaxlite.numpy.shaping import ravel, transpose


def known_or_refuse(name: str, x: Any) -> Any:
    """The value of an array that must be known; ``ConcretizationTypeError`` says to give ``size``."""
    if isinstance(x, Tracer):
        value = x.concrete()
        if value is None:
            what = f"the number of results of jnp.{name}"
            instead = (
                f"The size argument of jnp.{name} must be statically specified to use jnp.{name} within JAX "
                "transformations."
            )
            raise ConcretizationTypeError(concretization_message(x, what, instead))
        return value
    return x


def nonzero(a: Any, *, size: Any = None, fill_value: Any = None) -> tuple[Any, ...]:
    """For each axis, the positions of the elements that are not 0; exactly ``size`` of them where given.

    >>> import jaxlite.numpy as jnp
    >>> nonzero(jnp.array([0, 5, 0, 6]))
    (Array([1, 3], dtype=int32),)
    """
    mask = truth(array_operand("nonzero", a))
    if not mask.shape:
        raise ValueError("Calling nonzero on 0d arrays is not allowed. Use jnp.atleast_1d(scalar).nonzero() instead.")
    if size is None:
        known = known_or_refuse("nonzero", mask)
        return tuple(
            asarray(p.astype(np.int64)) for p in np.nonzero(known.elements if isinstance(known, Array) else known)
        )
    return _sized(mask, operator.index(size), fill_value)


def _sized(mask: Any, size: int, fill_value: Any) -> tuple[Any, ...]:
    """The first ``size`` true positions: the flat positions sorted, false ones last."""
    from jaxlite.numpy.cumulative import cumsum
    from jaxlite.numpy.sorting import searchsorted

    shape, total = mask.shape, aval_of(mask).size
    fills = fill_value if isinstance(fill_value, tuple) else (fill_value if fill_value is not None else 0,) * len(shape)
    if len(fills) != len(shape):
        raise ValueError(f"size and fill_value: {len(fills)} fill values do not fit {len(shape)} axes.")
    if not total or not size:
        return tuple(lax.full((size,), f, np.int64) for f in fills)
    counts = cumsum(ravel(mask), dtype=np.int32)
    place = lax.iota(np.int32, size)
    flat = searchsorted(counts, place, side="right")
    beyond = lax.ge(place, lax.index_in_dim(counts, total - 1, 0, keepdims=False))
    out = []
    stride = total
    for n, fill in zip(shape, fills, strict=True):
        stride //= n
        position = lax.rem(lax.div(flat, np.int32(stride)), np.int32(n))
        filler = lax.full((size,), np.int32(fill)) if not np.ndim(fill) else asarray(fill, np.int32)
        out.append(convert(lax.select(beyond, filler, position), dtypes.canonicalize(np.int64)))
    return tuple(out)


def flatnonzero(a: Any, *, size: Any = None, fill_value: Any = None) -> Any:
    """The flat positions of the elements that are not 0."""
    return nonzero(ravel(a), size=size, fill_value=fill_value)[0]


def argwhere(a: Any, *, size: Any = None, fill_value: Any = None) -> Any:
    """The index of each element that is not 0, as rows."""
    from jaxlite.numpy.joining import stack

    x = array_operand("argwhere", a)
    if not x.shape:
        raise ValueError("argwhere: a 0-d array has no axes; use jnp.atleast_1d.")
    return transpose(stack(nonzero(x, size=size, fill_value=fill_value)))
