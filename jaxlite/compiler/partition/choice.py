"""Choice: which mesh axes split each factor of an equation, by the bytes that would move.

In: the factors, how operands lie, how results are to lie.  Out: mesh axes by factor, and what the choice cost against
what.  Candidates are what operands bring along, and whole; of those that cost the same the most split wins, which
leaves each device least to compute.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, final

from jaxlite.compiler.partition.layouts import (
    Layout,
    Names,
    Sizes,
    bytes_of_steps,
    local_shape,
    names_in,
    parts,
    received,
    steps_between,
)
from jaxlite.core.avals import ShapedArray
from jaxlite.core.factors import Axis, Factors, spread

Split: TypeAlias = dict[int, Names]

MOST = 256  # candidates that are looked at


@final
@dataclass(frozen=True)
class Choice:
    """``split``, the bytes that a device receives for it, and those of the others that were looked at."""

    split: Split
    nbytes: int
    others: tuple[tuple[Split, int], ...] = ()


def choose(
    factors: Factors,
    avals: Sequence[ShapedArray],
    layouts: Sequence[Layout],
    results: Sequence[ShapedArray],
    goals: Sequence[Layout | None],
    sizes: Sizes,
) -> Choice:
    """The candidate that moves the least."""
    options = _options(factors, layouts, sizes)
    seen: dict[tuple[tuple[int, Names], ...], tuple[Split, int]] = {}
    for split in itertools.islice(_candidates(options), MOST):
        complete = exact(factors, split, sizes)
        key = tuple(sorted(complete.items()))
        if key not in seen:
            seen[key] = complete, _cost(factors, complete, avals, layouts, results, goals, sizes)
    ranked = sorted(seen.values(), key=lambda found: (found[1], -sum(map(len, found[0].values()))))
    (split, nbytes), *others = ranked
    return Choice(split, nbytes, tuple(others))


def _options(factors: Factors, layouts: Sequence[Layout], sizes: Sizes) -> dict[int, list[Names]]:
    """For each factor, how operands split it; whole last."""
    options: dict[int, list[Names]] = {}
    for axes, layout in zip(factors.operands, layouts, strict=True):
        for axis, names in zip(axes, layout, strict=True):
            for factor, given in (spread(names, axis, factors.sizes, sizes) or {}).items():
                kept = options.setdefault(factor, [])
                if given not in kept and _may_split(factors, factor, given, sizes):
                    kept.append(given)
    return {factor: [*given, ()] for factor, given in options.items() if given}


def _may_split(factors: Factors, factor: int, names: Names, sizes: Sizes) -> bool:
    folded = factors.reduced.get(factor)
    goes_on = folded is not None or any((factor in axis) for axes in factors.results for axis in axes)
    whole = not goes_on or factor in factors.whole or factor in factors.moved or folded == ""
    return not whole and factors.sizes[factor] % parts(names, sizes) == 0


def _candidates(options: Mapping[int, Sequence[Names]]) -> Iterator[Split]:
    """Every way to take one option of each, in which no mesh axis is used twice."""
    for chosen in itertools.product(*options.values()):
        used = [n for names in chosen for n in names]
        if len(set(used)) == len(used):
            yield {f: names for f, names in zip(options, chosen, strict=True) if names}


def exact(factors: Factors, split: Split, sizes: Sizes) -> Split:
    """Without factors whose parts would not lie together: one may be split only if the slower ones are wholly."""
    out = dict(split)
    joined = [a for axes in (*factors.operands, *factors.results) for a in axes if len(a) > 1]
    while True:
        before = len(out)
        for axis in joined:
            complete = True
            for factor in axis:
                if not complete:
                    out.pop(factor, None)
                complete = complete and parts(out.get(factor, ()), sizes) == factors.sizes[factor]
        if len(out) == before:  # what one axis gives up may have been what another built on
            return out


def layout_under(axes: Sequence[Axis], split: Mapping[int, Names]) -> Layout:
    """The layout of an array whose axes are these factors."""
    return tuple([tuple([n for f in axis for n in split.get(f, ())]) for axis in axes])


def _cost(
    factors: Factors,
    split: Split,
    avals: Sequence[ShapedArray],
    layouts: Sequence[Layout],
    results: Sequence[ShapedArray],
    goals: Sequence[Layout | None],
    sizes: Sizes,
) -> int:
    total = 0
    for aval, layout, axes in zip(avals, layouts, factors.operands, strict=True):
        total += move_bytes(aval, layout, layout_under(axes, split), sizes)
    summed = [n for f in factors.reduced for n in split.get(f, ())]
    for aval, axes, goal in zip(results, factors.results, goals, strict=True):
        layout = layout_under(axes, split)
        nbytes = part_bytes(aval, layout, sizes)
        for name in summed:
            scattered = goal is not None and name in names_in(goal)
            total += received("reduce_scatter" if scattered else "all_reduce", nbytes, sizes[name])
            nbytes = nbytes // sizes[name] if scattered else nbytes
        if goal is not None:
            kept = tuple([tuple([n for n in names if n not in summed]) for names in goal])
            total += move_bytes(aval, layout, kept, sizes)
    return total


def part_bytes(aval: ShapedArray, layout: Layout, sizes: Sizes) -> int:
    """Bytes of one device's part."""
    return aval.update(shape=local_shape(aval.shape, layout, sizes)).nbytes


def move_bytes(aval: ShapedArray, start: Layout, goal: Layout, sizes: Sizes) -> int:
    """Bytes that a device receives when an array is laid out otherwise."""
    return bytes_of_steps(steps_between(start, goal), part_bytes(aval, start, sizes), sizes)
