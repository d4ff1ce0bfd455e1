"""Dtypes: which there are, how Python scalars map to them, the 64-bit switch, and JAX's promotion lattice.

In: anything NumPy can read as a dtype, Python scalar types, arrays.  Out: ``np.dtype`` objects (or a
:class:`KeyDtype`) and weak-type flags.
"""

from __future__ import annotations

import functools
from typing import Any, final

import numpy as np

from jaxlite.core import config
from jaxlite.core.errors import TypePromotionError


def _bfloat16() -> np.dtype[Any]:
    import ml_dtypes  # costs more than everything else here together: only when first needed

    dtype: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
    return dtype


@final
class KeyDtype:
    """The dtype of typed random keys; an element is held as one uint64 (its two words, low first)."""

    name = "key<fry>"
    kind = "K"
    itemsize = 8
    physical = np.dtype(np.uint64)
    impl = "threefry2x32"

    def __repr__(self) -> str:
        return self.name

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KeyDtype)

    def __hash__(self) -> int:
        return hash(KeyDtype)


KEY = KeyDtype()


class extended(np.generic):
    """The kind of dtypes that NumPy does not have, such as those of random keys."""


class prng_key(np.generic):
    """The kind of dtypes of random keys."""


# The dtype of tangents of integers and bools: it carries no information.
float0 = np.dtype([("float0", np.void, 0)])

_SHORT = {
    "bool": "bool", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64",
    "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64",
    "complex64": "c64", "complex128": "c128",
}  # fmt: skip

_NATIVE = frozenset(np.dtype(name) for name in _SHORT if name != "bfloat16")

_HALVED = {
    np.dtype(np.int64): np.dtype(np.int32),
    np.dtype(np.uint64): np.dtype(np.uint32),
    np.dtype(np.float64): np.dtype(np.float32),
    np.dtype(np.complex128): np.dtype(np.complex64),
}

# Python's own scalar types, with the dtype each stands for when 64-bit types are on.
PYTHON_SCALARS: dict[type, np.dtype[Any]] = {
    bool: np.dtype(np.bool_),
    int: np.dtype(np.int64),
    float: np.dtype(np.float64),
    complex: np.dtype(np.complex128),
}


def plain_number(value: Any) -> Any:
    """Python's own number for one of a class derived from it, such as an ``IntEnum``; ``value`` itself if it is other.

    NumPy's ``float64`` is such a class, but a type of its own here.
    """
    if type(value) not in PYTHON_SCALARS and not isinstance(value, np.generic):
        kinds: tuple[type[Any], ...] = (int, float, complex)
        for kind in kinds:
            if isinstance(value, kind):
                return kind.__pos__(value)
    return value


def is_key(dtype: Any) -> bool:
    """Whether ``dtype`` is that of typed random keys."""
    return isinstance(dtype, KeyDtype)


def physical(dtype: Any) -> np.dtype[Any]:
    """The NumPy dtype that holds an element in memory."""
    return dtype.physical if isinstance(dtype, KeyDtype) else dtype


@functools.lru_cache(maxsize=512)
def _parse(spec: Any) -> Any:
    if isinstance(spec, str) and spec == "bfloat16":
        return _bfloat16()
    if spec in PYTHON_SCALARS:
        return PYTHON_SCALARS[spec]
    return np.dtype(spec)


def as_dtype(spec: Any) -> Any:
    """The dtype named by ``spec``, 64-bit or not; ``TypeError`` where it names none."""
    if isinstance(spec, (np.dtype, KeyDtype)):
        return spec
    if spec is None:
        raise TypeError("Expected a dtype, got None.  Write a dtype such as jax.numpy.float32.")
    try:
        return _parse(getattr(spec, "dtype", spec) if not isinstance(spec, (str, type)) else spec)
    except TypeError:
        if isinstance(getattr(spec, "dtype", None), np.dtype):
            return spec.dtype
        raise TypeError(f"{spec!r} is not a dtype.  Write one such as jax.numpy.float32.") from None


def is_name(name: str) -> bool:
    """Whether arrays can hold a dtype of this name."""
    return name in _SHORT


def is_array_dtype(dtype: Any) -> bool:
    """Whether arrays can hold ``dtype``: not long doubles, strings, objects, dates, records, swapped bytes."""
    return dtype in _NATIVE or isinstance(dtype, KeyDtype) or dtype.name == "bfloat16" or dtype == float0


def canonicalize(spec: Any) -> Any:
    """``as_dtype(spec)``, 64-bit types halved while ``jax_enable_x64`` is off; ``TypeError`` if no array holds it."""
    dtype = as_dtype(spec)
    if not is_array_dtype(dtype):
        raise TypeError(
            f"Dtype {dtype} is not a valid JAX array type.  Only arrays of numeric types are supported, in the "
            f"machine's byte order: {', '.join(_SHORT)}."
        )
    if config.enable_x64.value or isinstance(dtype, KeyDtype):
        return dtype
    return _HALVED.get(dtype, dtype)


def short_name(dtype: Any) -> str:
    """As jaxprs print it: ``f32``, ``i32``, ``bool``, ``key<fry>``."""
    return _SHORT.get(str(dtype.name), "float0" if dtype == float0 else str(dtype.name))


def is_float(dtype: Any) -> bool:
    """Whether ``dtype`` is a real floating-point type, bfloat16 included."""
    return not isinstance(dtype, KeyDtype) and (dtype.kind == "f" or dtype.name == "bfloat16")


def is_complex(dtype: Any) -> bool:
    """Whether ``dtype`` is complex."""
    return bool(dtype.kind == "c")


def is_inexact(dtype: Any) -> bool:
    """Whether ``dtype`` is a floating-point or complex type: those with derivatives."""
    return is_float(dtype) or is_complex(dtype)


def is_integer(dtype: Any) -> bool:
    """Whether ``dtype`` is a signed or unsigned integer (bool is not)."""
    return dtype.kind in "iu"


def is_signed(dtype: Any) -> bool:
    """Whether ``dtype`` is a signed integer."""
    return bool(dtype.kind == "i")


def is_bool(dtype: Any) -> bool:
    """Whether ``dtype`` is bool."""
    return bool(dtype.kind == "b")


def is_narrow_float(dtype: Any) -> bool:
    """Whether ``dtype`` is a 16-bit float, whose arithmetic is done in float32 and rounded once."""
    return is_float(dtype) and dtype.itemsize == 2


def tangent_dtype(dtype: Any) -> Any:
    """The dtype of tangents of ``dtype``: itself where inexact, else float0."""
    return dtype if is_inexact(dtype) else float0


# JAX's promotion lattice: each type, and the types just above it.  "i*", "f*", "c*" are the weak ones.
_ABOVE: dict[str, tuple[str, ...]] = {
    "bool": ("i*",),
    "i*": ("uint8", "int8"),
    "uint8": ("int16", "uint16"),
    "uint16": ("int32", "uint32"),
    "uint32": ("int64", "uint64"),
    "uint64": ("f*",),
    "int8": ("int16",),
    "int16": ("int32",),
    "int32": ("int64",),
    "int64": ("f*",),
    "f*": ("bfloat16", "float16", "c*"),
    "bfloat16": ("float32",),
    "float16": ("float32",),
    "float32": ("float64", "complex64"),
    "float64": ("complex128",),
    "c*": ("complex64",),
    "complex64": ("complex128",),
    "complex128": (),
}


def _upper_bounds(node: str) -> frozenset[str]:
    return frozenset({node}).union(*map(_upper_bounds, _ABOVE[node]))


_BOUNDS = {node: _upper_bounds(node) for node in _ABOVE}
_WEAK_NODE = {"b": "bool", "i": "i*", "u": "i*", "f": "f*", "c": "c*"}
_WEAK_DTYPE = {"bool": bool, "i*": int, "f*": float, "c*": complex}


@functools.lru_cache(maxsize=4096)
def _least_upper_bound(nodes: frozenset[str]) -> str:
    common = frozenset.intersection(*(_BOUNDS[n] for n in nodes))
    least = [n for n in common if common <= _BOUNDS[n]]
    if len(least) != 1:
        raise TypePromotionError(
            f"Input dtypes {sorted(nodes)} have no available implicit dtype promotion path.  "
            "Try explicitly casting inputs to the desired output type."
        )
    return least[0]


def _node(dtype: Any, weak: bool) -> str:
    name = dtype.name
    if weak and name != "bool":
        return "f*" if name == "bfloat16" else _WEAK_NODE[dtype.kind]
    if name not in _ABOVE:
        raise TypePromotionError(
            f"{name} has no implicit dtype promotion.  Try explicitly casting inputs to the desired output type."
        )
    return str(name)


@functools.lru_cache(maxsize=4096)
def _promote(typed: tuple[tuple[Any, bool], ...], x64: bool) -> tuple[Any, bool]:
    node = _least_upper_bound(frozenset(_node(dtype, weak) for dtype, weak in typed))
    if node in ("i*", "f*", "c*"):
        weak_dtypes = [d for d, w in typed if w and _node(d, True) == node]
        # A weak result keeps the widest weak dtype given, as JAX does (a weak f64 stays f64).
        dtype = max(weak_dtypes, key=lambda d: d.itemsize, default=as_dtype(_WEAK_DTYPE[node]))
        return dtype if x64 else _HALVED.get(dtype, dtype), True
    dtype = as_dtype(node)
    weak = all(w for _, w in typed) and node != "bool"
    return dtype if x64 else _HALVED.get(dtype, dtype), weak


def promote_types(*typed: tuple[Any, bool]) -> tuple[Any, bool]:
    """The dtype and weak-type flag that ``(dtype, weak)`` pairs promote to.

    Follows JAX's lattice (https://docs.jax.dev/en/latest/type_promotion.html).  ``TypePromotionError``
    where two types have no common one, or differ while ``jax_numpy_dtype_promotion`` is "strict".
    """
    first = typed[0]
    if all(t == first for t in typed):
        weak = first[1] and first[0].kind != "b"
        return (canonicalize(first[0]) if weak else first[0]), weak
    if any(isinstance(t[0], KeyDtype) for t in typed):
        raise TypePromotionError("Random keys do not promote to other dtypes.  Use jax.random.key_data first.")
    if config.numpy_dtype_promotion.value == "strict":
        strong = {dtype for dtype, weak in typed if not weak}
        if len(strong) > 1 or (strong and _promote(typed, True)[0] not in strong):
            names = [dtype.name for dtype, _ in typed]
            raise TypePromotionError(
                f"Input dtypes {names} have no available implicit dtype promotion path when "
                "jax_numpy_dtype_promotion=strict.  Try explicitly casting inputs to the desired output type."
            )
    return _promote(typed, config.enable_x64.value)
