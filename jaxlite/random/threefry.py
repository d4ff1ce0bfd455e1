"""Random bits: the Threefry hash of a key and of each element's 64-bit position."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from jaxlite import lax
from jaxlite.core import config
from jaxlite.lax.elementwise.casts import convert
from jaxlite.lax.layout.iota import flat_iota
from jaxlite.lax.random_bits import threefry2x32_p

_U32 = np.dtype(np.uint32)


def threefry_2x32(k0: Any, k1: Any, x0: Any, x1: Any) -> tuple[Any, Any]:
    """The hash of the counter (x0, x1) under the key (k0, k1)."""
    first, second = threefry2x32_p.bind(k0, k1, x0, x1)
    return first, second


def hash_words(k0: Any, k1: Any, shape: tuple[int, ...]) -> tuple[Any, Any]:
    """Two words for each element of an array of ``shape``: the hash of its row-major position."""
    if not config.threefry_partitionable.value:
        raise NotImplementedError(
            "jaxlite draws random bits only as jax_threefry_partitionable=True does: leave the flag on."
        )
    if math.prod(shape) >= 2**32:
        raise NotImplementedError(
            f"random bits: shape {shape} has 2**32 elements or more; draw it in parts, with keys from split."
        )
    return threefry_2x32(k0, k1, np.uint32(0), flat_iota(_U32, shape) if shape else np.uint32(0))


def random_bits(k0: Any, k1: Any, width: int, shape: tuple[int, ...]) -> Any:
    """Unsigned integers of ``width`` random bits."""
    first, second = hash_words(k0, k1, shape)
    if width == 32:
        return lax.bitwise_xor(first, second)
    dtype = np.dtype(f"uint{width}")
    if width == 64:
        return lax.bitwise_or(lax.shift_left(convert(first, dtype), dtype.type(32)), convert(second, dtype))
    return convert(lax.bitwise_xor(first, second), dtype)
