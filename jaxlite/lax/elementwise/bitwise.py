"""Logic on bools and bits of integers."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from jaxlite.core.primitive import Sample
from jaxlite.lax.convert import operands_of
from jaxlite.lax.families.elementwise import Elementwise
from jaxlite.lax.families.mapped import Mapped

_PAIR = (Sample(((3, 4), (3, 4))), Sample(((5,), ())))
_ONE = (Sample(((3, 5),)), Sample(((),)))
_SHIFT = (Sample(((3, 4), (3, 4)), low=0, high=12), Sample(((5,), ()), low=0, high=70))


@final
class And(Mapped):
    name, opcode, function, exact, accepts, samples = "and", "and_", np.bitwise_and, True, "biu", _PAIR
    partials = None  # type: ignore[assignment]


@final
class Or(Mapped):
    name, opcode, function, exact, accepts, samples = "or", "or_", np.bitwise_or, True, "biu", _PAIR
    partials = None  # type: ignore[assignment]


@final
class Xor(Mapped):
    name, opcode, function, exact, accepts, samples = "xor", "xor", np.bitwise_xor, True, "biu", _PAIR
    partials = None  # type: ignore[assignment]


@final
class Not(Mapped):
    name, opcode, function, exact, accepts, samples = "not", "not_", np.invert, True, "biu", _ONE
    partials = None  # type: ignore[assignment]


def _bits(x: Any) -> int:
    return int(x.dtype.itemsize) * 8


def _unsigned(x: Any) -> Any:
    return x.view(f"u{x.dtype.itemsize}") if x.ndim else x.reshape(1).view(f"u{x.dtype.itemsize}").reshape(())


@final
class ShiftLeft(Mapped):
    name, opcode, accepts, samples = "shift_left", "shift_left", "iu", _SHIFT
    partials = None  # type: ignore[assignment]

    @staticmethod
    def function(x: Any, y: Any) -> Any:
        fits = _unsigned(y) < _bits(x)
        return np.where(fits, np.left_shift(x, np.where(fits, y, 0).astype(y.dtype)), 0).astype(x.dtype)


@final
class ShiftRightLogical(Mapped):
    name, opcode, accepts, samples = "shift_right_logical", "shift_right_logical", "iu", _SHIFT
    partials = None  # type: ignore[assignment]

    @staticmethod
    def function(x: Any, y: Any) -> Any:
        wide, by = _unsigned(x), _unsigned(y)
        fits = by < _bits(x)
        return np.where(fits, np.right_shift(wide, np.where(fits, by, 0)), 0).astype(wide.dtype).astype(x.dtype)


@final
class ShiftRightArithmetic(Mapped):
    name, opcode, accepts, samples = "shift_right_arithmetic", "shift_right_arithmetic", "iu", _SHIFT
    partials = None  # type: ignore[assignment]

    @staticmethod
    def function(x: Any, y: Any) -> Any:
        signed = x.astype(f"i{x.dtype.itemsize}")
        by = np.minimum(_unsigned(y), _bits(x) - 1).astype(signed.dtype)
        return np.right_shift(signed, by).astype(x.dtype)


@final
class PopulationCount(Mapped):
    name, opcode, accepts, samples = "population_count", "population_count", "iu", _ONE
    partials = None  # type: ignore[assignment]

    @staticmethod
    def function(x: Any) -> Any:
        return np.bitwise_count(_unsigned(x)).astype(x.dtype)


@final
class Clz(Elementwise):
    name, accepts, samples = "clz", "iu", _ONE
    partials = None  # type: ignore[assignment]

    def scalar(self, e: Any, x: Any) -> Any:
        return e.count_leading_zeros(x)

    def numpy(self, x: Any) -> Any:
        wide = _unsigned(x).astype(np.uint64)
        count = np.zeros(x.shape, np.int64)
        for shift in (32, 16, 8, 4, 2, 1):
            high = wide >> np.uint64(shift)
            count += np.where(high > 0, shift, 0)
            wide = np.where(high > 0, high, wide)
        return (_bits(x) - count - (wide > 0)).astype(x.dtype)


and_p, or_p, xor_p, not_p = And(), Or(), Xor(), Not()
shift_left_p, shift_right_logical_p, shift_right_arithmetic_p = ShiftLeft(), ShiftRightLogical(), ShiftRightArithmetic()
population_count_p, clz_p = PopulationCount(), Clz()


def bitwise_and(x: Any, y: Any) -> Any:
    """Elementwise ``x & y``."""
    return and_p.bind(*operands_of(x, y))


def bitwise_or(x: Any, y: Any) -> Any:
    """Elementwise ``x | y``."""
    return or_p.bind(*operands_of(x, y))


def bitwise_xor(x: Any, y: Any) -> Any:
    """Elementwise ``x ^ y``."""
    return xor_p.bind(*operands_of(x, y))


def bitwise_not(x: Any) -> Any:
    """Elementwise ``~x``; logical on bools."""
    return not_p.bind(*operands_of(x))


def shift_left(x: Any, y: Any) -> Any:
    """Elementwise ``x << y``; 0 where ``y`` is not below the width."""
    return shift_left_p.bind(*operands_of(x, y))


def shift_right_logical(x: Any, y: Any) -> Any:
    """Elementwise shift that brings in zeros; 0 where ``y`` is not below the width."""
    return shift_right_logical_p.bind(*operands_of(x, y))


def shift_right_arithmetic(x: Any, y: Any) -> Any:
    """Elementwise shift that brings in the sign bit."""
    return shift_right_arithmetic_p.bind(*operands_of(x, y))


def population_count(x: Any) -> Any:
    """Elementwise number of set bits."""
    return population_count_p.bind(*operands_of(x))


def clz(x: Any) -> Any:
    """Elementwise number of leading zero bits."""
    return clz_p.bind(*operands_of(x))
