"""Donating: a program whose results may be written where donated operands lie.

In: the operands of one call, of which some are given up.  A result takes over an operand's memory if the plan allows
the pair, and if nobody else holds the block that it lies in: no other array, NumPy view, memoryview or DLPack export.
Else it gets memory of its own.  The machine code is the same either way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from jaxlite.backends.cpu.executable import Executable, Taken
from jaxlite.backends.cpu.memory import Block, holders
from jaxlite.core.array import Array


def matched(takeovers: Sequence[tuple[int, int]], donated: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Pairs (result, operand) of those that a plan allows, each result and each donated operand at most once."""
    free = set(donated)
    pairs: dict[int, int] = {}
    for result, operand in takeovers:
        if result not in pairs and operand in free:
            pairs[result] = operand
            free.discard(operand)
    return tuple(sorted(pairs.items()))


@final
class Donating:
    """Calls of one program with the same operands donated."""

    __slots__ = ("_native", "_pairs")

    def __init__(self, native: Executable, donated: Sequence[int]) -> None:
        self._native = native
        self._pairs = matched(native.image.takeovers, donated)

    def run(self, arrays: Sequence[Array]) -> tuple[list[int], list[Block]]:
        """Addresses and owners of the results; the arrays whose memory is taken over are deleted."""
        owners = [x.owner for x in arrays]  # kept while the program runs, whoever deletes the arrays meanwhile
        given = [x.address for x in arrays]
        pairs = [
            (result, operand)
            for result, operand in self._pairs
            if given.count(given[operand]) == 1 and _is_alone(arrays[operand], owners, operand)
        ]
        self._native.refuse_too_large([result for result, _ in pairs])
        taken: Taken = {}
        for result, operand in pairs:
            holder = [owners[operand]]
            owners[operand] = None
            arrays[operand].delete()
            if holders(holder) == 0:  # still: another thread may have asked for a view
                taken[result] = given[operand], holder[0]
            owners[operand] = holder[0]
        return self._native.run(given, taken)


def _is_alone(array: Array, owners: list[Block], number: int) -> bool:
    """Whether only the array itself, and the list of this call, hold the array's block."""
    if type(owners[number]) is not Block:
        return False
    array.forget_view()
    holder = [owners[number]]
    return holders(holder) == 2
