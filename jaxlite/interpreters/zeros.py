"""Symbolic zeros: tangents and cotangents that are known to vanish, and operands that are linear."""

from __future__ import annotations

from typing import Any, final

from jaxlite.core import dtypes
from jaxlite.core.array import constant
from jaxlite.core.avals import ShapedArray, aval_of
from jaxlite.core.primitive import get


@final
class Zero:
    """A tangent or cotangent that is zero without being stored."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray) -> None:
        self.aval = aval

    def __repr__(self) -> str:
        return f"Zero({self.aval})"


@final
class LinearOperand:
    """In a transpose rule, an operand whose cotangent is wanted; its value is not known."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray) -> None:
        self.aval = aval

    def __repr__(self) -> str:
        return f"LinearOperand({self.aval})"


def is_linear(operand: Any) -> bool:
    """Whether a transpose rule owes this operand a cotangent."""
    return type(operand) is LinearOperand


def zero_of(value: Any) -> Zero:
    """The zero tangent of ``value``."""
    return Zero(aval_of(value).to_tangent_aval())


def zeros(aval: ShapedArray) -> Any:
    """An array of zeros of type ``aval`` (float0 becomes bool zeros of that shape nobody reads)."""
    dtype = aval.dtype
    if dtype == dtypes.float0:
        dtype = dtypes.as_dtype(bool)
    return get("broadcast_in_dim").bind(constant(0, dtype), shape=aval.shape, broadcast_dimensions=(), sharding=None)


def instantiate(tangent: Any) -> Any:
    """``tangent``, an array of zeros in place of a symbolic zero."""
    return zeros(tangent.aval) if type(tangent) is Zero else tangent


def add(a: Any, b: Any) -> Any:
    """The sum of two cotangents, zeros (symbolic or None) left out."""
    if a is None or type(a) is Zero:
        return b
    if b is None or type(b) is Zero:
        return a
    return get("add_any").bind(a, b)


def has_tangent(aval: ShapedArray) -> bool:
    """Whether values of this type have non-trivial tangents."""
    return not dtypes.is_key(aval.dtype) and aval.dtype != dtypes.float0 and dtypes.is_inexact(aval.dtype)
