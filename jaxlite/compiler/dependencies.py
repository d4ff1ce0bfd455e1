"""Dependencies: which groups must run after which, while fusion adds equations to them and merges them.

In: groups, and what each needs.  Out: ``reaches``, at the cost of looking at one bit: each group has the set of all
groups before it, directly or not, as the bits of an integer, kept up to date as requirements come.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

from jaxlite.compiler.groups import Group


@final
class Dependencies:
    """The order of groups so far; keeps their ``after`` and, when two merge, ``through``."""

    def __init__(self) -> None:
        self._bit: dict[Group, int] = {}
        self._before: dict[Group, int] = {}  # bits of all groups that run before
        self._waiting: dict[Group, set[Group]] = {}  # groups that have this one in ``after``

    def add(self, group: Group) -> None:
        """Notes a new group, which nothing waits for yet."""
        self._bit[group] = 1 << len(self._bit)
        self._before[group] = 0
        self._waiting[group] = set()

    def reaches(self, start: Group, goal: Group) -> bool:
        """Whether ``start`` must run after ``goal``, or is it."""
        return start is goal or bool(self._before[start] & self._bit[goal])

    def require(self, group: Group, others: Iterable[Group]) -> None:
        """Puts ``group`` after the others."""
        new = set(others) - group.after - {group}
        group.after |= new
        for other in new:
            self._waiting[other].add(group)
            self._spread(group, self._before[other] | self._bit[other])

    def merge(self, kept: Group, gone: Group) -> None:
        """Lets ``kept`` stand for both."""
        for other in gone.after:
            self._waiting[other] = (self._waiting[other] - {gone}) | {kept}
        kept.after = (kept.after | gone.after) - {kept, gone}
        kept.through |= gone.through
        waiting = (self._waiting[kept] | self._waiting.pop(gone)) - {kept, gone}
        for group in waiting:
            group.after = (group.after - {gone}) | {kept}
            if gone in group.through:
                group.through = (group.through - {gone}) | {kept}
        self._waiting[kept] = waiting
        self._spread(kept, self._before.pop(gone) & ~self._bit[kept])
        for group in waiting:
            self._spread(group, self._before[kept] | self._bit[kept])

    def _spread(self, group: Group, gained: int) -> None:
        """Adds to what runs before ``group``, and before all that wait for it."""
        pending = [group]
        while pending:
            group = pending.pop()
            if gained & ~self._before[group]:
                self._before[group] |= gained
                pending.extend(self._waiting[group])
