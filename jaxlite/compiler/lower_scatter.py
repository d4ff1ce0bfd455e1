"""Scatters: the operand is copied (or is the result's memory already), then updates are applied one after the other.

In: a group of one scatter.  Out: a kernel whose output holds the operand when it starts.
"""

from __future__ import annotations

import math

from jaxlite.compiler.groups import Group
from jaxlite.compiler.loops import Value
from jaxlite.compiler.lower_kernel import Lowered, _Kernel
from jaxlite.compiler.reading import unravel
from jaxlite.core.jaxpr import JaxprEqn, Var
from jaxlite.lax.indexing.places import element_place


def lower_scatter(group: Group, makers: dict[Var, JaxprEqn]) -> Lowered:
    """Windows in the order of their updates; a window's last axis in lanes where it is the update's."""
    (eqn,) = group.eqns
    operand, _, updates = (a.aval for a in eqn.invars)
    numbers = eqn.params["dimension_numbers"]
    primitive = eqn.primitive
    k = _Kernel(group, makers)
    b, out = k.b, k.output(eqn.outvars[0])  # type: ignore[arg-type]
    window = primitive.window(numbers, operand.shape, updates.shape)  # type: ignore[attr-defined]

    def apply(index: tuple[Value, ...]) -> None:
        place, inside = element_place(
            b,
            numbers.as_gather(),
            eqn.params["mode"].when_writing,
            operand.shape,
            window,
            index,
            lambda i: k.reader.read(eqn.invars[1], i),
        )
        position = k.reader.position_of(tuple(place), operand.shape)
        old = b.load(out, position, inside)
        new = primitive.combine(b, old, k.reader.read(eqn.invars[2], index))  # type: ignore[attr-defined]
        b.store(out, position, new, inside)

    if not updates.size or not operand.size:
        return k.finish(1, 1)
    last = updates.ndim - 1
    if updates.ndim and last in numbers.update_window_dims:
        rows, row = math.prod(updates.shape[:-1]), updates.shape[-1]
        with b.loop(rows) as r, b.loop(row, vector=row >= 4) as column:
            apply((*unravel(b, r, updates.shape[:-1]), column))
    else:
        with b.loop(updates.size) as place:
            apply(unravel(b, place, updates.shape))
    return k.finish(1, updates.size)
