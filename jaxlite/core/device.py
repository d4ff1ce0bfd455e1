"""Devices: the CPU, which computes, and more that stand for parts of it; and the check of what asks for another.


`check_placement` stands in every function with a parameter ``device``, ``sharding`` or ``out_sharding``: it lets pass
what means the CPU and refuses the rest, for such a parameter would otherwise be ignored in silence.
"""

from __future__ import annotations

import functools
from typing import Any, final


@final
class Device:
    """A device that computes."""

    platform = "cpu"
    device_kind = "cpu"

    def __init__(self, number: int) -> None:
        self.id = number
        self.process_index = 0

    def __repr__(self) -> str:
        return f"CpuDevice(id={self.id})"

    def __str__(self) -> str:
        return f"TFRT_CPU_{self.id}"

    def __reduce__(self) -> Any:
        return device_of, (self.id,)


@functools.cache
def device_of(number: int) -> Device:
    """The device with this number: one object each."""
    return Device(number)


CPU = device_of(0)
ALIGNMENT = 64  # bytes: of every array and workspace that jaxlite allocates


def check_placement(function: str, **given: Any) -> None:
    """``NotImplementedError`` unless every value is None, the CPU, or a sharding that lies on it alone."""
    for parameter, value in given.items():
        if value is None or value is CPU or getattr(value, "device_set", None) == {CPU}:
            continue
        raise NotImplementedError(
            f"{function}: {parameter}={value!r} is not supported: all arrays lie on the one CPU. "
            f"Leave {parameter} out, or give jax.devices()[0]."
        )
