"""Custom rules as primitives: ``custom_jvp_call`` and ``custom_vjp_call`` hold a function and the user's rules for it.

Run eagerly or under another transformation, the functions are called as Python; staged, the function becomes a jaxpr
and the rules stay Python, called when a derivative is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np

from jaxlite.core.avals import ShapedArray, aval_of
from jaxlite.core.context import context
from jaxlite.core.jaxpr import ClosedJaxpr, evaluate
from jaxlite.core.primitive import AxisData
from jaxlite.interpreters.batch import batch, move_axis, one_example, place_axis
from jaxlite.interpreters.stage import closed_over_nothing, stage
from jaxlite.interpreters.zeros import Zero, has_tangent, instantiate, is_linear, zero_of
from jaxlite.lax.families.higher_order import HigherOrder, run

Flat = Callable[..., Sequence[Any]]
FORWARD = (
    "can't apply forward-mode differentiation (jvp) to a custom_vjp function: it has only a reverse rule.  Use "
    "jax.custom_jvp for functions that are differentiated forward."
)


def callable_of(call: Flat | ClosedJaxpr) -> Flat:
    """A Python function for what may have been staged to a jaxpr."""
    if isinstance(call, ClosedJaxpr):
        return lambda *xs: evaluate(call.jaxpr, call.consts, xs)
    return call


def _batched_flat(function: Flat, axis: AxisData, dims: Sequence[int | None]) -> Flat:
    """``function`` over a batch, every result batched along its first axis; symbolic zeros stay symbolic."""

    def whole(*values: Any) -> list[Any]:
        one = [Zero(one_example(v.aval, d)) if type(v) is Zero else v for v, d in zip(values, dims, strict=True)]
        own = [None if type(v) is Zero else d for v, d in zip(values, dims, strict=True)]
        results, where = batch(function, one, own, axis, context.trace)
        return [
            Zero(r.aval.with_axis(axis.size)) if type(r) is Zero else place_axis(r, d, axis.size, 0)
            for r, d in zip(results, where, strict=True)
        ]

    return whole


class CustomCall(HigherOrder):
    """Base: ``call`` is a flat function or its jaxpr, whose first ``num_consts`` operands are what it closes over."""

    def bind(self, *operands: Any, **params: Any) -> Any:
        if context.trace is None:
            return list(callable_of(params["call"])(*operands))
        return super().bind(*operands, **params)

    def inlined(self, **params: Any) -> Any:
        return params["call"]

    def abstract_eval(self, *avals: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        return tuple(params["call"].out_avals)

    def evaluate(self, *arrays: np.ndarray[Any, Any], **params: Any) -> tuple[np.ndarray[Any, Any], ...]:
        return tuple(run(params["call"], arrays))

    def to_staged(self, operands: Sequence[Any], params: dict[str, Any]) -> tuple[Sequence[Any], dict[str, Any]]:
        if isinstance(params["call"], ClosedJaxpr):
            return operands, params
        closed, consts = closed_over_nothing(stage(params["call"], [aval_of(o) for o in operands]))
        return [*consts, *operands], {**params, "call": closed, "num_consts": len(consts)}


@final
class CustomJVPCall(CustomCall):
    """``jvp(primals and tangents)`` gives results and tangents, flat; with ``symbolic_zeros`` it sees tangents that
    vanish as ``Zero``."""

    name = "custom_jvp_call"

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        n = params["num_consts"]
        moves = tangents[n:] if params["symbolic_zeros"] else map(instantiate, tangents[n:])
        results = params["jvp"](*primals[n:], *moves)
        half = len(results) // 2
        return list(results[:half]), list(results[half:])

    def transpose(self, cotangents: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
        raise NotImplementedError("A custom_jvp function in a linear program has no transpose.")

    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[int | None], /, **params: Any
    ) -> tuple[list[Any], list[int | None]]:
        n = params["num_consts"]
        call = _batched_flat(callable_of(params["call"]), axis, dims)
        # Tangents come batched first, as the rule's own batching instantiates them.
        t_dims = [None if d is None else d for d in dims[n:]]
        jvp = _batched_flat(params["jvp"], axis, [*dims[n:], *t_dims])
        placed, consts = list(operands), n
        outs = self.bind(*placed, call=call, jvp=jvp, num_consts=consts, symbolic_zeros=params["symbolic_zeros"])
        return list(outs), [0] * len(outs)


@final
class CustomVJPCall(CustomCall):
    """``fwd(perturbed, operands)`` gives residuals, results and ``bwd``; ``bwd(residuals, cotangents)`` gives the
    operands' cotangents, flat.  ``perturbed`` says which operands have tangents; with ``symbolic_zeros`` ``bwd`` sees
    cotangents that vanish as ``Zero``."""

    name = "custom_vjp_call"

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        n = params["num_consts"]
        perturbed = tuple(type(t) is not Zero for t in tangents[n:])
        residuals, outs, bwd = params["fwd"](perturbed, *primals[n:])
        avals = tuple(aval_of(o).to_tangent_aval() for o in outs)
        moved = custom_tangents_p.bind(
            *residuals,
            *map(instantiate, tangents[n:]),
            bwd=bwd,
            symbolic_zeros=params["symbolic_zeros"],
            num_residuals=len(residuals),
            out_avals=avals,
        )
        return list(outs), [t if has_tangent(aval_of(o)) else zero_of(o) for o, t in zip(outs, moved, strict=True)]

    def transpose(self, cotangents: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
        raise NotImplementedError("A custom_vjp function in a linear program has no transpose.")

    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[int | None], /, **params: Any
    ) -> tuple[list[Any], list[int | None]]:
        n = params["num_consts"]
        call = _batched_flat(callable_of(params["call"]), axis, dims)
        own_dims, fwd = list(dims[n:]), params["fwd"]

        def whole_fwd(perturbed: Sequence[bool], *values: Any) -> tuple[list[Any], list[Any], Flat]:
            made: list[Any] = []

            def flat(*xs: Any) -> list[Any]:
                residuals, outs, bwd = fwd(perturbed, *xs)
                made[:] = [len(residuals), bwd]
                return [*residuals, *outs]

            results = list(_batched_flat(flat, axis, own_dims)(*values))
            count, bwd = made

            def whole_bwd(*values: Any) -> list[Any]:
                pulled = list(_batched_flat(bwd, axis, [0] * len(values))(*values))
                return [_unbatched(p, d) for p, d in zip(pulled, own_dims, strict=True)]

            return results[:count], results[count:], whole_bwd

        outs = self.bind(*operands, call=call, fwd=whole_fwd, num_consts=n, symbolic_zeros=params["symbolic_zeros"])
        return list(outs), [0] * len(outs)


def _unbatched(cotangent: Any, dim: int | None) -> Any:
    """The cotangent of an operand: where that was not batched, the sum over the batch."""
    from jaxlite.lax.reductions.sums import reduce_sum

    if type(cotangent) is Zero:
        return cotangent if dim is not None else Zero(one_example(cotangent.aval, 0))
    return reduce_sum(cotangent, (0,)) if dim is None else move_axis(cotangent, 0, dim)


@final
class CustomTangents(HigherOrder):
    """The tangent side of a custom_vjp call: known only by its transpose, the user's ``bwd``."""

    name = "custom_tangents"

    def abstract_eval(self, *avals: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        return tuple(params["out_avals"])

    def bind(self, *operands: Any, **params: Any) -> Any:
        if context.trace is None:
            raise TypeError(FORWARD)
        return super().bind(*operands, **params)

    def evaluate(self, *arrays: np.ndarray[Any, Any], **params: Any) -> tuple[np.ndarray[Any, Any], ...]:
        raise TypeError(FORWARD)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        n = params["num_residuals"]
        outs = self.bind(*primals, **params)
        if all(type(t) is Zero for t in tangents[:n]):
            return outs, self.bind(*primals[:n], *map(instantiate, tangents[n:]), **params)
        raise TypeError(FORWARD)

    def transpose(self, cotangents: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
        n = params["num_residuals"]
        given = cotangents if params["symbolic_zeros"] else map(instantiate, cotangents)
        pulled = params["bwd"](*operands[:n], *given)
        return [*([None] * n), *(p if is_linear(o) else None for o, p in zip(operands[n:], pulled, strict=True))]

    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[int | None], /, **params: Any
    ) -> tuple[list[Any], list[int | None]]:
        bwd, n = params["bwd"], params["num_residuals"]
        own, count = list(dims), len(params["out_avals"])

        def whole_bwd(*values: Any) -> list[Any]:
            where = [*own[:n], *([0] * count)]
            pulled = list(_batched_flat(bwd, axis, where)(*values))
            return [_unbatched(p, d) for p, d in zip(pulled, own[n:], strict=True)]

        avals = tuple(a.with_axis(axis.size) for a in params["out_avals"])
        outs = self.bind(
            *operands, bwd=whole_bwd, num_residuals=n, out_avals=avals, symbolic_zeros=params["symbolic_zeros"]
        )
        return outs, [0] * count


custom_jvp_call_p, custom_vjp_call_p, custom_tangents_p = CustomJVPCall(), CustomVJPCall(), CustomTangents()
