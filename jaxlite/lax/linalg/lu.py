"""``lu``: a matrix with its rows permuted as ``l @ u``, by elimination with partial pivoting."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, final

import numpy as np

from jaxlite.core.avals import ShapedArray, aval_of
from jaxlite.core.primitive import AxisData, Sample
from jaxlite.interpreters.batch import move_axis
from jaxlite.interpreters.zeros import Zero, zero_of
from jaxlite.lax.convert import full_like, operand_of
from jaxlite.lax.elementwise.arithmetic import add
from jaxlite.lax.families.linalg import Access, LinearAlgebra, Memory, Routine, Stage, check_matrices, memory_of
from jaxlite.lax.layout.slicing import pad, slice_in_dim
from jaxlite.lax.linalg.matrices import grown, identity, lower_part, product, rows_taken, upper_part
from jaxlite.lax.linalg.permutations import INT32, permutation_from, write_order
from jaxlite.lax.linalg.triangular import triangular_solve

IN_REGISTERS = 4  # up to here elimination is unrolled: exchanging rows by selections grows with the cube


@final
class LU(LinearAlgebra):
    """Results: ``l`` below the diagonal and ``u`` on and above it in one matrix; pivots; the permutation of rows."""

    name, multiple_results = "lu", True
    samples = (
        Sample(((1, 1),)),
        Sample(((2, 2),)),
        Sample(((2, 3, 2),)),
        Sample(((2, 4),)),
        Sample(((9, 2),)),
        Sample(((0, 3),)),
    )

    def abstract_eval(self, *avals: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        check_matrices(self, avals, square=False)
        (a,) = avals
        *batch, m, n = a.shape
        return (a, ShapedArray((*batch, min(m, n)), INT32), ShapedArray((*batch, m), INT32))

    def evaluate(self, *arrays: np.ndarray[Any, Any], **params: Any) -> tuple[np.ndarray[Any, Any], ...]:
        a = np.array(arrays[0])
        *batch, m, n = a.shape
        flat, count = a.reshape(math.prod(batch), m, n), min(m, n)
        pivots = np.zeros((len(flat), count), np.int32)
        every = np.arange(len(flat))
        for j in range(count):
            size = np.abs(flat[:, j:, j])
            pivots[:, j] = j + np.argmax(np.where(np.isnan(size), -1, size), -1)
            mine, theirs = flat[:, j].copy(), flat[every, pivots[:, j]]
            flat[:, j], flat[every, pivots[:, j]] = theirs, mine
            pivot = flat[:, j, j, None]
            below = flat[:, j + 1 :, j]
            flat[:, j + 1 :, j] = np.where(pivot == 0, below, below / pivot)
            flat[:, j + 1 :, j + 1 :] -= flat[:, j + 1 :, j, None] * flat[:, j, None, j + 1 :]
        pivots = pivots.reshape(*batch, count)
        return flat.reshape(a.shape), pivots, permutation_from(pivots, m)

    def steps(self, *avals: ShapedArray, **params: Any) -> Sequence[Stage | Routine]:
        results = self.abstract_eval(*avals)
        a, out = memory_of("operand", 0, avals[0]), memory_of("result", 0, results[0])
        pivots, order = memory_of("result", 1, results[1], 1), memory_of("result", 2, results[2], 1)
        m, n = a.shape
        count = min(m, n)
        if not count:
            return [Stage((), lambda e, index, at: write_order(e, at, pivots, order), 4 * m, vector=False)]
        if max(m, n) <= IN_REGISTERS:
            return [Stage((), lambda e, index, at: _eliminate(e, at, a, out, pivots, order), max(m * n * count, 1))]
        columns = Memory("scratch", 0, (n, m), a.dtype)
        found, info = Memory("scratch", 1, (count,), INT32), Memory("scratch", 2, (), INT32)

        def permute(e: Any, index: tuple[Any, ...], at: Access) -> None:
            with e.loop(count) as i:
                at.write(pivots, (i,), e.sub(at.read(found, (i,)), e.constant(1, INT32)))
            write_order(e, at, pivots, order)

        there = Stage((n, m), lambda e, i, at: at.write(columns, i, at.read(a, (i[1], i[0]))), 1)
        back = Stage((m, n), lambda e, i, at: at.write(out, i, at.read(columns, (i[1], i[0]))), 1)
        call = Routine("getrf", (m, n, columns, m, found, info), (columns, found, info), m * n * count // 2)
        return [there, call, back, Stage((), permute, 4 * m, vector=False)]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        """``dl = l tril(g, -1)``, ``du = triu(g) u`` where ``g = l^-1 (p da) u^-1``, for the rows' permutation ``p``
        held fixed; matrices that are not square are completed by an identity."""
        outs = self.bind(primals[0], **params)
        if type(tangents[0]) is Zero:
            return outs, [zero_of(o) for o in outs]
        both, _, order = outs
        *batch, m, n = aval_of(both).shape
        count, rank, dtype = min(m, n), len(batch) + 2, aval_of(both).dtype
        left = grown(lower_part(slice_in_dim(both, 0, count, axis=rank - 1), -1), m, m)
        left = add(left, identity((*batch, m, m), dtype))
        right = grown(upper_part(slice_in_dim(both, 0, count, axis=rank - 2)), n, n)
        rest = grown_from_corner(identity((*batch, n - count, n - count), dtype), n)
        right = add(right, rest)
        move = rows_taken(tangents[0], order)
        inner = triangular_solve(left, move, left_side=True, lower=True, unit_diagonal=True)
        g = triangular_solve(right, inner, left_side=False, lower=False)
        total = add(product(left, lower_part(g, -1)), product(upper_part(g), right))
        return outs, [total, zero_of(outs[1]), zero_of(outs[2])]

    def transpose(self, cotangents: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
        raise NotImplementedError("lu is not linear, so it has no transpose.")

    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[int | None], /, **params: Any
    ) -> tuple[list[Any], list[int | None]]:
        assert dims[0] is not None
        return self.bind(move_axis(operands[0], dims[0], 0), **params), [0, 0, 0]


def grown_from_corner(x: Any, size: int) -> Any:
    """``x`` as the lower right corner of a square matrix of zeros."""
    before = size - aval_of(x).shape[-1]
    return pad(x, full_like(x, 0), [(0, 0, 0)] * (len(aval_of(x).shape) - 2) + [(before, 0, 0)] * 2)


def _eliminate(e: Any, at: Access, a: Memory, out: Memory, pivots: Memory, order: Memory) -> None:
    """The whole matrix in registers; rows are exchanged by selections, so lanes may differ in their pivots."""
    m, n = a.shape
    rows = [[at.read(a, (i, j)) for j in range(n)] for i in range(m)]
    names = [e.constant(i, INT32) for i in range(m)]
    for j in range(min(m, n)):
        chosen, largest = e.constant(j, INT32), e.abs(rows[j][j])
        for i in range(j + 1, m):
            size = e.abs(rows[i][j])
            # A NaN is never larger; where one stands first, any number is.
            wins = e.or_(e.gt(size, largest), e.and_(e.ne(largest, largest), e.eq(size, size)))
            chosen, largest = e.select(wins, i, chosen), e.select(wins, size, largest)
        at.write(pivots, (j,), chosen)
        first, first_name = list(rows[j]), names[j]
        for i in range(j + 1, m):
            here = e.eq(chosen, i)
            rows[j] = [e.select(here, y, x) for x, y in zip(rows[j], rows[i], strict=True)]
            rows[i] = [e.select(here, x, y) for x, y in zip(first, rows[i], strict=True)]
            names[j], names[i] = e.select(here, names[i], names[j]), e.select(here, first_name, names[i])
        pivot = rows[j][j]
        nothing = e.eq(pivot, 0)
        for i in range(j + 1, m):
            factor = e.select(nothing, rows[i][j], e.div(rows[i][j], pivot))
            rows[i][j] = factor
            for k in range(j + 1, n):
                rows[i][k] = e.sub(rows[i][k], e.mul(factor, rows[j][k]))
    for i in range(m):
        at.write(order, (i,), names[i])
        for j in range(n):
            at.write(out, (i, j), rows[i][j])


lu_p = LU()


def lu(x: Any) -> tuple[Any, Any, Any]:
    """``l`` and ``u`` in one matrix, int32 pivots, and the int32 permutation of rows: ``x[permutation] == l @ u``.

    >>> import jaxlite.numpy as jnp
    >>> lu(jnp.array([[1.0, 2.0], [2.0, 1.0]]))[2]
    Array([1, 0], dtype=int32)
    """
    both, pivots, order = lu_p.bind(operand_of(x))
    return both, pivots, order
