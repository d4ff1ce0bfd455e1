"""environment_digest: what compiled code depends on besides its program, as a digest that goes into every key.

jaxlite's own source, LLVM's version, the CPU and its features: another CPU that shares the folder, or a jaxlite with
one line changed, finds nothing of the other's.
"""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Iterator

import llvmlite
import llvmlite.binding as llvm

from jaxlite.backends.cpu import disk_cache

_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


@functools.cache
def environment_digest() -> bytes:
    """Computed once a process."""
    cpu = f"{llvm.get_process_triple()} {llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}"
    versions = f"llvmlite {llvmlite.__version__} LLVM {llvm.llvm_version_info}"
    return hashlib.blake2b(f"{cpu}\n{versions}\n".encode() + _source_digest(), digest_size=32).digest()


def _source_digest() -> bytes:
    """A digest of jaxlite's files.  Reading them takes tens of milliseconds, so it is kept under a digest of their
    sizes and times, the time of the last change of any kind among them, which no tool can set back."""
    files = sorted(_sources(_PACKAGE))
    states = hashlib.blake2b(repr((_PACKAGE, files)).encode(), digest_size=32).digest()
    cache = disk_cache.current()
    known = cache.load(states) if cache is not None else None
    if known is not None:
        return known
    contents = hashlib.blake2b(digest_size=32)
    for path, *_ in files:
        with open(path, "rb") as file:
            contents.update(hashlib.blake2b(file.read()).digest() + os.path.relpath(path, _PACKAGE).encode() + b"\0")
    if cache is not None:
        cache.store(states, contents.digest())
    return contents.digest()


def _sources(folder: str) -> Iterator[tuple[str, int, int, int]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                if entry.name != "__pycache__":
                    yield from _sources(entry.path)
            elif entry.name.endswith(".py"):
                status = entry.stat()
                yield entry.path, status.st_size, status.st_mtime_ns, status.st_ctime_ns
