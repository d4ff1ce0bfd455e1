"""Layouts: the mesh axes that split each axis of an array, and the steps from one layout to another.

In: two layouts.  Out: steps that one device takes, each with the bytes that it then receives from others.  A mesh axis
that goes from one array axis to another is exchanged; one that goes away is gathered; one that is new is cut out of
what the device has, which costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, final

from jaxlite.core.shardings import NamedSharding

Names: TypeAlias = tuple[Any, ...]
Layout: TypeAlias = tuple[Names, ...]  # for each axis of an array, the mesh axes that split it, the slowest first
Sizes: TypeAlias = Mapping[Any, int]  # of mesh axes


@final
@dataclass(frozen=True)
class Step:
    """``kind`` over mesh axis ``name``: of array axis ``axis``, and, exchanged, to array axis ``to``."""

    kind: Literal["gather", "cut", "exchange"]
    name: Any
    axis: int
    to: int = -1


def layout_of(sharding: NamedSharding | None, rank: int) -> Layout:
    """The layout that a sharding means for arrays of ``rank`` axes; mesh axes of one device split nothing."""
    if sharding is None:
        return ((),) * rank
    sizes = sharding.mesh.shape
    return tuple([tuple([n for n in sharding.spec.axes_of(d) if sizes[n] > 1]) for d in range(rank)])


def local_shape(shape: Sequence[int], layout: Layout, sizes: Sizes) -> tuple[int, ...]:
    """The shape of one device's part."""
    return tuple([n // parts(names, sizes) for n, names in zip(shape, layout, strict=True)])


def parts(names: Names, sizes: Sizes) -> int:
    """Into how many parts mesh axes split an array axis."""
    return math.prod([sizes[n] for n in names])


def names_in(layout: Layout) -> set[Any]:
    """The mesh axes of a layout."""
    return {n for names in layout for n in names}


def steps_between(start: Layout, goal: Layout) -> list[Step]:
    """How a device gets from its part under one layout to that under another."""
    now = [list(names) for names in start]
    steps: list[Step] = []

    def cut() -> None:
        for axis, names in enumerate(goal):
            while list(names[: len(now[axis])]) == now[axis] and len(names) > len(now[axis]):
                name = names[len(now[axis])]
                if any(name in other for other in now):
                    break
                steps.append(Step("cut", name, axis))
                now[axis].append(name)

    cut()
    for axis in range(len(now)):
        while list(goal[axis][: len(now[axis])]) != now[axis]:
            name = now[axis].pop()
            to = _place_for(name, now, goal)
            if to is not None:
                steps.append(Step("exchange", name, axis, to))
                now[to].append(name)
            else:
                steps.append(Step("gather", name, axis))
        cut()
    return steps


def _place_for(name: Any, now: Sequence[Sequence[Any]], goal: Layout) -> int | None:
    """The array axis that a mesh axis is to split next, if it may right now."""
    for axis, names in enumerate(goal):
        if list(names[: len(now[axis])]) == list(now[axis]) and names[len(now[axis]) : len(now[axis]) + 1] == (name,):
            return axis
    return None


def bytes_of_steps(steps: Sequence[Step], nbytes: int, sizes: Sizes) -> int:
    """Bytes that one device receives on the way, from a part of ``nbytes``."""
    total = 0
    for step in steps:
        n = sizes[step.name]
        total += received(step.kind, nbytes, n)
        nbytes = nbytes * n if step.kind == "gather" else nbytes // n if step.kind == "cut" else nbytes
    return total


def received(kind: str, nbytes: int, devices: int) -> int:
    """Bytes that one of ``devices`` receives in a collective of parts of ``nbytes``, by the algorithms that move least:
    rings (Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH", 2005)."""
    match kind:
        case "gather":
            return nbytes * (devices - 1)
        case "exchange" | "reduce_scatter":
            return nbytes * (devices - 1) // devices
        case "all_reduce":
            return 2 * (nbytes * (devices - 1) // devices)
        case _:
            return 0
