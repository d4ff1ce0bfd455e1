"""``check``: an assertion inside a program, which ``checkify`` makes into part of the program's result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import numpy as np

from jaxlite.core.avals import ShapedArray
from jaxlite.core.context import context
from jaxlite.core.effects import Effect, Effects
from jaxlite.core.errors import JaxRuntimeError
from jaxlite.core.primitive import AxisData, Primitive
from jaxlite.interpreters.batch import place_axis

NOT_FUNCTIONALIZED = Effect(
    "check",
    refusal="Cannot abstractly evaluate a checkify.check which was not functionalized: jit(f) holds a `check`. "
    "Write jit(checkify(f)), whose first result is the error, or use debug_check.",
)


@final
class Check(Primitive):
    """Operands: the condition, then the message's values.  Params: ``message`` (values -> text), ``debug``.

    Batched, every operand has the same leading axes and the check holds where the condition holds everywhere.
    """

    name, family, multiple_results, accepts = "check", "check", True, "biuf"

    def bind(self, *operands: Any, **params: Any) -> Any:
        if context.trace is None:
            self.evaluate(*map(np.asarray, operands), **params)
            return []
        return super().bind(*operands, **params)

    def effects(self, **params: Any) -> Effects:
        return frozenset() if params["debug"] else frozenset({NOT_FUNCTIONALIZED})

    def abstract_eval(self, *avals: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        return ()

    def evaluate(self, *arrays: np.ndarray[Any, Any], **params: Any) -> tuple[np.ndarray[Any, Any], ...]:
        if params["debug"]:
            return ()
        condition, *fields = arrays
        if not condition.all():
            first = np.unravel_index(np.argmin(condition), condition.shape)
            raise JaxRuntimeError(params["message"]([f[first] for f in fields]))
        return ()

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        return self.bind(*primals, **params), []

    def transpose(self, cotangents: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
        return [None] * len(operands)

    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[int | None], /, **params: Any
    ) -> tuple[list[Any], list[int | None]]:
        whole = [place_axis(o, d, axis.size, 0) for o, d in zip(operands, dims, strict=True)]
        self.bind(*whole, **params)
        return [], []


check_p = Check()
