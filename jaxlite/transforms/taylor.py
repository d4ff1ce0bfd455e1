"""``jet``: a function's Taylor series along a curve, from the Taylor series of the curve."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from jaxlite.core import dtypes
from jaxlite.core.avals import aval_of
from jaxlite.core.context import context
from jaxlite.core.pytree import PyTreeDef, keystr, tree_flatten, tree_leaves_with_path
from jaxlite.core.tracebacks import boundary
from jaxlite.interpreters.jet import jet as push_series, known
from jaxlite.interpreters.jvp import concrete_value
from jaxlite.interpreters.series import over, scaled
from jaxlite.interpreters.zeros import has_tangent, zero_of
from jaxlite.lax.convert import broadcast_to_shape, full_like, operand_of
from jaxlite.lax.elementwise.casts import convert
from jaxlite.lax.layout.shaping import broadcast_in_dim_p
from jaxlite.transforms.arguments import check_callable, flat_function, flat_operands

_STRUCTURE = (
    "jet takes primals and series in tuples or lists of one length: one entry for each argument, in series a list of "
    "coefficients x1, x2, ... where primals has x0"
)


@boundary
def jet(
    fun: Callable[..., Any], primals: Sequence[Any], series: Sequence[Any], factorial_scaled: bool = True, **_: Any
) -> tuple[Any, Any]:
    """Value and Taylor coefficients of ``fun(x(t))`` at 0, where ``x(t)`` has value and coefficients ``primals`` and
    ``series``.

    ``factorial_scaled``: coefficients, given and returned, are derivatives with respect to ``t``; else those
    divided by ``k!``.  An argument may be a pytree; where it has an array, its series has a list of coefficients, and
    so has the result's.  Cost grows with the square of the order for most functions.

    >>> jet(lambda x: x ** 3, (2.0,), ((1.0, 0.0, 0.0),))
    (Array(8., dtype=float32, weak_type=True), [Array(12., dtype=float32, weak_type=True),
     Array(12., dtype=float32, weak_type=True), Array(6., dtype=float32, weak_type=True)])
    """
    check_callable(fun, "jet")
    if not isinstance(primals, (tuple, list)) or not isinstance(series, (tuple, list)):
        raise TypeError(f"{_STRUCTURE}; got {type(primals).__name__} and {type(series).__name__}.")
    if len(primals) != len(series):
        raise ValueError(f"{_STRUCTURE}; got {len(primals)} primals and {len(series)} series.")
    values, in_tree = flat_operands(tuple(primals), "primals")
    paths = [f"primals{keystr(p)}" for p, _ in tree_leaves_with_path(tuple(primals))]
    columns = _columns(in_tree, tuple(series), paths)
    orders = sorted({len(c) for c in columns})
    if len(orders) > 1:
        listed = ", ".join(f"{p} has {len(c)}" for p, c in zip(paths, columns, strict=True))
        raise ValueError(
            f"jet terms have inconsistent lengths for different arguments: {listed}.  Give each as many coefficients "
            "as the highest order, with 0.0 for those that vanish."
        )
    order = orders[0] if orders else 0
    terms = [
        [_term(v, t, f"coefficient {k} of {path}") for k, t in enumerate(column, 1)]
        for v, column, path in zip(values, columns, paths, strict=True)
    ]
    if factorial_scaled:
        terms = [_unscaled(v, s) for v, s in zip(values, terms, strict=True)]
    out: list[Any] = []
    results, moved = push_series(flat_function(fun, in_tree, out), values, terms, order, context.trace)
    given = [_given(r, s, factorial_scaled) for r, s in zip(results, moved, strict=True)]
    return out[0].unflatten(results), out[0].unflatten(given)


def _columns(tree: PyTreeDef, series: tuple[Any, ...], paths: Sequence[str]) -> list[list[Any]]:
    """For each leaf of the primals, the list of coefficients that stands in its place."""
    try:
        columns = tree.flatten_up_to(series)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{_STRUCTURE}, so a series has the structure of its primal above the lists: {error}"
        ) from None
    for path, column in zip(paths, columns, strict=True):
        if not isinstance(column, (tuple, list)):
            raise TypeError(
                f"{_STRUCTURE}; the series of {path} is {column!r} of type {type(column).__name__}: write a list, also "
                "for one coefficient."
            )
    return [list(c) for c in columns]


def _term(primal: Any, term: Any, what: str) -> Any:
    """A coefficient in its primal's type, a ``Zero`` where it is the number 0."""
    if tree_flatten(term)[1].num_nodes != 1:
        raise ValueError(f"{what} is {term!r}, which is not an array.")
    value, want = operand_of(term), aval_of(primal)
    have = aval_of(value)
    if not has_tangent(want):
        known_value = concrete_value(value)
        if have.dtype == dtypes.float0 or (known_value is not None and not (known_value != 0)):
            return zero_of(primal)
        raise TypeError(
            f"{what} must be 0, since a primal of type {want} has no derivative; got {term!r}.  Convert the primal to "
            "a float if it is to move."
        )
    if type(term) in (int, float, complex) and term == 0:
        return zero_of(primal)
    promoted, _ = dtypes.promote_types((want.dtype, want.weak_type), (have.dtype, have.weak_type))
    if have.shape not in ((), want.shape) or promoted != want.dtype:
        raise ValueError(
            f"{what} must be an array of type {want}, or a scalar for all its elements; got {have}.  Write "
            f"jnp.asarray(value, jnp.{want.dtype.name}) for another dtype, jnp.broadcast_to(value, {want.shape}) for "
            "another shape."
        )
    return broadcast_to_shape(convert(value, want.dtype, have.weak_type and want.weak_type), want.shape)


def _unscaled(primal: Any, terms: Sequence[Any]) -> list[Any]:
    """Derivatives as coefficients."""
    divided = [over(known(t), math.factorial(k)) for k, t in enumerate(terms, 1)]
    return [zero_of(primal) if t is None else t for t in divided]


def _given(result: Any, terms: Sequence[Any], factorial_scaled: bool) -> list[Any]:
    """Coefficients as the user gets them: arrays, zeros written out; floating zeros for a result that is none."""
    aval = aval_of(result)
    if not has_tangent(aval):
        return [_zeros(0.0, aval.shape) for _ in terms]
    factors = [math.factorial(k) if factorial_scaled else 1 for k in range(1, len(terms) + 1)]
    return [
        _zeros(result, aval.shape) if known(t) is None else scaled(t, f) for t, f in zip(terms, factors, strict=True)
    ]


def _zeros(like: Any, shape: tuple[int, ...]) -> Any:
    """Zeros of the dtype of ``like``, weak where that is."""
    return broadcast_in_dim_p.bind(full_like(like, 0), shape=shape, broadcast_dimensions=(), sharding=None)


def fact(n: float) -> float:
    """The factorial of ``n``: what ``factorial_scaled`` multiplies coefficient ``n`` with.

    >>> fact(5)
    120.0
    """
    return math.gamma(n + 1)
