"""Effects: what an equation does besides computing its results.

An equation carries a set of :class:`Effect`; a jaxpr's set is the union of its equations'.  Ordered effects
keep their order among themselves through loops and branches.
"""

from __future__ import annotations

import dataclasses
from typing import final


@final
@dataclasses.dataclass(frozen=True, order=True)
class Effect:
    """A kind of side effect: its name, whether its uses keep their order, and why it is not compiled, if it is not."""

    name: str
    ordered: bool = False
    refusal: str = ""

    def __str__(self) -> str:
        return self.name


Effects = frozenset[Effect]
NO_EFFECTS: Effects = frozenset()
