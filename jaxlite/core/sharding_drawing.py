"""Drawing: which device holds which part of an array of one or two axes, as text.

In: a shape and a sharding.  Out: lines, a cell for each part with the numbers of its devices; further axes, which must
be whole, do not show.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxlite.core.shardings import Sharding

Part = tuple[tuple[int, int], ...]


def drawing(shape: Sequence[int], sharding: Sharding, min_width: int = 9, max_width: int = 80) -> str:
    """The picture; ``ValueError`` where more than two axes are split.

    >>> import jaxlite as jax
    >>> mesh = jax.make_mesh((1,), ("x",))
    >>> print(drawing((4,), jax.NamedSharding(mesh, jax.P("x"))))
    ┌─────────┐
    │  CPU 0  │
    └─────────┘
    """
    shape = tuple(shape)
    devices: dict[Part, list[int]] = {}
    for device, index in sharding.devices_indices_map(shape).items():
        part = tuple((s.start or 0, n if s.stop is None else s.stop) for s, n in zip(index, shape, strict=True))
        devices.setdefault(part, []).append(device.id)
    split = [d for d in range(len(shape)) if len({p[d] for p in devices}) > 1]
    if len(split) > 2:
        raise ValueError(
            f"A picture has two axes; {sharding} splits {len(split)} of those of the shape {shape}. Draw a part: "
            "x.addressable_shards lists all of them."
        )
    axes = _two_axes(split, len(shape))
    rows, columns = (sorted({p[d] for p in devices}) if d is not None else [None] for d in axes)
    labels = [[_label(devices, dict(zip(axes, (row, column), strict=True))) for column in columns] for row in rows]
    longest = max(len(label) for row in labels for label in row)
    width = min(max(min_width, longest + 2), max(max_width // max(len(columns), 1), longest + 2))
    line = "─" * width
    middle = "├" + "┼".join([line] * len(columns)) + "┤"
    body = [["│" + "│".join(label.center(width) for label in row) + "│"] for row in labels]
    out = ["┌" + "┬".join([line] * len(columns)) + "┐", *body[0]]
    for row in body[1:]:
        out += [middle, *row]
    return "\n".join([*out, "└" + "┴".join([line] * len(columns)) + "┘"])


def _two_axes(split: Sequence[int], rank: int) -> tuple[int | None, int | None]:
    """The array axes that go down and across: an array of one axis goes across."""
    if rank == 1:
        return None, 0
    down = next((d for d in split if d < rank - 1), None)
    across = next((d for d in reversed(split) if d != down), None)
    return down, across


def _label(devices: dict[Part, list[int]], at: dict[int | None, Any]) -> str:
    def holds(part: Part) -> bool:
        return all(d is None or part[d] == where for d, where in at.items())

    return "CPU " + ",".join(map(str, sorted(n for part, ids in devices.items() if holds(part) for n in ids)))
