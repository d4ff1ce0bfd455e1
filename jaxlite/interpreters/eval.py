"""The NumPy runtime: each primitive through its ``evaluate``, the meaning that everything else is held to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxlite.core import dtypes
from jaxlite.core.array import Array, numpy_of
from jaxlite.core.avals import ShapedArray, aval_of
from jaxlite.core.errors import UnexpectedTracerError
from jaxlite.core.primitive import Primitive
from jaxlite.core.trace import Tracer, escaped_message


def refuse_tracers(operands: Sequence[Any]) -> None:
    """``UnexpectedTracerError`` where a tracer outlived its transformation."""
    for operand in operands:
        if isinstance(operand, Tracer):
            raise UnexpectedTracerError(escaped_message(operand))


def evaluate(primitive: Primitive, operands: Sequence[Any], params: dict[str, Any]) -> list[Array]:
    """The results of ``primitive`` on concrete operands, computed by NumPy."""
    refuse_tracers(operands)
    avals = primitive.abstract_eval(*map(aval_of, operands), **params)
    with np.errstate(all="ignore"):
        values = primitive.evaluate(*map(numpy_of, operands), **params)
    return [wrap(value, aval) for value, aval in zip(values, avals, strict=True)]


def wrap(value: Any, aval: ShapedArray) -> Array:
    """An ``Array`` of type ``aval`` on what NumPy computed; raises where NumPy computed something else."""
    array = np.asarray(value)
    wanted = dtypes.physical(aval.dtype)
    if array.dtype != wanted or array.shape != aval.shape:
        raise TypeError(f"evaluate gave {array.dtype}{list(array.shape)}, abstract_eval says {aval}.")
    return Array(aval, array)
