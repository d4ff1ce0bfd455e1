"""emit_kernel: one loop-nest kernel as the LLVM IR text of one function.

In: a `Kernel`, a `Target` and the function's symbol. Out: `define void @symbol(ptr %buffers,
ptr %sizes, i64 %lo, i64 %hi, ptr %frame)`: `buffers` points to the addresses of the non-local buffers
in order, `sizes` to the run-time extents, and [lo, hi) is the range of the outermost parallel loop
(ignored without one). A caller that splits a vector loop does so at multiples of 64. Long loops poll with
`frame` (`polling.py`): told to stop, the kernel returns at once, its results unfinished.

Several kernels share a module: `module_text([text, ...])` joins their texts and puts each
declaration and constant table once.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import final

from jaxlite.backends.cpu import maths, memory_access, operations, polling
from jaxlite.backends.cpu.instructions import Instructions, index_constant
from jaxlite.backends.cpu.subroutines import SUBROUTINE, call
from jaxlite.backends.cpu.tables import TABLES
from jaxlite.backends.cpu.target import Target
from jaxlite.backends.cpu.words import (
    BOOL,
    I32,
    I64,
    Word,
    lanes_literal,
    memory_type,
    register_type,
)
from jaxlite.compiler.contraction import NO_CONTRACTIONS, FusedMultiplyAdd, contractions
from jaxlite.compiler.loops import (
    Constant,
    DType,
    Kernel,
    Load,
    Loop,
    Op,
    Reduction,
    Region,
    Size,
    Statement,
    Store,
    Value,
    statements,
)

DECLARATION = "declare "
SPLIT = 64  # parallel vector loops are split at multiples of this
# Of an elementary function in one kernel; beyond, they are calls: 1.0 to 1.5 times as slow, but compiled in no time.
MOST_COPIES = 16
Body = Callable[[Word, list[Word]], list[Word]]


def emit_kernel(kernel: Kernel, target: Target, symbol: str) -> str:
    """The LLVM IR text of `kernel`: its declarations, then its function."""
    emitter = _KernelEmitter(kernel, target)
    emitter.run()
    declarations = "".join(f"{line}\n" for line in sorted(emitter.e.declarations))
    head = f"define void @{symbol}(ptr %buffers, ptr %sizes, i64 %lo, i64 %hi, ptr %frame) nounwind {{"
    body = [*emitter.e.allocations, *emitter.e.lines]
    subroutines = [text for _, text in sorted(emitter.e.subroutines.items())]
    return "\n".join([f"{declarations}{head}", "entry:", *body, "  ret void", "}", *subroutines, ""])


def module_text(functions: Iterable[str]) -> str:
    """One module of several emitted functions, each declaration, subroutine and table once."""
    shared: dict[str, None] = {}
    bodies: list[str] = []
    for text in functions:
        lines = iter(text.splitlines())
        for line in lines:
            if line.startswith(DECLARATION):
                shared[line] = None
            elif line.startswith(SUBROUTINE):
                shared["\n".join([line, *itertools.takewhile(lambda following: following != "}", lines), "}"])] = None
            else:
                bodies.append(line)
    joined = "\n".join([*sorted(shared), *bodies, ""])
    tables = [text for name, text in TABLES.items() if f"@{name}" in joined]
    return "\n".join([*tables, joined])


def vector_lanes(kernel: Kernel, target: Target) -> int:
    """Elements per vector register: by 4 bytes, or by 8 if the kernel computes with 8-byte data."""
    dtypes = [buffer.dtype for buffer in kernel.buffers]
    dtypes += [op.result.dtype for op in statements(kernel.body) if isinstance(op, Op) and op.result.dtype.kind == "f"]
    return target.vector_bytes // max(4, *(dtype.itemsize for dtype in dtypes), 0)


@final
class _KernelEmitter:
    """Walks one kernel's statements; `environment` holds each value's word."""

    def __init__(self, kernel: Kernel, target: Target) -> None:
        self.kernel = kernel
        self.target = target
        self.e = Instructions(target.fma)
        self.environment: dict[Value, Word] = {}
        self.buffers: list[str] = []
        self.sizes: list[Word] = []
        self.lanes = 1  # of the vector loop that is open
        self.mask: Word | None = None  # of the lanes that exist, in a vector loop's tail
        self.vector_lanes = vector_lanes(kernel, target)
        self.uses = Counter(op.opcode for op in statements(kernel.body) if isinstance(op, Op))
        self.contractions = contractions(kernel) if target.contract_fma else NO_CONTRACTIONS

    def run(self) -> None:
        """Write the whole body."""
        self._open_buffers()
        for position in range(self.kernel.sizes):
            pointer = self.e.pure(f"getelementptr i64, ptr %sizes, i64 {position}", I64, 1)
            self.sizes.append(self.e.pure(f"load i64, ptr {pointer.text}", I64, 1))
        self.block(self.kernel.body)

    def _open_buffers(self) -> None:
        """Local buffers lie on the stack; the others' addresses come from `%buffers`."""
        position = 0
        for number, buffer in enumerate(self.kernel.buffers):
            name = f"%b{number}"
            self.buffers.append(name)
            if buffer.role == "local":
                type_ = f"[{buffer.elements} x {memory_type(buffer.dtype)}]"
                self.e.line(f"{name} = alloca {type_}, align 64")
                continue
            self.e.line(f"{name}.slot = getelementptr ptr, ptr %buffers, i64 {position}")
            self.e.line(f"{name} = load ptr, ptr {name}.slot")
            position += 1

    # statements

    def block(self, body: Sequence[Statement]) -> None:
        """Write the statements of one block."""
        for statement in body:
            match statement:
                case Op():
                    self.operation(statement)
                case Constant():
                    word = self.e.constant(statement.value, statement.result.dtype)
                    self.environment[statement.result] = word
                case Load():
                    self.load(statement)
                case Store():
                    self.store(statement)
                case Loop():
                    self.loop(statement)

    def operation(self, op: Op) -> None:
        """Write one operation, contracted, affine or plain."""
        if op.result in self.contractions.absorbed:
            return
        fused = self.contractions.fused.get(op)
        if fused is not None:
            self.environment[op.result] = self._multiply_add(fused)
            return
        args = [self.environment[arg] for arg in op.args]
        if any(arg.stride for arg in args):
            affine = memory_access.affine(self.e, op.opcode, args, op.result.dtype)
            if affine is not None:
                self.environment[op.result] = affine
                return
            args = [self.e.spread(arg, self.lanes) if arg.stride else arg for arg in args]
        word = self._apply(op.opcode, args, op.result.dtype)
        if word.limit is None and word.dtype == I64:
            word = memory_access.with_limit(op.opcode, args, word)
        self.environment[op.result] = word

    def _apply(self, opcode: str, args: list[Word], dtype: DType) -> Word:
        """The operation in place; a long one that the kernel needs often by a call."""
        if opcode in maths.FUNCTIONS and self.uses[opcode] > MOST_COPIES:
            return call(self.e, opcode, args, dtype, lambda e, given: operations.apply(e, opcode, given, dtype))
        return operations.apply(self.e, opcode, args, dtype)

    def _multiply_add(self, fused: FusedMultiplyAdd) -> Word:
        left, right, addend = (self.environment[value] for value in (fused.left, fused.right, fused.addend))
        left = self.e.neg(left) if fused.negate_product else left
        return self.e.fma(left, right, self.e.neg(addend) if fused.negate_addend else addend)

    def _lane_mask(self, mask: Value | None) -> Word | None:
        """The mask of a load or store, joined with the tail's."""
        given = None if mask is None else self.environment[mask]
        if given is None or self.mask is None:
            return given or self.mask
        return self.e.and_(given, self.mask)

    def load(self, load: Load) -> None:
        """Write one load."""
        buffer = self.kernel.buffers[load.buffer]
        index = self.environment[load.index]
        mask = self._lane_mask(load.mask)
        if load.mask is None and index.uniform:
            mask = None  # a tail has at least one lane
        access = memory_access.Access(self.e, self.buffers[load.buffer], buffer.dtype, self.lanes)
        self.environment[load.result] = access.load(index, mask)

    def store(self, store: Store) -> None:
        """Write one store."""
        buffer = self.kernel.buffers[store.buffer]
        index, value = self.environment[store.index], self.environment[store.value]
        value = self.e.spread(value, self.lanes) if value.stride else value
        mask = self._lane_mask(store.mask)
        if store.mask is None and index.uniform and value.uniform:
            mask = None
        access = memory_access.Access(self.e, self.buffers[store.buffer], buffer.dtype, self.lanes)
        streaming = store.streaming and self.target.aligned_buffers
        access.store(index, value, mask, streaming)

    # loops

    def loop(self, loop: Loop) -> None:
        """Write one loop and bind the results of its reductions."""
        if loop.parallel:
            start, stop = Word("%lo", I64), Word("%hi", I64)
            if loop.vector and isinstance(loop.extent, int) and loop.extent <= SPLIT:
                start, stop = index_constant(0), index_constant(loop.extent)  # never split: no loop before the tail
        else:
            start, stop = index_constant(0), self._extent(loop.extent)
        initial = [self.environment[v] for r in loop.reductions for v in r.initial]
        if loop.vector:
            results = self._vector_loop(loop, start, stop, initial)
        else:
            initial = [self.e.spread(word, self.lanes) for word in initial]
            results = self._serial_loop(loop, start, stop, initial)
        values = [value for r in loop.reductions for value in r.results]
        self.environment.update(zip(values, results, strict=True))

    def _extent(self, extent: int | Size) -> Word:
        return index_constant(extent) if isinstance(extent, int) else self.sizes[extent.position]

    def _body(self, loop: Loop, stride: int) -> Body:
        """The loop's body as a function from axis and carried words to the updates' words."""
        limit = loop.extent if isinstance(loop.extent, int) else None

        def body(axis: Word, carried: list[Word]) -> list[Word]:
            axis = Word(axis.text, I64, 1, stride, axis.constant, axis.limit or limit)
            self.environment[loop.axis] = axis
            values = [value for r in loop.reductions for value in r.carried]
            self.environment.update(zip(values, carried, strict=True))
            self.block(loop.body)
            updates = [self.environment[v] for r in loop.reductions for v in r.updates]
            return [self.e.spread(word, self.lanes) for word in updates]

        return body

    def _serial_loop(self, loop: Loop, start: Word, stop: Word, carried: list[Word]) -> list[Word]:
        body = self._body(loop, 0)
        extent = stop.constant
        if loop.parallel or extent is None or loop.unroll == 1:
            surely = extent is not None and extent > 0 and not loop.parallel
            return self._polled(loop, start, stop, 1, carried, body, surely)
        if extent > loop.unroll:
            rounds = extent - extent % loop.unroll

            def several(axis: Word, state: list[Word]) -> list[Word]:
                for offset in range(loop.unroll):
                    state = body(self.e.add(axis, offset) if offset else axis, state)
                return state

            unrolled_stop = index_constant(rounds)
            carried = self._polled(loop, start, unrolled_stop, loop.unroll, carried, several, True)
            start = unrolled_stop
        assert start.constant is not None
        for position in range(start.constant, extent):
            carried = body(index_constant(position), carried)
        return carried

    def _polled(
        self, loop: Loop, start: Word, stop: Word, step: int, carried: list[Word], body: Body, surely_runs: bool
    ) -> list[Word]:
        """`_counted`; a long loop in blocks, with a poll after each."""
        block = polling.block_of(loop)
        if block is None:
            return self._counted(start, stop, step, carried, body, surely_runs)
        e, length = self.e, -(-block // step) * step

        def one_block(axis: Word, state: list[Word]) -> list[Word]:
            end = e.minimum(e.add(axis, length), stop)
            state = self._counted(axis, end, step, state, body, True)
            self._poll()
            return state

        return self._counted(start, stop, length, carried, one_block, surely_runs)

    def _poll(self) -> None:
        """Look at the clock; return from the kernel if the program is to stop."""
        e = self.e
        e.declarations.add("declare i32 @jl_poll(ptr)")
        status, stop, left, go_on = e.name(), e.name(), e.new_label("stopped"), e.new_label("going")
        e.line(f"{status} = call i32 @jl_poll(ptr %frame)")
        e.line(f"{stop} = icmp ne i32 {status}, 0")
        e.line(f"br i1 {stop}, label %{left}, label %{go_on}")
        e.block(left)
        e.line("ret void")
        e.block(go_on)

    def _counted(
        self,
        start: Word,
        stop: Word,
        step: int,
        carried: list[Word],
        body: Body,
        surely_runs: bool,
    ) -> list[Word]:
        """`for (i = start; i < stop; i += step)`; tested at the bottom if it surely runs."""
        e = self.e
        before, header = e.label, e.new_label("loop")
        after = e.new_label("after")
        axis_name = e.name()
        state = [Word(e.name(), word.dtype, word.lanes) for word in carried]
        e.line(f"br label %{header}")
        e.block(header)
        position = len(e.lines)
        e.lines.extend([""] * (1 + len(state)))
        e.enter()
        if not surely_runs:
            inside = e.new_label("body")
            more = e.name()
            e.line(f"{more} = icmp slt i64 {axis_name}, {stop.text}")
            e.line(f"br i1 {more}, label %{inside}, label %{after}")
            e.block(inside)
        updates = body(Word(axis_name, I64), state)
        following = e.name()
        e.line(f"{following} = add nsw i64 {axis_name}, {step}")
        last = e.label
        if surely_runs:
            more = e.name()
            e.line(f"{more} = icmp slt i64 {following}, {stop.text}")
            e.line(f"br i1 {more}, label %{header}, label %{after}")
        else:
            e.line(f"br label %{header}")
        e.leave()
        phis = zip(
            [Word(axis_name, I64), *state],
            [start, *carried],
            [Word(following, I64), *updates],
            strict=True,
        )
        for offset, (phi, first, later) in enumerate(phis):
            type_ = register_type(phi.dtype, phi.lanes)
            e.lines[position + offset] = (
                f"  {phi.text} = phi {type_} [ {first.text}, %{before} ], [ {later.text}, %{last} ]"
            )
        e.block(after)
        return updates if surely_runs else state

    def _vector_loop(self, loop: Loop, start: Word, stop: Word, initial: list[Word]) -> list[Word]:
        """Whole vectors, then the tail: masked, or one element at a time."""
        lanes = self.vector_lanes * loop.unroll
        extent = loop.extent if isinstance(loop.extent, int) else None
        if extent is not None:
            while lanes > self.vector_lanes and lanes >= 2 * extent:
                lanes //= 2
        whole = extent is not None and extent % lanes == 0 and (not loop.parallel or lanes <= 64)
        self.lanes = lanes
        partial = [
            self.e.spread(self.e.constant(identity, identity.dtype), lanes)
            for reduction in loop.reductions
            for identity in reduction.identities
        ]
        vectors = self._last_whole(start, stop, lanes)
        if vectors.constant != 0:
            surely = vectors.constant is not None and vectors.constant > 0
            partial = self._polled(loop, start, vectors, lanes, partial, self._body(loop, 1), surely)
        if self.target.masked and not whole:
            partial = self._masked_tail(loop, vectors, stop, partial)
        self.lanes = 1
        results = self._merge(loop.reductions, initial, partial)
        if not self.target.masked and not whole:
            results = self._counted(vectors, stop, 1, results, self._body(loop, 0), False)
        return results

    def _last_whole(self, start: Word, stop: Word, lanes: int) -> Word:
        """Where the whole vectors of [start, stop) end."""
        if start.constant == 0 and stop.constant is not None:
            return index_constant(stop.constant - stop.constant % lanes)
        length = self.e.sub(stop, start) if start.constant != 0 else stop
        rest = self.e.urem(length, lanes) if lanes & (lanes - 1) else self.e.and_(length, lanes - 1)
        return self.e.sub(stop, rest)

    def _masked_tail(self, loop: Loop, first: Word, stop: Word, partial: list[Word]) -> list[Word]:
        """The lanes left over, if any, in one masked vector."""
        body = self._body(loop, 1)

        def masked(axis: Word, carried: list[Word]) -> list[Word]:
            self.mask = self._existing_lanes(axis, stop)
            updates = body(axis, carried)
            kept = [self.e.select(self.mask, new, old) for new, old in zip(updates, carried, strict=True)]
            self.mask = None
            return kept

        if first.constant is not None and stop.constant is not None:
            count = stop.constant - first.constant
            if count == 0:
                return partial
            self.e.enter()
            result = masked(first, partial)
            self.e.leave()
            return result
        return self._counted(first, stop, self.lanes, partial, masked, False)

    def _existing_lanes(self, axis: Word, stop: Word) -> Word:
        """Which lanes of the vector at `axis` lie before `stop`."""
        if axis.constant is not None and stop.constant is not None:
            count = stop.constant - axis.constant
            return Word(
                lanes_literal([int(lane < count) for lane in range(self.lanes)], BOOL),
                BOOL,
                self.lanes,
            )
        count_left = self.e.cast("trunc", self.e.sub(stop, axis), I32)
        return self.e.lt(self.e.spread(Word("0", I32, 1, 1), self.lanes), count_left)

    # reductions

    def _merge(self, reductions: Sequence[Reduction], initial: list[Word], partial: list[Word]) -> list[Word]:
        """Combine the lanes by halves, then with the initial values."""
        results: list[Word] = []
        for reduction in reductions:
            count = len(reduction.carried)
            state, partial = partial[:count], partial[count:]
            start, initial = initial[:count], initial[count:]
            assert reduction.combine is not None
            while state[0].lanes > 1:
                lower = [self.e.half(word, False) for word in state]
                upper = [self.e.half(word, True) for word in state]
                state = self._region(reduction.combine, lower + upper)
            identities = [self.e.constant(i, i.dtype).text for i in reduction.identities]
            if [word.text for word in start] != identities:
                state = self._region(reduction.combine, start + state)
            results.extend(state)
        return results

    def _region(self, region: Region, args: list[Word]) -> list[Word]:
        self.environment.update(zip(region.parameters, args, strict=True))
        self.block(region.body)
        lanes = args[0].lanes
        return [self.e.spread(self.environment[value], lanes) for value in region.results]
