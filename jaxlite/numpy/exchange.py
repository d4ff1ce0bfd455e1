"""Taking arrays from other libraries: ``from_dlpack``."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxlite.core import dtypes
from jaxlite.core.array import from_numpy
from jaxlite.core.dlpack import tensor
from jaxlite.lax.placed import placed


@placed
def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Any:
    """An array on the memory of another library's, or of a copy where it cannot be used as it lies.

    ``copy=True`` always copies; ``copy=False`` never does, and raises ``ValueError`` where it would have to: where
    elements do not follow each other in row-major order, or are 64-bit numbers while those are off.  Nobody may write
    to memory that is shared.

    >>> import numpy as np
    >>> from_dlpack(np.arange(3.0, dtype=np.float32))
    Array([0., 1., 2.], dtype=float32)
    """
    view = tensor(x, copy)
    wanted = dtypes.canonicalize(view.dtype)
    fits = view.dtype == wanted and view.flags.c_contiguous and view.flags.aligned
    if copy is False and not fits:
        why = (
            f"{view.dtype} becomes {wanted} while 64-bit types are off (jax_enable_x64)"
            if view.dtype != wanted
            else f"elements lie {view.strides} bytes apart, not one after another in row-major order"
        )
        raise ValueError(f"from_dlpack: {why}, which needs a copy, but copy=False was given: leave it out.")
    if not fits or copy:
        with np.errstate(all="ignore"):  # what overflows becomes an infinity, as elsewhere
            view = np.array(view, wanted, order="C")
    return from_numpy(view)
