"""Memory for tests: every array ends right before a page that nobody may touch, or begins right after one.

``install()`` makes jaxlite take results, workspaces and constants from here; ``placed(where)`` says on which side the
page is, and ``guarded(array)`` gives a copy of a NumPy array in such memory.  What reads or writes past the end dies of
SIGSEGV; what writes into the few bytes of padding that keep results aligned is found by ``check``.  Memory that died is
unmapped: a stale address dies too.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import mmap
import weakref
from collections.abc import Iterator
from typing import Any, Literal, final

import numpy as np

from jaxlite.backends.cpu import memory
from jaxlite.backends.cpu.executable import Executable

Where = Literal["before", "after"]
PAGE = mmap.PAGESIZE
UNTOUCHED = 0xA5  # what the padding holds
GARBAGE = 0xFF  # what new memory holds: not a number, or -1

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long)
_libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
_libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_alive: weakref.WeakSet[Guarded] = weakref.WeakSet()
_places: list[Where] = ["before"]


@contextlib.contextmanager
def placed(where: Where) -> Iterator[None]:
    """A block in which memory ends before a forbidden page, or begins after one."""
    _places.append(where)
    try:
        yield
    finally:
        _places.pop()


@final
class Guarded:
    """``nbytes`` at ``address``, aligned to ``alignment``, between two pages without access."""

    __slots__ = ("__weakref__", "address", "nbytes", "padding")

    def __init__(self, nbytes: int, alignment: int) -> None:
        pages = max(-(-nbytes // PAGE), 1) * PAGE
        whole = pages + 2 * PAGE
        base = _libc.mmap(None, whole, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
        assert base not in (None, ctypes.c_void_p(-1).value), "no memory for the test"
        self.nbytes = nbytes
        for forbidden in (base, base + PAGE + pages):
            assert _libc.mprotect(forbidden, PAGE, 0) == 0
        rounded = -(-nbytes // alignment) * alignment
        self.address = base + PAGE + (pages - rounded if _places[-1] == "before" else 0)
        self.padding = (base + PAGE, self.address), (self.address + nbytes, base + PAGE + pages)
        ctypes.memset(self.address, GARBAGE, nbytes)
        for low, high in self.padding:
            ctypes.memset(low, UNTOUCHED, high - low)
        weakref.finalize(self, _libc.munmap, base, whole).atexit = False
        _alive.add(self)

    def check(self) -> None:
        for low, high in self.padding:
            around = ctypes.string_at(low, high - low)
            assert around.count(UNTOUCHED) == len(around), f"written outside of {self.nbytes} bytes"


def guarded(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A copy, aligned to its items alone."""
    block = Guarded(array.nbytes, array.dtype.itemsize)
    buffer: Any = (ctypes.c_byte * array.nbytes).from_address(block.address)
    buffer.owner = block
    copy: np.ndarray[Any, Any] = np.frombuffer(buffer, array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


@final
class GuardedClass:
    """Stands in for a size class: memory of exactly that many bytes."""

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes

    def take(self) -> Guarded:
        return Guarded(self.nbytes, memory.ALIGNMENT)


def install() -> None:
    """From now on jaxlite's memory is guarded, and no two results share a block."""
    memory.SMALL = 0
    memory.size_class = GuardedClass  # type: ignore[assignment]
    load = Executable.__init__

    def load_guarded(self: Executable, image: Any, *args: Any, **kwargs: Any) -> None:
        load(self, dataclasses.replace(image, constants=tuple(map(guarded, image.constants))), *args, **kwargs)

    Executable.__init__ = load_guarded  # type: ignore[method-assign]


def check() -> None:
    """Raises if anything alive was written outside of its bytes."""
    for block in list(_alive):
        block.check()
