"""The rules of the loop IR: `verify_kernel` raises `KernelError` for a kernel that breaks one.

In: a `Kernel`. It checks that each value is defined once and before it is read, dtypes and arities
(table `OPCODES`), that buffers and sizes exist, and what loops may hold.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

from jaxlite.compiler.loops import (
    BOOL,
    INDEX,
    OPCODES,
    Constant,
    DType,
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


class KernelError(ValueError):
    """A kernel breaks a rule of the loop IR."""


def verify_kernel(kernel: Kernel) -> None:
    """Check every rule; raise `KernelError` at the first that is broken."""
    for buffer in kernel.buffers:
        if buffer.role == "local" and buffer.elements is None:
            raise KernelError(f"local buffer {buffer.name!r} has no extent; give its elements")
    _Verifier(kernel).block(kernel.body, set(), outermost=True, vector=False)


def _check(condition: bool, message: str) -> None:
    if not condition:
        raise KernelError(message)


@final
class _Verifier:
    """`defined` holds what is visible; blocks see what surrounds them, not the other way round."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.ever: set[Value] = set()

    def block(self, body: Iterable[Statement], defined: set[Value], outermost: bool, vector: bool) -> None:
        """Check the statements of a block; `defined` grows by what it defines."""
        for statement in body:
            match statement:
                case Op():
                    self._read(statement.args, defined, statement.opcode)
                    self._operation(statement)
                    self._define([statement.result], defined)
                case Constant():
                    same = statement.value.dtype == statement.result.dtype
                    _check(same, f"constant {statement.value!r} defines {statement.result!r}")
                    self._define([statement.result], defined)
                case Load():
                    self._access(statement, statement.result.dtype, defined)
                    self._define([statement.result], defined)
                case Store():
                    self._access(statement, statement.value.dtype, defined)
                    self._read([statement.value], defined, "store")
                case Loop():
                    self._loop(statement, defined, outermost, vector)

    def _read(self, values: Iterable[Value], defined: set[Value], what: str) -> None:
        for value in values:
            _check(value in defined, f"{what} reads {value!r}, which is not defined here")

    def _define(self, values: Iterable[Value], defined: set[Value]) -> None:
        for value in values:
            _check(value not in self.ever, f"{value!r} is defined twice")
            self.ever.add(value)
            defined.add(value)

    def _operation(self, op: Op) -> None:
        _check(op.opcode in OPCODES, f"unknown opcode {op.opcode!r}; see loops.OPCODES")
        rule = OPCODES[op.opcode]
        given = ", ".join(arg.dtype.name for arg in op.args)
        _check(len(op.args) == rule.arity, f"{op.opcode} takes {rule.arity} arguments: {given}")
        operands = op.args[1:] if op.opcode == "select" else op.args
        same = all(arg.dtype == operands[0].dtype for arg in operands)
        kinds = kind(operands[0].dtype) in rule.accepts
        _check(same and kinds, f"{op.opcode} of {given}: expected one dtype of {rule.accepts!r}")
        if op.opcode == "select":
            _check(op.args[0].dtype == BOOL, f"select's condition is {op.args[0].dtype.name}")
        result = {"bool": BOOL, "same": operands[-1].dtype}.get(rule.result, op.result.dtype)
        _check(op.result.dtype == result, f"{op.opcode} of {given} gives {op.result.dtype.name}")
        sizes = op.opcode != "bitcast" or op.args[0].dtype.itemsize == op.result.dtype.itemsize
        _check(sizes, f"bitcast from {given} to {op.result.dtype.name}: the sizes differ")

    def _access(self, access: Load | Store, dtype: DType, defined: set[Value]) -> None:
        what = "load" if isinstance(access, Load) else "store"
        inside = 0 <= access.buffer < len(self.kernel.buffers)
        _check(inside, f"{what} of buffer {access.buffer}; there are {len(self.kernel.buffers)}")
        buffer = self.kernel.buffers[access.buffer]
        _check(dtype == buffer.dtype, f"{what} of {dtype.name} in {buffer.name}: {buffer.dtype}")
        _check(access.index.dtype == INDEX, f"{what}: the index is {access.index.dtype.name}")
        self._read([access.index], defined, what)
        if access.mask is not None:
            _check(access.mask.dtype == BOOL, f"{what}: the mask is {access.mask.dtype.name}")
            self._read([access.mask], defined, what)
        stores_input = isinstance(access, Store) and buffer.role == "input"
        _check(not stores_input, f"store into input buffer {buffer.name!r}; declare it an output")

    def _loop(self, loop: Loop, defined: set[Value], outermost: bool, vector: bool) -> None:
        if isinstance(loop.extent, Size):
            known = 0 <= loop.extent.position < self.kernel.sizes
            _check(known, f"loop over {loop.extent}; the kernel has {self.kernel.sizes} sizes")
        else:
            _check(loop.extent >= 0, f"loop over {loop.extent}")
        _check(loop.unroll >= 1, f"unroll={loop.unroll}; expected at least 1")
        if loop.parallel:
            loops = [s for s in self.kernel.body if isinstance(s, Loop) and s.parallel]
            _check(outermost and len(loops) == 1, "a parallel loop must be the one outermost loop")
            _check(not loop.reductions, "a parallel loop carries values; make it serial")
        _check(not (vector and loop.vector), "a vector loop inside a vector loop")
        for reduction in loop.reductions:
            self._reduction(reduction, loop, defined)
        inside = set(defined)
        self._define([loop.axis, *(v for r in loop.reductions for v in r.carried)], inside)
        _check(loop.axis.dtype == INDEX, f"the loop's axis is {loop.axis.dtype.name}")
        self.block(loop.body, inside, False, vector or loop.vector)
        for reduction in loop.reductions:
            self._read(reduction.updates, inside, "a loop's update")
            self._define(reduction.results, defined)

    def _reduction(self, reduction: Reduction, loop: Loop, defined: set[Value]) -> None:
        self._read(reduction.initial, defined, "a loop's initial value")
        columns = (reduction.initial, reduction.carried, reduction.updates, reduction.results)
        expected = [identity.dtype for identity in reduction.identities]
        for column in columns:
            given = [value.dtype for value in column]
            _check(given == expected, f"a reduction of {expected} holds {given}")
        if reduction.combine is None:
            _check(not loop.vector, "a vector loop has an ordered fold; give it a combine region")
            return
        region = reduction.combine
        given = [value.dtype for value in region.parameters]
        _check(given == expected * 2, f"combine takes {given}; expected {expected * 2}")
        inside = set(defined)
        self._define(region.parameters, inside)
        self.block(region.body, inside, False, True)
        self._read(region.results, inside, "combine's result")
        results = [value.dtype for value in region.results]
        _check(results == expected, f"combine gives {results}; expected {expected}")
