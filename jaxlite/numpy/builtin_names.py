"""The functions that Python has builtins of the same name for, under that name; and ``ndarray``."""

from __future__ import annotations

from jaxlite.core.array_type import Array
from jaxlite.numpy.reductions import all_, any_, max_, min_, sum_
from jaxlite.numpy.scalar_types import bool_
from jaxlite.numpy.selection import round_

ndarray = Array
all, any, max, min, sum = all_, any_, max_, min_, sum_
round = round_
bool = bool_
