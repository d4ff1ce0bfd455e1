"""The loop-nest IR: what one native kernel does, independent of any target.

A `Kernel` is a tree of statements over flat buffers: scalar operations in SSA form, loads and
stores at element offsets, and loops that may be parallel, vector or carry reductions. It is data
only: `builder.py` makes it, `loop_verifier.py` checks it, `loop_printer.py` shows it, and the
backends read it. Meanings of the opcodes are those of `OPCODES` below; results are as JAX defines
them.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, final

import numpy as np

DType: TypeAlias = np.dtype[Any]
Role: TypeAlias = Literal["input", "output", "local"]

INDEX: DType = np.dtype(np.int64)
BOOL: DType = np.dtype(np.bool_)


@final
class Value:
    """One SSA value; `depth` is the number of blocks open around its definition."""

    __slots__ = ("depth", "dtype")

    def __init__(self, dtype: DType, depth: int = 0) -> None:
        self.dtype = dtype
        self.depth = depth

    def __repr__(self) -> str:
        return f"Value({self.dtype.name}, depth={self.depth})"


@final
@dataclass(frozen=True, eq=False)
class Op:
    """`result = opcode(args)`, pure."""

    opcode: str
    args: tuple[Value, ...]
    result: Value
    attributes: tuple[tuple[str, object], ...] = ()


@final
@dataclass(frozen=True, eq=False)
class Constant:
    """A value known when the kernel is built."""

    value: np.generic
    result: Value


@final
@dataclass(frozen=True, eq=False)
class Load:
    """`result = buffer[index]`; where `mask` is false it is zero and memory is not touched."""

    buffer: int
    index: Value
    result: Value
    mask: Value | None = None


@final
@dataclass(frozen=True, eq=False)
class Store:
    """`buffer[index] = value` where `mask` (if any) is true.

    `streaming` asks for a store that passes by the cache: for results larger than it, not read
    soon.
    """

    buffer: int
    index: Value
    value: Value
    mask: Value | None = None
    streaming: bool = False


@final
@dataclass(frozen=True, eq=False)
class Region:
    """A small function: `parameters` in, `results` out."""

    parameters: tuple[Value, ...]
    body: tuple[Statement, ...]
    results: tuple[Value, ...]


@final
@dataclass(frozen=True, eq=False)
class Reduction:
    """Values that a loop carries from one iteration to the next.

    `combine` merges two partial states (parameters a..., b...) and must be associative and
    commutative up to rounding: a vector loop then keeps a partial per lane, started at
    `identities`. Without it the fold is strictly ordered and the loop may not be vector.
    """

    identities: tuple[np.generic, ...]
    initial: tuple[Value, ...]
    carried: tuple[Value, ...]
    updates: tuple[Value, ...]
    results: tuple[Value, ...]
    combine: Region | None


@final
@dataclass(frozen=True)
class Size:
    """An extent given at run time: `sizes[position]`."""

    position: int


@final
@dataclass(frozen=True, eq=False)
class Loop:
    """`for axis in range(extent): body`.

    A `parallel` loop is the outermost statement, carries nothing, and its iterations write disjoint
    elements. A `vector` loop runs its iterations in lanes, `unroll` vectors at a time; other loops
    are unrolled that many times (wholly, if `unroll` is the extent).
    """

    axis: Value
    extent: int | Size
    body: tuple[Statement, ...]
    reductions: tuple[Reduction, ...] = ()
    parallel: bool = False
    vector: bool = False
    unroll: int = 1


Statement: TypeAlias = Op | Constant | Load | Store | Loop


@final
@dataclass(frozen=True)
class Buffer:
    """A flat array. `local` is scratch that belongs to one iteration of the parallel loop."""

    name: str
    dtype: DType
    elements: int | None
    role: Role


@final
@dataclass(frozen=True, eq=False)
class Kernel:
    """One native function over `buffers` and `sizes` run-time extents."""

    name: str
    buffers: tuple[Buffer, ...]
    sizes: int
    body: tuple[Statement, ...]


@final
@dataclass(frozen=True)
class Opcode:
    """What an opcode takes and gives. `accepts`: kinds ("b", "i", "u", "f") of its arguments.

    `result`: "same" as the (last) argument, "bool", or "given" by the operation itself.
    """

    arity: int
    accepts: str
    result: Literal["same", "bool", "given"] = "same"


def _table(arity: int, accepts: str, names: str, result: Any = "same") -> dict[str, Opcode]:
    return {name: Opcode(arity, accepts, result) for name in names.split()}


OPCODES: dict[str, Opcode] = {
    # x + y ...: integers wrap; on bool add is or, mul is and
    **_table(2, "biuf", "add mul max min"),  # max, min: NaN if either is; bool: or, and
    **_table(2, "iuf", "sub div rem"),  # integers truncate; x/0 = -1, x%0 = x, MIN/-1 = MIN
    **_table(1, "iuf", "neg abs sign"),  # sign(NaN) = NaN, sign(-0) = -0
    **_table(2, "f", "pow atan2 nextafter"),
    **_table(1, "f", "floor ceil round_even trunc sqrt rsqrt cbrt"),
    **_table(1, "f", "exp exp2 expm1 log log2 log1p sin cos tan asin acos atan"),
    **_table(1, "f", "sinh cosh tanh asinh acosh atanh erf erfc erf_inv lgamma digamma"),
    **_table(1, "f", "is_finite", "bool"),
    **_table(2, "biuf", "eq ne lt le gt ge", "bool"),
    **_table(2, "biu", "and or xor"),
    **_table(1, "biu", "not"),
    # shifts by the width or more: 0, or the sign for the arithmetic one
    **_table(2, "iu", "shift_left shift_right_logical shift_right_arithmetic"),
    **_table(1, "iu", "population_count count_leading_zeros"),
    **_table(2, "iu", "mul_high"),  # the upper half of the unsigned product
    **_table(3, "biuf", "select"),  # select(condition, where_true, where_false)
    **_table(1, "biuf", "convert bitcast", "given"),  # convert: float -> integer saturates, NaN -> 0
}


def scalar_of(value: Any, dtype: DType) -> np.generic:
    """`value` as a NumPy scalar of `dtype`; integers wrap."""
    array: Any = np.asarray(value).astype(dtype)
    scalar: np.generic = array[()]
    return scalar


@functools.cache
def kind(dtype: DType) -> str:
    """ "b", "i", "u" or "f"; bfloat16, which NumPy calls "V", is "f"."""
    return "f" if dtype.name == "bfloat16" else dtype.kind


@functools.cache
def is_narrow_float(dtype: DType) -> bool:
    """Float16 and bfloat16: each operation is computed in float32 and rounded once."""
    return dtype.itemsize == 2 and kind(dtype) == "f"


def statements(body: tuple[Statement, ...]) -> Iterator[Statement]:
    """Every statement of a body and of what it holds, in order, combining regions included."""
    for statement in body:
        yield statement
        if isinstance(statement, Loop):
            yield from statements(statement.body)
            for reduction in statement.reductions:
                if reduction.combine is not None:
                    yield from statements(reduction.combine.body)


def uses(kernel: Kernel) -> dict[Value, int]:
    """How often each value is read."""
    counts: dict[Value, int] = {}

    def count(values: tuple[Value, ...]) -> None:
        for value in values:
            counts[value] = counts.get(value, 0) + 1

    for statement in statements(kernel.body):
        match statement:
            case Op():
                count(statement.args)
            case Load():
                count((statement.index,) + ((statement.mask,) if statement.mask else ()))
            case Store():
                count((statement.index, statement.value))
                count((statement.mask,) if statement.mask else ())
            case Loop():
                for reduction in statement.reductions:
                    count(reduction.initial + reduction.updates)
                    count(reduction.combine.results if reduction.combine else ())
            case Constant():
                pass
    return counts
