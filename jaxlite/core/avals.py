"""Avals: what is known of a value before it is computed.

``ShapedArray`` carries shape, dtype, weak type, sharding (mesh axes by dimension, as plain data) and the mesh
axes over which it varies.  ``aval_of`` gives the aval of any value that a primitive accepts.
"""

from __future__ import annotations

import math
from typing import Any, final

import numpy as np

from jaxlite.core import config, dtypes

NO_AXES: frozenset[str] = frozenset()


@final
class ShapedArray:
    """The type of an array: ``float32[3,4]``, weak or not, sharded or not."""

    __slots__ = ("_hash", "dtype", "shape", "sharding", "varying", "weak_type")

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: Any,
        weak_type: bool = False,
        sharding: Any = None,
        varying: frozenset[str] = NO_AXES,
    ) -> None:
        self.shape = shape
        self.dtype = dtype
        self.weak_type = weak_type
        self.sharding = sharding
        self.varying = varying
        self._hash: int | None = None

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return self.size * int(self.dtype.itemsize)

    def update(self, **changes: Any) -> ShapedArray:
        """A copy with some fields replaced; one of another shape has no sharding unless it is given."""
        if "shape" in changes and self.sharding is not None:
            changes.setdefault("sharding", None)
        fields = {k: changes.get(k, getattr(self, k)) for k in ("shape", "dtype", "weak_type", "sharding", "varying")}
        return ShapedArray(**fields)

    def without_axis(self, axis: int) -> ShapedArray:
        """The type of one entry along ``axis``, which lies as the whole does along the others."""
        shape = self.shape[:axis] + self.shape[axis + 1 :]
        return self.update(shape=shape, sharding=self.sharding and self.sharding.without_axis(axis))

    def with_axis(self, size: int, axis: int = 0) -> ShapedArray:
        """The type of ``size`` of these along a new axis, which is not split."""
        shape = (*self.shape[:axis], size, *self.shape[axis:])
        return self.update(shape=shape, sharding=self.sharding and self.sharding.with_axis(axis))

    def strip_weak_type(self) -> ShapedArray:
        """The same, not weak."""
        return self.update(weak_type=False) if self.weak_type else self

    def to_tangent_aval(self) -> ShapedArray:
        """The type of tangents of this type."""
        return ShapedArray(self.shape, dtypes.tangent_dtype(self.dtype), self.weak_type, self.sharding, self.varying)

    def matches(self, other: ShapedArray) -> bool:
        """Equal shape, dtype and sharding: what a loop carry or a branch must keep (weak types aside)."""
        return self.looks_like(other) and self.lies_like(other)

    def lies_like(self, other: ShapedArray) -> bool:
        """Whether both are split in the same way over explicit axes; what no mesh is known of is whole."""
        mine, theirs = self._explicit_axes(), other._explicit_axes()
        if mine != theirs:
            return False
        return not any(mine) or bool(self.sharding.mesh == other.sharding.mesh)

    def _explicit_axes(self) -> tuple[tuple[Any, ...], ...]:
        """For each axis, the explicit mesh axes that split it."""
        if self.sharding is None:
            return ((),) * self.ndim
        explicit = self.sharding.mesh.explicit_axes
        return tuple([tuple([n for n in self.sharding.spec.axes_of(d) if n in explicit]) for d in range(self.ndim)])

    def looks_like(self, other: ShapedArray) -> bool:
        """Equal shape and dtype: arrays of either may stand for those of the other where one device has all."""
        return self.shape == other.shape and self.dtype == other.dtype

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, ShapedArray)
            and self.shape == other.shape
            and self.dtype == other.dtype
            and self.weak_type == other.weak_type
            and self.sharding == other.sharding
            and self.varying == other.varying
        )

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((self.shape, self.dtype, self.weak_type, self.varying))
        return self._hash

    def _dimensions(self) -> str:
        if self.sharding is None:
            return ",".join(map(str, self.shape))
        named = self.sharding.explicit_text(self.ndim)
        return ",".join(f"{n}@{axes}" if axes else str(n) for n, axes in zip(self.shape, named, strict=True))

    def _variation(self) -> str:
        names = sorted(map(str, self.varying))
        return "" if not names else f"{{V:{names[0]}}}" if len(names) == 1 else f"{{V:({','.join(names)})}}"

    def short(self) -> str:
        """As a jaxpr prints it: ``f32[3,4]``."""
        return f"{dtypes.short_name(self.dtype)}[{self._dimensions()}]{self._variation()}"

    def __str__(self) -> str:
        name = self.dtype.name if self.dtype != dtypes.float0 else "float0"
        return f"{name}[{self._dimensions()}]{self._variation()}"

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapedArray({self}{weak})"


_SCALAR_AVALS = {
    (kind, x64): ShapedArray((), dtype if x64 else dtypes._HALVED.get(dtype, dtype), kind is not bool)
    for kind, dtype in dtypes.PYTHON_SCALARS.items()
    for x64 in (False, True)
}


def aval_of(value: Any) -> ShapedArray:
    """The aval of an array, tracer, NumPy value or Python scalar; ``TypeError`` for anything else."""
    aval = getattr(value, "aval", None)
    if aval is not None:
        return aval  # type: ignore[no-any-return]
    scalar = _SCALAR_AVALS.get((type(value), config.enable_x64.value))
    if scalar is not None:
        if type(value) is int and not -(2**31) <= value < 2**31:
            _check_integer(value, scalar.dtype)
        return scalar
    if isinstance(value, (np.ndarray, np.generic)):
        refuse_masked(value)
        return ShapedArray(value.shape, dtypes.canonicalize(check_dtype(value.dtype, value)))
    if isinstance(value, (int, float, complex)):
        return aval_of(dtypes.plain_number(value))
    raise TypeError(f"{value!r} of type {type(value).__name__} is not a valid JAX type: expected an array or a number.")


def _check_integer(value: int, dtype: np.dtype[Any]) -> None:
    info = np.iinfo(dtype)
    if not info.min <= value <= info.max:
        raise OverflowError(
            f"Python integer {value} out of bounds for {dtype.name}: it holds {info.min} to {info.max}."
        )


def check_dtype(dtype: Any, value: Any) -> Any:
    """``dtype`` where arrays can hold it; ``TypeError`` that names ``value``'s type where they cannot."""
    if dtypes.is_array_dtype(dtype):
        return dtype
    kind = type(value).__name__
    raise TypeError(
        f"A {kind} with dtype {dtype} is not a valid JAX array type.  Only arrays of numeric types are supported."
    )


def refuse_masked(value: Any) -> None:
    """``ValueError`` for NumPy's masked arrays: the mask would be lost."""
    if type(value) is not np.ndarray and isinstance(value, np.ma.MaskedArray):
        raise ValueError(
            "numpy masked arrays are not supported as direct inputs to JAX functions. Use arr.filled() to convert the "
            "value to a standard numpy array."
        )


def is_valid(value: Any) -> bool:
    """Whether a primitive accepts ``value``."""
    if getattr(value, "aval", None) is not None or type(dtypes.plain_number(value)) in dtypes.PYTHON_SCALARS:
        return True
    return (
        isinstance(value, (np.ndarray, np.generic))
        and value.dtype != dtypes.float0
        and dtypes.is_array_dtype(value.dtype)
    )
