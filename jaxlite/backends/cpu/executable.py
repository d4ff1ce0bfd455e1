"""Executable: an `Image` loaded into this process, ready to be called.

`Executable.run(addresses)` takes the addresses of the arguments and returns (address, owner) for
each result, in memory of its own. It may be called from several threads, and from a host call of
its own.
"""

from __future__ import annotations

import ctypes
import struct
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, final

from jaxlite.backends.cpu import blas, engine, hostcall, memory
from jaxlite.backends.cpu.image import ENTRY, Image
from jaxlite.backends.cpu.pool import Pool, pool, python_symbols

if TYPE_CHECKING:
    from jaxlite.compiler.plan import HostCall


@final
class Executable:
    """A loaded program; ``host_calls`` are the Python functions that its code calls, by number."""

    def __init__(self, image: Image, host_calls: Sequence[HostCall] = ()) -> None:
        self.image = image
        self.code = engine.load_object(image.object_bytes, [ENTRY], _symbols(image))
        number = hostcall.register(host_calls) if host_calls else 0
        if number:
            weakref.finalize(self, hostcall.forget, number).atexit = False
        constants = [array.ctypes.data for array in image.constants]
        self._context = (ctypes.c_uint64 * (1 + len(constants)))(number, *constants)
        self._context_address = ctypes.addressof(self._context)
        # PYFUNCTYPE keeps the interpreter lock: the entry itself gives it up if it may take long
        self._entry = ctypes.PYFUNCTYPE(ctypes.c_int32, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p)(
            self.code.addresses[ENTRY]
        )
        self._pool: Pool | None = pool() if image.splits else None
        self._results = memory.ResultLayout(image.results)
        self._pack = struct.Struct(f"{image.arguments + len(image.results)}Q").pack
        self._workspace = memory.size_class(image.workspace_bytes) if image.workspace_bytes else None

    def run(self, argument_addresses: Sequence[int]) -> list[tuple[int, memory.Block]]:
        """Run once; the results' addresses, each with the owner that keeps its memory alive."""
        results = self._results.take()
        workspace = self._workspace.take() if self._workspace is not None else None
        if self._pool is not None and not self._pool.started:
            self._pool.start()
        status = self._entry(
            self._pack(*argument_addresses, *[address for address, _ in results]),
            workspace.address if workspace is not None else None,
            self._context_address,
        )
        if status:
            raise hostcall.take_error() or RuntimeError(
                f"{self.image.name}: native code stopped with status {status} and no exception"
            )
        return results


def _symbols(image: Image) -> dict[str, int]:
    """What the program's code may call."""
    symbols = {"jl_host_call": hostcall.callback_address()}
    if image.long:  # else the pool's code, 5 ms, need not be there
        symbols |= pool().symbols | python_symbols()
    for name in image.blas:
        symbols[f"jl_{name}"] = blas.routine(name)
    return symbols
