"""Random keys: making them, taking them apart, splitting them.

A key is two 32-bit words.  Typed keys (``jax.random.key``) have a dtype of their own; raw ones (``PRNGKey``) are uint32
arrays with a last axis of 2, and work everywhere too.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from jaxlite import lax
from jaxlite.core import config, dtypes, key_reuse
from jaxlite.core.array import Array, from_numpy
from jaxlite.core.avals import aval_of
from jaxlite.core.trace import Tracer
from jaxlite.lax.convert import operand_of
from jaxlite.lax.elementwise.casts import convert
from jaxlite.lax.random_bits import random_unwrap_p, random_wrap_p
from jaxlite.random.threefry import hash_words, threefry_2x32

_U32 = np.dtype(np.uint32)
_IMPLEMENTATIONS = ("threefry2x32", "fry")


def _check_impl(impl: Any) -> None:
    name = getattr(impl, "impl", impl)
    if name is None or name in _IMPLEMENTATIONS:
        return
    raise ValueError(f'unrecognized PRNG implementation "{impl}". jaxlite has "threefry2x32".')


def _one_of(name: str, impl: Any, dtype: Any) -> None:
    if impl is not None and dtype is not None:
        raise ValueError(f"Cannot specify both `impl` and `dtype` arguments to jax.random.{name}")
    _check_impl(impl if dtype is None else dtype)


def seed_words(seed: Any) -> Any:
    """The two words of an integer seed: its high and low 32 bits."""
    if isinstance(seed, (int, np.integer)) and not isinstance(seed, (bool, np.bool_)):
        value = int(np.int64(seed)) if isinstance(seed, int) else int(seed)
        wide = config.enable_x64.value
        high = (value >> 32) & 0xFFFFFFFF if wide else 0
        return from_numpy(np.array([high, value & 0xFFFFFFFF], _U32))
    x = operand_of(seed)
    aval = aval_of(x)
    if not dtypes.is_integer(aval.dtype):
        raise TypeError(f"PRNG key seed must be an integer; got {aval}")
    if aval.shape:
        raise TypeError(
            f"PRNG key seed must be a scalar; got an array of shape {aval.shape}.  Use jax.vmap for several keys."
        )
    low = lax.reshape(convert(x, _U32), (1,))
    if aval.dtype.itemsize < 8:
        return lax.concatenate([lax.full((1,), np.uint32(0)), low], 0)
    high = convert(lax.shift_right_logical(x, aval.dtype.type(32)), _U32)
    return lax.concatenate([lax.reshape(high, (1,)), low], 0)


def key(seed: Any, *, impl: Any = None, dtype: Any = None) -> Any:
    """A typed key of an integer seed.

    >>> key(0)
    Array((), dtype=key<fry>) overlaying:
    [0 0]
    """
    _one_of("key", impl, dtype)
    return random_wrap_p.bind(seed_words(seed))


def PRNGKey(seed: Any, *, impl: Any = None) -> Any:
    """A raw key of an integer seed: two uint32 words."""
    _check_impl(impl)
    return seed_words(seed)


def is_typed(value: Any) -> bool:
    """Whether ``value`` is an array of typed keys."""
    return isinstance(value, (Array, Tracer)) and dtypes.is_key(value.dtype)


def words_of(name: str, keys: Any, several: bool = False, uses_up: bool = True) -> Any:
    """The words of a key (or of an array of keys), along a last axis of 2; ``uses_up`` where the key must not be used
    again."""
    if is_typed(keys):
        checked = uses_up and config.debug_key_reuse.value
        if checked:
            key_reuse.use(keys)
        params = {"uses_up": True} if checked else {}
        words = random_unwrap_p.bind(keys, **params)
    elif hasattr(keys, "shape") and hasattr(keys, "dtype") and hasattr(keys, "ndim"):
        if not keys.shape or keys.shape[-1] != 2:
            raise TypeError(
                f"{name}: invalid PRNG key data: expected key_data.shape to end with (2,); got "
                f"shape={keys.shape}.  Make a key with jax.random.key(seed)."
            )
        if keys.dtype != _U32:
            raise TypeError(
                f"{name}: invalid PRNG key data: expected key_data.dtype uint32; got {keys.dtype}.  Make a key "
                "with jax.random.key(seed)."
            )
        words = operand_of(keys)
    else:
        raise TypeError(
            f"{name}: invalid PRNG key: expected an array of keys, got {keys!r}.  Make one with jax.random.key(seed)."
        )
    if not several and len(words.shape) != 1:
        raise ValueError(
            f"{name} accepts a single key, but was given a key array of shape {words.shape[:-1]} != (). Use "
            "jax.vmap for batching."
        )
    return words


def pair_of(words: Any) -> tuple[Any, Any]:
    """The two words of one key, as scalars."""
    first, second = (lax.index_in_dim(words, i, 0, keepdims=False) for i in (0, 1))
    return first, second


def like(keys: Any, words: Any) -> Any:
    """Words as keys of the kind that ``keys`` is: typed or raw."""
    return random_wrap_p.bind(words) if is_typed(keys) else words


def split(key: Any, num: Any = 2) -> Any:
    """``num`` new keys (a number, or a shape) from one.

    >>> split(key(0)).shape
    (2,)
    """
    words = words_of("split", key)
    shape = tuple(map(operator.index, num)) if isinstance(num, (tuple, list)) else (operator.index(num),)
    return like(key, split_words(words, shape))


def split_words(words: Any, shape: tuple[int, ...]) -> Any:
    """The words of new keys, in an array of ``shape`` and 2."""
    first, second = hash_words(*pair_of(words), shape)
    last = (len(shape),)
    return lax.concatenate([lax.expand_dims(first, last), lax.expand_dims(second, last)], len(shape))


def two_keys(words: Any) -> tuple[Any, Any]:
    """The words of two new keys."""
    both = split_words(words, (2,))
    first, second = (lax.index_in_dim(both, i, 0, keepdims=False) for i in (0, 1))
    return first, second


def fold_in(key: Any, data: Any) -> Any:
    """A new key of a key and an integer."""
    words = words_of("fold_in", key, uses_up=False)
    if np.ndim(data) if not isinstance(data, Tracer) else data.shape:
        raise TypeError(
            f"fold_in accepts a scalar, but was given an array of shape {np.shape(data)} != (). Use jax.vmap for "
            "batching."
        )
    value = operand_of(data)
    number = np.uint32(value) if isinstance(value, int) else convert(value, _U32)
    first, second = threefry_2x32(*pair_of(words), np.uint32(0), number)
    return like(key, lax.concatenate([lax.reshape(first, (1,)), lax.reshape(second, (1,))], 0))


def key_data(keys: Any) -> Any:
    """The words of keys, as uint32 with a last axis of 2."""
    return words_of("key_data", keys, several=True, uses_up=False)


def wrap_key_data(key_bits_array: Any, *, impl: Any = None, dtype: Any = None) -> Any:
    """Typed keys of their words."""
    _one_of("wrap_key_data", impl, dtype)
    return random_wrap_p.bind(words_of("wrap_key_data", key_bits_array, several=True, uses_up=False))


def key_impl(keys: Any) -> str:
    """The name of the generator of keys."""
    words_of("key_impl", keys, several=True, uses_up=False)
    return "threefry2x32"


def key_dtype(impl_spec: Any = None) -> Any:
    """The dtype of typed keys."""
    _check_impl(impl_spec)
    return dtypes.KEY


def clone(key: Any) -> Any:
    """The same key, to be used once more."""
    words = words_of("clone", key, several=True, uses_up=False)
    return like(key, words)
