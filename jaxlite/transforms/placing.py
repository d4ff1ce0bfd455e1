"""Laying arrays out over a mesh: ``set_mesh``, ``device_put`` to specs, arrays made of parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, final

import numpy as np

from jaxlite.core.array import Array, to_array
from jaxlite.core.avals import aval_of
from jaxlite.core.context import context
from jaxlite.core.device import CPU
from jaxlite.core.errors import refuse
from jaxlite.core.mesh import EMPTY, AbstractMesh, Mesh
from jaxlite.core.mesh_in_use import get_mesh as concrete_mesh, mesh_in_use, named
from jaxlite.core.partition_spec import PartitionSpec
from jaxlite.core.pytree import keystr, tree_flatten, tree_flatten_with_path
from jaxlite.core.shardings import Sharding, SingleDeviceSharding
from jaxlite.core.trace import Tracer
from jaxlite.lax.convert import operand_of
from jaxlite.lax.layout.resharding import check_splits, constrained, for_leaves, laid_out


@final
class set_mesh:
    """Makes ``mesh`` the one that specs speak of, from here on or, as ``with set_mesh(mesh):``, for a block.

    >>> import jaxlite as jax
    >>> with set_mesh(jax.make_mesh((1,), ("x",))):
    ...     jax.sharding.get_mesh().axis_names
    ('x',)
    """

    def __init__(self, mesh: Mesh | None) -> None:
        if mesh is not None and not isinstance(mesh, Mesh):
            raise ValueError(f"set_mesh takes a Mesh, got {mesh!r} of type {type(mesh).__name__}.")
        if context.trace is not None:
            raise ValueError("`set_mesh` can only be used outside of `jax.jit`.")
        self._before = mesh_in_use.value
        mesh_in_use.set(EMPTY if mesh is None else mesh)

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exception: object) -> None:
        mesh_in_use.set(self._before)


@contextmanager
def use_abstract_mesh(mesh: AbstractMesh) -> Iterator[None]:
    """A block in which specs speak of ``mesh``, which has no devices: to trace by."""
    if not isinstance(mesh, AbstractMesh):
        raise ValueError(f"use_abstract_mesh takes an AbstractMesh, got {mesh!r}.")
    with mesh_in_use(mesh):
        yield


def device_put(x: Any, device: Any = None, *, src: Any = None, donate: Any = False, may_alias: Any = None) -> Any:
    """``x`` (a pytree) as arrays on a device, or over a mesh as shardings or specs (a tree prefix) say.

    ``ValueError`` where an array does not split evenly; it names its path, shape, spec and mesh.
    """
    refuse("device_put", "src", src, None, "where an array lies is known from itself")
    leaves, tree = tree_flatten(x)
    paths = [path for path, _ in tree_flatten_with_path(x)[0]]
    targets = for_leaves(device, x, "device_put")
    placed = [_put(leaf, target, keystr(path)) for leaf, target, path in zip(leaves, targets, paths, strict=True)]
    return tree.unflatten(placed)


def _put(leaf: Any, target: Any, path: str) -> Any:
    if isinstance(target, SingleDeviceSharding):
        target = target.device
    if target is None or target is CPU:
        if isinstance(leaf, Tracer):
            return leaf
        array = to_array(operand_of(leaf))
        moved = target is not None and array.aval.sharding is not None
        return array.of_type(array.aval.update(sharding=None)) if moved else array
    if not isinstance(target, (Sharding, PartitionSpec)):
        raise NotImplementedError(
            f"device_put: device={target!r} is not supported: give jax.devices()[0], or a sharding over a mesh."
        )
    sharding = named(target, "device_put")
    value = leaf if isinstance(leaf, Tracer) else to_array(operand_of(leaf))
    check_splits("device_put", path, aval_of(value), sharding)
    if isinstance(value, Tracer):
        return laid_out(value, sharding) if sharding.mesh.explicit_axes else constrained(value, sharding)
    return value.of_type(value.aval.update(sharding=sharding))


def make_array_from_callback(
    shape: Sequence[int],
    sharding: Any,
    data_callback: Callable[[Any], Any],
    *,
    dtype: Any = None,
) -> Array:
    """An array of ``shape`` whose part on each device is ``data_callback(index)``, of its slices.

    >>> import jaxlite as jax
    >>> mesh = jax.make_mesh((1,), ("x",))
    >>> make_array_from_callback((3,), jax.NamedSharding(mesh, jax.P("x")), lambda index: np.arange(3)[index])
    Array([0, 1, 2], dtype=int32)
    """
    whole: np.ndarray[Any, Any] | None = None
    for index in sharding.addressable_devices_indices_map(tuple(shape)).values():
        part = np.asarray(data_callback(index))
        if whole is None:
            whole = np.empty(tuple(shape), dtype or part.dtype)
        if part.shape != whole[index].shape:
            raise ValueError(
                f"make_array_from_callback: the callback gave a part of shape {part.shape} for the index {index}, "
                f"which has shape {whole[index].shape}."
            )
        whole[index] = part
    assert whole is not None
    return device_put(to_array(whole), sharding)  # type: ignore[no-any-return]


def make_array_from_process_local_data(
    sharding: Any, local_data: Any, global_shape: Sequence[int] | None = None
) -> Array:
    """An array over all processes from what this one holds: all of it, as there is one."""
    data = np.asarray(local_data)
    if global_shape is not None and tuple(global_shape) != data.shape:
        raise ValueError(
            f"make_array_from_process_local_data: local data of shape {data.shape} must be the whole, of shape "
            f"{tuple(global_shape)}, as there is one process."
        )
    return device_put(to_array(data), sharding)  # type: ignore[no-any-return]


def make_array_from_single_device_arrays(
    shape: Sequence[int], sharding: Any, arrays: Sequence[Any], *, dtype: Any = None
) -> Array:
    """An array of ``shape`` from its parts, one for each device in the order of ``sharding``'s."""
    places = list(sharding.addressable_devices_indices_map(tuple(shape)).values())
    if len(places) != len(arrays):
        raise ValueError(
            f"make_array_from_single_device_arrays takes a part for each of {len(places)} devices, got {len(arrays)}."
        )
    parts = iter(arrays)
    return make_array_from_callback(shape, sharding, lambda _: np.asarray(next(parts)), dtype=dtype)


def get_mesh() -> Mesh:
    """The mesh in use, with its devices; the empty one where there is none.  Not for traced functions."""
    if context.trace is not None:
        raise ValueError("`get_mesh` can only be used outside of `jax.jit`. Maybe you want `get_abstract_mesh`?")
    return concrete_mesh()
