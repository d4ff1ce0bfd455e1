"""Triangles and diagonals of matrices: ``tril``, ``triu``, ``diag``, ``diagonal``, ``trace`` and their indices."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from jaxlite import lax
from jaxlite.core.avals import aval_of
from jaxlite.lax.elementwise.casts import convert
from jaxlite.numpy.creation import asarray, diagonal_mask
from jaxlite.numpy.promotion import array_operand, axis_of, expand_to, refuse_out
from jaxlite.numpy.ranges import lower_mask
from jaxlite.numpy.reductions import sum_
from jaxlite.numpy.shaping import moveaxis


def _triangle(name: str, m: Any, k: int, lower: bool) -> Any:
    x = array_operand(name, m)
    if len(x.shape) < 2:
        raise ValueError(f"Argument to jax.numpy.{name} must be at least 2D, got shape {x.shape}")
    mask = expand_to(lower_mask(x.shape[-2:], k if lower else k - 1), x.shape)
    zero = lax.full_like(x, 0)
    return lax.select(mask, x, zero) if lower else lax.select(mask, zero, x)


def tril(m: Any, k: int = 0) -> Any:
    """0 above diagonal ``k``."""
    return _triangle("tril", m, k, True)


def triu(m: Any, k: int = 0) -> Any:
    """0 below diagonal ``k``."""
    return _triangle("triu", m, k, False)


def tril_indices(n: int, k: int = 0, m: Any = None) -> tuple[Any, Any]:
    """Rows and columns of the elements at and below diagonal ``k``."""
    return _pair(np.tril_indices(n, k, m))


def triu_indices(n: int, k: int = 0, m: Any = None) -> tuple[Any, Any]:
    """Rows and columns of the elements at and above diagonal ``k``."""
    return _pair(np.triu_indices(n, k, m))


def _pair(places: Any) -> tuple[Any, Any]:
    rows, columns = (asarray(p) for p in places)
    return rows, columns


def tril_indices_from(arr: Any, k: int = 0) -> tuple[Any, Any]:
    """``tril_indices`` of a matrix."""
    shape = _matrix_shape("tril_indices_from", arr)
    return tril_indices(shape[0], k, shape[1])


def triu_indices_from(arr: Any, k: int = 0) -> tuple[Any, Any]:
    """``triu_indices`` of a matrix."""
    shape = _matrix_shape("triu_indices_from", arr)
    return triu_indices(shape[0], k, shape[1])


def _matrix_shape(name: str, arr: Any) -> tuple[int, ...]:
    shape: tuple[int, ...] = array_operand(name, arr).shape
    if len(shape) != 2:
        raise ValueError(f"{name}: only 2-D inputs are accepted, got shape {shape}")
    return shape


def diag_indices(n: int, ndim: int = 2) -> tuple[Any, ...]:
    """The indices of a main diagonal of length ``n``."""
    n, ndim = operator.index(n), operator.index(ndim)
    if n < 0 or ndim < 0:
        raise ValueError(f"diag_indices: n and ndim must be nonnegative, got {n} and {ndim}")
    return (lax.iota(np.int64, n),) * ndim


def diag_indices_from(arr: Any) -> tuple[Any, ...]:
    """The indices of the main diagonal of an array of equal lengths."""
    shape = array_operand("diag_indices_from", arr).shape
    if len(shape) < 2 or len(set(shape)) != 1:
        raise ValueError(f"All dimensions of input must be of equal length, got shape {shape}")
    return diag_indices(shape[0], len(shape))


def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """Diagonal ``offset`` of the plane of two axes, as the last axis."""
    x = array_operand("diagonal", a)
    rank = len(x.shape)
    if rank < 2:
        raise ValueError("diagonal requires an array of at least two dimensions.")
    if axis_of(axis1, rank) == axis_of(axis2, rank):
        raise ValueError(f"axis1 and axis2 cannot be the same, got {axis1} and {axis2}")
    x = moveaxis(x, (axis1, axis2), (-2, -1))
    rows, columns = x.shape[-2:]
    offset = operator.index(offset)
    first_row, first_column = max(-offset, 0), max(offset, 0)
    count = max(0, min(rows - first_row, columns - first_column))
    # Row-major, a diagonal is every (columns + 1)th element.
    flat = lax.reshape(x, (*x.shape[:-2], rows * columns))
    if not count:
        return lax.slice_in_dim(flat, 0, 0, 1, rank - 2)
    start = first_row * columns + first_column
    return lax.slice_in_dim(flat, start, start + (count - 1) * (columns + 1) + 1, columns + 1, rank - 2)


def diag(v: Any, k: int = 0) -> Any:
    """The diagonal ``k`` of a matrix, or the matrix with a vector on its diagonal ``k``."""
    x = array_operand("diag", v)
    if len(x.shape) == 2:
        return diagonal(x, k)
    if len(x.shape) != 1:
        raise ValueError(f"diag input must be 1d or 2d, got shape {x.shape}")
    k = operator.index(k)
    n = x.shape[0] + abs(k)
    shifted = lax.pad(x, x.dtype.type(0), [(max(k, 0), max(-k, 0), 0)])
    columns = lax.broadcast_in_dim(shifted, (n, n), (1,))
    return lax.select(diagonal_mask(n, n, k), columns, lax.full_like(columns, 0))


def diagflat(v: Any, k: int = 0) -> Any:
    """The matrix with the flattened values on its diagonal ``k``."""
    x = array_operand("diagflat", v)
    return diag(lax.reshape(x, (aval_of(x).size,)), k)


def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None) -> Any:
    """The sum along a diagonal."""
    refuse_out("trace", out)
    return sum_(diagonal(array_operand("trace", a), offset, axis1, axis2), -1, dtype)


def fill_diagonal(a: Any, val: Any, wrap: bool = False, *, inplace: bool = True) -> Any:
    """``a`` with ``val`` on its diagonal; needs ``inplace=False``."""
    if inplace:
        raise NotImplementedError("jax.numpy.fill_diagonal: arrays are immutable, pass inplace=False.")
    if wrap:
        raise NotImplementedError("wrap=True is not implemented, must use wrap=False")
    x = array_operand("fill_diagonal", a)
    if len(x.shape) == 2:
        indices = diag_indices(min(x.shape))
    else:
        indices = diag_indices_from(x)
    value = convert(array_operand("fill_diagonal", val), x.dtype)
    return x.at[indices].set(value if len(value.shape) < 2 else lax.reshape(value, (aval_of(value).size,)))
