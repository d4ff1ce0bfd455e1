"""Instructions: typed methods that write LLVM IR text, a line each, for scalars and vectors alike.

In: words (see `words.py`) and Python numbers. Out: words, and lines collected in `lines`. This is
the object that the maths formulas are written against: `e.fma(x, y, 1.0)`. Equal pure instructions
in one scope are one line. The methods are the machine's operations; `operations.py` gives JAX's
meanings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, final

import numpy as np

from jaxlite.backends.cpu.words import (
    BOOL,
    I32,
    I64,
    Scalar,
    Word,
    lanes_literal,
    literal,
    mangled,
    register_type,
)
from jaxlite.compiler.loops import DType, kind

Operand: TypeAlias = Word | Scalar

_COMPARE = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge"}
# The predicates that are true where either side is NaN.
_COMPARE_UNORDERED = {"lt": "ult", "le": "ule", "gt": "ugt", "ge": "uge"}


@final
class Instructions:
    """Writes one function's instructions; `lines` is its text so far."""

    def __init__(self, has_fma: bool = True) -> None:
        self.lines: list[str] = []
        self.declarations: set[str] = set()
        self.subroutines: dict[str, str] = {}  # texts by symbol
        self.allocations: list[str] = []  # lines for the head of the entry block
        self.label = "entry"
        self._has_fma = has_fma
        self._names = 0
        self._scopes: list[dict[str, Word]] = [{}]

    def inner(self) -> Instructions:
        """Instructions for the body of a subroutine: what the module needs for them is noted here."""
        inner = Instructions(self._has_fma)
        inner.declarations, inner.subroutines = self.declarations, self.subroutines
        return inner

    # text

    def line(self, text: str) -> None:
        """Write a line as it is."""
        self.lines.append("  " + text)

    def name(self) -> str:
        """A new register's name."""
        self._names += 1
        return f"%v{self._names}"

    def new_label(self, stem: str) -> str:
        """A new block's name."""
        self._names += 1
        return f"{stem}{self._names}"

    def block(self, label: str) -> None:
        """Start a basic block."""
        self.lines.append(f"{label}:")
        self.label = label

    def enter(self) -> None:
        """Open a scope: what it computes is not known outside."""
        self._scopes.append({})

    def leave(self) -> None:
        """Close the innermost scope."""
        self._scopes.pop()

    def pure(self, text: str, dtype: DType, lanes: int, limit: int | None = None) -> Word:
        """The word that a pure instruction gives; written once per scope."""
        for scope in reversed(self._scopes):
            if (known := scope.get(text)) is not None and known.dtype == dtype:
                return known
        name = self.name()
        self.line(f"{name} = {text}")
        word = Word(name, dtype, lanes, limit=limit)
        self._scopes[-1][text] = word
        return word

    def impure(self, text: str, dtype: DType, lanes: int) -> Word:
        """The word that an instruction reading memory gives; never shared."""
        name = self.name()
        self.line(f"{name} = {text}")
        return Word(name, dtype, lanes)

    def intrinsic(self, name: str, dtype: DType, lanes: int, args: str, parameters: str) -> str:
        """The text of a call, its declaration noted."""
        result = register_type(dtype, lanes)
        self.declarations.add(f"declare {result} @{name}({parameters})")
        return f"call {result} @{name}({args})"

    # words

    def constant(self, value: Scalar, dtype: DType) -> Word:
        """A literal."""
        if kind(dtype) in "iu":
            number = int(np.asarray(value).item())
            limit = number + 1 if number >= 0 else None
            return Word(literal(number, dtype), dtype, constant=number, limit=limit)
        return Word(literal(value, dtype), dtype)

    def word(self, operand: Operand, dtype: DType) -> Word:
        """An operand as a word: itself, or a literal of `dtype`."""
        return operand if isinstance(operand, Word) else self.constant(operand, dtype)

    def spread(self, word: Word, lanes: int) -> Word:
        """`word` as a vector of `lanes`: splat, or base plus stride times lane."""
        if word.lanes == lanes and word.stride == 0:
            return word
        vector, scalar = register_type(word.dtype, lanes), register_type(word.dtype)
        if lanes == 1:
            return Word(word.text, word.dtype)
        if not word.text.startswith("%"):
            splat = Word(f"splat ({scalar} {word.text})", word.dtype, lanes, limit=word.limit)
        else:
            first = self.pure(f"insertelement {vector} poison, {scalar} {word.text}, i32 0", word.dtype, lanes)
            mask = f"<{lanes} x i32> zeroinitializer"
            splat = self.pure(
                f"shufflevector {vector} {first.text}, {vector} poison, {mask}",
                word.dtype,
                lanes,
                word.limit,
            )
        if word.stride == 0:
            return splat
        steps = lanes_literal([lane * word.stride for lane in range(lanes)], word.dtype)
        return self.pure(f"add {vector} {splat.text}, {steps}", word.dtype, lanes, word.limit)

    def align(self, *operands: Operand) -> tuple[list[Word], int]:
        """The operands at one dtype and one number of lanes."""
        dtype = next(operand.dtype for operand in operands if isinstance(operand, Word))
        words = [self.word(operand, dtype) for operand in operands]
        lanes = max(word.lanes for word in words)
        return [self.spread(word, lanes) for word in words], lanes

    def _binary(self, integer: str, floating: str, x: Operand, y: Operand) -> Word:
        (a, b), lanes = self.align(x, y)
        name = floating if kind(a.dtype) == "f" else integer
        return self.pure(f"{name} {register_type(a.dtype, lanes)} {a.text}, {b.text}", a.dtype, lanes)

    def unary_intrinsic(self, name: str, x: Word) -> Word:
        """`llvm.<name>` of one argument."""
        type_ = register_type(x.dtype, x.lanes)
        full = f"llvm.{name}.{mangled(x.dtype, x.lanes)}"
        call = self.intrinsic(full, x.dtype, x.lanes, f"{type_} {x.text}", type_)
        return self.pure(call, x.dtype, x.lanes)

    # arithmetic: IEEE for floats, wrapping for integers

    def add(self, x: Operand, y: Operand) -> Word:
        """`x + y`."""
        return self._binary("add", "fadd", x, y)

    def sub(self, x: Operand, y: Operand) -> Word:
        """`x - y`."""
        return self._binary("sub", "fsub", x, y)

    def mul(self, x: Operand, y: Operand) -> Word:
        """`x * y`."""
        return self._binary("mul", "fmul", x, y)

    def div(self, x: Operand, y: Operand) -> Word:
        """`x / y` of floats."""
        return self._binary("sdiv", "fdiv", x, y)

    def udiv(self, x: Operand, y: Operand) -> Word:
        """`x / y` of integers as unsigned; `y` must not be zero."""
        return self._binary("udiv", "fdiv", x, y)

    def urem(self, x: Operand, y: Operand) -> Word:
        """`x % y` of integers as unsigned; `y` must not be zero."""
        return self._binary("urem", "frem", x, y)

    def srem(self, x: Operand, y: Operand) -> Word:
        """`x % y` of signed integers; `y` must not be zero."""
        return self._binary("srem", "frem", x, y)

    def and_(self, x: Operand, y: Operand) -> Word:
        """Bitwise and."""
        return self._binary("and", "and", x, y)

    def or_(self, x: Operand, y: Operand) -> Word:
        """Bitwise or."""
        return self._binary("or", "or", x, y)

    def xor(self, x: Operand, y: Operand) -> Word:
        """Bitwise exclusive or."""
        return self._binary("xor", "xor", x, y)

    def shl(self, x: Operand, y: Operand) -> Word:
        """`x << y`; `y` below the width."""
        return self._binary("shl", "shl", x, y)

    def lshr(self, x: Operand, y: Operand) -> Word:
        """`x >> y`, zeros coming in; `y` below the width."""
        return self._binary("lshr", "lshr", x, y)

    def ashr(self, x: Operand, y: Operand) -> Word:
        """`x >> y`, the sign coming in; `y` below the width."""
        return self._binary("ashr", "ashr", x, y)

    def neg(self, x: Word) -> Word:
        """`-x`."""
        if kind(x.dtype) != "f":
            return self.sub(0, x)
        return self.pure(f"fneg {register_type(x.dtype, x.lanes)} {x.text}", x.dtype, x.lanes)

    def not_(self, x: Word) -> Word:
        """Bitwise not."""
        return self.xor(x, kind(x.dtype) == "b" or -1)

    def fma(self, x: Operand, y: Operand, z: Operand) -> Word:
        """`x * y + z`, rounded once (where the target has no such instruction: twice)."""
        if not self._has_fma:
            return self.add(self.mul(x, y), z)
        words, lanes = self.align(x, y, z)
        dtype = words[0].dtype
        type_ = register_type(dtype, lanes)
        args = ", ".join(f"{type_} {word.text}" for word in words)
        name = f"llvm.fma.{mangled(dtype, lanes)}"
        call = self.intrinsic(name, dtype, lanes, args, ", ".join([type_] * 3))
        return self.pure(call, dtype, lanes)

    def abs(self, x: Word) -> Word:
        """`|x|` of floats."""
        return self.unary_intrinsic("fabs", x)

    def sqrt(self, x: Word) -> Word:
        """The square root, correctly rounded."""
        return self.unary_intrinsic("sqrt", x)

    def round_even(self, x: Word) -> Word:
        """The nearest integer, ties to even."""
        return self.unary_intrinsic("roundeven", x)

    def floor(self, x: Word) -> Word:
        """The next integer below."""
        return self.unary_intrinsic("floor", x)

    def trunc(self, x: Word) -> Word:
        """The next integer towards zero."""
        return self.unary_intrinsic("trunc", x)

    def copysign(self, x: Operand, sign: Operand) -> Word:
        """`|x|` with the sign of `sign`."""
        (a, b), lanes = self.align(x, sign)
        type_ = register_type(a.dtype, lanes)
        name = f"llvm.copysign.{mangled(a.dtype, lanes)}"
        args = f"{type_} {a.text}, {type_} {b.text}"
        call = self.intrinsic(name, a.dtype, lanes, args, f"{type_}, {type_}")
        return self.pure(call, a.dtype, lanes)

    def polynomial(self, x: Word, coefficients: Sequence[float]) -> Word:
        """`c[0] x^n + ... + c[n]` by Horner's rule."""
        result: Operand = coefficients[0]
        for coefficient in coefficients[1:]:
            result = self.fma(result, x, coefficient)
        return self.word(result, x.dtype)

    # choice

    def compare(self, opcode: str, x: Operand, y: Operand, unordered: bool = False) -> Word:
        """`x <opcode> y`, false on NaN (but `ne`), or true on NaN if `unordered`."""
        (a, b), lanes = self.align(x, y)
        type_ = register_type(a.dtype, lanes)
        if kind(a.dtype) == "f":
            predicate = (_COMPARE_UNORDERED if unordered else _COMPARE)[opcode]
            return self.pure(f"fcmp {predicate} {type_} {a.text}, {b.text}", BOOL, lanes)
        sign = "" if opcode in ("eq", "ne") else "s" if kind(a.dtype) == "i" else "u"
        return self.pure(f"icmp {sign}{opcode} {type_} {a.text}, {b.text}", BOOL, lanes)

    def eq(self, x: Operand, y: Operand) -> Word:
        """`x == y`."""
        return self.compare("eq", x, y)

    def lt(self, x: Operand, y: Operand) -> Word:
        """`x < y`."""
        return self.compare("lt", x, y)

    def le(self, x: Operand, y: Operand) -> Word:
        """`x <= y`."""
        return self.compare("le", x, y)

    def gt(self, x: Operand, y: Operand) -> Word:
        """`x > y`."""
        return self.compare("gt", x, y)

    def ge(self, x: Operand, y: Operand) -> Word:
        """`x >= y`."""
        return self.compare("ge", x, y)

    def is_nan(self, x: Word) -> Word:
        """Whether `x` is NaN."""
        type_ = register_type(x.dtype, x.lanes)
        return self.pure(f"fcmp uno {type_} {x.text}, {x.text}", BOOL, x.lanes)

    def select(self, condition: Word, x: Operand, y: Operand) -> Word:
        """`x` where `condition`, else `y`."""
        (a, b), lanes = self.align(x, y)
        lanes = max(lanes, condition.lanes)
        a, b = self.spread(a, lanes), self.spread(b, lanes)
        chosen = condition if condition.uniform else self.spread(condition, lanes)
        type_ = register_type(a.dtype, lanes)
        condition_type = register_type(BOOL, chosen.lanes)
        return self.pure(
            f"select {condition_type} {chosen.text}, {type_} {a.text}, {type_} {b.text}",
            a.dtype,
            lanes,
        )

    def minimum(self, x: Operand, y: Operand) -> Word:
        """`x < y ? x : y`: the second operand where either is NaN."""
        (a, b), _ = self.align(x, y)
        return self.select(self.lt(a, b), a, b)

    def maximum(self, x: Operand, y: Operand) -> Word:
        """`x > y ? x : y`: the second operand where either is NaN."""
        (a, b), _ = self.align(x, y)
        return self.select(self.gt(a, b), a, b)

    # conversion

    def cast(self, instruction: str, x: Word, dtype: DType) -> Word:
        """`trunc`, `zext`, `sext`, `fptrunc`, `sitofp`, `bitcast`...: one instruction."""
        source, target = register_type(x.dtype, x.lanes), register_type(dtype, x.lanes)
        if source == target:
            return Word(x.text, dtype, x.lanes, x.stride, limit=x.limit)
        return self.pure(f"{instruction} {source} {x.text} to {target}", dtype, x.lanes)

    def bits(self, x: Word, dtype: DType) -> Word:
        """The same bits as another dtype of the same size."""
        return self.cast("bitcast", x, dtype)

    def saturating(self, x: Word, dtype: DType) -> Word:
        """A float as an integer, towards zero, saturating, NaN as 0."""
        instruction = "fptosi" if kind(dtype) == "i" else "fptoui"
        source = mangled(x.dtype, x.lanes)
        name = f"llvm.{instruction}.sat.{mangled(dtype, x.lanes)}.{source}"
        type_ = register_type(x.dtype, x.lanes)
        call = self.intrinsic(name, dtype, x.lanes, f"{type_} {x.text}", type_)
        return self.pure(call, dtype, x.lanes)

    def integer_of(self, x: Word, dtype: DType = I32) -> Word:
        """A float that is known to be a small integer as an integer."""
        return self.cast("fptosi", x, dtype)

    def float_of(self, x: Word, dtype: DType) -> Word:
        """A signed integer as a float, rounded."""
        return self.cast("sitofp", x, dtype)

    # lanes and branches

    def half(self, x: Word, upper: bool) -> Word:
        """The lower or upper half of a vector's lanes."""
        lanes = x.lanes // 2
        vector = register_type(x.dtype, x.lanes)
        if lanes == 1:
            return self.pure(f"extractelement {vector} {x.text}, i32 {int(upper)}", x.dtype, 1)
        picks = range(lanes, x.lanes) if upper else range(lanes)
        order = lanes_literal(list(picks), I32)
        text = f"shufflevector {vector} {x.text}, {vector} poison, <{lanes} x i32> {order}"
        return self.pure(text, x.dtype, lanes)

    def reverse(self, x: Word) -> Word:
        """The lanes in reverse order."""
        vector = register_type(x.dtype, x.lanes)
        order = lanes_literal(list(reversed(range(x.lanes))), I32)
        text = f"shufflevector {vector} {x.text}, {vector} poison, <{x.lanes} x i32> {order}"
        return self.pure(text, x.dtype, x.lanes)

    def any_lane(self, condition: Word) -> Word:
        """Whether `condition` is true in any lane, as a scalar."""
        if condition.lanes == 1:
            return condition
        type_ = register_type(BOOL, condition.lanes)
        name = f"llvm.vector.reduce.or.v{condition.lanes}i1"
        call = self.intrinsic(name, BOOL, 1, f"{type_} {condition.text}", type_)
        return self.pure(call, BOOL, 1)

    def when_any(self, condition: Word, usual: Sequence[Word], rare: Callable[[], Sequence[Word]]) -> list[Word]:
        """`rare()` in the lanes where `condition`, else `usual`; run only if a lane needs it."""
        some = self.any_lane(condition)
        before, inside, after = self.label, self.new_label("rare"), self.new_label("usual")
        self.line(f"br i1 {some.text}, label %{inside}, label %{after}")
        self.block(inside)
        self.enter()
        chosen = [self.select(condition, new, old) for new, old in zip(rare(), usual, strict=True)]
        self.leave()
        last = self.label
        self.line(f"br label %{after}")
        self.block(after)
        return [
            self.impure(
                f"phi {register_type(new.dtype, new.lanes)} [ {new.text}, %{last} ], [ {old.text}, %{before} ]",
                new.dtype,
                new.lanes,
            )
            for new, old in zip(chosen, usual, strict=True)
        ]

    def slot(self, dtype: DType, lanes: int) -> str:
        """A place on the stack for one vector."""
        name = self.name()
        self.allocations.append(f"  {name} = alloca {register_type(dtype, lanes)}")
        return name

    def while_any(
        self,
        state: Word,
        condition: Callable[[Word], Word],
        body: Callable[[Word], Word],
    ) -> Word:
        """Repeat `body` on the lanes where `condition` holds, until it holds in none."""
        type_ = register_type(state.dtype, state.lanes)
        before, header = self.label, self.new_label("while")
        inside, after = self.new_label("repeat"), self.new_label("done")
        self.line(f"br label %{header}")
        self.block(header)
        name = self.name()
        position = len(self.lines)
        self.line("")
        current = Word(name, state.dtype, state.lanes)
        self.enter()
        unfinished = condition(current)
        some = self.any_lane(unfinished)
        self.line(f"br i1 {some.text}, label %{inside}, label %{after}")
        self.block(inside)
        following = self.select(unfinished, body(current), current)
        last = self.label
        self.line(f"br label %{header}")
        self.leave()
        self.lines[position] = f"  {name} = phi {type_} [ {state.text}, %{before} ], [ {following.text}, %{last} ]"
        self.block(after)
        return current


def index_constant(value: int) -> Word:
    """An int64 literal."""
    limit = value + 1 if value >= 0 else None
    return Word(str(value), I64, constant=value, limit=limit)
