"""Branches: ``cond`` and ``switch`` run one of several functions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np

from jaxlite.core import config, dtypes
from jaxlite.core.avals import ShapedArray, aval_of
from jaxlite.core.jaxpr import ClosedJaxpr, Jaxpr, Var, evaluate
from jaxlite.core.key_reuse import used_by_steps
from jaxlite.core.primitive import AxisData
from jaxlite.core.ref import Ref, carrying, read_all, with_refs, write_all
from jaxlite.core.trace import Tracer
from jaxlite.core.tracebacks import boundary
from jaxlite.core.varying import union
from jaxlite.interpreters.jet import jet_jaxpr, moves
from jaxlite.interpreters.stage import stage
from jaxlite.interpreters.zeros import Zero, is_linear, zeros
from jaxlite.lax.control.keeping_refs import KeepingRefs
from jaxlite.lax.control.trace_functions import closed_branches, describe_mismatch
from jaxlite.lax.convert import constant, operand_of
from jaxlite.lax.elementwise.casts import convert
from jaxlite.lax.elementwise.select import clamp, select_n
from jaxlite.lax.families.higher_order import (
    HigherOrder,
    batch_first,
    batched,
    flat_series,
    jvp_of,
    kept,
    linearized,
    nonzero,
    pulled_with,
    run,
    spread,
    spread_series,
    transposed,
    written_backward,
    zeros_for,
)
from jaxlite.lax.layout.shaping import broadcast_in_dim

_INT32 = np.dtype(np.int32)


@final
class Cond(HigherOrder):
    """Runs ``branches[index]`` on the operands that follow ``index``, an int32 in bounds."""

    name, family = "cond", "branch"

    def abstract_eval(self, *avals: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        index, *operands = avals
        if index.shape or index.dtype != _INT32:
            raise TypeError(f"cond: the index must be an int32 scalar, got {index}.")
        first = params["branches"][0]
        if len(operands) != len(first.in_avals):
            raise TypeError(f"cond: the branches take {len(first.in_avals)} operands, got {len(operands)}.")
        columns = zip(*[branch.out_avals for branch in params["branches"]], strict=True)
        varies = [union([index, *column]) for column in columns]
        return tuple([a.update(varying=v) if v else a for a, v in zip(first.out_avals, varies, strict=True)])

    def uses_up(self, **params: Any) -> tuple[int, ...]:
        return tuple(sorted({1 + i for branch in params["branches"] for i in used_by_steps(branch.jaxpr, ())}))

    def evaluate(self, *arrays: np.ndarray[Any, Any], **params: Any) -> tuple[np.ndarray[Any, Any], ...]:
        branches = params["branches"]
        return tuple(run(branches[int(np.clip(arrays[0], 0, len(branches) - 1))], arrays[1:]))

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        index, *operands = primals
        mask, branches = nonzero(tangents[1:]), params["branches"]
        out_mask = _union(jvp_of(b, mask, False)[1] for b in branches)
        derived = tuple(jvp_of(b, mask, out_mask)[0] for b in branches)
        results = self.bind(index, *operands, *kept(tangents[1:], mask), branches=derived)
        count = len(out_mask)
        return results[:count], spread(results[count:], out_mask, zeros_for(branches[0].out_avals))

    def linearize(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        index, *operands = primals
        mask, branches = nonzero(tangents[1:]), params["branches"]
        out_mask = _union(tuple(linearized(b, mask, False).out_nonzero) for b in branches)
        splits = [linearized(b, mask, out_mask) for b in branches]
        residual_avals = [s.residual_avals for s in splits]
        forward = tuple(_with_all_residuals(s.primal, n, residual_avals) for n, s in enumerate(splits))
        backward = tuple(_from_all_residuals(s.tangent, n, residual_avals) for n, s in enumerate(splits))
        results = self.bind(index, *operands, branches=forward)
        count = len(out_mask)
        moved = self.bind(index, *results[count:], *kept(tangents[1:], mask), branches=backward)
        return results[:count], spread(moved, out_mask, zeros_for(branches[0].out_avals))

    def jet(
        self, primals: Sequence[Any], series: Sequence[Sequence[Any]], **params: Any
    ) -> tuple[list[Any], list[list[Any]]] | None:
        index, *operands = primals
        mask, order, branches = tuple(map(moves, series[1:])), len(series[0]), params["branches"]
        out_mask = _union(jet_jaxpr(b, order, mask, False)[1] for b in branches)
        derived = tuple(jet_jaxpr(b, order, mask, out_mask)[0] for b in branches)
        results = self.bind(index, *operands, *flat_series(series[1:], mask), branches=derived)
        count = len(out_mask)
        return results[:count], spread_series(results[count:], out_mask, order, branches[0].out_avals)

    def transpose(self, cotangents: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
        index, *rest = operands
        linear = tuple(is_linear(o) for o in rest)
        given = tuple(type(c) is not Zero for c in cotangents)
        known = [index, *kept(rest, [not m for m in linear]), *kept(cotangents, given)]

        def pull(refs: list[Ref]) -> list[Any]:
            branches = tuple(transposed(b, linear, given, tuple(refs)) for b in params["branches"])
            return pulled_with(refs, self.bind(*known, *read_all(refs), branches=branches))

        pulled = with_refs(pull, written_backward(params["branches"][0]))
        return [None, *spread(pulled, linear, [None] * len(rest))]

    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[int | None], /, **params: Any
    ) -> tuple[list[Any], list[int | None]]:
        index, *rest = batch_first(operands, dims)
        mask, branches = tuple(d is not None for d in dims[1:]), params["branches"]
        if dims[0] is None:
            out_mask = _union(batched(b, axis, mask, False)[1] for b in branches)
            whole = tuple(batched(b, axis, mask, out_mask)[0] for b in branches)
            return self.bind(index, *rest, branches=whole), [0 if m else None for m in out_mask]
        # Examples take different branches: run them all and choose for each example.
        from jaxlite.lax.control.call import jit_p

        everything = [jit_p.bind(*rest, jaxpr=batched(b, axis, mask, True)[0], name="branch") for b in branches]
        which = clamp(constant(0, _INT32), index, constant(len(branches) - 1, _INT32))
        outs = []
        for results in zip(*everything, strict=True):
            shape = aval_of(results[0]).shape
            outs.append(select_n(broadcast_in_dim(which, shape, (0,)), *results))
        return outs, [0] * len(outs)


def _union(masks: Any) -> tuple[bool, ...]:
    return tuple(any(column) for column in zip(*masks, strict=True))


def _with_all_residuals(closed: ClosedJaxpr, number: int, avals: Sequence[Sequence[ShapedArray]]) -> ClosedJaxpr:
    """The branch, giving zeros for the residuals of the others."""
    own = len(avals[number])

    def body(*args: Any) -> list[Any]:
        results = evaluate(closed.jaxpr, closed.consts, args)
        outs, residuals = results[: len(results) - own], results[len(results) - own :]
        for n, group in enumerate(avals):
            outs += residuals if n == number else [zeros(a) for a in group]
        return outs

    return stage(body, closed.in_avals)


def _from_all_residuals(closed: ClosedJaxpr, number: int, avals: Sequence[Sequence[ShapedArray]]) -> ClosedJaxpr:
    """The branch's tangent side, given the residuals of all branches."""
    everything = [a for group in avals for a in group]
    before = sum(map(len, avals[:number]))
    own = len(avals[number])
    jaxpr = closed.jaxpr
    unused = [Var(a) for a in everything]
    invars = (*unused[:before], *jaxpr.invars[:own], *unused[before + own :], *jaxpr.invars[own:])
    return ClosedJaxpr(Jaxpr((), tuple(invars), jaxpr.outvars, jaxpr.eqns, jaxpr.effects, jaxpr.debug_info))


cond_p = Cond()


@boundary
def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any, operand: Any = None) -> Any:
    """``branches[index](*operands)``, the index clamped into bounds; all branches give one type."""
    if not all(callable(b) for b in branches):
        raise TypeError("switch: branches argument should be a sequence of callables.")
    if not branches:
        raise ValueError("Empty branch sequence")
    operands = _all_operands("switch", operands, operand)
    index = operand_of(index)
    aval = aval_of(index)
    if aval.shape or not dtypes.is_integer(aval.dtype):
        raise TypeError(f"switch: the index must be an integer scalar, got {aval}.")
    if len(branches) == 1:
        return branches[0](*operands)
    wide = convert(index, _INT32)
    which = clamp(constant(0, _INT32), wide, constant(len(branches) - 1, _INT32))
    return _branch("switch", which, branches, operands)


@boundary
def cond(
    pred: Any,
    true_fun: Callable[..., Any],
    false_fun: Callable[..., Any],
    *operands: Any,
    operand: Any = None,
    **kwargs: Any,
) -> Any:
    """``true_fun(*operands)`` where the scalar ``pred`` holds, else ``false_fun(*operands)``; both give one type.

    >>> cond(True, lambda x: x + 1.0, lambda x: x, 2.0)
    Array(3., dtype=float32, weak_type=True)
    """
    if kwargs:
        raise TypeError(f"cond got unexpected keyword arguments {sorted(kwargs)}.")
    if not (callable(true_fun) and callable(false_fun)):
        raise TypeError("lax.cond: true_fun and false_fun arguments should be callable.")
    operands = _all_operands("cond", operands, operand)
    pred = operand_of(pred)
    aval = aval_of(pred)
    if aval.shape:
        raise TypeError(f"Pred must be a scalar, got {aval}: use jax.numpy.where to choose element by element.")
    if dtypes.is_key(aval.dtype):
        raise TypeError(f"Pred type must be either boolean or number, got {aval}.")
    which = convert(pred, np.dtype(bool))
    return _branch("cond", convert(which, _INT32), (false_fun, true_fun), operands)


def _all_operands(name: str, operands: tuple[Any, ...], operand: Any) -> tuple[Any, ...]:
    """The operands, of which one may be given by keyword."""
    if operand is None:
        return operands
    if operands:
        raise TypeError(f"{name}: give operands by position or one as operand=, not both; got operand={operand!r}.")
    return (operand,)


def _branch(name: str, which: Any, functions: Sequence[Callable[..., Any]], operands: Sequence[Any]) -> Any:
    if config.disable_jit.value and not isinstance(which, Tracer):
        return functions[int(operand_of(which).elements if hasattr(which, "aval") else which)](*operands)

    given = KeepingRefs(tuple(operands))
    if given.has_refs:
        functions = [functools.wraps(f, updated=())(_of_leaves(f, given)) for f in functions]
        operands = given.leaves

    def run(refs: list[Ref]) -> Any:
        if not refs:
            return _traced_branch(name, which, functions, operands)
        carry = [functools.wraps(f, updated=())(carrying(f, refs)) for f in functions]
        out, values = _traced_branch(name, which, carry, (read_all(refs), *operands))
        write_all(refs, values)
        return out

    return with_refs(run)


def _of_leaves(function: Callable[..., Any], given: KeepingRefs) -> Callable[..., Any]:
    """``function`` of the leaves of its operands that are no refs."""
    return lambda *leaves: function(*given.unflatten(leaves))


def _traced_branch(name: str, which: Any, functions: Sequence[Callable[..., Any]], operands: Sequence[Any]) -> Any:
    leaves, branches, consts, trees = closed_branches(functions, operands)
    first = branches[0]
    for number, (branch, tree) in enumerate(zip(branches[1:], trees[1:], strict=True), 1):
        describe_mismatch(name, functions, number, (first, trees[0]), (branch, tree))
    outs = cond_p.bind(which, *consts, *leaves, branches=tuple(branches))
    return trees[0].unflatten(outs)
