"""Reductions: sum, product, extrema, truth, and the places of extrema.

Axes, ``where`` and ``initial`` follow NumPy: excluded elements count as the reduction's identity.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jaxlite import lax
from jaxlite.core import dtypes
from jaxlite.core.avals import aval_of
from jaxlite.core.primitive import get
from jaxlite.lax.convert import operand_of
from jaxlite.lax.elementwise.casts import convert
from jaxlite.numpy.logic import isnan, truth
from jaxlite.numpy.promotion import (
    array_operand,
    axes_of,
    axis_of,
    dtype_or,
    expand_to,
    lax_constant,
    refuse_out,
    result_shape,
)


def kept_shape(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    """``shape`` with the reduced axes as axes of length 1."""
    return tuple(1 if d in axes else n for d, n in enumerate(shape))


def keep_axes(x: Any, shape: tuple[int, ...], axes: tuple[int, ...]) -> Any:
    """A reduced array with the reduced axes put back as axes of length 1."""
    kept = tuple(d for d in range(len(shape)) if d not in axes)
    return lax.broadcast_in_dim(x, kept_shape(shape, axes), kept)


def masked(name: str, x: Any, where: Any, identity: Any) -> Any:
    """``x`` with ``identity`` where ``where`` is False."""
    mask = truth(where)
    shape = result_shape(name, [x.shape, mask.shape])
    return lax.select(expand_to(mask, shape), expand_to(x, shape), lax.full(shape, lax_constant(identity, x.dtype)))


def reduce_with(
    name: str, primitive: str, x: Any, axis: Any, keepdims: bool, initial: Any, where: Any, identity: Any, combine: Any
) -> Any:
    """The primitive over ``axis``, combined with ``initial``."""
    if where is not None:
        x = masked(name, x, where, identity)
    shape = aval_of(x).shape
    axes = axes_of(axis, len(shape))
    extra = {} if primitive in ("reduce_prod", "reduce_and", "reduce_or") else {"out_sharding": None}
    out = get(primitive).bind(x, axes=axes, **extra) if axes or primitive != "reduce_sum" else x
    if initial is not None:
        out = combine(out, convert(operand_of(initial), x.dtype))
    out = convert(out, aval_of(out).dtype)
    return keep_axes(out, shape, axes) if keepdims else out


def sum_dtype(dtype: Any, promote_integers: bool) -> Any:
    """The dtype that sums of ``dtype`` are taken in: small integers and bools widen, 64 bits narrow with x64 off."""
    dtype = dtypes.canonicalize(dtype)
    if not promote_integers or dtypes.is_inexact(dtype):
        return dtype
    default = dtypes.canonicalize(np.uint64 if dtype.kind == "u" else np.int64)
    return default if dtype.itemsize < default.itemsize or dtypes.is_bool(dtype) else dtype


def _added(
    name: str, primitive: str, a: Any, axis: Any, dtype: Any, keepdims: bool, initial: Any, where: Any,
    promote_integers: bool, identity: int, combine: Callable[[Any, Any], Any],
) -> Any:  # fmt: skip
    x = array_operand(name, a)
    own = x.dtype
    wanted = dtype_or(dtype, sum_dtype(own, promote_integers))
    narrow = dtypes.is_narrow_float(own) and dtypes.is_narrow_float(wanted)  # summed in 32 bits, rounded once
    computing = np.dtype(np.float32) if narrow else wanted
    out = reduce_with(name, primitive, convert(x, computing), axis, keepdims, initial, where, identity, combine)
    return convert(out, wanted)


def sum_(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None,
    where: Any = None, promote_integers: bool = True,
) -> Any:  # fmt: skip
    """The sum over ``axis`` (None: all axes)."""
    refuse_out("sum", out)
    return _added("sum", "reduce_sum", a, axis, dtype, keepdims, initial, where, promote_integers, 0, lax.add)


def prod(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None,
    where: Any = None, promote_integers: bool = True,
) -> Any:  # fmt: skip
    """The product over ``axis`` (None: all axes)."""
    refuse_out("prod", out)
    return _added("prod", "reduce_prod", a, axis, dtype, keepdims, initial, where, promote_integers, 1, lax.mul)


def lowest(dtype: Any) -> Any:
    """The identity of ``max``."""
    return False if dtypes.is_bool(dtype) else -np.inf if dtypes.is_float(dtype) else np.iinfo(dtype).min


def highest(dtype: Any) -> Any:
    """The identity of ``min``."""
    return True if dtypes.is_bool(dtype) else np.inf if dtypes.is_float(dtype) else np.iinfo(dtype).max


def _extremum(
    name: str, primitive: str, a: Any, axis: Any, keepdims: bool, initial: Any, where: Any, identity: Any, combine: Any
) -> Any:
    x = array_operand(name, a)
    x = convert(x, dtypes.canonicalize(x.dtype), x.weak_type)
    if where is not None and initial is None:
        raise ValueError(
            f"reduction operation {name} does not have an identity, so to use a where mask one has to specify 'initial'"
        )
    axes = axes_of(axis, len(x.shape))
    if initial is None and any(x.shape[d] == 0 for d in axes):
        raise ValueError(f"zero-size array to reduction operation {name} which has no identity")
    return reduce_with(name, primitive, x, axis, keepdims, initial, where, identity(x.dtype), combine)


def max_(
    a: Any, axis: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Any:
    """The largest over ``axis``; NaN where one is."""
    refuse_out("max", out)
    return _extremum("max", "reduce_max", a, axis, keepdims, initial, where, lowest, lax.max)


def min_(
    a: Any, axis: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Any:
    """The smallest over ``axis``; NaN where one is."""
    refuse_out("min", out)
    return _extremum("min", "reduce_min", a, axis, keepdims, initial, where, highest, lax.min)


amax, amin = max_, min_


def minmax(
    a: Any, axis: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Any:
    """The smallest and the largest."""
    refuse_out("minmax", out)
    return min_(a, axis, None, keepdims, initial, where), max_(a, axis, None, keepdims, initial, where)


def all_(a: Any, axis: Any = None, out: Any = None, keepdims: bool = False, *, where: Any = None) -> Any:
    """Whether every element is true."""
    refuse_out("all", out)
    x = truth(array_operand("all", a))
    return reduce_with("all", "reduce_and", x, axis, keepdims, None, where, True, None)


def any_(a: Any, axis: Any = None, out: Any = None, keepdims: bool = False, *, where: Any = None) -> Any:
    """Whether some element is true."""
    refuse_out("any", out)
    x = truth(array_operand("any", a))
    return reduce_with("any", "reduce_or", x, axis, keepdims, None, where, False, None)


def count_nonzero(a: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """How many elements are not 0."""
    return sum_(truth(array_operand("count_nonzero", a)), axis, dtypes.canonicalize(np.int64), keepdims=keepdims)


def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
    """The largest minus the smallest."""
    refuse_out("ptp", out)
    return lax.sub(max_(a, axis, keepdims=keepdims), min_(a, axis, keepdims=keepdims))


def _place(name: str, function: Callable[..., Any], a: Any, axis: Any, keepdims: Any) -> Any:
    x = array_operand(name, a)
    rank = len(x.shape)
    flat = axis is None
    if flat:
        x, axis = lax.reshape(x, (int(np.prod(x.shape, dtype=np.int64)),)), 0
    axis = axis_of(axis, len(x.shape))
    if x.shape[axis] == 0:
        raise ValueError(f"attempt to get {name} of an empty sequence")
    out = function(x, axis, dtypes.canonicalize(np.int64))
    if not keepdims:
        return out
    return lax.reshape(out, (1,) * rank) if flat else lax.expand_dims(out, (axis,))


def argmax(a: Any, axis: Any = None, out: Any = None, keepdims: Any = None) -> Any:
    """The place of the first largest element (flattened unless ``axis`` is given)."""
    refuse_out("argmax", out)
    return _place("argmax", lax.argmax, a, axis, keepdims)


def argmin(a: Any, axis: Any = None, out: Any = None, keepdims: Any = None) -> Any:
    """The place of the first smallest element (flattened unless ``axis`` is given)."""
    refuse_out("argmin", out)
    return _place("argmin", lax.argmin, a, axis, keepdims)


def without_nan(x: Any, instead: Any) -> Any:
    """``x`` with ``instead`` for NaN."""
    if not dtypes.is_inexact(x.dtype):
        return x
    return lax.select(isnan(x), lax.full_like(x, instead), x)
