"""``jnp.linalg``'s systems and determinants: ``solve``, ``inv``, ``det``, ``slogdet``, ``cholesky``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, final

import numpy as np

from jaxlite import lax
from jaxlite.core import dtypes
from jaxlite.core.avals import aval_of
from jaxlite.lax.elementwise.casts import convert
from jaxlite.lax.linalg.matrices import identity, rows_taken
from jaxlite.lax.linalg.solving import lu_solve, solve as solve_matrices
from jaxlite.numpy.promotion import array_operand, common_type, result_shape, to_float
from jaxlite.numpy.reductions import prod, sum_
from jaxlite.numpy.triangles import diagonal
from jaxlite.transforms.custom import custom_jvp
from jaxlite.transforms.jit import jit


def float_matrix(name: str, a: Any) -> Any:
    """``a`` in a float dtype that factorisations take; errors name the function and the shape."""
    x = array_operand(name, a)
    x = convert(x, to_float(x.dtype))
    if dtypes.is_narrow_float(x.dtype):
        raise TypeError(f"{name}: unsupported dtype {x.dtype.name}: convert the matrix to float32 first.")
    if len(x.shape) < 2:
        raise ValueError(f"{name}: expected an array of at least two dimensions, got one of shape {x.shape}.")
    return x


def square_matrix(name: str, a: Any) -> Any:
    """``float_matrix`` of matrices with as many rows as columns."""
    x = float_matrix(name, a)
    if x.shape[-1] != x.shape[-2]:
        raise ValueError(f"Argument to {name} must have shape [..., n, n], got {x.shape}.")
    return x


def solve(a: Any, b: Any) -> Any:
    """``x`` with ``a @ x == b``; ``b`` is a vector where it has one axis, else columns.  A singular ``a`` gives
    infinities or NaN.

    >>> import jaxlite.numpy as jnp
    >>> solve(jnp.array([[2.0, 0.0], [0.0, 4.0]]), jnp.array([2.0, 2.0]))
    Array([1. , 0.5], dtype=float32)
    """
    given = [array_operand("linalg.solve", v) for v in (a, b)]
    dtype = to_float(common_type([aval_of(v) for v in given])[0])
    x, y = square_matrix("linalg.solve", convert(given[0], dtype)), convert(given[1], dtype)
    vector = len(y.shape) == 1
    y = lax.expand_dims(y, (1,)) if vector else y
    if len(y.shape) < 2 or y.shape[-2] != x.shape[-1]:
        raise ValueError(
            f"linalg.solve takes a of shape [..., m, m] and b of shape [m] or [..., m, k], got {x.shape} and "
            f"{given[1].shape}; a batch of vectors is b[..., None]."
        )
    x, y = same_batch("linalg.solve", x, y)
    out = _solve(x, y)
    return lax.squeeze(out, (len(out.shape) - 1,)) if vector else out


_solve = jit(solve_matrices)


def same_batch(name: str, *values: Any) -> list[Any]:
    """Matrices with their batch axes repeated to one shape."""
    batch = result_shape(name, [v.shape[:-2] for v in values])
    return [_repeated(v, batch) for v in values]


def _repeated(x: Any, batch: tuple[int, ...]) -> Any:
    shape = (*batch, *x.shape[-2:])
    kept = tuple(range(len(shape) - len(x.shape), len(shape)))
    return x if x.shape == shape else lax.broadcast_in_dim(x, shape, kept)


def inv(a: Any) -> Any:
    """The inverse of square matrices; infinities or NaN where there is none."""
    x = square_matrix("linalg.inv", a)
    return _solve(x, identity(x.shape, x.dtype))


def cholesky(a: Any, *, upper: bool = False, symmetrize_input: bool = True) -> Any:
    """The lower triangular ``l`` with ``l @ l.T == a`` (``upper``: its transpose); NaN where there is none."""
    lower = lax.linalg.cholesky(square_matrix("linalg.cholesky", a), symmetrize_input=symmetrize_input)
    return lax.transpose(lower, _swapped(len(lower.shape))) if upper else lower


def _swapped(rank: int) -> tuple[int, ...]:
    return (*range(rank - 2), rank - 1, rank - 2)


def _read_diagonal(x: Any) -> Any:
    return diagonal(x, 0, -2, -1)


def _parity(pivots: Any, dtype: Any) -> Any:
    """The sign of a permutation: -1 for an odd number of exchanges of two different rows."""
    moved = lax.ne(pivots, lax.broadcasted_iota(np.int32, pivots.shape, len(pivots.shape) - 1))
    exchanges = lax.reduce_sum(convert(moved, np.dtype(np.int32)), (len(pivots.shape) - 1,))
    odd = lax.bitwise_and(exchanges, lax.full_like(exchanges, 1))
    return convert(lax.sub(lax.full_like(exchanges, 1), lax.mul(odd, lax.full_like(odd, 2))), dtype)


@custom_jvp
def _det(a: Any) -> Any:
    both, pivots, _ = lax.linalg.lu(a)
    return lax.mul(_parity(pivots, a.dtype), prod(_read_diagonal(both), -1))


@_det.defjvp
def _det_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """Jacobi's formula, ``d det(a) = trace(adj(a) da)``; the adjugate is found without dividing by the last pivot, so
    that matrices of rank n - 1 have derivatives too."""
    (a,), (move,) = primals, tangents
    both, pivots, order = lax.linalg.lu(a)
    sign, n, rank = _parity(pivots, a.dtype), a.shape[-1], len(a.shape)
    diagonal = _read_diagonal(both)
    first = prod(lax.slice_in_dim(diagonal, 0, n - 1, axis=rank - 2), -1)
    whole = lax.mul(first, lax.index_in_dim(diagonal, n - 1, rank - 2, keepdims=False))
    # adj(u) y solves u z = det(u) y; the last row of it, divided by the last pivot, is z_n = first * y_n.
    y = lax.linalg.triangular_solve(both, rows_taken(move, order), left_side=True, lower=True, unit_diagonal=True)
    rows = lax.broadcasted_iota(np.int32, a.shape, rank - 2)
    columns = lax.broadcasted_iota(np.int32, a.shape, rank - 1)
    last = lax.eq(rows, lax.full_like(rows, n - 1))
    y = lax.mul(y, lax.select(last, _spread(first, a.shape), _spread(whole, a.shape)))
    corner = lax.bitwise_and(last, lax.eq(columns, rows))
    upper = lax.select(corner, lax.full(a.shape, 1, a.dtype), both)
    z = lax.linalg.triangular_solve(upper, y, left_side=True, lower=False)
    return lax.mul(sign, whole), lax.mul(sign, sum_(_read_diagonal(z), -1))


def _spread(x: Any, shape: tuple[int, ...]) -> Any:
    return lax.broadcast_in_dim(x, shape, tuple(range(len(x.shape))))


def det(a: Any) -> Any:
    """The determinants of square matrices.

    >>> import jaxlite.numpy as jnp
    >>> det(jnp.array([[1.0, 2.0], [3.0, 4.0]]))
    Array(-2., dtype=float32)
    """
    x = square_matrix("linalg.det", a)
    n = x.shape[-1]
    if n == 0:
        return lax.full(x.shape[:-2], 1, x.dtype)
    if n <= 3:
        return _det_by_rows(x)
    return _det(x)


def _det_by_rows(x: Any) -> Any:
    """Leibniz's formula, for matrices so small that it costs less than elimination."""
    n = x.shape[-1]

    def entry(i: int, j: int) -> Any:
        row = lax.index_in_dim(x, i, len(x.shape) - 2, keepdims=False)
        return lax.index_in_dim(row, j, len(row.shape) - 1, keepdims=False)

    if n == 1:
        return entry(0, 0)
    if n == 2:
        return lax.sub(lax.mul(entry(0, 0), entry(1, 1)), lax.mul(entry(0, 1), entry(1, 0)))
    plus, minus = ([(entry(0, k), entry(1, (k + s) % 3), entry(2, (k + 2 * s) % 3)) for k in range(3)] for s in (1, 2))
    total = None
    for terms, combine in ((plus, lax.add), (minus, lax.sub)):
        for p, q, r in terms:
            term = lax.mul(lax.mul(p, q), r)
            total = term if total is None else combine(total, term)
    return total


@final
class SlogdetResult(NamedTuple):
    """The sign of a determinant, and the logarithm of its size."""

    sign: Any
    logabsdet: Any


@custom_jvp
def _slogdet(a: Any) -> tuple[Any, Any]:
    both, pivots, _ = lax.linalg.lu(a)
    diagonal = _read_diagonal(both)
    sign = lax.mul(_parity(pivots, a.dtype), prod(lax.sign(diagonal), -1))
    return sign, sum_(lax.log(lax.abs(diagonal)), -1)


@_slogdet.defjvp
def _slogdet_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    """``d log |det(a)| = trace(a^-1 da)``."""
    (a,), (move,) = primals, tangents
    sign, size = _slogdet(a)
    both, _, order = lax.linalg.lu(a)
    return (sign, size), (lax.full_like(sign, 0), sum_(_read_diagonal(lu_solve(both, order, move)), -1))


def slogdet(a: Any, *, method: str | None = None) -> SlogdetResult:
    """Sign and logarithm of the size of determinants; 0 and -inf where they vanish."""
    if method not in (None, "lu"):
        raise NotImplementedError(f"linalg.slogdet: method={method!r} is not supported; leave it out, or write 'lu'.")
    x = square_matrix("linalg.slogdet", a)
    if x.shape[-1] == 0:
        return SlogdetResult(lax.full(x.shape[:-2], 1, x.dtype), lax.full(x.shape[:-2], 0, x.dtype))
    return SlogdetResult(*_slogdet(x))
