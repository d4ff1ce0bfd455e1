"""Where kernels poll: long loops inside them are cut into blocks, with a look at the clock between two blocks.

A chunk of a kernel's parallel loop is short, because `functions.py` cuts it so; a loop inside it may be
as long as an array. In: loops of the loop-nest IR. Out: estimates in scalar operations, and after how many
iterations a loop polls. Short loops are untouched, and a block is long enough that polling costs nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable

from jaxlite.backends.cpu import maths
from jaxlite.compiler.loops import Kernel, Load, Loop, Op, Size, Statement, Store, statements

POLLED_LOOP = 1 << 20  # scalar operations from which a loop polls; one takes 0.1 to 100 ns
BLOCK = 1 << 19  # of one block
_FUNCTION = 16  # of an elementary function
_UNKNOWN_EXTENT = 1 << 16  # of a loop whose extent is given at run time


def work_of(body: Iterable[Statement]) -> int:
    """Scalar operations of one pass over a block of statements."""
    work = 0
    for statement in body:
        match statement:
            case Op():
                work += _FUNCTION if statement.opcode in maths.FUNCTIONS else 1
            case Load() | Store():
                work += 1
            case Loop():
                work += _extent(statement) * iteration_work(statement)
    return work


@functools.lru_cache(maxsize=256)
def iteration_work(loop: Loop) -> int:
    """Scalar operations of one iteration of a loop."""
    return max(1, work_of(loop.body))


def kernel_work(kernel: Kernel) -> int:
    """Scalar operations of a whole kernel."""
    return work_of(kernel.body)


def block_of(loop: Loop) -> int | None:
    """After how many iterations the loop polls; None where it is short, or what is inside it polls."""
    each = iteration_work(loop)
    if loop.parallel or each >= POLLED_LOOP or _extent(loop) * each < POLLED_LOOP:
        return None
    return max(1, BLOCK // each)


def polls(kernel: Kernel) -> bool:
    """Whether any loop of the kernel polls: it may then return before it is through."""
    return any(isinstance(s, Loop) and block_of(s) is not None for s in statements(kernel.body))


def _extent(loop: Loop) -> int:
    return _UNKNOWN_EXTENT if isinstance(loop.extent, Size) else loop.extent
