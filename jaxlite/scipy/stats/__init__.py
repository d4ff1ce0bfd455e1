"""``jax.scipy.stats``: probability distributions, one module each."""

from jaxlite.scipy.stats import norm as norm
