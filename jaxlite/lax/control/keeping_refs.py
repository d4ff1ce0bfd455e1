"""Refs among arguments: a function that is handed refs closes over them, and is one of the other arguments alone.

In: arguments with refs among their leaves.  Out: the other leaves, and the arguments again from new ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, final

from jaxlite.core.pytree import PyTreeDef, tree_flatten
from jaxlite.core.ref import Ref


@final
class KeepingRefs:
    """``leaves`` of ``args`` but for its refs; ``unflatten`` gives the arguments, other leaves in place of these.

    >>> KeepingRefs(({"a": 1}, 2)).unflatten([3, 4])
    ({'a': 3}, 4)
    """

    def __init__(self, args: Any) -> None:
        everything, self.tree = tree_flatten(args)
        self.kept: tuple[Ref | None, ...] = tuple([x if type(x) is Ref else None for x in everything])
        self.leaves = [x for x in everything if type(x) is not Ref]

    @property
    def has_refs(self) -> bool:
        """Whether there are refs among the leaves."""
        return any(ref is not None for ref in self.kept)

    @property
    def num_leaves(self) -> int:
        """How many leaves are no refs."""
        return len(self.leaves)

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """The arguments with these leaves, and the refs where they were."""
        given = iter(leaves)
        return self.tree.unflatten([next(given) if ref is None else ref for ref in self.kept])

    def each(self) -> list[tuple[PyTreeDef, list[Any], tuple[Ref | None, ...]]]:
        """For each argument its structure, its leaves that are no refs, and which leaves are."""
        given, out, start = iter(self.leaves), [], 0
        for child in self.tree.children():
            kept = self.kept[start : start + child.num_leaves]
            out.append((child, [next(given) for ref in kept if ref is None], kept))
            start += child.num_leaves
        return out
