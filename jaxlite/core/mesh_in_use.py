"""The mesh in use: the one that specs without a mesh speak of, set by ``set_mesh`` or for the length of a block."""

from __future__ import annotations

from typing import Any

from jaxlite.core.config import Flag
from jaxlite.core.mesh import EMPTY, EMPTY_ABSTRACT, AbstractMesh, AnyMesh, Mesh
from jaxlite.core.partition_spec import PartitionSpec
from jaxlite.core.shardings import NamedSharding, Sharding

mesh_in_use = Flag("jaxlite_mesh_in_use", EMPTY, lambda _, mesh: mesh, "The mesh that specs without a mesh speak of.")


def get_mesh() -> Mesh:
    """The mesh in use, with its devices; the empty one where there is none."""
    mesh = mesh_in_use.value
    return mesh if isinstance(mesh, Mesh) else EMPTY


def get_abstract_mesh() -> AbstractMesh:
    """The mesh in use without its devices; the empty one where there is none."""
    mesh: AnyMesh = mesh_in_use.value
    return EMPTY_ABSTRACT if mesh.empty else mesh.abstract_mesh


def named(sharding: Any, what: str) -> NamedSharding:
    """A sharding from one, or from a spec over the mesh in use; ``what`` asked for it."""
    if isinstance(sharding, NamedSharding):
        return sharding
    if isinstance(sharding, PartitionSpec):
        mesh = mesh_in_use.value
        if mesh.empty:
            raise ValueError(
                f"{what} got the spec {sharding} without a mesh: set one by jax.set_mesh(mesh), or give a "
                "NamedSharding(mesh, spec)."
            )
        return NamedSharding(mesh, sharding)
    if isinstance(sharding, Sharding):
        raise NotImplementedError(f"{what} takes a NamedSharding or a PartitionSpec, got {sharding}.")
    raise TypeError(f"{what} takes a NamedSharding or a PartitionSpec, got {sharding!r}.")
