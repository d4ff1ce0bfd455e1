"""Permutations of rows in the last axis: from the exchanges that ``lu`` makes, and their inverses."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, final

import numpy as np

from jaxlite.core.avals import ShapedArray
from jaxlite.core.primitive import AxisData, Sample
from jaxlite.interpreters.batch import move_axis
from jaxlite.interpreters.zeros import zero_of
from jaxlite.lax.convert import operand_of
from jaxlite.lax.families.linalg import Access, LinearAlgebra, Memory, Routine, Stage, memory_of

INT32 = np.dtype(np.int32)
_INT64 = np.dtype(np.int64)


def permutation_from(pivots: np.ndarray[Any, Any], size: int) -> np.ndarray[Any, Any]:
    """The row order that results from swapping row ``i`` with row ``pivots[..., i]``, one after the other."""
    order = np.broadcast_to(np.arange(size, dtype=np.int32), (*pivots.shape[:-1], size)).copy()
    for i in range(pivots.shape[-1]):
        other = pivots[..., i : i + 1].astype(np.int64)
        mine, theirs = order[..., i : i + 1].copy(), np.take_along_axis(order, other, -1)
        order[..., i : i + 1] = theirs
        np.put_along_axis(order, other, mine, -1)
    return order


def write_counting(e: Any, at: Access, order: Memory) -> None:
    """0, 1, 2, ..."""
    if order.shape[0]:
        with e.loop(order.shape[0]) as i:
            at.write(order, (i,), e.convert(i, INT32))


def write_order(e: Any, at: Access, pivots: Memory, order: Memory) -> None:
    """The permutation from the pivots, exchange by exchange in memory; a pivot outside counts as the last row."""
    size = order.shape[0]
    write_counting(e, at, order)
    if not pivots.shape[0]:
        return
    with e.loop(pivots.shape[0]) as i:
        wanted = e.convert(at.read(pivots, (i,)), _INT64)
        other = e.min(e.max(wanted, 0), size - 1)
        mine, theirs = at.read(order, (i,)), at.read(order, (other,))
        at.write(order, (i,), theirs)
        at.write(order, (other,), mine)


class _Permutation(LinearAlgebra):
    """Base: int32 vectors in, int32 vectors out; nothing to differentiate."""

    accepts, core_rank = "i", 1
    piecewise_linear = True

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        out = self.bind(*primals, **params)
        return [out], [zero_of(out)]

    def transpose(self, cotangents: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
        raise NotImplementedError(f"{self.name} is not linear, so it has no transpose.")

    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[int | None], /, **params: Any
    ) -> tuple[list[Any], list[int | None]]:
        assert dims[0] is not None
        return [self.bind(move_axis(operands[0], dims[0], 0), **params)], [0]


@final
class LUPivotsToPermutation(_Permutation):
    """Exchanges, one after the other, as a permutation."""

    name = "lu_pivots_to_permutation"
    samples = (
        Sample(((3,),), {"permutation_size": 4}, low=0, high=3.4, dtypes=("int32",)),
        Sample(((2, 2),), {"permutation_size": 10}, low=0, high=9.4, dtypes=("int32",)),
    )

    def abstract_eval(self, *avals: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        (pivots,), size = avals, params["permutation_size"]
        if pivots.ndim < 1 or pivots.dtype != INT32:
            raise TypeError(f"lu_pivots_to_permutation takes int32 pivots in the last axis, got {pivots}.")
        if size < pivots.shape[-1]:
            raise ValueError(f"Output permutation size {size} has to exceed the trailing dimension {pivots.shape[-1]}.")
        return (ShapedArray((*pivots.shape[:-1], size), INT32),)

    def evaluate(self, *arrays: np.ndarray[Any, Any], **params: Any) -> tuple[np.ndarray[Any, Any], ...]:
        size = params["permutation_size"]
        return (permutation_from(np.clip(arrays[0], 0, max(size - 1, 0)), size),)

    def steps(self, *avals: ShapedArray, **params: Any) -> Sequence[Stage | Routine]:
        (result,) = self.abstract_eval(*avals, **params)
        pivots, order = memory_of("operand", 0, avals[0], 1), memory_of("result", 0, result, 1)
        return [Stage((), lambda e, index, at: write_order(e, at, pivots, order), 4 * order.shape[0], vector=False)]


@final
class InversePermutation(_Permutation):
    """The permutation that undoes the operand."""

    name = "inverse_permutation"
    samples = (Sample(((1,),), low=0, high=0, dtypes=("int32",)), Sample(((2, 0),), dtypes=("int32",)))

    def abstract_eval(self, *avals: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        if avals[0].ndim < 1 or avals[0].dtype != INT32:
            raise TypeError(f"inverse_permutation takes int32 permutations in the last axis, got {avals[0]}.")
        return avals

    def evaluate(self, *arrays: np.ndarray[Any, Any], **params: Any) -> tuple[np.ndarray[Any, Any], ...]:
        n = arrays[0].shape[-1]
        out = np.broadcast_to(np.arange(n, dtype=np.int32), arrays[0].shape).copy()
        for i in range(n):
            place = np.clip(arrays[0][..., i : i + 1], 0, n - 1).astype(np.int64)
            np.put_along_axis(out, place, np.int32(i), -1)
        return (out,)

    def steps(self, *avals: ShapedArray, **params: Any) -> Sequence[Stage | Routine]:
        order, out = memory_of("operand", 0, avals[0], 1), memory_of("result", 0, avals[0], 1)
        n = order.shape[0]

        def invert(e: Any, index: tuple[Any, ...], at: Access) -> None:
            write_counting(e, at, out)
            with e.loop(n) as i:
                place = e.convert(at.read(order, (i,)), _INT64)
                at.write(out, (e.min(e.max(place, 0), n - 1),), e.convert(i, INT32))

        return [Stage((), invert, 3 * n, vector=False)]


lu_pivots_to_permutation_p, inverse_permutation_p = LUPivotsToPermutation(), InversePermutation()


def lu_pivots_to_permutation(pivots: Any, permutation_size: int) -> Any:
    """The permutation of ``permutation_size`` rows that the exchanges ``pivots`` of ``lu`` make."""
    return lu_pivots_to_permutation_p.bind(operand_of(pivots), permutation_size=operator.index(permutation_size))


def inverse_permutation(order: Any) -> Any:
    """The permutation that undoes ``order``."""
    return inverse_permutation_p.bind(operand_of(order))
