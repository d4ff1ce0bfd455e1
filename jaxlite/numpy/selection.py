"""Choosing values elementwise: ``where``, ``select``, ``clip``, ``nan_to_num``, rounding, closeness."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxlite import lax
from jaxlite.core import dtypes
from jaxlite.core.array import Array
from jaxlite.core.avals import aval_of
from jaxlite.core.primitive import get
from jaxlite.lax.convert import operand_of
from jaxlite.lax.elementwise.casts import convert
from jaxlite.numpy.arithmetic import _select, maximum2, minimum2
from jaxlite.numpy.logic import isinf, isnan, truth
from jaxlite.numpy.promotion import (
    array_operand,
    as_type,
    check_arraylike,
    common_type,
    constant_like,
    expand_to,
    promoted,
    refuse_out,
    result_shape,
)
from jaxlite.numpy.reductions import all_

_select_n_p = get("select_n")


def where(condition: Any, x: Any = None, y: Any = None, /, *, size: Any = None, fill_value: Any = None) -> Any:
    """``x`` where ``condition`` holds, else ``y``; with the condition alone, the places where it holds.

    >>> import jaxlite.numpy as jnp
    >>> where(jnp.array([True, False]), 1, 2)
    Array([1, 2], dtype=int32, weak_type=True)
    """
    if x is None and y is None:
        from jaxlite.numpy.searching import nonzero

        return nonzero(condition, size=size, fill_value=fill_value)
    if size is not None or fill_value is not None:
        raise ValueError("size and fill_value arguments cannot be used in three-term where function.")
    check_arraylike("where", condition, x, y)
    return choose_between(truth(condition), x, y)


def choose_between(mask: Any, x: Any, y: Any) -> Any:
    """``x`` where ``mask`` holds, else ``y``, promoted and broadcast."""
    if type(x) is Array and type(y) is Array:  # the case that matters for speed: nothing to promote or to broadcast
        a, b = x.aval, y.aval
        if a.dtype is b.dtype and a.weak_type is b.weak_type and a.shape == b.shape == mask.shape:
            if a.dtype.kind != "V" and not (a.weak_type and a.dtype.itemsize == 8):
                return _select_n_p.bind(mask, y, x)
    values = [operand_of(x), operand_of(y)]
    avals = [aval_of(v) for v in values]
    if any(dtypes.is_key(a.dtype) for a in avals):
        dtype, weak = avals[0].dtype, False
    else:
        dtype, weak = common_type(avals)
    cases = [as_type(v, dtype, weak) for v in values]
    shape = result_shape("where", [mask.shape, *(a.shape for a in avals)])
    if any(a.shape == shape for a in avals):  # a scalar beside it stands for a constant of that shape
        cases = [expand_to(c, shape) if aval_of(c).shape else c for c in cases]
    else:
        cases = [expand_to(c, shape) for c in cases]
    which = mask if not mask.shape else expand_to(mask, shape)
    return convert(_select_n_p.bind(which, cases[1], cases[0]), dtype, weak)


def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    """Per element, the choice whose condition holds first, ``default`` where none does."""
    if len(condlist) != len(choicelist):
        raise ValueError(f"condlist must have length equal to choicelist ({len(condlist)} vs {len(choicelist)})")
    if not condlist:
        raise ValueError("condlist must be non-empty")
    dtype = common_type([aval_of(operand_of(v)) for v in (*choicelist, default)])[0]
    out = as_type(operand_of(default), dtype)
    for condition, choice in zip(condlist[::-1], choicelist[::-1], strict=True):
        mask = array_operand("select", condition)
        if not dtypes.is_bool(mask.dtype):
            raise ValueError("condlist entries must be boolean arrays, got dtype " + mask.dtype.name)
        out = where(mask, as_type(operand_of(choice), dtype), out)
    return out


def clip(arr: Any = None, /, min: Any = None, max: Any = None) -> Any:
    """``arr`` held between ``min`` and ``max``; None is no bound."""
    if arr is None:
        raise ValueError("No input was provided to the clip function.")
    check_arraylike("clip", arr)
    out = array_operand("clip", arr)
    if min is not None:
        out = maximum2(min, out)
    return out if max is None else minimum2(max, out)


def nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    """NaN and infinities replaced by numbers: 0 and the largest and smallest finite ones unless given."""
    value = array_operand("nan_to_num", x)
    if not dtypes.is_inexact(value.dtype):
        return value
    from jaxlite.numpy.dtype_functions import finfo

    limits = finfo(value.dtype)
    high, low = (limits.max if posinf is None else posinf), (limits.min if neginf is None else neginf)
    value = where(isnan(value), as_type(operand_of(nan), value.dtype), value)
    value = where(lax.eq(value, constant_like(value, np.inf)), as_type(operand_of(high), value.dtype), value)
    return where(lax.eq(value, constant_like(value, -np.inf)), as_type(operand_of(low), value.dtype), value)


def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    """Elementwise whether ``|a - b| <= atol + rtol * |b|``; equal infinities are close."""
    x, y = promoted("isclose", a, b)
    if not dtypes.is_inexact(aval_of(x).dtype):
        x, y = (convert(v, dtypes.canonicalize(np.float64)) for v in (x, y))
    bound = lax.add(constant_like(x, atol), lax.mul(constant_like(x, rtol), lax.abs(y)))
    near = lax.le(*_matched(lax.abs(lax.sub(x, y)), bound))
    finite = _both(lax.is_finite(x), lax.is_finite(y))
    out = _select(finite, near, lax.eq(x, y))
    if equal_nan:
        out = lax.bitwise_or(*_matched(out, _both(lax.ne(x, x), lax.ne(y, y))))
    return out


def _matched(a: Any, b: Any) -> tuple[Any, Any]:
    shape = aval_of(a).shape or aval_of(b).shape
    return expand_to(a, shape), expand_to(b, shape)


def _both(a: Any, b: Any) -> Any:
    return lax.bitwise_and(*_matched(a, b))


def allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    """Whether all elements are close."""
    return all_(isclose(a, b, rtol, atol, equal_nan))


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    """Whether shapes and all elements are equal."""
    from jaxlite.numpy.creation import asarray

    x, y = asarray(a1), asarray(a2)
    if x.shape != y.shape:
        return asarray(False)
    a, b = promoted("array_equal", x, y)
    same = lax.eq(a, b)
    if equal_nan:
        same = lax.bitwise_or(same, _both(isnan(a), isnan(b)))
    return all_(same)


def array_equiv(a1: Any, a2: Any) -> Any:
    """Whether shapes broadcast and all elements are equal."""
    from jaxlite.numpy.creation import asarray

    try:
        a, b = promoted("array_equiv", asarray(a1), asarray(a2))
    except (TypeError, ValueError):
        return asarray(False)
    return all_(lax.eq(a, b))


def round_(a: Any, decimals: int = 0, out: Any = None) -> Any:
    """Rounded to ``decimals`` places, halves to even."""
    refuse_out("round", out)
    value = array_operand("round", a)
    if dtypes.is_integer(value.dtype) or dtypes.is_bool(value.dtype):
        if decimals < 0:
            raise NotImplementedError("integer np.round not implemented for decimals < 0")
        return value
    even = lax.RoundingMethod.TO_NEAREST_EVEN
    if not decimals:
        return lax.round(value, even)
    narrow = dtypes.is_narrow_float(value.dtype)
    wide = convert(value, np.dtype(np.float32)) if narrow else value
    factor = constant_like(wide, 10.0 ** abs(decimals))
    if decimals > 0:
        rounded = lax.div(lax.round(lax.mul(wide, factor), even), factor)
    else:
        rounded = lax.mul(lax.round(lax.div(wide, factor), even), factor)
    rounded = lax.select(isinf(lax.mul(wide, factor)) if decimals > 0 else isinf(wide), wide, rounded)
    return convert(rounded, value.dtype, value.weak_type)


around = round_


def _whole(name: str, function: Any, x: Any) -> Any:
    value = array_operand(name, x)
    return value if not dtypes.is_inexact(value.dtype) else function(value)


def floor(x: Any, /) -> Any:
    """The largest whole number not above ``x``."""
    return _whole("floor", lax.floor, x)


def ceil(x: Any, /) -> Any:
    """The smallest whole number not below ``x``."""
    return _whole("ceil", lax.ceil, x)


def trunc(x: Any) -> Any:
    """``x`` without its fraction."""
    return _whole("trunc", lambda v: _select(lax.lt(v, constant_like(v, 0)), lax.ceil(v), lax.floor(v)), x)


def rint(x: Any, /) -> Any:
    """The nearest whole number, halves to even; integers become floats."""

    value = array_operand("rint", x)
    if not dtypes.is_inexact(value.dtype):
        value = convert(value, dtypes.canonicalize(np.float64))
    return lax.round(value, lax.RoundingMethod.TO_NEAREST_EVEN)


def modf(x: Any, /, out: Any = None) -> tuple[Any, Any]:
    """Fraction and whole part, both with the sign of ``x``."""
    from jaxlite.numpy.promotion import promoted_float

    refuse_out("modf", out)
    (value,) = promoted_float("modf", x)
    whole = trunc(value)
    return lax.sub(value, whole), whole


def conjugate(x: Any, /) -> Any:
    """The complex conjugate: a real ``x`` itself."""
    return array_operand("conjugate", x)


conj = conjugate


def _real_operand(name: str, val: Any) -> Any:
    value = array_operand(name, val)
    if value.dtype.kind == "c":
        raise NotImplementedError(f"{name} of {value.aval}: complex arrays can be held, but no operation takes them.")
    return value


def real(val: Any, /) -> Any:
    """The real part: a real ``val`` itself."""
    return _real_operand("real", val)


def imag(val: Any, /) -> Any:
    """The imaginary part: 0 of a real ``val``."""
    value = _real_operand("imag", val)
    return convert(lax.full_like(value, 0), value.dtype, value.weak_type)
