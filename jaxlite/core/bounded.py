"""Bounded: a dict that forgets its oldest entry rather than grow beyond a size.  Safe among threads."""

from __future__ import annotations

from typing import Generic, TypeVar, final

from jaxlite.core.locks import lock

Key = TypeVar("Key")
Value = TypeVar("Value")


@final
class Bounded(dict[Key, Value], Generic[Key, Value]):
    """At most ``most`` entries, the latest.

    >>> squares = Bounded(2)
    >>> for n in range(5):
    ...     squares[n] = n * n
    >>> squares
    {3: 9, 4: 16}
    """

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most
        self._lock = lock()

    def __setitem__(self, key: Key, value: Value) -> None:
        with self._lock:
            while len(self) >= self.most and key not in self:
                del self[next(iter(self))]
            super().__setitem__(key, value)

    def clear(self) -> None:
        """Forgets every entry."""
        with self._lock:  # another thread may be about to drop the oldest
            super().clear()
