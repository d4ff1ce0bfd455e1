"""Where gather and scatter read and write: dimension numbers, modes, and the places they stand for.

In: dimension numbers, an operand's shape and start indices.  Out: for every element of the window, its index in the
operand, and whether it is in bounds; once for NumPy (whole arrays) and once against an emitter (one element).
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any, NamedTuple, final

import numpy as np


@final
class GatherScatterMode(enum.Enum):
    """What happens to a window that does not lie inside the operand."""

    CLIP = 0
    FILL_OR_DROP = 1
    PROMISE_IN_BOUNDS = 2
    ONE_HOT = 3

    @staticmethod
    def from_any(mode: Any) -> GatherScatterMode:
        """The mode that a string, None or a mode names."""
        if isinstance(mode, GatherScatterMode):
            return mode
        names = {
            "clip": GatherScatterMode.CLIP,
            "fill": GatherScatterMode.FILL_OR_DROP,
            "drop": GatherScatterMode.FILL_OR_DROP,
            "promise_in_bounds": GatherScatterMode.PROMISE_IN_BOUNDS,
            None: GatherScatterMode.FILL_OR_DROP,
        }
        if mode not in names:
            raise ValueError(f"Unknown gather mode {mode!r}: use 'clip', 'fill', 'drop' or 'promise_in_bounds'.")
        return names[mode]

    @property
    def when_writing(self) -> GatherScatterMode:
        """What a scatter does: as XLA, it drops a window that breaks its promise, where a gather moves it inside."""
        return GatherScatterMode.FILL_OR_DROP if self is GatherScatterMode.PROMISE_IN_BOUNDS else self

    def __str__(self) -> str:
        return f"GatherScatterMode.{self.name}"


@final
class GatherDimensionNumbers(NamedTuple):
    """How the axes of operand, start indices and result of a gather belong together (StableHLO's ``gather``)."""

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()


@final
class ScatterDimensionNumbers(NamedTuple):
    """How the axes of operand, indices and updates of a scatter belong together (StableHLO's ``scatter``)."""

    update_window_dims: tuple[int, ...]
    inserted_window_dims: tuple[int, ...]
    scatter_dims_to_operand_dims: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    scatter_indices_batching_dims: tuple[int, ...] = ()

    def as_gather(self) -> GatherDimensionNumbers:
        """The gather that reads what this scatter writes."""
        return GatherDimensionNumbers(*self)


def window_axes(numbers: GatherDimensionNumbers, rank: int) -> list[int]:
    """The operand's axes that have an axis of their own in the result."""
    dropped = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    return [d for d in range(rank) if d not in dropped]


def element_place(
    e: Any,
    numbers: GatherDimensionNumbers,
    mode: GatherScatterMode,
    shape: Sequence[int],
    window: Sequence[int],
    index: Sequence[Any],
    read_start: Any,
    guard: bool = True,
) -> tuple[list[Any], Any]:
    """The operand's index for the element of the result (or updates) at ``index``, and a mask (None: always inside).

    ``window`` holds the window's length along each axis of the operand, ``read_start(indices)`` reads the start
    indices.  With ``guard``, even promised places are clipped: no input may read outside the buffers.
    """
    rank = len(shape)
    batch = [i for d, i in enumerate(index) if d not in numbers.offset_dims]
    place: list[Any] = [e.constant(0, np.dtype(np.int64))] * rank
    for axis, d in zip(window_axes(numbers, rank), numbers.offset_dims, strict=True):
        place[axis] = index[d]
    for axis, d in zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True):
        place[axis] = batch[d]
    inside: Any = None
    for component, axis in enumerate(numbers.start_index_map):
        start = e.convert(read_start((*batch, e.constant(component, np.dtype(np.int64)))), np.dtype(np.int64))
        last = shape[axis] - window[axis]
        if mode is GatherScatterMode.FILL_OR_DROP:
            test = e.and_(e.ge(start, 0), e.le(start, last))
            inside = test if inside is None else e.and_(inside, test)
        elif guard:
            start = e.max(e.min(start, last), 0)
        place[axis] = e.add(place[axis], start)
    return place, inside


def array_places(
    numbers: GatherDimensionNumbers,
    mode: GatherScatterMode,
    shape: Sequence[int],
    window: Sequence[int],
    out_shape: Sequence[int],
    starts: np.ndarray[Any, Any],
) -> tuple[tuple[np.ndarray[Any, Any], ...], np.ndarray[Any, Any]]:
    """The same for every element of a result of ``out_shape``: index arrays for the operand, and the mask."""
    grid = np.indices(tuple(out_shape), sparse=True)
    batch = [g for d, g in enumerate(grid) if d not in numbers.offset_dims]
    place: list[Any] = [np.zeros((1,) * len(out_shape), np.int64)] * len(shape)
    for axis, d in zip(window_axes(numbers, len(shape)), numbers.offset_dims, strict=True):
        place[axis] = grid[d]
    for axis, d in zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True):
        place[axis] = batch[d]
    inside = np.ones((1,) * len(out_shape), bool)
    for component, axis in enumerate(numbers.start_index_map):
        start = starts[(*batch, np.int64(component))].astype(np.int64)
        last = shape[axis] - window[axis]
        inside = inside & (start >= 0) & (start <= last)
        place[axis] = place[axis] + np.clip(start, 0, max(last, 0))
    if mode is not GatherScatterMode.FILL_OR_DROP:
        inside = np.ones((1,) * len(out_shape), bool)
    full = tuple(np.broadcast_to(p, out_shape) for p in place)
    return full, np.broadcast_to(inside, out_shape)
