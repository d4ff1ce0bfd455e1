"""The operators, methods and properties of ``Array`` and tracers, in three tables, put on both classes by
``install``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from jaxlite.core import dtypes
from jaxlite.core.array import Array
from jaxlite.core.errors import refuse
from jaxlite.core.trace import Tracer
from jaxlite.lax.elementwise.casts import bitcast_convert_type
from jaxlite.lax.placed import placed
from jaxlite.numpy import (
    arithmetic,
    contractions,
    cumulative,
    dtype_functions,
    indexing,
    logic,
    picking,
    rearranging,
    reductions,
    searching,
    selection,
    shaping,
    sorting,
    statistics,
    triangles,
)
from jaxlite.numpy.creation import copy as copy_of
from jaxlite.numpy.promotion import is_arraylike
from jaxlite.numpy.updates import IndexUpdateHelper
from jaxlite.transforms.device import devices

_KNOWN = (Array, Tracer, np.ndarray, np.generic, int, float, complex)

# Operators of two operands: name, function, whether there is a reversed form.
_BINARY: tuple[tuple[str, Callable[[Any, Any], Any], bool], ...] = (
    ("add", arithmetic.add2, True),
    ("sub", arithmetic.subtract2, True),
    ("mul", arithmetic.multiply2, True),
    ("truediv", arithmetic.divide2, True),
    ("floordiv", arithmetic.floor_divide, True),
    ("mod", arithmetic.remainder, True),
    ("divmod", arithmetic.divmod, True),
    ("pow", arithmetic.power, True),
    ("matmul", contractions.matmul, True),
    ("and", logic.bitwise_and2, True),
    ("or", logic.bitwise_or2, True),
    ("xor", logic.bitwise_xor2, True),
    ("lshift", logic.left_shift, True),
    ("rshift", logic.right_shift, True),
    ("eq", logic.equal, False),
    ("ne", logic.not_equal, False),
    ("lt", logic.less, False),
    ("le", logic.less_equal, False),
    ("gt", logic.greater, False),
    ("ge", logic.greater_equal, False),
)

_UNARY: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    ("neg", arithmetic.negative2),
    ("pos", arithmetic.positive),
    ("abs", arithmetic.absolute),
    ("invert", logic.bitwise_not),
)


def _forward(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def operator(self: Any, other: Any) -> Any:
        if isinstance(other, _KNOWN) or is_arraylike(other):
            return function(self, other)
        return NotImplemented

    return operator


def _backward(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def operator(self: Any, other: Any) -> Any:
        if isinstance(other, _KNOWN) or is_arraylike(other):
            return function(other, self)
        return NotImplemented

    return operator


def _power(self: Any, other: Any, modulus: Any = None) -> Any:
    if modulus is not None or not is_arraylike(other):
        return NotImplemented
    return arithmetic.power(self, other)


def _setitem(self: Any, index: Any, values: Any) -> None:
    text = _spelled(index)
    value = _spelled_value(values)
    raise TypeError(
        "JAX arrays are immutable and do not support in-place item assignment. Instead of x[idx] = y, use x = "
        f"x.at[idx].set(y) or another .at[] method: here, x = x.at[{text}].set({value}).  See "
        "https://docs.jax.dev/en/latest/_autosummary/jax.numpy.ndarray.at.html"
    )


def _spelled(index: Any) -> str:
    """An index as the user wrote it, where that is short; else ``idx``."""
    if isinstance(index, tuple):
        return ", ".join(_spelled(i) for i in index) + ("," if len(index) == 1 else "")
    if index is Ellipsis:
        return "..."
    if isinstance(index, slice):
        step = "" if index.step is None else f":{index.step}"
        return f"{'' if index.start is None else index.start}:{'' if index.stop is None else index.stop}{step}"
    return repr(index) if index is None or isinstance(index, (int, np.integer)) else "idx"


def _spelled_value(value: Any) -> str:
    return repr(value) if isinstance(value, (bool, int, float)) else "y"


def _iterate(self: Any) -> Iterator[Any]:
    if not self.shape:
        raise TypeError("iteration over a 0-d array")
    return iter([indexing.getitem(self, i) for i in range(self.shape[0])])


def _round(self: Any, ndigits: Any = None) -> Any:
    out = selection.round_(self, ndigits or 0)
    return dtype_functions.astype(out, int) if ndigits is None else out


@placed
def _reshape(self: Any, *args: Any, order: str = "C", copy: Any = None, out_sharding: Any = None) -> Any:
    """The elements under another shape: lengths, or one tuple of them."""
    lengths = args[0] if len(args) == 1 and isinstance(args[0], (tuple, list)) else args
    if len(args) == 1 and not isinstance(args[0], (tuple, list)):
        lengths = args[0]
    return shaping.reshape(self, lengths, order)


def _transpose(self: Any, *args: Any) -> Any:
    """The axes in another order: numbers, or one tuple of them, or nothing for reversed."""
    if not args or args == (None,):
        return shaping.transpose(self)
    return shaping.transpose(self, args[0] if len(args) == 1 and isinstance(args[0], (tuple, list)) else args)


@placed
def _astype(self: Any, dtype: Any, copy: bool = False, device: Any = None) -> Any:
    """Cast to ``dtype``."""
    return dtype_functions.astype(self, dtype)


def _clip(self: Any, min: Any = None, max: Any = None) -> Any:
    """Held between ``min`` and ``max``."""
    return selection.clip(self, min, max)


@placed
def _flatten(self: Any, order: str = "C", *, out_sharding: Any = None) -> Any:
    """All elements along one axis."""
    return shaping.ravel(self, order)


def _view(self: Any, dtype: Any = None, type: None = None) -> Any:
    """The bits read as another dtype; the last axis grows or shrinks where the widths differ."""
    if type is not None:
        raise NotImplementedError("`type` argument of array.view() is not supported.")
    if dtype is None:
        return self
    wanted = dtypes.canonicalize(dtype)
    own, new = self.dtype.itemsize, wanted.itemsize
    if dtypes.is_bool(self.dtype) or dtypes.is_bool(wanted):
        if own != new:
            raise ValueError(f"view: {self.dtype.name} cannot be read as {wanted.name}.")
        if dtypes.is_bool(wanted):
            return logic.not_equal(bitcast_convert_type(self, np.uint8), 0)
        return bitcast_convert_type(dtype_functions.astype(self, np.uint8), wanted)
    if own == new:
        return bitcast_convert_type(self, wanted)
    if not self.shape:
        raise ValueError("view() of a 0d array is only supported if the itemsize is unchanged.")
    if own > new:
        out = bitcast_convert_type(self, wanted)
        return shaping.reshape(out, (*self.shape[:-1], self.shape[-1] * (own // new)))
    if self.shape[-1] * own % new:
        raise ValueError(
            "When changing to a larger dtype, its size must be a divisor of the total size in bytes of the last "
            "axis of the array."
        )
    parts = shaping.reshape(self, (*self.shape[:-1], self.shape[-1] * own // new, new // own))
    return bitcast_convert_type(parts, wanted)


def _dot(self: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """The product with ``b``."""
    return contractions.dot(self, b, precision=precision, preferred_element_type=preferred_element_type)


def _clone(self: Any) -> Any:
    """An array equal to this one."""
    return copy_of(self)


def _nonzero(self: Any, *, fill_value: Any = None, size: Any = None) -> Any:
    """The positions of the elements that are not 0."""
    return searching.nonzero(self, size=size, fill_value=fill_value)


def _devices(self: Any) -> Any:
    """The devices that hold the array."""
    return set(devices())


@placed
def _to_device(self: Any, device: Any = None, *, stream: Any = None) -> Any:
    """The array on ``device``."""
    refuse("to_device", "stream", stream, None, "the CPU has no streams")
    return self


_METHODS: dict[str, Callable[..., Any]] = {
    "all": reductions.all_,
    "any": reductions.any_,
    "argmax": reductions.argmax,
    "argmin": reductions.argmin,
    "argpartition": sorting.argpartition,
    "argsort": sorting.argsort,
    "astype": _astype,
    "choose": picking.choose,
    "clip": _clip,
    "clone": _clone,
    "compress": lambda self, condition, axis=None, *, size=None, fill_value=0, out=None: picking.compress(
        condition, self, axis, size=size, fill_value=fill_value, out=out
    ),
    "conj": selection.conj,
    "conjugate": selection.conj,
    "copy": copy_of,
    "cumprod": cumulative.cumprod,
    "cumsum": cumulative.cumsum,
    "diagonal": triangles.diagonal,
    "dot": _dot,
    "flatten": _flatten,
    "max": reductions.max_,
    "mean": statistics.mean,
    "min": reductions.min_,
    "nonzero": _nonzero,
    "prod": reductions.prod,
    "ptp": reductions.ptp,
    "ravel": shaping.ravel,
    "repeat": rearranging.repeat,
    "reshape": _reshape,
    "round": selection.round_,
    "searchsorted": sorting.searchsorted,
    "sort": sorting.sort,
    "squeeze": shaping.squeeze,
    "std": statistics.std,
    "sum": reductions.sum_,
    "swapaxes": shaping.swapaxes,
    "take": picking.take,
    "trace": triangles.trace,
    "transpose": _transpose,
    "var": statistics.var,
    "view": _view,
    "devices": _devices,
    "to_device": _to_device,
    "__getitem__": indexing.getitem,
    "__iter__": _iterate,
    "__round__": _round,
    "__setitem__": _setitem,
}

_PROPERTIES: dict[str, Callable[[Any], Any]] = {
    "T": shaping.transpose,
    "mT": shaping.matrix_transpose,
    "real": selection.real,
    "imag": selection.imag,
    "at": IndexUpdateHelper,
    "itemsize": lambda self: int(self.aval.dtype.itemsize),
    "nbytes": lambda self: self.aval.nbytes,
    "device": lambda self: devices()[0],
}


def install(*classes: type) -> None:
    """Puts the tables on ``classes``; what a class defines itself stays."""
    for cls in classes:
        for name, function, reverses in _BINARY:
            setattr(cls, f"__{name}__", _power if name == "pow" else _forward(function))
            if reverses:
                setattr(cls, f"__r{name}__", _backward(function))
        for name, unary in _UNARY:
            setattr(cls, f"__{name}__", unary)
        for name, method in _METHODS.items():
            if name not in cls.__dict__ or name.startswith("__"):
                setattr(cls, name, method)
        for name, getter in _PROPERTIES.items():
            if name not in cls.__dict__:
                setattr(cls, name, property(getter))


install(Array, Tracer)
