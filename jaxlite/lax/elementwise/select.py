"""Choosing between values: ``select_n``, ``clamp``; and ``copy`` and ``stop_gradient``, which choose their operand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import numpy as np

from jaxlite.core import dtypes
from jaxlite.core.avals import ShapedArray, aval_of
from jaxlite.core.primitive import Sample
from jaxlite.core.pytree import tree_map
from jaxlite.interpreters.series import Series
from jaxlite.interpreters.zeros import Zero, is_linear
from jaxlite.lax.convert import full_like, operands_of
from jaxlite.lax.elementwise.arithmetic import max, mul
from jaxlite.lax.elementwise.comparison import gt, lt
from jaxlite.lax.families.elementwise import Elementwise, check_same_dtypes, common_shape, to_shape


@final
class SelectN(Elementwise):
    """Operand ``which`` of ``cases``, per element; ``which`` is bool (two cases) or int32."""

    name, exact, accepts, same_dtypes = "select_n", True, "biufK", False
    samples = (
        Sample(((3, 4), (3, 4), (3, 4)), dtypes=("bool", "float32", "float32")),
        Sample(((), (4,), (4,)), dtypes=("bool", "int32", "int32")),
        Sample(((5,), (5,), (5,), (5,)), dtypes=("int32", "float32", "float32", "float32"), low=0, high=2),
    )

    def abstract_eval(self, *avals: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        which, *cases = avals
        if not cases:
            raise TypeError("select_n takes at least one case.")
        if which.dtype.kind != "b" and which.dtype != np.dtype(np.int32):
            raise TypeError(f"select_n must have which.dtype bool or int32, got {which.dtype.name}.")
        if which.dtype.kind == "b" and len(cases) > 2:
            raise TypeError(f"select_n with bool which takes at most two cases, got {len(cases)}.")
        check_same_dtypes(self, cases)
        shape = common_shape("select_n", cases) or which.shape
        if which.shape and which.shape != shape:
            raise TypeError(
                f"select_n: which has shape {which.shape}, the cases have {shape}; give which no axes, or theirs."
            )
        return (ShapedArray(shape, cases[0].dtype, all(c.weak_type for c in cases)),)

    def result_dtype(self, *operands: Any, **params: Any) -> Any:
        return operands[1]

    def scalar(self, e: Any, which: Any, *cases: Any) -> Any:
        if len(cases) == 1:
            return cases[0]
        if which.dtype.kind == "b":
            return e.select(which, cases[1], cases[0])
        chosen = cases[-1]
        for number in range(len(cases) - 2, -1, -1):
            chosen = e.select(e.le(which, number), cases[number], chosen)
        return chosen

    def numpy(self, which: Any, *cases: Any) -> Any:
        if len(cases) == 1:
            return cases[0]
        if which.dtype.kind == "b":
            return np.where(which, cases[1], cases[0])
        return np.choose(np.clip(which, 0, len(cases) - 1), cases)

    def partials(self, out: Any, *operands: Any) -> Any:
        return (None, *([lambda t: t] * (len(operands) - 1)))

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        out = self.bind(*primals)
        aval = aval_of(out)
        if not dtypes.is_float(aval.dtype) or all(type(t) is Zero for t in tangents[1:]):
            return [out], [Zero(aval.to_tangent_aval())]
        cases = [full_like(out, 0) if type(t) is Zero else t for t in tangents[1:]]
        which = primals[0]
        moved = self.bind(which, *_ranked(cases, aval.shape))
        return [out], [to_shape(moved, aval.shape)]

    def pull_back(self, cotangent: Any, *operands: Any) -> list[Any]:
        which, *cases = operands
        zero = full_like(cotangent, 0)
        shape = aval_of(cotangent).shape

        def share(number: int) -> Any:
            parts = [cotangent if n == number else zero for n in range(len(cases))]
            return to_shape(self.bind(which, *_ranked(parts, shape)), shape)

        return [None, *(share(n) if is_linear(c) else None for n, c in enumerate(cases))]

    def coefficients(self, out: Any, *xs: Series) -> list[Any]:
        which, *cases = xs
        shape, zero = aval_of(out).shape, full_like(out, 0)

        def chosen(terms: Sequence[Any]) -> Any:
            if all(t is None for t in terms):
                return None
            return self.bind(which[0], *_ranked([zero if t is None else t for t in terms], shape))

        return [chosen(terms) for terms in zip(*(c[1:] for c in cases), strict=True)]


def _ranked(cases: Sequence[Any], shape: tuple[int, ...]) -> list[Any]:
    return [to_shape(c, shape) for c in cases] if all(not aval_of(c).shape for c in cases) else list(cases)


@final
class Clamp(Elementwise):
    """``x`` held between ``low`` and ``high``."""

    name, accepts = "clamp", "iuf"
    samples = (Sample(((), (4, 3), ()), low=-1, high=1), Sample(((4,), (4,), (4,))))
    piecewise_linear = True

    def scalar(self, e: Any, low: Any, x: Any, high: Any) -> Any:
        return e.min(e.max(x, low), high)

    def numpy(self, low: Any, x: Any, high: Any) -> Any:
        return np.minimum(np.maximum(x, low), high)

    def partials(self, out: Any, low: Any, x: Any, high: Any) -> Any:
        shape = aval_of(out).shape
        one, zero = to_shape(full_like(out, 1), shape), full_like(out, 0)
        select = select_n_p.bind
        # As written for low > high too, where the result is high.
        above_low, below_high = lt(low, x), gt(high, x)

        def inside(t: Any) -> Any:
            return mul(t, mul(select(above_low, zero, one), select(below_high, zero, one)))

        def at_low(t: Any) -> Any:
            return mul(t, mul(select(gt(low, x), zero, one), select(lt(low, high), zero, one)))

        def at_high(t: Any) -> Any:
            return mul(t, select(lt(high, max(x, low)), zero, one))

        return at_low, inside, at_high


class _Same(Elementwise):
    """Base of primitives that give their operand back."""

    accepts = "biufK"
    exact = True
    samples = (Sample(((3, 4),)),)
    piecewise_linear = True

    def scalar(self, e: Any, *xs: Any, **params: Any) -> Any:
        return xs[0]

    def numpy(self, *xs: Any, **params: Any) -> Any:
        return np.copy(xs[0])


@final
class Copy(_Same):
    name, identities = "copy", ("same",)

    def partials(self, out: Any, *xs: Any, **params: Any) -> Any:
        return (lambda t: t,)

    def pull_back(self, cotangent: Any, *operands: Any, **params: Any) -> list[Any]:
        return [cotangent]


@final
class StopGradient(_Same):
    """Its operand, whose tangent is taken to be zero."""

    name, identities = "stop_gradient", ("same",)
    partials = None  # type: ignore[assignment]


select_n_p, clamp_p, copy_p, stop_gradient_p = SelectN(), Clamp(), Copy(), StopGradient()


def select_n(which: Any, *cases: Any) -> Any:
    """Per element, case number ``which`` (False 0, True 1).

    >>> import jaxlite.numpy as jnp
    >>> select_n(jnp.array([True, False]), jnp.array([1, 2]), jnp.array([3, 4]))
    Array([3, 2], dtype=int32)
    """
    which, *values = operands_of(which, *cases)
    shape = aval_of(which).shape
    if shape and values and not aval_of(values[0]).shape:
        raise TypeError(f"select_n: which has shape {shape}, the cases have (); give which no axes, or theirs.")
    return select_n_p.bind(which, *values)


def select(pred: Any, on_true: Any, on_false: Any) -> Any:
    """Per element, ``on_true`` where ``pred`` holds, else ``on_false``."""
    return select_n(pred, on_false, on_true)


def clamp(min: Any, x: Any, max: Any) -> Any:
    """Elementwise ``x`` held between ``min`` and ``max`` (each of the shape of ``x``, or a scalar)."""
    shape = aval_of(x).shape
    low, value, high = operands_of(min, x, max)
    for name, bound in (("min", low), ("max", high)):
        if aval_of(bound).shape not in ((), shape):
            raise TypeError(
                f"clamp: {name} has shape {aval_of(bound).shape}; it must be a scalar or have the shape {shape} of x."
            )
    return clamp_p.bind(low, value, high)


def stop_gradient(x: Any) -> Any:
    """``x`` (a pytree), taken as constant by differentiation."""

    def stop(leaf: Any) -> Any:
        return stop_gradient_p.bind(*operands_of(leaf)) if dtypes.is_inexact(aval_of(leaf).dtype) else leaf

    return tree_map(stop, x)
