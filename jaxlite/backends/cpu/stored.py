"""stored_object: machine code for fixed pieces (the pool, flat kernels), from the disk cache or made now."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jaxlite.backends.cpu import disk_cache
from jaxlite.backends.cpu.environment import environment_digest
from jaxlite.compiler.fingerprint import NotStorable, fingerprint


def stored_object(make: Callable[[], bytes], *key: Any) -> bytes:
    """What ``make()`` gives, kept under ``key``: values that say all that it depends on besides the environment."""
    cache = disk_cache.current()
    if cache is None:
        return make()
    try:
        digest = fingerprint(environment_digest(), *key)
    except NotStorable:
        return make()
    known = cache.load(digest)
    if known is None:
        known = make()
        cache.store(digest, known)
    return known
