"""Executable: an `Image` loaded into this process, ready to be called.

`Executable.run(addresses)` takes the addresses of the arguments and returns those of the results, in
memory of their own. It may be called from several threads, and from a host call of
its own.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, TypeAlias, final

from jaxlite.backends.cpu import blas, engine, hostcall, limits, memory
from jaxlite.backends.cpu.image import ENTRY, Image
from jaxlite.backends.cpu.pool import Pool, pool, python_symbols
from jaxlite.core import progress

if TYPE_CHECKING:
    from jaxlite.compiler.plan import HostCall


# PYFUNCTYPE keeps the interpreter lock: the entry itself gives it up if it may take long
_PROTOTYPE = ctypes.PYFUNCTYPE(ctypes.c_int32, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p)
Taken: TypeAlias = dict[int, tuple[int, memory.Block]]  # by result: an address, and the block that it is in


@final
class Executable:
    """A loaded program; ``host_calls`` are the Python functions that its code calls, by number, ``loops`` gives the
    loops that its progress speaks of."""

    def __init__(self, image: Image, host_calls: Sequence[HostCall] = (), loops: progress.Loops = lambda: ()) -> None:
        self.image = image
        self.code = engine.load_objects(image.objects, [ENTRY], _symbols(image))
        self._host = hostcall.Host(host_calls, image.named(loops))
        constants = [array.ctypes.data for array in image.constants]
        self._context = (ctypes.c_uint64 * (1 + len(constants)))(id(self._host), *constants)
        self._context_address = ctypes.addressof(self._context)
        self._entry = self.code.function(ENTRY, _PROTOTYPE)
        self._pool: Pool | None = pool() if image.splits else None
        self._results = memory.ResultLayout(image.results)
        # by the results that are written elsewhere
        self._layouts: dict[tuple[int, ...], memory.ResultLayout] = {(): self._results}
        self._pack = struct.Struct(f"{image.arguments + len(image.results)}Q").pack
        self._workspace = memory.size_class(image.workspace_bytes) if image.workspace_bytes else None
        self.lets_others_run = image.long or bool(host_calls)
        self._large = image.workspace_bytes + sum(image.results) >= limits.CHECKED

    def run(
        self, argument_addresses: Sequence[int], taken: Taken | None = None
    ) -> tuple[list[int], list[memory.Block]]:
        """Run once; the results' addresses, and the owners that keep their memory alive. ``taken``: for results that
        are to be written elsewhere than in memory of their own, address and owner."""
        if self._large:
            self.refuse_too_large(taken or ())
        addresses, owners = self._results.take() if not taken else self._take_around(taken)
        workspace = self._workspace.take() if self._workspace is not None else None
        if self._pool is not None:
            self._pool.ready()
        self._entry(  # raises what ended the program
            self._pack(*argument_addresses, *addresses),
            None if workspace is None else workspace.address,
            self._context_address,
        )
        return addresses, owners

    def refuse_too_large(self, taken: Collection[int] = ()) -> None:
        """``DoesNotFitError`` if there is not enough memory for what one call needs of its own."""
        if self._large:
            results = [n for number, n in enumerate(self.image.results) if number not in taken]
            limits.refuse_too_large([*results, self.image.workspace_bytes], f"the program {self.image.name}")

    def _take_around(self, taken: Taken) -> tuple[list[int], list[memory.Block]]:
        """Memory for the results, those that are taken elsewhere in their places."""
        key = tuple(taken)
        layout = self._layouts.get(key)
        if layout is None:
            sizes = [n for number, n in enumerate(self.image.results) if number not in taken]
            self._layouts[key] = layout = memory.ResultLayout(sizes)
        addresses, owners = layout.take()
        for number in sorted(taken):
            address, owner = taken[number]
            addresses.insert(number, address)
            owners.insert(number, owner)
        return addresses, owners


def _symbols(image: Image) -> dict[str, int]:
    """What the program's code may call."""
    symbols = hostcall.symbols()
    if image.long:  # else the pool's code, 5 ms, need not be there
        symbols |= pool().symbols | python_symbols()
    for name in image.blas:
        symbols[f"jl_{name}"] = blas.routine(name)
    return symbols
