"""Activation functions, with JAX's derivatives (that of ``relu`` is 0 at 0)."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from jaxlite import lax
from jaxlite.core import dtypes
from jaxlite.core.avals import aval_of
from jaxlite.lax.elementwise.casts import convert
from jaxlite.lax.placed import placed
from jaxlite.numpy.arithmetic import absolute, add2, divide2, maximum2, minimum2, multiply2, negative2, square
from jaxlite.numpy.creation import asarray
from jaxlite.numpy.float_functions import expm1, logaddexp_, sqrt, tanh as tanh
from jaxlite.numpy.joining import split
from jaxlite.numpy.promotion import array_operand, axis_of, constant_like, promoted_float, user_dtype
from jaxlite.numpy.selection import clip, where
from jaxlite.transforms.custom import custom_jvp


def identity(x: Any) -> Any:
    """``x`` itself."""
    return array_operand("identity", x)


@custom_jvp
def _relu(x: Any) -> Any:
    return lax.max(x, constant_like(x, 0))


@_relu.defjvp
def _relu_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    return _relu(x), _where_positive(lax.gt(x, constant_like(x, 0)), t)


def _where_positive(mask: Any, t: Any) -> Any:
    return lax.select(mask, t, lax.full_like(t, 0))


def relu(x: Any) -> Any:
    """``max(x, 0)``.

    >>> import jaxlite.numpy as jnp
    >>> relu(jnp.array([-1.0, 2.0]))
    Array([0., 2.], dtype=float32)
    """
    return _relu(array_operand("relu", x))


@custom_jvp
def _relu6(x: Any) -> Any:
    return lax.min(lax.max(x, constant_like(x, 0)), constant_like(x, 6))


@_relu6.defjvp
def _relu6_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    inside = lax.bitwise_and(lax.gt(x, constant_like(x, 0)), lax.lt(x, constant_like(x, 6)))
    return _relu6(x), _where_positive(inside, t)


def relu6(x: Any) -> Any:
    """``x`` held between 0 and 6."""
    return _relu6(*promoted_float("relu6", x))


def squareplus(x: Any, b: Any = 4) -> Any:
    """``(x + sqrt(x * x + b)) / 2``: smooth, without exponentials."""
    value, width = array_operand("squareplus", x), array_operand("squareplus", b)
    return divide2(add2(value, sqrt(add2(square(value), width))), 2)


def softplus(x: Any) -> Any:
    """``log(1 + exp(x))``."""
    return logaddexp_(x, 0)


def sparse_plus(x: Any) -> Any:
    """0 below -1, ``x`` above 1, a parabola between."""
    value = array_operand("sparse_plus", x)
    curve = divide2(square(add2(value, 1.0)), 4)
    return where(value <= -1.0, 0.0, where(value >= 1.0, value, curve))


def sparse_sigmoid(x: Any) -> Any:
    """The derivative of ``sparse_plus``: linear from 0 to 1 between -1 and 1."""
    return multiply2(0.5, clip(add2(array_operand("sparse_sigmoid", x), 1.0), 0.0, 2.0))


def soft_sign(x: Any) -> Any:
    """``x / (|x| + 1)``."""
    value = array_operand("soft_sign", x)
    return divide2(value, add2(absolute(value), 1))


def sigmoid(x: Any) -> Any:
    """``1 / (1 + exp(-x))``."""
    return lax.logistic(array_operand("sigmoid", x))


def silu(x: Any) -> Any:
    """``x * sigmoid(x)``."""
    value = array_operand("silu", x)
    return multiply2(value, sigmoid(value))


swish = silu


def mish(x: Any) -> Any:
    """``x * tanh(softplus(x))``."""
    value = array_operand("mish", x)
    return multiply2(value, tanh(softplus(value)))


def log_sigmoid(x: Any) -> Any:
    """``log(sigmoid(x))``."""
    return negative2(softplus(negative2(x)))


def elu(x: Any, alpha: Any = 1.0) -> Any:
    """``x`` above 0, ``alpha * (exp(x) - 1)`` below."""
    value = array_operand("elu", x)
    positive = value > 0
    return where(positive, value, multiply2(alpha, expm1(where(positive, 0.0, value))))


def celu(x: Any, alpha: Any = 1.0) -> Any:
    """``x`` above 0, ``alpha * (exp(x / alpha) - 1)`` below."""
    return add2(maximum2(x, 0.0), multiply2(alpha, expm1(divide2(minimum2(x, 0.0), alpha))))


def selu(x: Any) -> Any:
    """``elu`` scaled so that layers keep mean 0 and variance 1."""
    return multiply2(1.0507009873554804934193349852946, elu(x, 1.6732632423543772848170429916717))


def leaky_relu(x: Any, negative_slope: Any = 0.01) -> Any:
    """``x`` above 0, ``negative_slope * x`` below."""
    value = array_operand("leaky_relu", x)
    return where(value >= 0, value, multiply2(negative_slope, value))


def hard_tanh(x: Any) -> Any:
    """``x`` held between -1 and 1."""
    value = array_operand("hard_tanh", x)
    return where(value > 1, 1, where(value < -1, -1, value))


def hard_sigmoid(x: Any) -> Any:
    """``relu6(x + 3) / 6``."""
    return divide2(relu6(add2(x, 3.0)), 6.0)


def hard_silu(x: Any) -> Any:
    """``x * hard_sigmoid(x)``."""
    value = array_operand("hard_silu", x)
    return multiply2(value, hard_sigmoid(value))


hard_swish = hard_silu


def gelu(x: Any, approximate: bool = True) -> Any:
    """``x`` times the normal distribution function of ``x``, through ``tanh`` where ``approximate``."""
    (value,) = promoted_float("gelu", x)
    value = array_operand("gelu", value)
    if approximate:
        root = constant_like(value, np.sqrt(2 / np.pi))
        inner = lax.add(value, lax.mul(constant_like(value, 0.044715), lax.integer_pow(value, 3)))
        bell = lax.mul(constant_like(value, 0.5), lax.add(constant_like(value, 1), lax.tanh(lax.mul(root, inner))))
        return convert(lax.mul(value, bell), value.dtype)  # of a Python number too: not weak, as in JAX
    tail = lax.erfc(lax.mul(lax.neg(value), constant_like(value, np.sqrt(0.5))))
    return convert(lax.mul(lax.mul(constant_like(value, 0.5), value), tail), value.dtype)


def glu(x: Any, axis: int = -1) -> Any:
    """The first half of ``axis`` times the ``sigmoid`` of the second."""
    value = array_operand("glu", x)
    number = axis_of(axis, len(value.shape))
    if value.shape[number] % 2:
        raise AssertionError(f"glu: axis size must be divisible by 2, got shape {value.shape} and axis {axis}")
    first, second = split(value, 2, number)
    return multiply2(first, sigmoid(second))


@custom_jvp
def _log1mexp(x: Any) -> Any:
    small = lax.lt(x, constant_like(x, np.log(2.0)))
    near = lax.log(lax.neg(lax.expm1(lax.neg(x))))
    return lax.select(small, near, lax.log1p(lax.neg(lax.exp(lax.neg(x)))))


@_log1mexp.defjvp
def _log1mexp_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    return _log1mexp(x), lax.div(t, lax.expm1(x))


def log1mexp(x: Any) -> Any:
    """``log(1 - exp(-x))``, exact at both ends."""
    return _log1mexp(array_operand("log1mexp", *promoted_float("log1mexp", x)))


@placed
def one_hot(x: Any, num_classes: Any, *, dtype: Any = None, axis: Any = -1, out_sharding: Any = None) -> Any:
    """1 at the place along a new axis that ``x`` names, 0 elsewhere (everywhere, where there is no such place).

    >>> import jaxlite.numpy as jnp
    >>> one_hot(jnp.array([1]), 3)
    Array([[0., 1., 0.]], dtype=float32)
    """
    value = asarray(x)
    classes = operator.index(num_classes)
    wanted = dtypes.canonicalize(np.float64) if dtype is None else user_dtype(dtype)
    if isinstance(axis, str):
        if lax.axis_size(axis) != classes:
            raise ValueError(
                f"Expected num_classes to match the size of axis {axis}, but {classes} != {lax.axis_size(axis)}"
            )
        return convert(value == lax.axis_index(axis), wanted)
    rank = len(value.shape) + 1
    place = axis_of(axis, rank)
    shape = (*value.shape[:place], classes, *value.shape[place:])
    spread = lax.broadcast_in_dim(value, shape, [d for d in range(rank) if d != place])
    return convert(lax.eq(spread, lax.broadcasted_iota(aval_of(value).dtype, shape, place)), wanted)
