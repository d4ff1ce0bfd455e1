"""Mesh and AbstractMesh: named axes over devices, and how each axis is used: explicitly, automatically, manually.

An ``AbstractMesh`` has the names, lengths and types alone: it is what types speak of.  A ``Mesh`` has the devices too.
"""

from __future__ import annotations

import enum
import math
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, final

import numpy as np

from jaxlite.core.device import device_of


@final
class AxisType(enum.Enum):
    """How shardings over a mesh axis come about: the compiler chooses (``Auto``), types say and operations follow
    (``Explicit``), or the program is written for one device (``Manual``)."""

    Auto = "auto"
    Explicit = "explicit"
    Manual = "manual"

    def __repr__(self) -> str:
        return self.name


class AnyMesh(ABC):
    """Base: names, lengths and types of axes."""

    axis_names: tuple[Any, ...]
    axis_types: tuple[AxisType, ...]

    @property
    @abstractmethod
    def axis_sizes(self) -> tuple[int, ...]:
        """The lengths of the axes."""

    @property
    @abstractmethod
    def abstract_mesh(self) -> AbstractMesh:
        """The mesh without its devices."""

    @property
    def shape(self) -> OrderedDict[Any, int]:
        """The length of each axis by its name."""
        return OrderedDict(zip(self.axis_names, self.axis_sizes, strict=True))

    @property
    def shape_tuple(self) -> tuple[tuple[Any, int], ...]:
        """Names and lengths in order."""
        return tuple(zip(self.axis_names, self.axis_sizes, strict=True))

    @property
    def size(self) -> int:
        """The number of devices; 0 of the empty mesh."""
        return math.prod(self.axis_sizes) if self.axis_names else 0

    @property
    def empty(self) -> bool:
        """Whether there are no axes."""
        return not self.axis_names

    def axes_of_type(self, kind: AxisType) -> tuple[Any, ...]:
        """The names of the axes of a type."""
        return tuple(n for n, t in zip(self.axis_names, self.axis_types, strict=True) if t is kind)

    @property
    def auto_axes(self) -> tuple[Any, ...]:
        """The automatic axes."""
        return self.axes_of_type(AxisType.Auto)

    @property
    def explicit_axes(self) -> tuple[Any, ...]:
        """The explicit axes."""
        return self.axes_of_type(AxisType.Explicit)

    @property
    def manual_axes(self) -> tuple[Any, ...]:
        """The manual axes."""
        return self.axes_of_type(AxisType.Manual)

    @property
    def are_all_axes_auto(self) -> bool:
        """Whether there are axes, all automatic."""
        return bool(self.axis_names) and self.auto_axes == self.axis_names

    @property
    def are_all_axes_explicit(self) -> bool:
        """Whether there are axes, all explicit."""
        return bool(self.axis_names) and self.explicit_axes == self.axis_names

    @property
    def are_all_axes_manual(self) -> bool:
        """Whether there are axes, all manual."""
        return bool(self.axis_names) and self.manual_axes == self.axis_names

    @property
    def are_all_axes_explicit_or_manual(self) -> bool:
        """Whether there are axes, none of them automatic."""
        return bool(self.axis_names) and not self.auto_axes

    def _axes_text(self) -> str:
        named = [f"{name!r}: {size}" for name, size in self.shape_tuple]
        return ", ".join([*named, f"axis_types={_types_text(self.axis_types)}"])


@final
class AbstractMesh(AnyMesh):
    """Axes without devices; explicit ones unless ``axis_types`` says otherwise.

    >>> AbstractMesh((2, 4), ("x", "y"))
    AbstractMesh('x': 2, 'y': 4, axis_types=(Explicit, Explicit))
    """

    def __init__(
        self,
        axis_sizes: Sequence[int],
        axis_names: Any,
        axis_types: Any = None,
        *,
        abstract_device: str | None = None,
    ) -> None:
        self._sizes = tuple(int(n) for n in axis_sizes)
        self.axis_names = _checked_names(axis_names)
        if len(self._sizes) != len(self.axis_names):
            raise ValueError(
                f"AbstractMesh takes a length for each axis name, got axis_sizes={self._sizes} and "
                f"axis_names={self.axis_names}."
            )
        self.axis_types = _checked_types("AbstractMesh", axis_types, self.axis_names, AxisType.Explicit)
        self.abstract_device = abstract_device  # the kind of device of the mesh that it comes from

    @property
    def axis_sizes(self) -> tuple[int, ...]:
        return self._sizes

    @property
    def abstract_mesh(self) -> AbstractMesh:
        return self

    def update_axis_types(self, changes: dict[Any, AxisType]) -> AbstractMesh:
        """A copy in which these axes have other types."""
        return self.update(axis_types=_changed(self, changes))

    def update(self, **changes: Any) -> AbstractMesh:
        """A copy with ``axis_sizes``, ``axis_names`` or ``axis_types`` replaced."""
        fields = {k: changes.pop(k, getattr(self, k)) for k in ("axis_sizes", "axis_names", "axis_types")}
        return AbstractMesh(**fields, abstract_device=self.abstract_device, **changes)

    def _key(self) -> tuple[Any, ...]:
        return self._sizes, self.axis_names, self.axis_types

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbstractMesh) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        if self.empty:
            return "AbstractMesh((), axis_types=())"
        kind = self.abstract_device
        device = f", device_kind={kind}, num_cores=None, platform={kind}" if kind else ""
        return f"AbstractMesh({self._axes_text()}{device})"


@final
class Mesh(AnyMesh):
    """Devices in an array with named axes; automatic ones unless ``axis_types`` says otherwise.

    >>> import jaxlite as jax
    >>> Mesh(jax.devices()[:1], "x")
    Mesh(axis_sizes=(1,), axis_names=('x',), axis_types=(Auto,))
    """

    def __init__(self, devices: Any, axis_names: Any, *, axis_types: Any = None) -> None:
        array = np.array(devices, dtype=object)
        array.flags.writeable = False
        self.devices = array
        self.axis_names = _checked_names(axis_names)
        if array.ndim != len(self.axis_names):
            raise ValueError(
                "Mesh requires the ndim of its first argument (`devices`) to equal the length of its second argument "
                f"(`axis_names`), but got devices.ndim == {array.ndim} and len(axis_names) == {len(self.axis_names)}."
            )
        self.axis_types = _checked_types("Mesh", axis_types, self.axis_names, AxisType.Auto)

    @property
    def axis_sizes(self) -> tuple[int, ...]:
        return tuple(self.devices.shape) if self.axis_names else ()

    @property
    def abstract_mesh(self) -> AbstractMesh:
        kind = self.devices.flat[0].device_kind if self.size else None
        return AbstractMesh(self.axis_sizes, self.axis_names, self.axis_types, abstract_device=kind)

    @property
    def device_ids(self) -> np.ndarray[Any, Any]:
        """The devices' numbers, in the mesh's shape."""
        return np.array([d.id for d in self.devices.flat], int).reshape(self.devices.shape)

    @property
    def local_devices(self) -> list[Any]:
        """The devices of this process."""
        return [d for d in self.devices.flat if d.process_index == 0]

    @property
    def local_mesh(self) -> Mesh:
        """The part of the mesh that this process holds: all of it, as there is one process."""
        return self

    @property
    def is_multi_process(self) -> bool:
        """Whether devices of several processes are in it."""
        return len({d.process_index for d in self.devices.flat}) > 1

    def update(self, **changes: Any) -> Mesh:
        """A copy with ``devices``, ``axis_names`` or ``axis_types`` replaced."""
        fields = {k: changes.pop(k, getattr(self, k)) for k in ("devices", "axis_names", "axis_types")}
        return Mesh(**fields, **changes)

    def _key(self) -> tuple[Any, ...]:
        return tuple(self.devices.flat), self.devices.shape, self.axis_names, self.axis_types

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Mesh) and self._key() == other._key())

    def __hash__(self) -> int:
        return hash(self._key())

    def __reduce__(self) -> Any:
        return _rebuild, (self.device_ids, self.axis_names, self.axis_types)

    def __repr__(self) -> str:
        types = f", axis_types={_types_text(self.axis_types)}" if self.axis_names else ""
        return f"Mesh(axis_sizes={self.axis_sizes}, axis_names={self.axis_names}{types})"

    def __str__(self) -> str:
        return f"Mesh({self._axes_text()})" if self.axis_names else "Mesh()"


def _rebuild(ids: np.ndarray[Any, Any], names: tuple[Any, ...], types: tuple[AxisType, ...]) -> Mesh:
    devices = np.array([device_of(int(n)) for n in ids.flat], object).reshape(ids.shape)
    return Mesh(devices, names, axis_types=types)


def _checked_names(names: Any) -> tuple[Any, ...]:
    given = (names,) if isinstance(names, str) else tuple(names)
    if any(n is None for n in given):
        raise ValueError(f"Mesh axis names cannot be None. Got: {given}")
    twice = [n for n in dict.fromkeys(given) if given.count(n) > 1]
    if twice:
        raise ValueError(
            f"Mesh axis names must differ, got {given}, in which {twice[0]!r} stands {given.count(twice[0])} times."
        )
    return given


def _checked_types(what: str, types: Any, names: tuple[Any, ...], default: AxisType) -> tuple[AxisType, ...]:
    if types is None:
        return (default,) * len(names)
    given = (types,) if isinstance(types, (AxisType, str)) else tuple(types)
    if not all(isinstance(t, AxisType) for t in given):
        raise TypeError(
            f"axis_types passed to {what} must be of type `jax.sharding.AxisType`. Got {given} of type "
            f"{tuple(type(t) for t in given)}"
        )
    if len(given) != len(names):
        raise ValueError(
            f"Number of axis names should match the number of axis_types. Got axis_names={names} and axis_types={given}"
        )
    return given


def _changed(mesh: AnyMesh, changes: dict[Any, AxisType]) -> tuple[AxisType, ...]:
    unknown = [n for n in changes if n not in mesh.axis_names]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is no axis of the mesh, whose axes are {mesh.axis_names}.")
    return tuple(changes.get(n, t) for n, t in zip(mesh.axis_names, mesh.axis_types, strict=True))


def _types_text(types: Sequence[AxisType]) -> str:
    return f"({', '.join(map(repr, types))}{',' if len(types) == 1 else ''})"


EMPTY_ABSTRACT = AbstractMesh((), ())
EMPTY = Mesh(None, ())
