"""plan_text: a plan as readable text, one step a line, the same for equal plans.

plan axpy(2 arguments, 1 result, workspace 128 bytes)
  temporary t2: 64 bytes at 0
  for i < 100:
    kernel add(argument0+4*i, t2) -> result0   extent 1, work 64
"""

from __future__ import annotations

from typing import final

from jaxlite.compiler.plan import (
    Branch,
    Copy,
    Counter,
    Fill,
    For,
    HostCall,
    HostOperand,
    KernelCall,
    LibraryCall,
    MatrixOperand,
    MatrixProduct,
    Plan,
    Pointer,
    Reference,
    Step,
    Storage,
    Stride,
    While,
)


def plan_text(plan: Plan) -> str:
    """The plan as text."""
    printer = _Printer(plan)
    arguments, results = plan.count("argument"), plan.count("result")
    printer.line(
        f"plan {plan.name}({_plural(arguments, 'argument')}, {_plural(results, 'result')}, "
        f"workspace {plan.workspace_bytes} bytes)"
    )
    printer.depth = 1
    for number, storage in enumerate(plan.storages):
        where = f" at {storage.position}" if storage.kind == "temporary" else ""
        printer.line(f"{storage.kind} {_storage_name(number, storage)}: {storage.nbytes} bytes{where}")
    printer.block(plan.steps)
    return "\n".join(printer.lines) + "\n"


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _storage_name(number: int, storage: Storage) -> str:
    return f"t{number}" if storage.kind == "temporary" else f"{storage.kind}{storage.position}"


@final
class _Printer:
    """Writes lines at a depth; names counters in the order in which their loops open."""

    def __init__(self, plan: Plan) -> None:
        self.storages = plan.storages
        self.lines: list[str] = []
        self.depth = 0
        self.counters: dict[Counter, str] = {}

    def line(self, text: str) -> None:
        self.lines.append("  " * self.depth + text)

    def block(self, steps: tuple[Step, ...]) -> None:
        for step in steps:
            self.step(step)

    def nested(self, steps: tuple[Step, ...]) -> None:
        self.depth += 1
        self.block(steps)
        self.depth -= 1

    def counter(self, counter: Counter) -> str:
        number = len(self.counters)
        return self.counters.setdefault(counter, "ijk"[number] if number < 3 else f"i{number}")

    def stride(self, stride: Stride) -> str:
        index = self.counter(stride.counter)
        if stride.modulo:
            index = f"(({index}+{stride.phase})%{stride.modulo})"
        elif stride.reverse_from is not None:
            index = f"({stride.reverse_from}-{index})"
        return f"+{stride.nbytes}*{index}"

    def reference(self, reference: Reference) -> str:
        name = _storage_name(reference.storage, self.storages[reference.storage])
        offset = f"+{reference.offset}" if reference.offset else ""
        return name + offset + "".join(self.stride(stride) for stride in reference.strides)

    def matrix(self, operand: MatrixOperand) -> str:
        mark = ".T" if operand.transposed else ""
        batch = f", batch {operand.batch_stride}" if operand.batch_stride else ""
        return f"{self.reference(operand.reference)}{mark}[leading {operand.leading}{batch}]"

    def host(self, operands: tuple[HostOperand, ...]) -> str:
        return ", ".join(
            f"{self.reference(operand.reference)}:{operand.dtype.name}{list(operand.shape)}" for operand in operands
        )

    def step(self, step: Step) -> None:
        match step:
            case KernelCall():
                self.line(self.kernel_call(step))
            case MatrixProduct():
                self.line(self.matrix_product(step))
            case LibraryCall():
                self.line(self.library_call(step))
            case HostCall():
                self.line(f"host {step.name}({self.host(step.inputs)}) -> {self.host(step.outputs)}")
            case Copy():
                source, destination = map(self.reference, (step.source, step.destination))
                self.line(f"copy {source} -> {destination}   {step.nbytes} bytes")
            case Fill():
                destination = self.reference(step.destination)
                self.line(f"fill {destination} with {step.byte}   {step.nbytes} bytes")
            case For():
                self.line(f"for {self.counter(step.counter)} < {step.trips}:")
                self.nested(step.body)
            case While():
                self.line(f"while {self.counter(step.counter)}, {self.reference(step.predicate)}:")
                self.nested(step.condition)
                self.line("do:")
                self.nested(step.body)
            case Branch():
                for number, branch in enumerate(step.branches):
                    self.line(f"branch {self.reference(step.index)} is {number}:")
                    self.nested(branch)

    def library_call(self, step: LibraryCall) -> str:
        """`sgetrf(3, 3, t4[+36], ...) x 10`: what a pointer moves by for each call stands in brackets."""
        arguments = [
            f"{self.reference(step.buffers[a.buffer])}[+{a.nbytes}]" if isinstance(a, Pointer) else str(a)
            for a in step.arguments
        ]
        return f"{step.routine}({', '.join(arguments)}) x {step.batch}   work {step.work}"

    def matrix_product(self, step: MatrixProduct) -> str:
        batch = f"{step.batch} x " if step.batch != 1 else ""
        shapes = f"{batch}({step.m}, {step.k}) @ ({step.k}, {step.n})"
        left, right, out = map(self.matrix, (step.left, step.right, step.out))
        return f"product {step.dtype.name} {shapes}: {left} @ {right} -> {out}"

    def kernel_call(self, step: KernelCall) -> str:
        shared = [buffer for buffer in step.kernel.buffers if buffer.role != "local"]
        pairs = list(zip(shared, step.buffers, strict=True))
        inputs = ", ".join(self.reference(r) for buffer, r in pairs if buffer.role == "input")
        outputs = ", ".join(self.reference(r) for buffer, r in pairs if buffer.role == "output")
        sizes = f", sizes {list(step.sizes)}" if step.sizes else ""
        numbers = f"extent {step.extent}, work {step.work}{sizes}"
        return f"kernel {step.kernel.name}({inputs}) -> {outputs}   {numbers}"
