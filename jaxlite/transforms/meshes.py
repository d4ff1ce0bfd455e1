"""make_mesh: the devices at hand, arranged with named axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxlite.core.mesh import AxisType, Mesh
from jaxlite.transforms.device import devices as all_devices


def make_mesh(
    axis_shapes: Sequence[int], axis_names: Any, axis_types: Any = None, *, devices: Sequence[Any] | None = None
) -> Mesh:
    """A mesh of these lengths over the first devices (or over ``devices``); its axes are explicit unless
    ``axis_types`` says otherwise.  ``ValueError`` where there are too few devices.

    >>> make_mesh((1,), ("x",))
    Mesh(axis_sizes=(1,), axis_names=('x',), axis_types=(Explicit,))
    """
    shape = tuple(int(n) for n in axis_shapes)
    names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
    given = list(all_devices() if devices is None else devices)
    count = math.prod(shape)
    if any(n < 1 for n in shape):
        raise ValueError(f"make_mesh takes lengths from 1, got {shape}.")
    if len(given) < count:
        raise ValueError(
            f"Number of devices {len(given)} must be >= the product of mesh_shape {shape}: for more devices on the CPU "
            f"set jax_num_cpu_devices to {count} before anything else (JAX_NUM_CPU_DEVICES={count} in the environment)."
        )
    types = (AxisType.Explicit,) * len(names) if axis_types is None else axis_types
    return Mesh(np.array(given[:count], object).reshape(shape), names, axis_types=types)
