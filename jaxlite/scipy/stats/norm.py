"""The normal distribution."""

from __future__ import annotations

import math
from typing import Any

from jaxlite import numpy as jnp
from jaxlite.scipy.special import erfinv, ndtr


def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """Logarithm of the density, -((x - loc) / scale)^2 / 2 - log(scale sqrt(2 pi))."""
    z = (jnp.asarray(x) - loc) / scale
    return -0.5 * z * z - jnp.log(scale * jnp.asarray(1.0)) - 0.5 * math.log(2 * math.pi)


def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density."""
    return jnp.exp(logpdf(x, loc, scale))


def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of a value at most ``x``."""
    return ndtr((jnp.asarray(x) - loc) / scale)


def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of a value above ``x``."""
    return ndtr(-(jnp.asarray(x) - loc) / scale)


def ppf(q: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The value that is exceeded with probability ``1 - q``."""
    return loc + scale * math.sqrt(2) * erfinv(2 * jnp.asarray(q) - 1)


def isf(q: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The value that is exceeded with probability ``q``."""
    return loc - scale * math.sqrt(2) * erfinv(2 * jnp.asarray(q) - 1)
