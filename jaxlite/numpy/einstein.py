"""``einsum``: sums of products named by subscripts, as a chain of pairwise ``dot_general``.

In: subscripts and arrays.  The order of contractions is left to right, or the greedy one by size where that is
cheaper.  Each pair first sums the labels that only one side has, then contracts shared labels that nobody needs later.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jaxlite import lax
from jaxlite.core.avals import aval_of
from jaxlite.lax.placed import placed
from jaxlite.numpy.arithmetic import multiply2
from jaxlite.numpy.promotion import array_operand, as_type, common_type, refuse_out

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


@placed
def einsum(
    subscripts: Any, /, *operands: Any, out: Any = None, optimize: Any = "auto", precision: Any = None,
    preferred_element_type: Any = None, _dot_general: Any = lax.dot_general, out_sharding: Any = None,
) -> Any:  # fmt: skip
    """The sum of products that ``subscripts`` describes: "ij,jk->ik" is the matrix product.

    >>> import jaxlite.numpy as jnp
    >>> einsum("i,i->", jnp.arange(3), jnp.arange(3))
    Array(5, dtype=int32)
    """
    refuse_out("einsum", out)
    subscripts, values = _string_form(subscripts, operands)
    arrays = [array_operand("einsum", v) for v in values]
    labels, result = parse(subscripts, [a.shape for a in arrays])
    dtype, weak = common_type([aval_of(a) for a in arrays])
    terms = [_without_repeats(as_type(a, dtype, weak), names) for a, names in zip(arrays, labels, strict=True)]
    terms = _aligned(terms)
    product = functools.partial(_dot_general, precision=precision)
    for i, j in _order(terms, result, optimize):
        right, left = terms.pop(max(i, j)), terms.pop(min(i, j))
        needed = {*result, *(name for _, names in terms for name in names)}
        last = not terms
        terms.append(
            _contract(left, right, needed, product, preferred_element_type if last else None, result if last else None)
        )
    array, names = _summed(terms[0], set(result))
    return lax.transpose(array, [names.index(name) for name in result])


Term = tuple[Any, str]
Product = Callable[..., Any]


def _string_form(subscripts: Any, operands: Sequence[Any]) -> tuple[str, Sequence[Any]]:
    """Subscripts as a string: ``einsum(a, [0, 1], b, [1], [0])`` becomes "ab,b->a"."""
    if isinstance(subscripts, str):
        return subscripts, operands
    given = [subscripts, *operands]
    arrays, lists = given[0 : len(given) - len(given) % 2 : 2], given[1::2]

    def spelled(numbers: Any) -> str:
        return "".join("..." if n is Ellipsis else _LETTERS[n] for n in numbers)

    text = ",".join(map(spelled, lists))
    return (f"{text}->{spelled(given[-1])}" if len(given) % 2 else text), arrays


def parse(subscripts: str, shapes: Sequence[tuple[int, ...]]) -> tuple[list[str], str]:
    """A label for each axis of each operand, and for those of the result; ``...`` becomes capital Greek letters."""
    inputs, arrow, result = subscripts.replace(" ", "").partition("->")
    terms = inputs.split(",")
    if len(terms) != len(shapes):
        raise ValueError(f"einsum: {subscripts!r} describes {len(terms)} operands, got {len(shapes)}.")
    widest = max(
        [len(s) - len(t.replace("...", "")) for t, s in zip(terms, shapes, strict=True) if "..." in t], default=0
    )
    hidden = "".join(chr(0x391 + i) for i in range(widest))
    labels = []
    for number, (term, shape) in enumerate(zip(terms, shapes, strict=True)):
        missing = len(shape) - len(term.replace("...", ""))
        if missing < 0 or ("..." not in term and missing):
            raise ValueError(
                f"Einstein sum subscript {term!r} does not contain the correct number of indices for operand {number}."
            )
        labels.append(term.replace("...", hidden[len(hidden) - missing :]))
    _check_sizes(subscripts, labels, shapes)
    if arrow:
        out = result.replace("...", hidden)
    else:
        joined = "".join(labels)
        out = hidden + "".join(sorted(c for c in set(joined) if joined.count(c) == 1 and c not in hidden))
    for name in out:
        if out.count(name) > 1 or name not in "".join(labels):
            raise ValueError(
                f"einsum: output label {name!r} of {subscripts!r} must appear once there, and in an operand."
            )
    return labels, out


def _check_sizes(subscripts: str, labels: Sequence[str], shapes: Sequence[tuple[int, ...]]) -> None:
    sizes: dict[str, int] = {}
    for number, (names, shape) in enumerate(zip(labels, shapes, strict=True)):
        for name, n in zip(names, shape, strict=True):
            if not name.isalpha():
                raise ValueError(f"einsum: {name!r} in {subscripts!r} is not a letter.")
            known = sizes.setdefault(name, n)
            if known != n and 1 not in (known, n):
                raise ValueError(
                    f"Size of label '{name}' for operand {number} ({known}) does not match previous terms ({n})."
                )
            sizes[name] = max(known, n)


def _without_repeats(array: Any, names: str) -> Term:
    """An operand with its repeated labels reduced to diagonals."""
    for name in names:
        while names.count(name) > 1:
            first = names.index(name)
            second = names.index(name, first + 1)
            array = _diagonal(array, first, second)
            names = names[:first] + names[first + 1 : second] + names[second + 1 :] + name
    return array, names


def _diagonal(array: Any, first: int, second: int) -> Any:
    from jaxlite.numpy.triangles import diagonal

    return diagonal(array, 0, first, second)


def _aligned(terms: Sequence[Term]) -> list[Term]:
    """Axes of length 1 of a label that is longer elsewhere are dropped: they broadcast."""
    sizes: dict[str, int] = {}
    for array, names in terms:
        for name, n in zip(names, array.shape, strict=True):
            sizes[name] = max(n, sizes.get(name, n))
    out = []
    for array, names in terms:
        short = [d for d, name in enumerate(names) if array.shape[d] == 1 != sizes[name]]
        out.append((lax.squeeze(array, short), "".join(c for d, c in enumerate(names) if d not in short)))
    return out


def _order(terms: Sequence[Term], result: str, optimize: Any) -> list[tuple[int, int]]:
    """Which two terms to contract, step by step; the product goes to the end."""
    count = len(terms)
    if isinstance(optimize, (tuple, list)) and all(isinstance(step, tuple) for step in optimize):
        return [(step[0], step[1]) for step in optimize if len(step) == 2]
    if count <= 2 or optimize is False:
        return [(0, 1)] + [(0, count - 2 - i) for i in range(count - 2)] if count > 1 else []
    sizes = {name: n for array, names in terms for name, n in zip(names, array.shape, strict=True)}
    return greedy([set(names) for _, names in terms], set(result), sizes)


def greedy(terms: list[set[str]], result: set[str], sizes: dict[str, int]) -> list[tuple[int, int]]:
    """Pairs in the order of what each saves: the smallest growth of memory first, then the fewest products."""
    terms = list(terms)
    steps = []

    def volume(names: set[str]) -> int:
        return math.prod(sizes[n] for n in names)

    while len(terms) > 1:
        best: tuple[tuple[int, int], int, int] | None = None
        for i, j in itertools.combinations(range(len(terms)), 2):
            others = set().union(result, *(t for k, t in enumerate(terms) if k not in (i, j)))
            both = terms[i] | terms[j]
            growth = volume(both & others) - volume(terms[i]) - volume(terms[j])
            score = (growth, volume(both))
            if best is None or score < best[0]:
                best = (score, i, j)
        assert best is not None
        _, i, j = best
        steps.append((i, j))
        right, left = terms.pop(j), terms.pop(i)
        terms.append((left | right) & set().union(result, *terms))
    return steps


def _summed(term: Term, needed: set[str]) -> Term:
    """A term with the labels that nobody needs summed."""
    array, names = term
    axes = tuple(d for d, name in enumerate(names) if name not in needed)
    return lax.reduce_sum(array, axes), "".join(c for c in names if c in needed)


def _contract(left: Term, right: Term, needed: set[str], product: Product, preferred: Any, result: str | None) -> Term:
    """The product of two terms, summed over the labels that nobody needs."""
    (x, xs), (y, ys) = _summed(left, needed | set(right[1])), _summed(right, needed | set(left[1]))
    shared = [c for c in xs if c in ys]
    batch, contracted = [c for c in shared if c in needed], [c for c in shared if c not in needed]
    if result is not None and not batch:
        # The last product: with its operands in the right order, the result needs no transpose.
        free_x, free_y = [c for c in xs if c not in shared], [c for c in ys if c not in shared]
        if result == "".join(free_y + free_x) != "".join(free_x + free_y):
            x, xs, y, ys = y, ys, x, xs
    if not contracted and not preferred:
        return _outer_product(x, xs, y, ys)
    numbers = (
        (tuple(xs.index(c) for c in contracted), tuple(ys.index(c) for c in contracted)),
        (tuple(xs.index(c) for c in batch), tuple(ys.index(c) for c in batch)),
    )
    out = product(x, y, numbers, preferred_element_type=preferred)
    names = batch + [c for c in xs if c not in shared] + [c for c in ys if c not in shared]
    return out, "".join(names)


def _outer_product(x: Any, xs: str, y: Any, ys: str) -> Term:
    """A product without a sum: both operands broadcast over all labels."""
    names = xs + "".join(c for c in ys if c not in xs)
    y_axes = [c for c in names if c in ys]
    y = lax.transpose(y, [ys.index(c) for c in y_axes])
    sizes = {**dict(zip(xs, x.shape, strict=True)), **dict(zip(y_axes, y.shape, strict=True))}
    y = lax.broadcast_in_dim(y, [sizes[c] if c in ys else 1 for c in names], [names.index(c) for c in y_axes])
    x = lax.reshape(x, [sizes[c] if c in xs else 1 for c in names])
    return multiply2(x, y), names


def einsum_path(subscripts: Any, /, *operands: Any, optimize: Any = "auto") -> Any:
    """NumPy's ``einsum_path``: the order of contractions, and a report."""
    text, values = _string_form(subscripts, operands)
    shapes = [np.broadcast_to(np.zeros((), np.int8), np.shape(v)) for v in values]
    return np.einsum_path(text, *shapes, optimize="optimal" if optimize == "auto" else optimize)
