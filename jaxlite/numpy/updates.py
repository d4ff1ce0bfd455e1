"""``x.at[index]``: new arrays that differ from ``x`` at an index.

Static positions and slices become ``dynamic_update_slice``; all else a scatter with the places that indexing works out.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, final

import numpy as np

from jaxlite import lax
from jaxlite.core import dtypes
from jaxlite.core.avals import aval_of
from jaxlite.lax.convert import operand_of
from jaxlite.lax.elementwise.casts import convert
from jaxlite.lax.indexing.places import GatherScatterMode, ScatterDimensionNumbers
from jaxlite.lax.placed import placed
from jaxlite.numpy.arithmetic import add2, divide2, maximum2, minimum2, multiply2, power
from jaxlite.numpy.creation import ones_like
from jaxlite.numpy.indexing import Item, parse, places, static_index, static_place, take_index, without_scalar_masks
from jaxlite.numpy.promotion import as_type, common_type, is_arraylike

# The update, the scatter that makes it, and what it does to old and new values.
_UPDATES: dict[str, tuple[Callable[..., Any], Callable[[Any, Any], Any]]] = {
    "set": (lax.scatter, lambda old, new: new),
    "add": (lax.scatter_add, add2),
    "multiply": (lax.scatter_mul, multiply2),
    "min": (lax.scatter_min, minimum2),
    "max": (lax.scatter_max, maximum2),
}


@final
class IndexUpdateHelper:
    """What ``x.at`` gives: indexed, it names the place to update."""

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        self.array = array

    def __getitem__(self, index: Any) -> IndexUpdateRef:
        return IndexUpdateRef(self.array, index)

    def __repr__(self) -> str:
        return f"_IndexUpdateHelper({self.array!r})"


@final
class IndexUpdateRef:
    """A place in an array: its methods give the array with that place changed (``get``: the value there).

    >>> import jaxlite.numpy as jnp
    >>> jnp.zeros(3).at[0].set(5)
    Array([5., 0., 0.], dtype=float32)
    """

    __slots__ = ("array", "index")

    def __init__(self, array: Any, index: Any) -> None:
        self.array, self.index = array, index

    def __repr__(self) -> str:
        return f"_IndexUpdateRef({self.array!r}, {self.index!r})"

    @functools.partial(placed, called="at[...].get")
    def get(
        self, *, indices_are_sorted: bool = False, unique_indices: bool = False, mode: Any = None,
        fill_value: Any = None, out_sharding: Any = None, wrap_negative_indices: bool = True,
    ) -> Any:  # fmt: skip
        """``x[index]``, with ``mode`` saying what is read outside."""
        return take_index(
            self.array, self.index, mode, fill_value, indices_are_sorted, unique_indices, wrap_negative_indices
        )

    def _update(self, kind: str, values: Any, options: dict[str, Any]) -> Any:
        unknown = set(options) - {
            "indices_are_sorted",
            "unique_indices",
            "mode",
            "out_sharding",
            "wrap_negative_indices",
        }
        if unknown:
            raise TypeError(f"x.at[...].{kind}() got an unexpected keyword argument {sorted(unknown)[0]!r}")
        return update(self.array, self.index, values, kind, **options)

    def set(self, values: Any, **options: Any) -> Any:
        """``x`` with ``values`` at the index."""
        return self._update("set", values, options)

    def add(self, values: Any, **options: Any) -> Any:
        """``x`` with ``values`` added at the index, once for each time a place is named."""
        return self._update("add", values, options)

    def subtract(self, values: Any, **options: Any) -> Any:
        """``x`` with ``values`` subtracted at the index."""
        from jaxlite.numpy.arithmetic import negative2

        return self._update("add", negative2(values), options)

    def multiply(self, values: Any, **options: Any) -> Any:
        """``x`` multiplied by ``values`` at the index."""
        return self._update("multiply", values, options)

    mul = multiply

    def divide(self, values: Any, **options: Any) -> Any:
        """``x`` divided by ``values`` at the index."""
        divisors = IndexUpdateRef(ones_like(self.array), self.index)._update("multiply", values, options)
        return divide2(self.array, divisors)

    def power(self, values: Any, **options: Any) -> Any:
        """``x`` raised to the power ``values`` at the index."""
        exponents = IndexUpdateRef(ones_like(self.array), self.index)._update("multiply", values, options)
        return power(self.array, exponents)

    def min(self, values: Any, **options: Any) -> Any:
        """``x`` with the smaller of it and ``values`` at the index."""
        return self._update("min", values, options)

    def max(self, values: Any, **options: Any) -> Any:
        """``x`` with the larger of it and ``values`` at the index."""
        return self._update("max", values, options)

    def apply(self, func: Callable[[Any], Any], **options: Any) -> Any:
        """``x`` with ``func`` of its values at the index."""
        return self._update("set", func(take_index(self.array, self.index, options.get("mode"))), options)


@functools.partial(placed, called="at[...] update")
def update(
    x: Any, index: Any, values: Any, kind: str, *, indices_are_sorted: bool = False, unique_indices: bool = False,
    mode: Any = None, out_sharding: Any = None, wrap_negative_indices: bool = True,
) -> Any:  # fmt: skip
    """``x`` updated at ``index``; values broadcast to ``x[index]``, the result keeps the dtype of ``x``."""
    if not is_arraylike(values):
        values = _from_nested(values)
    y = operand_of(values)
    dtype, weak = x.dtype, x.weak_type
    common = _common(x, y)
    new_axes, index = without_scalar_masks(index)
    if new_axes:
        options = {"indices_are_sorted": indices_are_sorted, "unique_indices": unique_indices, "mode": mode}
        return lax.squeeze(update(lax.expand_dims(x, new_axes), index, values, kind, **options), new_axes)
    items, together = parse(index, x.shape)
    scatter, combine = _UPDATES[kind]
    wide = convert(x, common) if common != dtype else x
    y = as_type(y, common) if not dtypes.is_key(common) else y
    how = GatherScatterMode.from_any(mode)
    if _is_window(items, x.shape) and wrap_negative_indices:
        return convert(_update_window(wide, items, y, combine), dtype, weak)
    plan = places(items, together, x.shape, wrap_negative_indices)
    if 0 in plan.shape:
        return x
    y = _fitted(y, plan.shape, plan.new_axes)
    numbers = ScatterDimensionNumbers(*plan.numbers)
    out = scatter(
        wide, plan.indices, y, numbers, mode=how, indices_are_sorted=indices_are_sorted or plan.distinct,
        unique_indices=unique_indices or plan.distinct,
    )  # fmt: skip
    return convert(out, dtype, weak)


def _from_nested(values: Any) -> Any:
    from jaxlite.numpy.creation import asarray

    return asarray(values)


def _common(x: Any, y: Any) -> Any:
    """The dtype to scatter in; warns where it loses something to give the dtype of ``x`` back."""
    own, other = aval_of(x), aval_of(y)
    if dtypes.is_key(own.dtype):
        return own.dtype
    if type(dtypes.plain_number(y)) is int and dtypes.is_integer(own.dtype):
        return own.dtype
    common = common_type([own, other])[0]
    if common != own.dtype:
        warnings.warn(
            "scatter inputs have incompatible types: cannot safely cast value from dtype="
            f"{other.dtype.name} to dtype={own.dtype.name} with jax_numpy_dtype_promotion=standard. In future JAX "
            "releases "
            "this will result in an error.",
            FutureWarning,
            stacklevel=5,
        )
    return common


def _is_window(items: list[Item], shape: tuple[int, ...]) -> bool:
    """Whether the index is one static block inside the array."""
    for item in items:
        if item.kind == "array" or (item.kind == "int" and not -shape[item.axis] <= item.value < shape[item.axis]):
            return False
        if item.kind == "slice" and item.value.indices(shape[item.axis])[2] != 1:
            return False
    return True


def _update_window(x: Any, items: list[Item], y: Any, combine: Callable[[Any, Any], Any]) -> Any:
    starts, sizes, dropped, kept = [], [], [], 0
    new_axes: list[int] = []
    for item in items:
        if item.kind == "new":
            new_axes.append(kept + len(new_axes))
            continue
        n = x.shape[item.axis]
        if item.kind == "int":
            starts.append(static_place(item.value, n))
            sizes.append(1)
            dropped.append(item.axis)
            continue
        start, stop, _ = item.value.indices(n)
        starts.append(start)
        sizes.append(max(0, stop - start))
        kept += 1
    if 0 in sizes:
        return x
    shape = tuple(n for d, n in enumerate(sizes) if d not in dropped)
    fitted = _fitted(y, shape, tuple(new_axes))
    plain = [i for i in items if i.kind != "new"]
    new = (
        lax.reshape(combine(static_index(x, plain), fitted), sizes)
        if combine is not _UPDATES["set"][1]
        else lax.reshape(fitted, sizes)
    )
    if tuple(sizes) == x.shape:
        return new
    return lax.dynamic_update_slice(x, new, [np.int32(s) for s in starts])


def _fitted(y: Any, shape: tuple[int, ...], new_axes: tuple[int, ...]) -> Any:
    """Values with the axes of the place that they go to."""
    full = list(shape)
    for axis in new_axes:
        full.insert(axis, 1)
    own = aval_of(y).shape
    wanted = tuple(full)
    if len(own) > len(wanted) and all(n == 1 for n in own[: len(own) - len(wanted)]):
        y = lax.reshape(y, own[len(own) - len(wanted) :])
        own = aval_of(y).shape
    lead = len(wanted) - len(own)
    if lead < 0 or any(n not in (1, m) for n, m in zip(own, wanted[lead:], strict=True)):
        raise ValueError(
            f"Incompatible shapes for broadcasting: the values have shape {own}, the indexed place has {wanted}."
        )
    y = lax.broadcast_in_dim(y, wanted, tuple(range(len(wanted) - len(own), len(wanted))))
    return lax.squeeze(y, new_axes) if new_axes else y
