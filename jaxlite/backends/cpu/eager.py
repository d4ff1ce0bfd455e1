"""Eager evaluation: one primitive on concrete operands.

The first evaluation for given types decides how to go about it, once: by NumPy where the primitive's meaning there
is exact, by a flat kernel that serves all shapes, or by a compiled program of the one equation.  Later ones look the
way up by primitive, types and parameters.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, final

import numpy as np

from jaxlite.backends.cpu import flat, limits
from jaxlite.backends.cpu.flat import FlatKernel
from jaxlite.backends.cpu.programs import Program, build
from jaxlite.compiler.fingerprint import NotStorable, fingerprint
from jaxlite.core import config, dtypes
from jaxlite.core.array import Array, numpy_of
from jaxlite.core.avals import ShapedArray, aval_of
from jaxlite.core.bounded import Bounded
from jaxlite.core.context import context
from jaxlite.core.jaxpr import ClosedJaxpr, evaluate as run_equations
from jaxlite.core.primitive import Primitive
from jaxlite.core.propagation import are_sharded, asks_for_sharding, with_shardings
from jaxlite.core.trace import Tracer
from jaxlite.interpreters import nan_check
from jaxlite.interpreters.eval import refuse_tracers
from jaxlite.interpreters.stage import stage
from jaxlite.lax.families.elementwise import Elementwise
from jaxlite.lax.families.higher_order import HigherOrder

Way: TypeAlias = Callable[[Sequence[Any]], list[Array]]

LONG = 1 << 24  # elements from which no operation is left to one call of NumPy
MOST_WAYS = 4096  # how many ways are kept; the oldest goes first


@final
class Eager:
    """Evaluates primitives; keeps how."""

    def __init__(self) -> None:
        self._ways: Bounded[Any, Way] = Bounded(MOST_WAYS)
        self._flat: Bounded[Any, FlatKernel] = Bounded(MOST_WAYS)
        self._inner: weakref.WeakKeyDictionary[ClosedJaxpr, dict[bool, Program]] = weakref.WeakKeyDictionary()

    def evaluate(self, primitive: Primitive, operands: Sequence[Any], params: dict[str, Any]) -> Sequence[Any]:
        """The results of ``primitive``, checked for NaN and infinities if flags say so."""
        avals = [x.aval if type(x) is Array else _aval(x) for x in operands]
        if nan_check.checking():
            return self._evaluate_checked(primitive, operands, avals, params)
        return self._way(primitive, avals, params)(operands)

    def _evaluate_checked(
        self, primitive: Primitive, operands: Sequence[Any], avals: Sequence[ShapedArray], params: dict[str, Any]
    ) -> Sequence[Any]:
        """Programs inside run equation by equation."""
        inner = primitive.inlined(**params)
        if inner is not None:
            return run_equations(inner.jaxpr, inner.consts, list(operands))
        if isinstance(primitive, HigherOrder):
            return _by_numpy(primitive, avals, params)(operands)
        results = self._way(primitive, avals, params)(operands)
        nan_check.check_results(primitive, operands, results)
        return results

    def _way(self, primitive: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any]) -> Way:
        key: Any = (primitive, config.contract_fma.value, context.resolving, *avals)
        if params:
            inner = primitive.inlined(**params)
            if inner is not None:  # kept as long as the jaxpr lives
                return self._way_of_call(inner)
            items = map(_by_value, params.items()) if isinstance(primitive, HigherOrder) else params.items()
            key = (*key, *items)
        way = self._ways.get(key)
        if way is None:
            self._ways[key] = way = self._find(primitive, avals, params)
        return way

    def _sharded(self, primitive: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any]) -> Way:
        """The way without shardings, whose results are then said to lie as they follow from the operands'."""
        results = with_shardings(primitive, avals, primitive.abstract_eval(*avals, **params), params)
        bare = [a.update(sharding=None) for a in avals]
        asked: dict[str, Any] = {
            k: None for k in ("sharding", "out_sharding") if k in params and not primitive.types_sharding
        }
        way = self._find(primitive, bare, {**params, **asked})
        return lambda operands: [x.of_type(a) for x, a in zip(way(operands), results, strict=True)]

    def _find(self, primitive: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any]) -> Way:
        if are_sharded(avals) or (asks_for_sharding(params) and not primitive.types_sharding):
            return self._sharded(primitive, avals, params)
        way = self._find_any(primitive, avals, params)
        views = primitive.family == "layout" and len(avals) == 1  # of NumPy's: nothing but what is repeated is new
        needed = sum([a.nbytes for a in primitive.abstract_eval(*avals, **params)])
        return _if_it_fits(way, primitive.name, 0 if views and needed <= avals[0].nbytes else needed)

    def _find_any(self, primitive: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any]) -> Way:
        narrow = any([a.dtype.itemsize == 2 and dtypes.is_narrow_float(a.dtype) for a in avals])
        if primitive.exact and not narrow and not _long(primitive, avals, params):
            return _by_numpy(primitive, avals, params)
        if primitive.family == "elementwise":
            (out, *_) = primitive.abstract_eval(*avals, **params)
            if flat.fits(primitive, avals, out):
                return self._flat_kernel(primitive, avals, out, params).for_result(out)
        return self._one_equation(primitive, avals, params)

    def _flat_kernel(
        self, primitive: Primitive, avals: Sequence[ShapedArray], out: ShapedArray, params: dict[str, Any]
    ) -> FlatKernel:
        """The kernel that serves every shape of these dtypes."""
        operands = tuple([(a.dtype, bool(a.shape)) for a in avals])
        contract = config.contract_fma.value
        key = (primitive, operands, tuple(params.items()), contract)
        kernel = self._flat.get(key)
        if kernel is None:
            self._flat[key] = kernel = FlatKernel(primitive, operands, out.dtype, params, contract)
        return kernel

    def _way_of_call(self, closed: ClosedJaxpr) -> Way:
        """The compiled form of a call's jaxpr."""
        contract = config.contract_fma.value
        known = self._inner.get(closed, {})
        if contract not in known:
            opened = ClosedJaxpr(
                closed.jaxpr.replace(constvars=(), invars=closed.jaxpr.constvars + closed.jaxpr.invars)
            )
            known = self._inner.setdefault(closed, {})
            known[contract] = build(opened, "call")
        program, consts = known[contract], closed.consts
        return lambda operands: program([*consts, *operands])

    def _one_equation(self, primitive: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any]) -> Way:
        results = primitive.multiple_results

        def call(*xs: Any) -> list[Any]:
            out = primitive.bind(*xs, **params)
            return list(out) if results else [out]

        return build(stage(call, avals), primitive.name)

    def clear(self) -> None:
        """Forgets compiled programs; those in use live on."""
        self._ways.clear()
        self._flat.clear()
        self._inner.clear()


def _long(primitive: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any]) -> bool:
    """Whether NumPy would take so long that Ctrl-C could not wait for it: a compiled program looks at signals."""
    if primitive.family not in ("elementwise", "indexing"):
        return False  # layout is views where it can be
    return any(a.size >= LONG for a in (*avals, *primitive.abstract_eval(*avals, **params)))


def _if_it_fits(way: Way, name: str, nbytes: int) -> Way:
    """``way``, refused where its results are large and there is no memory for them."""
    if nbytes < limits.CHECKED:
        return way

    def checked(operands: Sequence[Any]) -> list[Array]:
        limits.refuse_too_large([nbytes], name)
        return way(operands)

    return checked


def _aval(operand: Any) -> ShapedArray:
    """The aval of an operand that is no ``Array``; a tracer outlived its transformation."""
    known = _SCALARS.get(type(operand))
    if known is not None:
        return known
    if isinstance(operand, Tracer):
        refuse_tracers([operand])
    return aval_of(operand)


_SCALARS = {
    kind: ShapedArray((), np.dtype(kind))
    for kind in (np.float32, np.int32, np.uint32, np.int8, np.uint8, np.int16, np.uint16, np.bool_)
}  # NumPy scalars whose dtype is kept with x64 off and on


def _by_numpy(primitive: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any]) -> Way:
    """The results as the primitive's NumPy meaning gives them."""
    out_avals = primitive.abstract_eval(*avals, **params)
    if isinstance(primitive, Elementwise):
        return _elementwise_by_numpy(primitive, out_avals[0], params)
    evaluate = primitive.evaluate

    def run(operands: Sequence[Any]) -> list[Array]:
        views = [x.elements if type(x) is Array else numpy_of(x) for x in operands]
        with np.errstate(all="ignore"):  # IEEE results are wanted, not NumPy's warnings
            values = evaluate(*views, **params)
        return [
            Array(aval, value if type(value) is np.ndarray else np.asarray(value))
            for aval, value in zip(out_avals, values, strict=True)
        ]

    return run


def _elementwise_by_numpy(primitive: Elementwise, out: ShapedArray, params: dict[str, Any]) -> Way:
    """The same without the checks that the types have passed."""
    numpy, dtype, shape = primitive.numpy, dtypes.physical(out.dtype), out.shape

    def run(operands: Sequence[Any]) -> list[Array]:
        views = [x.elements if type(x) is Array else numpy_of(x) for x in operands]
        with np.errstate(all="ignore"):
            value = numpy(*views, **params)
        if type(value) is not np.ndarray or value.dtype is not dtype:
            value = np.asarray(value, dtype)
        return [Array(out, value if value.shape == shape else np.broadcast_to(value, shape))]

    return run


def _by_value(value: Any) -> Any:
    """A parameter as part of a key: a jaxpr by its fingerprint, so that the same body traced again is compiled once."""
    if isinstance(value, ClosedJaxpr):
        try:
            return fingerprint(value)
        except NotStorable:
            return value
    return tuple(map(_by_value, value)) if isinstance(value, (list, tuple)) else value
