"""Host calls: how native code calls Python, by one C callback for the whole process.

A program registers its `HostCall` steps and gets a number; native code calls `callback_address()`
with that number, the step's number and the addresses of inputs and outputs, on the thread that
runs the program. An exception is kept for that thread and the callback returns 1: the program then
returns at once, and whoever called it raises what `take_error()` gives, traceback and all.
"""

from __future__ import annotations

import ctypes
import itertools
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, final

from jaxlite.backends.cpu import memory

if TYPE_CHECKING:
    from jaxlite.compiler.plan import HostCall

_numbers = itertools.count(1)
_programs: dict[int, tuple[HostCall, ...]] = {}
_made = 0


@final
class _Thread(threading.local):
    error: BaseException | None = None


_thread = _Thread()


def register(calls: Sequence[HostCall]) -> int:
    """A number for a program that makes these calls."""
    number = next(_numbers)
    _programs[number] = tuple(calls)
    return number


def forget(number: int) -> None:
    """Drop a program's calls: it will not run again."""
    _programs.pop(number, None)


def calls_made() -> int:
    """How many host calls native code has made in this process."""
    return _made


def take_error() -> BaseException | None:
    """The exception that ended this thread's latest program, once."""
    error, _thread.error = _thread.error, None
    return error


def _call(program: int, number: int, addresses: Any) -> int:
    global _made
    _made += 1
    try:
        call = _programs[program][number]
        operands = [*call.inputs, *call.outputs]
        writeable = [False] * len(call.inputs) + [True] * len(call.outputs)
        arrays = [
            memory.view(addresses[k], operand.shape, operand.dtype, None, writeable=writeable[k])
            for k, operand in enumerate(operands)
        ]
        inputs, outputs = arrays[: len(call.inputs)], arrays[len(call.inputs) :]
        call.function(inputs, outputs)
    except BaseException as error:  # KeyboardInterrupt too: it is raised again by the caller
        _thread.error = error
        return 1
    return 0


_callback = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int64, ctypes.c_int64, ctypes.POINTER(ctypes.c_uint64))(_call)


def callback_address() -> int:
    """The address of `i32 (i64 program, i64 number, ptr addresses)`."""
    address = ctypes.cast(_callback, ctypes.c_void_p).value
    if address is None:
        raise RuntimeError("ctypes gave no address for the host callback")
    return address
