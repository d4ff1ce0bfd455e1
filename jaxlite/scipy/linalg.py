"""``jax.scipy.linalg``: systems by their factors."""

from __future__ import annotations

from typing import Any

from jaxlite import lax
from jaxlite.core.avals import aval_of
from jaxlite.lax.elementwise.casts import convert
from jaxlite.lax.linalg.matrices import identity, lower_part, upper_part
from jaxlite.lax.linalg.solving import lu_solve as lu_solve_columns, rows_put
from jaxlite.numpy.linalg import det as _det, inv as _inv, solve as _solve
from jaxlite.numpy.promotion import array_operand, common_type, to_float
from jaxlite.numpy.solving import float_matrix, same_batch, square_matrix

_TRANSPOSED = {0: False, "N": False, 1: True, "T": True, 2: True, "C": True}


def _is_transposed(trans: Any) -> bool:
    if trans not in _TRANSPOSED:
        raise ValueError(f"trans must be 0, 1 or 2 ('N', 'T' or 'C'), got {trans!r}.")
    return _TRANSPOSED[trans]


def _system(name: str, a: Any, b: Any) -> tuple[Any, Any, bool]:
    """Matrix and right-hand side in one float dtype, and whether that was a vector (now one column)."""
    given = [array_operand(name, v) for v in (a, b)]
    dtype = to_float(common_type([aval_of(v) for v in given])[0])
    x, y = square_matrix(name, convert(given[0], dtype)), convert(given[1], dtype)
    vector = len(y.shape) == 1
    y = lax.expand_dims(y, (1,)) if vector else y
    if len(y.shape) < 2 or y.shape[-2] != x.shape[-1]:
        raise ValueError(
            f"{name}: a of shape {x.shape} and b of shape {given[1].shape} do not fit: b needs {x.shape[-1]} rows."
        )
    x, y = same_batch(name, x, y)
    return x, y, vector


def _result(x: Any, vector: bool) -> Any:
    return lax.squeeze(x, (len(x.shape) - 1,)) if vector else x


def lu_factor(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Any, Any]:
    """``l`` and ``u`` in one matrix, and the pivots."""
    both, pivots, _ = lax.linalg.lu(square_matrix("lu_factor", a))
    return both, pivots


def lu_solve(
    lu_and_piv: tuple[Any, Any], b: Any, trans: Any = 0, overwrite_b: bool = False, check_finite: bool = True
) -> Any:
    """``x`` with ``a @ x == b`` (``trans`` 1: ``a.T @ x == b``) for the factors of ``a``."""
    both, pivots = lu_and_piv
    x, y, vector = _system("lu_solve", both, b)
    order = lax.linalg.lu_pivots_to_permutation(pivots, x.shape[-1])
    if order.shape[:-1] != x.shape[:-2]:
        batch = x.shape[:-2]
        order = lax.broadcast_in_dim(
            order, (*batch, order.shape[-1]), tuple(range(len(batch) + 1 - len(order.shape), len(batch) + 1))
        )
    return _result(lu_solve_columns(x, order, y, int(_is_transposed(trans))), vector)


def cholesky(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """``u`` with ``u.T @ u == a``, or ``l`` with ``l @ l.T == a``; reads that triangle alone."""
    return _factor(square_matrix("cholesky", a), lower)


def _factor(a: Any, lower: bool) -> Any:
    order = (*range(len(a.shape) - 2), len(a.shape) - 1, len(a.shape) - 2)
    if lower:
        return lax.linalg.cholesky(a, symmetrize_input=False)
    return lax.transpose(lax.linalg.cholesky(lax.transpose(a, order), symmetrize_input=False), order)


def cho_factor(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Any, bool]:
    """``cholesky``'s factor, and which triangle it is."""
    return cholesky(a, lower), lower


def cho_solve(c_and_lower: tuple[Any, bool], b: Any, overwrite_b: bool = False, check_finite: bool = True) -> Any:
    """``x`` with ``a @ x == b`` for the factor of ``a``."""
    factor, lower = c_and_lower
    x, y, vector = _system("cho_solve", factor, b)
    first = lax.linalg.triangular_solve(x, y, left_side=True, lower=lower, transpose_a=not lower)
    return _result(lax.linalg.triangular_solve(x, first, left_side=True, lower=lower, transpose_a=lower), vector)


def solve_triangular(
    a: Any, b: Any, trans: Any = 0, lower: bool = False, unit_diagonal: bool = False, overwrite_b: bool = False,
    debug: Any = None, check_finite: bool = True,
) -> Any:  # fmt: skip
    """``x`` with ``a @ x == b`` (``trans`` 1: ``a.T @ x == b``) for triangular ``a``, of which one triangle is read.

    >>> import jaxlite.numpy as jnp
    >>> solve_triangular(jnp.array([[1.0, 1.0], [0.0, 2.0]]), jnp.array([3.0, 4.0]))
    Array([1., 2.], dtype=float32)
    """
    x, y, vector = _system("solve_triangular", a, b)
    out = lax.linalg.triangular_solve(
        x, y, left_side=True, lower=lower, transpose_a=_is_transposed(trans), unit_diagonal=unit_diagonal
    )
    return _result(out, vector)


def solve(
    a: Any, b: Any, lower: bool = False, overwrite_a: bool = False, overwrite_b: bool = False, debug: bool = False,
    check_finite: bool = True, assume_a: str = "gen",
) -> Any:  # fmt: skip
    """``x`` with ``a @ x == b``; ``assume_a="pos"`` says that ``a`` is positive definite."""
    if assume_a not in ("gen", "sym", "her", "pos"):
        raise ValueError(f"Expected assume_a to be one of ['gen', 'sym', 'her', 'pos']; got {assume_a!r}")
    if assume_a != "pos":
        return _solve(a, b)
    x, y, vector = _system("solve", a, b)
    return _result(cho_solve((_factor(x, lower), lower), y), vector)


def inv(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """The inverse of square matrices."""
    return _inv(a)


def det(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """The determinants of square matrices."""
    return _det(a)


def lu(a: Any, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Any, ...]:
    """``p, l, u`` with ``p @ l @ u == a``, or with ``permute_l`` the product ``p @ l`` and ``u``."""
    x = float_matrix("lu", a)
    both, _, order = lax.linalg.lu(x)
    *batch, m, n = x.shape
    count, rank = min(m, n), len(x.shape)
    lower = lax.add(
        lower_part(lax.slice_in_dim(both, 0, count, axis=rank - 1), -1), identity((*batch, m, count), x.dtype)
    )
    upper = upper_part(lax.slice_in_dim(both, 0, count, axis=rank - 2))
    if permute_l:
        return rows_put(lower, order), upper
    return rows_put(identity((*batch, m, m), x.dtype), order), lower, upper
