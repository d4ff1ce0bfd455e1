"""Timing: how long the collectives of a partition take on this machine, each run alone for all devices."""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np

from jaxlite.compiler.partition.partitioner import Partition
from jaxlite.compiler.partition.record import Communication
from jaxlite.core import runtime
from jaxlite.core.array import from_numpy
from jaxlite.core.context import context, context_kept
from jaxlite.core.dtypes import physical
from jaxlite.core.partition_spec import PartitionSpec
from jaxlite.interpreters.stage import stage
from jaxlite.lax.layout.shaping import reshape
from jaxlite.transforms.all_devices import run_on_all_devices

RUNS = 5


def seconds_of(partition: Partition) -> list[float]:
    """The median seconds of each communication, once."""
    sizes = {n: s for n, s in partition.mesh.shape.items() if s > 1}
    return [_seconds(c, sizes) for c in partition.communications]


@context_kept
def _seconds(communication: Communication, sizes: dict[Any, int]) -> float:
    devices = int(np.prod(list(sizes.values())))
    spec = PartitionSpec(tuple(sizes))
    avals = [a.update(shape=(devices, *a.shape)) for a in communication.avals]

    def device(*values: Any) -> list[Any]:
        parts = [reshape(v, a.shape) for v, a in zip(values, communication.avals, strict=True)]
        out = communication.primitive.bind(*parts, **communication.params)
        results = list(out) if communication.primitive.multiple_results else [out]
        return [reshape(r, (1, *r.shape)) for r in results]

    before, context.axis_sizes = context.axis_sizes, {**context.axis_sizes, **sizes}
    local = stage(device, [a.update(shape=(1, *a.shape[1:])) for a in avals])
    context.axis_sizes = before
    count = len(local.out_avals)
    whole = stage(lambda *v: run_on_all_devices(local, v, [spec] * len(v), [spec] * count, sizes), avals)
    program = runtime.current().compile(whole, communication.kind)
    operands = [from_numpy(np.zeros(a.shape, physical(a.dtype))) for a in avals]
    taken = []
    for _ in range(RUNS + 1):
        start = time.perf_counter()
        program(operands)
        taken.append(time.perf_counter() - start)
    return statistics.median(taken[1:])
