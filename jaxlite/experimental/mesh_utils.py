"""Arrays of devices for meshes.  Devices of one machine are alike, so they are taken in their order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxlite.transforms.device import devices as all_devices


def create_device_mesh(
    mesh_shape: Sequence[int],
    devices: Sequence[Any] | None = None,
    *,
    contiguous_submeshes: bool = False,
    allow_split_physical_axes: bool = False,
) -> np.ndarray[Any, Any]:
    """The devices as an array of ``mesh_shape``; ``ValueError`` unless there are just as many.  The keywords speak of
    networks that a CPU has not.

    >>> create_device_mesh((1,)).shape
    (1,)
    """
    del contiguous_submeshes, allow_split_physical_axes
    given = list(all_devices() if devices is None else devices)
    if math.prod(mesh_shape) != len(given):
        raise ValueError(
            f"Number of devices {len(given)} must equal the product of mesh_shape {tuple(mesh_shape)}: give as many "
            "by devices=, or set jax_num_cpu_devices before anything else."
        )
    return np.array(given, object).reshape(tuple(mesh_shape))


def create_hybrid_device_mesh(
    mesh_shape: Sequence[int],
    dcn_mesh_shape: Sequence[int],
    devices: Sequence[Any] | None = None,
    *,
    process_is_granule: bool = False,
    should_sort_granules_by_key: bool = True,
    allow_split_physical_axes: bool = False,
) -> np.ndarray[Any, Any]:
    """Devices of several granules (here: processes): along each axis ``dcn_mesh_shape`` granules, each of
    ``mesh_shape`` devices."""
    del process_is_granule, should_sort_granules_by_key, allow_split_physical_axes
    given = list(all_devices() if devices is None else devices)
    granules: dict[int, list[Any]] = {}
    for device in given:
        granules.setdefault(device.process_index, []).append(device)
    if len(granules) != math.prod(dcn_mesh_shape):
        raise ValueError(
            f"Number of slices {len(granules)} must equal the product of dcn_mesh_shape {tuple(dcn_mesh_shape)}."
        )
    blocks = np.empty(len(granules), object)
    for number, part in enumerate(granules.values()):
        blocks[number] = create_device_mesh(mesh_shape, part)
    return np.array(np.block(blocks.reshape(tuple(dcn_mesh_shape)).tolist()), object)
