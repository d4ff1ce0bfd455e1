"""``triangular_solve``: ``op(a) x = b`` or ``x op(a) = b`` by substitution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, final

import numpy as np

from jaxlite.core.avals import ShapedArray, aval_of
from jaxlite.core.primitive import AxisData, Sample
from jaxlite.interpreters.batch import move_axis, place_axis
from jaxlite.interpreters.jet import known
from jaxlite.interpreters.series import combined, minus
from jaxlite.interpreters.zeros import Zero, add, instantiate, is_linear, zero_of
from jaxlite.lax.convert import operands_of
from jaxlite.lax.elementwise.arithmetic import neg
from jaxlite.lax.families.linalg import Access, LinearAlgebra, Place, Routine, Stage, check_matrices, memory_of
from jaxlite.lax.layout.shaping import expand_dims, reshape, squeeze
from jaxlite.lax.linalg.matrices import lower_part, product, transposed, upper_part

SMALL = 6  # matrices up to this size are solved in registers; machine code grows with the square of the size


def _sample(a: tuple[int, ...], b: tuple[int, ...], **changed: bool) -> Sample:
    params = {"left_side": True, "lower": True, "transpose_a": False, "conjugate_a": False, "unit_diagonal": False}
    return Sample((a, b), {**params, **changed}, low=1.0, high=2.0)


@final
class TriangularSolve(LinearAlgebra):
    """Reads one triangle of ``a``, and of it no diagonal where ``unit_diagonal``."""

    name = "triangular_solve"
    samples = (
        _sample((3, 3), (3, 2)),
        _sample((2, 3, 3), (2, 3, 2), lower=False),
        _sample((3, 3), (2, 3), left_side=False, transpose_a=True),
        _sample((2, 2), (3, 2), left_side=False, lower=False, unit_diagonal=True),
        _sample((10, 10), (10, 3), unit_diagonal=False, transpose_a=True),
        _sample((0, 0), (0, 3)),
    )

    def abstract_eval(self, *avals: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        a, b = avals
        check_matrices(self, avals, square=True)
        if a.dtype != b.dtype:
            raise TypeError(f"triangular_solve takes matrices of one dtype, got {a.dtype.name} and {b.dtype.name}.")
        side = b.ndim - 2 if params["left_side"] else b.ndim - 1
        if a.shape[:-2] != b.shape[:-2] or a.shape[-1] != b.shape[side]:
            raise ValueError(
                f"triangular_solve with left_side={params['left_side']} got a of shape {a.shape} and b of shape "
                f"{b.shape}: batch axes must be equal, and axis {side} of b as long as the matrix, {a.shape[-1]}."
            )
        return (b.update(weak_type=a.weak_type and b.weak_type),)

    def evaluate(self, *arrays: np.ndarray[Any, Any], **params: Any) -> tuple[np.ndarray[Any, Any], ...]:
        a, b = arrays
        flip = params["transpose_a"] == params["left_side"]
        a = np.swapaxes(a, -1, -2) if flip else a
        x = np.array(b if params["left_side"] else np.swapaxes(b, -1, -2))
        n, lower = a.shape[-1], params["lower"] != flip
        for i in range(n) if lower else reversed(range(n)):
            known = slice(0, i) if lower else slice(i + 1, n)
            x[..., i, :] -= (a[..., i, known, None] * x[..., known, :]).sum(-2, dtype=a.dtype)
            if not params["unit_diagonal"]:
                x[..., i, :] /= a[..., i, i, None]
        return (x if params["left_side"] else np.swapaxes(x, -1, -2),)

    def steps(self, *avals: ShapedArray, **params: Any) -> Sequence[Stage | Routine]:
        a, b = (memory_of("operand", i, v) for i, v in enumerate(avals))
        out = memory_of("result", 0, avals[1])
        n, left = a.shape[-1], params["left_side"]
        count = b.shape[1] if left else b.shape[0]
        if n <= SMALL:
            return [Stage((count,), lambda e, index, at: _substitute(e, index[0], at, a, b, out, params), n * n)]
        copy = Stage(out.shape, lambda e, index, at: at.write(out, index, at.read(b, index)), 1)
        # BLAS reads rows as columns: it is asked for the transposed equation on the same memory.
        marks = "RL"[not left], "UL"[not params["lower"]], "NT"[params["transpose_a"]], "NU"[params["unit_diagonal"]]
        sizes = (b.shape[1], b.shape[0])
        arguments = (*marks, *sizes, 1.0, a, n, out, b.shape[1])
        return [copy, Routine("trsm", arguments, (out,), n * n * count)]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        a, b = primals
        t_a, t_b = tangents
        x = self.bind(a, b, **params)
        from_b = None if type(t_b) is Zero else self.bind(a, t_b, **params)
        from_a = None if type(t_a) is Zero else self._moved_by_a(a, t_a, x, params)
        total = add(from_a, from_b)
        return [x], [zero_of(x) if total is None else total]

    def jet(
        self, primals: Sequence[Any], series: Sequence[Sequence[Any]], **params: Any
    ) -> tuple[list[Any], list[list[Any]]] | None:
        """``op(a0) x_k = b_k - (op(a1) x_(k-1) + ... + op(a_k) x0)``."""
        a, b = ([p, *map(known, s)] for p, s in zip(primals, series, strict=True))
        x = [self.bind(a[0], b[0], **params)]
        for k in range(1, len(b)):
            rest = minus(b[k], combined(lambda move, y: self._times(move, y, params), a, x, k, 1))
            x.append(None if rest is None else self.bind(a[0], rest, **params))
        return [x[0]], [[zero_of(x[0]) if t is None else t for t in x[1:]]]

    def _times(self, move: Any, x: Any, params: dict[str, Any]) -> Any:
        """``op(move) x``, or ``x op(move)``, for the triangle that is read."""
        k = 1 if params["unit_diagonal"] else 0
        move = lower_part(move, -k) if params["lower"] else upper_part(move, k)
        move = transposed(move) if params["transpose_a"] else move
        return product(move, x) if params["left_side"] else product(x, move)

    def _moved_by_a(self, a: Any, t_a: Any, x: Any, params: dict[str, Any]) -> Any:
        """``-op(a)^-1 op(da) x``, multiplied in the order that costs less."""
        k = 1 if params["unit_diagonal"] else 0
        move = neg(lower_part(t_a, -k) if params["lower"] else upper_part(t_a, k))
        move = transposed(move) if params["transpose_a"] else move
        rows, columns = aval_of(x).shape[-2:]
        if params["left_side"]:
            if rows > columns:
                return self.bind(a, product(move, x), **params)
            return product(self.bind(a, move, **params), x)
        if rows < columns:
            return self.bind(a, product(x, move), **params)
        return product(x, self.bind(a, move, **params))

    def transpose(self, cotangents: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
        a, b = operands
        if is_linear(a) or not is_linear(b):
            raise NotImplementedError("triangular_solve is linear in its second operand only.")
        flipped = {**params, "transpose_a": not params["transpose_a"]}
        return [None, self.bind(a, instantiate(cotangents[0]), **flipped)]

    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[int | None], /, **params: Any
    ) -> tuple[list[Any], list[int | None]]:
        (a, b), (a_dim, b_dim) = operands, dims
        if a_dim is not None:
            whole = [place_axis(v, d, axis.size, 0) for v, d in ((a, a_dim), (b, b_dim))]
            return [self.bind(*whole, **params)], [0]
        assert b_dim is not None
        # One matrix for the whole batch: its examples are further right-hand sides.
        rank = len(aval_of(b).shape)
        at = rank - 1 if params["left_side"] else rank - 2
        moved = move_axis(b, b_dim, at)
        shape = aval_of(moved).shape
        first = shape[: rank - 2] if params["left_side"] else shape[: rank - 3]
        flat = (
            (*first, math.prod(shape[rank - 2 :]))
            if params["left_side"]
            else (*first, shape[-3] * shape[-2], shape[-1])
        )
        return [reshape(self.bind(a, reshape(moved, flat), **params), shape)], [at]


def _substitute(e: Any, piece: Any, at: Access, a: Any, b: Any, out: Any, params: dict[str, Any]) -> None:
    """One right-hand side, unrolled: each unknown from those before it."""
    n, left = a.shape[-1], params["left_side"]
    flip = params["transpose_a"] == left
    order = range(n) if params["lower"] != flip else range(n - 1, -1, -1)

    def entry(i: int, j: int) -> Any:
        return at.read(a, (j, i) if flip else (i, j))

    def place(i: int) -> Place:
        return (i, piece) if left else (piece, i)

    known: dict[int, Any] = {}
    for i in order:
        value = at.read(b, place(i))
        for j, x in known.items():
            value = e.sub(value, e.mul(entry(i, j), x))
        known[i] = value if params["unit_diagonal"] else e.div(value, entry(i, i))
    for i, x in known.items():
        at.write(out, place(i), x)


triangular_solve_p = TriangularSolve()


def triangular_solve(
    a: Any,
    b: Any,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Any:
    """``x`` with ``op(a) x = b`` (``left_side``) or ``x op(a) = b``, for triangular ``a``; ``b`` may be a vector.

    >>> import jaxlite.numpy as jnp
    >>> triangular_solve(jnp.array([[2.0, 0.0], [1.0, 1.0]]), jnp.array([2.0, 3.0]), left_side=True, lower=True)
    Array([1., 2.], dtype=float32)
    """
    a, b = operands_of(a, b)
    single = len(aval_of(b).shape) == len(aval_of(a).shape) - 1
    axis = len(aval_of(b).shape) - (0 if left_side else 1)
    b = expand_dims(b, (axis,)) if single else b
    x = triangular_solve_p.bind(
        a, b, left_side=bool(left_side), lower=bool(lower), transpose_a=bool(transpose_a), conjugate_a=False,
        unit_diagonal=bool(unit_diagonal),
    )  # fmt: skip
    return squeeze(x, (axis,)) if single else x
