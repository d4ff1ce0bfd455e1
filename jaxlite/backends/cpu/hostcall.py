"""Host calls: the Python functions that a program's native code calls, and what it tells its progress of.

A program that calls Python or may run long has a `Host`, whose address is in its context. Native code calls it with
the number of a `HostCall` step and the address of the list of addresses of inputs and outputs, on the thread that runs
the program (`hostcall_code.py`). An exception ends the program and is raised by its caller.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING, final

from jaxlite.backends.cpu import hostcall_code, memory
from jaxlite.backends.cpu.engine import function_address
from jaxlite.core import progress

if TYPE_CHECKING:
    from jaxlite.compiler.plan import HostCall

_made = 0


@final
class Host:
    """What one program's native code knows of Python: ``calls`` by number, and its outermost loops."""

    __slots__ = ("calls", "loops")

    def __init__(self, calls: Sequence[HostCall], loops: progress.Loops) -> None:
        self.calls, self.loops = tuple(calls), loops

    def __call__(self, number: int, address: int) -> None:
        """Call number ``number`` on views of the program's memory."""
        global _made
        _made += 1
        call = self.calls[number]
        count = len(call.inputs) + len(call.outputs)
        addresses = (ctypes.c_uint64 * count).from_address(address)
        inputs = [
            memory.view(at, operand.shape, operand.dtype, None)
            for at, operand in zip(addresses[: len(call.inputs)], call.inputs, strict=True)
        ]
        outputs = [
            memory.view(at, operand.shape, operand.dtype, None, writeable=True)
            for at, operand in zip(addresses[len(call.inputs) :], call.outputs, strict=True)
        ]
        call.function(inputs, outputs)


def calls_made() -> int:
    """How many host calls native code has made in this process."""
    return _made


def symbols() -> dict[str, int]:
    """What the code of a host call itself calls."""
    return {name: function_address(ctypes.pythonapi, name) for name in hostcall_code.SYMBOLS}
