"""Host memory: 64-byte aligned blocks, given out warm and taken back when their owner dies.

`allocate(nbytes)` returns a `Block`: an address and the owner whose lifetime keeps it. A dead
block's memory goes back to its size class and is handed out again, pages already touched: a fresh
large block costs more in page faults than many kernels do to fill it. What is kept is bounded: each
class keeps up to `QUOTA` bytes, and all together up to `warm_limit()`; the rest returns to the
system, and so does all of it at `trim()`. Classes up to a page are carved from slabs, which return
when nothing of them is in use. Taking and giving back is native code, which no signal handler can cut in
two (`memory_code.py`). `ResultLayout` gives one call's results: small ones share one block of at most 4 KiB, so
that a list of losses does not pin a step's memory.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from collections.abc import Sequence
from typing import Any, final

import numpy as np

from jaxlite.backends.cpu import engine, memory_code
from jaxlite.backends.cpu.stored import stored_object
from jaxlite.core import locks
from jaxlite.core.device import ALIGNMENT
from jaxlite.core.errors import DoesNotFitError

SMALL = 1 << 12  # the largest class carved from slabs, and the most that a call's results share
QUOTA = 4 << 20  # bytes that a class may keep whatever the others keep
LARGE = 1 << 20  # from here on a class has no quota of its own
_STEPS = 4  # size classes per doubling


@final
class Block:
    """Owns the memory at `address`: `nbytes` usable bytes, given back when this object dies."""

    __slots__ = ("__weakref__", "_memory", "address", "nbytes")

    def __init__(self, address: int, memory: object, nbytes: int) -> None:
        self.address = address
        self._memory = memory  # the capsule, whose death gives it back
        self.nbytes = nbytes


@final
class _Native:
    """The loaded code of `memory_code.py` and its state, of all threads."""

    def __init__(self) -> None:
        text = memory_code.memory_text()
        object_bytes = stored_object(lambda: engine.generate(text, engine.QUICK)[0], "memory", text, engine.QUICK)
        process = ctypes.CDLL(None)
        symbols = {name: engine.function_address(process, name) for name in memory_code.SYSTEM_SYMBOLS}
        symbols |= {name: engine.function_address(ctypes.pythonapi, name) for name in memory_code.PYTHON_SYMBOLS}
        code = engine.load_object(object_bytes, memory_code.EXPORTS, symbols)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(code))  # for ever: at exit blocks may outlive this module
        state = code.addresses["jl_memory"]
        self.warm = ctypes.c_uint64.from_address(state + memory_code.WARM_BYTES)
        self.limit = ctypes.c_uint64.from_address(state + memory_code.WARM_LIMIT)
        self.limit.value = warm_limit()
        self.take = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p)(code.addresses["jl_memory_take"])
        self.trim = ctypes.PYFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p)(code.addresses["jl_memory_trim"])
        self._classes = state + memory_code.CLASSES

    def class_at(self, number: int, nbytes: int) -> int:
        """The address of a new size class."""
        address = self._classes + number * memory_code.CLASS_BYTES
        words = _words(address)
        words[memory_code.NBYTES] = nbytes
        words[memory_code.QUOTA] = QUOTA // nbytes if nbytes < LARGE else 0
        words[memory_code.CARVED] = nbytes <= SMALL
        return address


def _words(address: int) -> ctypes.Array[ctypes.c_uint64]:
    return (ctypes.c_uint64 * 6).from_address(address)


@final
class SizeClass:
    """Blocks of one size, and those of them that are free."""

    __slots__ = ("_at", "_take", "nbytes")

    def __init__(self, native: _Native, nbytes: int, number: int) -> None:
        self.nbytes = nbytes
        self._at = native.class_at(number, nbytes)
        self._take = functools.partial(native.take, self._at)

    def take(self) -> Block:
        """A block, warm if there is one."""
        try:
            address, memory = self._take()
        except MemoryError:
            address, memory = self._take_after_trimming()
        return Block(address, memory, self.nbytes)

    @property
    def free_blocks(self) -> int:
        """How many are kept, ready to be given out."""
        return int(_words(self._at)[memory_code.COUNT])

    @property
    def owned_blocks(self) -> int:
        """How many are given out."""
        return int(_words(self._at)[memory_code.OWNED])

    def trim(self) -> int:
        """Return what is free to the system: blocks, and whole slabs of small ones; the number of bytes returned."""
        return int(_natives[0].trim(self._at))

    def _take_after_trimming(self) -> Any:
        trim()
        try:
            return self._take()
        except MemoryError:
            raise DoesNotFitError(
                f"RESOURCE_EXHAUSTED: Out of memory: the system refuses {self.nbytes:,} bytes for an array or a "
                "workspace."
            ) from None


_classes: dict[int, SizeClass] = {}
_natives: list[_Native] = []  # one, from the first block on
_making = locks.lock()


def size_class(nbytes: int) -> SizeClass:
    """The class that serves `nbytes`: powers of two while small, then four steps a doubling."""
    rounded = max(ALIGNMENT, nbytes)
    if rounded <= SMALL:
        rounded = 1 << (rounded - 1).bit_length()
    else:
        step = (1 << ((rounded - 1).bit_length() - 1)) // _STEPS
        rounded = -(-rounded // step) * step
    known = _classes.get(rounded)
    return _new_class(rounded) if known is None else known


def _new_class(nbytes: int) -> SizeClass:
    with _making:
        if not _natives:
            _natives.append(_Native())
        if nbytes not in _classes:
            _classes[nbytes] = SizeClass(_natives[0], nbytes, len(_classes))
        return _classes[nbytes]


def allocate(nbytes: int) -> Block:
    """At least `nbytes` of memory at a multiple of 64, not cleared."""
    return size_class(nbytes).take()


def warm_bytes() -> int:
    """Bytes of blocks that are kept free, ready to be given out."""
    return _natives[0].warm.value if _natives else 0


def owned_bytes() -> int:
    """Bytes of blocks that are given out."""
    return sum([c.owned_blocks * c.nbytes for c in list(_classes.values())])


@functools.cache
def warm_limit() -> int:
    """The most that `warm_bytes` may reach, quotas apart: a quarter of the machine's memory, at most 2 GiB."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(physical // 4, 2 << 30)


def trim() -> int:
    """Return all that is free to the system; the number of bytes returned."""
    returned = sum([c.trim() for c in list(_classes.values())])
    _give_back(0)
    return returned


_give_back = getattr(ctypes.CDLL(None), "malloc_trim", lambda _: 0)  # glibc alone keeps what was freed


def holders(holder: list[Block]) -> int:
    """How many others than `holder` itself refer to the block in it: arrays, and memory that views are of."""
    return sys.getrefcount(holder[0]) - _ALONE


_ALONE = 0
_ALONE = holders([Block(0, None, 0)])  # what looking at it counts for


@final
class ResultLayout:
    """Where the results of one program go: fixed when it is compiled, allocated at each call."""

    __slots__ = ("_own", "_shared", "_single")

    def __init__(self, sizes: Sequence[int]) -> None:
        offsets: list[int] = []  # of those that share, in order
        apart: list[int] = []
        used = 0
        for number, nbytes in enumerate(sizes):
            padded = max(ALIGNMENT, -(-nbytes // ALIGNMENT) * ALIGNMENT)
            if used + padded <= SMALL:
                offsets.append(used)
                used += padded
            else:
                apart.append(number)
        self._shared = (size_class(used), tuple(offsets)) if offsets else None
        self._own = tuple((n, size_class(sizes[n])) for n in apart)  # by rising number: inserted in their places
        self._single = size_class(sizes[0]) if len(sizes) == 1 else None

    def take(self) -> tuple[list[int], list[Block]]:
        """New memory for every result: addresses, and owners in the same order."""
        if self._single is not None:
            block = self._single.take()
            return [block.address], [block]
        if self._shared is None:
            addresses: list[int] = []
            owners: list[Block] = []
        else:
            size, offsets = self._shared
            block = size.take()
            base = block.address
            addresses, owners = [base + offset for offset in offsets], [block] * len(offsets)
        for number, own in self._own:
            block = own.take()
            addresses.insert(number, block.address)
            owners.insert(number, block)
        return addresses, owners


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
