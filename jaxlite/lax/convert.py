"""What lax functions do with their arguments before binding: values to arrays, constants of a type, checks."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxlite.core.array import Array, constant as constant, full_like as full_like, to_array
from jaxlite.core.avals import aval_of, is_valid
from jaxlite.core.dtypes import plain_number
from jaxlite.core.primitive import get
from jaxlite.core.trace import Tracer


def operand_of(value: Any) -> Any:
    """``value`` as a primitive takes it; objects with ``__jax_array__`` are asked for theirs."""
    kind = type(value)
    if kind is Array or isinstance(value, Tracer):
        return value
    if hasattr(value, "__jax_array__"):
        return value.__jax_array__()
    if isinstance(value, np.ndarray) and is_valid(value):
        return to_array(value)
    aval_of(value)  # raises where the value is no array
    return plain_number(value)


def array_of(value: Any) -> Any:
    """The same, with the methods of an array: for functions that may give it back as it is."""
    value = operand_of(value)
    return value if type(value) is Array or isinstance(value, Tracer) else to_array(value)


def operands_of(*values: Any) -> list[Any]:
    """Each value as a primitive takes it."""
    return [operand_of(v) for v in values]


def broadcast_to_shape(x: Any, shape: tuple[int, ...]) -> Any:
    """``x``, repeated to ``shape`` where it has no axes."""
    if aval_of(x).shape == shape:
        return x
    return get("broadcast_in_dim").bind(x, shape=shape, broadcast_dimensions=(), sharding=None)
