"""What a builder knows without running: constant folding, and identities of integer arithmetic.

In: an opcode and its arguments, those that are constant as NumPy scalars. Out: the result, if it is
known. Folding is limited to what NumPy computes exactly as a kernel would; identities are limited
to integers and bool, where they hold for every input.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jaxlite.compiler.loops import DType, Value, is_narrow_float, kind, scalar_of

_FOLDS: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "neg": np.negative,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": np.invert,
    "select": lambda condition, x, y: x if condition else y,
}


def fold(opcode: str, constants: Sequence[np.generic | None], dtype: DType) -> np.generic | None:
    """The constant result, if all arguments are constant and NumPy computes it as a kernel does."""
    values = [constant for constant in constants if constant is not None]
    if len(values) != len(constants):
        return None
    with np.errstate(all="ignore"):
        if opcode in _FOLDS:
            return scalar_of(_FOLDS[opcode](*values), dtype)
        if opcode == "bitcast":
            array: Any = np.asarray(values[0]).view(dtype)
            return scalar_of(array[()], dtype)
        if opcode == "div" and kind(dtype) == "f" and not is_narrow_float(dtype):
            return scalar_of(np.divide(values[0], values[1]), dtype)
        if opcode in ("div", "rem") and kind(dtype) in "iu" and values[1].item() > 0:
            return _divide(opcode, values[0].item(), values[1].item(), dtype)
        if opcode == "convert" and kind(values[0].dtype) in "biu":
            narrow = is_narrow_float(dtype)  # would round twice, by way of float64
            return None if narrow else scalar_of(values[0], dtype)
    return None


def _divide(opcode: str, dividend: int, divisor: int, dtype: DType) -> np.generic:
    """Truncating division by a positive divisor."""
    quotient = abs(dividend) // divisor * (1 if dividend >= 0 else -1)
    result = quotient if opcode == "div" else dividend - quotient * divisor
    return scalar_of(result, dtype)


# Right operand is this constant -> the result is the left operand.
_RIGHT_NEUTRAL = {
    "add": 0,  # x + 0 -> x
    "sub": 0,  # x - 0 -> x
    "mul": 1,  # x * 1 -> x
    "div": 1,  # x // 1 -> x
    "or": 0,  # x | 0 -> x
    "xor": 0,  # x ^ 0 -> x
    "shift_left": 0,  # x << 0 -> x
    "shift_right_logical": 0,  # x >> 0 -> x
    "shift_right_arithmetic": 0,  # x >> 0 -> x
}
_COMMUTATIVE = {"add": operator.add, "mul": operator.mul, "or": operator.or_, "xor": operator.xor}


def simplify(opcode: str, values: Sequence[Value], constants: Sequence[np.generic | None]) -> Value | np.generic | None:
    """An argument, or a constant, that the operation equals; else None."""
    if opcode == "select":
        condition, x, y = constants[0], values[1], values[2]
        if condition is not None:
            return x if condition else y  # select(True, x, y) -> x
        return x if x is y else None  # select(c, x, x) -> x
    if len(values) != 2 or kind(values[1].dtype) not in "biu":
        return None
    pairs = [(values[0], constants[1])]
    if opcode in _COMMUTATIVE:
        pairs.append((values[1], constants[0]))
    for other, constant in pairs:
        if constant is None:
            continue
        boolean = kind(other.dtype) == "b"
        if opcode in _RIGHT_NEUTRAL and constant.item() == _RIGHT_NEUTRAL[opcode]:
            return other
        if opcode == "mul" and constant.item() == 0:
            return constant  # x * 0 -> 0
        if opcode == "rem" and constant.item() == 1:
            return scalar_of(0, other.dtype)  # x % 1 -> 0
        if opcode == "and" and boolean:
            return other if constant else constant  # x & True -> x, x & False -> False
    return None
