"""Largest and smallest over axes, their places, and logical reductions."""

from __future__ import annotations

import operator
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, final

import numpy as np

from jaxlite.core import dtypes
from jaxlite.core.avals import ShapedArray, aval_of
from jaxlite.core.factors import Factors, axes_of
from jaxlite.core.primitive import AxisData, Primitive, Sample, get
from jaxlite.interpreters.zeros import Zero, zero_of
from jaxlite.lax.convert import operand_of
from jaxlite.lax.elementwise.arithmetic import div, mul
from jaxlite.lax.elementwise.casts import convert
from jaxlite.lax.elementwise.comparison import eq
from jaxlite.lax.families.elementwise import check_accepts
from jaxlite.lax.families.reduction import Reduction, reduced_shape
from jaxlite.lax.placed import placed
from jaxlite.lax.reductions.sums import normal_axes, reduce_sum

_SAMPLES = (
    Sample(((3, 4),), {"axes": (0,), "out_sharding": None}),
    Sample(((2, 3, 4),), {"axes": (0, 2), "out_sharding": None}),
    Sample(((5,),), {"axes": (0,), "out_sharding": None}),
)


def _lowest(dtype: Any) -> Any:
    if dtypes.is_bool(dtype):
        return np.bool_(False)
    return dtype.type(-np.inf) if dtypes.is_float(dtype) else dtype.type(np.iinfo(dtype).min)


def _highest(dtype: Any) -> Any:
    if dtypes.is_bool(dtype):
        return np.bool_(True)
    return dtype.type(np.inf) if dtypes.is_float(dtype) else dtype.type(np.iinfo(dtype).max)


class _Extremum(Reduction):
    """Base of ``reduce_max`` and ``reduce_min``: the tangent is the mean of those of the elements that attain it."""

    samples = _SAMPLES
    accepts = "biuf"
    piecewise_linear = True

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        (x,), (t,) = primals, tangents
        out = self.bind(x, **params)
        if type(t) is Zero:
            return [out], [zero_of(out)]
        axes, aval = params["axes"], aval_of(x)
        kept = tuple(d for d in range(aval.ndim) if d not in axes)
        spread = get("broadcast_in_dim").bind(out, shape=aval.shape, broadcast_dimensions=kept, sharding=None)
        attains = convert(eq(x, spread), aval.dtype)
        return [out], [div(reduce_sum(mul(t, attains), axes), reduce_sum(attains, axes))]

    def transpose(self, cotangents: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
        raise NotImplementedError(f"{self.name} is not linear, so it has no transpose.")


@final
class ReduceMax(_Extremum):
    name, collective = "reduce_max", "pmax"

    def identity(self, dtype: Any) -> Any:
        return _lowest(dtype)

    def combine(self, e: Any, a: Any, b: Any) -> Any:
        return e.max(a, b)

    def numpy(self, x: np.ndarray[Any, Any], axes: tuple[int, ...]) -> Any:
        return np.max(x, axis=axes, initial=_lowest(x.dtype))


@final
class ReduceMin(_Extremum):
    name, collective = "reduce_min", "pmin"

    def identity(self, dtype: Any) -> Any:
        return _highest(dtype)

    def combine(self, e: Any, a: Any, b: Any) -> Any:
        return e.min(a, b)

    def numpy(self, x: np.ndarray[Any, Any], axes: tuple[int, ...]) -> Any:
        return np.min(x, axis=axes, initial=_highest(x.dtype))


class _Logical(Reduction):
    """Base of reductions of bits: no tangents."""

    accepts = "biu"
    samples = tuple(Sample(s.shapes, {"axes": s.params["axes"]}) for s in _SAMPLES)
    ufunc: ClassVar[np.ufunc]
    piecewise_linear = True

    def numpy(self, x: np.ndarray[Any, Any], axes: tuple[int, ...]) -> Any:
        return self.ufunc.reduce(x, axis=axes, initial=self.identity(x.dtype))

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        out = self.bind(*primals, **params)
        return [out], [zero_of(out)]

    def transpose(self, cotangents: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
        return [Zero(operands[0].aval)]


@final
class ReduceAnd(_Logical):
    name, ufunc = "reduce_and", np.bitwise_and

    def identity(self, dtype: Any) -> Any:
        return np.bool_(True) if dtypes.is_bool(dtype) else np.array(-1).astype(dtype)[()]

    def combine(self, e: Any, a: Any, b: Any) -> Any:
        return e.and_(a, b)


@final
class ReduceOr(_Logical):
    name, ufunc = "reduce_or", np.bitwise_or

    def identity(self, dtype: Any) -> Any:
        return dtype.type(0)

    def combine(self, e: Any, a: Any, b: Any) -> Any:
        return e.or_(a, b)


@final
class ReduceXor(_Logical):
    name, ufunc = "reduce_xor", np.bitwise_xor

    def identity(self, dtype: Any) -> Any:
        return dtype.type(0)

    def combine(self, e: Any, a: Any, b: Any) -> Any:
        return e.xor(a, b)


class ArgExtremum(Primitive):
    """Base of ``argmax`` and ``argmin``: the first place of the extremum, of a NaN where there is one."""

    family: ClassVar[str] = "arg_reduction"
    accepts: ClassVar[str] = "biuf"
    samples = tuple(Sample(((3, 5),), {"axes": (d,), "index_dtype": dtypes.as_dtype("int32")}) for d in (0, 1))
    piecewise_linear = True

    @abstractmethod
    def wins(self, e: Any, a: Any, b: Any) -> Any:
        """Whether value ``a`` beats ``b``, NaN aside."""

    @abstractmethod
    def identity(self, dtype: Any) -> Any:
        """A value that beats no other."""

    def better(self, e: Any, a: Any, i: Any, b: Any, j: Any) -> Any:
        """Whether (value ``a``, place ``i``) goes before (``b``, ``j``): NaN first, then the value, then the place."""
        beats = self.wins(e, a, b)
        tie = e.eq(a, b)
        if dtypes.is_float(a.dtype):
            a_nan, b_nan = e.ne(a, a), e.ne(b, b)
            beats = e.or_(beats, e.and_(a_nan, e.not_(b_nan)))
            tie = e.or_(tie, e.and_(a_nan, b_nan))
        return e.or_(beats, e.and_(tie, e.lt(i, j)))

    def abstract_eval(self, *avals: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        (aval,) = avals
        check_accepts(self, avals)
        axes = params["axes"]
        if len(axes) != 1 or not 0 <= axes[0] < aval.ndim:
            raise ValueError(f"{self.name}: axes {axes} must be one axis of an array of shape {aval.shape}.")
        if aval.shape[axes[0]] < 1:
            raise ValueError(f"{self.name} of an empty axis: axis {axes[0]} of shape {aval.shape} has no elements.")
        return (ShapedArray(reduced_shape(aval.shape, axes), params["index_dtype"]),)

    def factors(self, avals: Sequence[ShapedArray], results: Sequence[ShapedArray], **params: Any) -> Factors | None:
        every = axes_of(range(avals[0].ndim))
        kept = tuple([a for d, a in enumerate(every) if d not in params["axes"]])
        return Factors((every,), (kept,), dict(enumerate(avals[0].shape)), reduced=dict.fromkeys(params["axes"], ""))

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        out = self.bind(*primals, **params)
        return [out], [zero_of(out)]

    def transpose(self, cotangents: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
        return [Zero(operands[0].aval)]

    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[int | None], /, **params: Any
    ) -> tuple[list[Any], list[int | None]]:
        dim = dims[0]
        assert dim is not None
        along = params["axes"][0] + (params["axes"][0] >= dim)
        out = self.bind(operands[0], axes=(along,), index_dtype=params["index_dtype"])
        return [out], [dim - (along < dim)]


@final
class Argmax(ArgExtremum):
    name = "argmax"

    def wins(self, e: Any, a: Any, b: Any) -> Any:
        return e.gt(a, b)

    def identity(self, dtype: Any) -> Any:
        return _lowest(dtype)

    def evaluate(self, *arrays: np.ndarray[Any, Any], **params: Any) -> tuple[np.ndarray[Any, Any], ...]:
        return (np.argmax(arrays[0], axis=params["axes"][0]).astype(params["index_dtype"]),)


@final
class Argmin(ArgExtremum):
    name = "argmin"

    def wins(self, e: Any, a: Any, b: Any) -> Any:
        return e.lt(a, b)

    def identity(self, dtype: Any) -> Any:
        return _highest(dtype)

    def evaluate(self, *arrays: np.ndarray[Any, Any], **params: Any) -> tuple[np.ndarray[Any, Any], ...]:
        return (np.argmin(arrays[0], axis=params["axes"][0]).astype(params["index_dtype"]),)


reduce_max_p, reduce_min_p, argmax_p, argmin_p = ReduceMax(), ReduceMin(), Argmax(), Argmin()
reduce_and_p, reduce_or_p, reduce_xor_p = ReduceAnd(), ReduceOr(), ReduceXor()


@placed
def reduce_max(operand: Any, axes: Any, *, out_sharding: Any = None) -> Any:
    """The largest over ``axes``; NaN where one is; the lowest value of the dtype where there are none."""
    operand = operand_of(operand)
    return reduce_max_p.bind(operand, axes=normal_axes(operand, axes), out_sharding=None)


@placed
def reduce_min(operand: Any, axes: Any, *, out_sharding: Any = None) -> Any:
    """The smallest over ``axes``; NaN where one is; the highest value of the dtype where there are none."""
    operand = operand_of(operand)
    return reduce_min_p.bind(operand, axes=normal_axes(operand, axes), out_sharding=None)


def reduce_and(operand: Any, axes: Any) -> Any:
    """Bitwise (logical, for bools) and over ``axes``."""
    operand = operand_of(operand)
    return reduce_and_p.bind(operand, axes=normal_axes(operand, axes))


def reduce_or(operand: Any, axes: Any) -> Any:
    """Bitwise (logical, for bools) or over ``axes``."""
    operand = operand_of(operand)
    return reduce_or_p.bind(operand, axes=normal_axes(operand, axes))


def reduce_xor(operand: Any, axes: Any) -> Any:
    """Bitwise exclusive or over ``axes``."""
    operand = operand_of(operand)
    return reduce_xor_p.bind(operand, axes=normal_axes(operand, axes))


def argmax(operand: Any, axis: int, index_dtype: Any) -> Any:
    """The place of the first largest element along ``axis``."""
    operand = operand_of(operand)
    axes = normal_axes(operand, (operator.index(axis),))
    return argmax_p.bind(operand, axes=axes, index_dtype=dtypes.canonicalize(index_dtype))


def argmin(operand: Any, axis: int, index_dtype: Any) -> Any:
    """The place of the first smallest element along ``axis``."""
    operand = operand_of(operand)
    axes = normal_axes(operand, (operator.index(axis),))
    return argmin_p.bind(operand, axes=axes, index_dtype=dtypes.canonicalize(index_dtype))
