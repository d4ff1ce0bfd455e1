"""``scan``: a body applied to each slice of its inputs in turn, with a carry."""

from __future__ import annotations

import dataclasses
import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np

from jaxlite.core import config
from jaxlite.core.avals import ShapedArray, aval_of
from jaxlite.core.dtypes import physical
from jaxlite.core.jaxpr import ClosedJaxpr, DebugInfo, Var, evaluate
from jaxlite.core.key_reuse import used_by_steps
from jaxlite.core.primitive import AxisData
from jaxlite.core.pytree import keystr, tree_flatten, tree_leaves_with_path, tree_map
from jaxlite.core.ref import Ref, bound, carrying, read_all, with_refs, write_all
from jaxlite.core.tracebacks import boundary
from jaxlite.interpreters.batch import move_axis
from jaxlite.interpreters.jet import jet_jaxpr, moves
from jaxlite.interpreters.stage import closed_over_nothing, stage
from jaxlite.interpreters.transpose import backward_pass
from jaxlite.interpreters.zeros import LinearOperand, Zero, add, instantiate, is_linear, zeros
from jaxlite.lax.control.trace_functions import debug_info, traced
from jaxlite.lax.control.while_loop import LoopWords, check_carry, settle_carry
from jaxlite.lax.convert import operand_of
from jaxlite.lax.families.higher_order import (
    HigherOrder,
    batch_first,
    batch_where,
    batched,
    flat_series,
    jvp_of,
    kept,
    linearized,
    nonzero,
    run,
    spread,
    spread_series,
    written_backward,
    zeros_for,
)


@final
class Scan(HigherOrder):
    """Operands: constants, carry, inputs with a leading axis of ``length``.  Results: carry, outputs with that axis."""

    name, family = "scan", "scan"

    @staticmethod
    def _parts(values: Sequence[Any], params: dict[str, Any]) -> tuple[list[Any], list[Any], list[Any]]:
        c = params["num_consts"]
        k = c + params["num_carry"]
        return list(values[:c]), list(values[c:k]), list(values[k:])

    def abstract_eval(self, *avals: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        outs, k = params["jaxpr"].out_avals, params["num_carry"]
        return (*outs[:k], *(a.with_axis(params["length"]) for a in outs[k:]))

    def uses_up(self, **params: Any) -> tuple[int, ...]:
        body = params["jaxpr"].jaxpr
        consts, carry, _ = self._parts(body.invars, params)
        same = [v for v, out in zip(carry, body.outvars[: len(carry)], strict=True) if v is out]
        return used_by_steps(body, [*consts, *same] if params["length"] > 1 else [])

    def evaluate(self, *arrays: np.ndarray[Any, Any], **params: Any) -> tuple[np.ndarray[Any, Any], ...]:
        consts, carry, xs = self._parts(arrays, params)
        length, k = params["length"], params["num_carry"]
        steps = range(length - 1, -1, -1) if params["reverse"] else range(length)
        stacked: list[Any] = [None] * length
        for i in steps:
            outs = run(params["jaxpr"], [*consts, *carry, *(x[i] for x in xs)])
            carry, stacked[i] = outs[:k], outs[k:]
        if length == 0:
            avals = self.abstract_eval(**params)[k:]
            return (*carry, *(np.zeros(a.shape, physical(a.dtype)) for a in avals))
        return (*carry, *(np.stack(column) for column in zip(*stacked, strict=True)))

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        body, (nc, nk) = params["jaxpr"], (params["num_consts"], params["num_carry"])
        c_mask, k_mask, x_mask, y_mask = self._masks(tangents, params)
        derived, _ = jvp_of(body, c_mask + k_mask + x_mask, k_mask + y_mask)
        avals, t_avals = body.in_avals, [a.to_tangent_aval() for a in body.in_avals]
        sizes = [nc, sum(c_mask), nk, sum(k_mask), len(avals) - nc - nk, sum(x_mask)]

        def reordered(*args: Any) -> list[Any]:
            c, tc, k, tk, x, tx = _divided(args, sizes)
            outs = evaluate(derived.jaxpr, derived.consts, [*c, *k, *x, *tc, *tk, *tx])
            ny = len(body.out_avals) - nk
            return _interleaved(outs, [nk, ny, sum(k_mask), sum(y_mask)], (0, 2, 1, 3))

        parts = (self._parts(avals, params), self._parts(t_avals, params))
        order = [
            *parts[0][0], *kept(parts[1][0], c_mask), *parts[0][1], *kept(parts[1][1], k_mask),
            *parts[0][2], *kept(parts[1][2], x_mask),
        ]  # fmt: skip
        new_body = stage(reordered, order, body.jaxpr.debug_info)
        (c, k, x), (tc, tk, tx) = self._parts(primals, params), self._parts(tangents, params)
        operands = [
            *c, *kept(tc, c_mask), *k, *[instantiate(t) for t in kept(tk, k_mask)], *x, *kept(tx, x_mask),
        ]  # fmt: skip
        changed = {"jaxpr": new_body, "num_consts": nc + sum(c_mask), "num_carry": nk + sum(k_mask)}
        results = self.bind(*operands, **{**params, **changed})
        ny = len(body.out_avals) - nk
        carry, t_carry, ys, t_ys = _divided(results, [nk, sum(k_mask), ny, sum(y_mask)])
        out_avals = self.abstract_eval(**params)
        return [*carry, *ys], spread([*t_carry, *t_ys], k_mask + y_mask, zeros_for(out_avals))

    def _masks(self, tangents: Sequence[Any], params: dict[str, Any]) -> tuple[tuple[bool, ...], ...]:
        """Which constants, parts of the carry, inputs and outputs have tangents."""
        c_mask, k_mask, x_mask = (nonzero(part) for part in self._parts(tangents, params))
        body = params["jaxpr"]
        while True:
            _, out = jvp_of(body, c_mask + k_mask + x_mask, k_mask + (False,) * (len(body.out_avals) - len(k_mask)))
            after, y_mask = out[: len(k_mask)], out[len(k_mask) :]
            if after == k_mask:
                return c_mask, k_mask, x_mask, y_mask
            k_mask = after

    def jet(
        self, primals: Sequence[Any], series: Sequence[Sequence[Any]], **params: Any
    ) -> tuple[list[Any], list[list[Any]]] | None:
        body, order = params["jaxpr"], len(series[0])
        nc, nk = params["num_consts"], params["num_carry"]
        ny = len(body.out_avals) - nk
        c_mask, k_mask, x_mask = (tuple(map(moves, part)) for part in self._parts(series, params))
        while True:  # until what comes out of a step has coefficients only where what goes in has
            derived, out_mask = jet_jaxpr(body, order, c_mask + k_mask + x_mask, k_mask + (False,) * ny)
            if out_mask[:nk] == k_mask:
                break
            k_mask = out_mask[:nk]
        masks = (c_mask, k_mask, x_mask)
        moving = [order * sum(mask) for mask in masks]
        sizes = [n for mask, m in zip(masks, moving, strict=True) for n in (len(mask), m)]

        def reordered(*args: Any) -> list[Any]:
            given = _interleaved(args, sizes, (0, 2, 4, 1, 3, 5))
            outs = evaluate(derived.jaxpr, derived.consts, given)
            return _interleaved(outs, [nk, ny, moving[1], order * sum(out_mask[nk:])], (0, 2, 1, 3))

        first = [*derived.in_avals[: len(body.in_avals)]]
        avals = _interleaved(derived.in_avals, [nc, nk, len(first) - nc - nk, *moving], (0, 3, 1, 4, 2, 5))
        parts = zip(self._parts(primals, params), self._parts(series, params), masks, strict=True)
        operands = [v for p, s, mask in parts for v in (*p, *flat_series(s, mask))]
        changed = {
            "jaxpr": stage(reordered, avals, body.jaxpr.debug_info),
            "num_consts": nc + moving[0],
            "num_carry": nk + moving[1],
        }
        results = self.bind(*operands, **{**params, **changed})
        carry, k_terms, ys, y_terms = _divided(results, [nk, moving[1], ny, order * sum(out_mask[nk:])])
        out_avals = self.abstract_eval(**params)
        return [*carry, *ys], spread_series([*k_terms, *y_terms], out_mask, order, out_avals)

    def linearize(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        body, nc = params["jaxpr"], params["num_consts"]
        c_mask, k_mask, x_mask, y_mask = self._masks(tangents, params)
        split = linearized(body, c_mask + k_mask + x_mask, k_mask + y_mask)
        # Residuals that are constants of the loop stay constants; the others are stacked as outputs of the forward
        # loop.
        primal = split.primal.jaxpr
        n_out = len(body.out_avals)
        constants = {v: i for i, v in enumerate(primal.invars[:nc])}
        residual_atoms = primal.outvars[n_out:]
        from_consts = [isinstance(a, Var) and a in constants for a in residual_atoms]
        stacked_atoms = tuple(a for a, f in zip(residual_atoms, from_consts, strict=True) if not f)
        forward = ClosedJaxpr(primal.replace(outvars=(*primal.outvars[:n_out], *stacked_atoms)), split.primal.consts)
        results = self.bind(*primals, **{**params, "jaxpr": forward})
        outs, stacked = results[:n_out], results[n_out:]
        fixed = [primals[constants[a]] for a, f in zip(residual_atoms, from_consts, strict=True) if f]  # type: ignore[index]

        avals = split.residual_avals
        t_avals = [a.to_tangent_aval() for a in body.in_avals]
        tc_avals, tk_avals, tx_avals = self._parts(t_avals, params)
        sizes = [len(fixed), sum(c_mask), sum(k_mask), len(stacked), sum(x_mask)]

        def tangent_body(*args: Any) -> list[Any]:
            f, tc, tk, s, tx = _divided(args, sizes)
            residuals = spread(f, from_consts, spread(s, [not x for x in from_consts], [None] * len(avals)))
            return evaluate(split.tangent.jaxpr, split.tangent.consts, [*residuals, *tc, *tk, *tx])

        order = [
            *kept(avals, from_consts), *kept(tc_avals, c_mask), *kept(tk_avals, k_mask),
            *kept(avals, [not f for f in from_consts]), *kept(tx_avals, x_mask),
        ]  # fmt: skip
        linear_body = stage(tangent_body, order, body.jaxpr.debug_info)
        tc, tk, tx = self._parts(tangents, params)
        moved = self.bind(
            *fixed, *kept(tc, c_mask), *[instantiate(t) for t in kept(tk, k_mask)], *stacked, *kept(tx, x_mask),
            **{**params, "jaxpr": linear_body, "num_consts": len(fixed) + sum(c_mask), "num_carry": sum(k_mask)},
        )  # fmt: skip
        out_avals = self.abstract_eval(**params)
        return outs, spread(moved, k_mask + y_mask, zeros_for(out_avals))

    def transpose(self, cotangents: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
        body, nk = params["jaxpr"], params["num_carry"]
        consts, carry, xs = self._parts(operands, params)
        # A known initial tangent is a zero that was written out: its cotangent is computed along and dropped.
        carry_linear = [is_linear(k) for k in carry]
        lc, lx = [is_linear(c) for c in consts], [is_linear(x) for x in xs]
        c_avals = body.in_avals[: len(consts)]
        given = [type(c) is not Zero for c in cotangents[nk:]]

        def run(refs: list[Ref]) -> list[Any]:
            closed, sizes = self._reversed(body, lc, lx, given, nk, refs)
            results = self.bind(
                *kept(consts, [not m for m in lc]), *[zeros(a) for a in kept(c_avals, lc)],
                *map(instantiate, cotangents[:nk]), *read_all(refs), *kept(cotangents[nk:], given),
                *kept(xs, [not m for m in lx]),
                jaxpr=closed, num_consts=sizes[0], num_carry=sum(sizes[1:4]), length=params["length"],
                reverse=not params["reverse"], unroll=params["unroll"],
            )  # fmt: skip
            to_c, to_k, values, to_x = _divided(results, [sum(lc), nk, len(refs), sum(lx)])
            write_all(refs, values)
            pulled_carry = [c if m else None for c, m in zip(to_k, carry_linear, strict=True)]
            return [*spread(to_c, lc, [None] * len(consts)), *pulled_carry, *spread(to_x, lx, [None] * len(xs))]

        out: list[Any] = with_refs(run, written_backward(body))
        return out

    def _reversed(
        self, body: ClosedJaxpr, lc: list[bool], lx: list[bool], given: list[bool], nk: int, refs: list[Ref]
    ) -> tuple[ClosedJaxpr, list[int]]:
        """The body of the reverse loop, and how many constants, parts of the carry (cotangents of the linear
        constants, of the carry, values of ``refs``), and inputs (cotangents, known ones) it takes."""
        params = {"num_consts": len(lc), "num_carry": nk}
        c_avals, k_avals, x_avals = self._parts(body.in_avals, params)
        y_avals = body.out_avals[nk:]
        sizes = [len(lc) - sum(lc), sum(lc), nk, len(refs), sum(given), len(lx) - sum(lx)]

        def reverse_body(*args: Any) -> list[Any]:
            known_c, ct_c, ct_k, values, ct_y, known_x = _divided(args, sizes)
            arguments = [
                *spread(known_c, [not m for m in lc], [LinearOperand(a) for a in c_avals]),
                *[LinearOperand(a) for a in k_avals],
                *spread(known_x, [not m for m in lx], [LinearOperand(a) for a in x_avals]),
            ]
            cts = [*ct_k, *spread(ct_y, given, [Zero(a) for a in y_avals])]
            with bound(refs, values) as last:
                pulled = backward_pass(body.jaxpr, body.consts, arguments, cts)
                to_c, to_k, to_x = self._parts(pulled, params)
                sums = [instantiate(add(a, b)) for a, b in zip(ct_c, kept(to_c, lc), strict=True)]
                return [*sums, *map(instantiate, to_k), *last(), *map(instantiate, kept(to_x, lx))]

        order = [
            *kept(c_avals, [not m for m in lc]), *kept(c_avals, lc), *k_avals, *(r.type for r in refs),
            *kept(y_avals, given), *kept(x_avals, [not m for m in lx]),
        ]  # fmt: skip
        return stage(reverse_body, order, body.jaxpr.debug_info), sizes

    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[int | None], /, **params: Any
    ) -> tuple[list[Any], list[int | None]]:
        c_mask, k_mask, x_mask = (tuple(part) for part in self._parts([d is not None for d in dims], params))
        body, nk = params["jaxpr"], params["num_carry"]
        while True:
            wanted = k_mask + (False,) * (len(body.out_avals) - nk)
            whole, out = batched(body, axis, c_mask + k_mask + x_mask, wanted)
            if out[:nk] == k_mask:
                break
            k_mask = out[:nk]
        consts, carry, xs = self._parts(operands, params)
        c_dims, k_dims, x_dims = self._parts(dims, params)
        # Inputs keep the loop's axis first, then the batch's.
        moved_xs = [x if d is None else _second(x, d) for x, d in zip(xs, x_dims, strict=True)]
        placed = [*batch_first(consts, c_dims), *batch_where(carry, k_dims, k_mask, axis.size), *moved_xs]
        outs = self.bind(*placed, **{**params, "jaxpr": whole})
        return outs, [(0 if m else None) if i < nk else (1 if m else None) for i, m in enumerate(out)]


def _second(value: Any, dim: int) -> Any:
    return move_axis(value, dim, 1)


def _divided(values: Sequence[Any], sizes: Sequence[int]) -> list[list[Any]]:
    """The values in consecutive lists of these lengths."""
    out, start = [], 0
    for n in sizes:
        out.append(list(values[start : start + n]))
        start += n
    return out


def _interleaved(values: Sequence[Any], sizes: Sequence[int], order: Sequence[int]) -> list[Any]:
    """The consecutive parts of these lengths, in another order."""
    parts = _divided(values, sizes)
    return [v for i in order for v in parts[i]]


scan_p = Scan()


@boundary
def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[Any, Any]:
    """``carry, y = f(carry, x)`` for each slice ``x`` of ``xs`` along its first axis; gives the last carry and the
    stacked ``y``.  ``unroll`` has no effect but on the jaxpr's text.

    >>> import jaxlite.numpy as jnp
    >>> scan(lambda total, x: (total + x, total), 0, jnp.arange(4))
    (Array(6, dtype=int32), Array([0, 0, 1, 3], dtype=int32))
    """
    if not callable(f):
        raise TypeError("lax.scan: f argument should be a callable.")
    xs_leaves, xs_tree = tree_flatten(xs)
    xs_leaves = [operand_of(x) for x in xs_leaves]
    steps = _length(xs, xs_leaves, length)
    if config.disable_jit.value:
        return _scan_in_python(f, init, xs_leaves, xs_tree, steps, reverse)
    words = LoopWords("scan", "the body")
    return run_scan(words, _pair(f), init, xs, steps, debug_info(f, (init, xs)), reverse=reverse, unroll=unroll)


def run_scan(
    words: LoopWords,
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any,
    steps: int,
    info: DebugInfo,
    *,
    reverse: bool = False,
    unroll: int | bool = 1,
) -> tuple[Any, Any]:
    """``scan``, for whatever function is a loop of that kind; ``info`` and ``words`` are what messages say."""
    times = max(int(steps if unroll is True else unroll), 1)

    def run(refs: list[Ref]) -> tuple[Any, Any]:
        if not refs:
            return _run_scan(words, f, init, xs, steps, info, bool(reverse), times)
        body = carrying(f, refs)

        def step(state: tuple[Any, Any], x: Any) -> tuple[Any, Any]:
            (carry, y), values = body(state[1], state[0], x)
            return (carry, values), y

        more = dataclasses.replace(words, refs=len(refs))
        (carry, values), ys = _run_scan(more, step, (init, read_all(refs)), xs, steps, info, bool(reverse), times)
        write_all(refs, values)
        return carry, ys

    out: tuple[Any, Any] = with_refs(run)
    return out


def _run_scan(
    words: LoopWords, f: Callable[[Any, Any], tuple[Any, Any]], init: Any, xs: Any, steps: int, info: DebugInfo,
    reverse: bool, unroll: int,
) -> tuple[Any, Any]:  # fmt: skip
    xs_leaves = [operand_of(x) for x in tree_flatten(xs)[0]]
    init_leaves, init_tree = tree_flatten(init)
    init_leaves = [operand_of(x) for x in init_leaves]
    slices = [aval_of(x).without_axis(0) for x in xs_leaves]
    in_tree = tree_flatten((init, xs))[1]

    def trace(avals: list[ShapedArray]) -> tuple[ClosedJaxpr, Any, int]:
        closed, tree = traced(f, in_tree, [*avals, *slices], info)
        return closed, tree, 0

    init_leaves, closed, out_tree = settle_carry(trace, init_leaves)
    carry_tree, ys_tree = out_tree.children()
    n_out = carry_tree.num_leaves
    check_carry(words, init_tree, [aval_of(x) for x in init_leaves], carry_tree, closed.out_avals[:n_out])
    opened, consts = closed_over_nothing(closed)
    outs = scan_p.bind(
        *consts,
        *init_leaves,
        *xs_leaves,
        jaxpr=opened,
        num_consts=len(consts),
        num_carry=len(init_leaves),
        length=steps,
        reverse=reverse,
        unroll=unroll,
    )
    return init_tree.unflatten(outs[:n_out]), ys_tree.unflatten(outs[n_out:])


def _pair(f: Callable[[Any, Any], tuple[Any, Any]]) -> Callable[[Any, Any], tuple[Any, Any]]:
    """``f``, checked to give a pair."""

    @functools.wraps(f)
    def checked(carry: Any, x: Any) -> tuple[Any, Any]:
        out = f(carry, x)
        if not isinstance(out, tuple) or len(out) != 2:
            raise TypeError(
                f"scan body output must be a pair, got {type(out).__name__}: return (carry, y), "
                "with y None if there is none."
            )
        return out

    return checked


def _length(xs: Any, leaves: Sequence[Any], length: int | None) -> int:
    """The number of steps; ``ValueError`` names inputs that disagree."""
    paths = [keystr(p) for p, _ in tree_leaves_with_path(xs)]
    sizes: dict[str, int] = {}
    for path, leaf in zip(paths, leaves, strict=True):
        shape = aval_of(leaf).shape
        if not shape:
            raise ValueError(f"scan got value with no leading axis to scan over: xs{path} is {aval_of(leaf)}.")
        sizes[path] = shape[0]
    if length is not None:
        try:
            steps = operator.index(length)
        except TypeError:
            raise TypeError(f"The `length` argument to `scan` expects a concrete int, got {length!r}.") from None
        if steps < 0:
            raise ValueError(f"scan: length must not be negative, got {steps}.")
        wrong = [f"xs{p} has length {n}" for p, n in sizes.items() if n != steps]
        if wrong:
            raise ValueError(
                f"scan got `length` argument of {steps} which disagrees with leading axis sizes: {', '.join(wrong)}."
            )
        return steps
    if not sizes:
        raise ValueError("scan got no values to scan over and `length` not provided.")
    if len(set(sizes.values())) > 1:
        raise ValueError(
            "scan got values with different leading axis sizes: "
            f"{', '.join(f'xs{p} has {n}' for p, n in sizes.items())}."
        )
    return next(iter(sizes.values()))


def _scan_in_python(f: Any, carry: Any, leaves: Any, tree: Any, length: int, reverse: bool) -> tuple[Any, Any]:
    from jaxlite.lax.layout.shaping import expand_dims
    from jaxlite.lax.layout.slicing import concatenate, index_in_dim

    if length == 0:
        raise ValueError("zero-length scan is not supported in disable_jit() mode because the output type is unknown.")
    ys: list[Any] = [None] * length
    for i in range(length - 1, -1, -1) if reverse else range(length):
        carry, ys[i] = f(carry, tree.unflatten([index_in_dim(x, i, 0, keepdims=False) for x in leaves]))
    stacked = tree_map(lambda *column: concatenate([expand_dims(y, (0,)) for y in column], 0), *ys)
    return carry, stacked
