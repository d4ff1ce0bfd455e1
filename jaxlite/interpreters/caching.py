"""Remembers what was derived from a jaxpr for as long as the jaxpr lives."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

from jaxlite.core import locks
from jaxlite.core.context import context
from jaxlite.core.jaxpr import ClosedJaxpr

T = TypeVar("T")


def remembered(derive: Callable[..., T]) -> Callable[..., T]:
    """``derive(jaxpr, *key)``, computed once per jaxpr, key (hashable) and named axes in scope."""
    store: weakref.WeakKeyDictionary[ClosedJaxpr, dict[Any, T]] = weakref.WeakKeyDictionary()
    lock = locks.lock()

    @functools.wraps(derive)
    def lookup(closed: ClosedJaxpr, *key: Any) -> T:
        full_key = (key, tuple(context.axis_sizes.items()))
        with lock:
            entries = store.setdefault(closed, {})
            if full_key in entries:
                return entries[full_key]
        result = derive(closed, *key)
        with lock:
            return entries.setdefault(full_key, result)

    return lookup
