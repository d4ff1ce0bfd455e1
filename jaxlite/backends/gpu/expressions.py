"""Opcodes as CUDA C++ expressions, by the kind of their arguments.

In: an opcode, its arguments' text and dtypes. Out: an expression. A 16-bit float is a `float` in
registers, rounded after each operation that needs it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jaxlite.compiler.loops import BOOL, DType, Op, is_narrow_float, kind

_INTEGERS = {1: "char", 2: "short", 4: "int"}

# What C++ writes with an operator, for every kind of argument.
_OPERATORS = {
    "eq": "{0} == {1}",
    "ne": "{0} != {1}",
    "lt": "{0} < {1}",
    "le": "{0} <= {1}",
    "gt": "{0} > {1}",
    "ge": "{0} >= {1}",
    "and": "{0} & {1}",
    "or": "{0} | {1}",
    "xor": "{0} ^ {1}",
    "not": "~{0}",
    "select": "{0} ? {1} : {2}",
    "max": "jl_max({0}, {1})",
    "min": "jl_min({0}, {1})",
    "sign": "jl_sign({0})",
}
_BOOL = {
    "add": "{0} | {1}",
    "mul": "{0} & {1}",
    "max": "{0} | {1}",
    "min": "{0} & {1}",
    "not": "!{0}",
}
# {T}: the type; {U}, {S}: its unsigned and signed twins.
_INTEGER = {
    "add": "jl_add({0}, {1})",
    "sub": "jl_sub({0}, {1})",
    "mul": "jl_mul({0}, {1})",
    "div": "jl_div({0}, {1})",
    "rem": "jl_rem({0}, {1})",
    "neg": "jl_sub(({T})0, {0})",
    "abs": "jl_integer_abs({0})",
    "shift_left": "jl_shift_left({0}, {1})",
    "shift_right_logical": "jl_shift_right_logical<{U}>({0}, {1})",
    "shift_right_arithmetic": "jl_shift_right_arithmetic<{S}>({0}, {1})",
    "population_count": "jl_population_count<{U}>({0})",
    "count_leading_zeros": "jl_count_leading_zeros<{U}>({0})",
    "mul_high": "jl_mul_high<{U}>({0}, {1})",
}
# {f}: "f" for float, nothing for double.
_FLOAT = {
    "add": "{0} + {1}",
    "sub": "{0} - {1}",
    "mul": "{0} * {1}",
    "div": "{0} / {1}",
    "neg": "-{0}",
    "rem": "fmod{f}({0}, {1})",
    "abs": "fabs{f}({0})",
    "round_even": "rint{f}({0})",
    "rsqrt": "({T})1 / sqrt{f}({0})",
    "is_finite": "isfinite({0})",
    "erf_inv": "erfinv{f}({0})",
    "digamma": "jl_digamma({0})",
    **{
        name: name + "{f}({0})"
        for name in (
            "floor ceil trunc sqrt cbrt exp exp2 expm1 log log2 log1p sin cos tan asin acos atan "
            "sinh cosh tanh asinh acosh atanh erf erfc lgamma"
        ).split()
    },
    **{name: name + "{f}({0}, {1})" for name in ("pow", "atan2", "nextafter")},
}
_EXACT = frozenset("neg abs sign max min select floor ceil round_even trunc".split())


def register_type(dtype: DType) -> str:
    """The C++ type of a value."""
    if kind(dtype) == "b":
        return "bool"
    if kind(dtype) == "f":
        return "double" if dtype.itemsize == 8 else "float"
    if dtype.itemsize == 8:
        return "u64" if kind(dtype) == "u" else "i64"
    prefix = "unsigned " if kind(dtype) == "u" else "signed " if dtype.itemsize == 1 else ""
    return prefix + _INTEGERS[dtype.itemsize]


def memory_type(dtype: DType) -> str:
    """The C++ type of an element in memory."""
    return "unsigned short" if is_narrow_float(dtype) else register_type(dtype)


def constant(value: np.generic, dtype: DType) -> str:
    """A literal, exact."""
    if kind(dtype) == "b":
        return "true" if value else "false"
    if kind(dtype) == "f":
        return _float_literal(float(value), dtype)
    number = int(value)
    if dtype.itemsize < 8:
        lowest = number == -(2**31)
        return "(-2147483647 - 1)" if lowest else f"{number}{'u' * (kind(dtype) == 'u')}"
    if number == -(2**63):
        return "(-9223372036854775807LL - 1)"
    return f"{number}{'ULL' if kind(dtype) == 'u' else 'LL'}"


def _float_literal(number: float, dtype: DType) -> str:
    double = dtype.itemsize == 8
    if np.isfinite(number):
        return repr(number) if double else f"{np.float32(number)!s}f"
    if double:
        return f"jl_bitcast<double>(0x{np.float64(number).view(np.uint64):X}ULL)"
    return f"jl_bitcast<float>(0x{np.float32(number).view(np.uint32):X}u)"


def narrow_name(dtype: DType) -> str:
    """`float16` or `bfloat16`, as the prelude's functions are called."""
    return dtype.name


def operation(op: Op, args: Sequence[str]) -> str:
    """The expression of one operation."""
    source = op.args[-1].dtype
    if op.opcode == "convert":
        return convert(args[0], source, op.result.dtype)
    if op.opcode == "bitcast":
        return bitcast(args[0], source, op.result.dtype)
    if op.opcode == "nextafter" and is_narrow_float(source):
        name = narrow_name(source)
        stored = ", ".join(f"jl_to_{name}({arg})" for arg in args)
        return f"jl_from_{name}(jl_next16({stored}, {', '.join(args)}))"
    table = {"b": _BOOL, "f": _FLOAT}.get(kind(source), _INTEGER)
    template = table.get(op.opcode) or _OPERATORS[op.opcode]
    names = _type_names(source)
    text = template.format(*args, **names)
    if is_narrow_float(op.result.dtype) and op.opcode not in _EXACT:
        return f"jl_round_{narrow_name(op.result.dtype)}({text})"
    return text


def _type_names(dtype: DType) -> dict[str, str]:
    type_ = register_type(dtype)
    names = {"T": type_, "f": "" if type_ == "double" else "f", "U": type_, "S": type_}
    if kind(dtype) in "iu":
        names["U"] = register_type(np.dtype(f"u{dtype.itemsize}"))
        names["S"] = register_type(np.dtype(f"i{dtype.itemsize}"))
    return names


def convert(x: str, source: DType, dtype: DType) -> str:
    """`x` as `dtype`."""
    if kind(dtype) == "b":
        return f"{x} != 0"
    if is_narrow_float(dtype):
        if kind(source) == "f" and source.itemsize <= 4:
            return f"jl_round_{narrow_name(dtype)}({x})"
        return f"jl_round_{narrow_name(dtype)}(jl_round_to_odd((double){x}))"
    type_ = register_type(dtype)
    if kind(source) == "f" and kind(dtype) in "iu":
        info = np.iinfo(dtype)
        bounds = (constant(dtype.type(bound), dtype) for bound in (info.min, info.max))
        return f"jl_saturate<{type_}>({x}, {', '.join(f'({type_}){bound}' for bound in bounds)})"
    return f"({type_}){x}"


def bitcast(x: str, source: DType, dtype: DType) -> str:
    """The bits of `x` as another dtype."""
    if is_narrow_float(source):
        x = f"jl_to_{narrow_name(source)}({x})"
    if is_narrow_float(dtype):
        return f"jl_from_{narrow_name(dtype)}((unsigned short){x})"
    if BOOL in (source, dtype):
        return convert(x, source, dtype)
    return f"jl_bitcast<{register_type(dtype)}>({x})"
