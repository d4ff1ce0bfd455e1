"""``jax.sharding``: how arrays lie on a mesh of devices.  Its names come with the sharding layer."""
