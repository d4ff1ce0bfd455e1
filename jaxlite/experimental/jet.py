"""``jax.experimental.jet``: Taylor mode."""

from jaxlite.transforms.taylor import fact as fact, jet as jet
