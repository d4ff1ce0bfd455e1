"""What jnp functions do with their arguments: checks, promotion to one dtype, broadcasting to one shape.

In: arrays, tracers, NumPy values and Python scalars.  Out: operands that primitives take: one dtype, and one shape
but for scalars, which stand for a constant of any shape and are never broadcast.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxlite import lax
from jaxlite.core import config, dtypes
from jaxlite.core.array import Array
from jaxlite.core.avals import ShapedArray, aval_of
from jaxlite.core.trace import Tracer
from jaxlite.lax.convert import array_of, constant, operand_of
from jaxlite.lax.elementwise.casts import convert

_SCALARS = (bool, int, float, complex)
_PLAIN = (Array, np.ndarray, np.generic, *_SCALARS)


def is_arraylike(value: Any) -> bool:
    """Whether ``value`` is an array or a number (lists are not)."""
    return isinstance(value, (*_PLAIN, Tracer)) or hasattr(value, "__jax_array__")


def check_arraylike(name: str, *values: Any) -> None:
    """``TypeError`` naming the first argument that is no array and no number."""
    for position, value in enumerate(values):
        if not is_arraylike(value):
            hint = f"  Write jnp.array({value!r})." if isinstance(value, (list, tuple)) and len(value) < 10 else ""
            raise TypeError(
                f"{name} requires ndarray or scalar arguments, got {type(value)} at position {position}.{hint}"
            )


def array_operand(name: str, value: Any) -> Any:
    """``value`` as an array or tracer; ``TypeError`` naming the function where it is no array."""
    if type(value) is Array or isinstance(value, Tracer):
        return value
    check_arraylike(name, value)
    return array_of(value)


def as_type(value: Any, dtype: Any, weak: bool = False) -> Any:
    """``value`` with this dtype and weak type; Python scalars become NumPy scalars, or stay where they fit."""
    value = dtypes.plain_number(value)
    kind = type(value)
    if kind in _SCALARS:
        own = aval_of(value)
        if weak and own.dtype == dtype and own.weak_type:
            return value
        if weak:
            return convert(value, dtype, True)
        if dtype.kind in "iu" and kind is int:
            return constant(np.array(value, own.dtype).astype(dtype)[()], dtype)  # wraps, as JAX's cast does
        return constant(value, dtype)
    return convert(value, dtype, weak)


def to_float(dtype: Any) -> Any:
    """The dtype of float functions: itself where inexact, else the default float (64-bit integers: a wide one)."""
    if dtypes.is_inexact(dtype):
        return dtype
    if dtype.kind == "V" or dtypes.is_key(dtype):
        raise TypeError(f"a numeric dtype is needed, got {dtype.name}.")
    return dtypes.canonicalize(np.float64 if dtype.itemsize == 8 else np.float32)


def common_type(avals: Sequence[ShapedArray]) -> tuple[Any, bool]:
    """The dtype and weak-type flag that values of these types promote to."""
    return dtypes.promote_types(*[(a.dtype, a.weak_type) for a in avals])


def result_shape(name: str, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape that ``shapes`` broadcast to; ``TypeError`` lists them where they do not."""
    rank = max(len(s) for s in shapes)
    out = []
    for position in range(rank):
        sizes = {s[position - rank + len(s)] for s in shapes if position - rank + len(s) >= 0}
        sizes.discard(1)
        if len(sizes) > 1:
            listed = ", ".join(str(tuple(s)) for s in shapes)
            if len({len(s) for s in shapes if s}) > 1:
                raise ValueError(f"{name}: Incompatible shapes for broadcasting: shapes=[{listed}]")
            raise TypeError(f"{name} got incompatible shapes for broadcasting: {listed}.")
        out.append(sizes.pop() if sizes else 1)
    return tuple(out)


def _check_ranks(name: str, shapes: Sequence[tuple[int, ...]]) -> None:
    mode = config.numpy_rank_promotion.value
    ranks = {len(s) for s in shapes if s}
    if mode == "allow" or len(ranks) < 2:
        return
    message = (
        f"Operands could not be broadcast together for {name} on shapes {' '.join(map(str, shapes))} and with the "
        f'config option jax_numpy_rank_promotion="{mode}".  Reshape them to one rank.'
    )
    if mode == "raise":
        raise ValueError(message)
    warnings.warn(message, stacklevel=4)


def expand_to(value: Any, shape: tuple[int, ...]) -> Any:
    """``value`` repeated to ``shape`` by NumPy's rules, which must allow it."""
    own = aval_of(value).shape
    if own == shape:
        return value
    lead = len(shape) - len(own)
    return lax.broadcast_in_dim(value, shape, tuple(range(lead, len(shape))))


def broadcast_operands(name: str, values: Sequence[Any]) -> list[Any]:
    """Values of one shape, those without axes left as they are."""
    shapes = [aval_of(v).shape for v in values]
    with_axes = {s for s in shapes if s}
    if len(with_axes) < 2:
        return list(values)
    _check_ranks(name, shapes)
    shape = result_shape(name, shapes)
    return [expand_to(v, shape) if s else v for v, s in zip(values, shapes, strict=True)]


def promoted(name: str, *values: Any) -> list[Any]:
    """Operands of one dtype and shape."""
    check_arraylike(name, *values)
    operands = [operand_of(v) for v in values]
    dtype, weak = common_type([aval_of(o) for o in operands])
    return broadcast_operands(name, [as_type(o, dtype, weak) for o in operands])


def promoted_float(name: str, *values: Any) -> list[Any]:
    """Operands of one inexact dtype and one shape: integers become floats."""
    check_arraylike(name, *values)
    operands = [operand_of(v) for v in values]
    dtype, weak = common_type([aval_of(o) for o in operands])
    dtype = to_float(dtype)
    return broadcast_operands(name, [as_type(o, dtype, weak) for o in operands])


def constant_like(x: Any, value: Any) -> Any:
    """A scalar constant of the dtype of ``x``, and as weakly typed."""
    aval = aval_of(x)
    if aval.weak_type:
        plain = int(value) if dtypes.is_integer(aval.dtype) else float(value) if dtypes.is_float(aval.dtype) else value
        if aval_of(plain).dtype == aval.dtype:
            return plain
    return lax_constant(value, aval.dtype)


lax_constant = constant


def full_shape(x: Any, shape: tuple[int, ...]) -> Any:
    """``x`` with its axes, or repeated to ``shape`` where it has none."""
    return x if aval_of(x).shape == shape else lax.broadcast_in_dim(x, shape, ())


def axis_of(axis: Any, rank: int) -> int:
    """``axis`` counted from the front; ``ValueError`` where there is no such axis."""
    number = operator.index(axis)
    if not -rank <= number < rank:
        # A ValueError and an IndexError: JAX raises now the one, now the other.
        raise np.exceptions.AxisError(f"axis {number} is out of bounds for array of dimension {rank}")
    return number % rank


def axes_of(axis: Any, rank: int) -> tuple[int, ...]:
    """An axis, several, or None for all, as sorted numbers; ``ValueError`` for a repeated one."""
    if axis is None:
        return tuple(range(rank))
    if isinstance(axis, (tuple, list)):
        axes = [axis_of(a, rank) for a in axis]
        if len(set(axes)) != len(axes):
            raise ValueError(f"duplicate value in 'axis': {tuple(axis)}")
        return tuple(sorted(axes))
    return (axis_of(axis, rank),)


def refuse_out(name: str, out: Any) -> None:
    """``NotImplementedError`` where ``out=`` is given: arrays are immutable."""
    if out is not None:
        raise NotImplementedError(
            f"The 'out' argument to jnp.{name} is not supported: arrays are immutable; use the value returned."
        )


def dtype_or(dtype: Any, otherwise: Any) -> Any:
    """The dtype asked for, or ``otherwise``; 64-bit types are halved (with a warning) while they are off."""
    return otherwise if dtype is None else user_dtype(dtype)


def user_dtype(dtype: Any) -> Any:
    """A dtype that the user wrote: 64-bit types are halved, with a warning, while they are off."""
    asked = dtypes.as_dtype(dtype)
    given = dtypes.canonicalize(asked)
    if given != asked and dtype not in _SCALARS:
        warnings.warn(
            f"Explicitly requested dtype {asked.name} is not available, and will be truncated to dtype "
            f"{given.name}. To "
            "enable more dtypes, set the jax_enable_x64 configuration option or the JAX_ENABLE_X64 shell environment "
            "variable.",
            UserWarning,
            stacklevel=3,
        )
    return given
