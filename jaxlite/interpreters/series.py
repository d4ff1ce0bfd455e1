"""Arithmetic of truncated power series, coefficient by coefficient.

A series is a list of coefficients, lowest order first; a coefficient that is known to vanish is None.  Recurrences:
Griewank and Walther, "Evaluating Derivatives", second edition, chapter 13.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jaxlite.core.array import full_like
from jaxlite.core.primitive import get

Series = Sequence[Any]


def plus(a: Any, b: Any) -> Any:
    """The sum of two coefficients."""
    if a is None or b is None:
        return b if a is None else a
    return get("add").bind(a, b)


def minus(a: Any, b: Any) -> Any:
    """The difference of two coefficients."""
    if b is None:
        return a
    return get("neg").bind(b) if a is None else get("sub").bind(a, b)


def scaled(a: Any, factor: float) -> Any:
    """A coefficient times a number."""
    if a is None or factor == 0:
        return None
    return a if factor == 1 else get("mul").bind(a, full_like(a, factor))


def over(a: Any, divisor: Any) -> Any:
    """A coefficient divided by a number or an array."""
    if a is None or (type(divisor) is int and divisor == 1):
        return a
    return get("div").bind(a, full_like(a, divisor) if type(divisor) is int else divisor)


def combined(
    bilinear: Callable[[Any, Any], Any], x: Series, y: Series, order: int, first: int = 0, last: int | None = None
) -> Any:
    """The sum of ``bilinear(x[i], y[order - i])`` for ``i`` from ``first`` to ``last`` (``order``)."""
    total = None
    for i in range(first, (order if last is None else last) + 1):
        if x[i] is not None and y[order - i] is not None:
            total = plus(total, bilinear(x[i], y[order - i]))
    return total


def convolved(x: Series, y: Series, order: int, first: int = 0, last: int | None = None) -> Any:
    """Coefficient ``order`` of the product, of the terms with ``x[first]`` to ``x[last]`` alone."""
    return combined(get("mul").bind, x, y, order, first, last)


def squared(x: Series, order: int) -> Any:
    """Coefficient ``order`` of the square."""
    twice = scaled(convolved(x, x, order, 0, (order - 1) // 2), 2)
    middle = x[order // 2]
    return twice if order % 2 or middle is None else plus(twice, get("mul").bind(middle, middle))


def product(x: Series, y: Series) -> list[Any]:
    """The product, to the order of ``x``."""
    return [convolved(x, y, k) for k in range(len(x))]


def quotient(out: Any, x: Series, y: Series) -> list[Any]:
    """The coefficients after ``out`` of ``x / y``."""
    result = [out]
    for k in range(1, len(x)):
        result.append(over(minus(x[k], convolved(y, result, k, 1)), y[0]))
    return result[1:]


def slope(x: Series) -> list[Any]:
    """The derivative; one coefficient fewer."""
    return [scaled(c, k) for k, c in enumerate(x)][1:]


def integrated(dx: Series, w: Series, order: int) -> Any:
    """Coefficient ``order`` (from 1) of the ``y`` with ``y' = w x'``, of which ``w`` is needed below ``order``."""
    return over(convolved(dx, w, order - 1), order)


def solved(out: Any, x: Series, next_weight: Callable[[Series, int], Any], weight: Any) -> list[Any]:
    """The coefficients after ``out`` of the ``y`` with ``y' = w x'``, where ``w`` starts with ``weight`` and
    ``next_weight(y, k)`` gives its coefficient ``k`` from those of ``y`` up to ``k``."""
    dx, y, w = slope(x), [out], [weight]
    for k in range(1, len(x)):
        y.append(integrated(dx, w, k))
        w.append(next_weight(y, k))
    return y[1:]


def logarithm(x: Series, first: Any) -> list[Any]:
    """The coefficients after the first of ``log(first - x[0] + x)``: the integral of ``x' / x``."""
    dx = slope(x)
    ratio = [over(dx[0], first), *quotient(over(dx[0], first), dx, [first, *x[1:]])]
    return [over(c, k) for k, c in enumerate(ratio, 1)]


def power(out: Any, x: Series, exponent: float) -> list[Any]:
    """The coefficients after ``out`` of ``x ** exponent``, by ``x y' = exponent y x'``; ``x[0]`` must not be 0."""
    y = [out]
    for k in range(1, len(x)):
        total = None
        for j in range(1, k + 1):
            if x[j] is not None and y[k - j] is not None:
                weight = (exponent * j - (k - j)) / k
                total = plus(total, scaled(get("mul").bind(x[j], y[k - j]), weight))
        y.append(over(total, x[0]))
    return y[1:]
