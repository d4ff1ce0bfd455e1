"""Elements picked along an axis: ``take``, ``take_along_axis``, ``put_along_axis``, ``choose``, ``compress``."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxlite import lax
from jaxlite.core import dtypes
from jaxlite.core.avals import aval_of
from jaxlite.core.errors import ConcretizationTypeError
from jaxlite.core.trace import Tracer
from jaxlite.lax.convert import constant
from jaxlite.lax.elementwise.casts import convert
from jaxlite.lax.indexing.places import GatherDimensionNumbers
from jaxlite.numpy.arithmetic import remainder
from jaxlite.numpy.indexing import from_the_front, take_index
from jaxlite.numpy.promotion import array_operand, axis_of, expand_to, refuse_out, result_shape
from jaxlite.numpy.shaping import broadcast_arrays, ravel


def take(
    a: Any, indices: Any, axis: Any = None, out: Any = None, mode: Any = None, unique_indices: bool = False,
    indices_are_sorted: bool = False, fill_value: Any = None,
) -> Any:  # fmt: skip
    """The elements at ``indices`` along ``axis`` (None: flattened); NaN (the lowest integer) outside unless ``mode``
    says.

    >>> import jaxlite.numpy as jnp
    >>> take(jnp.arange(3.0), jnp.array([2, 7]))
    Array([ 2., nan], dtype=float32)
    """
    refuse_out("take", out)
    x, places = array_operand("take", a), array_operand("take", indices)
    if not dtypes.is_integer(places.dtype):
        raise ValueError(f"take: indices must have an integer type, got {places.dtype.name}")
    if axis is None:
        x, axis = ravel(x), 0
    number = axis_of(axis, len(x.shape))
    if not x.shape[number] and aval_of(places).size:
        raise IndexError("Cannot do a non-empty jnp.take() from an empty axis.")
    if mode == "raise":
        raise NotImplementedError("The 'raise' mode to jnp.take is not supported.")
    wrap = True
    if mode == "wrap":
        places, mode = remainder(places, x.shape[number]), "promise_in_bounds"
    elif mode == "clip":
        places = lax.clamp(
            places.dtype.type(0),
            places,
            places.dtype.type(max(min(x.shape[number] - 1, np.iinfo(places.dtype).max), 0)),
        )
        wrap = False
    how = "fill" if mode is None else mode
    index = (*[slice(None)] * number, places)
    return take_index(x, index, how, fill_value, indices_are_sorted, unique_indices, wrap)


def take_along_axis(
    arr: Any,
    indices: Any,
    axis: Any = -1,
    mode: Any = None,
    fill_value: Any = None,
    *,
    wrap_negative_indices: bool = True,
) -> Any:
    """Along ``axis``, the element that ``indices`` names; other axes go in step."""
    x, places = array_operand("take_along_axis", arr), array_operand("take_along_axis", indices)
    if not dtypes.is_integer(places.dtype):
        raise TypeError(f"take_along_axis indices must be of integer type, got {places.dtype.name}")
    if axis is None:
        if len(places.shape) != 1:
            raise ValueError(f"take_along_axis indices must be 1D if axis=None, got shape {places.shape}")
        x, axis = ravel(x), 0
    if len(places.shape) != len(x.shape):
        raise ValueError(
            f"indices and arr must have the same number of dimensions; got {len(places.shape)} vs. {len(x.shape)}"
        )
    number = axis_of(axis, len(x.shape))
    others = tuple(d for d in range(len(x.shape)) if d != number)
    lead = result_shape("take_along_axis", [tuple(v.shape[d] for d in others) for v in (x, places)])
    x, places = (expand_to(v, _with_axis(lead, number, v.shape[number])) for v in (x, places))
    if not x.shape[number]:
        return lax.full(places.shape, constant(0, x.dtype))  # as JAX, which has nothing to read either
    start = from_the_front(places, x.shape[number]) if wrap_negative_indices else convert(places, np.dtype(np.int32))
    numbers = GatherDimensionNumbers((), (number,), (number,), others, others)
    return lax.gather(
        x, lax.expand_dims(start, (len(x.shape),)), numbers, (1,) * len(x.shape), mode=mode, fill_value=fill_value
    )


def _with_axis(lead: tuple[int, ...], axis: int, n: int) -> tuple[int, ...]:
    return (*lead[:axis], n, *lead[axis:])


def _grid(shape: tuple[int, ...], axis: int, places: Any) -> tuple[Any, ...]:
    """Index arrays for every axis, ``places`` along ``axis``."""
    return tuple(places if d == axis else lax.broadcasted_iota(np.int32, places.shape, d) for d in range(len(shape)))


def put_along_axis(arr: Any, indices: Any, values: Any, axis: Any, inplace: bool = True, *, mode: Any = None) -> Any:
    """``arr`` with ``values`` at the places that ``take_along_axis`` reads; needs ``inplace=False``."""
    if inplace:
        raise ValueError("jax.numpy.put_along_axis: arrays are immutable, pass inplace=False.")
    x, places = array_operand("put_along_axis", arr), array_operand("put_along_axis", indices)
    if axis is None:
        flat = put_along_axis(ravel(x), ravel(places), ravel(values), 0, False, mode=mode)
        return lax.reshape(flat, x.shape)
    number = axis_of(axis, len(x.shape))
    wide = (*x.shape[:number], places.shape[number], *x.shape[number + 1 :])
    places = expand_to(places, wide)
    return x.at[_grid(x.shape, number, places)].set(values, mode=mode)


def put(a: Any, ind: Any, v: Any, mode: Any = None, *, inplace: bool = True) -> Any:
    """``a`` with ``v`` (repeated as needed) at flat positions; needs ``inplace=False``."""
    if inplace:
        raise ValueError("jax.numpy.put: arrays are immutable, pass inplace=False.")
    from jaxlite.numpy.rearranging import resize

    x, places = array_operand("put", a), ravel(ind)
    if not aval_of(places).size:
        return x
    return lax.reshape(ravel(x).at[places].set(resize(v, places.shape), mode=mode), x.shape)


def choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Any:
    """Per element, the choice with the number that ``a`` holds."""
    refuse_out("choose", out)
    which = array_operand("choose", a)
    arrays = broadcast_arrays(which, *[array_operand("choose", c) for c in choices])
    which, cases = arrays[0], arrays[1:]
    if mode == "raise":
        if isinstance(which, Tracer) and which.concrete() is None:
            raise ConcretizationTypeError("jnp.choose: mode='raise' needs a concrete array; use mode='wrap' or 'clip'.")
        if aval_of(which).size and not 0 <= int(which.min()) <= int(which.max()) < len(cases):
            raise ValueError("invalid entry in choice array")
    elif mode == "wrap":
        which = remainder(which, len(cases))
    elif mode != "clip":
        raise ValueError(f"mode={mode!r} not understood. Must be 'raise', 'wrap', or 'clip'")
    from jaxlite.numpy.joining import stack

    places = lax.clamp(np.int32(0), convert(which, np.dtype(np.int32)), np.int32(len(cases) - 1))
    together = stack(cases)
    return lax.squeeze(take_along_axis(together, lax.expand_dims(places, (0,)), 0), (0,))


def compress(
    condition: Any, a: Any, axis: Any = None, *, size: Any = None, fill_value: Any = 0, out: Any = None
) -> Any:
    """The entries along ``axis`` where ``condition`` holds."""
    refuse_out("compress", out)
    from jaxlite.numpy.searching import flatnonzero

    x = array_operand("compress", a)
    if axis is None:
        x, axis = ravel(x), 0
    places = flatnonzero(array_operand("compress", condition), size=size, fill_value=x.shape[axis])
    return take(x, places, axis, fill_value=fill_value, mode="fill")


def extract(condition: Any, arr: Any, *, size: Any = None, fill_value: Any = 0) -> Any:
    """The elements where ``condition`` holds, flattened."""
    return compress(ravel(condition), arr, size=size, fill_value=fill_value)
