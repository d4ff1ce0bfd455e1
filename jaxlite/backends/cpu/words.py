"""Words: what an SSA value is while LLVM text is written, and how dtypes are spelled in LLVM.

A word is a scalar, an affine scalar (lane i holds `base + stride * i`), or a vector of lanes. A
16-bit float lives in registers as a float32 that it represents exactly; in memory it is 2 bytes.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np

from jaxlite.compiler.loops import DType, is_narrow_float, kind

Scalar: TypeAlias = bool | int | float | np.generic

F32: DType = np.dtype(np.float32)
F64: DType = np.dtype(np.float64)
I32: DType = np.dtype(np.int32)
I64: DType = np.dtype(np.int64)
U8: DType = np.dtype(np.uint8)
U16: DType = np.dtype(np.uint16)
U32: DType = np.dtype(np.uint32)
U64: DType = np.dtype(np.uint64)
BOOL: DType = np.dtype(np.bool_)


@final
@dataclass(frozen=True, slots=True)
class Word:
    """`text`: the LLVM operand. `lanes`: 1 for a scalar. `stride`: of an affine integer, else 0.

    `constant`: the value, if it is a literal integer. `limit`: if known, 0 <= every lane < limit.
    """

    text: str
    dtype: DType
    lanes: int = 1
    stride: int = 0
    constant: int | None = None
    limit: int | None = None

    @property
    def uniform(self) -> bool:
        """The same in all lanes."""
        return self.lanes == 1 and self.stride == 0


def register_type(dtype: DType, lanes: int = 1) -> str:
    """LLVM's type of a value in a register."""
    if kind(dtype) == "b":
        scalar = "i1"
    elif kind(dtype) == "f":
        scalar = "double" if dtype.itemsize == 8 else "float"
    else:
        scalar = f"i{dtype.itemsize * 8}"
    return scalar if lanes == 1 else f"<{lanes} x {scalar}>"


def memory_type(dtype: DType, lanes: int = 1) -> str:
    """LLVM's type of an element in memory: bool is i8, 16-bit floats are i16."""
    if kind(dtype) == "b" or is_narrow_float(dtype):
        scalar = f"i{dtype.itemsize * 8}"
        return scalar if lanes == 1 else f"<{lanes} x {scalar}>"
    return register_type(dtype, lanes)


def mangled(dtype: DType, lanes: int = 1) -> str:
    """The suffix of an overloaded intrinsic: `f32`, `v16f32`, `i1`."""
    if kind(dtype) == "f":
        scalar = "f64" if dtype.itemsize == 8 else "f32"
    else:
        scalar = register_type(dtype)
    return scalar if lanes == 1 else f"v{lanes}{scalar}"


def literal(value: Any, dtype: DType) -> str:
    """A scalar constant as LLVM text, exact."""
    if kind(dtype) == "b":
        return "true" if value else "false"
    if kind(dtype) != "f":
        return str(int(value))
    exact = float(value) if dtype.itemsize != 4 else float(np.float32(value))
    if exact == int(exact) if abs(exact) < 1e9 else False:
        signed_zero = exact == 0 and struct.pack(">d", exact)[0] == 0x80
        return "-0.0" if signed_zero else f"{int(exact)}.0"
    return f"0x{struct.unpack('>Q', struct.pack('>d', exact))[0]:016X}"


def lanes_literal(values: list[int], dtype: DType) -> str:
    """A vector constant of integers as LLVM text."""
    scalar = register_type(dtype)
    return "<" + ", ".join(f"{scalar} {value}" for value in values) + ">"
