"""Questions about dtypes: ``result_type``, ``promote_types``, ``issubdtype``, ``isdtype``, ``can_cast``, ``finfo``,
``iinfo``."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from jaxlite.core import dtypes
from jaxlite.core.avals import aval_of
from jaxlite.lax.elementwise.casts import convert
from jaxlite.lax.placed import placed
from jaxlite.numpy.promotion import array_operand, is_arraylike, user_dtype

_KINDS = {
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": "f",
    "complex floating": "c",
    "numeric": "iufc",
}


def result_type(*args: Any) -> Any:
    """The dtype that arrays, scalars and dtypes promote to.

    >>> result_type(np.int8, 1.0)
    dtype('float32')
    """
    if not args:
        raise ValueError("at least one array or dtype is required")
    typed = []
    for arg in args:
        if arg in (bool, int, float, complex) if isinstance(arg, type) else False:
            typed.append((dtypes.canonicalize(arg), arg is not bool))
        elif is_arraylike(arg) and not isinstance(arg, type):
            aval = aval_of(arg)
            typed.append((aval.dtype, aval.weak_type))
        else:
            typed.append((dtypes.canonicalize(float if arg is None else arg), False))
    return dtypes.canonicalize(dtypes.promote_types(*typed)[0])


def promote_types(a: Any, b: Any) -> Any:
    """The dtype that two dtypes promote to, Python's scalar types counting as weak."""
    typed = [(dtypes.as_dtype(t), isinstance(t, type) and t in (int, float, complex)) for t in (a, b)]
    return dtypes._promote(tuple(typed), True)[0]


def issubdtype(arg1: Any, arg2: Any) -> bool:
    """Whether ``arg1`` is below ``arg2`` in NumPy's hierarchy; bfloat16 is a ``floating``, keys are ``prng_key``."""
    if arg2 in (dtypes.prng_key, dtypes.extended):
        return arg1 is dtypes.prng_key or dtypes.is_key(arg1)
    if arg1 in (dtypes.prng_key, dtypes.extended):
        return False
    first = dtypes.as_dtype(arg1) if not (isinstance(arg1, type) and issubclass(arg1, np.generic)) else arg1
    if dtypes.is_key(first):
        return False
    if getattr(first, "name", "") == "bfloat16":
        if isinstance(arg2, type) and issubclass(arg2, np.generic) and arg2 is not first:
            return arg2 in (np.floating, np.inexact, np.number, np.generic)
        return bool(dtypes.as_dtype(arg2) == first)
    second = arg2 if isinstance(arg2, type) and issubclass(arg2, np.generic) else dtypes.as_dtype(arg2)
    return bool(np.issubdtype(first, second))


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether ``dtype`` is of a kind ("integral", "real floating", ...), or is a dtype, or any of a tuple."""
    given = dtypes.as_dtype(dtype)
    letter = "f" if dtypes.is_float(given) else given.kind
    for wanted in kind if isinstance(kind, tuple) else (kind,):
        if isinstance(wanted, str) and wanted in _KINDS:
            if letter in _KINDS[wanted]:
                return True
        elif isinstance(wanted, str) and wanted not in dtypes._SHORT:
            raise ValueError(f"Unrecognized kind={wanted!r}: expected a dtype or one of {list(_KINDS)}.")
        elif dtypes.as_dtype(wanted) == given:
            return True
    return False


def can_cast(from_: Any, to: Any, casting: Any = "safe") -> bool:
    """NumPy's ``can_cast`` on dtypes."""
    return bool(np.can_cast(dtypes.as_dtype(from_), dtypes.as_dtype(to), casting=casting))


class finfo:
    """Limits of a float dtype, as ``numpy.finfo`` gives them; bfloat16 included."""

    def __new__(cls, dtype: Any) -> Any:
        given = dtypes.as_dtype(dtype)
        if given.name != "bfloat16":
            return np.finfo(given)
        import ml_dtypes  # costly to import: only where it is asked for

        return cast(Any, ml_dtypes.finfo)(given)


class iinfo:
    """Limits of an integer dtype, as ``numpy.iinfo`` gives them."""

    def __new__(cls, int_type: Any) -> Any:
        return np.iinfo(dtypes.as_dtype(int_type))


@placed
def astype(x: Any, dtype: Any, /, *, copy: bool = False, device: Any = None) -> Any:
    """``x`` cast to ``dtype``; complex values lose their imaginary part."""
    value = array_operand("astype", x)
    return convert(value, dtypes.canonicalize(np.float64) if dtype is None else user_dtype(dtype))
