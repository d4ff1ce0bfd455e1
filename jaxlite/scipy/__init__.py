"""``jax.scipy``: SciPy's functions on jaxlite's arrays and tracers."""

from jaxlite.scipy import linalg as linalg, special as special, stats as stats
