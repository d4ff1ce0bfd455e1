"""emit_kernel: one loop-nest kernel as CUDA C++ text.

In: a `Kernel` and the function's name. Out: `extern "C" __global__ void name(buffers..., sizes...,
lo, hi)`; `module_text` puts the prelude in front. [lo, hi) is the range of the outermost parallel
loop.

A parallel loop that holds vector loops gives one iteration to a block of at most `BLOCK` threads (a
power of two): the vector loops run over its threads, their reductions through shared memory. Any
other parallel loop gives one iteration to a thread. Compile with `COMPILE_OPTIONS`: the emitter
contracts products by our rule, the compiler must not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import final

from jaxlite.backends.gpu.expressions import (
    constant,
    memory_type,
    narrow_name,
    operation,
    register_type,
)
from jaxlite.backends.gpu.prelude import PRELUDE
from jaxlite.compiler.contraction import NO_CONTRACTIONS, FusedMultiplyAdd, contractions
from jaxlite.compiler.loops import (
    Buffer,
    Constant,
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
    is_narrow_float,
    statements,
)

BLOCK = 256
COMPILE_OPTIONS = ("--std=c++17", "--fmad=false")


def emit_kernel(kernel: Kernel, name: str, contract_fma: bool = True) -> str:
    """The CUDA C++ text of `kernel`."""
    emitter = _KernelEmitter(kernel, contract_fma)
    emitter.block(kernel.body)
    shared = [f"    {line}" for line in emitter.shared]
    head = f'extern "C" __global__ void {name}({", ".join(emitter.parameters())}) {{'
    return "\n".join([head, *shared, *emitter.lines, "}", ""])


def module_text(functions: Iterable[str]) -> str:
    """One source file of several emitted kernels."""
    return "\n".join([PRELUDE, *functions])


def uses_blocks(kernel: Kernel) -> bool:
    """Whether an iteration of the parallel loop is a block's work rather than a thread's."""
    return any(isinstance(s, Loop) and s.vector and not s.parallel for s in statements(kernel.body)) or not any(
        isinstance(s, Loop) and s.parallel for s in kernel.body
    )


@final
class _KernelEmitter:
    """Writes statements as lines; `names` holds each value's text."""

    def __init__(self, kernel: Kernel, contract_fma: bool) -> None:
        self.kernel = kernel
        self.lines: list[str] = []
        self.shared: list[str] = []  # declarations at the head of the function
        self.names: dict[Value, str] = {}
        self.count = 0
        self.depth = 1
        self.blocks = uses_blocks(kernel)
        self.in_vector = False
        self.contractions = contractions(kernel) if contract_fma else NO_CONTRACTIONS
        for number, buffer in enumerate(kernel.buffers):
            if buffer.role == "local":
                space = "__shared__ " if self.blocks else ""
                type_ = memory_type(buffer.dtype)
                self.shared.append(f"{space}{type_} {_name(buffer, number)}[{buffer.elements}];")

    def parameters(self) -> list[str]:
        """The function's parameters."""
        buffers = [
            f"{'const ' * (buffer.role == 'input')}{memory_type(buffer.dtype)}* {_name(buffer, number)}"
            for number, buffer in enumerate(self.kernel.buffers)
            if buffer.role != "local"
        ]
        sizes = [f"i64 size{position}" for position in range(self.kernel.sizes)]
        return [*buffers, *sizes, "i64 lo", "i64 hi"]

    def line(self, text: str) -> None:
        """Write a line at the current depth."""
        self.lines.append("    " * self.depth + text)

    def define(self, value: Value, expression: str) -> None:
        """`const type name = expression;`."""
        name = self.fresh(value)
        self.line(f"const {register_type(value.dtype)} {name} = {expression};")

    def fresh(self, value: Value) -> str:
        """A new name for a value."""
        self.names[value] = f"v{self.count}"
        self.count += 1
        return self.names[value]

    # statements

    def block(self, body: Sequence[Statement]) -> None:
        """Write the statements of one block."""
        for statement in body:
            match statement:
                case Op():
                    self.operation(statement)
                case Constant():
                    self.names[statement.result] = _typed_constant(statement)
                case Load():
                    self.load(statement)
                case Store():
                    self.store(statement)
                case Loop():
                    self.loop(statement)

    def operation(self, op: Op) -> None:
        """Write one operation."""
        if op.result in self.contractions.absorbed:
            return
        fused = self.contractions.fused.get(op)
        if fused is not None:
            self.define(op.result, self._multiply_add(fused, op))
            return
        self.define(op.result, operation(op, [self.names[arg] for arg in op.args]))

    def _multiply_add(self, fused: FusedMultiplyAdd, op: Op) -> str:
        left, right = self.names[fused.left], self.names[fused.right]
        addend = self.names[fused.addend]
        left = f"-{left}" if fused.negate_product else left
        addend = f"-{addend}" if fused.negate_addend else addend
        suffix = "f" if register_type(op.result.dtype) == "float" else ""
        return f"fma{suffix}({left}, {right}, {addend})"

    def load(self, load: Load) -> None:
        """Write one load."""
        buffer = self.kernel.buffers[load.buffer]
        element = f"{_name(buffer, load.buffer)}[{self.names[load.index]}]"
        if is_narrow_float(buffer.dtype):
            element = f"jl_from_{narrow_name(buffer.dtype)}({element})"
        if load.mask is not None:
            zero = f"({register_type(buffer.dtype)})0"
            element = f"{self.names[load.mask]} ? {element} : {zero}"
        self.define(load.result, element)

    def store(self, store: Store) -> None:
        """Write one store; outside the vector loops of a block its first thread does it."""
        buffer = self.kernel.buffers[store.buffer]
        value = self.names[store.value]
        if is_narrow_float(buffer.dtype):
            value = f"jl_to_{narrow_name(buffer.dtype)}({value})"
        conditions = ["threadIdx.x == 0"] * (self.blocks and not self.in_vector)
        conditions += [self.names[store.mask]] if store.mask is not None else []
        guard = f"if ({' && '.join(conditions)}) " if conditions else ""
        place = f"{_name(buffer, store.buffer)}[{self.names[store.index]}]"
        self.line(f"{guard}{place} = {value};")
        if self.blocks and not self.in_vector:
            self.line("__syncthreads();")

    # loops

    def loop(self, loop: Loop) -> None:
        """Write one loop."""
        start, step = "0", "1"
        stop = f"size{loop.extent.position}" if isinstance(loop.extent, Size) else str(loop.extent)
        spread = loop.vector and not loop.parallel
        if loop.parallel and self.blocks:
            start, stop, step = "lo + blockIdx.x", "hi", "gridDim.x"
        elif loop.parallel:
            start, stop, step = "lo + (i64)blockIdx.x * blockDim.x + threadIdx.x", "hi", ""
            step = "(i64)gridDim.x * blockDim.x"
        elif spread:
            start, step = "threadIdx.x", "blockDim.x"
        self._open_reductions(loop, spread)
        axis = self.fresh(loop.axis)
        if loop.unroll > 1 and not spread and not loop.parallel:
            self.line(f"#pragma unroll {loop.unroll}")
        self.line(f"for (i64 {axis} = {start}; {axis} < {stop}; {axis} += {step}) {{")
        self.depth += 1
        before, self.in_vector = self.in_vector, self.in_vector or loop.vector
        self.block(loop.body)
        self._update(loop.reductions)
        self.in_vector = before
        self.depth -= 1
        self.line("}")
        if spread:
            self.line("__syncthreads();")
            for reduction in loop.reductions:
                self._merge(reduction)

    def _open_reductions(self, loop: Loop, spread: bool) -> None:
        """Declare the running values: a thread's partial starts at the identity."""
        for reduction in loop.reductions:
            for position, value in enumerate(reduction.carried):
                identity = reduction.identities[position]
                start = constant(identity, identity.dtype) if spread else self.names[reduction.initial[position]]
                name = self.fresh(value)
                self.line(f"{register_type(value.dtype)} {name} = {start};")
                self.names[reduction.results[position]] = name

    def _update(self, reductions: Sequence[Reduction]) -> None:
        """Assign the running values; through copies where an update reads another running value."""
        pairs = [
            (self.names[carried], self.names[update], carried)
            for reduction in reductions
            for carried, update in zip(reduction.carried, reduction.updates, strict=True)
        ]
        running = {name for name, _, _ in pairs}
        if any(update in running and update != name for name, update, _ in pairs):
            for position, (name, update, carried) in enumerate(pairs):
                self.line(f"const {register_type(carried.dtype)} {name}_next = {update};")
                pairs[position] = (name, f"{name}_next", carried)
        for name, update, _ in pairs:
            if name != update:
                self.line(f"{name} = {update};")

    def _merge(self, reduction: Reduction) -> None:
        """Merge the threads' partials by halves in shared memory, then with the initial values."""
        assert reduction.combine is not None
        names = [self.names[value] for value in reduction.carried]
        slots = [f"{name}_shared" for name in names]
        for slot, value in zip(slots, reduction.carried, strict=True):
            self.shared.append(f"__shared__ {register_type(value.dtype)} {slot}[{BLOCK}];")
        for slot, name in zip(slots, names, strict=True):
            self.line(f"{slot}[threadIdx.x] = {name};")
        self.line("__syncthreads();")
        self.line("for (int half = blockDim.x / 2; half > 0; half /= 2) {")
        self.depth += 1
        self.line("if (threadIdx.x < half) {")
        self.depth += 1
        mine = [f"{slot}[threadIdx.x]" for slot in slots]
        other = [f"{slot}[threadIdx.x + half]" for slot in slots]
        merged = self._region(reduction.combine, mine + other)
        for place, text in zip(mine, merged, strict=True):
            self.line(f"{place} = {text};")
        self.depth -= 1
        self.line("}")
        self.line("__syncthreads();")
        self.depth -= 1
        self.line("}")
        first = [self.names[value] for value in reduction.initial]
        totals = [f"{slot}[0]" for slot in slots]
        if first != [constant(identity, identity.dtype) for identity in reduction.identities]:
            totals = self._region(reduction.combine, first + totals)
        for result, text in zip(reduction.results, totals, strict=True):
            self.define(result, text)
        self.line("__syncthreads();")

    def _region(self, region: Region, args: Sequence[str]) -> list[str]:
        self.names.update(zip(region.parameters, args, strict=True))
        self.block(region.body)
        return [self.names[value] for value in region.results]


def _typed_constant(statement: Constant) -> str:
    """A literal of exactly its type, so that templates see one type."""
    text = constant(statement.value, statement.result.dtype)
    small = statement.result.dtype.itemsize < 4 and statement.result.dtype.kind in "iu"
    return f"({register_type(statement.result.dtype)}){text}" if small else text


def _name(buffer: Buffer, number: int) -> str:
    """A buffer's name in the source: its own, made unique by its number."""
    letters = "".join(c if c.isalnum() and c.isascii() else "_" for c in buffer.name)
    return f"b{number}_{letters}"
