"""Cumulative folds: along the axis in order, each partial result stored as it is made; other axes in parallel.

In: a group of one cumulative equation.  Out: one kernel.  Axes after the folded one run in lanes; where there are none
but many rows before it, rows do.
"""

from __future__ import annotations

import math
from typing import Any

from jaxlite.compiler.builder import Carry
from jaxlite.compiler.groups import Group
from jaxlite.compiler.loops import Value
from jaxlite.compiler.lower_kernel import LANES, Lowered, _Kernel, accumulator_dtype
from jaxlite.compiler.reading import unravel
from jaxlite.core.jaxpr import JaxprEqn, Var


def lower_cumulative(group: Group, makers: dict[Var, JaxprEqn]) -> Lowered:
    """The kernel of one equation."""
    (eqn,) = group.eqns
    shape, axis, reverse = eqn.invars[0].aval.shape, eqn.params["axis"], eqn.params["reverse"]
    outer, n, inner = math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])
    k = _Kernel(group, makers)
    b, out = k.b, k.output(eqn.outvars[0])  # type: ignore[arg-type]
    primitive: Any = eqn.primitive
    dtype = eqn.outvars[0].aval.dtype
    wide = accumulator_dtype(dtype)

    def fold(before: Value, after: Value) -> None:
        start = b.add(b.mul(before, n * inner), after)
        outside, behind = unravel(b, before, shape[:axis]), unravel(b, after, shape[axis + 1 :])
        with b.fold(n, Carry((primitive.identity(wide),), None), unroll=4 if n >= 4 and n % 4 == 0 else 1) as loop:
            step = b.sub(n - 1, loop.axis) if reverse else loop.axis
            place = b.add(start, b.mul(step, inner))
            element = k.reader.read(eqn.invars[0], (*outside, step, *behind), place)
            total = primitive.combine(b, loop.carried[0], b.convert(element, wide))
            loop.update(total)
            b.store(out, place, b.convert(total, dtype))

    if inner >= LANES:
        with b.loop(outer, parallel=True) as before, b.loop(inner, vector=True) as after:
            fold(before, after)
        return k.finish(outer, outer * n * inner)
    with b.loop(outer * inner, parallel=True, vector=outer * inner >= LANES and n < LANES) as place:
        fold(*unravel(b, place, (outer, inner)))
    return k.finish(outer * inner, outer * n * inner)
