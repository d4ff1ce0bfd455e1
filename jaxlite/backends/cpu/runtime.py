"""The CPU runtime: eager evaluation and compiled programs, behind the Runtime protocol.

An eager primitive whose NumPy meaning is exact runs in NumPy; every other one runs a compiled program of that one
equation, kept for its types.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from typing import Any, final

import numpy as np

from jaxlite.backends.cpu import flat
from jaxlite.backends.cpu.flat import FlatKernel
from jaxlite.backends.cpu.programs import Program, build, in_memory
from jaxlite.core import config, dtypes
from jaxlite.core.array import Array, numpy_of
from jaxlite.core.avals import ShapedArray, aval_of
from jaxlite.core.jaxpr import ClosedJaxpr, evaluate as run_equations
from jaxlite.core.primitive import Primitive
from jaxlite.core.trace import Tracer
from jaxlite.interpreters import nan_check
from jaxlite.interpreters.eval import refuse_tracers
from jaxlite.interpreters.stage import stage
from jaxlite.lax.families.higher_order import HigherOrder

EAGER_PROGRAMS = 4096  # how many one-equation programs are kept; the oldest goes first


def _by_numpy(
    primitive: Primitive, operands: Sequence[Any], avals: Sequence[ShapedArray], params: dict[str, Any]
) -> list[Array]:
    """The results as the primitive's NumPy meaning gives them."""
    out_avals = primitive.abstract_eval(*avals, **params)
    views = [x.elements if type(x) is Array else numpy_of(x) for x in operands]
    with np.errstate(all="ignore"):  # IEEE results are wanted, not NumPy's warnings
        values = primitive.evaluate(*views, **params)
    return [
        Array(aval, value if type(value) is np.ndarray else np.asarray(value))
        for aval, value in zip(out_avals, values, strict=True)
    ]


@final
class CpuRuntime:
    """Runs primitives and compiles programs for this machine's CPU."""

    def __init__(self) -> None:
        self._eager: dict[Any, Program] = {}
        self._flat: dict[Any, FlatKernel] = {}
        self._inner: weakref.WeakKeyDictionary[ClosedJaxpr, dict[bool, Program]] = weakref.WeakKeyDictionary()
        self._lock = threading.Lock()

    def evaluate(self, primitive: Primitive, operands: Sequence[Any], params: dict[str, Any]) -> Sequence[Any]:
        """The results of one primitive on concrete operands."""
        for operand in operands:
            if isinstance(operand, Tracer):
                refuse_tracers(operands)
        if nan_check.checking():
            return self._evaluate_checked(primitive, operands, params)
        return self._evaluate(primitive, operands, params)

    def _evaluate(self, primitive: Primitive, operands: Sequence[Any], params: dict[str, Any]) -> Sequence[Any]:
        avals = [x.aval if type(x) is Array else aval_of(x) for x in operands]
        if primitive.exact and not any([a.dtype.itemsize == 2 and dtypes.is_narrow_float(a.dtype) for a in avals]):
            return _by_numpy(primitive, operands, avals, params)
        inner = primitive.inlined(**params)
        if inner is not None:
            return self._program_of(inner)([*inner.consts, *operands])
        if primitive.family == "elementwise":
            (out, *_) = primitive.abstract_eval(*avals, **params)
            if flat.fits(primitive, avals, out):
                kernel = self._flat_kernel(primitive, avals, out, params)
                return [kernel([x if type(x) is Array else in_memory(x) for x in operands], out)]
        return self._eager_program(primitive, avals, params)(operands)

    def _evaluate_checked(self, primitive: Primitive, operands: Sequence[Any], params: dict[str, Any]) -> Sequence[Any]:
        """The same while NaN or infinities are looked for: programs inside run equation by equation."""
        inner = primitive.inlined(**params)
        if inner is not None:
            return run_equations(inner.jaxpr, inner.consts, list(operands))
        if isinstance(primitive, HigherOrder):
            avals = [aval_of(x) for x in operands]
            return _by_numpy(primitive, operands, avals, params)
        results = self._evaluate(primitive, operands, params)
        nan_check.check_results(primitive, operands, results)
        return results

    def _flat_kernel(
        self, primitive: Primitive, avals: Sequence[ShapedArray], out: ShapedArray, params: dict[str, Any]
    ) -> FlatKernel:
        """The kernel that serves every shape of these dtypes."""
        operands = tuple([(a.dtype, bool(a.shape)) for a in avals])
        contract = config.contract_fma.value
        key = (primitive, operands, tuple([(k, _hashable(v)) for k, v in params.items()]), contract)
        kernel = self._flat.get(key)
        if kernel is None:
            kernel = FlatKernel(primitive, operands, out.dtype, params, contract)
            self._flat[key] = kernel
        return kernel

    def _program_of(self, closed: ClosedJaxpr) -> Program:
        """The compiled form of a call's jaxpr, kept as long as the jaxpr lives."""
        fma = config.contract_fma.value
        known = self._inner.get(closed, {})
        if fma not in known:
            opened = ClosedJaxpr(
                closed.jaxpr.replace(constvars=(), invars=closed.jaxpr.constvars + closed.jaxpr.invars)
            )
            program = self.compile(opened, "call")
            self._inner.setdefault(closed, {})[fma] = program
            return program
        return known[fma]

    def _eager_program(self, primitive: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any]) -> Program:
        key = (
            primitive,
            tuple(avals),
            tuple([(k, _hashable(v)) for k, v in params.items()]),
            config.contract_fma.value,
        )
        program = self._eager.get(key)
        if program is None:
            results = primitive.multiple_results

            def call(*xs: Any) -> list[Any]:
                out = primitive.bind(*xs, **params)
                return list(out) if results else [out]

            program = self.compile(stage(call, avals), primitive.name)
            with self._lock:
                while len(self._eager) >= EAGER_PROGRAMS:
                    self._eager.pop(next(iter(self._eager)))
                self._eager[key] = program
        return program

    def clear(self) -> None:
        """Forgets compiled programs; those in use live on."""
        with self._lock:
            self._eager.clear()
            self._flat.clear()
            self._inner.clear()

    def compile(self, jaxpr: ClosedJaxpr, name: str) -> Program:
        """Machine code for a whole program."""
        return build(jaxpr, name)


def _hashable(value: Any) -> Any:
    """A parameter as part of a key: a jaxpr by its text, so that the same body traced again is compiled once."""
    if isinstance(value, ClosedJaxpr):
        weak = tuple([a.weak_type for a in (*value.in_avals, *value.out_avals)])
        return (str(value), weak) if not value.consts else value
    return tuple(map(_hashable, value)) if isinstance(value, (list, tuple)) else value
