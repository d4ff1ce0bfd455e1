"""``jax.dtypes``: dtypes, their kinds and limits."""

from __future__ import annotations

from typing import Any

from jaxlite.core import dtypes as _core
from jaxlite.core.dtypes import extended as extended, float0 as float0, prng_key as prng_key
from jaxlite.core.errors import TypePromotionError as TypePromotionError
from jaxlite.numpy import finfo as finfo, iinfo as iinfo, issubdtype as issubdtype, result_type as result_type


def __getattr__(name: str) -> Any:
    if name == "bfloat16":  # importing ml_dtypes waits until somebody asks
        return _core.as_dtype("bfloat16").type
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def canonicalize_dtype(dtype: Any, allow_extended_dtype: bool = False) -> Any:
    """``dtype``, 64-bit types halved while ``jax_enable_x64`` is off."""
    wanted = _core.canonicalize(dtype)
    if _core.is_key(wanted) and not allow_extended_dtype:
        raise ValueError(f"Internal: canonicalize_dtype called on extended dtype {wanted}.")
    return wanted


def scalar_type_of(x: Any) -> type:
    """The Python scalar type (bool, int, float or complex) that a value's dtype belongs to."""
    dtype = result_type(x)
    if _core.is_float(dtype):
        return float
    return {"b": bool, "i": int, "u": int, "c": complex}[dtype.kind]
