"""Subroutines: code that kernels of a module call instead of each holding a copy.

In: the `Instructions` of a kernel, words, and a function that writes the body against instructions of its own. Out:
the call's words; the subroutine's text is noted in `Instructions.subroutines`, once for each name. Two kinds:

* `call`: one word from words in registers; for a formula that a kernel needs often;
* `each_lane`: several words from one, lane by lane, through memory; for long code that hardly ever runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from jaxlite.backends.cpu.instructions import Instructions
from jaxlite.backends.cpu.words import I64, Word, mangled, register_type
from jaxlite.compiler.loops import DType

SUBROUTINE = "define private "
Formula: TypeAlias = Callable[[Instructions, Sequence[Word]], Word]
LaneFormula: TypeAlias = Callable[[Instructions, Word], Sequence[Word]]


def call(e: Instructions, name: str, args: Sequence[Word], dtype: DType, formula: Formula) -> Word:
    """`formula(args)`, of `dtype`, by a call of the subroutine for words of this shape."""
    lanes = max(arg.lanes for arg in args)
    symbol = ".".join(["jl_fn", name, *(mangled(arg.dtype, arg.lanes) for arg in args), dtype.name])
    if symbol not in e.subroutines:
        inner = e.inner()
        parameters = [Word(f"%p{n}", arg.dtype, arg.lanes) for n, arg in enumerate(args)]
        result = inner.spread(formula(inner, parameters), lanes)
        head = ", ".join(f"{register_type(word.dtype, word.lanes)} {word.text}" for word in parameters)
        returned = register_type(dtype, lanes)
        e.subroutines[symbol] = _text(returned, symbol, head, "", inner, f"ret {returned} {result.text}")
    given = ", ".join(f"{register_type(arg.dtype, arg.lanes)} {arg.text}" for arg in args)
    return e.pure(f"call {register_type(dtype, lanes)} @{symbol}({given})", dtype, lanes)


def each_lane(e: Instructions, name: str, x: Word, dtypes: Sequence[DType], formula: LaneFormula) -> list[Word]:
    """`formula` of each lane of `x` as a scalar, one after the other; its results are of `dtypes`."""
    symbol = ".".join(["jl_fn", name, x.dtype.name])
    if symbol not in e.subroutines:
        e.subroutines[symbol] = _lane_loop(e.inner(), symbol, x.dtype, dtypes, formula)
    slots = [e.slot(dtype, x.lanes) for dtype in (x.dtype, *dtypes)]
    e.line(f"store {register_type(x.dtype, x.lanes)} {x.text}, ptr {slots[0]}")
    pointers = "".join(f"ptr {slot}, " for slot in slots)
    e.line(f"call void @{symbol}({pointers}i64 {x.lanes}) cold")
    return [
        e.impure(f"load {register_type(dtype, x.lanes)}, ptr {slot}", dtype, x.lanes)
        for dtype, slot in zip(dtypes, slots[1:], strict=True)
    ]


def _lane_loop(e: Instructions, symbol: str, given: DType, dtypes: Sequence[DType], formula: LaneFormula) -> str:
    def place(number: int, dtype: DType) -> str:
        scalar = register_type(dtype)
        return e.impure(f"getelementptr {scalar}, ptr %p{number}, i64 %lane", I64, 1).text

    e.line("br label %lanes")
    e.block("lanes")
    position = len(e.lines)
    e.line("")  # the phi is written when the block that jumps back is known
    scalar = e.impure(f"load {register_type(given)}, ptr {place(0, given)}", given, 1)
    for number, result in enumerate(formula(e, scalar), 1):
        e.line(f"store {register_type(result.dtype)} {result.text}, ptr {place(number, result.dtype)}")
    e.line("%following = add i64 %lane, 1")
    e.line("%more = icmp slt i64 %following, %count")
    e.lines[position] = f"  %lane = phi i64 [ 0, %entry ], [ %following, %{e.label} ]"
    e.line("br i1 %more, label %lanes, label %done")
    e.block("done")
    pointers = "".join(f"ptr %p{number}, " for number in range(len(dtypes) + 1))
    return _text("void", symbol, f"{pointers}i64 %count", " cold", e, "ret void")


def _text(returned: str, symbol: str, parameters: str, attributes: str, e: Instructions, last: str) -> str:
    head = f"{SUBROUTINE}{returned} @{symbol}({parameters}) nounwind noinline{attributes} {{"
    return "\n".join([head, "entry:", *e.allocations, *e.lines, f"  {last}", "}"])
