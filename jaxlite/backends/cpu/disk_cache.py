"""The disk cache: bytes under a key, in a folder, for the next process that compiles the same program.

`load(key)` gives what `store(key, payload)` kept, or None.  A file is a line that names the format, a digest of the
rest, and the payload; it is written under another name and then renamed, so that readers and other writers see all
of it or none.  One that does not fit its digest is deleted.  A folder that others can write to, or own, is not used:
what is read from it is run.  The least recently used files go when the folder passes its bound.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
import logging
import os
import stat
import sys
import threading
import time
from typing import final

from jaxlite.core import config, locks

logger = logging.getLogger("jaxlite")

FORMAT = b"jaxlite program 1\n"
DIGEST_BYTES = 32
DEFAULT_LIMIT = 1 << 30  # bytes
KEPT_AFTER_TRIM = 0.8  # of the bound: so that not every new program has to make room
USED_AGAIN = 86_400  # seconds after which another use is noted: the day is exact enough to tell what is old
ABANDONED = 3_600  # seconds after which a file that was being written is taken for left behind
STORES_BETWEEN_TRIMS = 256


@final
class DiskCache:
    """Files in one folder, which belongs to this user alone."""

    def __init__(self, folder: str, limit: int = DEFAULT_LIMIT) -> None:
        self.folder = folder
        self.limit = limit
        self.hits = self.misses = self.stored = 0
        self._usable: bool | None = None
        self._taken = 0  # bytes, as far as this process knows: at the last trim, and what it has stored since
        self._lock = locks.lock()
        self._count = itertools.count()

    def load(self, key: bytes) -> bytes | None:
        """The payload under ``key``, verified; None where there is none, or a damaged one."""
        payload = None
        if self._is_usable():
            try:
                payload = self._read(self._path(key))
            except OSError:  # not there, not readable
                pass
        if payload is None:
            self.misses += 1
        else:
            self.hits += 1
        return payload

    def store(self, key: bytes, payload: bytes) -> None:
        """Keep ``payload`` under ``key``; where the disk refuses, nothing is kept and the log says so once."""
        if not self._is_usable(create=True):
            return
        number = next(self._count)
        nbytes = len(FORMAT) + DIGEST_BYTES + len(payload)
        if nbytes > self.limit:
            if number == 0:
                self.trim()
            return
        path = self._path(key)
        partial = f"{path}.{os.getpid()}.{threading.get_ident()}.{number}"
        try:
            descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NOFOLLOW, 0o600)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(FORMAT + _digest(payload) + payload)
                os.replace(partial, path)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(partial)
                raise
        except OSError as error:
            self._give_up(f"cannot write to it: {error}")
            return
        self.stored += 1
        self._taken += nbytes
        if number % STORES_BETWEEN_TRIMS == 0 or self._taken > self.limit:
            self.trim()

    def trim(self) -> int:
        """Delete what was left half-written and, beyond the bound, the least recently used; bytes that are left."""
        entries: list[tuple[float, int, str]] = []
        now = time.time()
        with contextlib.suppress(OSError), os.scandir(self.folder) as files:
            for file in files:
                with contextlib.suppress(OSError):  # another process deletes too
                    status = file.stat(follow_symlinks=False)
                    if not stat.S_ISREG(status.st_mode) or not _ours(file.name):
                        continue
                    if "." in file.name and now - status.st_mtime > ABANDONED:
                        os.unlink(file.path)
                    else:
                        entries.append((status.st_mtime, status.st_size, file.path))
        total = sum(size for _, size, _ in entries)
        if total > self.limit:
            for _, size, path in sorted(entries):
                with contextlib.suppress(OSError):
                    os.unlink(path)
                total -= size
                if total <= KEPT_AFTER_TRIM * self.limit:
                    break
        self._taken = total
        return total

    def _path(self, key: bytes) -> str:
        return os.path.join(self.folder, key.hex())

    def _read(self, path: str) -> bytes | None:
        descriptor = os.open(path, os.O_RDONLY | _NOFOLLOW | _NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or _others_may_write(status):
                return None
            text = file.read()
        start = len(FORMAT) + DIGEST_BYTES
        payload = text[start:]
        if text[:start] != FORMAT + _digest(payload):
            logger.info("%s is damaged: it is deleted and the program compiled again", path)
            with contextlib.suppress(OSError):
                os.unlink(path)
            return None
        if time.time() - status.st_mtime > USED_AGAIN:
            with contextlib.suppress(OSError):
                os.utime(path)
        return payload

    def _is_usable(self, create: bool = False) -> bool:
        """Whether the folder is there and this user's alone; once that is known it is not looked at again."""
        if self._usable is None:
            with self._lock:
                self._usable = self._look(create)
        return bool(self._usable)

    def _look(self, create: bool) -> bool | None:
        try:
            if create:
                os.makedirs(self.folder, 0o700, exist_ok=True)
            status = os.stat(self.folder)
        except OSError as error:
            if isinstance(error, FileNotFoundError) and not create:
                return None
            return self._give_up(str(error))
        if not stat.S_ISDIR(status.st_mode):
            return self._give_up("it is no folder")
        if _others_may_write(status):
            return self._give_up(
                "others can write to it or own it, and what is read from it is run: give it to this user alone "
                "(chmod 700), or name another by JAXLITE_CACHE_DIR"
            )
        return True

    def _give_up(self, reason: str) -> bool:
        logger.warning("The cache folder %s is not used: %s", self.folder, reason)
        self._usable = False
        return False


_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_NONBLOCK = getattr(os, "O_NONBLOCK", 0)  # a pipe that nobody writes to would be waited for


def _digest(payload: bytes) -> bytes:
    return hashlib.blake2b(payload, digest_size=DIGEST_BYTES).digest()


def _ours(name: str) -> bool:
    """Whether a file name is of the kind that `store` makes: nothing else in the folder is touched."""
    key = name.partition(".")[0]
    return len(key) == 2 * DIGEST_BYTES and all(c in "0123456789abcdef" for c in key)


def _others_may_write(status: os.stat_result) -> bool:
    if not hasattr(os, "geteuid"):
        return False
    return status.st_uid != os.geteuid() or bool(status.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def default_folder() -> str:
    """``JAXLITE_CACHE_DIR``, else jaxlite's folder among the user's caches."""
    named = os.environ.get("JAXLITE_CACHE_DIR")
    if named:
        return named
    if sys.platform == "darwin":
        return os.path.expanduser("~/Library/Caches/jaxlite")
    return os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "jaxlite")


@functools.lru_cache(maxsize=16)
def _cache_in(folder: str, limit: int) -> DiskCache:
    return DiskCache(folder, limit)


def current() -> DiskCache | None:
    """The cache that the flags name; None where they switch it off."""
    if not config.enable_compilation_cache.value:
        return None
    folder = config.compilation_cache_dir.value or default_folder()
    limit = config.compilation_cache_max_size.value
    return _cache_in(os.path.abspath(os.path.expanduser(folder)), DEFAULT_LIMIT if limit is None else limit)
