"""Contractions: ``dot_general``, the product over contracted axes, batched along others."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, final

import numpy as np

from jaxlite.core import dtypes
from jaxlite.core.avals import ShapedArray, aval_of
from jaxlite.core.factors import Factors, axes_of
from jaxlite.core.precision import check_precision
from jaxlite.core.primitive import AxisData, Primitive, Sample
from jaxlite.interpreters.batch import move_axis
from jaxlite.interpreters.jet import known
from jaxlite.interpreters.series import combined
from jaxlite.interpreters.zeros import Zero, add, is_linear, zero_of
from jaxlite.lax.convert import operands_of
from jaxlite.lax.elementwise.casts import convert
from jaxlite.lax.families.elementwise import check_accepts, check_same_dtypes
from jaxlite.lax.layout.shaping import transpose
from jaxlite.lax.placed import placed

Dims = tuple[tuple[tuple[int, ...], tuple[int, ...]], tuple[tuple[int, ...], tuple[int, ...]]]


def free_axes(rank: int, contract: Sequence[int], batch: Sequence[int]) -> tuple[int, ...]:
    """The axes that are neither contracted nor batched."""
    return tuple(d for d in range(rank) if d not in contract and d not in batch)


@final
class DotGeneral(Primitive):
    """Result axes: batch, free of the left operand, free of the right one."""

    name, family, accepts = "dot_general", "contraction", "biuf"
    samples = tuple(
        Sample(
            shapes, {"dimension_numbers": dims, "precision": None, "preferred_element_type": None, "out_sharding": None}
        )
        for shapes, dims in (
            (((3, 4), (4, 5)), (((1,), (0,)), ((), ()))),
            (((2, 3, 4), (2, 4, 5)), (((2,), (1,)), ((0,), (0,)))),
            (((4, 3), (5, 4)), (((0,), (1,)), ((), ()))),
            (((3,), (3,)), (((0,), (0,)), ((), ()))),
            (((2, 3, 4), (4, 3)), (((1, 2), (1, 0)), ((), ()))),
            (((3, 0), (0, 2)), (((1,), (0,)), ((), ()))),
        )
    )

    def abstract_eval(self, *avals: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        x, y = avals
        check_accepts(self, avals)
        check_same_dtypes(self, avals)
        (xc, yc), (xb, yb) = params["dimension_numbers"]
        for kind, a, b in (("contracting", xc, yc), ("batch", xb, yb)):
            if len(a) != len(b):
                raise TypeError(
                    f"dot_general requires equal numbers of lhs_{kind} and rhs_{kind} dimensions, got {a} and {b}."
                )
            if any(not 0 <= d < x.ndim for d in a) or any(not 0 <= d < y.ndim for d in b):
                raise TypeError(
                    f"dot_general requires {kind} dimensions {a} and {b} to be axes of shapes {x.shape} and {y.shape}."
                )
            left, right = tuple(x.shape[d] for d in a), tuple(y.shape[d] for d in b)
            if left != right:
                raise TypeError(
                    f"dot_general requires {kind} dimensions to have the same shape, got {left} and {right}."
                )
        if len({*xc, *xb}) != len(xc) + len(xb) or len({*yc, *yb}) != len(yc) + len(yb):
            raise TypeError(f"dot_general requires each dimension to be named once, got {params['dimension_numbers']}.")
        shape = (
            *(x.shape[d] for d in xb),
            *(x.shape[d] for d in free_axes(x.ndim, xc, xb)),
            *(y.shape[d] for d in free_axes(y.ndim, yc, yb)),
        )
        preferred = params["preferred_element_type"]
        return (
            ShapedArray(
                shape, x.dtype if preferred is None else preferred, preferred is None and x.weak_type and y.weak_type
            ),
        )

    def factors(self, avals: Sequence[ShapedArray], results: Sequence[ShapedArray], **params: Any) -> Factors | None:
        (x, y), ((xc, yc), (xb, yb)) = avals, params["dimension_numbers"]
        right = [x.ndim + d for d in range(y.ndim)]
        for a, b in zip((*xc, *xb), (*yc, *yb), strict=True):
            right[b] = a
        left = axes_of(range(x.ndim))
        out = (*xb, *free_axes(x.ndim, xc, xb), *[right[d] for d in free_axes(y.ndim, yc, yb)])
        sizes = {**dict(enumerate(x.shape)), **{x.ndim + d: n for d, n in enumerate(y.shape)}}
        return Factors((left, axes_of(right)), (axes_of(out),), sizes, reduced=dict.fromkeys(xc, "psum"))

    def evaluate(self, *arrays: np.ndarray[Any, Any], **params: Any) -> tuple[np.ndarray[Any, Any], ...]:
        x, y = arrays
        (xc, yc), (xb, yb) = params["dimension_numbers"]
        dtype = params["preferred_element_type"] or x.dtype
        xf, yf = free_axes(x.ndim, xc, xb), free_axes(y.ndim, yc, yb)
        left = x.transpose((*xb, *xf, *xc)).reshape(
            [*(x.shape[d] for d in xb), math.prod(x.shape[d] for d in xf), math.prod(x.shape[d] for d in xc)]
        )
        right = y.transpose((*yb, *yc, *yf)).reshape(
            [*(y.shape[d] for d in yb), math.prod(y.shape[d] for d in yc), math.prod(y.shape[d] for d in yf)]
        )
        wide = np.float32 if dtypes.is_narrow_float(x.dtype) else dtype
        out = np.matmul(left.astype(wide), right.astype(wide)).astype(dtype)
        shape = [*(x.shape[d] for d in xb), *(x.shape[d] for d in xf), *(y.shape[d] for d in yf)]
        return (out.reshape(shape),)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        (x, y), (tx, ty) = primals, tangents
        out = self.bind(x, y, **params)
        total: Any = None
        if type(tx) is not Zero:
            total = self.bind(tx, y, **params)
        if type(ty) is not Zero:
            total = add(total, self.bind(x, ty, **params))
        return [out], [zero_of(out) if total is None else total]

    def jet(
        self, primals: Sequence[Any], series: Sequence[Sequence[Any]], **params: Any
    ) -> tuple[list[Any], list[list[Any]]] | None:
        x, y = ([p, *map(known, s)] for p, s in zip(primals, series, strict=True))
        out = self.bind(*primals, **params)

        def bilinear(a: Any, b: Any) -> Any:
            return self.bind(a, b, **params)

        terms = [combined(bilinear, x, y, k) for k in range(1, len(x))]
        return [out], [[zero_of(out) if t is None else t for t in terms]]

    def transpose(self, cotangents: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
        (cotangent,) = cotangents
        x, y = operands
        if is_linear(x) and is_linear(y):
            raise NotImplementedError("dot_general of two linear operands is not linear, so it has no transpose.")
        if is_linear(x):
            return [_pull_back(cotangent, x.aval, y, params, left=True), None]
        return [None, _pull_back(cotangent, y.aval, x, params, left=False)]

    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[int | None], /, **params: Any
    ) -> tuple[list[Any], list[int | None]]:
        x, y = operands
        dx, dy = dims
        (xc, yc), (xb, yb) = params["dimension_numbers"]
        if dx is not None:
            x, xc, xb = move_axis(x, dx, 0), _up(xc), _up(xb)
        if dy is not None:
            y, yc, yb = move_axis(y, dy, 0), _up(yc), _up(yb)
        if dx is not None and dy is not None:
            numbers: Dims = ((xc, yc), ((0, *xb), (0, *yb)))
            return [self.bind(x, y, **{**params, "dimension_numbers": numbers})], [0]
        out = self.bind(x, y, **{**params, "dimension_numbers": ((xc, yc), (xb, yb))})
        if dx is not None:
            return [out], [len(xb)]  # the new axis is the first free one of the left operand
        return [out], [len(xb) + len(free_axes(len(aval_of(x).shape), xc, xb))]


def _up(axes: Sequence[int]) -> tuple[int, ...]:
    return tuple(a + 1 for a in axes)


def _pull_back(cotangent: Any, aval: ShapedArray, other: Any, params: dict[str, Any], left: bool) -> Any:
    """The cotangent of one operand: the result's, contracted with the other operand over the other's free axes."""
    (xc, yc), (xb, yb) = params["dimension_numbers"]
    mine_c, other_c, mine_b, other_b = (xc, yc, xb, yb) if left else (yc, xc, yb, xb)
    other_rank = len(aval_of(other).shape)
    mine_free = free_axes(aval.ndim, mine_c, mine_b)
    other_free = free_axes(other_rank, other_c, other_b)
    batch = tuple(range(len(mine_b)))
    first = len(mine_b) + len(mine_free) if left else len(mine_b)
    contracted = tuple(range(first, first + len(other_free)))
    dtype = aval_of(other).dtype
    numbers = ((contracted, other_free), (batch, other_b))
    product = dot_general_p.bind(
        convert(cotangent, dtype), other, dimension_numbers=numbers, precision=params["precision"],
        preferred_element_type=None if dtype == aval.dtype else aval.dtype, out_sharding=None,
    )  # fmt: skip
    # Axes of the product: batch, mine_free, then the other's contracted axes in the order of its own axes.
    matching = dict(zip(other_c, mine_c, strict=True))
    order = [*mine_b, *mine_free, *(matching[d] for d in sorted(other_c))]
    return transpose(product, tuple(int(i) for i in np.argsort(order)))


dot_general_p = DotGeneral()


@placed
def dot_general(
    lhs: Any,
    rhs: Any,
    dimension_numbers: Any,
    precision: Any = None,
    preferred_element_type: Any = None,
    *,
    out_sharding: Any = None,
) -> Any:
    """The product over contracted axes: ``dimension_numbers`` is ((lhs_contract, rhs_contract), (lhs_batch,
    rhs_batch)).

    >>> import jaxlite.numpy as jnp
    >>> dot_general(jnp.ones((2, 3)), jnp.ones((3, 4)), (((1,), (0,)), ((), ()))).shape
    (2, 4)
    """
    (xc, yc), (xb, yb) = dimension_numbers
    numbers = tuple(tuple(tuple(operator.index(d) for d in axes) for axes in pair) for pair in ((xc, yc), (xb, yb)))
    check_precision(precision)
    preferred = None if preferred_element_type is None else dtypes.canonicalize(preferred_element_type)
    x, y = operands_of(lhs, rhs)
    if preferred is not None and preferred == aval_of(x).dtype:
        preferred = None
    return dot_general_p.bind(
        x, y, dimension_numbers=numbers, precision=precision, preferred_element_type=preferred, out_sharding=None
    )


def dot(lhs: Any, rhs: Any, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """Product of vectors and matrices: the last axis of ``lhs`` with the first of ``rhs``."""
    x, y = operands_of(lhs, rhs)
    if not (1 <= len(aval_of(x).shape) <= 2 and 1 <= len(aval_of(y).shape) <= 2):
        raise TypeError(
            f"dot takes vectors and matrices, got shapes {aval_of(x).shape} and {aval_of(y).shape}: use dot_general."
        )
    numbers = (((len(aval_of(x).shape) - 1,), (0,)), ((), ()))
    return dot_general(x, y, numbers, precision, preferred_element_type)
