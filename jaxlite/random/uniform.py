"""Uniform draws: bits, floats in an interval, integers in a range, coin tosses."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np

from jaxlite import lax
from jaxlite.core import dtypes
from jaxlite.core.avals import aval_of
from jaxlite.lax.convert import operand_of
from jaxlite.lax.elementwise.casts import convert
from jaxlite.lax.placed import placed
from jaxlite.numpy.dtype_functions import finfo
from jaxlite.numpy.promotion import array_operand, check_arraylike, expand_to, result_shape, user_dtype
from jaxlite.random.keys import pair_of, two_keys, words_of
from jaxlite.random.threefry import random_bits
from jaxlite.transforms.jit import jit


def shape_of(shape: Any) -> tuple[int, ...]:
    """``shape`` as lengths."""
    if isinstance(shape, (int, np.integer)):
        return (int(shape),)
    try:
        return tuple([operator.index(n) for n in shape])
    except TypeError:
        raise TypeError(f"Shapes must be 1D sequences of concrete values of integer type, got {shape!r}.") from None


def float_dtype(name: str, dtype: Any) -> Any:
    """The float dtype asked for (None: the default); ``ValueError`` for another kind."""
    wanted = dtypes.canonicalize(np.float64) if dtype is None else user_dtype(dtype)
    if not dtypes.is_float(wanted):
        raise ValueError(f"dtype argument to `{name}` must be a float dtype, got {wanted.name}")
    return wanted


def check_shape(name: str, shape: tuple[int, ...], *parameters: tuple[int, ...]) -> None:
    """``ValueError`` where the shapes of parameters do not broadcast to ``shape``."""
    try:
        common = result_shape(name, [shape, *parameters])
    except TypeError as error:
        raise ValueError(str(error)) from None
    if common != shape:
        raise ValueError(
            f"{name} parameter shapes must be broadcast-compatible with shape argument, and the result of "
            "broadcasting the "
            f"shapes must equal the shape argument, but got result {common} for shape argument {shape}."
        )


@placed
def bits(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Random bits as unsigned integers."""
    words = words_of("bits", key)
    wanted = dtypes.canonicalize(np.uint64) if dtype is None else user_dtype(dtype)
    if wanted.kind != "u":
        raise ValueError(f"dtype argument to `bits` must be an unsigned int dtype, got {wanted.name}")
    return random_bits(*pair_of(words), wanted.itemsize * 8, shape_of(shape))


@placed
def uniform(
    key: Any, shape: Any = (), dtype: Any = None, minval: Any = 0.0, maxval: Any = 1.0, *, out_sharding: Any = None
) -> Any:
    """Floats spread evenly from ``minval`` to below ``maxval``.

    >>> from jaxlite.random.keys import key
    >>> uniform(key(0))
    Array(0.947667, dtype=float32)
    """
    return uniform_of(words_of("uniform", key), shape_of(shape), float_dtype("uniform", dtype), minval, maxval)


def uniform_of(words: Any, shape: tuple[int, ...], dtype: Any, low: Any = 0.0, high: Any = 1.0) -> Any:
    """``uniform`` of a key's words."""
    low, high = (convert(operand_of(v), dtype) for v in (low, high))
    check_shape("uniform", shape, low.shape, high.shape)
    return _uniform(words, low, high, shape, dtype)


@functools.partial(jit, static_argnums=(3, 4))
def _uniform(words: Any, low: Any, high: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    unit = _unit(words, shape, dtype)
    span = lax.sub(*_aligned(high, low))
    low, span = (expand_to(v, shape) if v.shape else v for v in (low, span))
    return lax.max(low, lax.add(lax.mul(unit, span), low))


def _aligned(a: Any, b: Any) -> tuple[Any, Any]:
    shape = result_shape("uniform", [a.shape, b.shape])
    return expand_to(a, shape) if a.shape else a, expand_to(b, shape) if b.shape else b


def _unit(words: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Floats in [0, 1): random bits as the mantissa of a float in [1, 2), minus 1."""
    info = finfo(dtype)
    width = dtype.itemsize * 8
    drawn = 8 if info.nmant < 8 else width
    unsigned = np.dtype(f"uint{width}")
    mantissa = convert(random_bits(*pair_of(words), drawn, shape), unsigned)
    mantissa = lax.shift_right_logical(mantissa, unsigned.type(drawn - info.nmant))
    one = np.ones((), dtype)
    pattern = lax.bitwise_or(mantissa, one.view(unsigned)[()])
    return lax.sub(lax.bitcast_convert_type(pattern, dtype), dtype.type(1))


def _clipped(value: Any, dtype: Any) -> Any:
    """An integer as ``dtype``, held inside its range."""
    own, wanted = np.iinfo(value.dtype), np.iinfo(dtype)
    low, high = max(own.min, wanted.min), min(own.max, wanted.max)
    return convert(lax.clamp(value.dtype.type(low), value, value.dtype.type(high)), dtype)


@placed
def randint(key: Any, shape: Any, minval: Any, maxval: Any, dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Integers from ``minval`` to below ``maxval``."""
    words = words_of("randint", key)
    wanted = dtypes.canonicalize(np.int64) if dtype is None else user_dtype(dtype)
    if not dtypes.is_integer(wanted):
        raise TypeError(f"randint only accepts integer dtypes, got {wanted.name}")
    check_arraylike("randint", minval, maxval)
    if wanted.itemsize >= 4:
        return _integers(words, shape_of(shape), minval, maxval, wanted)
    # Narrow integers are drawn as 32-bit ones, which come out more evenly.
    i32, limits = np.dtype(np.int32), np.iinfo(wanted)
    low, high = (convert(array_operand("randint", v), i32) for v in (minval, maxval))
    low = lax.clamp(np.int32(limits.min), low, np.int32(limits.max))
    high = lax.clamp(np.int32(limits.min), high, np.int32(int(limits.max) + 1))
    return convert(_integers(words, shape_of(shape), low, high, i32), wanted)


def _integers(words: Any, shape: tuple[int, ...], minval: Any, maxval: Any, dtype: Any) -> Any:
    """Twice as many bits as the dtype has, taken modulo the span: nearly even where the span is no power of 2."""
    low, high = (array_operand("randint", v) for v in (minval, maxval))
    low, high = (v if dtypes.is_integer(v.dtype) else convert(v, dtypes.canonicalize(np.int64)) for v in (low, high))
    check_shape("randint", shape, low.shape, high.shape)
    top = min(np.iinfo(dtype).max, np.iinfo(high.dtype).max)
    beyond = lax.gt(high, high.dtype.type(top))
    low, high = (expand_to(_clipped(v, dtype), shape) for v in (low, high))
    beyond = expand_to(beyond, shape)
    width = dtype.itemsize * 8
    unsigned = np.dtype(f"uint{width}")
    upper, lower = (random_bits(*pair_of(w), width, shape) for w in two_keys(words))
    empty = lax.le(high, low)
    span = convert(lax.sub(high, low), unsigned)
    span = lax.select(empty, lax.full_like(span, 1), span)
    wider = lax.bitwise_and(beyond, lax.bitwise_not(empty))
    span = lax.select(wider, lax.add(span, unsigned.type(1)), span)
    half = lax.rem(lax.full_like(span, 2 ** (width // 2)), span)
    multiplier = lax.rem(lax.mul(half, half), span)
    offset = lax.add(lax.mul(lax.rem(upper, span), multiplier), lax.rem(lower, span))
    return lax.add(low, convert(lax.rem(offset, span), dtype))


@placed
def bernoulli(key: Any, p: Any = 0.5, shape: Any = None, mode: str = "low", *, out_sharding: Any = None) -> Any:
    """True with probability ``p``."""
    words = words_of("bernoulli", key)
    if mode not in ("high", "low"):
        raise ValueError(f"got {mode=}, expected 'high' or 'low'")
    probability = array_operand("bernoulli", p)
    dtype = probability.dtype
    if not dtypes.is_float(dtype):
        raise TypeError(f"bernoulli probability `p` must have a floating dtype, got {dtype.name}.")
    probability = convert(probability, dtype)
    lengths = probability.shape if shape is None else shape_of(shape)
    check_shape("bernoulli", lengths, probability.shape)
    probability = expand_to(probability, lengths)
    if mode == "low":
        return lax.lt(uniform_of(words, lengths, dtype), probability)
    both = uniform_of(words, (2, *lengths), dtype)
    first, second = (lax.index_in_dim(both, i, 0, keepdims=False) for i in (0, 1))
    second = lax.mul(second, dtype.type(2.0 ** -finfo(dtype).nmant))
    return lax.lt(second, lax.sub(probability, first))


@placed
def rademacher(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """-1 or 1, each with probability 1/2."""
    wanted = dtypes.canonicalize(np.int64) if dtype is None else user_dtype(dtype)
    if not (dtypes.is_integer(wanted) or dtypes.is_float(wanted)):
        raise ValueError(f"dtype argument to `rademacher` must be an int or float dtype, got {wanted.name}")
    heads = convert(bernoulli(key, 0.5, shape_of(shape)), wanted)
    return lax.sub(lax.mul(wanted.type(2), heads), wanted.type(1))


def parameter(name: str, value: Any, dtype: Any) -> Any:
    """A parameter of a distribution, as ``dtype``."""
    return convert(array_operand(name, value), dtype)


def lengths_of(name: str, shape: Any, *parameters: Any) -> tuple[int, ...]:
    """The shape asked for, or that of the parameters, which must broadcast to it."""
    shapes = [aval_of(p).shape for p in parameters]
    if shape is None:
        return result_shape(name, shapes)
    lengths = shape_of(shape)
    check_shape(name, lengths, *shapes)
    return lengths
