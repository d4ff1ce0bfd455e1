"""Counting: ``iota``, an array without operands whose elements are their own index along one axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, final

import numpy as np

from jaxlite.core import dtypes
from jaxlite.core.avals import ShapedArray
from jaxlite.core.factors import Factors, axes_of
from jaxlite.core.primitive import AxisData, Primitive, Sample, get
from jaxlite.interpreters.zeros import zero_of
from jaxlite.lax.layout.shaping import as_shape, reshape
from jaxlite.lax.placed import placed


@final
class Iota(Primitive):
    """0, 1, 2, ... along ``dimension``."""

    name, family, exact = "iota", "layout", True
    samples = (
        Sample((), {"dtype": dtypes.as_dtype("int32"), "shape": (5,), "dimension": 0, "sharding": None}),
        Sample((), {"dtype": dtypes.as_dtype("float32"), "shape": (3, 4), "dimension": 1, "sharding": None}),
    )
    piecewise_linear = True

    def abstract_eval(self, *avals: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        shape, d = params["shape"], params["dimension"]
        if not 0 <= d < len(shape):
            raise ValueError(f"iota: dimension must be between 0 and {len(shape) - 1}, got {d} for shape {shape}.")
        if dtypes.is_key(params["dtype"]) or dtypes.is_bool(params["dtype"]):
            raise TypeError(f"iota does not accept dtype {params['dtype'].name}. Accepted dtypes are numeric ones.")
        return (ShapedArray(shape, params["dtype"]),)

    def factors(self, avals: Sequence[ShapedArray], results: Sequence[ShapedArray], **params: Any) -> Factors | None:
        return Factors((), (axes_of(range(len(params["shape"]))),), dict(enumerate(params["shape"])))

    def part_from(self, params: dict[str, Any], shape: tuple[int, ...], starts: Sequence[Any]) -> Any:
        start, own = starts[params["dimension"]], self.bind(**{**params, "shape": shape})
        if start is None:
            return own
        first = get("convert_element_type").bind(start, new_dtype=params["dtype"], weak_type=False, sharding=None)
        return get("add").bind(own, first)

    def evaluate(self, *arrays: np.ndarray[Any, Any], **params: Any) -> tuple[np.ndarray[Any, Any], ...]:
        shape, d = params["shape"], params["dimension"]
        counts = np.arange(shape[d]).astype(params["dtype"])
        return (np.broadcast_to(counts.reshape([-1 if i == d else 1 for i in range(len(shape))]), shape),)

    def element(
        self, e: Any, number: int, index: tuple[Any, ...], read: Any, avals: Sequence[ShapedArray], **params: Any
    ) -> Any:
        return e.convert(index[params["dimension"]], params["dtype"])

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        out = self.bind(**params)
        return [out], [zero_of(out)]

    def transpose(self, cotangents: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
        return []

    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[int | None], /, **params: Any
    ) -> tuple[list[Any], list[int | None]]:
        return [self.bind(**params)], [None]


iota_p = Iota()


def iota(dtype: Any, size: int) -> Any:
    """The array 0, 1, ..., size - 1.

    >>> iota("int32", 3)
    Array([0, 1, 2], dtype=int32)
    """
    return broadcasted_iota(dtype, (size,), 0)


@placed
def broadcasted_iota(dtype: Any, shape: Any, dimension: int, out_sharding: Any = None) -> Any:
    """0, 1, 2, ... along ``dimension`` of an array of ``shape``."""
    dtype, shape = dtypes.canonicalize(dtype), as_shape(shape)
    return iota_p.bind(dtype=dtype, shape=shape, dimension=dimension, sharding=None)


def flat_iota(dtype: Any, shape: tuple[int, ...]) -> Any:
    """Each element's row-major position."""
    return reshape(iota(dtype, math.prod(shape)), shape)
