"""The layout family: results are elements of the operands, elsewhere; nothing is computed.

A member says at which index of its operand a result's element lies (``element``), what NumPy does, and how
cotangents go back.  All are linear, so tangents move as values do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from jaxlite.core.primitive import Primitive
from jaxlite.interpreters.jet import moves
from jaxlite.interpreters.zeros import Zero, instantiate, zero_of


class Layout(Primitive):
    """Base of layout primitives of one operand."""

    family: ClassVar[str] = "layout"
    accepts: ClassVar[str] = "biufK"
    exact: ClassVar[bool] = True
    linear_in: ClassVar[Sequence[tuple[int, ...]]] = ((0,),)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        outs = self._results(primals, params)
        if all(type(t) is Zero for t in tangents):
            return outs, [zero_of(o) for o in outs]
        return outs, self._results([instantiate(t) for t in tangents], params)

    def jet(
        self, primals: Sequence[Any], series: Sequence[Sequence[Any]], **params: Any
    ) -> tuple[list[Any], list[list[Any]]] | None:
        outs = self._results(primals, params)
        columns = [
            self._results([instantiate(t) for t in terms], params) if moves(terms) else [zero_of(o) for o in outs]
            for terms in zip(*series, strict=True)
        ]
        return outs, [list(terms) for terms in zip(*columns, strict=True)]

    def _results(self, operands: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        result = self.bind(*operands, **params)
        return list(result) if self.multiple_results else [result]
