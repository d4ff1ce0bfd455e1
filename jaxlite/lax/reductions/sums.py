"""Sums and products over axes."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, final

import numpy as np

from jaxlite.core.avals import aval_of
from jaxlite.core.primitive import Sample, get
from jaxlite.interpreters.zeros import Zero, instantiate, zero_of
from jaxlite.lax.convert import operand_of
from jaxlite.lax.families.reduction import Reduction
from jaxlite.lax.placed import placed

SAMPLES = (
    Sample(((3, 4),), {"axes": (0,), "out_sharding": None}),
    Sample(((2, 3, 4),), {"axes": (0, 2), "out_sharding": None}),
    Sample(((5,),), {"axes": (0,), "out_sharding": None}),
    Sample(((3, 0),), {"axes": (1,), "out_sharding": None}),
)


@final
class ReduceSum(Reduction):
    name, accepts, samples = "reduce_sum", "iuf", SAMPLES
    collective = "psum"
    linear_in = ((0,),)
    piecewise_linear = True

    def identity(self, dtype: Any) -> Any:
        return dtype.type(0)

    def combine(self, e: Any, a: Any, b: Any) -> Any:
        return e.add(a, b)

    def numpy(self, x: np.ndarray[Any, Any], axes: tuple[int, ...]) -> Any:
        return np.sum(x, axis=axes, dtype=x.dtype)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        out = self.bind(*primals, **params)
        if type(tangents[0]) is Zero:
            return [out], [zero_of(out)]
        return [out], [self.bind(instantiate(tangents[0]), **params)]

    def transpose(self, cotangents: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
        shape = operands[0].aval.shape
        kept = tuple(d for d in range(len(shape)) if d not in params["axes"])
        return [get("broadcast_in_dim").bind(cotangents[0], shape=shape, broadcast_dimensions=kept, sharding=None)]


@final
class ReduceProd(Reduction):
    name, accepts, samples = (
        "reduce_prod",
        "iuf",
        tuple(Sample(s.shapes, {"axes": s.params["axes"]}, low=0.5) for s in SAMPLES),
    )

    def identity(self, dtype: Any) -> Any:
        return dtype.type(1)

    def combine(self, e: Any, a: Any, b: Any) -> Any:
        return e.mul(a, b)

    def numpy(self, x: np.ndarray[Any, Any], axes: tuple[int, ...]) -> Any:
        return np.prod(x, axis=axes, dtype=x.dtype)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        (x,), (t,) = primals, tangents
        out = self.bind(x, **params)
        if type(t) is Zero:
            return [out], [zero_of(out)]
        # The derivative of a product along one axis: products of what is left and right of each factor, so that
        # zeros among the factors do no harm.
        axes, shape = params["axes"], aval_of(x).shape
        kept = [d for d in range(len(shape)) if d not in axes]
        bind = get("transpose").bind
        flat, flat_t = (
            get("reshape").bind(
                bind(v, permutation=(*kept, *axes)),
                new_sizes=(*(shape[d] for d in kept), int(np.prod([shape[d] for d in axes]))),
                dimensions=None,
                sharding=None,
            )
            for v in (x, t)
        )
        others = _products_of_others(flat, len(kept))
        return [out], [get("reduce_sum").bind(get("mul").bind(flat_t, others), axes=(len(kept),), out_sharding=None)]

    def transpose(self, cotangents: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
        raise NotImplementedError("reduce_prod is not linear, so it has no transpose.")


def _products_of_others(x: Any, axis: int) -> Any:
    """For each element along ``axis`` (the last), the product of all others."""
    shape = aval_of(x).shape
    n = shape[axis]
    if n == 0:
        return x
    one = np.ones((), aval_of(x).dtype)[()]
    left, right = _shifted(x, 1, axis, one), _shifted(x, -1, axis, one)
    step = 1
    while step < n:
        left = get("mul").bind(left, _shifted(left, step, axis, one))
        right = get("mul").bind(right, _shifted(right, -step, axis, one))
        step *= 2
    return get("mul").bind(left, right)


def _shifted(x: Any, by: int, axis: int, fill: Any) -> Any:
    rank = len(aval_of(x).shape)
    config = tuple((by, -by, 0) if d == axis else (0, 0, 0) for d in range(rank))
    return get("pad").bind(x, fill, padding_config=config)


reduce_sum_p, reduce_prod_p = ReduceSum(), ReduceProd()


def normal_axes(operand: Any, axes: Any) -> tuple[int, ...]:
    """``axes`` as non-negative ints, in order; ``ValueError`` names one that does not exist."""
    rank = len(aval_of(operand).shape)
    given = [operator.index(a) for a in axes]
    if any(not -rank <= a < rank for a in given):
        raise ValueError(f"axes {tuple(given)} are out of bounds for array of dimension {rank}.")
    return tuple(sorted(a % rank for a in given)) if rank else ()


@placed
def reduce_sum(operand: Any, axes: Any, *, out_sharding: Any = None) -> Any:
    """The sum over ``axes``."""
    operand = operand_of(operand)
    axes = normal_axes(operand, axes)
    return reduce_sum_p.bind(operand, axes=axes, out_sharding=None) if axes else operand


def reduce_prod(operand: Any, axes: Any) -> Any:
    """The product over ``axes``."""
    operand = operand_of(operand)
    return reduce_prod_p.bind(operand, axes=normal_axes(operand, axes))
