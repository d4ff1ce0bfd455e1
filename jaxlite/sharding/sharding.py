"""Where an array's elements lie: so far, all on one device."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, final


class Sharding(ABC):
    """Base of descriptions of how an array lies on devices."""

    @property
    @abstractmethod
    def device_set(self) -> set[Any]:
        """The devices that hold a part."""

    @property
    @abstractmethod
    def is_fully_replicated(self) -> bool:
        """Whether every device holds the whole."""


@final
class SingleDeviceSharding(Sharding):
    """The whole array on one device."""

    def __init__(self, device: Any) -> None:
        self.device = device

    @property
    def device_set(self) -> set[Any]:
        return {self.device}

    @property
    def is_fully_replicated(self) -> bool:
        return True

    def is_equivalent_to(self, other: Any, ndim: int) -> bool:
        """Whether ``other`` puts an array of ``ndim`` axes in the same way."""
        return bool(self == other)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SingleDeviceSharding) and bool(other.device is self.device)

    def __hash__(self) -> int:
        return hash(("single", self.device.id))

    def __repr__(self) -> str:
        return f"SingleDeviceSharding(device={self.device!r}, memory_kind=device)"
