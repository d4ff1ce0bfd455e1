"""``jax.scipy.special``: special functions of floats; integers become floats first."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from jaxlite import lax
from jaxlite.core.avals import aval_of
from jaxlite.nn.normalization import log_softmax as log_softmax, logsumexp as logsumexp, softmax as softmax
from jaxlite.numpy.arithmetic import _select
from jaxlite.numpy.promotion import broadcast_operands, constant_like, full_shape, promoted_float
from jaxlite.transforms.custom import custom_jvp


def erf(x: Any) -> Any:
    """The error function."""
    return lax.erf(*promoted_float("erf", x))


def erfc(x: Any) -> Any:
    """1 minus the error function, exact in its tail."""
    return lax.erfc(*promoted_float("erfc", x))


def erfinv(x: Any) -> Any:
    """The inverse of the error function."""
    return lax.erf_inv(*promoted_float("erfinv", x))


def expit(x: Any) -> Any:
    """``1 / (1 + exp(-x))``."""
    return lax.logistic(*promoted_float("expit", x))


@custom_jvp
def _logit(x: Any) -> Any:
    return lax.log(lax.div(x, lax.sub(constant_like(x, 1), x)))


@_logit.defjvp
def _logit_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    return _logit(x), lax.div(t, lax.mul(x, lax.sub(constant_like(x, 1), x)))


def logit(x: Any) -> Any:
    """The inverse of ``expit``."""
    return _logit(*promoted_float("logit", x))


def gammaln(x: Any) -> Any:
    """The logarithm of the size of the gamma function."""
    return lax.lgamma(*promoted_float("gammaln", x))


def digamma(x: Any) -> Any:
    """The derivative of ``gammaln``."""
    return lax.digamma(*promoted_float("digamma", x))


def betaln(a: Any, b: Any) -> Any:
    """The logarithm of the size of the beta function."""
    x, y = promoted_float("betaln", a, b)
    return lax.sub(lax.add(lax.lgamma(x), lax.lgamma(y)), lax.lgamma(lax.add(x, y)))


@custom_jvp
def _xlogy(x: Any, y: Any) -> Any:
    return _select(lax.eq(x, constant_like(x, 0)), constant_like(x, 0), lax.mul(x, lax.log(y)))


@_xlogy.defjvp
def _xlogy_jvp(primals: Any, tangents: Any) -> Any:
    (x, y), (tx, ty) = primals, tangents
    out = _xlogy(x, y)
    shape = aval_of(out).shape
    parts = [lax.mul(tx, lax.log(y)), lax.div(lax.mul(ty, x), y)]
    return out, lax.add(*(full_shape(p, shape) for p in parts))


def xlogy(x: Any, y: Any) -> Any:
    """``x * log(y)``, 0 where ``x`` is 0."""
    return _xlogy(*promoted_float("xlogy", x, y))


@custom_jvp
def _xlog1py(x: Any, y: Any) -> Any:
    return _select(lax.eq(x, constant_like(x, 0)), constant_like(x, 0), lax.mul(x, lax.log1p(y)))


@_xlog1py.defjvp
def _xlog1py_jvp(primals: Any, tangents: Any) -> Any:
    (x, y), (tx, ty) = primals, tangents
    out = _xlog1py(x, y)
    shape = aval_of(out).shape
    parts = [lax.mul(tx, lax.log1p(y)), lax.div(lax.mul(ty, x), lax.add(constant_like(y, 1), y))]
    return out, lax.add(*(full_shape(p, shape) for p in parts))


def xlog1py(x: Any, y: Any) -> Any:
    """``x * log1p(y)``, 0 where ``x`` is 0."""
    return _xlog1py(*promoted_float("xlog1py", x, y))


@custom_jvp
def _xlogx(x: Any) -> Any:
    return _xlogy(x, x)


@_xlogx.defjvp
def _xlogx_jvp(primals: Any, tangents: Any) -> Any:
    # One slope rather than the two of xlogy, whose second, x / x, is NaN at 0 and at infinity.
    (x,), (t,) = primals, tangents
    return _xlogx(x), lax.mul(t, lax.add(lax.log(x), constant_like(x, 1)))


def entr(x: Any) -> Any:
    """``-x log(x)``, 0 at 0, -inf below."""
    (value,) = promoted_float("entr", x)
    below = lax.lt(value, constant_like(value, 0))
    return _select(below, constant_like(value, -np.inf), lax.neg(_xlogx(value)))


def rel_entr(p: Any, q: Any) -> Any:
    """``p log(p / q)``, 0 where ``p`` is 0 and ``q`` is not negative, else inf."""
    x, y = broadcast_operands("rel_entr", promoted_float("rel_entr", p, q))
    zero = constant_like(x, 0)
    shape = aval_of(x).shape or aval_of(y).shape
    x, y = full_shape(x, shape), full_shape(y, shape)
    both = lax.bitwise_and(lax.gt(x, zero), lax.gt(y, zero))
    none = lax.bitwise_and(lax.eq(x, zero), lax.ge(y, zero))
    safe_x, safe_y = (_select(both, v, constant_like(v, 1)) for v in (x, y))
    value = lax.mul(safe_x, lax.log(lax.div(safe_x, safe_y)))
    return _select(both, value, _select(none, lax.full_like(x, 0), lax.full_like(x, np.inf)))


def kl_div(p: Any, q: Any) -> Any:
    """``rel_entr(p, q) - p + q``."""
    x, y = promoted_float("kl_div", p, q)
    return lax.add(lax.sub(rel_entr(x, y), x), y)


def ndtr(x: Any) -> Any:
    """The distribution function of the standard normal."""
    (value,) = promoted_float("ndtr", x)
    half, root = constant_like(value, 0.5), constant_like(value, math.sqrt(0.5))
    scaled = lax.mul(value, root)
    # The tail through erfc, the middle through erf: each where it keeps its digits.
    tail = lax.mul(half, lax.erfc(lax.abs(scaled)))
    upper = _select(lax.gt(scaled, constant_like(value, 0)), lax.sub(constant_like(value, 1), tail), tail)
    middle = lax.mul(half, lax.add(constant_like(value, 1), lax.erf(scaled)))
    return _select(lax.lt(lax.abs(scaled), root), middle, upper)
