"""Arithmetic: sums, products, quotients, extrema, absolute values.  Powers are in ``powers.py``."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from jaxlite.core.avals import aval_of
from jaxlite.core.primitive import Sample, get
from jaxlite.interpreters.series import (
    Series,
    convolved,
    quotient,
)
from jaxlite.interpreters.zeros import Zero, is_linear
from jaxlite.lax.convert import full_like, operands_of
from jaxlite.lax.families.elementwise import Elementwise, to_shape

_PAIR = (Sample(((3, 4), (3, 4))), Sample(((5,), ())), Sample(((), ())), Sample(((0, 3), (0, 3))))
_ONE = (Sample(((3, 5),)), Sample(((),)), Sample(((0,),)))


def _identity(tangent: Any) -> Any:
    return tangent


def _shaped_like(cotangent: Any, operand: Any) -> Any:
    return cotangent if is_linear(operand) else None


@final
class Add(Elementwise):
    name, exact, accepts, samples = "add", True, "iuf", _PAIR
    linear_in = ((0, 1),)
    piecewise_linear = True

    def scalar(self, e: Any, x: Any, y: Any) -> Any:
        return e.add(x, y)

    def numpy(self, x: Any, y: Any) -> Any:
        return np.add(x, y)

    def partials(self, out: Any, x: Any, y: Any) -> Any:
        return _identity, _identity

    def pull_back(self, cotangent: Any, x: Any, y: Any) -> list[Any]:
        return [_shaped_like(cotangent, x), _shaped_like(cotangent, y)]


@final
class AddAny(Elementwise):
    """The sum of two tangents or cotangents of one type."""

    name, exact, accepts, samples = "add_any", True, "iuf", (Sample(((3, 4), (3, 4))),)
    linear_in = ((0, 1),)
    piecewise_linear = True

    def scalar(self, e: Any, x: Any, y: Any) -> Any:
        return e.add(x, y)

    def numpy(self, x: Any, y: Any) -> Any:
        return np.add(x, y)

    def partials(self, out: Any, x: Any, y: Any) -> Any:
        return _identity, _identity

    def pull_back(self, cotangent: Any, x: Any, y: Any) -> list[Any]:
        return [_shaped_like(cotangent, x), _shaped_like(cotangent, y)]


@final
class Sub(Elementwise):
    name, exact, accepts, samples = "sub", True, "iuf", _PAIR
    linear_in = ((0, 1),)
    piecewise_linear = True

    def scalar(self, e: Any, x: Any, y: Any) -> Any:
        return e.sub(x, y)

    def numpy(self, x: Any, y: Any) -> Any:
        return np.subtract(x, y)

    def partials(self, out: Any, x: Any, y: Any) -> Any:
        return _identity, neg

    def pull_back(self, cotangent: Any, x: Any, y: Any) -> list[Any]:
        return [_shaped_like(cotangent, x), neg(cotangent) if is_linear(y) else None]


@final
class Neg(Elementwise):
    name, exact, accepts, samples = "neg", True, "iuf", _ONE
    linear_in = ((0,),)
    piecewise_linear = True

    def scalar(self, e: Any, x: Any) -> Any:
        return e.neg(x)

    def numpy(self, x: Any) -> Any:
        return np.negative(x)

    def partials(self, out: Any, x: Any) -> Any:
        return (neg,)

    def pull_back(self, cotangent: Any, x: Any) -> list[Any]:
        return [neg(cotangent)]


@final
class Mul(Elementwise):
    name, exact, accepts, samples = "mul", True, "iuf", _PAIR
    linear_in = ((0,), (1,))
    identities = ("1 * x", "x * 1")

    def scalar(self, e: Any, x: Any, y: Any) -> Any:
        return e.mul(x, y)

    def numpy(self, x: Any, y: Any) -> Any:
        return np.multiply(x, y)

    def partials(self, out: Any, x: Any, y: Any) -> Any:
        return (lambda t: mul(t, y)), (lambda t: mul(x, t))

    def pull_back(self, cotangent: Any, x: Any, y: Any) -> list[Any]:
        if is_linear(x) and is_linear(y):
            raise NotImplementedError("mul of two linear operands is not linear, so it has no transpose.")
        return [mul(cotangent, y), None] if is_linear(x) else [None, mul(x, cotangent)]

    def coefficients(self, out: Any, *xs: Series) -> list[Any]:
        x, y = xs
        return [convolved(x, y, k) for k in range(1, len(x))]


@final
class Div(Elementwise):
    name, accepts, identities = "div", "iuf", ("x / 1",)
    linear_in = ((0,),)
    samples = (Sample(((3, 4), (3, 4)), low=0.5), Sample(((5,), ()), low=1.0), Sample(((), ()), low=0.5))

    def scalar(self, e: Any, x: Any, y: Any) -> Any:
        return e.div(x, y)

    def numpy(self, x: Any, y: Any) -> Any:
        if x.dtype.kind not in "iu":
            return np.divide(x, y)
        safe = np.where(y == 0, np.ones_like(y), y)
        with np.errstate(over="ignore"):
            quotient = np.floor_divide(x, safe)
            inexact = (quotient * safe != x) & ((x < 0) != (safe < 0))
            quotient = np.where(inexact, quotient + 1, quotient)
        return np.where(y == 0, np.array(-1).astype(x.dtype), quotient).astype(x.dtype)

    def partials(self, out: Any, x: Any, y: Any) -> Any:
        return (lambda t: div(t, y)), (lambda t: mul(neg(t), div(out, y)))

    def pull_back(self, cotangent: Any, x: Any, y: Any) -> list[Any]:
        if is_linear(y):
            raise NotImplementedError("div is not linear in its divisor, so it has no transpose there.")
        return [div(cotangent, y), None]

    def coefficients(self, out: Any, *xs: Series) -> list[Any]:
        return quotient(out, *xs)


@final
class Rem(Elementwise):
    name, accepts, samples = "rem", "iuf", (Sample(((3, 4), (3, 4)), low=0.5), Sample(((5,), ()), low=1.0))
    piecewise_linear = True

    def scalar(self, e: Any, x: Any, y: Any) -> Any:
        return e.rem(x, y)

    def numpy(self, x: Any, y: Any) -> Any:
        if x.dtype.kind not in "iu":
            return np.fmod(x, y)
        return np.where(y == 0, x, np.fmod(x, np.where(y == 0, np.ones_like(y), y))).astype(x.dtype)

    def partials(self, out: Any, x: Any, y: Any) -> Any:
        toward_zero = get("select_n").bind

        def quotient(t: Any) -> Any:
            ratio = div(x, y)
            floor, ceil = get("floor").bind(ratio), get("ceil").bind(ratio)
            whole = toward_zero(get("lt").bind(ratio, full_like(ratio, 0)), floor, ceil)
            return mul(neg(t), whole)

        return _identity, quotient


@final
class Max(Elementwise):
    name, accepts, samples = "max", "biuf", _PAIR
    piecewise_linear = True

    def scalar(self, e: Any, x: Any, y: Any) -> Any:
        return e.max(x, y)

    def numpy(self, x: Any, y: Any) -> Any:
        return np.maximum(x, y)

    def partials(self, out: Any, x: Any, y: Any) -> Any:
        return _extremum_partials(out, x, y)


@final
class Min(Elementwise):
    name, accepts, samples = "min", "biuf", _PAIR
    piecewise_linear = True

    def scalar(self, e: Any, x: Any, y: Any) -> Any:
        return e.min(x, y)

    def numpy(self, x: Any, y: Any) -> Any:
        return np.minimum(x, y)

    def partials(self, out: Any, x: Any, y: Any) -> Any:
        return _extremum_partials(out, x, y)


def _extremum_partials(out: Any, x: Any, y: Any) -> Any:
    """The operand that won takes the tangent; where both did, each takes half."""
    select, eq = get("select_n").bind, get("eq").bind
    shape = aval_of(out).shape

    def share(mine: Any, other: Any) -> Any:
        mine, other = to_shape(mine, shape), to_shape(other, shape)
        one, half, zero = full_like(out, 1), full_like(out, 0.5), full_like(out, 0)
        weight = select(eq(mine, out), zero, select(eq(other, out), one, half))
        return lambda t: mul(to_shape(t, shape), weight)

    return share(x, y), share(y, x)


@final
class Abs(Elementwise):
    name, exact, accepts, samples = "abs", True, "iuf", _ONE
    piecewise_linear = True

    def scalar(self, e: Any, x: Any) -> Any:
        return e.abs(x)

    def numpy(self, x: Any) -> Any:
        return np.abs(x)

    def partials(self, out: Any, x: Any) -> Any:
        def along_x(t: Any) -> Any:
            # 1 at 0, as in JAX: the slope on the right.
            upward = get("ge").bind(x, full_like(x, 0))
            one = to_shape(full_like(x, 1), aval_of(x).shape)
            return mul(t, get("select_n").bind(upward, neg(one), one))

        return (along_x,)


@final
class Sign(Elementwise):
    """-1, 0 or 1; keeps the sign of a zero and NaN."""

    name, accepts, samples = "sign", "iuf", _ONE

    def scalar(self, e: Any, x: Any) -> Any:
        return e.sign(x)

    def numpy(self, x: Any) -> Any:
        return np.where(x == 0, x, np.sign(x)).astype(x.dtype) if x.dtype.kind != "u" else np.sign(x)

    partials = None  # type: ignore[assignment]


add_p, add_any_p, sub_p, neg_p, mul_p, div_p, rem_p = Add(), AddAny(), Sub(), Neg(), Mul(), Div(), Rem()
max_p, min_p, abs_p, sign_p = Max(), Min(), Abs(), Sign()


def add(x: Any, y: Any) -> Any:
    """Elementwise ``x + y``; one shape (or scalars) and one dtype."""
    return add_p.bind(*operands_of(x, y))


def sub(x: Any, y: Any) -> Any:
    """Elementwise ``x - y``."""
    return sub_p.bind(*operands_of(x, y))


def neg(x: Any) -> Any:
    """Elementwise ``-x``; a symbolic zero stays one."""
    return x if type(x) is Zero else neg_p.bind(*operands_of(x))


def mul(x: Any, y: Any) -> Any:
    """Elementwise ``x * y``."""
    return mul_p.bind(*operands_of(x, y))


def div(x: Any, y: Any) -> Any:
    """Elementwise ``x / y``; integers truncate toward zero, and give -1 where ``y`` is 0."""
    return div_p.bind(*operands_of(x, y))


def rem(x: Any, y: Any) -> Any:
    """Elementwise remainder with the sign of ``x``; ``x`` where an integer ``y`` is 0."""
    return rem_p.bind(*operands_of(x, y))


def max(x: Any, y: Any) -> Any:
    """Elementwise larger of two; NaN where either is."""
    return max_p.bind(*operands_of(x, y))


def min(x: Any, y: Any) -> Any:
    """Elementwise smaller of two; NaN where either is."""
    return min_p.bind(*operands_of(x, y))


def abs(x: Any) -> Any:
    """Elementwise absolute value."""
    return abs_p.bind(*operands_of(x))


def sign(x: Any) -> Any:
    """Elementwise sign: -1, 0 or 1, NaN for NaN."""
    return sign_p.bind(*operands_of(x))
