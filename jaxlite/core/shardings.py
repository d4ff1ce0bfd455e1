"""Shardings: which part of an array lies on which device.

``NamedSharding`` is a mesh and a :class:`PartitionSpec`; ``SingleDeviceSharding`` one device.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, final

import numpy as np

from jaxlite.core.mesh import AnyMesh, Mesh
from jaxlite.core.partition_spec import PartitionSpec

Index = tuple[slice, ...]


@final
class IndivisibleError(ValueError):
    """An axis is to be split into parts that do not come out even."""


@final
class DuplicateSpecError(ValueError):
    """A mesh axis is to split two axes of one array."""


class Sharding(ABC):
    """Base of descriptions of how an array lies on devices."""

    memory_kind: str | None = "device"

    @property
    @abstractmethod
    def device_set(self) -> set[Any]:
        """The devices that hold a part."""

    @property
    @abstractmethod
    def is_fully_replicated(self) -> bool:
        """Whether every device holds the whole."""

    @abstractmethod
    def devices_indices_map(self, global_shape: Sequence[int]) -> Mapping[Any, Index]:
        """For each device, the slices of an array of this shape that it holds."""

    @abstractmethod
    def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of each device's part of an array of this shape; ``ValueError`` where it does not come out even."""

    @property
    def num_devices(self) -> int:
        """How many devices hold a part."""
        return len(self.device_set)

    @property
    def addressable_devices(self) -> set[Any]:
        """Those of the devices that are this process's: all of them."""
        return self.device_set

    @property
    def is_fully_addressable(self) -> bool:
        """Whether this process holds every part."""
        return True

    @property
    def has_addressable_devices(self) -> bool:
        """Whether this process holds a part."""
        return bool(self.device_set)

    def addressable_devices_indices_map(self, global_shape: Sequence[int]) -> Mapping[Any, Index]:
        """:meth:`devices_indices_map` of this process's devices."""
        return self.devices_indices_map(global_shape)

    def is_equivalent_to(self, other: Any, ndim: int) -> bool:
        """Whether ``other`` puts every array of ``ndim`` axes in the same way."""
        if self == other:
            return True
        if not isinstance(other, Sharding) or self.device_set != other.device_set:
            return False
        shape = (math.lcm(self.num_devices, 1),) * ndim  # every way to split it comes out even
        try:
            return self.devices_indices_map(shape) == other.devices_indices_map(shape)
        except ValueError:
            return False


@final
class SingleDeviceSharding(Sharding):
    """The whole array on one device."""

    def __init__(self, device: Any, *, memory_kind: str | None = None) -> None:
        self.device = device
        self.memory_kind = memory_kind or "device"

    @property
    def device_set(self) -> set[Any]:
        return {self.device}

    @property
    def is_fully_replicated(self) -> bool:
        return True

    def devices_indices_map(self, global_shape: Sequence[int]) -> Mapping[Any, Index]:
        return {self.device: (slice(None),) * len(global_shape)}

    def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]:
        return tuple(global_shape)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SingleDeviceSharding) and bool(other.device is self.device)

    def __hash__(self) -> int:
        return hash(("single", self.device.id))

    def __repr__(self) -> str:
        return f"SingleDeviceSharding(device={self.device!r}, memory_kind={self.memory_kind})"


@final
class NamedSharding(Sharding):
    """Arrays split over a mesh as ``spec`` says; whole along mesh axes that it does not name.

    ``ValueError`` where the spec names an axis that the mesh does not have, or one axis twice.

    >>> import jaxlite as jax
    >>> NamedSharding(Mesh(jax.devices()[:1], "x"), PartitionSpec("x")).shard_shape((8, 2))
    (8, 2)
    """

    def __init__(self, mesh: AnyMesh, spec: PartitionSpec, *, memory_kind: str | None = None) -> None:
        if not isinstance(mesh, AnyMesh):
            raise TypeError(f"NamedSharding takes a mesh, got {mesh!r}: make one by jax.make_mesh((n,), ('x',)).")
        if not isinstance(spec, PartitionSpec):
            raise TypeError(f"NamedSharding takes a PartitionSpec, got {spec!r}: write P('x', None), or P() for none.")
        self.mesh, self.spec = mesh, spec
        self.memory_kind = memory_kind or ("device" if isinstance(mesh, Mesh) else None)
        check_spec(mesh, spec)

    @property
    def device_set(self) -> set[Any]:
        return set(self._devices())

    @property
    def is_fully_replicated(self) -> bool:
        return all(self.mesh.shape[name] == 1 for name in self.spec.axes)

    @property
    def replicated_axes(self) -> frozenset[Any]:
        """The mesh axes along which every device holds the same."""
        return frozenset(self.mesh.axis_names) - set(self.spec.axes) - self.spec.unreduced

    def without_axis(self, axis: int) -> NamedSharding:
        """That of arrays without ``axis``."""
        return NamedSharding(self.mesh, PartitionSpec(*[e for d, e in enumerate(self.spec) if d != axis]))

    def with_axis(self, axis: int, entry: Any = None) -> NamedSharding:
        """That of arrays with one more axis, which is whole unless ``entry`` says otherwise."""
        entries = [*self.spec, *[None] * (axis - len(self.spec))]
        entries.insert(axis, entry)
        return NamedSharding(self.mesh, PartitionSpec(*entries))

    def explicit_text(self, rank: int) -> list[str]:
        """For each of ``rank`` axes, the explicit mesh axes as types print them."""
        explicit = self.mesh.explicit_axes
        named = [[str(n) for n in self.spec.axes_of(d) if n in explicit] for d in range(rank)]
        return [names[0] if len(names) == 1 else f"({','.join(names)})" if names else "" for names in named]

    def update(self, **changes: Any) -> NamedSharding:
        """A copy with ``mesh``, ``spec`` or ``memory_kind`` replaced."""
        fields = {"mesh": self.mesh, "spec": self.spec, "memory_kind": self.memory_kind, **changes}
        return NamedSharding(fields["mesh"], fields["spec"], memory_kind=fields["memory_kind"])

    def with_memory_kind(self, kind: str) -> NamedSharding:
        """A copy in another kind of memory, of which there is one."""
        return self.update(memory_kind=kind)

    def parts(self, rank: int) -> tuple[int, ...]:
        """Into how many parts each of ``rank`` axes is split."""
        if len(self.spec) > rank:
            raise ValueError(
                f"Sharding {self} has {len(self.spec)} entries, more than the {rank} axes of the array: "
                "leave the last ones out."
            )
        sizes = self.mesh.shape
        return tuple([math.prod([sizes[name] for name in self.spec.axes_of(d)]) for d in range(rank)])

    def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]:
        shape = tuple(global_shape)
        parts = self.parts(len(shape))
        for axis, (length, count) in enumerate(zip(shape, parts, strict=True)):
            if length % count:
                raise IndivisibleError(
                    f"{self} implies that array axis {axis} is partitioned {count} times, but the dimension size is "
                    f"{length} (full shape: {shape}, per-dimension tiling factors: {parts} should evenly divide the "
                    "shape)"
                )
        return tuple(length // count for length, count in zip(shape, parts, strict=True))

    def devices_indices_map(self, global_shape: Sequence[int]) -> Mapping[Any, Index]:
        shape = tuple(global_shape)
        part, counts = self.shard_shape(shape), self.parts(len(shape))
        places = np.indices(self.mesh.axis_sizes).reshape(len(self.mesh.axis_names), -1).T
        out: dict[Any, Index] = {}
        for device, place in zip(self._devices(), places, strict=True):
            at = dict(zip(self.mesh.axis_names, place.tolist(), strict=True))
            out[device] = tuple(
                [self._slice(at, d, part[d]) if counts[d] > 1 else slice(None) for d in range(len(shape))]
            )
        return out

    def _slice(self, at: Mapping[Any, int], axis: int, length: int) -> slice:
        """The part of an array axis that the device at these mesh coordinates holds."""
        number = 0
        for name in self.spec.axes_of(axis):
            number = number * self.mesh.shape[name] + at[name]
        return slice(number * length, (number + 1) * length)

    def _devices(self) -> list[Any]:
        if not isinstance(self.mesh, Mesh):
            raise ValueError(f"{self} has no devices: its mesh is abstract.")
        return list(self.mesh.devices.flat)

    def check_compatible_aval(self, shape: Sequence[int]) -> None:
        """``ValueError`` where an array of this shape cannot be split so."""
        self.parts(len(shape))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NamedSharding) and self.mesh == other.mesh and self.spec == other.spec

    def __hash__(self) -> int:
        return hash((self.mesh, self.spec))

    def __reduce__(self) -> Any:
        return NamedSharding, (self.mesh, self.spec)

    def __repr__(self) -> str:
        kind = f", memory_kind={self.memory_kind}" if self.memory_kind else ""
        return f"NamedSharding(mesh={self.mesh!s}, spec={self.spec}{kind})"


def check_spec(mesh: AnyMesh, spec: PartitionSpec) -> None:
    """``ValueError`` where ``spec`` names what ``mesh`` does not have, or an axis twice."""
    named = [*spec.axes, *sorted(spec.unreduced, key=repr), *sorted(spec.reduced, key=repr)]
    for name in named:
        if name not in mesh.axis_names:
            raise ValueError(f"Resource axis: {name} of {spec} is not found in mesh: {mesh.axis_names}.")
    for name in named:
        if named.count(name) > 1:
            raise DuplicateSpecError(
                "A single NamedSharding spec specification can map every mesh axis to at most one positional "
                f"dimension, but {spec} has duplicate entries for `{name}`"
            )
