"""``jax_debug_nans`` and ``jax_debug_infs``: where the first bad value is made.

A program whose result is bad is run again equation by equation; the first one that gives NaN (or an infinity) from
operands that have none is named, with the user's line and the transformation that made the equation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxlite.core import config, dtypes
from jaxlite.core.array import Array, numpy_of
from jaxlite.core.context import context_kept
from jaxlite.core.jaxpr import ClosedJaxpr, evaluate
from jaxlite.core.primitive import Primitive
from jaxlite.core.source import SourceInfo, current
from jaxlite.core.trace import current_trace

_off = -1  # the latest version of the settings under which both flags were found off


def checking() -> bool:
    """Whether either flag is on."""
    global _off
    if config.settings.version == _off:
        return False
    on = bool(config.debug_nans.value or config.debug_infs.value)
    if not on:
        _off = config.settings.version or -1
    return on


def is_bad(value: Any) -> str:
    """'nan' or 'inf' where a value holds what the flags forbid, else ''."""
    array = value.elements if isinstance(value, Array) else np.asarray(value)
    if isinstance(value, Array) and dtypes.is_key(value.dtype):
        return ""
    if not dtypes.is_inexact(array.dtype):
        return ""
    wide = array.astype(np.float32) if array.dtype.itemsize == 2 else array
    if config.debug_nans.value and np.isnan(wide).any():
        return "nan"
    return "inf" if config.debug_infs.value and np.isinf(wide).any() else ""


def check_results(primitive: Primitive, operands: Sequence[Any], results: Sequence[Any]) -> None:
    """``FloatingPointError`` where a result of an eager operation is bad."""
    for result in results:
        kind = is_bad(result)
        if kind:
            raise FloatingPointError(message(primitive, operands, kind, current()))


def message(primitive: Primitive, operands: Sequence[Any], kind: str, source: SourceInfo) -> str:
    """What was computed, from what, and where."""
    where = f" at {source.file}:{source.line}, in {source.function}" if source.file else ""
    by = f" (made by {' of '.join(reversed(source.transformations))})" if source.transformations else ""
    line = f"\n  {source.text()}" if source.text() else ""
    given = ", ".join(_range(o) for o in operands)
    return f"invalid value ({kind}) encountered in {primitive.name}{where}{by}{line}\n  operands: {given or 'none'}"


def _range(operand: Any) -> str:
    array = numpy_of(operand)
    if array.size == 0 or array.dtype.kind not in "fiub":
        return f"{array.dtype.name}{list(array.shape)}"
    wide = array.astype(np.float64)
    return (
        f"{array.dtype.name}{list(array.shape)} from {np.nanmin(wide):g} to {np.nanmax(wide):g}"
        if array.ndim
        else f"{array[()]}"
    )


@context_kept
def find_origin(closed: ClosedJaxpr, operands: Sequence[Any], results: Sequence[Any]) -> None:
    """Where a compiled program gave a bad result: runs it equation by equation, which raises at the first bad one."""
    kinds = [k for k in map(is_bad, results) if k]
    if not kinds:
        return
    with current_trace(None):
        evaluate(closed.jaxpr, closed.consts, list(operands))
    raise FloatingPointError(
        f"invalid value ({kinds[0]}) encountered in a compiled program, but not when it is run "
        "equation by equation: fusion or the "
        "order of a reduction makes the difference."
    )
