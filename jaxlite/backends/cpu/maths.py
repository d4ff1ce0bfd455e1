"""The elementary functions, by opcode. Each takes `Instructions` and float32 or float64 words.

At most 2 ulp over the whole range (pow, lgamma, digamma, erfc: see their modules), special values
as IEEE has them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from jaxlite.backends.cpu import (
    maths_error,
    maths_exp,
    maths_gamma,
    maths_huge,
    maths_log,
    maths_power,
    maths_trig,
)
from jaxlite.backends.cpu.maths_common import multiply_high
from jaxlite.backends.cpu.words import Word

Function: TypeAlias = Callable[..., Word]

remainder = maths_huge.remainder

FUNCTIONS: dict[str, Function] = {
    "exp": maths_exp.exp,
    "exp2": maths_exp.exp2,
    "expm1": maths_exp.expm1,
    "sinh": maths_exp.sinh,
    "cosh": maths_exp.cosh,
    "tanh": maths_exp.tanh,
    "log": maths_log.log,
    "log2": maths_log.log2,
    "log1p": maths_log.log1p,
    "asinh": maths_log.asinh,
    "acosh": maths_log.acosh,
    "atanh": maths_log.atanh,
    "sin": maths_trig.sin,
    "cos": maths_trig.cos,
    "tan": maths_trig.tan,
    "asin": maths_trig.asin,
    "acos": maths_trig.acos,
    "atan": maths_trig.atan,
    "atan2": maths_trig.atan2,
    "pow": maths_power.power,
    "cbrt": maths_power.cbrt,
    "erf": maths_error.erf,
    "erfc": maths_error.erfc,
    "erf_inv": maths_error.erf_inv,
    "lgamma": maths_gamma.lgamma,
    "digamma": maths_gamma.digamma,
}

__all__ = ["FUNCTIONS", "multiply_high", "remainder"]
