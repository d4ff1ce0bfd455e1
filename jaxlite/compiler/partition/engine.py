"""Engines: where the devices of a mesh are, and how the program of one device becomes what a process runs.

In: one device's program, and how whole arguments and results are laid out.  Out: the program that this process
compiles: on whole arrays where it holds all devices, on its own parts where it holds one of many.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, final

from jaxlite.core.avals import ShapedArray
from jaxlite.core.jaxpr import ClosedJaxpr, DebugInfo
from jaxlite.core.mesh import AnyMesh, Mesh
from jaxlite.core.partition_spec import PartitionSpec
from jaxlite.interpreters.stage import stage
from jaxlite.transforms.all_devices import run_on_all_devices


class Engine(ABC):
    """Base of engines."""

    name: ClassVar[str]

    @abstractmethod
    def program(
        self,
        local: ClosedJaxpr,
        mesh: AnyMesh,
        avals: Sequence[ShapedArray],
        ins: Sequence[PartitionSpec],
        outs: Sequence[PartitionSpec],
        info: DebugInfo,
    ) -> ClosedJaxpr:
        """What this process runs for its devices; ``avals`` are the whole arguments'."""


@final
class OneProcess(Engine):
    """All devices are parts of this process: kernels run for all of them at once on the one pool, collectives are sums
    and exchanges in memory, and no thread waits for another."""

    name = "one process"

    def program(
        self,
        local: ClosedJaxpr,
        mesh: AnyMesh,
        avals: Sequence[ShapedArray],
        ins: Sequence[PartitionSpec],
        outs: Sequence[PartitionSpec],
        info: DebugInfo,
    ) -> ClosedJaxpr:
        sizes = {n: s for n, s in mesh.shape.items() if s > 1}

        def every_device(*values: Any) -> list[Any]:
            return run_on_all_devices(local, values, ins, outs, sizes)

        return stage(every_device, [a.update(sharding=None) for a in avals], info)


ONE_PROCESS = OneProcess()


def engine_of(mesh: AnyMesh) -> Engine:
    """The engine that runs programs over a mesh."""
    if isinstance(mesh, Mesh) and mesh.is_multi_process:
        raise NotImplementedError(f"{mesh} has devices of several processes: give a mesh of one process's devices.")
    return ONE_PROCESS
