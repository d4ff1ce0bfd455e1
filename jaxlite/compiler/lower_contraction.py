"""Contractions: matrix products by BLAS where the operands are matrices in memory, loop nests otherwise.

In: a ``dot_general`` equation.  Out: how its operands must lie (:class:`MatrixForm`), or a kernel that folds the
contracted axes itself: for small products and for dtypes that BLAS has no routine for.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, final

import numpy as np

from jaxlite.compiler.builder import Carry
from jaxlite.compiler.groups import Group
from jaxlite.compiler.loops import Value
from jaxlite.compiler.lower_kernel import LANES, Lowered, _Kernel, accumulator_dtype
from jaxlite.compiler.reading import unravel
from jaxlite.core.jaxpr import JaxprEqn, Var
from jaxlite.lax.contraction import free_axes

SMALL = 1 << 12  # multiplications below which calling BLAS costs more than the product


@final
@dataclasses.dataclass(frozen=True)
class MatrixForm:
    """One operand as matrices: whether memory holds (batch, free, contracted) or its transpose, or must be copied."""

    order: tuple[int, ...]
    transposed: bool
    in_place: bool


def matrix_form(rank: int, batch: tuple[int, ...], free: tuple[int, ...], contracted: tuple[int, ...]) -> MatrixForm:
    """How an operand with these axes is read as a matrix of (free, contracted)."""
    if (*batch, *free, *contracted) == tuple(range(rank)):
        return MatrixForm(tuple(range(rank)), False, True)
    if (*batch, *contracted, *free) == tuple(range(rank)):
        return MatrixForm(tuple(range(rank)), True, True)
    return MatrixForm((*batch, *free, *contracted), False, False)


@final
@dataclasses.dataclass(frozen=True)
class Contraction:
    """The sizes of a contraction and the axes of both operands."""

    batch: int
    m: int
    n: int
    k: int
    left: MatrixForm
    right: MatrixForm

    @property
    def work(self) -> int:
        """Multiplications."""
        return self.batch * self.m * self.n * self.k


def analyse(eqn: JaxprEqn) -> Contraction:
    """The contraction that ``eqn`` is."""
    (xc, yc), (xb, yb) = eqn.params["dimension_numbers"]
    x, y = (a.aval for a in eqn.invars)
    xf, yf = free_axes(x.ndim, xc, xb), free_axes(y.ndim, yc, yb)
    return Contraction(
        math.prod(x.shape[d] for d in xb), math.prod(x.shape[d] for d in xf), math.prod(y.shape[d] for d in yf),
        math.prod(x.shape[d] for d in xc), matrix_form(x.ndim, xb, xf, xc), matrix_form(y.ndim, yb, yf, yc),
    )  # fmt: skip


def by_blas(eqn: JaxprEqn, contraction: Contraction) -> tuple[bool, str]:
    """Whether BLAS does it, and why."""
    dtypes_given = {a.aval.dtype for a in (*eqn.invars, *eqn.outvars)}
    if len(dtypes_given) != 1 or dtypes_given.pop() not in (np.dtype(np.float32), np.dtype(np.float64)):
        return False, "BLAS has no routine for this dtype"
    if contraction.work <= SMALL:
        return False, "the product is small: calling BLAS would cost more"
    return True, "a matrix product of a dtype and size that BLAS is best at"


def lower_contraction(group: Group, makers: dict[Var, JaxprEqn]) -> Lowered:
    """A loop nest: result elements in parallel, the last free axis in lanes, contracted axes folded in order."""
    (eqn,) = group.eqns
    (xc, yc), (xb, yb) = eqn.params["dimension_numbers"]
    x, y = (a.aval for a in eqn.invars)
    out_aval = eqn.outvars[0].aval
    xf, yf = free_axes(x.ndim, xc, xb), free_axes(y.ndim, yc, yb)
    contracted = tuple(x.shape[d] for d in xc)
    k = _Kernel(group, makers)
    b, out = k.b, k.output(eqn.outvars[0])  # type: ignore[arg-type]
    dtype = accumulator_dtype(out_aval.dtype)
    size, folded = out_aval.size, math.prod(contracted)
    row = out_aval.shape[-1] if yf else 1

    def element(index: tuple[Value, ...]) -> Value:
        batch, free_x, free_y = index[: len(xb)], index[len(xb) : len(xb) + len(xf)], index[len(xb) + len(xf) :]
        zero = dtype.type(0)
        with b.fold(folded, Carry((zero,), "add"), unroll=folded if 0 < folded <= 4 else 1) as loop:
            inner = unravel(b, loop.axis, contracted)
            at_x = _assembled(x.ndim, (xb, batch), (xf, free_x), (xc, inner))
            at_y = _assembled(y.ndim, (yb, batch), (yf, free_y), (yc, inner))
            product = b.mul(
                b.convert(k.reader.read(eqn.invars[0], at_x), dtype),
                b.convert(k.reader.read(eqn.invars[1], at_y), dtype),
            )
            loop.update(b.add(loop.carried[0], product))
        return b.convert(loop.results[0], out_aval.dtype)

    if row >= LANES and size > row:
        with b.loop(size // row, parallel=True) as r:
            with b.loop(row, vector=True) as column:
                index = (*unravel(b, r, out_aval.shape[:-1]), column)
                b.store(out, b.add(b.mul(r, row), column), element(index))
        return k.finish(size // row, size * max(folded, 1))
    with b.loop(size, parallel=True, vector=size >= LANES) as place:
        b.store(out, place, element(unravel(b, place, out_aval.shape)))
    return k.finish(size, size * max(folded, 1))


def _assembled(rank: int, *parts: tuple[tuple[int, ...], tuple[Value, ...]]) -> tuple[Value, ...]:
    index: list[Any] = [None] * rank
    for axes, values in parts:
        for axis, value in zip(axes, values, strict=True):
            index[axis] = value
    return tuple(index)
