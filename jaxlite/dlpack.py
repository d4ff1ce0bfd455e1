"""``jax.dlpack``: arrays shared with other libraries."""

from __future__ import annotations

from typing import Any

from jaxlite.core.dlpack import is_supported_dtype as is_supported_dtype
from jaxlite.numpy import from_dlpack as _from_dlpack


def from_dlpack(external_array: Any, device: Any = None, copy: bool | None = None) -> Any:
    """An array on the memory of ``external_array``: ``jax.numpy.from_dlpack``.

    >>> import numpy as np
    >>> from_dlpack(np.arange(3.0, dtype=np.float32))
    Array([0., 1., 2.], dtype=float32)
    """
    return _from_dlpack(external_array, device=device, copy=copy)
