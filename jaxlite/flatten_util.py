"""``jax.flatten_util``: a pytree as one vector."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jaxlite.core import dtypes
from jaxlite.core.avals import aval_of
from jaxlite.core.pytree import tree_flatten
from jaxlite.lax.convert import operand_of
from jaxlite.lax.elementwise.casts import convert
from jaxlite.lax.layout.shaping import full, reshape
from jaxlite.lax.layout.slicing import concatenate, slice_in_dim


def ravel_pytree(pytree: Any) -> tuple[Any, Callable[[Any], Any]]:
    """All leaves one after the other, promoted to one dtype, and the function from such a vector back to the tree.

    >>> flat, unravel = ravel_pytree({"a": 1.0, "b": (2.0, 3.0)})
    >>> flat
    Array([1., 2., 3.], dtype=float32)
    """
    leaves, tree = tree_flatten(pytree)
    leaves = [operand_of(x) for x in leaves]
    avals = [aval_of(x) for x in leaves]
    dtype = dtypes.promote_types(*((a.dtype, False) for a in avals))[0] if avals else dtypes.canonicalize(float)
    parts = [reshape(convert(x, dtype), (a.size,)) for x, a in zip(leaves, avals, strict=True)]
    flat = concatenate(parts, 0) if parts else full((0,), 0, dtype)
    total = sum(a.size for a in avals)

    def unravel(vector: Any) -> Any:
        vector = operand_of(vector)
        have = aval_of(vector)
        if have.shape != (total,):
            raise ValueError(f"unravel takes a vector of {total} elements, got shape {have.shape}.")
        if have.dtype != dtype:
            raise TypeError(
                f"unravel function given array of dtype {have.dtype.name}, but expected dtype {dtype.name}."
            )
        out, start = [], 0
        for aval in avals:
            part = reshape(slice_in_dim(vector, start, start + aval.size), aval.shape)
            out.append(convert(part, aval.dtype))
            start += aval.size
        return tree.unflatten(out)

    return flat, unravel
