"""The cumulative family: each element of the result folds the operand up to there along one axis.

A member gives the neutral element, the operation on two elements (against an emitter), what NumPy does, and how
tangents move.  The compiler folds along the axis in order and stores as it goes; other axes run in parallel.
"""

from __future__ import annotations

import operator
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from jaxlite.core import dtypes
from jaxlite.core.avals import ShapedArray
from jaxlite.core.factors import Factors, along
from jaxlite.core.primitive import AxisData, Primitive
from jaxlite.lax.families.elementwise import check_accepts


class Cumulative(Primitive):
    """Base of cumulative primitives: parameters ``axis`` and ``reverse`` (from the last element to the first)."""

    family: ClassVar[str] = "cumulative"

    @abstractmethod
    def identity(self, dtype: Any) -> Any:
        """The neutral element, as a NumPy scalar of ``dtype``."""

    @abstractmethod
    def combine(self, e: Any, a: Any, b: Any) -> Any:
        """The operation on what came before and the next element, in terms of the emitter ``e``."""

    @abstractmethod
    def accumulate(self, x: np.ndarray[Any, Any], axis: int) -> Any:
        """The result as NumPy computes it, from the first element to the last."""

    def abstract_eval(self, *avals: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        check_accepts(self, avals)
        axis = params["axis"]
        if not 0 <= axis < avals[0].ndim:
            raise ValueError(f"axis {axis} is out of bounds for array of shape {avals[0].shape}")
        return avals

    def factors(self, avals: Sequence[ShapedArray], results: Sequence[ShapedArray], **params: Any) -> Factors | None:
        why = f"Input should be unsharded over the axis being reduced, which {self.name} goes along."
        return along(avals[0].shape, [params["axis"]], why)

    def evaluate(self, *arrays: np.ndarray[Any, Any], **params: Any) -> tuple[np.ndarray[Any, Any], ...]:
        (x,), axis = arrays, params["axis"]
        wide = x.astype(np.float32) if dtypes.is_narrow_float(x.dtype) else x
        if params["reverse"]:
            out = np.flip(self.accumulate(np.flip(wide, axis), axis), axis)
        else:
            out = self.accumulate(wide, axis)
        return (np.ascontiguousarray(np.asarray(out).astype(x.dtype)),)

    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[int | None], /, **params: Any
    ) -> tuple[list[Any], list[int | None]]:
        (dim,) = dims
        assert dim is not None
        own = params["axis"]
        return [self.bind(operands[0], axis=own + (own >= dim), reverse=params["reverse"])], [dim]


def normal_axis(name: str, axis: Any, rank: int) -> int:
    """``axis`` as a non-negative int; ``ValueError`` where there is no such axis."""
    number = operator.index(axis)
    if not -rank <= number < rank:
        raise ValueError(f"{name}: axis {number} is out of bounds for array of dimension {rank}.")
    return number % rank
