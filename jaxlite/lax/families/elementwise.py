"""The elementwise family: results at an index depend on the operands at that index.

A member writes its scalar formula once (``scalar``, against an emitter), its NumPy meaning (``numpy``) and its
partial derivatives (``partials``).  Operands have one shape; those without axes stand for a constant of that shape.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from jaxlite.core import dtypes
from jaxlite.core.avals import ShapedArray, aval_of
from jaxlite.core.context import context
from jaxlite.core.factors import Factors, pointwise
from jaxlite.core.primitive import AxisData, Primitive, get
from jaxlite.interpreters.batch import move_axis
from jaxlite.interpreters.jet import JetTracer, along, known
from jaxlite.interpreters.zeros import Zero, add, has_tangent, is_linear, zero_of

Partial = Callable[[Any], Any]
_KINDS = {"b": "bool", "i": "signed integer", "u": "unsigned integer", "f": "floating", "K": "random key"}


def kind_letter(dtype: Any) -> str:
    """The letter that ``accepts`` uses for ``dtype``."""
    return "f" if dtypes.is_float(dtype) else str(dtype.kind)


def check_accepts(primitive: Primitive, avals: Sequence[ShapedArray]) -> None:
    """``TypeError`` where an operand's dtype is not one that ``primitive`` takes."""
    for aval in avals:
        if kind_letter(aval.dtype) not in primitive.accepts:
            kinds = ", ".join(_KINDS[k] for k in primitive.accepts)
            raise TypeError(
                f"{primitive.name} does not accept dtype {aval.dtype.name}. Accepted dtypes are subtypes of {kinds}."
            )


def check_same_dtypes(primitive: Primitive, avals: Sequence[ShapedArray]) -> None:
    """``TypeError`` where the operands' dtypes differ."""
    if any(a.dtype != avals[0].dtype for a in avals):
        names = ", ".join(a.dtype.name for a in avals)
        raise TypeError(
            f"lax.{primitive.name} requires arguments to have the same dtypes, got {names}. "
            f"(Tip: jnp.{primitive.name} is a similar function that does automatic type promotion on inputs)."
        )


def common_shape(name: str, avals: Sequence[ShapedArray]) -> tuple[int, ...]:
    """The shape of the operands that have axes; ``TypeError`` where they differ."""
    shape: tuple[int, ...] = ()
    for aval in avals:
        if not aval.shape:
            continue
        if shape and aval.shape != shape:
            if len(aval.shape) != len(shape):
                ranks = sorted({len(a.shape) for a in avals if a.shape})
                raise TypeError(f"{name}: arrays must have the same number of dimensions, got {set(ranks)}")
            shapes = ", ".join(str(a.shape) for a in avals)
            raise TypeError(f"{name} got incompatible shapes for broadcasting: {shapes}.")
        shape = aval.shape
    return shape


class Elementwise(Primitive):
    """Base of elementwise primitives.  ``partials`` None means that results carry no tangents."""

    family: ClassVar[str] = "elementwise"
    linear: ClassVar[bool] = False
    same_dtypes: ClassVar[bool] = True

    @abstractmethod
    def scalar(self, e: Any, *xs: Any, **params: Any) -> Any:
        """The result for one element, in terms of the emitter ``e``."""

    @abstractmethod
    def numpy(self, *xs: Any, **params: Any) -> Any:
        """The result as NumPy computes it."""

    @abstractmethod
    def partials(self, out: Any, *xs: Any, **params: Any) -> tuple[Partial | None, ...] | None:
        """For each operand, the function from its tangent to the result's; None where there is none."""

    def result_dtype(self, *operands: Any, **params: Any) -> Any:
        """The dtype of the result: that of the operands unless a member says otherwise."""
        return operands[0]

    def pull_back(self, cotangent: Any, *operands: Any, **params: Any) -> list[Any]:
        """Cotangents of the linear operands, for members that are linear."""
        raise NotImplementedError(
            f"{self.name} is not linear in {[i for i, o in enumerate(operands) if is_linear(o)]}, "
            "so it has no transpose."
        )

    def coefficients(self, out: Any, *xs: Any, **params: Any) -> list[Any] | None:
        """The Taylor coefficients of the result after ``out`` from those of the operands (``interpreters.series``),
        where a member has a recurrence; None: from ``partials``."""
        return None

    # -- the contract -------------------------------------------------------------------------

    def abstract_eval(self, *avals: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        check_accepts(self, avals)
        if self.same_dtypes:
            check_same_dtypes(self, avals)
        shape = common_shape(self.name, avals)
        dtype = self.result_dtype(*(a.dtype for a in avals), **params)
        return (ShapedArray(shape, dtype, all([a.weak_type for a in avals])),)

    def factors(self, avals: Sequence[ShapedArray], results: Sequence[ShapedArray], **params: Any) -> Factors | None:
        return pointwise(avals, results)

    def evaluate(self, *arrays: np.ndarray[Any, Any], **params: Any) -> tuple[np.ndarray[Any, Any], ...]:
        dtype = dtypes.physical(self.result_dtype(*(a.dtype for a in arrays), **params))
        result = np.asarray(self.numpy(*arrays, **params))
        shape = common_shape(self.name, [ShapedArray(a.shape, a.dtype) for a in arrays])
        if result.dtype != dtype:
            result = result.astype(dtype)
        return (result if result.shape == shape else np.broadcast_to(result, shape),)

    def element(
        self, e: Any, number: int, index: tuple[Any, ...], read: Any, avals: Sequence[ShapedArray], **params: Any
    ) -> Any:
        """The result at ``index``, where ``read(i, index)`` gives operand ``i``."""
        xs = [read(i, index if a.shape else ()) for i, a in enumerate(avals)]
        return self.scalar(e, *xs, **params)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        out = self.bind(*primals, **params)
        aval = aval_of(out)
        if self.partials is None or not dtypes.is_float(aval.dtype):
            return [out], [zero_of(out)]
        return [out], [_moved(self.partials(out, *primals, **params) or (), tangents, out)]

    def jet(
        self, primals: Sequence[Any], series: Sequence[Sequence[Any]], **params: Any
    ) -> tuple[list[Any], list[list[Any]]] | None:
        out = self.bind(*primals, **params)
        shape = aval_of(out).shape
        if self.partials is None or not has_tangent(aval_of(out)):
            return [out], [[zero_of(out)] * len(series[0])]
        terms = self.coefficients(out, *([p, *map(known, s)] for p, s in zip(primals, series, strict=True)), **params)
        if terms is None and self.piecewise_linear:
            parts = self.partials(out, *primals, **params) or ()
            return [out], [[_moved(parts, tangents, out) for tangents in zip(*series, strict=True)]]
        if terms is None:
            return [out], [self._integrated(out, primals, series, params)]
        return [out], [[zero_of(out) if t is None else to_shape(t, shape) for t in terms]]

    def _integrated(
        self, out: Any, primals: Sequence[Any], series: Sequence[Sequence[Any]], params: dict[str, Any]
    ) -> list[Any]:
        """The coefficients after ``out`` of the integral of what the partials give along the operands' series."""

        def below() -> list[Any]:
            return self._integrated(out, primals, [s[:-1] for s in series], params)

        def rule(points: Sequence[Any], velocities: Sequence[Any]) -> tuple[list[Any], list[Any]]:
            # Partials that read the result need its series, of one order less; most do not.
            value = JetTracer(context.trace, out, below) if len(series[0]) > 1 else out  # type: ignore[arg-type]
            return [out], [_moved(self.partials(value, *points, **params) or (), velocities, out)]

        _, (terms,) = along(rule, primals, series)
        return terms

    def transpose(self, cotangents: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
        pulled = self.pull_back(cotangents[0], *operands, **params)
        return [
            sum_to_scalar(c) if is_linear(o) and c is not None and not o.aval.shape else c
            for o, c in zip(operands, pulled, strict=True)
        ]

    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[int | None], /, **params: Any
    ) -> tuple[list[Any], list[int | None]]:
        aligned = align_batched(operands, dims, axis.size)
        return [self.bind(*aligned, **params)], [0]


def _moved(parts: Sequence[Partial | None], tangents: Sequence[Any], out: Any) -> Any:
    """The tangent of ``out``: the sum of what the partials make of the operands' tangents."""
    total: Any = None
    for part, tangent in zip(parts, tangents, strict=True):
        if part is not None and type(tangent) is not Zero:
            total = add(total, to_shape(part(tangent), aval_of(out).shape))
    return zero_of(out) if total is None else total


def align_batched(operands: Sequence[Any], dims: Sequence[int | None], size: int) -> list[Any]:
    """Operands with batch axes first and equal ranks; those without any axis stay scalars."""
    rank = max(len(aval_of(o).shape) - (d is not None) for o, d in zip(operands, dims, strict=True))
    example = next(
        _drop(aval_of(o).shape, d)
        for o, d in zip(operands, dims, strict=True)
        if len(aval_of(o).shape) - (d is not None) == rank
    )
    aligned = []
    for operand, dim in zip(operands, dims, strict=True):
        shape = aval_of(operand).shape
        if dim is None and not shape:
            aligned.append(operand)
        elif dim is None:
            kept = tuple(range(1, rank + 1))
            aligned.append(_broadcast(operand, (size, *example), kept))
        elif len(shape) - 1 < rank:
            aligned.append(_broadcast(operand, (size, *example), (0,)))
        else:
            aligned.append(move_axis(operand, dim, 0))
    return aligned


def _drop(shape: tuple[int, ...], dim: int | None) -> tuple[int, ...]:
    return shape if dim is None else shape[:dim] + shape[dim + 1 :]


def _broadcast(value: Any, shape: tuple[int, ...], kept: tuple[int, ...]) -> Any:
    return get("broadcast_in_dim").bind(value, shape=shape, broadcast_dimensions=kept, sharding=None)


def to_shape(value: Any, shape: tuple[int, ...]) -> Any:
    """``value`` repeated to ``shape`` where it has no axes."""
    return value if aval_of(value).shape == shape else _broadcast(value, shape, ())


def sum_to_scalar(value: Any) -> Any:
    """The sum over all axes: the cotangent of an operand that stood for a constant array."""
    aval = aval_of(value)
    if type(value) is Zero:
        return Zero(aval.update(shape=()))
    if not aval.shape:
        return value
    return get("reduce_sum").bind(value, axes=tuple(range(len(aval.shape))), out_sharding=None)
