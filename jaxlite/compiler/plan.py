"""The plan IR: a whole compiled program as steps over storages, ready to become one native entry.

A `Plan` is data only. Storages say where bytes live; a `Reference` is an address in one, which may
move with the iteration number of enclosing loops, so that the slices a scan reads and writes are
addresses and never copies. Steps run in order: kernels, matrix products, host calls, copies, and
the native loops and branches around them. `plan_verifier.py` checks a plan, `plan_printer.py` shows
it, and `backends/cpu/program.py` makes native code of it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, final

import numpy as np

from jaxlite.compiler.loops import Kernel
from jaxlite.core.device import ALIGNMENT as ALIGNMENT
from jaxlite.core.progress import Loop
from jaxlite.core.source import SourceInfo

DType: TypeAlias = np.dtype[Any]
StorageKind: TypeAlias = Literal["argument", "constant", "result", "temporary"]


@final
@dataclass(frozen=True)
class Storage:
    """`nbytes` of memory. `position`: the argument's, constant's or result's number; for a
    temporary its byte offset in the workspace, a multiple of `ALIGNMENT`."""

    kind: StorageKind
    nbytes: int
    position: int


@final
@dataclass(frozen=True)
class Label:
    """What a storage is to the user: which value's memory, its type as text, and the line that makes it."""

    what: str
    type: str
    source: SourceInfo


@final
class Counter:
    """The iteration number of one loop, from 0; hashed by identity."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Counter({id(self):#x})"


@final
@dataclass(frozen=True)
class Stride:
    """`index * nbytes`, where `index` follows the iteration number `counter` in one of three ways:

    counter                       the plain one
    (counter + phase) % modulo    with `modulo`: carries that alternate between buffers
    reverse_from - counter        with `reverse_from`: reversed scans
    """

    counter: Counter
    nbytes: int
    phase: int = 0
    modulo: int = 0
    reverse_from: int | None = None


@final
@dataclass(frozen=True)
class Reference:
    """An address: `storage`'s base + `offset` bytes + the strides of enclosing loops."""

    storage: int
    offset: int = 0
    strides: tuple[Stride, ...] = ()

    def along(
        self,
        counter: Counter,
        nbytes: int,
        *,
        phase: int = 0,
        modulo: int = 0,
        reverse_from: int | None = None,
    ) -> Reference:
        """This address, moved by `nbytes` for each step of `counter` (see `Stride`)."""
        stride = Stride(counter, nbytes, phase, modulo, reverse_from)
        return dataclasses.replace(self, strides=(*self.strides, stride))

    def plus(self, nbytes: int) -> Reference:
        """This address and `nbytes` more."""
        return dataclasses.replace(self, offset=self.offset + nbytes)


@final
@dataclass(frozen=True, eq=False)
class KernelCall:
    """Run `kernel` over its non-local buffers.

    `extent`: of its outermost parallel loop, 1 if it has none. `work`: estimated scalar operations;
    the call is split over the thread pool only if that pays.
    """

    kernel: Kernel
    buffers: tuple[Reference, ...]
    sizes: tuple[int, ...] = ()
    extent: int = 1
    work: int = 0


@final
@dataclass(frozen=True, eq=False)
class MatrixOperand:
    """A row-major matrix per batch: rows `leading` elements apart, batches `batch_stride`.

    `transposed`: the memory holds the transpose of what the product reads.
    """

    reference: Reference
    leading: int
    batch_stride: int = 0
    transposed: bool = False


@final
@dataclass(frozen=True, eq=False)
class MatrixProduct:
    """`out[b] = left[b] @ right[b]`: (m, k) times (k, n), float32 or float64, by BLAS.

    Small products (m, n and k at most about 8) are better written as a kernel.
    """

    dtype: DType
    left: MatrixOperand
    right: MatrixOperand
    out: MatrixOperand
    m: int
    n: int
    k: int
    batch: int = 1


@final
@dataclass(frozen=True)
class Pointer:
    """An argument of a library call: buffer `buffer`, `nbytes` further for each call."""

    buffer: int
    nbytes: int


@final
@dataclass(frozen=True, eq=False)
class LibraryCall:
    """Call a BLAS or LAPACK routine `batch` times; its arguments are addresses of these values.

    Integers are 32 bits, a one-letter string is a character, numbers have the dtype `real`.
    `writes`: which buffers it writes, all `batch * nbytes` of them. `work`: of one call.
    """

    routine: str
    arguments: tuple[int | str | float | Pointer, ...]
    buffers: tuple[Reference, ...]
    writes: tuple[bool, ...]
    real: DType
    batch: int
    work: int


@final
@dataclass(frozen=True)
class HostOperand:
    """What a host call sees of a reference: an array of this shape and dtype."""

    reference: Reference
    shape: tuple[int, ...]
    dtype: DType

    @property
    def nbytes(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize


HostFunction: TypeAlias = Callable[[list[np.ndarray[Any, Any]], list[np.ndarray[Any, Any]]], None]


@final
@dataclass(frozen=True, eq=False)
class HostCall:
    """Call Python: `function(inputs, outputs)` reads the first arrays and fills the second.

    The arrays are views of the program's memory, valid during the call alone: copy to keep.
    """

    function: HostFunction
    inputs: tuple[HostOperand, ...]
    outputs: tuple[HostOperand, ...]
    name: str


@final
@dataclass(frozen=True)
class Copy:
    """Copy `nbytes` between places that do not overlap (or are the same)."""

    destination: Reference
    source: Reference
    nbytes: int


@final
@dataclass(frozen=True)
class Fill:
    """Set `nbytes` to `byte`."""

    destination: Reference
    nbytes: int
    byte: int = 0


@final
@dataclass(frozen=True, eq=False)
class For:
    """Run `body` `trips` times, `counter` counting from 0. `loop`: what the user knows it by."""

    counter: Counter
    trips: int
    body: tuple[Step, ...]
    loop: Loop | None = None


@final
@dataclass(frozen=True, eq=False)
class While:
    """Run `condition`; while the byte at `predicate` is then not 0, run `body` and begin again. `loop`: as of `For`."""

    counter: Counter
    condition: tuple[Step, ...]
    predicate: Reference
    body: tuple[Step, ...]
    loop: Loop | None = None


@final
@dataclass(frozen=True, eq=False)
class Branch:
    """Run the branch that the int32 at `index` names, clamped to the branches there are."""

    index: Reference
    branches: tuple[tuple[Step, ...], ...]


Step: TypeAlias = KernelCall | MatrixProduct | LibraryCall | HostCall | Copy | Fill | For | While | Branch


@final
@dataclass(frozen=True, eq=False)
class Plan:
    """A program: `steps` over `storages`, with `constants` as row-major arrays. `takeovers`: pairs (result,
    argument): at a call, the one may lie where the other does, if the argument is not needed afterwards."""

    name: str
    storages: tuple[Storage, ...]
    steps: tuple[Step, ...]
    workspace_bytes: int = 0
    constants: tuple[np.ndarray[Any, Any], ...] = ()
    takeovers: tuple[tuple[int, int], ...] = ()

    def count(self, kind: StorageKind) -> int:
        """How many storages of a kind there are."""
        return sum(storage.kind == kind for storage in self.storages)


def inner_blocks(step: Step) -> tuple[tuple[Step, ...], ...]:
    """The blocks of steps that a step holds."""
    match step:
        case For():
            return (step.body,)
        case While():
            return (step.condition, step.body)
        case Branch():
            return step.branches
        case _:
            return ()


def all_steps(steps: tuple[Step, ...]) -> Iterator[Step]:
    """Every step of a block and of the blocks inside it, in order."""
    for step in steps:
        yield step
        for block in inner_blocks(step):
            yield from all_steps(block)


WHILE_TRIPS = 16  # a guess, for estimates


def step_work(step: Step) -> int:
    """Estimated scalar operations of a step, with what it holds; at least 16."""
    match step:
        case KernelCall():
            work = step.work
        case MatrixProduct():
            work = step.batch * step.m * step.n * step.k // 8
        case LibraryCall():
            work = step.batch * step.work
        case Copy() | Fill():
            work = step.nbytes // 32
        case HostCall():
            work = 10_000
        case For():
            work = step.trips * block_work(step.body)
        case While():
            work = WHILE_TRIPS * block_work(step.condition + step.body)
        case Branch():
            work = max((block_work(branch) for branch in step.branches), default=0)
    return max(work, 16)


def block_work(steps: tuple[Step, ...]) -> int:
    """Estimated scalar operations of a block."""
    return sum(step_work(step) for step in steps)
