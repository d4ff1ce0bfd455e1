"""``jax.sharding``: meshes of devices, and how arrays lie on them."""

from jaxlite.core.mesh import AbstractMesh as AbstractMesh, AxisType as AxisType, Mesh as Mesh
from jaxlite.core.mesh_in_use import get_abstract_mesh as get_abstract_mesh
from jaxlite.core.partition_spec import PartitionSpec as PartitionSpec
from jaxlite.core.shardings import (
    NamedSharding as NamedSharding,
    Sharding as Sharding,
    SingleDeviceSharding as SingleDeviceSharding,
)
from jaxlite.lax.layout.resharding import reshard as reshard
from jaxlite.transforms.axis_types import auto_axes as auto_axes, explicit_axes as explicit_axes
from jaxlite.transforms.placing import (
    get_mesh as get_mesh,
    set_mesh as set_mesh,
    use_abstract_mesh as use_abstract_mesh,
)
