"""Host memory: 64-byte aligned blocks, given out warm and taken back when their owner dies.

`allocate(nbytes)` returns a `Block`: an address and the owner whose lifetime keeps it. A dead
block's memory goes back to its size class and is handed out again, pages already touched: a fresh
large block costs more in page faults than many kernels do to fill it. Classes up to a page are
carved from slabs and kept; blocks of `LARGE` bytes or more are kept up to `warm_limit()` bytes in
all, and `trim()` returns them to the system. `ResultLayout` gives one call's results: small ones
share one block of at most 4 KiB, so that a list of losses does not pin a step's memory.
"""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Sequence
from typing import Any, final

import numpy as np

from jaxlite.core.device import ALIGNMENT

SLAB = 1 << 16  # bytes carved at once for a small class
SMALL = 1 << 12  # the largest class carved from slabs, and the most that a call's results share
LARGE = 1 << 20  # from here on the memory kept warm is bounded
_STEPS = 4  # size classes per doubling

_process = ctypes.CDLL(None)
_allocate = _process.aligned_alloc
_allocate.restype, _allocate.argtypes = ctypes.c_void_p, (ctypes.c_size_t, ctypes.c_size_t)
_free = _process.free
_free.restype, _free.argtypes = None, (ctypes.c_void_p,)


@final
class Block:
    """Owns the memory at `address`: `nbytes` usable bytes, given back when this object dies."""

    __slots__ = ("__weakref__", "_size_class", "address")

    def __init__(self, address: int, size_class: SizeClass) -> None:
        self.address = address
        self._size_class = size_class

    @property
    def nbytes(self) -> int:
        return self._size_class.nbytes

    def __del__(self) -> None:
        self._size_class.give(self.address)


@final
class SizeClass:
    """Blocks of one size and those of them that are free. Lists are used as stacks, which is safe
    among threads and inside `__del__` without a lock."""

    __slots__ = ("free", "nbytes")

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes
        self.free: list[int] = []

    def take(self) -> Block:
        """A block, warm if there is one."""
        try:
            return Block(self.free.pop(), self)
        except IndexError:
            return Block(self._grow(), self)

    def give(self, address: int) -> None:
        """Take a dead block's memory back: keep it warm, or free it if enough is kept."""
        if self.nbytes >= LARGE and warm_bytes() + self.nbytes > warm_limit():
            _free(address)
        else:
            self.free.append(address)

    def _grow(self) -> int:
        if self.nbytes > SMALL:
            return _system_memory(self.nbytes)
        slab = _system_memory(SLAB)
        self.free.extend(range(slab + self.nbytes, slab + SLAB, self.nbytes))
        return slab


_classes: dict[int, SizeClass] = {}


def size_class(nbytes: int) -> SizeClass:
    """The class that serves `nbytes`: powers of two while small, then four steps a doubling."""
    rounded = max(ALIGNMENT, nbytes)
    if rounded <= SMALL:
        rounded = 1 << (rounded - 1).bit_length()
    else:
        step = (1 << ((rounded - 1).bit_length() - 1)) // _STEPS
        rounded = -(-rounded // step) * step
    return _classes.setdefault(rounded, SizeClass(rounded))


def allocate(nbytes: int) -> Block:
    """At least `nbytes` of memory at a multiple of 64, not cleared."""
    return size_class(nbytes).take()


def warm_bytes() -> int:
    """Bytes of large blocks that are kept free, ready to be given out."""
    return sum(c.nbytes * len(c.free) for c in list(_classes.values()) if c.nbytes >= LARGE)


@functools.cache
def warm_limit() -> int:
    """The most that `warm_bytes` may reach: a quarter of the machine's memory, at most 2 GiB."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(physical // 4, 2 << 30)


def trim() -> int:
    """Return the large free blocks to the system; the number of bytes returned."""
    returned = 0
    for large in [c for c in list(_classes.values()) if c.nbytes > SMALL]:
        while large.free:
            _free(large.free.pop())
            returned += large.nbytes
    return returned


def _system_memory(nbytes: int) -> int:
    address: int | None = _allocate(ALIGNMENT, nbytes)
    if address is None:
        trim()
        address = _allocate(ALIGNMENT, nbytes)
    if address is None:
        raise MemoryError(f"jaxlite cannot get {nbytes:,} bytes of memory for an array")
    return address


@final
class ResultLayout:
    """Where the results of one program go: fixed when it is compiled, allocated at each call."""

    __slots__ = ("_own", "_shared", "_single")

    def __init__(self, sizes: Sequence[int]) -> None:
        shared: list[tuple[int, int]] = []  # result, offset
        used = 0
        for number, nbytes in enumerate(sizes):
            padded = max(ALIGNMENT, -(-nbytes // ALIGNMENT) * ALIGNMENT)
            if used + padded <= SMALL:
                shared.append((number, used))
                used += padded
        small = {number for number, _ in shared}
        self._shared = (size_class(used), tuple(shared)) if shared else None
        self._own = tuple((n, size_class(b)) for n, b in enumerate(sizes) if n not in small)
        self._single = size_class(sizes[0]) if len(sizes) == 1 else None

    def take(self) -> list[tuple[int, Block]]:
        """New memory for every result: (address, owner) in order."""
        if self._single is not None:
            block = self._single.take()
            return [(block.address, block)]
        results: list[Any] = [None] * (len(self._own) + (len(self._shared[1]) if self._shared else 0))
        if self._shared is not None:
            block = self._shared[0].take()
            base = block.address
            for number, offset in self._shared[1]:
                results[number] = (base + offset, block)
        for number, own in self._own:
            block = own.take()
            results[number] = (block.address, block)
        return results


@final
class _Exporter:
    """Lends memory to NumPy by its array interface, and keeps the owner alive for the array."""

    __slots__ = ("__array_interface__", "owner")

    def __init__(self, interface: dict[str, object], owner: object) -> None:
        self.__array_interface__ = interface
        self.owner = owner


def view(
    address: int,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    owner: object,
    *,
    writeable: bool = False,
) -> np.ndarray[Any, Any]:
    """The memory at `address` as a row-major array that keeps `owner` alive."""
    interface: dict[str, object] = {
        "version": 3,
        "shape": (*shape, dtype.itemsize),
        "typestr": "|u1",
        "data": (address, not writeable),
    }
    return np.asarray(_Exporter(interface, owner)).view(dtype)[..., 0]
