"""Kernels as text, complete and deterministic: two kernels of equal text are the same program.

In: a `Kernel`. Out: its text, values numbered in the order in which they appear. The name of the
kernel is left out on request, so that the text serves as a key for kernels compiled already.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

import numpy as np

from jaxlite.compiler.loops import (
    Constant,
    Kernel,
    Load,
    Loop,
    Op,
    Reduction,
    Size,
    Statement,
    Store,
    Value,
    kind,
)


def print_kernel(kernel: Kernel, names: bool = True) -> str:
    """The text of `kernel`; without `names`, neither its own nor its buffers' names."""
    printer = _Printer()
    head = [f"kernel {kernel.name if names else ''}".rstrip() + f"({kernel.sizes} sizes)"]
    for number, buffer in enumerate(kernel.buffers):
        extent = "?" if buffer.elements is None else str(buffer.elements)
        name = f" {buffer.name}" if names else ""
        head.append(f"  b{number}: {buffer.role} {buffer.dtype.name}[{extent}]{name}")
    printer.body(kernel.body, "  ")
    return "\n".join([*head, *printer.lines, ""])


def kernel_key(kernel: Kernel) -> str:
    """Equal for kernels that are the same program, whatever they are called."""
    return print_kernel(kernel, names=False)


def constant_text(value: np.generic) -> str:
    """A constant so that equal text means equal bits."""
    if kind(value.dtype) != "f":
        return str(value.item())
    number = float(value)
    return repr(number) if number == number else f"nan:0x{value.tobytes()[::-1].hex()}"


@final
class _Printer:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self._names: dict[Value, str] = {}

    def _name(self, value: Value) -> str:
        return self._names.setdefault(value, f"v{len(self._names)}")

    def _list(self, values: Iterable[Value]) -> str:
        return ", ".join(self._name(value) for value in values)

    def _typed(self, values: Iterable[Value]) -> str:
        return ", ".join(f"{self._name(value)}: {value.dtype.name}" for value in values)

    def body(self, body: Iterable[Statement], indent: str) -> None:
        for statement in body:
            match statement:
                case Op():
                    extra = "".join(f" {key}={value}" for key, value in statement.attributes)
                    args = self._list(statement.args)
                    text = f"{self._typed([statement.result])} = {statement.opcode} {args}{extra}"
                case Constant():
                    value = constant_text(statement.value)
                    text = f"{self._typed([statement.result])} = {value}"
                case Load():
                    place = f"b{statement.buffer}[{self._name(statement.index)}]"
                    text = f"{self._typed([statement.result])} = {place}{self._mask(statement)}"
                case Store():
                    place = f"b{statement.buffer}[{self._name(statement.index)}]"
                    text = f"{place} = {self._name(statement.value)}{self._mask(statement)}"
                    text += " streaming" if statement.streaming else ""
                case Loop():
                    self._loop(statement, indent)
                    continue
            self.lines.append(indent + text)

    def _mask(self, statement: Load | Store) -> str:
        return f" if {self._name(statement.mask)}" if statement.mask is not None else ""

    def _loop(self, loop: Loop, indent: str) -> None:
        extent = loop.extent
        count = f"sizes[{extent.position}]" if isinstance(extent, Size) else str(extent)
        words = ["parallel"] * loop.parallel + ["vector"] * loop.vector
        words += [f"unroll={loop.unroll}"] * (loop.unroll != 1)
        head = f"for {self._name(loop.axis)} in {count}"
        self.lines.append(indent + " ".join([head, *words]) + ":")
        for reduction in loop.reductions:
            self._carry(reduction, indent + "  ")
        self.body(loop.body, indent + "  ")
        for reduction in loop.reductions:
            updates, results = self._list(reduction.updates), self._typed(reduction.results)
            self.lines.append(f"{indent}  next {updates} -> {results}")

    def _carry(self, reduction: Reduction, indent: str) -> None:
        initial, carried = self._list(reduction.initial), self._typed(reduction.carried)
        identities = ", ".join(map(constant_text, reduction.identities))
        self.lines.append(f"{indent}carry {carried} from {initial} (neutral {identities})")
        if reduction.combine is None:
            return
        region = reduction.combine
        self.lines.append(f"{indent}combine {self._typed(region.parameters)}:")
        self.body(region.body, indent + "  ")
        self.lines.append(f"{indent}  -> {self._list(region.results)}")
