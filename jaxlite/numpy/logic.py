"""Comparisons, logic on truth values, bits of integers, and tests on floats."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxlite import lax
from jaxlite.core import dtypes
from jaxlite.core.avals import aval_of
from jaxlite.core.primitive import Primitive, get
from jaxlite.lax.elementwise.casts import convert
from jaxlite.numpy.arithmetic import Binary, as_integers, quick
from jaxlite.numpy.promotion import array_operand, constant_like, promoted, refuse_out


def _compare(name: str, primitive: Primitive, text: str) -> Binary:
    def slowly(x: Any, y: Any) -> Any:
        if name in ("equal", "not_equal") and any(dtypes.is_key(getattr(v, "dtype", None)) for v in (x, y)):
            return _compare_keys(name, x, y)
        return primitive.bind(*promoted(name, x, y))

    quickly = quick(primitive, "biuf", slowly)

    def apply(x: Any, y: Any, /) -> Any:
        return quickly(x, y)

    named: Binary = _named(apply, name, text)
    return named


def _compare_keys(name: str, x: Any, y: Any) -> Any:
    """Keys are equal where both words are."""
    if not all(dtypes.is_key(getattr(v, "dtype", None)) for v in (x, y)):
        raise TypeError(
            f"{name}: random keys compare with random keys alone, got {type(x).__name__} and {type(y).__name__}."
        )
    words = [get("random_unwrap").bind(v) for v in (x, y)]
    same = get("eq").bind(*promoted(name, *words))
    both = lax.reduce_and(same, (len(aval_of(same).shape) - 1,))
    return both if name == "equal" else lax.bitwise_not(both)


def _named(function: Any, name: str, text: str) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = text
    return function


equal = _compare("equal", get("eq"), "Elementwise ``x == y``.")
not_equal = _compare("not_equal", get("ne"), "Elementwise ``x != y``.")
less = _compare("less", get("lt"), "Elementwise ``x < y``.")
less_equal = _compare("less_equal", get("le"), "Elementwise ``x <= y``.")
greater = _compare("greater", get("gt"), "Elementwise ``x > y``.")
greater_equal = _compare("greater_equal", get("ge"), "Elementwise ``x >= y``.")


def truth(x: Any) -> Any:
    """``x`` as bools: whether each element differs from 0."""
    value = array_operand("logical function", x)
    return value if dtypes.is_bool(value.dtype) else lax.ne(value, constant_like(value, 0))


def _bitwise(name: str, primitive: Primitive) -> Binary:
    def slowly(x: Any, y: Any) -> Any:
        return primitive.bind(*promoted(name, x, y))

    return quick(primitive, "biu", slowly)


bitwise_and2 = _bitwise("bitwise_and", get("and"))
bitwise_or2 = _bitwise("bitwise_or", get("or"))
bitwise_xor2 = _bitwise("bitwise_xor", get("xor"))


def _logical(name: str, primitive: Primitive) -> Binary:
    def apply(x: Any, y: Any) -> Any:
        return primitive.bind(*promoted(name, truth(x), truth(y)))

    named: Binary = _named(apply, name, "")
    return named


logical_and2 = _logical("logical_and", get("and"))
logical_or2 = _logical("logical_or", get("or"))
logical_xor2 = _logical("logical_xor", get("xor"))


def logical_not(x: Any, /) -> Any:
    """Elementwise ``not x``."""
    return lax.bitwise_not(truth(x))


def bitwise_not(x: Any, /) -> Any:
    """Elementwise ``~x``; logical on bools."""
    return lax.bitwise_not(array_operand("bitwise_not", x))


invert = bitwise_invert = bitwise_not


def bitwise_count(x: Any, /) -> Any:
    """The number of set bits of the absolute value, as uint8."""
    value = array_operand("bitwise_count", x)
    value = convert(value, np.dtype(np.uint8)) if dtypes.is_bool(value.dtype) else value
    size = lax.abs(value) if value.dtype.kind == "i" else value
    return convert(lax.population_count(size), np.dtype(np.uint8))


def left_shift(x: Any, y: Any, /) -> Any:
    """Elementwise ``x << y``."""
    return lax.shift_left(*map(as_integers, promoted("left_shift", x, y)))


def right_shift(x1: Any, x2: Any, /) -> Any:
    """Elementwise ``x1 >> x2``; signed integers keep their sign."""
    x, y = map(as_integers, promoted("right_shift", x1, x2))
    return lax.shift_right_logical(x, y) if aval_of(x).dtype.kind == "u" else lax.shift_right_arithmetic(x, y)


bitwise_left_shift, bitwise_right_shift = left_shift, right_shift


def _never(value: Any) -> Any:
    return lax.full_like(value, False, np.dtype(bool))


def isnan(x: Any, /) -> Any:
    """Elementwise whether ``x`` is NaN."""
    value = array_operand("isnan", x)
    return lax.ne(value, value) if dtypes.is_inexact(value.dtype) else _never(value)


def isinf(x: Any, /) -> Any:
    """Elementwise whether ``x`` is infinite."""
    value = array_operand("isinf", x)
    if not dtypes.is_inexact(value.dtype):
        return _never(value)
    return lax.eq(lax.abs(value), constant_like(value, np.inf))


def isfinite(x: Any, /) -> Any:
    """Elementwise whether ``x`` is neither NaN nor infinite."""
    value = array_operand("isfinite", x)
    if not dtypes.is_inexact(value.dtype):
        return lax.full_like(value, True, np.dtype(bool))
    return lax.is_finite(value)


def isposinf(x: Any, /, out: Any = None) -> Any:
    """Elementwise whether ``x`` is +inf."""
    refuse_out("isposinf", out)
    value = array_operand("isposinf", x)
    return lax.eq(value, constant_like(value, np.inf)) if dtypes.is_inexact(value.dtype) else _never(value)


def isneginf(x: Any, /, out: Any = None) -> Any:
    """Elementwise whether ``x`` is -inf."""
    refuse_out("isneginf", out)
    value = array_operand("isneginf", x)
    return lax.eq(value, constant_like(value, -np.inf)) if dtypes.is_inexact(value.dtype) else _never(value)


def isreal(x: Any) -> Any:
    """Elementwise whether ``x`` has no imaginary part."""
    return lax.full_like(array_operand("isreal", x), True, np.dtype(bool))


def iscomplex(x: Any) -> Any:
    """Elementwise whether ``x`` has an imaginary part."""
    return _never(array_operand("iscomplex", x))


def isrealobj(x: Any) -> bool:
    """Whether the dtype is not complex."""
    return not iscomplexobj(x)


def iscomplexobj(x: Any) -> bool:
    """Whether the dtype is complex."""
    return dtypes.is_complex(aval_of(array_operand("iscomplexobj", x)).dtype)
