"""``jax.typing``: names for annotations."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxlite.core.array_type import Array as Array

ArrayLike = Array | np.ndarray | np.bool_ | np.number | bool | int | float | complex
DTypeLike = Any
