"""Making arrays: from values (``array``, ``asarray``), of one value (``zeros``, ``full``), like others, and
identities."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from jaxlite import lax
from jaxlite.core import dtypes
from jaxlite.core.array import Array, to_array
from jaxlite.core.avals import aval_of, check_dtype, refuse_masked
from jaxlite.core.errors import refuse
from jaxlite.core.pytree import tree_leaves
from jaxlite.core.trace import Tracer
from jaxlite.lax.convert import operand_of
from jaxlite.lax.elementwise.casts import convert
from jaxlite.lax.placed import placed
from jaxlite.numpy.promotion import as_type, check_arraylike, common_type, dtype_or, user_dtype


@placed
def array(
    object: Any, dtype: Any = None, *, copy: bool = True, order: Any = "K", ndmin: int = 0, device: Any = None,
    out_sharding: Any = None,
) -> Any:  # fmt: skip
    """An array of the values in ``object``: a number, an array, or nested lists of them.

    >>> array([1, 2.5])
    Array([1. , 2.5], dtype=float32)
    """
    refuse("array", "order", "K" if order is None else order, "K", "elements always lie in C order")
    wanted = None if dtype is None else user_dtype(dtype)
    out = _array_of(object, wanted)
    out = out.copied() if copy and out is object and type(out) is Array else out
    missing = ndmin - len(aval_of(out).shape)
    return lax.reshape(out, (1,) * missing + aval_of(out).shape) if missing > 0 else out


@placed
def asarray(
    a: Any, dtype: Any = None, order: Any = None, *, copy: Any = None, device: Any = None, out_sharding: Any = None
) -> Any:
    """``a`` as an array; itself where it is one of that dtype already."""
    refuse("asarray", "order", "K" if order is None else order, "K", "elements always lie in C order")
    if dtype is None and not copy and (type(a) is Array or isinstance(a, Tracer)):
        return a
    return array(a, dtype, copy=bool(copy))


def _array_of(value: Any, dtype: Any) -> Any:
    if hasattr(value, "__jax_array__"):
        value = value.__jax_array__()
    if type(value) is Array or isinstance(value, Tracer):
        return value if dtype is None else convert(value, dtype)
    if value is None:
        raise ValueError("None is not a valid value for jnp.array")
    value = dtypes.plain_number(value)
    if type(value) in dtypes.PYTHON_SCALARS:
        return _of_number(value, dtype)
    if isinstance(value, (np.ndarray, np.generic)):
        return _of_numpy(value, dtype)
    if isinstance(value, (list, tuple)):
        return _of_list(value, dtype)
    if isinstance(value, range):
        return _of_list(list(value), dtype)
    if hasattr(value, "__array__") or hasattr(value, "__array_interface__") or isinstance(value, memoryview):
        return _of_numpy(np.asarray(value), dtype)
    return _of_numpy(_read(np.asarray(value), value, dtype), dtype)


def _read(found: Any, value: Any, dtype: Any) -> Any:
    """``found``, the numbers in its text where a dtype says what to read (``float32("nan")``); checked."""
    if dtype is not None and found.dtype.kind in "SU":
        return found.astype(np.float64 if dtype.name == "bfloat16" else dtypes.physical(dtype))
    check_dtype(found.dtype, value)
    return found


def _of_number(value: Any, dtype: Any) -> Any:
    if dtype is None:
        aval_of(value)  # raises where a Python int does not fit
        return to_array(value)
    if type(value) is int and dtypes.is_integer(dtype):
        return to_array(np.array(value, dtype))  # raises where it does not fit
    return _of_numpy(np.asarray(value), dtype)


def _of_numpy(value: Any, dtype: Any) -> Any:
    value = _read(value, value, dtype)
    if dtype is None or dtypes.canonicalize(value.dtype) == dtype:
        return to_array(value)
    if dtypes.is_key(dtype):
        raise TypeError("Random keys are not made from numbers: write jax.random.key(seed) or wrap_key_data(words).")
    with np.errstate(all="ignore"):
        if value.dtype.kind in "iub" or dtypes.is_inexact(dtype):
            return to_array(value.astype(dtype))
    return convert(to_array(value), dtype)


def _of_list(value: Any, dtype: Any) -> Any:
    leaves = tree_leaves(value, is_leaf=lambda x: x is None)
    if any(leaf is None for leaf in leaves):
        raise ValueError("None is not a valid value for jnp.array")
    for leaf in leaves:
        refuse_masked(leaf)
    if not any(isinstance(leaf, Tracer) or type(leaf) is Array or hasattr(leaf, "__jax_array__") for leaf in leaves):
        found = np.asarray(value) if leaves else np.zeros(np.shape(value), np.float64)
        found = _read(found, value, dtype)
        if dtype is None and leaves:
            numbers = [leaf for leaf in leaves if not isinstance(leaf, np.ndarray)]
            kinds = {type(leaf) for leaf in numbers}
            dtype = common_type([aval_of(leaf) for leaf in (leaves if len(kinds) > 1 else leaves[:1])])[0]
            dtype = dtype if len(kinds) > 0 else dtypes.canonicalize(found.dtype)
        return _of_numpy(found, dtype)
    parts = [_array_of(part, None) for part in value]
    if dtype is None:
        dtype = common_type([aval_of(p) for p in map(operand_of, leaves)])[0]
    shapes = {aval_of(p).shape for p in parts}
    if len(shapes) > 1:
        raise ValueError(
            f"setting an array element with a sequence. The parts have the shapes {sorted(shapes)}: they must be equal."
        )
    shape = shapes.pop()
    return lax.concatenate([lax.reshape(as_type(p, dtype), (1, *shape)) for p in parts], 0)


@placed
def full(shape: Any, fill_value: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Any:
    """An array of ``shape`` whose elements are ``fill_value`` (a scalar, or an array that broadcasts)."""
    check_arraylike("full", fill_value)
    wanted = None if dtype is None else user_dtype(dtype)
    value = operand_of(fill_value)
    if aval_of(value).shape:
        from jaxlite.numpy.shaping import broadcast_to

        return broadcast_to(asarray(value, wanted), shape)
    _check_lengths(shape)
    if wanted is not None:
        value = as_type(value, wanted)
    return lax.full(shape, value)


def _check_lengths(shape: Any) -> None:
    lengths = shape if isinstance(shape, (tuple, list)) else (shape,)
    if any(isinstance(n, (int, np.integer)) and n < 0 for n in lengths):
        raise TypeError(f"shape must have every element be nonnegative, got {tuple(lengths)}.")


@placed
def zeros(shape: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Any:
    """An array of zeros."""
    return full(shape, 0, dtypes.canonicalize(np.float64) if dtype is None else dtype)


@placed
def ones(shape: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Any:
    """An array of ones."""
    return full(shape, 1, dtypes.canonicalize(np.float64) if dtype is None else dtype)


@placed
def empty(shape: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Any:
    """An array of zeros: there are no arrays without values."""
    return zeros(shape, dtype)


@placed
def full_like(
    a: Any, fill_value: Any, dtype: Any = None, shape: Any = None, *, device: Any = None, out_sharding: Any = None
) -> Any:
    """An array of the shape and dtype of ``a`` whose elements are ``fill_value``."""
    if not hasattr(a, "shape") or not hasattr(a, "dtype"):
        check_arraylike("full_like", a)
        a = operand_of(a)
    aval = a if hasattr(a, "dtype") and not hasattr(a, "aval") else aval_of(a)
    wanted = None if dtype is None else user_dtype(dtype)
    weak = wanted is None and bool(getattr(aval, "weak_type", False))
    out = full(
        aval.shape if shape is None else shape,
        fill_value,
        dtypes.canonicalize(aval.dtype) if wanted is None else wanted,
    )
    return convert(out, out.dtype, True) if weak and not aval_of(operand_of(fill_value)).shape else out


@placed
def zeros_like(a: Any, dtype: Any = None, shape: Any = None, *, device: Any = None, out_sharding: Any = None) -> Any:
    """Zeros of the shape and dtype of ``a``."""
    return full_like(a, 0, dtype, shape)


@placed
def ones_like(a: Any, dtype: Any = None, shape: Any = None, *, device: Any = None, out_sharding: Any = None) -> Any:
    """Ones of the shape and dtype of ``a``."""
    return full_like(a, 1, dtype, shape)


@placed
def empty_like(prototype: Any, dtype: Any = None, shape: Any = None, *, device: Any = None) -> Any:
    """Zeros of the shape and dtype of ``prototype``."""
    return full_like(prototype, 0, dtype, shape)


@placed
def eye(N: Any, M: Any = None, k: Any = 0, dtype: Any = None, *, device: Any = None) -> Any:
    """Ones on diagonal ``k`` of an ``N`` by ``M`` matrix of zeros.

    >>> eye(2)
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    rows, columns = operator.index(N), operator.index(N if M is None else M)
    if rows < 0 or columns < 0:
        raise ValueError(f"negative dimensions are not allowed, got {rows} and {columns}")
    dtype = dtype_or(dtype, dtypes.canonicalize(np.float64))
    return convert(diagonal_mask(rows, columns, operator.index(k)), dtype)


def diagonal_mask(rows: int, columns: int, k: int) -> Any:
    """True on diagonal ``k``."""
    i32 = np.dtype(np.int32)
    row, column = (lax.broadcasted_iota(i32, (rows, columns), d) for d in (0, 1))
    return lax.eq(lax.add(row, np.int32(k)), column)


def identity(n: Any, dtype: Any = None) -> Any:
    """The ``n`` by ``n`` identity matrix."""
    return eye(n, dtype=dtype)


def copy(a: Any, order: Any = None) -> Any:
    """An array equal to ``a``."""
    refuse("copy", "order", "K" if order is None else order, "K", "elements always lie in C order")
    check_arraylike("copy", a)
    return array(a)


def frombuffer(buffer: Any, dtype: Any = float, count: int = -1, offset: int = 0) -> Any:
    """An array of a buffer's bytes."""
    return asarray(np.frombuffer(buffer, dtype=dtypes.as_dtype(dtype), count=count, offset=offset))


def fromfunction(function: Any, shape: Any, *, dtype: Any = float, **kwargs: Any) -> Any:
    """``function`` of the index of every element, called once on arrays of indices."""
    from jaxlite.numpy.ranges import indices

    return function(*indices(shape, dtype=dtype), **kwargs)
