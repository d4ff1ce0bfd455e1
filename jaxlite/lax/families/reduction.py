"""The reduction family: folds axes of an array with an associative operation.

A member gives the neutral element (``identity``), the operation on two elements (``combine``, against an emitter),
what NumPy does, and how tangents and cotangents move.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from jaxlite.core import dtypes
from jaxlite.core.avals import ShapedArray
from jaxlite.core.factors import Factors, axes_of
from jaxlite.core.primitive import AxisData, Primitive
from jaxlite.lax.families.elementwise import check_accepts


def reduced_shape(shape: tuple[int, ...], axes: Sequence[int]) -> tuple[int, ...]:
    """``shape`` without ``axes``."""
    return tuple(n for d, n in enumerate(shape) if d not in axes)


class Reduction(Primitive):
    """Base of reductions of one operand over ``axes``."""

    family: ClassVar[str] = "reduction"
    collective: ClassVar[str] = ""  # that folds the parts of devices; "": none does

    @abstractmethod
    def identity(self, dtype: Any) -> Any:
        """The neutral element, as a NumPy scalar of ``dtype``."""

    @abstractmethod
    def combine(self, e: Any, a: Any, b: Any) -> Any:
        """The operation on two elements, in terms of the emitter ``e``."""

    @abstractmethod
    def numpy(self, x: np.ndarray[Any, Any], axes: tuple[int, ...]) -> Any:
        """The result as NumPy computes it."""

    def abstract_eval(self, *avals: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        (aval,) = avals
        check_accepts(self, avals)
        axes = params["axes"]
        if len(set(axes)) != len(axes) or any(not 0 <= a < aval.ndim for a in axes):
            raise ValueError(
                f"{self.name}: axes {axes} do not fit an array of shape {aval.shape}: each must be "
                f"one of 0..{aval.ndim - 1}, once."
            )
        return (ShapedArray(reduced_shape(aval.shape, axes), aval.dtype, aval.weak_type),)

    def factors(self, avals: Sequence[ShapedArray], results: Sequence[ShapedArray], **params: Any) -> Factors | None:
        axes = params["axes"]
        every = axes_of(range(avals[0].ndim))
        kept = tuple([a for d, a in enumerate(every) if d not in axes])
        sizes = dict(enumerate(avals[0].shape))
        return Factors((every,), (kept,) * len(results), sizes, reduced=dict.fromkeys(axes, self.collective))

    def evaluate(self, *arrays: np.ndarray[Any, Any], **params: Any) -> tuple[np.ndarray[Any, Any], ...]:
        (x,) = arrays
        wide = x.astype(np.float32) if dtypes.is_narrow_float(x.dtype) else x
        return (np.asarray(self.numpy(wide, params["axes"])).astype(x.dtype),)

    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[int | None], /, **params: Any
    ) -> tuple[list[Any], list[int | None]]:
        (dim,) = dims
        assert dim is not None
        shifted = tuple(a + (a >= dim) for a in params["axes"])
        out = self.bind(operands[0], **{**params, "axes": shifted})
        return [out], [dim - sum(a < dim for a in shifted)]
