"""Products that contract axes: ``matmul``, ``dot``, ``tensordot``, ``inner``, ``outer``, ``kron``, on
``dot_general``."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

from jaxlite import lax
from jaxlite.core.avals import aval_of
from jaxlite.lax.placed import placed
from jaxlite.numpy.arithmetic import multiply2
from jaxlite.numpy.promotion import array_operand, as_type, axis_of, common_type, expand_to, refuse_out, result_shape

_MATRICES = (((1,), (0,)), ((), ()))


def _pair(name: str, a: Any, b: Any) -> tuple[Any, Any, bool]:
    """Two arrays of one dtype, and whether the result is weakly typed."""
    x, y = array_operand(name, a), array_operand(name, b)
    if x.dtype is y.dtype and x.weak_type == y.weak_type:
        return x, y, x.weak_type
    dtype, weak = common_type([aval_of(x), aval_of(y)])
    return as_type(x, dtype, weak), as_type(y, dtype, weak), weak


@placed
def matmul(
    a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None, out_sharding: Any = None
) -> Any:
    """The matrix product; leading axes broadcast, vectors are rows or columns.

    >>> import jaxlite.numpy as jnp
    >>> matmul(jnp.ones((2, 3)), jnp.ones(3))
    Array([3., 3.], dtype=float32)
    """
    x, y, _ = _pair("matmul", a, b)
    if len(x.shape) == 2 == len(y.shape):
        return _product(x, y, _MATRICES, precision, preferred_element_type)
    for number, value in enumerate((x, y)):
        if not value.shape:
            raise ValueError(f"matmul input operand {number} must have ndim at least 1, but it has ndim 0")
    return _batched(x, y, precision, preferred_element_type)


def _product(x: Any, y: Any, numbers: Any, precision: Any = None, preferred: Any = None) -> Any:
    return lax.dot_general(x, y, numbers, precision, preferred)


def _batched(x: Any, y: Any, precision: Any, preferred: Any) -> Any:
    """Stacks of matrices: axes that one side lacks or has of length 1 stay free axes of the other."""
    x_lead, y_lead = x.shape[:-2], y.shape[:-2]
    if len(y.shape) <= 2 and not y_lead:
        # One right operand for all: the left leading axes are free.
        return _product(x, y, (((len(x.shape) - 1,), (0,)), ((), ())), precision, preferred)
    lead = result_shape("matmul", [x_lead, y_lead])
    rank = len(lead)
    x_wide = expand_to(x, (*lead, *x.shape[-2:])) if len(x.shape) > 1 and x_lead else x
    y_wide = expand_to(y, (*lead, *y.shape[-2:]))
    batch = tuple(range(rank))
    y_contract = len(y_wide.shape) - 2
    if not x_lead:
        # One left operand for all: its rows come first in the result, and are moved behind the leading axes.
        out = _product(x_wide, y_wide, (((len(x.shape) - 1,), (y_contract,)), ((), ())), precision, preferred)
        if len(x.shape) == 1:
            return out
        return lax.transpose(out, (*range(1, rank + 1), 0, rank + 1))
    return _product(x_wide, y_wide, (((len(x_wide.shape) - 1,), (y_contract,)), (batch, batch)), precision, preferred)


def matvec(x1: Any, x2: Any, /) -> Any:
    """Matrices times vectors along the last axis."""
    x, y, _ = _pair("matvec", x1, x2)
    out = matmul(x, lax.expand_dims(y, (len(y.shape),)))
    return lax.squeeze(out, (len(out.shape) - 1,))


def vecmat(x1: Any, x2: Any, /) -> Any:
    """Vectors along the last axis times matrices."""
    x, y, _ = _pair("vecmat", x1, x2)
    out = matmul(lax.expand_dims(x, (len(x.shape) - 1,)), y)
    return lax.squeeze(out, (len(out.shape) - 2,))


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """The scalar product along ``axis``."""
    from jaxlite.numpy.shaping import broadcast_arrays, moveaxis

    x, y, _ = _pair("vecdot", x1, x2)
    x, y = moveaxis(x, axis, -1), moveaxis(y, axis, -1)
    if x.shape[-1] != y.shape[-1]:
        raise ValueError(f"vecdot: the vectors have lengths {x.shape[-1]} and {y.shape[-1]}; they must be equal.")
    x, y = broadcast_arrays(x, y)
    last, batch = (len(x.shape) - 1,), tuple(range(len(x.shape) - 1))
    return _product(x, y, ((last, last), (batch, batch)), precision, preferred_element_type)


@placed
def dot(a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None, out_sharding: Any = None) -> Any:
    """The last axis of ``a`` with the last but one of ``b`` (the only one of a vector); scalars multiply."""
    x, y, _ = _pair("dot", a, b)
    if not x.shape or not y.shape:
        return multiply2(x, y)
    contract = ((len(x.shape) - 1,), (max(len(y.shape) - 2, 0),))
    return _product(x, y, (contract, ((), ())), precision, preferred_element_type)


def vdot(a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """The scalar product of the flattened arrays."""
    x, y, _ = _pair("vdot", a, b)
    flat = [lax.reshape(v, (aval_of(v).size,)) for v in (x, y)]
    return dot(*flat, precision=precision, preferred_element_type=preferred_element_type)


def inner(a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """The last axes of both contracted; scalars multiply."""
    x, y, _ = _pair("inner", a, b)
    if not x.shape or not y.shape:
        return multiply2(x, y)
    return _product(x, y, (((len(x.shape) - 1,), (len(y.shape) - 1,)), ((), ())), precision, preferred_element_type)


def outer(a: Any, b: Any, out: Any = None) -> Any:
    """The product of every pair of elements of the flattened arrays."""
    refuse_out("outer", out)
    x, y, _ = _pair("outer", a, b)
    n, m = aval_of(x).size, aval_of(y).size
    return multiply2(lax.reshape(x, (n, 1)), lax.reshape(y, (1, m)))


@placed
def tensordot(
    a: Any,
    b: Any,
    axes: Any = 2,
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Any:
    """The last ``axes`` axes of ``a`` with the first of ``b`` contracted, or pairs of axes given as two lists."""
    x, y, _ = _pair("tensordot", a, b)
    left, right = _tensordot_axes(axes, len(x.shape), len(y.shape))
    for i, j in zip(left, right, strict=True):
        if x.shape[i] != y.shape[j]:
            raise TypeError(
                f"tensordot: axis {i} of shape {x.shape} and axis {j} of shape {y.shape} are contracted, so their "
                "lengths "
                "must be equal."
            )
    return _product(x, y, ((left, right), ((), ())), precision, preferred_element_type)


def _tensordot_axes(axes: Any, x_rank: int, y_rank: int) -> tuple[Sequence[int], Sequence[int]]:
    if not isinstance(axes, (tuple, list)):
        count = operator.index(axes)
        if count > min(x_rank, y_rank):
            raise TypeError(f"Number of tensordot axes (axes={count}) exceeds input ranks ({x_rank} and {y_rank})")
        return tuple(range(x_rank - count, x_rank)), tuple(range(count))
    if len(axes) != 2:
        raise TypeError(
            f"tensordot axes argument must be an int, a pair of ints, or a pair of lists of ints, got {axes}"
        )
    sides = [tuple(s) if isinstance(s, (tuple, list)) else (s,) for s in axes]
    if len(sides[0]) != len(sides[1]):
        raise TypeError(f"tensordot requires axes lists to have equal length, got {sides[0]} and {sides[1]}.")
    return [axis_of(d, x_rank) for d in sides[0]], [axis_of(d, y_rank) for d in sides[1]]


def kron(a: Any, b: Any) -> Any:
    """The Kronecker product."""
    x, y, _ = _pair("kron", a, b)
    rank = max(len(x.shape), len(y.shape))
    x_shape = (1,) * (rank - len(x.shape)) + x.shape
    y_shape = (1,) * (rank - len(y.shape)) + y.shape
    wide = [math.prod(pair) for pair in zip(x_shape, y_shape, strict=True)]
    x = lax.reshape(x, [m for n in x_shape for m in (n, 1)])
    y = lax.reshape(y, [m for n in y_shape for m in (1, n)])
    return lax.reshape(multiply2(x, y), wide)


def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: Any = None) -> Any:
    """The vector product of vectors of length 2 or 3 along an axis."""
    from jaxlite.numpy.joining import stack
    from jaxlite.numpy.shaping import moveaxis

    if axis is not None:
        axisa = axisb = axisc = axis
    x, y, _ = _pair("cross", a, b)
    x, y = moveaxis(x, axisa, -1), moveaxis(y, axisb, -1)
    if x.shape[-1] not in (2, 3) or y.shape[-1] not in (2, 3):
        raise ValueError(f"Dimension must be either 2 or 3 for cross product, got {x.shape[-1]} and {y.shape[-1]}")

    def parts(v: Any) -> list[Any]:
        last = len(v.shape) - 1
        return [lax.index_in_dim(v, i, last, keepdims=False) for i in range(v.shape[-1])]

    p, q = parts(x), parts(y)
    flat = p[0] * q[1] - p[1] * q[0]
    if len(p) == 2 == len(q):
        return flat
    p, q = (v if len(v) == 3 else [*v, lax.full_like(v[0], 0)] for v in (p, q))
    return moveaxis(stack([p[1] * q[2] - p[2] * q[1], p[2] * q[0] - p[0] * q[2], flat], -1), -1, axisc)
