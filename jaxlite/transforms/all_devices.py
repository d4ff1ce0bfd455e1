"""One device's program run for all devices of a mesh at once: a batch axis for each mesh axis.

In one process devices share memory, so parts of arrays are reshapes and transposes of wholes, and collectives are sums
and exchanges along the batch axes.  What all devices have alike is computed once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from jaxlite.core.avals import aval_of
from jaxlite.core.context import context
from jaxlite.core.jaxpr import ClosedJaxpr, evaluate
from jaxlite.core.partition_spec import PartitionSpec
from jaxlite.core.primitive import AxisData
from jaxlite.interpreters.batch import batch
from jaxlite.lax.layout.shaping import broadcast_in_dim, reshape, transpose


def run_on_all_devices(
    closed: ClosedJaxpr,
    values: Sequence[Any],
    in_specs: Sequence[PartitionSpec],
    out_specs: Sequence[PartitionSpec],
    sizes: Mapping[Any, int],
) -> list[Any]:
    """The whole results of ``closed``, which is written for one device, on whole ``values`` split by ``in_specs``;
    ``sizes``: the lengths of the mesh axes that it speaks of."""
    axes = tuple(sizes)
    parts = [_split(x, s, sizes) for x, s in zip(values, in_specs, strict=True)]
    split_by = [set(s.axes) for s in in_specs]
    differs: list[dict[Any, bool]] = [{} for _ in out_specs]  # for each result, the mesh axes along which it does

    def apply(level: int, given: Sequence[Any]) -> list[Any]:
        if level == len(axes):
            return evaluate(closed.jaxpr, closed.consts, list(given))
        name = axes[level]
        dims = [0 if name in names else None for names in split_by]
        axis = AxisData(name, sizes[name])
        results, out_dims = batch(lambda *inner: apply(level + 1, inner), given, dims, axis, context.trace)
        for number, dim in enumerate(out_dims):
            differs[number][name] = dim is not None
        return [r if d is None else _to_front(r, d) for r, d in zip(results, out_dims, strict=True)]

    results = apply(0, parts)
    return [_join(r, s, by, sizes) for r, s, by in zip(results, out_specs, differs, strict=True)]


def _split(value: Any, spec: PartitionSpec, sizes: Mapping[Any, int]) -> Any:
    """``value`` with a leading axis for each mesh axis that splits it, in the mesh's order."""
    if not spec.axes:
        return value
    shape: list[int] = []
    place: dict[Any, int] = {}  # of mesh axes among the axes of the divided array
    local: list[int] = []
    for axis, length in enumerate(aval_of(value).shape):
        for name in spec.axes_of(axis):
            place[name] = len(shape)
            shape.append(sizes[name])
        local.append(len(shape))
        shape.append(length // math.prod([sizes[n] for n in spec.axes_of(axis)]))
    lead = [place[n] for n in sizes if n in place]
    return transpose(reshape(value, tuple(shape)), (*lead, *local))


def _join(value: Any, spec: PartitionSpec, differs: Mapping[Any, bool], sizes: Mapping[Any, int]) -> Any:
    """The array of all parts; along mesh axes that ``spec`` does not name every device has the same, so one's is
    taken."""
    lead = [n for n in sizes if differs[n]]
    for name in [n for n in lead if n not in spec.axes]:
        value = _first(value, lead.index(name))
        lead.remove(name)
    missing = [n for n in spec.axes if n not in lead]
    if missing:
        own = aval_of(value).shape
        counts = tuple(sizes[n] for n in missing)
        value = broadcast_in_dim(value, (*counts, *own), tuple(range(len(counts), len(counts) + len(own))))
        lead = [*missing, *lead]
    shape = aval_of(value).shape[len(lead) :]
    order: list[int] = []
    whole: list[int] = []
    for axis, length in enumerate(shape):
        names = spec.axes_of(axis)
        order += [*(lead.index(n) for n in names), len(lead) + axis]
        whole.append(length * math.prod([sizes[n] for n in names]))
    return reshape(transpose(value, order), tuple(whole))


def _to_front(value: Any, dim: int) -> Any:
    rank = aval_of(value).ndim
    return transpose(value, (dim, *(d for d in range(rank) if d != dim)))


def _first(value: Any, axis: int) -> Any:
    index: tuple[Any, ...] = (slice(None),) * axis + (0,)
    return value[index]
