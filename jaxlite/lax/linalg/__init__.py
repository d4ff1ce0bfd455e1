"""``jax.lax.linalg``: factorisations and solves of matrices, one dtype in, no promotion."""

from jaxlite.lax.linalg.cholesky import cholesky as cholesky, cholesky_p as cholesky_p
from jaxlite.lax.linalg.lu import lu as lu, lu_p as lu_p
from jaxlite.lax.linalg.permutations import (
    lu_pivots_to_permutation as lu_pivots_to_permutation,
    lu_pivots_to_permutation_p as lu_pivots_to_permutation_p,
)
from jaxlite.lax.linalg.triangular import triangular_solve as triangular_solve, triangular_solve_p as triangular_solve_p
