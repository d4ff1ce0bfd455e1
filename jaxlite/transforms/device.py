"""Devices: the CPU, or as many that stand for parts of it as are asked for; and moving values to it and back."""

from __future__ import annotations

import functools
import os
import re
from typing import Any

import numpy as np

from jaxlite.core import config, dtypes
from jaxlite.core.array import Array
from jaxlite.core.avals import ShapedArray, aval_of
from jaxlite.core.device import Device, device_of
from jaxlite.core.errors import refuse
from jaxlite.core.pytree import tree_map
from jaxlite.core.ref import AbstractRef, Ref
from jaxlite.lax.convert import operand_of


def devices(backend: str | None = None) -> list[Device]:
    """The devices of ``backend``; ``RuntimeError`` where jaxlite has none of that kind."""
    if backend not in (None, "cpu"):
        raise RuntimeError(f"Unknown backend {backend}: jaxlite runs on 'cpu'.")
    asked, count = _settled()
    if config.num_cpu_devices.value != asked:
        raise RuntimeError(
            f"jax_num_cpu_devices was set to {config.num_cpu_devices.value} after devices were used, of which there "
            f"are {count}: set it before anything else."
        )
    return [device_of(number) for number in range(count)]


@functools.cache
def _settled() -> tuple[int | None, int]:
    """What ``jax_num_cpu_devices`` was when devices were first used, and how many there are since: as many as it says,
    or XLA's flag for it in ``XLA_FLAGS``, else one."""
    asked = config.num_cpu_devices.value
    found = re.findall(r"--xla_force_host_platform_device_count=(\d+)", os.environ.get("XLA_FLAGS", ""))
    return asked, asked or max(int(found[-1]) if found else 1, 1)


def local_devices(
    process_index: int | None = None, backend: str | None = None, host_id: int | None = None
) -> list[Device]:
    """The devices of this process."""
    refuse("local_devices", "host_id", host_id, None, "it is the old name of process_index")
    if process_index not in (None, 0):
        raise ValueError(f"Unknown process_index {process_index}: there is one process, 0.")
    return devices(backend)


def device_count(backend: str | None = None) -> int:
    """The number of devices."""
    return len(devices(backend))


def local_device_count(backend: str | None = None) -> int:
    """The number of devices of this process."""
    return len(devices(backend))


def default_backend() -> str:
    """The platform that arrays are put on by default."""
    return "cpu"


def process_index(backend: str | None = None) -> int:
    """The number of this process: 0."""
    return devices(backend)[0].process_index


def process_indices(backend: str | None = None) -> list[int]:
    """The numbers of all processes: 0 alone."""
    return sorted({device.process_index for device in devices(backend)})


def process_count(backend: str | None = None) -> int:
    """The number of processes: 1."""
    return len({device.process_index for device in devices(backend)})


def device_get(x: Any) -> Any:
    """``x`` (a pytree) as NumPy arrays."""

    def get(leaf: Any) -> Any:
        if isinstance(leaf, Array):
            return leaf if dtypes.is_key(leaf.dtype) else np.asarray(leaf)
        return leaf

    return tree_map(get, x)


def copy_to_host_async(x: Any) -> Any:
    """``x`` (a pytree): its arrays lie in host memory."""
    return x


def block_until_ready(x: Any) -> Any:
    """``x``, when all its arrays are there: results are there when a call returns."""
    return x


def typeof(x: Any) -> ShapedArray | AbstractRef:
    """The type of an array as the program sees it.

    >>> typeof(1.0)
    ShapedArray(float32[], weak_type=True)
    """
    return AbstractRef(x.type) if type(x) is Ref else aval_of(operand_of(x))
