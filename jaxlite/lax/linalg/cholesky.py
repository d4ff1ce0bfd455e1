"""``cholesky``: a positive definite matrix as ``l @ l.T`` with ``l`` lower triangular."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import numpy as np

from jaxlite.core.avals import ShapedArray, aval_of
from jaxlite.core.primitive import AxisData, Sample
from jaxlite.interpreters.batch import move_axis
from jaxlite.interpreters.zeros import Zero, zero_of
from jaxlite.lax.convert import constant, full_like, operand_of
from jaxlite.lax.elementwise.arithmetic import add, mul, sub
from jaxlite.lax.families.linalg import Access, LinearAlgebra, Memory, Routine, Stage, check_matrices, memory_of
from jaxlite.lax.linalg.matrices import full_like_matrix, identity, lower_part, product, transposed
from jaxlite.lax.linalg.triangular import SMALL, triangular_solve


@final
class Cholesky(LinearAlgebra):
    """Reads the lower triangle; a matrix that is not positive definite gives NaN."""

    name = "cholesky"
    # The diagonal is drawn from the same bounds as the rest, so only 1 x 1 matrices are surely positive definite:
    # tests/numpy/test_linalg.py factors larger ones.
    samples = (Sample(((1, 1),), {"symmetrize_input": False}, low=1.0), Sample(((0, 0),), {"symmetrize_input": False}))

    def abstract_eval(self, *avals: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        check_matrices(self, avals, square=True)
        return avals

    def evaluate(self, *arrays: np.ndarray[Any, Any], **params: Any) -> tuple[np.ndarray[Any, Any], ...]:
        (a,) = arrays
        n, out = a.shape[-1], np.zeros_like(a)
        fine = np.ones(a.shape[:-2], bool)
        for j in range(n):
            rest = a[..., j:, j] - (out[..., j:, :j] * out[..., j, None, :j]).sum(-1, dtype=a.dtype)
            fine &= rest[..., 0] > 0
            root = np.sqrt(rest[..., 0])
            out[..., j:, j] = rest / root[..., None]
            out[..., j, j] = root
        return (np.where(fine[..., None, None], out, a.dtype.type(np.nan)),)

    def steps(self, *avals: ShapedArray, **params: Any) -> Sequence[Stage | Routine]:
        a, out = memory_of("operand", 0, avals[0]), memory_of("result", 0, avals[0])
        n = a.shape[-1]
        if n <= SMALL:
            return [Stage((), lambda e, index, at: _factor(e, at, a, out), max(n**3 // 3, 1))]
        work, info = Memory("scratch", 0, a.shape, a.dtype), Memory("scratch", 1, (), np.dtype(np.int32))

        def finish(e: Any, index: tuple[Any, ...], at: Access) -> None:
            failed = e.ne(at.read(info, ()), e.constant(0, info.dtype))
            value = e.select(e.le(index[1], index[0]), at.read(work, index), e.constant(0, a.dtype))
            at.write(out, index, e.select(failed, e.constant(np.nan, a.dtype), value))

        copy = Stage(a.shape, lambda e, index, at: at.write(work, index, at.read(a, index)), 1)
        # Rows are columns to LAPACK, so the lower triangle is its upper one.
        return [copy, Routine("potrf", ("U", n, work, n, info), (work, info), n**3 // 6), Stage(a.shape, finish, 3)]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        """``dl = l phi(l^-1 da l^-T)``, phi the lower triangle with half the diagonal (Murray, arXiv:1602.07527)."""
        lower = self.bind(primals[0], **params)
        if type(tangents[0]) is Zero:
            return [lower], [zero_of(lower)]
        move = add(lower_part(tangents[0]), transposed(lower_part(tangents[0], -1)))
        right = triangular_solve(lower, move, left_side=False, transpose_a=True, lower=True)
        both = triangular_solve(lower, right, left_side=True, lower=True)
        shape, dtype = aval_of(both).shape, aval_of(both).dtype
        halves = sub(full_like_matrix(both, 1), mul(identity(shape, dtype), constant(0.5, dtype)))
        return [lower], [product(lower, mul(lower_part(both), halves))]

    def transpose(self, cotangents: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
        raise NotImplementedError("cholesky is not linear, so it has no transpose.")

    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[int | None], /, **params: Any
    ) -> tuple[list[Any], list[int | None]]:
        assert dims[0] is not None
        return [self.bind(move_axis(operands[0], dims[0], 0), **params)], [0]


def _factor(e: Any, at: Access, a: Memory, out: Memory) -> None:
    """The whole matrix in registers, column by column."""
    n = a.shape[-1]
    lower: dict[tuple[int, int], Any] = {}
    fine = None
    for j in range(n):
        for i in range(j, n):
            value = at.read(a, (i, j))
            for k in range(j):
                value = e.sub(value, e.mul(lower[i, k], lower[j, k]))
            if i == j:
                positive = e.gt(value, e.constant(0, a.dtype))
                fine = positive if fine is None else e.and_(fine, positive)
                value = e.sqrt(value)
            else:
                value = e.div(value, lower[j, j])
            lower[i, j] = value
    for i in range(n):
        for j in range(n):
            at.write(
                out, (i, j), e.select(fine, lower.get((i, j), e.constant(0, a.dtype)), e.constant(np.nan, a.dtype))
            )


cholesky_p = Cholesky()


def cholesky(x: Any, *, symmetrize_input: bool = True) -> Any:
    """The lower triangular ``l`` with ``l @ l.T == x``; NaN where ``x`` is not positive definite.

    >>> import jaxlite.numpy as jnp
    >>> cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]]))
    Array([[2., 0.],
           [1., 2.]], dtype=float32)
    """
    x = operand_of(x)
    if symmetrize_input and len(aval_of(x).shape) >= 2 and aval_of(x).shape[-1] == aval_of(x).shape[-2]:
        x = mul(add(x, transposed(x)), full_like(x, 0.5))
    return cholesky_p.bind(x, symmetrize_input=False)
