"""Factors: how the axes of a primitive's operands and results belong together, which is all that splitting needs.

Each axis is made of factors, numbered; factors of one number are the same index.  So a matrix product of ``[i, k]``
and ``[k, j]`` gives ``[i, j]``, and over ``k`` it sums.  An axis that a reshape splits or joins has several factors,
the slowest first.  An axis that nothing else has, such as one of length 1 that is repeated, has a factor of its own.
The notation follows Shardy's sharding rules (openxla.org/shardy/sharding_propagation).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, final

from jaxlite.core.avals import ShapedArray

Axis = tuple[int, ...]  # factors, the slowest first
Axes = tuple[Axis, ...]


@final
@dataclasses.dataclass(frozen=True)
class Factors:
    """For each operand and each result the factors of its axes; ``sizes``: how long each factor is.

    ``reduced``: factors that results do not have because they are folded, and the collective that folds the parts of
    devices ("psum", "pmax", "pmin"; "" where none does).  ``whole``: factors along which one device must have all, and
    why.  ``moved``: factors along which results are elements at other places than the operands'.
    """

    operands: tuple[Axes, ...]
    results: tuple[Axes, ...]
    sizes: Mapping[int, int]
    reduced: Mapping[int, str] = dataclasses.field(default_factory=dict)
    whole: Mapping[int, str] = dataclasses.field(default_factory=dict)
    moved: frozenset[int] = frozenset()


def axes_of(numbers: Sequence[int]) -> Axes:
    """Axes of one factor each."""
    return tuple([(n,) for n in numbers])


def pointwise(operands: Sequence[ShapedArray], results: Sequence[ShapedArray]) -> Factors:
    """Operands of the results' shape, or without axes, elementwise."""
    shape = results[0].shape if results else ()
    every = axes_of(range(len(shape)))
    return Factors(
        tuple([every if a.shape == shape else fresh(a.shape, len(shape)) for a in operands]),
        tuple([every if a.shape == shape else fresh(a.shape, len(shape)) for a in results]),
        dict(enumerate(shape)),
    )


def fresh(shape: Sequence[int], start: int) -> Axes:
    """Axes that belong to no other, their factors numbered from ``start``."""
    return axes_of(range(start, start + len(shape)))


def along(shape: Sequence[int], axes: Sequence[int], why: str) -> Factors:
    """One operand and one result of the same shape; ``axes`` must be whole, the others are examples."""
    every = axes_of(range(len(shape)))
    return Factors((every,), (every,), dict(enumerate(shape)), whole={a: why for a in axes})


def leading(operand: ShapedArray, result: ShapedArray, why: str) -> Factors:
    """One operand and one result that share their first axes; what one of them has after these must be whole."""
    shared = min(operand.ndim, result.ndim)
    last = range(shared, max(operand.ndim, result.ndim))
    longest = max(operand, result, key=lambda a: a.ndim)
    sides = tuple([axes_of(range(a.ndim)) for a in (operand, result)])
    return Factors((sides[0],), (sides[1],), dict(enumerate(longest.shape)), whole=dict.fromkeys(last, why))


def spread(names: Sequence[Any], axis: Axis, factor_sizes: Mapping[int, int], mesh_sizes: Mapping[Any, int]) -> Any:
    """Mesh axes that split an axis, given out to its factors: a dict, or None where they do not come out even.

    The slowest factor takes as many as its size allows: an axis of 8 = 2 * 4, split four ways by mesh axes of 2 and 2,
    gives each factor one.
    """
    if len(axis) == 1:
        return {axis[0]: tuple(names)} if names else {}
    found: dict[int, tuple[Any, ...]] = {}
    left = list(names)
    for factor in axis:
        taken: list[Any] = []
        room = factor_sizes[factor]
        while left and room % mesh_sizes[left[0]] == 0 and room > 1:
            room //= mesh_sizes[left[0]]
            taken.append(left.pop(0))
        if taken:
            found[factor] = tuple(taken)
        if left and room > 1:
            return None
        if not left:
            break
    return None if left else found
