"""Operations: each opcode of the loop IR with JAX's meaning, on words.

In: an opcode and words; out: a word. `OPERATIONS` has an entry per opcode that is not an elementary
function; those are in `maths.py`. Nothing here traps, whatever the lanes hold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from jaxlite.backends.cpu import maths
from jaxlite.backends.cpu.instructions import Instructions, Operand
from jaxlite.backends.cpu.narrow_floats import (
    UNSIGNED_OF_SIZE,
    narrow,
    round_double_to,
    round_to,
    widen,
)
from jaxlite.backends.cpu.words import (
    BOOL,
    F32,
    F64,
    I64,
    U8,
    U16,
    U32,
    U64,
    Word,
    mangled,
    register_type,
)
from jaxlite.compiler.loops import DType, is_narrow_float, kind

Operation: TypeAlias = Callable[..., Word]

UNSIGNED: dict[int, DType] = {**UNSIGNED_OF_SIZE, 1: U8}

# Of a 16-bit float these give a value that it represents already; all others round their result.
_EXACT = frozenset("neg abs sign max min select floor ceil round_even trunc".split())
_COMPARISONS = frozenset("eq ne lt le gt ge".split())
_OWN_ROUNDING = frozenset("convert bitcast nextafter".split())


def apply(e: Instructions, opcode: str, args: Sequence[Word], dtype: DType) -> Word:
    """`opcode(args)`, a value of `dtype`."""
    if opcode == "convert":
        return convert(e, args[0], dtype)
    if opcode == "bitcast":
        return bitcast(e, args[0], dtype)
    operation = OPERATIONS.get(opcode) or maths.FUNCTIONS[opcode]
    narrow_floats = any(is_narrow_float(arg.dtype) for arg in args)
    if not narrow_floats or opcode in _OWN_ROUNDING:
        return operation(e, *args)
    wide = [_as(arg, F32) if is_narrow_float(arg.dtype) else arg for arg in args]
    result = operation(e, *wide)
    if not is_narrow_float(dtype):
        return result
    return _as(result, dtype) if opcode in _EXACT else round_to(e, result, dtype)


def _as(word: Word, dtype: DType) -> Word:
    """The same register under another dtype."""
    return Word(word.text, dtype, word.lanes)


def convert(e: Instructions, x: Word, dtype: DType) -> Word:
    """`x` as `dtype`: rounded to nearest, saturated or wrapped, or `!= 0` for bool."""
    source, target = kind(x.dtype), kind(dtype)
    if x.dtype == dtype:
        return x
    if is_narrow_float(x.dtype):
        return convert(e, _as(x, F32), dtype) if dtype != F32 else _as(x, F32)
    if target == "b":
        return e.compare("ne", x, 0)
    if is_narrow_float(dtype):
        if x.dtype == F32:
            return round_to(e, x, dtype)
        return round_double_to(e, x if x.dtype == F64 else convert(e, x, F64), dtype)
    if source == "f" and target == "f":
        return e.cast("fpext" if dtype.itemsize > x.dtype.itemsize else "fptrunc", x, dtype)
    if source == "f":
        return e.saturating(x, dtype)
    if target == "f":
        return e.cast("sitofp" if source == "i" else "uitofp", x, dtype)
    if source != "b" and dtype.itemsize == x.dtype.itemsize:
        return Word(x.text, dtype, x.lanes, x.stride, x.constant, x.limit)
    if source != "b" and dtype.itemsize < x.dtype.itemsize:
        small = e.cast("trunc", x, dtype)
        return Word(small.text, dtype, small.lanes, x.stride)
    wide = e.cast("sext" if source == "i" else "zext", x, dtype)
    return Word(wide.text, dtype, wide.lanes, limit=2 if source == "b" else x.limit)


def bitcast(e: Instructions, x: Word, dtype: DType) -> Word:
    """The bits of `x` as another dtype of the same size."""
    if is_narrow_float(x.dtype):
        stored = narrow(e, x)
        return widen(e, stored, dtype) if is_narrow_float(dtype) else _as(stored, dtype)
    if is_narrow_float(dtype):
        return widen(e, _as(x, U16), dtype)
    if BOOL in (x.dtype, dtype):
        return convert(e, x, dtype)
    return e.bits(x, dtype)


# integers and bool


def _add(e: Instructions, x: Word, y: Word) -> Word:
    return e.or_(x, y) if x.dtype == BOOL else e.add(x, y)


def _mul(e: Instructions, x: Word, y: Word) -> Word:
    return e.and_(x, y) if x.dtype == BOOL else e.mul(x, y)


def _max(e: Instructions, x: Word, y: Word) -> Word:
    if x.dtype == BOOL:
        return e.or_(x, y)
    larger = e.maximum(x, y)  # y where either is NaN
    return e.select(e.is_nan(x), x, larger) if kind(x.dtype) == "f" else larger


def _min(e: Instructions, x: Word, y: Word) -> Word:
    if x.dtype == BOOL:
        return e.and_(x, y)
    smaller = e.minimum(x, y)  # y where either is NaN
    return e.select(e.is_nan(x), x, smaller) if kind(x.dtype) == "f" else smaller


def _div(e: Instructions, x: Word, y: Word) -> Word:
    if kind(x.dtype) == "f":
        return e.div(x, y)
    signed = kind(x.dtype) == "i"
    if y.constant is not None and y.constant not in (0, -1):
        return _constant_quotient(e, x, y, signed)
    trouble = e.eq(y, 0)
    if signed:
        trouble = e.or_(trouble, e.eq(y, -1))
    quotient = _quotient(e, x, e.select(trouble, 1, y), signed)
    if signed:
        quotient = e.select(e.eq(y, -1), e.neg(x), quotient)  # MIN / -1 = MIN
    return e.select(e.eq(y, 0), -1 if signed else (1 << 8 * x.dtype.itemsize) - 1, quotient)


def _constant_quotient(e: Instructions, x: Word, y: Word, signed: bool) -> Word:
    assert y.constant is not None
    if x.limit is not None and x.limit < 2**31 and 0 < y.constant < 2**31 and x.dtype == I64:
        narrow_quotient = e.udiv(e.cast("trunc", x, U32), y.constant)
        wide = e.cast("zext", narrow_quotient, I64)
        return Word(wide.text, I64, wide.lanes, limit=(x.limit - 1) // y.constant + 1)
    return e.div(x, y) if signed else e.udiv(x, y)


def _quotient(e: Instructions, x: Word, y: Word, signed: bool) -> Word:
    """Truncated `x / y`, `y` neither 0 nor -1. Below 64 bits by way of float64, which is exact."""
    if x.dtype.itemsize == 8:
        return e.div(x, y) if signed else e.udiv(x, y)
    to_float, to_integer = ("sitofp", "fptosi") if signed else ("uitofp", "fptoui")
    exact = F64 if x.dtype.itemsize == 4 else F32
    ratio = e.div(e.cast(to_float, x, exact), e.cast(to_float, y, exact))
    return e.cast(to_integer, ratio, x.dtype)


def _rem(e: Instructions, x: Word, y: Word) -> Word:
    if kind(x.dtype) == "f":
        return maths.remainder(e, x, y)
    rest = e.sub(x, e.mul(_div(e, x, y), y))
    positive = y.constant is not None and y.constant > 0 and x.limit is not None
    return Word(rest.text, rest.dtype, rest.lanes, limit=y.constant if positive else None)


def _abs(e: Instructions, x: Word) -> Word:
    if kind(x.dtype) == "f":
        return e.abs(x)
    return e.select(e.lt(x, 0), e.neg(x), x) if kind(x.dtype) == "i" else x


def _sign(e: Instructions, x: Word) -> Word:
    if kind(x.dtype) == "f":
        return e.select(e.gt(e.abs(x), 0.0), e.copysign(1.0, x), x)
    return e.select(e.lt(x, 0), -1, e.select(e.eq(x, 0), 0, e.constant(1, x.dtype)))


def _shift(method: str) -> Operation:
    def shift(e: Instructions, x: Word, y: Word) -> Word:
        width = 8 * x.dtype.itemsize
        write: Callable[[Operand, Operand], Word] = getattr(e, method)
        if y.constant is not None and 0 <= y.constant < width:
            return write(x, y)
        unsigned = Word(y.text, UNSIGNED[y.dtype.itemsize], y.lanes, constant=y.constant)
        inside = e.lt(unsigned, width)
        if method == "ashr":
            return write(x, e.select(inside, y, width - 1))
        return e.select(inside, write(x, e.select(inside, y, 0)), e.constant(0, x.dtype))

    return shift


def _count_leading_zeros(e: Instructions, x: Word) -> Word:
    type_ = register_type(x.dtype, x.lanes)
    name = f"llvm.ctlz.{mangled(x.dtype, x.lanes)}"
    call = e.intrinsic(name, x.dtype, x.lanes, f"{type_} {x.text}, i1 false", f"{type_}, i1")
    return e.pure(call, x.dtype, x.lanes)


def _mul_high(e: Instructions, x: Word, y: Word) -> Word:
    size = x.dtype.itemsize
    if size < 8:
        wide = U32 if size < 4 else U64
        product = e.mul(e.cast("zext", x, wide), e.cast("zext", y, wide))
        return e.cast("trunc", e.lshr(product, 8 * size), x.dtype)
    return _as(maths.multiply_high(e, _as(x, U64), _as(y, U64)), x.dtype)


def _next_after(e: Instructions, x: Word, y: Word) -> Word:
    unsigned = UNSIGNED_OF_SIZE[x.dtype.itemsize]
    sign = 1 << (8 * unsigned.itemsize - 1)
    narrow_dtype = x.dtype if is_narrow_float(x.dtype) else None
    bits = _as(narrow(e, x), unsigned) if narrow_dtype else e.bits(x, unsigned)
    xf, yf = (_as(x, F32), _as(y, F32)) if narrow_dtype else (x, y)
    y_bits = _as(narrow(e, y), unsigned) if narrow_dtype else e.bits(y, unsigned)
    outward = e.compare("eq", e.lt(xf, yf), e.gt(xf, 0.0))  # away from zero
    step = e.select(outward, e.add(bits, 1), e.sub(bits, 1))
    from_zero = e.or_(e.and_(y_bits, sign), 1)
    moved = e.select(e.eq(xf, 0.0), from_zero, step)
    moved = e.select(e.eq(xf, yf), y_bits, moved)
    result = widen(e, moved, narrow_dtype) if narrow_dtype else e.bits(moved, x.dtype)
    nan = e.or_(e.is_nan(xf), e.is_nan(yf))
    return e.select(nan, e.constant(float("nan"), x.dtype), result)


def _comparison(opcode: str) -> Operation:
    return lambda e, x, y: e.compare(opcode, x, y)


OPERATIONS: dict[str, Operation] = {
    "add": _add,
    "sub": Instructions.sub,
    "mul": _mul,
    "div": _div,
    "rem": _rem,
    "max": _max,
    "min": _min,
    "neg": Instructions.neg,
    "abs": _abs,
    "sign": _sign,
    "floor": Instructions.floor,
    "ceil": lambda e, x: e.unary_intrinsic("ceil", x),
    "round_even": Instructions.round_even,
    "trunc": Instructions.trunc,
    "sqrt": Instructions.sqrt,
    "rsqrt": lambda e, x: e.div(1.0, e.sqrt(x)),
    "is_finite": lambda e, x: e.lt(e.abs(x), float("inf")),
    "and": Instructions.and_,
    "or": Instructions.or_,
    "xor": Instructions.xor,
    "not": Instructions.not_,
    "shift_left": _shift("shl"),
    "shift_right_logical": _shift("lshr"),
    "shift_right_arithmetic": _shift("ashr"),
    "population_count": lambda e, x: e.unary_intrinsic("ctpop", x),
    "count_leading_zeros": _count_leading_zeros,
    "mul_high": _mul_high,
    "select": Instructions.select,
    "nextafter": _next_after,
    **{opcode: _comparison(opcode) for opcode in sorted(_COMPARISONS)},
}
