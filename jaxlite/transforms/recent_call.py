"""RecentCall: how a jitted function was called before, so that the next call like it takes the short way.

It goes by functions written for the structures of arguments and results (``core.flatteners``), compares the types of
the leaves with those of the call before (mostly the very objects), and runs.  What does not fit, or happens under other
settings or in a transformation, is left to ``jit`` itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np

from jaxlite.core.array import Array
from jaxlite.core.avals import ShapedArray, aval_of
from jaxlite.core.flatteners import builder, flattener
from jaxlite.core.pytree import PyTreeDef
from jaxlite.core.runtime import Executable
from jaxlite.transforms.donation import Donation

CALLS_BEFORE = 3  # the short way is prepared, some milliseconds for a large tree, for what comes again
MISS = object()  # the call does not fit

_PLAIN = frozenset((int, float, bool, np.ndarray, np.bool_, *(np.dtype(c).type for c in "bhilBHILefd")))


@final
class RecentCall:
    """A signature and what runs it; ``version`` is that of the settings it holds for."""

    __slots__ = ("_avals", "_build", "_consts", "_flatten", "_program", "version")

    def __init__(
        self,
        tree: PyTreeDef,
        out_tree: PyTreeDef,
        program: Executable | Donation,
        consts: Sequence[Any],
    ) -> None:
        self._flatten, self._build = flattener(tree), builder(out_tree)
        self._program, self._consts = program, list(consts)
        self._avals: list[ShapedArray] = []
        self.version = 0

    def prefixes(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Callable[[], Any]]:
        """For each stage of :meth:`call`, a function that does everything up to its end; for those who time them."""
        flatten, consts, avals, program = self._flatten, self._consts, self._avals, self._program
        assert not isinstance(program, Donation), "a function that donates cannot be called again and again"

        def look_up() -> Any:
            leaves = flatten((args, kwargs))
            if leaves is None or [x.aval if type(x) is Array else _aval(x) for x in leaves] != avals:
                return MISS
            return [*consts, *leaves] if consts else leaves

        return {
            "flatten": lambda: flatten((args, kwargs)),
            "look-up": look_up,
            "native": lambda: program.run(look_up()),
            "wrap": lambda: self.call(args, kwargs),
        }

    def renew(self, avals: Sequence[ShapedArray], version: int) -> None:
        """Notes what the latest call's types are, and the settings it ran under."""
        self._avals, self.version = list(avals), version

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result, or ``MISS``."""
        leaves = self._flatten((args, kwargs))
        if leaves is None or [x.aval if type(x) is Array else _aval(x) for x in leaves] != self._avals:
            return MISS
        return self._build(self._program([*self._consts, *leaves] if self._consts else leaves))


def _aval(leaf: Any) -> ShapedArray | None:
    return aval_of(leaf) if type(leaf) in _PLAIN else None
