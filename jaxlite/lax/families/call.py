"""Calls: primitives that apply their one parameter ``jaxpr`` to their operands, and every rule but how to linearize."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxlite.core.avals import ShapedArray
from jaxlite.core.primitive import AxisData
from jaxlite.core.ref import Ref, read_all, with_refs
from jaxlite.interpreters.jet import jet_jaxpr, moves
from jaxlite.interpreters.zeros import Zero, is_linear
from jaxlite.lax.families.higher_order import (
    HigherOrder,
    batch_first,
    batched,
    flat_series,
    jvp_of,
    kept,
    nonzero,
    pulled_with,
    run,
    spread,
    spread_series,
    transposed,
    written_backward,
    zeros_for,
)


class Call(HigherOrder):
    """Base of calls.  The other parameters go with the call when its jaxpr is transformed."""

    def inlined(self, **params: Any) -> Any:
        return params["jaxpr"]

    def abstract_eval(self, *avals: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        return tuple(params["jaxpr"].out_avals)

    def evaluate(self, *arrays: np.ndarray[Any, Any], **params: Any) -> tuple[np.ndarray[Any, Any], ...]:
        return tuple(run(params["jaxpr"], arrays))

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        mask = nonzero(tangents)
        closed, out_mask = jvp_of(params["jaxpr"], mask, False)
        results = self.bind(*primals, *kept(tangents, mask), **{**params, "jaxpr": closed})
        outs = results[: len(out_mask)]
        return outs, spread(results[len(out_mask) :], out_mask, zeros_for(params["jaxpr"].out_avals))

    def jet(
        self, primals: Sequence[Any], series: Sequence[Sequence[Any]], **params: Any
    ) -> tuple[list[Any], list[list[Any]]] | None:
        mask, order = tuple(map(moves, series)), len(series[0])
        closed, out_mask = jet_jaxpr(params["jaxpr"], order, mask, False)
        results = self.bind(*primals, *flat_series(series, mask), **{**params, "jaxpr": closed})
        count = len(out_mask)
        return results[:count], spread_series(results[count:], out_mask, order, params["jaxpr"].out_avals)

    def transpose(self, cotangents: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
        linear = tuple(is_linear(o) for o in operands)
        given = tuple(type(c) is not Zero for c in cotangents)
        known = [*kept(operands, [not m for m in linear]), *kept(cotangents, given)]

        def pull(refs: list[Ref]) -> list[Any]:
            closed = transposed(params["jaxpr"], linear, given, tuple(refs))
            return pulled_with(refs, self.bind(*known, *read_all(refs), **{**params, "jaxpr": closed}))

        pulled = with_refs(pull, written_backward(params["jaxpr"]))
        return spread(pulled, linear, [None] * len(operands))

    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[int | None], /, **params: Any
    ) -> tuple[list[Any], list[int | None]]:
        mask = tuple(d is not None for d in dims)
        closed, out_mask = batched(params["jaxpr"], axis, mask, False)
        outs = self.bind(*batch_first(operands, dims), **{**params, "jaxpr": closed})
        return outs, [0 if m else None for m in out_mask]
