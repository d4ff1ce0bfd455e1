"""Continuous distributions that are functions of uniform draws: normal, exponential, Gumbel, Laplace and others."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from jaxlite import lax
from jaxlite.core import dtypes
from jaxlite.lax.elementwise.casts import convert
from jaxlite.lax.placed import placed
from jaxlite.numpy import linalg
from jaxlite.numpy.arithmetic import add2, divide2, multiply2, power
from jaxlite.numpy.dtype_functions import finfo
from jaxlite.numpy.promotion import array_operand, expand_to, result_shape, to_float, user_dtype
from jaxlite.numpy.selection import clip, where
from jaxlite.random.keys import two_keys, words_of
from jaxlite.random.uniform import check_shape, float_dtype, lengths_of, parameter, rademacher, shape_of, uniform_of
from jaxlite.transforms.jit import jit

_ONE = np.float32(1)


@placed
def normal(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Standard normal floats.

    >>> from jaxlite.random.keys import key
    >>> normal(key(0)).dtype
    dtype('float32')
    """
    return normal_of(words_of("normal", key), shape_of(shape), float_dtype("normal", dtype))


def normal_of(words: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """``normal`` of a key's words."""
    return _normal(words, shape, dtype)


@functools.partial(jit, static_argnums=(1, 2))
def _normal(words: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """The inverse error function of a uniform draw from (-1, 1)."""
    low = np.nextafter(np.array(-1, dtype), np.array(0, dtype), dtype=dtype)[()]
    drawn = uniform_of(words, shape, dtype, low, dtype.type(1))
    return lax.mul(dtype.type(np.sqrt(2)), lax.erf_inv(drawn))


@placed
def truncated_normal(
    key: Any, lower: Any, upper: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Any:
    """Normal floats between ``lower`` and ``upper``."""
    words, wanted = words_of("truncated_normal", key), float_dtype("truncated_normal", dtype)
    low, high = (parameter("truncated_normal", v, wanted) for v in (lower, upper))
    lengths = lengths_of("truncated_normal", shape, low, high)
    root = wanted.type(np.sqrt(2))
    drawn = uniform_of(words, lengths, wanted, lax.erf(lax.div(low, root)), lax.erf(lax.div(high, root)))
    out = lax.mul(root, lax.erf_inv(drawn))
    infinite = wanted.type(np.inf)
    inside = lax.nextafter(lax.stop_gradient(low), lax.full_like(low, infinite))
    inside_high = lax.nextafter(lax.stop_gradient(high), lax.full_like(high, -infinite))
    return clip(out, inside, inside_high)


@placed
def exponential(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Waiting times of rate 1."""
    drawn = uniform_of(words_of("exponential", key), shape_of(shape), float_dtype("exponential", dtype))
    return lax.neg(lax.log1p(lax.neg(drawn)))


@placed
def gumbel(key: Any, shape: Any = (), dtype: Any = None, mode: str | None = None, *, out_sharding: Any = None) -> Any:
    """Largest of many: -log(-log(uniform)); ``mode="high"`` draws the tail with twice the bits."""
    words, wanted, lengths = words_of("gumbel", key), float_dtype("gumbel", dtype), shape_of(shape)
    if mode not in (None, "low", "high", "highest"):
        raise ValueError(f"Must provide valid mode for gumbel got: {mode}")
    if mode == "highest":
        raise NotImplementedError("gumbel: mode='highest' is not supported; use mode='high'.")
    info = finfo(wanted)
    if mode == "high":
        both = uniform_of(words, (2, *lengths), wanted)
        high, low = (lax.index_in_dim(both, i, 0, keepdims=False) for i in (0, 1))
        least = wanted.type(max(2.0 ** -(2 * info.nmant + 1), float(info.tiny)))
        fine = lax.add(lax.add(high, lax.mul(wanted.type(2.0**-info.nmant), low)), least)
        x = where(lax.ge(high, wanted.type(0.5)), high, fine)
        return lax.neg(lax.log(lax.neg(lax.log1p(lax.neg(x)))))
    drawn = uniform_of(words, lengths, wanted, info.tiny, 1.0)
    return lax.neg(lax.log(lax.neg(lax.log(drawn))))


@placed
def laplace(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Exponential to both sides."""
    wanted = float_dtype("laplace", dtype)
    low = wanted.type(-1.0 + float(finfo(wanted).epsneg))
    drawn = uniform_of(words_of("laplace", key), shape_of(shape), wanted, low, 1.0)
    return lax.mul(lax.sign(drawn), lax.log1p(lax.neg(lax.abs(drawn))))


@placed
def logistic(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Log-odds of a uniform draw."""
    wanted = float_dtype("logistic", dtype)
    drawn = uniform_of(words_of("logistic", key), shape_of(shape), wanted, finfo(wanted).tiny, 1.0)
    return lax.sub(lax.log(drawn), lax.log1p(lax.neg(drawn)))


@placed
def cauchy(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """The tangent of a uniform angle."""
    wanted = float_dtype("cauchy", dtype)
    drawn = uniform_of(words_of("cauchy", key), shape_of(shape), wanted, finfo(wanted).eps, 1.0)
    return lax.tan(lax.mul(wanted.type(np.pi), lax.sub(drawn, wanted.type(0.5))))


@placed
def pareto(key: Any, b: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Power law of exponent ``b``, from 1."""
    wanted = float_dtype("pareto", dtype)
    exponent = parameter("pareto", b, wanted)
    return lax.exp(divide2(exponential(key, lengths_of("pareto", shape, exponent), wanted), exponent))


@placed
def rayleigh(key: Any, scale: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """The length of a plane vector of normals of deviation ``scale``."""
    words, wanted = words_of("rayleigh", key), float_dtype("rayleigh", dtype)
    factor = parameter("rayleigh", scale, wanted)
    lengths = lengths_of("rayleigh", shape, factor)
    root = lax.sqrt(lax.mul(lax.log(uniform_of(words, lengths, wanted)), wanted.type(-2)))
    return lax.mul(expand_to(factor, lengths), root)


@placed
def lognormal(key: Any, sigma: Any = _ONE, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """The exponential of a normal draw of deviation ``sigma``."""
    wanted = float_dtype("lognormal", dtype)
    deviation = parameter("lognormal", sigma, wanted)
    lengths = lengths_of("lognormal", shape, deviation)
    return lax.exp(multiply2(normal(key, lengths, wanted), deviation))


def weibull_min(key: Any, scale: Any, concentration: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Weibull's distribution."""
    words, wanted = words_of("weibull_min", key), float_dtype("weibull_min", dtype)
    drawn = uniform_of(words, shape_of(shape), wanted)
    wait = lax.neg(lax.log1p(lax.neg(drawn)))
    return multiply2(power(wait, divide2(1.0, concentration)), scale)


@placed
def maxwell(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """The length of a vector of three normals."""
    wanted = float_dtype("maxwell", dtype)
    return linalg.norm(normal(key, (*shape_of(shape), 3), wanted), axis=-1)


def double_sided_maxwell(key: Any, loc: Any, scale: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Maxwell's distribution with a random sign."""
    words, wanted = words_of("double_sided_maxwell", key), float_dtype("double_sided_maxwell", dtype)
    common = result_shape("double_sided_maxwell", [np.shape(loc), np.shape(scale)])
    lengths = (*(shape_of(shape) or common), *common)
    size, sign = two_keys(words)
    draws = multiply2(rademacher(sign, lengths, wanted), maxwell(size, lengths, wanted))
    return add2(multiply2(draws, scale), loc)


@placed
def triangular(
    key: Any, left: Any, mode: Any, right: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Any:
    """The triangular distribution from ``left`` to ``right`` with its peak at ``mode``."""
    words, wanted = words_of("triangular", key), float_dtype("triangular", dtype)
    ends = [parameter("triangular", v, wanted) for v in (left, mode, right)]
    lengths = lengths_of("triangular", shape, *ends)
    low, peak, high = (expand_to(v, lengths) for v in ends)
    drawn = uniform_of(words, lengths, wanted)
    rising = low + lax.sqrt(drawn * (high - low) * (peak - low))
    falling = high - lax.sqrt((1 - drawn) * (high - low) * (high - peak))
    return lax.select(lax.lt(drawn, (peak - low) / (high - low)), rising, falling)


@placed
def wald(key: Any, mean: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """The inverse Gaussian distribution."""
    words, wanted = words_of("wald", key), float_dtype("wald", dtype)
    centre = parameter("wald", mean, wanted)
    lengths = lengths_of("wald", shape, centre)
    centre = expand_to(centre, lengths)
    first, second = two_keys(words)
    y, z = lax.square(normal_of(first, lengths, wanted)), uniform_of(second, lengths, wanted)
    squared = lax.square(centre)
    root = lax.sqrt(4 * centre * y + squared * lax.square(y))
    x = centre + squared * y / 2 - centre / 2 * root
    return lax.select(lax.le(z, centre / (centre + x)), x, squared / x)


@placed
def geometric(key: Any, p: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """How many tosses until the first success of probability ``p``."""
    words = words_of("geometric", key)
    wanted = dtypes.canonicalize(np.int64) if dtype is None else user_dtype(dtype)
    if not dtypes.is_integer(wanted):
        raise ValueError(f"dtype argument to `geometric` must be an int dtype, got {wanted.name}")
    probability = array_operand("geometric", p)
    probability = convert(probability, to_float(probability.dtype))
    lengths = lengths_of("geometric", shape, probability)
    check_shape("geometric", lengths, probability.shape)
    drawn = uniform_of(words, lengths, probability.dtype)
    drawn = where(lax.eq(drawn, drawn.dtype.type(0)), drawn.dtype.type(1), drawn)
    rate = expand_to(lax.log1p(lax.neg(probability)), lengths)
    return convert(lax.add(lax.floor(lax.div(lax.log(drawn), rate)), drawn.dtype.type(1)), wanted)
