"""Memory access: the cheapest instruction for each way in which lanes index a buffer.

In: an index word. Uniform: one scalar access; stride 1 or -1: a vector access (reversed for -1);
any other: gather and scatter. Also here: arithmetic that keeps an index affine, and bounds of
indices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from jaxlite.backends.cpu.instructions import Instructions
from jaxlite.backends.cpu.narrow_floats import narrow, widen
from jaxlite.backends.cpu.words import BOOL, I32, I64, U8, U16, Word, lanes_literal, memory_type
from jaxlite.compiler.loops import DType, is_narrow_float, kind


def affine(e: Instructions, opcode: str, args: Sequence[Word], dtype: DType) -> Word | None:
    """The affine result of an integer operation on affine and uniform words, if it has one."""
    if any(arg.lanes > 1 for arg in args) or kind(dtype) not in "iu":
        return None
    if opcode == "convert" and kind(args[0].dtype) in "iu" and dtype.itemsize < 8:
        if dtype.itemsize > args[0].dtype.itemsize:
            return None
        small = e.cast("trunc", args[0], dtype)
        return Word(small.text, dtype, 1, args[0].stride)
    scalars = [Word(arg.text, arg.dtype, 1, 0, arg.constant, arg.limit) for arg in args]
    x = args[0]
    if opcode == "neg":
        base, stride = e.neg(scalars[0]), -x.stride
    elif opcode in ("add", "sub"):
        y = args[1]
        base = (e.add if opcode == "add" else e.sub)(*scalars)
        stride = x.stride + y.stride if opcode == "add" else x.stride - y.stride
    elif opcode == "mul" and args[1].constant is not None:
        base, stride = e.mul(*scalars), x.stride * args[1].constant
    elif opcode == "mul" and x.constant is not None:
        base, stride = e.mul(*scalars), args[1].stride * x.constant
    else:
        return None
    word = Word(base.text, dtype, 1, stride)
    return with_limit(opcode, args, word)


def with_limit(opcode: str, args: Sequence[Word], word: Word) -> Word:
    """`word` with the bound that follows from its arguments' bounds."""
    limits = [arg.limit for arg in args]
    if word.dtype != I64 or len(limits) != 2 or limits[0] is None or limits[1] is None:
        return word
    if opcode == "add":
        limit = limits[0] + limits[1] - 1
    elif opcode == "mul":
        limit = (limits[0] - 1) * (limits[1] - 1) + 1
    else:
        return word
    if limit >= 2**62:
        return word
    return Word(word.text, I64, word.lanes, word.stride, word.constant, limit)


@final
@dataclass(frozen=True)
class Access:
    """Loads and stores of one buffer, `lanes` elements at a time where the index varies."""

    e: Instructions
    base: str
    dtype: DType
    lanes: int

    @property
    def stored(self) -> DType:
        """The dtype that stands for an element in memory."""
        if is_narrow_float(self.dtype):
            return U16
        return U8 if self.dtype == BOOL else self.dtype

    def _pointer(self, index: Word, offset: int = 0) -> str:
        e = self.e
        element = memory_type(self.dtype)
        text = f"getelementptr {element}, ptr {self.base}, i64 {index.text}"
        pointer = e.pure(text, I64, 1).text
        if offset:
            moved = f"getelementptr {element}, ptr {pointer}, i64 {offset}"
            pointer = e.pure(moved, I64, 1).text
        return pointer

    def _pointers(self, index: Word) -> str:
        """A vector of pointers, its index in 32 bits where that is known to be enough."""
        e, element = self.e, memory_type(self.dtype)
        base, type_ = self.base, "i64"
        if index.lanes == 1:  # affine: the scalar part goes into the base
            base = self._pointer(Word(index.text, I64))
            index = e.spread(Word("0", I64, 1, index.stride), self.lanes)
        elif index.limit is not None and index.limit <= 2**31:
            index, type_ = e.cast("trunc", index, I32), "i32"
        text = f"getelementptr {element}, ptr {base}, <{self.lanes} x {type_}> {index.text}"
        return e.pure(text, I64, self.lanes).text

    def _from_memory(self, stored: Word) -> Word:
        if is_narrow_float(self.dtype):
            return widen(self.e, stored, self.dtype)
        return self.e.compare("ne", stored, 0) if self.dtype == BOOL else stored

    def _to_memory(self, value: Word) -> Word:
        if is_narrow_float(self.dtype):
            return narrow(self.e, value)
        return self.e.cast("zext", value, U8) if self.dtype == BOOL else value

    def load(self, index: Word, mask: Word | None) -> Word:
        """The elements at `index`, zero where `mask` is false."""
        varying_mask = mask is not None and mask.lanes > 1
        if index.uniform and not varying_mask:
            return self._from_memory(self._load_scalar(index, mask))
        if index.lanes == 1 and index.stride in (1, -1):
            return self._from_memory(self._load_row(index, mask))
        return self._from_memory(self._gather(index, mask))

    def _load_scalar(self, index: Word, mask: Word | None) -> Word:
        e, type_ = self.e, memory_type(self.dtype)
        pointer = self._pointer(index)
        if mask is not None:
            pointer = self._pointer_or_spare(pointer, mask)
        align = self.dtype.itemsize
        return e.impure(f"load {type_}, ptr {pointer}, align {align}", self.stored, 1)

    def _pointer_or_spare(self, pointer: str, mask: Word) -> str:
        """`pointer`, or where `mask` is false a zeroed spare place on the stack."""
        e = self.e
        spare = "%spare"
        if (allocation := f"  {spare} = alloca i64") not in e.allocations:
            e.allocations.append(allocation)
        e.line(f"store i64 0, ptr {spare}")
        return e.pure(f"select i1 {mask.text}, ptr {pointer}, ptr {spare}", I64, 1).text

    def _load_row(self, index: Word, mask: Word | None) -> Word:
        e, type_ = self.e, memory_type(self.dtype, self.lanes)
        backwards = index.stride == -1
        pointer = self._pointer(Word(index.text, I64), 1 - self.lanes if backwards else 0)
        align = self.dtype.itemsize
        if mask is None:
            row = e.impure(f"load {type_}, ptr {pointer}, align {align}", self.stored, self.lanes)
        else:
            spread = e.spread(mask, self.lanes)
            chosen = e.reverse(spread) if backwards else spread
            name = f"llvm.masked.load.{self._mangled()}.p0"
            masks = f"<{self.lanes} x i1>"
            e.declarations.add(f"declare {type_} @{name}(ptr, i32, {masks}, {type_})")
            args = f"ptr {pointer}, i32 {align}, {masks} {chosen.text}, {type_} zeroinitializer"
            row = e.impure(f"call {type_} @{name}({args})", self.stored, self.lanes)
        return e.reverse(row) if backwards else row

    def _gather(self, index: Word, mask: Word | None) -> Word:
        e, type_ = self.e, memory_type(self.dtype, self.lanes)
        index = index if index.stride else e.spread(index, self.lanes)
        pointers = self._pointers(index)
        masks = f"<{self.lanes} x i1>"
        chosen = e.spread(mask or e.constant(True, BOOL), self.lanes).text
        name = f"llvm.masked.gather.{self._mangled()}.v{self.lanes}p0"
        e.declarations.add(f"declare {type_} @{name}(<{self.lanes} x ptr>, i32, {masks}, {type_})")
        args = f"<{self.lanes} x ptr> {pointers}, i32 {self.dtype.itemsize}, {masks} {chosen}, {type_} zeroinitializer"
        return e.impure(f"call {type_} @{name}({args})", self.stored, self.lanes)

    def _mangled(self) -> str:
        return f"v{self.lanes}{_memory_mangled(self.dtype)}"

    def store(self, index: Word, value: Word, mask: Word | None, streaming: bool) -> None:
        """Write `value` at `index` where `mask` is true; of equal indices the last lane wins."""
        varying = value.lanes > 1 or (mask is not None and mask.lanes > 1)
        if index.uniform and not varying:
            self._store_scalar(index, value, mask)
        elif index.lanes == 1 and index.stride in (1, -1):
            self._store_row(index, value, mask, streaming)
        else:
            self._scatter(index, value, mask)

    def _store_scalar(self, index: Word, value: Word, mask: Word | None) -> None:
        pointer = self._pointer(index)
        if mask is not None:
            pointer = self._pointer_or_spare(pointer, mask)
        stored = self._to_memory(value)
        type_ = memory_type(self.dtype)
        self.e.line(f"store {type_} {stored.text}, ptr {pointer}, align {self.dtype.itemsize}")

    def _store_row(self, index: Word, value: Word, mask: Word | None, streaming: bool) -> None:
        e, type_ = self.e, memory_type(self.dtype, self.lanes)
        backwards = index.stride == -1
        pointer = self._pointer(Word(index.text, I64), 1 - self.lanes if backwards else 0)
        stored = e.spread(self._to_memory(value), self.lanes)
        stored = e.reverse(stored) if backwards else stored
        align = self.dtype.itemsize
        if mask is None:
            hint = ", !nontemporal !{i32 1}" if streaming and not backwards else ""
            align = self.lanes * align if hint else align
            e.line(f"store {type_} {stored.text}, ptr {pointer}, align {align}{hint}")
            return
        spread = e.spread(mask, self.lanes)
        if self.dtype.itemsize < 4 and spread.text == lanes_literal([1] + [0] * (self.lanes - 1), BOOL):
            self._store_first(index, e.spread(self._to_memory(value), self.lanes))
            return
        chosen = e.reverse(spread) if backwards else spread
        name = f"llvm.masked.store.{self._mangled()}.p0"
        masks = f"<{self.lanes} x i1>"
        e.declarations.add(f"declare void @{name}({type_}, ptr, i32, {masks})")
        args = f"{type_} {stored.text}, ptr {pointer}, i32 {align}, {masks} {chosen.text}"
        e.line(f"call void @{name}({args})")

    def _store_first(self, index: Word, stored: Word) -> None:
        """The first lane alone: LLVM's masked store of one 8- or 16-bit lane cut from 32 bits writes all four bytes."""
        e, type_ = self.e, memory_type(self.dtype)
        vector = memory_type(self.dtype, self.lanes)
        first = e.pure(f"extractelement {vector} {stored.text}, i32 0", stored.dtype, 1)
        e.line(f"store {type_} {first.text}, ptr {self._pointer(Word(index.text, I64))}, align {self.dtype.itemsize}")

    def _scatter(self, index: Word, value: Word, mask: Word | None) -> None:
        e, type_ = self.e, memory_type(self.dtype, self.lanes)
        index = index if index.stride else e.spread(index, self.lanes)
        pointers = self._pointers(index)
        stored = e.spread(self._to_memory(value), self.lanes)
        chosen = e.spread(mask or e.constant(True, BOOL), self.lanes).text
        name = f"llvm.masked.scatter.{self._mangled()}.v{self.lanes}p0"
        masks = f"<{self.lanes} x i1>"
        e.declarations.add(f"declare void @{name}({type_}, <{self.lanes} x ptr>, i32, {masks})")
        args = f"{type_} {stored.text}, <{self.lanes} x ptr> {pointers}, i32 {self.dtype.itemsize}, {masks} {chosen}"
        e.line(f"call void @{name}({args})")


def _memory_mangled(dtype: DType) -> str:
    scalar = memory_type(dtype)
    return {"double": "f64", "float": "f32"}.get(scalar, scalar)
