"""How exactly matrix products are computed: the names that JAX knows, and the check of those given.

On the CPU all mean the same: products in the operands' own precision.  An unknown name is an error all the same.
"""

from __future__ import annotations

import enum
from typing import Any, final


@final
class Precision(enum.Enum):
    """How exactly products are computed.  On the CPU all are: in the operands' own precision."""

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2


_PRESETS = (
    "ANY_F8_ANY_F8_F32", "ANY_F8_ANY_F8_F32_FAST_ACCUM", "ANY_F8_ANY_F8_ANY", "ANY_F8_ANY_F8_ANY_FAST_ACCUM",
    "F16_F16_F16", "F16_F16_F32", "BF16_BF16_BF16", "BF16_BF16_F32", "BF16_BF16_F32_X3", "BF16_BF16_F32_X6",
    "BF16_BF16_F32_X9", "TF32_TF32_F32", "TF32_TF32_F32_X3", "F32_F32_F32", "F64_F64_F64",
)  # fmt: skip
# What the flag takes, and what an argument takes.
DEFAULT_PRECISIONS = ("default", "high", "highest", "bfloat16", "tensorfloat32", "float32", *_PRESETS)
PRECISIONS = (*DEFAULT_PRECISIONS, "bfloat16_3x", "fastest")


def check_precision(precision: Any) -> None:
    """``ValueError`` unless ``precision`` is one that JAX knows, or a pair of them.

    >>> check_precision(("highest", "default"))
    """
    for value in precision if isinstance(precision, (tuple, list)) and len(precision) == 2 else (precision,):
        if value is not None and not isinstance(value, Precision) and not (type(value) is str and value in PRECISIONS):
            raise ValueError(
                f"Precision argument must be None, a lax.Precision, one of {', '.join(map(repr, PRECISIONS))}, "
                f"or a pair of these; got {precision!r}."
            )
