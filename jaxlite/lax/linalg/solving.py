"""Linear systems by factors: ``lu_solve``, and ``solve`` whose derivatives use the factors again."""

from __future__ import annotations

from typing import Any

from jaxlite.lax.control.solves import custom_linear_solve
from jaxlite.lax.elementwise.select import stop_gradient
from jaxlite.lax.linalg.lu import lu
from jaxlite.lax.linalg.matrices import product, rows_taken
from jaxlite.lax.linalg.permutations import inverse_permutation
from jaxlite.lax.linalg.triangular import triangular_solve


def lu_solve(both: Any, order: Any, b: Any, trans: int = 0) -> Any:
    """``x`` with ``a x = b`` (``trans`` 0) or ``a^T x = b``, for ``a[order] == l u``; ``b`` holds columns."""
    if trans == 0:
        x = triangular_solve(both, rows_taken(b, order), left_side=True, lower=True, unit_diagonal=True)
        return triangular_solve(both, x, left_side=True, lower=False)
    x = triangular_solve(both, b, left_side=True, lower=False, transpose_a=True)
    x = triangular_solve(both, x, left_side=True, lower=True, unit_diagonal=True, transpose_a=True)
    return rows_put(x, order)


def rows_put(x: Any, order: Any) -> Any:
    """Row ``i`` of each matrix as row ``order[i]``: undoes ``rows_taken``."""
    return rows_taken(x, inverse_permutation(order))


def solve(a: Any, b: Any) -> Any:
    """``x`` with ``a x = b``, columns of ``b`` one by one; batch axes are equal."""
    both, _, order = lu(stop_gradient(a))
    return custom_linear_solve(
        lambda x: product(a, x), b, lambda _, v: lu_solve(both, order, v), lambda _, v: lu_solve(both, order, v, 1)
    )
