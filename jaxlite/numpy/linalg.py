"""``jax.numpy.linalg``: norms and products of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxlite import lax
from jaxlite.core.avals import aval_of
from jaxlite.lax.elementwise.casts import convert
from jaxlite.numpy.arithmetic import power
from jaxlite.numpy.contractions import (
    cross as cross,
    matmul as matmul,
    outer as outer,
    tensordot as tensordot,
    vecdot as vecdot,
)
from jaxlite.numpy.promotion import array_operand, axis_of, constant_like, to_float
from jaxlite.numpy.reductions import keep_axes, max_, min_, sum_
from jaxlite.numpy.shaping import matrix_transpose as matrix_transpose
from jaxlite.numpy.solving import (
    cholesky as cholesky,
    det as det,
    inv as inv,
    slogdet as slogdet,
    solve as solve,
)
from jaxlite.numpy.triangles import diagonal as _diagonal, trace as _trace


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """The norm of vectors (one axis) or matrices (two); all elements flattened by default.

    >>> import jaxlite.numpy as jnp
    >>> norm(jnp.array([3.0, 4.0]))
    Array(5., dtype=float32)
    """
    value = array_operand("linalg.norm", x)
    value = convert(value, to_float(value.dtype))
    rank = len(value.shape)
    if axis is None:
        if ord is None:
            return lax.sqrt(sum_(lax.square(value), keepdims=keepdims))
        axes: tuple[int, ...] = tuple(range(rank))
    else:
        axes = tuple(axis_of(d, rank) for d in (axis if isinstance(axis, (tuple, list)) else (axis,)))
    if len(axes) == 1:
        return _vector_norm(value, ord, axes, keepdims)
    if len(axes) == 2:
        return _matrix_norm(value, ord, axes, keepdims)
    raise ValueError(
        f"Improper number of axes for norm: {axes=}. Pass one axis to compute a vector-norm, or two axes to "
        "compute a matrix-norm."
    )


def _vector_norm(x: Any, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    size = lax.abs(x)
    if ord is None or ord == 2:
        return lax.sqrt(sum_(lax.square(x), axes, keepdims=keepdims))
    if isinstance(ord, str):
        raise ValueError(f"Invalid order {ord!r} for vector norm.")
    if ord == np.inf:
        return max_(size, axes, keepdims=keepdims)
    if ord == -np.inf:
        return min_(size, axes, keepdims=keepdims)
    if ord == 0:
        return sum_(lax.ne(x, constant_like(x, 0)), axes, x.dtype, keepdims=keepdims)
    if ord == 1:
        return sum_(size, axes, keepdims=keepdims)
    return power(sum_(power(size, ord), axes, keepdims=keepdims), 1.0 / ord)


def _matrix_norm(x: Any, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    rows, columns = axes
    if rows == columns:
        raise ValueError(f"Duplicate axes given to norm: {axes}.")
    if ord is None or ord in ("f", "fro"):
        return lax.sqrt(sum_(lax.square(x), axes, keepdims=keepdims))
    reducers = {
        1: (rows, columns, max_),
        -1: (rows, columns, min_),
        np.inf: (columns, rows, max_),
        -np.inf: (columns, rows, min_),
    }
    if ord not in reducers:
        if ord in ("nuc", 2, -2):
            raise NotImplementedError(
                f"norm: ord={ord!r} of a matrix needs singular values, which jaxlite does not have yet."
            )
        raise ValueError(f"Invalid order {ord!r} for matrix norm.")
    summed, reduced, reduce = reducers[ord]
    out = reduce(sum_(lax.abs(x), summed, keepdims=True), reduced, keepdims=True)
    if keepdims:
        return out
    return lax.squeeze(out, tuple(sorted(axes)))


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """The norm of vectors along ``axis``; several axes (or None, all) count as one."""
    value = array_operand("linalg.vector_norm", x)
    rank = len(value.shape)
    if axis is None or isinstance(axis, (tuple, list)):
        axes = tuple(range(rank)) if axis is None else tuple(axis_of(d, rank) for d in axis)
        kept = [d for d in range(rank) if d not in axes]
        flat = lax.reshape(
            lax.transpose(value, (*kept, *axes)), (*(value.shape[d] for d in kept), _count(value.shape, axes))
        )
        out = norm(flat, ord, axis=-1)
        return keep_axes(out, value.shape, axes) if keepdims else out
    return norm(value, ord, axis=axis, keepdims=keepdims)


def _count(shape: tuple[int, ...], axes: tuple[int, ...]) -> int:
    return int(np.prod([shape[d] for d in axes], dtype=np.int64))


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """The norm of matrices in the last two axes."""
    return norm(x, ord, axis=(-2, -1), keepdims=keepdims)


def diagonal(x: Any, /, *, offset: int = 0) -> Any:
    """Diagonals of matrices in the last two axes."""
    return _diagonal(x, offset, -2, -1)


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """Traces of matrices in the last two axes."""
    return _trace(x, offset, -2, -1, dtype)


def matrix_power(a: Any, n: int) -> Any:
    """A square matrix multiplied by itself, or for negative ``n`` its inverse by itself."""
    from jaxlite.numpy.creation import eye
    from jaxlite.numpy.shaping import broadcast_to

    x = array_operand("linalg.matrix_power", a)
    if len(x.shape) < 2 or x.shape[-1] != x.shape[-2]:
        raise TypeError(f"Last 2 dimensions of the array must be square, got shape {x.shape}")
    if n < 0:
        x, n = inv(x), -n
    result = None
    while n:
        if n & 1:
            result = x if result is None else matmul(result, x)
        n >>= 1
        x = matmul(x, x) if n else x
    return broadcast_to(eye(aval_of(x).shape[-1], dtype=x.dtype), x.shape) if result is None else result


def multi_dot(arrays: Any, *, precision: Any = None) -> Any:
    """The product of several matrices, in the order that needs the fewest multiplications."""
    from jaxlite.numpy.einstein import einsum

    values = [array_operand("linalg.multi_dot", a) for a in arrays]
    names = [chr(ord("a") + i) for i in range(len(values) + 1)]
    terms = [names[i] + names[i + 1] for i in range(len(values))]
    first, last = names[0], names[-1]
    if len(values[0].shape) == 1:
        terms[0], first = terms[0][1:], ""
    if len(values[-1].shape) == 1:
        terms[-1], last = terms[-1][:1], ""
    return einsum(f"{','.join(terms)}->{first}{last}", *values, precision=precision)
