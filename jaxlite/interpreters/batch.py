"""Batching: values carry an extra axis; each primitive's ``batch`` says where it goes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, final

from jaxlite.core.avals import ShapedArray, aval_of
from jaxlite.core.context import context, context_kept
from jaxlite.core.jaxpr import ClosedJaxpr, evaluate
from jaxlite.core.primitive import AxisData, Primitive, get
from jaxlite.core.trace import Trace, Tracer, current_trace, process
from jaxlite.interpreters.stage import stage


@final
class BatchTracer(Tracer):
    """A value with the batch axis at ``dim``; its aval is that of one example."""

    __slots__ = ("dim", "value")

    def __init__(self, trace: BatchTrace, value: Any, dim: int) -> None:
        self._trace, self.value, self.dim = trace, value, dim
        whole = aval_of(value)
        self.aval = whole.without_axis(dim)

    def describe(self) -> str:
        inner = self.value.describe() if isinstance(self.value, Tracer) else ""
        return inner or f"It is one example of {self._trace.axis.size}, batched by vmap."


@final
class BatchTrace(Trace):
    """Applies primitives to whole batches in ``parent``."""

    __slots__ = ("axis", "parent")
    batches = True

    def __init__(self, parent: Trace | None, axis: AxisData) -> None:
        self.parent, self.axis = parent, axis

    def split(self, value: Any) -> tuple[Any, int | None]:
        """The whole value and where its batch axis is (None: it has none)."""
        if type(value) is BatchTracer and value._trace is self:
            return value.value, value.dim
        return value, None

    def join(self, value: Any, dim: int | None) -> Any:
        """What the function sees."""
        return value if dim is None else BatchTracer(self, value, dim)

    def process(self, primitive: Primitive, operands: Sequence[Any], params: dict[str, Any]) -> Sequence[Any]:
        values, dims = zip(*map(self.split, operands), strict=True) if operands else ((), ())
        named = self.axis.name is not None and self.axis.name in primitive.axis_names(**params)
        if not named and all(d is None for d in dims):
            return process(self.parent, primitive, values, params)
        with current_trace(self.parent):
            results, out_dims = primitive.batch(self.axis, values, dims, **params)
        return [self.join(v, d) for v, d in zip(results, out_dims, strict=True)]


@context_kept
def batch(
    function: Callable[..., Sequence[Any]],
    values: Sequence[Any],
    dims: Sequence[int | None],
    axis: AxisData,
    parent: Trace | None,
) -> tuple[list[Any], list[int | None]]:
    """Results of the flat ``function`` over the batch, and where their batch axes are."""
    trace = BatchTrace(parent, axis)
    before = context.axis_sizes
    if axis.name is not None:
        context.axis_sizes = {**before, axis.name: axis.size}
    try:
        with current_trace(trace):
            results = function(*[trace.join(v, d) for v, d in zip(values, dims, strict=True)])
    finally:
        context.axis_sizes = before
    pairs = [trace.split(r) for r in results]
    return [v for v, _ in pairs], [d for _, d in pairs]


def move_axis(value: Any, source: int, destination: int) -> Any:
    """``value`` with axis ``source`` moved to ``destination``."""
    if source == destination:
        return value
    order = [d for d in range(len(aval_of(value).shape)) if d != source]
    order.insert(destination, source)
    return get("transpose").bind(value, permutation=tuple(order))


def broadcast_axis(value: Any, size: int, dim: int) -> Any:
    """``value`` repeated along a new axis at ``dim``."""
    shape = list(aval_of(value).shape)
    shape.insert(dim, size)
    kept = tuple(d for d in range(len(shape)) if d != dim)
    return get("broadcast_in_dim").bind(value, shape=tuple(shape), broadcast_dimensions=kept, sharding=None)


def place_axis(value: Any, dim: int | None, size: int, destination: int) -> Any:
    """``value`` with its batch axis (made by repetition where there is none) at ``destination``."""
    if dim is None:
        return broadcast_axis(value, size, destination)
    return move_axis(value, dim, destination)


def batch_jaxpr(
    closed: ClosedJaxpr, axis: AxisData, batched: Sequence[bool], force: Sequence[bool] | bool
) -> tuple[ClosedJaxpr, list[bool]]:
    """The jaxpr over whole batches (axes first), and which results are batched; ``force`` says which must be."""
    out_batched: list[bool] = []

    def run(*args: Any) -> list[Any]:
        dims = [0 if b else None for b in batched]
        results, out_dims = batch(
            lambda *xs: evaluate(closed.jaxpr, closed.consts, xs), args, dims, axis, context.trace
        )
        forced = [force] * len(results) if isinstance(force, bool) else list(force)
        out_batched[:] = [f or d is not None for f, d in zip(forced, out_dims, strict=True)]
        return [
            place_axis(r, d, axis.size, 0) if b else r for r, d, b in zip(results, out_dims, out_batched, strict=True)
        ]

    avals = [a.with_axis(axis.size) if b else a for a, b in zip(closed.in_avals, batched, strict=True)]
    return stage(run, avals, closed.jaxpr.debug_info), out_batched


def one_example(aval: ShapedArray, dim: int | None) -> ShapedArray:
    """The aval of one entry along ``dim``."""
    return aval if dim is None else aval.without_axis(dim)
