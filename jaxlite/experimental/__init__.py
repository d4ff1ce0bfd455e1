"""``jax.experimental``: what JAX keeps there under the same names."""

from jaxlite.experimental import checkify as checkify, jet as jet, mesh_utils as mesh_utils
from jaxlite.transforms.callback import io_callback as io_callback
