"""Draws from given values: permutations, choices with and without replacement, categories."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from jaxlite import lax
from jaxlite.core import dtypes
from jaxlite.core.avals import aval_of
from jaxlite.core.errors import ConcretizationTypeError
from jaxlite.core.trace import Tracer, concretization_message
from jaxlite.lax.elementwise.casts import convert
from jaxlite.lax.placed import placed
from jaxlite.numpy.arithmetic import add2, multiply2, subtract2
from jaxlite.numpy.cumulative import cumsum
from jaxlite.numpy.picking import take
from jaxlite.numpy.promotion import array_operand, axis_of, check_arraylike, to_float
from jaxlite.numpy.reductions import argmax
from jaxlite.numpy.shaping import moveaxis
from jaxlite.numpy.sorting import searchsorted, top_k
from jaxlite.random.distributions import gumbel
from jaxlite.random.keys import pair_of, two_keys, words_of
from jaxlite.random.threefry import random_bits
from jaxlite.random.uniform import check_shape, randint, shape_of, uniform

_HIGHEST = 2**32 - 1


def _static_count(name: str, value: Any) -> int:
    if isinstance(value, Tracer) and value.concrete() is None:
        instead = "The number of values sets a shape: mark it static (static_argnums), or pass the array itself."
        raise ConcretizationTypeError(concretization_message(value, f"an argument of jax.random.{name}", instead))
    return int(value)


def shuffled(words: Any, x: Any, axis: int) -> Any:
    """``x`` sorted by random keys, so often that equal keys do not matter."""
    size = aval_of(x).size
    rounds = int(np.ceil(3 * np.log(max(1, size)) / np.log(_HIGHEST)))
    for _ in range(rounds):
        words, drawn = two_keys(words)
        _, x = lax.sort((random_bits(*pair_of(drawn), 32, x.shape), x), axis, True, 1)
    return x


@placed
def permutation(key: Any, x: Any, axis: int = 0, independent: bool = False, *, out_sharding: Any = None) -> Any:
    """``x`` (or the numbers below it) in random order along ``axis``; each line its own order where ``independent``.

    >>> from jaxlite.random.keys import key
    >>> permutation(key(0), 5)
    Array([0, 1, 4, 3, 2], dtype=int32)
    """
    words = words_of("permutation", key)
    check_arraylike("permutation", x)
    value = array_operand("permutation", x)
    axis = axis_of(axis, len(value.shape) or 1)
    if not value.shape:
        if not dtypes.is_integer(value.dtype):
            raise TypeError("x must be an integer or at least 1-dimensional")
        count = _static_count("permutation", x)
        return shuffled(words, lax.iota(dtypes.canonicalize(np.int64), max(count, 0)), axis)
    if independent or len(value.shape) == 1:
        return shuffled(words, value, axis)
    order = shuffled(words, lax.iota(dtypes.canonicalize(np.int64), value.shape[axis]), 0)
    return take(value, order, axis, unique_indices=True, mode="promise_in_bounds")


def choice(
    key: Any, a: Any, shape: Any = (), replace: bool = True, p: Any = None, axis: int = 0, mode: str | None = None
) -> Any:
    """Draws from ``a`` (or the numbers below it), with probabilities ``p``, each at most once unless ``replace``."""
    words_of("choice", key, uses_up=False)
    if not isinstance(shape, (tuple, list)):
        raise TypeError(f"shape argument of jax.random.choice must be a sequence, got {shape}")
    lengths = shape_of(shape)
    values = array_operand("choice", a)
    is_count = not values.shape
    axis = 0 if is_count else axis_of(axis, len(values.shape))
    n = _static_count("choice", a) if is_count else values.shape[axis]
    draws = math.prod(lengths)
    if not draws:
        return lax.full(lengths, values.dtype.type(0))
    if n <= 0:
        raise ValueError("a must be greater than 0 unless no samples are taken")
    if not replace and draws > n:
        raise ValueError(f"Cannot take a larger sample (size {draws}) than population (size {n}) when 'replace=False'")
    if p is None and not replace:
        mixed = permutation(key, n if is_count else values, axis)
        result = lax.slice_in_dim(mixed, 0, draws, 1, axis)
    else:
        places = _places(key, n, lengths, draws, replace, p, mode)
        result = places if is_count else take(values, places, axis)
    full = lengths if is_count else (*values.shape[:axis], *lengths, *values.shape[axis + 1 :])
    return lax.reshape(result, full)


def _places(key: Any, n: int, lengths: tuple[int, ...], draws: int, replace: bool, p: Any, mode: Any) -> Any:
    index_dtype = dtypes.canonicalize(np.int64)
    if p is None:
        return randint(key, lengths, 0, n)
    weights = array_operand("choice", p)
    weights = convert(weights, to_float(weights.dtype))
    if weights.shape != (n,):
        raise ValueError(
            "p must be None or a 1D vector with the same size as a.shape[axis]. "
            f"p has shape {weights.shape} and a.shape[axis] is {n}."
        )
    if not replace:
        scores = add2(gumbel(key, (n,), weights.dtype, mode), lax.log(weights))
        return convert(top_k(scores, draws)[1], index_dtype)
    sums = cumsum(weights)
    total = lax.index_in_dim(sums, n - 1, 0, keepdims=False)
    drawn = multiply2(total, subtract2(1, uniform(key, lengths, weights.dtype)))
    return convert(searchsorted(sums, drawn), index_dtype)


@placed
def categorical(
    key: Any, logits: Any, axis: int = -1, shape: Any = None, replace: bool = True, mode: str | None = None, *,
    out_sharding: Any = None,
) -> Any:  # fmt: skip
    """Positions along ``axis`` drawn with probability proportional to ``exp(logits)``: the largest of Gumbel draws."""
    words_of("categorical", key, uses_up=False)
    scores = array_operand("categorical", logits)
    rank = len(scores.shape)
    axis = axis_of(axis, rank)
    batch = (*scores.shape[:axis], *scores.shape[axis + 1 :])
    lengths = batch if shape is None else shape_of(shape)
    check_shape("categorical", lengths, batch)
    prefix = lengths[: len(lengths) - len(batch)]
    n = scores.shape[axis]
    if replace:
        own = list(lengths[len(lengths) - len(batch) :])
        own.insert(axis, n)
        noise = gumbel(key, (*prefix, *own), scores.dtype, mode)
        return argmax(add2(noise, lax.expand_dims(scores, range(len(prefix)))), axis - rank)
    k = math.prod(prefix)
    if k > n:
        raise ValueError(f"Number of samples without replacement ({k}) cannot exceed number of categories ({n}).")
    noisy = add2(scores, gumbel(key, scores.shape, scores.dtype, mode))
    places = top_k(moveaxis(noisy, axis, -1), k)[1]
    return lax.reshape(moveaxis(places, -1, 0), lengths)
