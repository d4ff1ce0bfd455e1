"""float16 and bfloat16 in integer arithmetic: widen from memory, round, narrow to memory.

A 16-bit float lives in a register as the float32 of the same value. LLVM's own conversions would
call helper functions where the CPU has no such instruction; these need none.
"""

from __future__ import annotations

from jaxlite.backends.cpu.instructions import Instructions
from jaxlite.backends.cpu.words import F32, F64, I32, U16, U32, U64, Word
from jaxlite.compiler.loops import DType


def _is_bfloat16(dtype: DType) -> bool:
    return dtype.name == "bfloat16"


def widen(e: Instructions, stored: Word, dtype: DType) -> Word:
    """16 stored bits (as uint16) as a register value of `dtype`."""
    bits = e.cast("zext", stored, U32)
    if _is_bfloat16(dtype):
        return e.bits(e.shl(bits, 16), dtype)
    magnitude = e.and_(bits, 0x7FFF)
    shifted = e.shl(magnitude, 13)
    special = e.ge(magnitude, 0x7C00)  # infinity, NaN: exponent 31 becomes 255
    rebiased = e.add(shifted, e.select(special, 224 << 23, e.constant(112 << 23, U32)))
    subnormal = e.mul(e.float_of(e.bits(magnitude, I32), F32), 2.0**-24)
    small = e.lt(magnitude, 0x0400)
    value = e.select(small, e.bits(subnormal, U32), rebiased)
    return e.bits(e.or_(value, e.shl(e.and_(bits, 0x8000), 16)), dtype)


def narrow(e: Instructions, x: Word) -> Word:
    """A register value of a 16-bit dtype, exact in it, as its stored bits (uint16)."""
    bits = e.bits(Word(x.text, F32, x.lanes), U32)
    if _is_bfloat16(x.dtype):
        return e.cast("trunc", e.lshr(bits, 16), U16)
    magnitude = e.and_(bits, 0x7FFFFFFF)
    normal = e.lshr(e.sub(magnitude, 112 << 23), 13)
    special = e.or_(0x7C00, e.and_(e.lshr(magnitude, 13), 0x3FF))
    scaled = e.mul(e.bits(magnitude, F32), 2.0**24)
    subnormal = e.bits(e.integer_of(e.select(e.lt(scaled, 1024.0), scaled, 0.0), I32), U32)
    value = e.select(e.ge(magnitude, 0x7F800000), special, normal)
    value = e.select(e.lt(magnitude, 113 << 23), subnormal, value)
    return e.cast("trunc", e.or_(value, e.and_(e.lshr(bits, 16), 0x8000)), U16)


def round_to(e: Instructions, x: Word, dtype: DType) -> Word:
    """A float32 rounded to the nearest value of a 16-bit dtype, ties to even."""
    bits = e.bits(x, U32)
    drop = 16 if _is_bfloat16(dtype) else 13
    odd = e.and_(e.lshr(bits, drop), 1)
    rounded = e.and_(e.add(e.add(bits, (1 << (drop - 1)) - 1), odd), (1 << 32) - (1 << drop))
    if _is_bfloat16(dtype):
        quiet = e.and_(e.or_(bits, 0x400000), 0xFFFF0000)
        return e.bits(e.select(e.is_nan(x), quiet, rounded), dtype)
    value = e.bits(rounded, F32)
    magnitude = e.abs(x)
    value = e.select(e.ge(magnitude, 65520.0), e.copysign(float("inf"), x), value)
    tiny = e.copysign(e.sub(e.add(magnitude, 0.5), 0.5), x)  # multiples of 2**-24
    value = e.select(e.lt(magnitude, 2.0**-14), tiny, value)
    value = e.select(e.is_nan(x), x, value)
    return Word(value.text, dtype, value.lanes)


def round_double_to(e: Instructions, x: Word, dtype: DType) -> Word:
    """A float64 rounded once to a 16-bit dtype: by way of a float32 rounded to odd."""
    assert x.dtype == F64
    nearest = e.cast("fptrunc", x, F32)
    back = e.cast("fpext", nearest, F64)
    bits = e.bits(nearest, U32)
    even = e.eq(e.and_(bits, 1), 0)
    finite = e.lt(e.abs(back), float("inf"))
    inexact = e.and_(e.and_(e.compare("ne", back, x), even), finite)
    # The neighbour on the other side of x has an odd last bit: one step away from or towards zero.
    outward = e.lt(e.abs(back), e.abs(x))
    neighbour = e.select(outward, e.add(bits, 1), e.sub(bits, 1))
    return round_to(e, e.bits(e.select(inexact, neighbour, bits), F32), dtype)


UNSIGNED_OF_SIZE: dict[int, DType] = {2: U16, 4: U32, 8: U64}
