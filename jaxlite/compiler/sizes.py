"""Sizes: a value must be addressable, so that index arithmetic in 64 bits is enough.

In: a jaxpr.  Out: nothing, or ``DoesNotFitError`` that names the equation's line, the shape and the bytes.
"""

from __future__ import annotations

from jaxlite.core.avals import ShapedArray
from jaxlite.core.errors import DoesNotFitError
from jaxlite.core.jaxpr import Jaxpr, subjaxprs

MOST = 1 << 62  # bytes: half of what 64 bits can count, so that sums of two indices do not overflow


def refuse_overflow(jaxpr: Jaxpr) -> None:
    """``DoesNotFitError`` if some value of the program, loops and branches included, has too many bytes to count."""
    for eqn in jaxpr.eqns:
        for var in eqn.outvars:
            aval = var.aval
            if isinstance(aval, ShapedArray) and aval.nbytes >= MOST:
                line = eqn.source.summary()
                raise DoesNotFitError(
                    f"RESOURCE_EXHAUSTED: Out of memory: {eqn.primitive.name}"
                    + (f" at {line}" if line else "")
                    + f" gives {aval.short()}, {aval.nbytes:,} bytes; no array can have 2**62 bytes or more."
                )
        for _, inner in subjaxprs(eqn.params):
            refuse_overflow(inner.jaxpr)
