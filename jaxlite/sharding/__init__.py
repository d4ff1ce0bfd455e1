"""``jax.sharding``: how arrays lie on devices.  Meshes and partition specs come with the sharding layer."""

from jaxlite.sharding.sharding import Sharding as Sharding, SingleDeviceSharding as SingleDeviceSharding
