"""Running sums, products, maxima, minima and log-sums of exponentials along an axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np

from jaxlite.core import dtypes
from jaxlite.core.avals import aval_of
from jaxlite.core.context import context
from jaxlite.core.primitive import Sample
from jaxlite.interpreters.jet import jet
from jaxlite.interpreters.jvp import jvp
from jaxlite.interpreters.zeros import Zero, instantiate, zero_of
from jaxlite.lax.control.associative import associative_scan
from jaxlite.lax.convert import broadcast_to_shape, full_like, operand_of
from jaxlite.lax.elementwise.arithmetic import abs, add, max, min, mul, neg, sub
from jaxlite.lax.elementwise.comparison import ne
from jaxlite.lax.elementwise.exponential import exp, log1p
from jaxlite.lax.elementwise.select import select
from jaxlite.lax.families.cumulative import Cumulative, normal_axis

SAMPLES = (
    Sample(((3, 4),), {"axis": 0, "reverse": False}),
    Sample(((2, 3, 4),), {"axis": 2, "reverse": True}),
    Sample(((2, 3, 17),), {"axis": 1, "reverse": True}),
    Sample(((5,),), {"axis": 0, "reverse": False}),
    Sample(((3, 0),), {"axis": 1, "reverse": False}),
)
FLOATS = tuple(Sample(s.shapes, s.params, low=0.5) for s in SAMPLES)


def _moved(
    primitive: Cumulative, combine: Callable[[Any, Any], Any], x: Any, tangent: Any, params: dict[str, Any]
) -> tuple[list[Any], list[Any]]:
    """The result by the primitive, and its tangent by that of a tree of ``combine``."""
    out = primitive.bind(x, **params)
    if type(tangent) is Zero or aval_of(x).shape[params["axis"]] == 0:
        return [out], [zero_of(out)]
    _, (moved,) = jvp(
        lambda v: [associative_scan(combine, v, reverse=params["reverse"], axis=params["axis"])],
        [x], [instantiate(tangent)], context.trace,
    )  # fmt: skip
    return [out], [moved]


class _Nonlinear(Cumulative):
    """Base of those whose tangents are found by differentiating the operation on two arrays."""

    def joined(self, a: Any, b: Any) -> Any:
        """The operation on two arrays."""
        raise NotImplementedError

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        return _moved(self, self.joined, primals[0], tangents[0], params)

    def jet(
        self, primals: Sequence[Any], series: Sequence[Sequence[Any]], **params: Any
    ) -> tuple[list[Any], list[list[Any]]] | None:
        (x,) = primals
        out, order = self.bind(x, **params), len(series[0])
        if aval_of(x).shape[params["axis"]] == 0:
            return [out], [[zero_of(out)] * order]

        def tree(v: Any) -> list[Any]:
            return [associative_scan(self.joined, v, reverse=params["reverse"], axis=params["axis"])]

        return [out], jet(tree, primals, [list(s) for s in series], order, context.trace)[1]

    def transpose(self, cotangents: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
        raise NotImplementedError(f"{self.name} is not linear, so it has no transpose.")


@final
class CumSum(Cumulative):
    name, accepts, samples = "cumsum", "iuf", SAMPLES
    piecewise_linear = True

    def identity(self, dtype: Any) -> Any:
        return dtype.type(0)

    def combine(self, e: Any, a: Any, b: Any) -> Any:
        return e.add(a, b)

    def accumulate(self, x: np.ndarray[Any, Any], axis: int) -> Any:
        return np.add.accumulate(x, axis, dtype=x.dtype)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        out = self.bind(*primals, **params)
        tangent = tangents[0]
        return [out], [zero_of(out) if type(tangent) is Zero else self.bind(tangent, **params)]

    def transpose(self, cotangents: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
        return [self.bind(instantiate(cotangents[0]), axis=params["axis"], reverse=not params["reverse"])]


@final
class CumProd(_Nonlinear):
    name, accepts, samples = "cumprod", "iuf", FLOATS

    def identity(self, dtype: Any) -> Any:
        return dtype.type(1)

    def combine(self, e: Any, a: Any, b: Any) -> Any:
        return e.mul(a, b)

    def accumulate(self, x: np.ndarray[Any, Any], axis: int) -> Any:
        return np.multiply.accumulate(x, axis, dtype=x.dtype)

    def joined(self, a: Any, b: Any) -> Any:
        return mul(a, b)


def _lowest(dtype: Any) -> Any:
    return dtype.type(-np.inf) if dtypes.is_inexact(dtype) else np.array(np.iinfo(dtype).min, dtype)[()]


def _highest(dtype: Any) -> Any:
    return dtype.type(np.inf) if dtypes.is_inexact(dtype) else np.array(np.iinfo(dtype).max, dtype)[()]


@final
class CumMax(_Nonlinear):
    """NaN from the first NaN on."""

    name, accepts, samples = "cummax", "iuf", SAMPLES

    def identity(self, dtype: Any) -> Any:
        return _lowest(dtype)

    def combine(self, e: Any, a: Any, b: Any) -> Any:
        return e.max(a, b)

    def accumulate(self, x: np.ndarray[Any, Any], axis: int) -> Any:
        return np.maximum.accumulate(x, axis)

    def joined(self, a: Any, b: Any) -> Any:
        return max(a, b)


@final
class CumMin(_Nonlinear):
    """NaN from the first NaN on."""

    name, accepts, samples = "cummin", "iuf", SAMPLES

    def identity(self, dtype: Any) -> Any:
        return _highest(dtype)

    def combine(self, e: Any, a: Any, b: Any) -> Any:
        return e.min(a, b)

    def accumulate(self, x: np.ndarray[Any, Any], axis: int) -> Any:
        return np.minimum.accumulate(x, axis)

    def joined(self, a: Any, b: Any) -> Any:
        return min(a, b)


@final
class CumLogSumExp(_Nonlinear):
    """``log(sum(exp(x)))``, by ``max(a, b) + log1p(exp(-|a - b|))`` at each step."""

    name, accepts, samples = "cumlogsumexp", "f", SAMPLES

    def identity(self, dtype: Any) -> Any:
        return dtype.type(-np.inf)

    def combine(self, e: Any, a: Any, b: Any) -> Any:
        apart = e.sub(a, b)
        known = e.add(e.max(a, b), e.log1p(e.exp(e.neg(e.abs(apart)))))
        return e.select(e.ne(apart, apart), e.add(a, b), known)  # two equal infinities, or a NaN

    def accumulate(self, x: np.ndarray[Any, Any], axis: int) -> Any:
        return np.logaddexp.accumulate(x, axis)

    def joined(self, a: Any, b: Any) -> Any:
        apart = sub(a, b)
        unknown = ne(apart, apart)
        # Where that is NaN its derivative is no use either: both branches must have one that holds.
        safe = select(unknown, broadcast_to_shape(full_like(apart, 0), aval_of(apart).shape), apart)
        known = add(max(a, b), log1p(exp(neg(abs(safe)))))
        return select(unknown, add(a, b), known)


cumsum_p, cumprod_p, cummax_p, cummin_p = CumSum(), CumProd(), CumMax(), CumMin()
cumlogsumexp_p = CumLogSumExp()


def _bound(primitive: Cumulative, operand: Any, axis: Any, reverse: Any) -> Any:
    x = operand_of(operand)
    number = normal_axis(primitive.name, axis, len(aval_of(x).shape))
    return primitive.bind(x, axis=number, reverse=bool(reverse))


def cumsum(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """Running sums along ``axis``, from the end with ``reverse``.

    >>> import jaxlite.numpy as jnp
    >>> cumsum(jnp.array([1, 2, 3]), reverse=True)
    Array([6, 5, 3], dtype=int32)
    """
    return _bound(cumsum_p, operand, axis, reverse)


def cumprod(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """Running products along ``axis``, from the end with ``reverse``."""
    return _bound(cumprod_p, operand, axis, reverse)


def cummax(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """Running maxima along ``axis``, from the end with ``reverse``."""
    return _bound(cummax_p, operand, axis, reverse)


def cummin(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """Running minima along ``axis``, from the end with ``reverse``."""
    return _bound(cummin_p, operand, axis, reverse)


def cumlogsumexp(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """Running ``log(sum(exp(x)))`` along ``axis``, from the end with ``reverse``."""
    return _bound(cumlogsumexp_p, operand, axis, reverse)
