"""``custom_linear_solve`` and ``custom_root``: solutions whose derivatives follow from the equation, not the solver.

For ``a(x) = b``:  ``a(dx) = db - da(x)``.  For ``f(p, x) = 0``:  ``f_x dx = -f_p dp``  (implicit function theorem).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np

from jaxlite.core.avals import ShapedArray, aval_of
from jaxlite.core.context import context
from jaxlite.core.jaxpr import ClosedJaxpr, evaluate
from jaxlite.core.primitive import AxisData, get
from jaxlite.core.pytree import PyTreeDef, tree_flatten
from jaxlite.interpreters.batch import batch, place_axis
from jaxlite.interpreters.jet import jet
from jaxlite.interpreters.jvp import jvp as push_forward
from jaxlite.interpreters.stage import closed_over_nothing, stage
from jaxlite.interpreters.zeros import Zero, instantiate, zero_of
from jaxlite.lax.control.trace_functions import debug_info, traced
from jaxlite.lax.convert import operand_of
from jaxlite.lax.elementwise.casts import convert
from jaxlite.lax.elementwise.select import stop_gradient
from jaxlite.lax.families.higher_order import (
    HigherOrder,
    batch_where,
    batched,
    jvp_of,
    kept,
    nonzero,
    run,
    transposed,
    zeros_for,
)

MATVEC, VECMAT, SOLVE, TRANSPOSE_SOLVE = range(4)
Function = Callable[..., Any]


@final
class CustomLinearSolve(HigherOrder):
    """Operands: constants of ``matvec``, ``vecmat``, ``solve`` and ``transpose_solve``, then ``b``; the latter two
    jaxprs are None where the solution is not to be transposed."""

    name = "custom_linear_solve"

    @staticmethod
    def _parts(values: Sequence[Any], params: dict[str, Any]) -> tuple[list[list[Any]], list[Any]]:
        parts, start = [], 0
        for length in params["const_lengths"]:
            parts.append(list(values[start : start + length]))
            start += length
        return parts, list(values[start:])

    def bind(self, *operands: Any, **params: Any) -> Any:
        if context.trace is None:
            parts, b = self._parts(operands, params)
            solve: ClosedJaxpr = params["jaxprs"][SOLVE]
            return evaluate(solve.jaxpr, solve.consts, [*parts[SOLVE], *b])
        return super().bind(*operands, **params)

    def abstract_eval(self, *avals: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        return tuple(params["jaxprs"][SOLVE].out_avals)

    def inlined(self, **params: Any) -> Any:
        solve, lengths = params["jaxprs"][SOLVE], params["const_lengths"]
        avals = [[*_const_avals(j, n)] for j, n in zip(params["jaxprs"], lengths, strict=True)]
        b_avals = solve.in_avals[lengths[SOLVE] :]

        def whole(*values: Any) -> list[Any]:
            parts, b = self._parts(values, params)
            return evaluate(solve.jaxpr, solve.consts, [*parts[SOLVE], *b])

        return stage(whole, [*(a for part in avals for a in part), *b_avals], solve.jaxpr.debug_info)

    def evaluate(self, *arrays: np.ndarray[Any, Any], **params: Any) -> tuple[np.ndarray[Any, Any], ...]:
        parts, b = self._parts(arrays, params)
        return tuple(run(params["jaxprs"][SOLVE], [*parts[SOLVE], *b]))

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        (consts, b), (t_consts, t_b) = self._parts(primals, params), self._parts(tangents, params)
        outs = self.bind(*primals, **params)
        x = outs[: len(b)]
        mask = nonzero(t_consts[MATVEC])
        rhs = list(t_b)
        if any(mask):
            derived, _ = jvp_of(params["jaxprs"][MATVEC], mask + (False,) * len(x), True)
            given = [*consts[MATVEC], *x, *kept(t_consts[MATVEC], mask)]
            moved = evaluate(derived.jaxpr, derived.consts, given)[len(x) :]
            rhs = [_minus(t, m) for t, m in zip(t_b, moved, strict=True)]
        if all(type(r) is Zero for r in rhs):
            return outs, [zero_of(o) for o in outs]
        solved = self.bind(*(c for part in consts for c in part), *map(instantiate, rhs), **params)
        return outs, [*solved[: len(b)], *(zero_of(o) for o in outs[len(b) :])]

    def jet(
        self, primals: Sequence[Any], series: Sequence[Sequence[Any]], **params: Any
    ) -> tuple[list[Any], list[list[Any]]] | None:
        """``a0(x_k) = b_k - r_k``, where ``r`` is ``a`` of the ``x`` known so far, whose coefficient ``k`` is 0."""
        (consts, b), (c_series, b_series) = self._parts(primals, params), self._parts(series, params)
        outs = self.bind(*primals, **params)
        n, matvec = len(b), params["jaxprs"][MATVEC]
        x: list[list[Any]] = [[] for _ in b]
        every = [c for part in consts for c in part]
        for k in range(1, len(series[0]) + 1):
            so_far = [[*column, zero_of(o)] for column, o in zip(x, outs[:n], strict=True)]
            given = [[*s[:k]] for s in c_series[MATVEC]] + so_far
            _, moved = jet(
                lambda *v: evaluate(matvec.jaxpr, matvec.consts, v), [*consts[MATVEC], *outs[:n]], given, k,
                context.trace,
            )  # fmt: skip
            rhs = [_minus(s[k - 1], m[-1]) for s, m in zip(b_series, moved, strict=True)]
            if all(type(r) is Zero for r in rhs):
                solved: list[Any] = [zero_of(o) for o in outs[:n]]
            else:
                solved = self.bind(*every, *map(instantiate, rhs), **params)[:n]
            for column, term in zip(x, solved, strict=True):
                column.append(term)
        return outs, [*x, *([zero_of(o)] * len(series[0]) for o in outs[n:])]

    def transpose(self, cotangents: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
        matvec, vecmat, solve, back = params["jaxprs"]
        if back is None:
            raise TypeError(
                "transpose_solve required for backwards mode automatic differentiation of custom_linear_solve: pass "
                "transpose_solve=, or symmetric=True where the matrix is its own transpose."
            )
        parts, b = self._parts(operands, params)
        order = (VECMAT, MATVEC, TRANSPOSE_SOLVE, SOLVE)
        lengths = tuple(params["const_lengths"][i] for i in order)
        consts = [c for i in order for c in parts[i]]
        given = [instantiate(c) for c in cotangents[: len(b)]]
        pulled = self.bind(*consts, *given, const_lengths=lengths, jaxprs=(vecmat, matvec, back, solve))
        return [*([None] * len(consts)), *pulled[: len(b)]]

    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[int | None], /, **params: Any
    ) -> tuple[list[Any], list[int | None]]:
        masks, b = self._parts([d is not None for d in dims], params)
        every = (True,) * len(b)
        jaxprs = [
            None if j is None else batched(j, axis, tuple(mask) + every, True)[0]
            for j, mask in zip(params["jaxprs"], masks, strict=True)
        ]
        whole = batch_where(operands, dims, [m for part in masks for m in part] + list(every), axis.size)
        outs = self.bind(*whole, const_lengths=params["const_lengths"], jaxprs=tuple(jaxprs))
        return outs, [0] * len(outs)


def _const_avals(closed: ClosedJaxpr | None, count: int) -> list[ShapedArray]:
    return [] if closed is None else closed.in_avals[:count]


def _minus(tangent: Any, moved: Any) -> Any:
    if type(moved) is Zero:
        return tangent
    less = get("neg").bind(moved)
    return less if type(tangent) is Zero else get("add_any").bind(tangent, less)


custom_linear_solve_p = CustomLinearSolve()


def _check_like(what: str, tree: PyTreeDef, closed: ClosedJaxpr, wanted: PyTreeDef, avals: Sequence[Any]) -> None:
    """``TypeError`` where a function's results have not the structure and types of ``b`` or the guess."""
    if tree != wanted:
        raise TypeError(f"{what} must give a result of the structure {wanted}, but it gives {tree}.")
    for out, aval in zip(closed.out_avals, avals, strict=False):
        if out.shape != aval.shape or out.dtype != aval.dtype:
            raise TypeError(f"{what} must give a result of type {aval}, but it gives {out}.")


def _first_of_two(what: str, tree: PyTreeDef) -> PyTreeDef:
    """The structure of the solution where the solver also gives something else."""
    children = tree.children()
    if len(children) != 2:
        raise TypeError(f"{what} must give a pair (solution, aux) because has_aux=True, but it gives {tree}.")
    first: PyTreeDef = children[0]
    return first


def custom_linear_solve(
    matvec: Function,
    b: Any,
    solve: Function,
    transpose_solve: Function | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any:
    """``x`` with ``matvec(x) == b`` as ``solve(matvec, b)`` finds it; derivatives solve again.

    ``transpose_solve(vecmat, b)`` serves reverse mode; ``symmetric`` says that ``solve`` does.

    >>> import jaxlite.numpy as jnp
    >>> custom_linear_solve(lambda x: 2.0 * x, jnp.ones(2), lambda f, b: b / 2.0, symmetric=True)
    Array([0.5, 0.5], dtype=float32)
    """
    transpose_solve = solve if transpose_solve is None and symmetric else transpose_solve
    leaves, tree = tree_flatten(b)
    leaves = [operand_of(v) for v in leaves]
    avals, single = [aval_of(v) for v in leaves], tree_flatten((b,))[1]
    count = len(leaves)
    pairs = [traced(matvec, single, avals, debug_info(matvec, (b,)))]
    _check_like("matvec() of custom_linear_solve", pairs[0][1], pairs[0][0], tree, avals)
    forward, f_consts = closed_over_nothing(pairs[0][0])

    def solver(name: str, by: Function, linear: Function) -> tuple[ClosedJaxpr, tuple[Any, ...], PyTreeDef]:
        closed, out = traced(lambda v: by(linear, v), single, avals, debug_info(by, (linear, b)))
        own = _first_of_two(f"{name}() of custom_linear_solve", out) if has_aux else out
        _check_like(f"{name}() of custom_linear_solve", own, closed, tree, avals)
        return *closed_over_nothing(closed), out

    solving, s_consts, out_tree = solver("solve", solve, matvec)
    backward: ClosedJaxpr | None = None
    solving_back: ClosedJaxpr | None = None
    v_consts: tuple[Any, ...] = ()
    t_consts: tuple[Any, ...] = ()
    if transpose_solve is not None:
        linear = (False,) * len(f_consts) + (True,) * count
        backward = forward if symmetric else transposed(forward, linear, (True,) * count)
        v_consts, pull = f_consts, backward

        def vecmat(v: Any) -> Any:
            return tree.unflatten(evaluate(pull.jaxpr, pull.consts, [*f_consts, *tree_flatten(v)[0]]))

        solving_back, t_consts, _ = solver("transpose_solve", transpose_solve, vecmat)
    outs = custom_linear_solve_p.bind(
        *f_consts, *v_consts, *s_consts, *t_consts, *leaves,
        const_lengths=(len(f_consts), len(v_consts), len(s_consts), len(t_consts)),
        jaxprs=(forward, backward, solving, solving_back),
    )  # fmt: skip
    return out_tree.unflatten(outs)


@final
class CustomRoot(HigherOrder):
    """Operands: constants of ``f``, ``solve`` and ``tangent_solve``, then the guess.  ``tangent_solve`` is a flat
    function (x, right-hand side) -> solution of the linearised system."""

    name = "custom_root"

    def _parts(self, values: Sequence[Any], params: dict[str, Any]) -> tuple[list[Any], list[Any], list[Any]]:
        n, m = params["const_lengths"]
        return list(values[:n]), list(values[n : n + m]), list(values[n + m :])

    def bind(self, *operands: Any, **params: Any) -> Any:
        if context.trace is None:
            _, consts, guess = self._parts(operands, params)
            return evaluate(params["solve"].jaxpr, params["solve"].consts, [*consts, *guess])
        return super().bind(*operands, **params)

    def abstract_eval(self, *avals: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        return tuple(params["solve"].out_avals)

    def inlined(self, **params: Any) -> Any:
        n, _ = params["const_lengths"]
        solve: ClosedJaxpr = params["solve"]
        avals = [*params["f"].in_avals[:n], *solve.in_avals]
        return stage(lambda *v: evaluate(solve.jaxpr, solve.consts, v[n:]), avals, solve.jaxpr.debug_info)

    def evaluate(self, *arrays: np.ndarray[Any, Any], **params: Any) -> tuple[np.ndarray[Any, Any], ...]:
        _, consts, guess = self._parts(arrays, params)
        return tuple(run(params["solve"], [*consts, *guess]))

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        f, count = params["f"], params["count"]
        f_consts = primals[: params["const_lengths"][0]]
        t_consts = tangents[: len(f_consts)]
        outs = self.bind(*primals, **params)
        mask = nonzero(t_consts)
        if not any(mask):
            return outs, zeros_for([aval_of(o) for o in outs])
        root = outs[:count]
        derived, _ = jvp_of(f, mask + (False,) * count, True)
        given = [*f_consts, *root, *kept(t_consts, mask)]
        moved = evaluate(derived.jaxpr, derived.consts, given)[count:]
        solved = params["tangent_solve"](f, f_consts, root, moved)
        return outs, [*(get("neg").bind(s) for s in solved), *(zero_of(o) for o in outs[count:])]

    def transpose(self, cotangents: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
        raise NotImplementedError("custom_root in a linear program has no transpose.")

    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[int | None], /, **params: Any
    ) -> tuple[list[Any], list[int | None]]:
        masks = [d is not None for d in dims]
        f_mask, s_mask, guess = self._parts(masks, params)
        every = (True,) * len(guess)
        f, _ = batched(params["f"], axis, tuple(f_mask) + every, True)
        solve, _ = batched(params["solve"], axis, tuple(s_mask) + every, True)
        whole = batch_where(operands, dims, [*f_mask, *s_mask, *every], axis.size)
        mapped = _mapped_tangent_solve(params["tangent_solve"], params["f"], axis, f_mask)
        outs = self.bind(*whole, **{**params, "f": f, "solve": solve, "tangent_solve": mapped})
        return outs, [0] * len(outs)


def _mapped_tangent_solve(solve: Function, f: ClosedJaxpr, axis: AxisData, mask: Sequence[bool]) -> Function:
    """``solve`` example by example: the batched ``f`` gives way to the one that it was made of."""

    def whole(_: ClosedJaxpr, consts: Sequence[Any], root: Sequence[Any], rhs: Sequence[Any]) -> list[Any]:
        n, k = len(consts), len(root)
        dims = [*(0 if m else None for m in mask), *([0] * (k + len(rhs)))]
        results, where = batch(
            lambda *v: solve(f, v[:n], v[n : n + k], v[n + k :]), [*consts, *root, *rhs], dims, axis, context.trace
        )
        return [place_axis(r, d, axis.size, 0) for r, d in zip(results, where, strict=True)]

    return whole


custom_root_p = CustomRoot()


def custom_root(
    f: Function, initial_guess: Any, solve: Function, tangent_solve: Function, has_aux: bool = False
) -> Any:
    """``x`` with ``f(x) == 0`` as ``solve(f, initial_guess)`` finds it; derivatives are those of the root.

    ``tangent_solve(g, y)`` gives ``x`` with ``g(x) == y`` for the linear ``g`` that is ``f`` linearised at the root.
    The derivative with respect to the guess is zero.

    >>> newton = lambda f, x: x - f(x) / 2.0
    >>> custom_root(lambda x: 2.0 * x - 3.0, 0.0, newton, lambda g, y: y / g(1.0))
    Array(1.5, dtype=float32, weak_type=True)
    """
    leaves, tree = tree_flatten(initial_guess)
    leaves = [stop_gradient(operand_of(v)) for v in leaves]
    avals, single = [aval_of(v) for v in leaves], tree_flatten((initial_guess,))[1]
    count = len(leaves)
    closed, out = traced(f, single, avals, debug_info(f, (initial_guess,)))
    _check_like("f() of custom_root", out, closed, tree, avals)
    opened, f_consts = closed_over_nothing(closed)
    solving, out_tree = traced(lambda x: solve(f, x), single, avals, debug_info(solve, (f, initial_guess)))
    own = _first_of_two("solve() of custom_root", out_tree) if has_aux else out_tree
    _check_like("solve() of custom_root", own, solving, tree, avals)
    opened_solve, s_consts = closed_over_nothing(solving)

    def flat_tangent_solve(g: ClosedJaxpr, consts: Sequence[Any], root: Sequence[Any], rhs: Sequence[Any]) -> list[Any]:
        def linear(v: Any) -> Any:
            moves = [operand_of(x) for x in tree_flatten(v)[0]]
            given = [*(zero_of(c) for c in consts), *(_as_tangent(m, r) for m, r in zip(moves, root, strict=True))]
            _, moved = push_forward(lambda *w: evaluate(g.jaxpr, g.consts, w), [*consts, *root], given, context.trace)
            return tree.unflatten([instantiate(m) for m in moved])

        solution, structure = tree_flatten(tangent_solve(linear, tree.unflatten(list(rhs))))
        if structure != tree:
            raise TypeError(f"tangent_solve() of custom_root must give the structure {tree}, but it gives {structure}.")
        return [operand_of(s) for s in solution]

    outs = custom_root_p.bind(
        *f_consts, *s_consts, *leaves, f=opened, solve=opened_solve, tangent_solve=flat_tangent_solve,
        const_lengths=(len(f_consts), len(s_consts)), count=count,
    )  # fmt: skip
    return out_tree.unflatten(outs)


def _as_tangent(move: Any, root: Any) -> Any:
    """``move`` in the dtype of ``root``."""
    return convert(move, aval_of(root).dtype)
