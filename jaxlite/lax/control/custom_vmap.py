"""``custom_vmap_call``: a function with a batching rule of the user's own.

Differentiated, the function is differentiated; forward mode also differentiates the rule, so that it stays in force.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, final

from jaxlite.core.avals import aval_of
from jaxlite.core.context import context
from jaxlite.core.primitive import AxisData
from jaxlite.interpreters.batch import batch, broadcast_axis, move_axis
from jaxlite.interpreters.jvp import jvp as push_forward
from jaxlite.interpreters.zeros import has_tangent, instantiate, zero_of
from jaxlite.lax.control.custom import CustomCall, callable_of

Rule = Callable[..., tuple[list[Any], list[bool]]]


@final
class CustomVmapCall(CustomCall):
    """``rule(size, batched, *operands)``, batch axes first, gives flat results and which of them are batched."""

    name = "custom_vmap_call"

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        n, count = params["num_consts"], len(primals)
        moving = [i for i, p in enumerate(primals) if has_tangent(aval_of(p))]
        moves = [instantiate(tangents[i]) for i in moving]
        call = callable_of(params["call"])

        def whole(*values: Any) -> list[Any]:
            given = _spread(values[:count], values[count:], moving)
            results, moved = push_forward(call, values[:count], given, context.trace)
            return [*results, *map(instantiate, moved)]

        rule = _moved_rule(params["rule"], count - n, [i - n for i in moving if i >= n])
        if any(i < n for i in moving):  # what the function closes over has tangents, which the rule cannot know of
            results, moved = push_forward(call, primals, tangents, context.trace)
            return results, moved
        outs = self.bind(*primals, *moves, call=whole, rule=rule, num_consts=n)
        half = len(outs) // 2
        pairs = zip(outs[:half], outs[half:], strict=True)
        return outs[:half], [t if has_tangent(aval_of(o)) else zero_of(o) for o, t in pairs]

    def linearize(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        outs = self.bind(*primals, **params)
        _, moved = push_forward(callable_of(params["call"]), primals, tangents, context.trace)
        return outs, moved

    def transpose(self, cotangents: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
        raise NotImplementedError(
            "A custom_vmap function in a linear program has no transpose: give it a derivative by custom_vjp."
        )

    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[int | None], /, **params: Any
    ) -> tuple[list[Any], list[int | None]]:
        n = params["num_consts"]
        if any(d is not None for d in dims[:n]):  # the rule does not see what the function closes over
            return batch(callable_of(params["call"]), operands, dims, axis, context.trace)
        first = [o if d is None else move_axis(o, d, 0) for o, d in zip(operands[n:], dims[n:], strict=True)]
        outs, batched = params["rule"](axis.size, tuple(d is not None for d in dims[n:]), *first)
        return outs, [0 if b else None for b in batched]


def _spread(primals: Sequence[Any], moves: Sequence[Any], moving: Sequence[int]) -> list[Any]:
    """A tangent for each primal: those of ``moving`` in order, zero elsewhere."""
    given = dict(zip(moving, moves, strict=True))
    return [given.get(i, zero_of(p)) for i, p in enumerate(primals)]


def _moved_rule(rule: Rule, count: int, moving: Sequence[int]) -> Rule:
    """The rule of the function that gives results and tangents: the rule, differentiated."""

    def moved(size: int, batched: Sequence[bool], *values: Any) -> tuple[list[Any], list[bool]]:
        # A primal and its tangent are batched together.
        flags = list(batched[:count])
        for i, b in zip(moving, batched[count:], strict=True):
            flags[i] = flags[i] or b
        pairs = zip(values[:count], batched[:count], flags, strict=True)
        primals = [_with_axis(v, had, wanted, size) for v, had, wanted in pairs]
        moves = [
            _with_axis(v, had, flags[i], size)
            for i, v, had in zip(moving, values[count:], batched[count:], strict=True)
        ]
        which: list[bool] = []

        def results_of(*xs: Any) -> list[Any]:
            results, out_batched = rule(size, tuple(flags), *xs)
            which[:] = out_batched
            return results

        results, tangents = push_forward(results_of, primals, _spread(primals, moves, moving), context.trace)
        return [*results, *map(instantiate, tangents)], [*which, *which]

    return moved


def _with_axis(value: Any, had: bool, wanted: bool, size: int) -> Any:
    return broadcast_axis(value, size, 0) if wanted and not had else value


custom_vmap_call_p = CustomVmapCall()
