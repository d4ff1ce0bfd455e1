"""``jax.ref``: mutable arrays."""

from jaxlite.core.ref import AbstractRef as AbstractRef, Ref as Ref
from jaxlite.numpy.references import (
    addupdate as addupdate,
    empty_ref as empty_ref,
    free_ref as free_ref,
    freeze as freeze,
    get as get,
    new_ref as new_ref,
    set as set,
    swap as swap,
)
