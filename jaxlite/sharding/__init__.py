"""``jax.sharding``: meshes of devices, and how arrays lie on them."""

from jaxlite.core.mesh import AbstractMesh as AbstractMesh, AxisType as AxisType, Mesh as Mesh
from jaxlite.core.partition_spec import PartitionSpec as PartitionSpec
from jaxlite.core.shardings import (
    NamedSharding as NamedSharding,
    Sharding as Sharding,
    SingleDeviceSharding as SingleDeviceSharding,
)
