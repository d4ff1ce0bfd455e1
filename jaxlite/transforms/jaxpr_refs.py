"""Tracing a function that uses refs to a jaxpr of values, to look at: nothing is run and no ref changes.

In: a function, leaves of its arguments among which there are refs.  Out: a jaxpr that takes the refs' values and gives,
after the results, the last values of those that are written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jaxlite.core.avals import ShapedArray
from jaxlite.core.jaxpr import ClosedJaxpr, DebugInfo
from jaxlite.core.pytree import PyTreeDef, tree_structure
from jaxlite.core.ref import Ref, bound, read_all, with_refs
from jaxlite.lax.control.trace_functions import traced


def trace_with_refs(
    fun: Callable[..., Any],
    tree: PyTreeDef,
    leaves: Sequence[Any],
    info: DebugInfo,
    abstract: Callable[[Any], ShapedArray],
) -> tuple[ClosedJaxpr, PyTreeDef]:
    """The jaxpr of ``fun`` on leaves of its arguments, and the structure of its result; ``abstract`` gives the type of
    a leaf that is no ref."""
    places = [i for i, x in enumerate(leaves) if type(x) is Ref]
    avals = [x.type if type(x) is Ref else abstract(x) for x in leaves]

    def run(captured: list[Ref]) -> tuple[ClosedJaxpr, PyTreeDef]:
        count = len(captured)

        def on_values(values: Sequence[Any], own: Sequence[Any]) -> tuple[Any, list[Any]]:
            refs = {i: Ref(own[i]) for i in places}
            args = tree.unflatten([refs.get(i, v) for i, v in enumerate(own)])
            with bound(captured, values) as last:
                return fun(*args), [*last(), *read_all(list(refs.values()))]

        given = tree_structure(([0] * count, [0] * len(avals)))
        closed, out_tree = traced(on_values, given, [*(r.type for r in captured), *avals], info)
        return _written(closed, captured, [*range(count), *(count + i for i in places)]), out_tree.children()[0]

    out: tuple[ClosedJaxpr, PyTreeDef] = with_refs(run)
    return out


def _written(closed: ClosedJaxpr, captured: Sequence[Ref], places: Sequence[int]) -> ClosedJaxpr:
    """The jaxpr with the values of ``captured`` as constants; of the last values, only those that are not the first
    ones, which stand at ``places``."""
    jaxpr, count = closed.jaxpr, len(captured)
    results = len(jaxpr.outvars) - len(places)
    last = [v for v, i in zip(jaxpr.outvars[results:], places, strict=True) if v is not jaxpr.invars[i]]
    changed = jaxpr.replace(
        constvars=(*jaxpr.invars[:count], *jaxpr.constvars),
        invars=jaxpr.invars[count:],
        outvars=(*jaxpr.outvars[:results], *last),
    )
    return ClosedJaxpr(changed, [*read_all(captured), *closed.consts])
