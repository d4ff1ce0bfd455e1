"""``jax.custom_batching``: functions with batching rules of one's own."""

from jaxlite.transforms.custom_batching import custom_vmap as custom_vmap, sequential_vmap as sequential_vmap
