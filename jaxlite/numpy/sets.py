"""Sets of values: ``unique`` and its kin, ``isin``, ``bincount``, ``union1d`` and the like."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from jaxlite import lax
from jaxlite.core import dtypes
from jaxlite.core.avals import aval_of
from jaxlite.lax.convert import constant
from jaxlite.lax.elementwise.casts import convert
from jaxlite.lax.placed import placed
from jaxlite.numpy.creation import asarray
from jaxlite.numpy.joining import concatenate
from jaxlite.numpy.logic import logical_not
from jaxlite.numpy.picking import take
from jaxlite.numpy.promotion import array_operand, common_type
from jaxlite.numpy.reductions import any_
from jaxlite.numpy.searching import known_or_refuse, nonzero
from jaxlite.numpy.shaping import ravel


def unique(
    ar: Any, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False, axis: Any = None, *,
    equal_nan: bool = True, size: Any = None, fill_value: Any = None, sorted: bool = True,
) -> Any:  # fmt: skip
    """The different values in order, and where asked their first places, the way back, and their counts.

    >>> import jaxlite.numpy as jnp
    >>> unique(jnp.array([3, 1, 3]))
    Array([1, 3], dtype=int32)
    """
    x = array_operand("unique", ar)
    flags = {"return_index": return_index, "return_inverse": return_inverse, "return_counts": return_counts}
    if size is None:
        known = known_or_refuse("unique", x)
        distinct: Any = np.unique
        found = distinct(np.asarray(known), **flags, axis=axis, equal_nan=equal_nan)
        if not any(flags.values()):
            return asarray(found)
        return tuple(asarray(f if i == 0 else f.astype(np.int64)) for i, f in enumerate(found))
    if axis is not None and len(x.shape) != 1:
        raise NotImplementedError("unique: size= with axis= is not supported; flatten, or leave size out.")
    out = _sized(x, operator.index(size), fill_value, equal_nan)
    kept = (True, return_index, return_inverse, return_counts)
    chosen = tuple(o for o, keep in zip(out, kept, strict=True) if keep)
    return chosen[0] if len(chosen) == 1 else chosen


def _sized(x: Any, size: int, fill_value: Any, equal_nan: bool) -> tuple[Any, Any, Any, Any]:
    """Exactly ``size`` values: those missing are the smallest one (or ``fill_value``), with count 0."""
    from jaxlite.numpy.cumulative import cumsum

    flat = ravel(x)
    n = flat.shape[0]
    if not n:
        if size and fill_value is None:
            raise ValueError(
                "jnp.unique: for zero-sized input with nonzero size argument, fill_value must be specified: "
                f"an array of shape {x.shape} has no value to fill {size} places with."
            )
        filler = convert(asarray(0 if fill_value is None else fill_value), x.dtype)
        nothing = lax.full((0,), constant(0, dtypes.canonicalize(np.int64)))
        return lax.broadcast_in_dim(filler, (size,), ()), nothing, lax.reshape(nothing, x.shape), nothing
    values, order = lax.sort((flat, lax.iota(np.int32, n)), 0, True, 1)
    differs = lax.ne(lax.slice_in_dim(values, 1, n), lax.slice_in_dim(values, 0, n - 1))
    if equal_nan and dtypes.is_float(x.dtype):
        nan = lax.ne(values, values)
        both = lax.bitwise_and(lax.slice_in_dim(nan, 1, n), lax.slice_in_dim(nan, 0, n - 1))
        differs = lax.bitwise_and(differs, lax.bitwise_not(both))
    first = lax.concatenate([lax.full((min(n, 1),), True), differs], 0)
    all_starts = nonzero(first, size=size + 1, fill_value=n)[0]
    all_starts = convert(all_starts, np.dtype(np.int32))
    starts = lax.slice_in_dim(all_starts, 0, size)
    filler = values[0] if fill_value is None else convert(asarray(fill_value), x.dtype)
    there = lax.lt(starts, np.int32(n))
    picked = take(values, starts, mode="clip")
    picked = lax.select(there, picked, lax.broadcast_in_dim(filler, picked.shape, ()))
    number = lax.sub(cumsum(first, dtype=np.int32), np.int32(1))
    inverse = lax.full((n,), np.int32(0))
    inverse = inverse.at[order].set(number)
    counts = lax.sub(lax.slice_in_dim(all_starts, 1, size + 1), starts)
    places = (take(order, starts, mode="clip"), lax.reshape(inverse, x.shape), counts)
    first, back, numbers = (convert(p, dtypes.canonicalize(np.int64)) for p in places)
    return picked, first, back, numbers


def unique_values(x: Any, /, *, size: Any = None, fill_value: Any = None) -> Any:
    """The different values."""
    return unique(x, equal_nan=False, size=size, fill_value=fill_value)


def unique_counts(x: Any, /, *, size: Any = None, fill_value: Any = None) -> Any:
    """The different values and their counts."""
    return unique(x, return_counts=True, equal_nan=False, size=size, fill_value=fill_value)


def unique_inverse(x: Any, /, *, size: Any = None, fill_value: Any = None) -> Any:
    """The different values and the way back."""
    return unique(x, return_inverse=True, equal_nan=False, size=size, fill_value=fill_value)


def unique_all(x: Any, /, *, size: Any = None, fill_value: Any = None) -> Any:
    """The different values, their first places, the way back, and their counts."""
    return unique(x, True, True, True, equal_nan=False, size=size, fill_value=fill_value)


def isin(
    element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *, method: str = "auto"
) -> Any:
    """Elementwise whether the value is among ``test_elements``."""
    methods = ("auto", "compare_all", "binary_search", "sort")
    if method not in methods:
        raise ValueError(f"isin: method must be one of {methods} (all give the same), got {method!r}.")
    x, tests = array_operand("isin", element), ravel(test_elements)
    dtype = common_type([aval_of(x), aval_of(tests)])[0]
    x, tests = convert(x, dtype), convert(tests, dtype)
    wide = lax.broadcast_in_dim(x, (*x.shape, tests.shape[0]), tuple(range(len(x.shape))))
    same = lax.eq(wide, lax.broadcast_in_dim(tests, wide.shape, (len(x.shape),)))
    found = any_(same, -1)
    return logical_not(found) if invert else found


@placed
def bincount(x: Any, weights: Any = None, minlength: int = 0, *, length: Any = None, out_sharding: Any = None) -> Any:
    """How often each number from 0 on occurs, or the sum of its weights."""
    values = array_operand("bincount", x)
    if not dtypes.is_integer(values.dtype):
        raise TypeError(f"x argument to bincount must have an integer type; got {values.dtype.name}")
    if len(values.shape) != 1:
        raise ValueError(f"only 1-dimensional input supported, got shape {values.shape}")
    if length is None:
        known = np.asarray(known_or_refuse("bincount", values))
        length = max(minlength, int(known.max()) + 1 if known.size else 0)
    counted = asarray(1, dtypes.canonicalize(np.int64)) if weights is None else array_operand("bincount", weights)
    zeros = lax.full((operator.index(length),), counted.dtype.type(0))
    # Negative numbers count as 0, as in JAX.
    return zeros.at[lax.max(values, lax.full_like(values, 0))].add(counted, mode="drop")


def union1d(ar1: Any, ar2: Any, *, size: Any = None, fill_value: Any = None) -> Any:
    """The different values of both arrays."""
    return unique(concatenate([ravel(ar1), ravel(ar2)]), size=size, fill_value=fill_value)


def _of_known(name: str, function: Any, ar1: Any, ar2: Any, size: Any, fill_value: Any, **options: Any) -> Any:
    x, y = (np.asarray(known_or_refuse(name, array_operand(name, a))) for a in (ar1, ar2))
    out = function(x, y, **options)
    if size is None:
        return tuple(map(asarray, out)) if isinstance(out, tuple) else asarray(out)
    if isinstance(out, tuple):
        raise NotImplementedError(f"{name}: size= with return_indices= is not supported.")
    fill = fill_value if fill_value is not None else (out[0] if out.size else 0)
    return asarray(np.concatenate([out[:size], np.full(max(0, size - out.size), fill, out.dtype)]))


def intersect1d(
    ar1: Any,
    ar2: Any,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    size: Any = None,
    fill_value: Any = None,
) -> Any:
    """The values that both arrays have; their number depends on values, so they must be concrete."""
    options = {"assume_unique": assume_unique, "return_indices": return_indices}
    return _of_known("intersect1d", np.intersect1d, ar1, ar2, size, fill_value, **options)


def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False, *, size: Any = None, fill_value: Any = None) -> Any:
    """The values of the first array that the second lacks; concrete."""
    return _of_known("setdiff1d", np.setdiff1d, ar1, ar2, size, fill_value, assume_unique=assume_unique)


def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False, *, size: Any = None, fill_value: Any = None) -> Any:
    """The values that one of the arrays has; concrete."""
    return _of_known("setxor1d", np.setxor1d, ar1, ar2, size, fill_value, assume_unique=assume_unique)
