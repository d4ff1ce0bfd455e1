"""``has_aux=True``: what a function gives besides the output that is differentiated.

The auxiliary value is a tree of any Python objects.  Its traced leaves become further results of the function, so that
transformations see them; all others wait aside, and come out as the objects that went in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, final

from jaxlite.core.pytree import PyTreeDef, tree_flatten, tree_structure
from jaxlite.core.trace import Tracer


@final
class WithAux:
    """``function``, which gives (output, aux), as one that gives (output, traced leaves of aux).

    >>> call = WithAux(lambda x: (x * 2, "unit"))
    >>> call(3)
    (6, [])
    >>> call.aux([])
    'unit'
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._leaves: list[Any] = []
        self._tree: PyTreeDef = tree_structure(None)

    def __call__(self, *args: Any) -> tuple[Any, list[Any]]:
        result = self._function(*args)
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            count = f" of {len(result)}" if isinstance(result, (tuple, list)) else ""
            raise TypeError(
                "With has_aux=True the function must return a pair (output, aux), "
                f"got {type(result).__name__}{count}. Write `return output, aux`, or leave has_aux out."
            )
        output, aux = result
        self._leaves, self._tree = tree_flatten(aux)
        return output, [x for x in self._leaves if isinstance(x, Tracer)]

    def aux(self, traced: Iterable[Any]) -> Any:
        """The auxiliary value of the last call, ``traced`` in the places of its traced leaves."""
        values = iter(traced)
        return self._tree.unflatten([next(values) if isinstance(x, Tracer) else x for x in self._leaves])
