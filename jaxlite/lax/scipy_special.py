"""The one door to ``scipy.special``: NumPy's side of functions that NumPy lacks, imported at first use."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np


def special(name: str, *arrays: np.ndarray[Any, Any]) -> Any:
    """``scipy.special.<name>`` of the arrays; 16-bit floats go through float32."""
    function = getattr(importlib.import_module("scipy.special"), name)
    return function(*(a.astype(np.float32) if a.dtype.itemsize == 2 else a for a in arrays))
