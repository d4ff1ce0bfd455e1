"""``jax.test_util``: derivatives checked against differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jaxlite.core import dtypes
from jaxlite.core.avals import aval_of
from jaxlite.core.pytree import tree_leaves, tree_map
from jaxlite.transforms.autodiff import jvp, vjp

_STEP = {"float16": 1e-2, "bfloat16": 1e-1, "float32": 1e-3, "float64": 1e-6}
_TOLERANCE = {"float16": 1e-1, "bfloat16": 1e-1, "float32": 2e-2, "float64": 1e-5}


def _is_float(x: Any) -> bool:
    return dtypes.is_float(aval_of(x).dtype)


def _direction(tree: Any, seed: int) -> Any:
    rng = np.random.default_rng(seed)

    def draw(x: Any) -> Any:
        aval = aval_of(x)
        if not _is_float(x):
            return np.zeros(aval.shape, dtypes.float0)
        return np.asarray(rng.uniform(-1, 1, aval.shape)).astype(aval.dtype)

    return tree_map(draw, tree)


def _moved(tree: Any, direction: Any, step: float) -> Any:
    return tree_map(lambda x, d: x + np.asarray(step * d).astype(d.dtype) if _is_float(x) else x, tree, direction)


def _tolerances(args: Any, given: float | None, table: dict[str, float]) -> float:
    if given is not None:
        return given
    return max((table[aval_of(x).dtype.name] for x in tree_leaves(args) if _is_float(x)), default=1e-5)


def _compare(got: Any, want: Any, atol: float, rtol: float, what: str) -> None:
    for g, w in zip(tree_leaves(got), tree_leaves(want), strict=True):
        g, w = np.asarray(g), np.asarray(w)
        if w.dtype.kind != "f":
            continue
        np.testing.assert_allclose(g.astype(np.float64), w.astype(np.float64), atol=atol, rtol=rtol, err_msg=what)


def check_jvp(
    f: Callable[..., Any],
    f_jvp: Callable[..., Any],
    args: Sequence[Any],
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
    err_msg: str = "",
) -> None:
    """Compares ``f_jvp(args, tangents)`` with a central difference of ``f``; ``AssertionError`` where they part."""
    args = tuple(args)
    step = eps if eps is not None else _tolerances(args, None, _STEP)
    direction = _direction(args, 0)
    value, tangent = f_jvp(args, direction)
    above, below = f(*_moved(args, direction, step)), f(*_moved(args, direction, -step))
    quotient = tree_map(lambda a, b: (np.asarray(a, np.float64) - np.asarray(b, np.float64)) / (2 * step), above, below)
    atol, rtol = _tolerances(args, atol, _TOLERANCE), _tolerances(args, rtol, _TOLERANCE)
    _compare(value, f(*args), atol, rtol, err_msg or "JVP value")
    _compare(tangent, quotient, atol, rtol, err_msg or "JVP tangent")


def check_vjp(
    f: Callable[..., Any],
    f_vjp: Callable[..., Any],
    args: Sequence[Any],
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
    err_msg: str = "",
) -> None:
    """Compares ``f_vjp`` with differences of ``f``: inner products with a direction must agree."""
    args = tuple(args)
    step = eps if eps is not None else _tolerances(args, None, _STEP)
    direction = _direction(args, 0)
    value, pull = f_vjp(*args)
    above, below = f(*_moved(args, direction, step)), f(*_moved(args, direction, -step))
    cotangent = _direction(value, 1)
    pulled = pull(cotangent)
    along = sum(_inner(d, p) for d, p in zip(tree_leaves(direction), tree_leaves(pulled), strict=True))
    across = sum(
        _inner(c, (np.asarray(a, np.float64) - np.asarray(b, np.float64)) / (2 * step))
        for c, a, b in zip(tree_leaves(cotangent), tree_leaves(above), tree_leaves(below), strict=True)
    )
    atol, rtol = _tolerances(args, atol, _TOLERANCE), _tolerances(args, rtol, _TOLERANCE)
    np.testing.assert_allclose(along, across, atol=atol, rtol=rtol, err_msg=err_msg or "VJP cotangent projection")


def _inner(a: Any, b: Any) -> float:
    a = np.asarray(a)
    return float(np.vdot(a.astype(np.float64), np.asarray(b).astype(np.float64))) if a.dtype != dtypes.float0 else 0.0


def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    order: int,
    modes: Sequence[str] = ("fwd", "rev"),
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
) -> None:
    """Compares derivatives of ``f`` up to ``order``, forward and reverse, with differences.

    >>> import jaxlite.numpy as jnp
    >>> check_grads(jnp.sin, (1.0,), order=2)
    """
    args = tuple(args)
    if order < 1:
        raise ValueError(f"check_grads: order must be at least 1, got {order}.")
    unknown = sorted(set(modes) - {"fwd", "rev"})
    if unknown:
        raise ValueError(f"check_grads: modes are 'fwd' and 'rev', got {unknown}.")
    if "fwd" in modes:
        check_jvp(f, lambda p, t: jvp(f, p, t), args, atol, rtol, eps, f"forward, order {order}")
        if order > 1:
            direction = _direction(args, 2)
            check_grads(lambda *a: jvp(f, a, direction)[1], args, order - 1, modes, atol, rtol, eps)
    if "rev" in modes:
        check_vjp(f, lambda *a: vjp(f, *a), args, atol, rtol, eps, f"reverse, order {order}")
        if order > 1:
            cotangent = _direction(f(*args), 3)
            check_grads(lambda *a: vjp(f, *a)[1](cotangent), args, order - 1, modes, atol, rtol, eps)
