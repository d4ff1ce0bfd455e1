"""verify_plan: check that a plan means something, before native code is made of it.

Raises `PlanError` naming the step and what is wrong: a storage that does not exist, an access
outside its storage, a counter used outside its loop, a result that some path leaves unwritten, a
temporary outside the workspace, a step written to an argument or a constant.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import final

import numpy as np

from jaxlite.compiler.plan import (
    ALIGNMENT,
    Branch,
    Copy,
    Counter,
    Fill,
    For,
    HostCall,
    KernelCall,
    LibraryCall,
    MatrixOperand,
    MatrixProduct,
    Plan,
    Pointer,
    Reference,
    Step,
    Stride,
    While,
)


@final
class PlanError(ValueError):
    """A plan that breaks a rule of the plan IR: a mistake in the compiler, not in the program."""


Access = tuple[Reference, int, bool, str]  # address, bytes (-1: not known), writes, what it is


def verify_plan(plan: Plan) -> None:
    """Raise `PlanError` unless `plan` keeps the rules."""
    _verify_storages(plan)
    written = _Verifier(plan).block(plan.steps, {})
    for number, storage in enumerate(plan.storages):
        if storage.kind == "result" and storage.nbytes and number not in written:
            raise PlanError(
                f"plan {plan.name}: result {storage.position} (storage {number}) is not written on "
                "every path; write it, or copy to it from where the value is"
            )


def _verify_storages(plan: Plan) -> None:
    for number, storage in enumerate(plan.storages):
        where = f"plan {plan.name}: storage {number}"
        if storage.nbytes < 0:
            raise PlanError(f"{where} has {storage.nbytes} bytes; expected 0 or more")
        if storage.kind == "temporary":
            if storage.position % ALIGNMENT:
                raise PlanError(f"{where} is at {storage.position}, no multiple of {ALIGNMENT}")
            if storage.position < 0 or storage.position + storage.nbytes > plan.workspace_bytes:
                span = f"{storage.position} to {storage.position + storage.nbytes}"
                raise PlanError(f"{where} takes bytes {span} of a workspace of {plan.workspace_bytes}")
    for kind in ("argument", "constant", "result"):
        positions = sorted(s.position for s in plan.storages if s.kind == kind)
        if positions != list(range(len(positions))):
            raise PlanError(f"plan {plan.name}: {kind} positions {positions} are not 0, 1, 2, ...")
    constants = [s for s in plan.storages if s.kind == "constant"]
    if len(constants) != len(plan.constants):
        raise PlanError(f"plan {plan.name}: {len(constants)} constant storages, {len(plan.constants)} constants")
    for storage in constants:
        _verify_constant(plan, storage.position, storage.nbytes)


def _verify_constant(plan: Plan, position: int, nbytes: int) -> None:
    array = plan.constants[position]
    if array.nbytes != nbytes or not array.flags.c_contiguous:
        raise PlanError(
            f"plan {plan.name}: constant {position} is {array.nbytes} bytes (row-major: "
            f"{array.flags.c_contiguous}); expected {nbytes} row-major"
        )


Trips = Mapping[Counter, int | None]  # how often each enclosing loop runs; None: not known


@final
class _Verifier:
    """Walks the steps; each block returns the storages that it surely writes."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    def block(self, steps: tuple[Step, ...], trips: Trips) -> set[int]:
        written: set[int] = set()
        for step in steps:
            written |= self.step(step, trips)
        return written

    def step(self, step: Step, trips: Trips) -> set[int]:
        for access in _accesses(step):
            self.access(access, trips)
        match step:
            case For():
                if step.trips < 0:
                    raise self.error("for", f"runs {step.trips} times; expected 0 or more")
                written = self.block(step.body, self.opened(step.counter, step.trips, trips))
                return written if step.trips else set()
            case While():
                inner = self.opened(step.counter, None, trips)
                written = self.block(step.condition, inner)
                self.access((step.predicate, 1, False, "while predicate"), inner)
                self.block(step.body, inner)
                return written
            case Branch():
                if not step.branches:
                    raise self.error("branch", "has no branches; expected one or more")
                paths = [self.block(branch, trips) for branch in step.branches]
                return set.intersection(*paths)
            case _:
                return {reference.storage for reference, _, writes, _ in _accesses(step) if writes}

    def opened(self, counter: Counter, count: int | None, trips: Trips) -> Trips:
        if counter in trips:
            raise self.error("loop", "reuses the counter of a loop around it; make a new Counter()")
        return {**trips, counter: count}

    def access(self, access: Access, trips: Trips) -> None:
        reference, nbytes, writes, what = access
        if not 0 <= reference.storage < len(self.plan.storages):
            raise self.error(what, f"names storage {reference.storage} of {len(self.plan.storages)}")
        storage = self.plan.storages[reference.storage]
        if writes and storage.kind in ("argument", "constant"):
            raise self.error(what, f"writes to {storage.kind} {storage.position}; copy it first")
        low = high = reference.offset
        for stride in reference.strides:
            first, last = self.index_range(stride, trips, what)
            low += min(first * stride.nbytes, last * stride.nbytes)
            high += max(first * stride.nbytes, last * stride.nbytes)
        if _never_runs(trips):
            return
        if nbytes and (low < 0 or high + max(nbytes, 0) > storage.nbytes):
            raise self.error(
                what,
                f"reaches bytes {low} to {high + max(nbytes, 0)} of {storage.kind} storage "
                f"{reference.storage}, which has {storage.nbytes}",
            )

    def index_range(self, stride: Stride, trips: Trips, what: str) -> tuple[int, int]:
        if stride.counter not in trips:
            raise self.error(what, "follows the counter of a loop that is not around it")
        if stride.modulo:
            return 0, stride.modulo - 1
        count = trips[stride.counter]
        if count is None:
            raise self.error(what, "follows a while loop's counter without `modulo`: no bound")
        if stride.reverse_from is not None:
            return stride.reverse_from - max(count - 1, 0), stride.reverse_from
        return 0, max(count - 1, 0)

    def error(self, what: str, message: str) -> PlanError:
        return PlanError(f"plan {self.plan.name}: {what} {message}")


def _never_runs(trips: Trips) -> bool:
    return 0 in trips.values()


def _accesses(step: Step) -> Iterator[Access]:
    """What a step itself reads and writes, without the blocks inside it."""
    match step:
        case KernelCall():
            yield from _kernel_accesses(step)
        case MatrixProduct():
            yield from _product_accesses(step)
        case LibraryCall():
            for argument in step.arguments:
                if isinstance(argument, Pointer):
                    nbytes, writes = step.batch * argument.nbytes, step.writes[argument.buffer]
                    yield step.buffers[argument.buffer], nbytes, writes, f"{step.routine}: buffer {argument.buffer}"
        case HostCall():
            for operand in step.inputs:
                yield operand.reference, operand.nbytes, False, f"host call {step.name}: input"
            for operand in step.outputs:
                yield operand.reference, operand.nbytes, True, f"host call {step.name}: output"
        case Copy():
            yield step.source, step.nbytes, False, "copy source"
            yield step.destination, step.nbytes, True, "copy destination"
        case Fill():
            yield step.destination, step.nbytes, True, "fill destination"
        case Branch():
            yield step.index, 4, False, "branch index"
        case For() | While():
            pass


def _kernel_accesses(step: KernelCall) -> Iterator[Access]:
    name = f"kernel {step.kernel.name}"
    shared = [buffer for buffer in step.kernel.buffers if buffer.role != "local"]
    if len(shared) != len(step.buffers):
        raise PlanError(f"{name} has {len(shared)} buffers, its call gives {len(step.buffers)}")
    if step.kernel.sizes != len(step.sizes):
        raise PlanError(f"{name} has {step.kernel.sizes} sizes, its call gives {len(step.sizes)}")
    if step.extent < 0:
        raise PlanError(f"{name} is called with extent {step.extent}; expected 0 or more")
    for buffer, reference in zip(shared, step.buffers, strict=True):
        nbytes = -1 if buffer.elements is None else buffer.elements * buffer.dtype.itemsize
        yield reference, nbytes, buffer.role == "output", f"{name}: {buffer.name}"


def _product_accesses(step: MatrixProduct) -> Iterator[Access]:
    if step.dtype not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise PlanError(f"matrix product of {step.dtype.name}; expected float32 or float64")
    itemsize = step.dtype.itemsize
    if step.out.transposed:
        raise PlanError("matrix product: out is transposed; swap and transpose left and right")
    shapes: tuple[tuple[str, MatrixOperand, int, int, bool], ...] = (
        ("left", step.left, step.m, step.k, False),
        ("right", step.right, step.k, step.n, False),
        ("out", step.out, step.m, step.n, True),
    )
    for name, operand, rows, columns, writes in shapes:
        if operand.transposed:
            rows, columns = columns, rows
        if operand.leading < columns:
            raise PlanError(f"matrix product: {name} has {columns} columns, {operand.leading} apart")
        elements = 0
        if rows and columns and step.batch:
            last = (step.batch - 1) * operand.batch_stride + (rows - 1) * operand.leading
            elements = last + columns
        yield operand.reference, elements * itemsize, writes, f"matrix product: {name}"
