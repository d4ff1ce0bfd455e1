"""``optimization_barrier``: values pass through unchanged, and no pass sees that they are the same.

So what is computed again behind a barrier (for ``checkpoint``) stays computed again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import numpy as np

from jaxlite.core.avals import ShapedArray
from jaxlite.core.primitive import AxisData, Primitive
from jaxlite.core.pytree import tree_flatten
from jaxlite.interpreters.zeros import instantiate, is_linear
from jaxlite.lax.convert import operand_of


@final
class OptimizationBarrier(Primitive):
    name, family, multiple_results, accepts, exact = "optimization_barrier", "barrier", True, "biufK", True
    types_variation = True
    types_sharding = True
    piecewise_linear = True

    def abstract_eval(self, *avals: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        return avals

    def evaluate(self, *arrays: np.ndarray[Any, Any], **params: Any) -> tuple[np.ndarray[Any, Any], ...]:
        return arrays

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        return self.bind(*primals), list(tangents)

    def transpose(self, cotangents: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
        return [instantiate(c) if is_linear(o) else None for c, o in zip(cotangents, operands, strict=True)]

    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[int | None], /, **params: Any
    ) -> tuple[list[Any], list[int | None]]:
        return self.bind(*operands), list(dims)


optimization_barrier_p = OptimizationBarrier()


def optimization_barrier(operand: Any, /) -> Any:
    """``operand`` (a pytree) unchanged; the compiler treats it as a new value."""
    leaves, tree = tree_flatten(operand)
    return tree.unflatten(optimization_barrier_p.bind(*map(operand_of, leaves))) if leaves else operand
