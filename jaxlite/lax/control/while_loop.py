"""``while_loop`` and ``fori_loop``: a body repeated as long as a condition holds."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np

from jaxlite.core import config, dtypes
from jaxlite.core.avals import ShapedArray, aval_of
from jaxlite.core.jaxpr import ClosedJaxpr, DebugInfo, Var, evaluate
from jaxlite.core.key_reuse import used_by_steps
from jaxlite.core.primitive import AxisData, get
from jaxlite.core.pytree import keystr, tree_flatten, tree_leaves_with_path
from jaxlite.core.ref import Ref, carrying, read_all, ref_type, with_refs, write_all
from jaxlite.core.source import current
from jaxlite.core.trace import Tracer
from jaxlite.core.tracebacks import boundary
from jaxlite.core.varying import union, vary_along
from jaxlite.interpreters.jet import jet_jaxpr, moves
from jaxlite.interpreters.stage import closed_over_nothing, stage
from jaxlite.interpreters.zeros import instantiate
from jaxlite.lax.control.trace_functions import debug_info, traced
from jaxlite.lax.convert import constant, full_like, operand_of
from jaxlite.lax.elementwise.arithmetic import add
from jaxlite.lax.elementwise.bitwise import bitwise_and
from jaxlite.lax.elementwise.casts import convert
from jaxlite.lax.elementwise.comparison import lt
from jaxlite.lax.elementwise.select import select
from jaxlite.lax.families.higher_order import (
    HigherOrder,
    batch_where,
    batched,
    flat_series,
    jvp_of,
    kept,
    nonzero,
    run,
    spread,
    spread_series,
    zeros_for,
)
from jaxlite.lax.layout.shaping import broadcast_in_dim
from jaxlite.lax.reductions.extrema import reduce_or


@final
class While(HigherOrder):
    """Operands: constants of the condition, constants of the body, carry."""

    name, family = "while", "while_loop"

    def abstract_eval(self, *avals: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        varies = union(params["cond_jaxpr"].out_avals)  # devices stop at different times
        return tuple([a.update(varying=a.varying | varies) if varies else a for a in params["body_jaxpr"].out_avals])

    def _parts(self, values: Sequence[Any], params: dict[str, Any]) -> tuple[list[Any], list[Any], list[Any]]:
        c, b = params["cond_nconsts"], params["cond_nconsts"] + params["body_nconsts"]
        return list(values[:c]), list(values[c:b]), list(values[b:])

    def uses_up(self, **params: Any) -> tuple[int, ...]:
        body, first = params["body_jaxpr"].jaxpr, params["cond_nconsts"]
        consts, carry = body.invars[: params["body_nconsts"]], body.invars[params["body_nconsts"] :]
        same = [v for v, out in zip(carry, body.outvars, strict=True) if v is out]
        return tuple([first + i for i in used_by_steps(body, [*consts, *same])])

    def evaluate(self, *arrays: np.ndarray[Any, Any], **params: Any) -> tuple[np.ndarray[Any, Any], ...]:
        for_cond, for_body, carry = self._parts(arrays, params)
        while run(params["cond_jaxpr"], [*for_cond, *carry])[0]:
            carry = list(run(params["body_jaxpr"], [*for_body, *carry]))
        return tuple(carry)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        for_cond, for_body, carry = self._parts(primals, params)
        _, t_body, t_carry = self._parts(tangents, params)
        body, consts_mask = params["body_jaxpr"], nonzero(t_body)
        mask = carry_mask(body, consts_mask, nonzero(t_carry))
        derived, _ = jvp_of(body, consts_mask + mask, mask)
        t_in = [instantiate(t) for t in kept(t_carry, mask)]
        n_body, n_carry, n_moved = len(for_body), len(carry), len(kept(t_body, consts_mask))

        # jvp_of puts tangents last; the loop wants constants first: (consts, their tangents, carry, its tangents).
        def reordered(*args: Any) -> list[Any]:
            consts, moved = args[:n_body], args[n_body : n_body + n_moved]
            state, t_state = args[n_body + n_moved :][:n_carry], args[n_body + n_moved + n_carry :]
            return evaluate(derived.jaxpr, derived.consts, [*consts, *state, *moved, *t_state])

        avals = body.in_avals
        t_avals = [a.to_tangent_aval() for a in avals]
        order = [*avals[:n_body], *kept(t_avals[:n_body], consts_mask), *avals[n_body:], *kept(t_avals[n_body:], mask)]
        new_body = stage(reordered, order, body.jaxpr.debug_info)
        new_cond = _ignoring(params["cond_jaxpr"], kept(t_avals[n_body:], mask))
        results = self.bind(
            *for_cond, *for_body, *kept(t_body, consts_mask), *carry, *t_in, cond_jaxpr=new_cond, body_jaxpr=new_body,
            cond_nconsts=len(for_cond), body_nconsts=n_body + n_moved,
        )  # fmt: skip
        return results[:n_carry], spread(results[n_carry:], mask, zeros_for(body.out_avals))

    def jet(
        self, primals: Sequence[Any], series: Sequence[Sequence[Any]], **params: Any
    ) -> tuple[list[Any], list[list[Any]]] | None:
        body, order = params["body_jaxpr"], len(series[0])
        for_cond, for_body, carry = self._parts(primals, params)
        _, body_series, carry_series = self._parts(series, params)
        b_mask, mask = tuple(map(moves, body_series)), tuple(map(moves, carry_series))
        while True:  # until what comes out of a step has coefficients only where what goes in has
            derived, out_mask = jet_jaxpr(body, order, b_mask + mask, mask)
            if out_mask == mask:
                break
            mask = out_mask
        n_body, n_carry, n_moved = len(for_body), len(carry), order * sum(b_mask)

        def reordered(*args: Any) -> list[Any]:
            consts, moved = args[:n_body], args[n_body : n_body + n_moved]
            state, terms = args[n_body + n_moved :][:n_carry], args[n_body + n_moved + n_carry :]
            return evaluate(derived.jaxpr, derived.consts, [*consts, *state, *moved, *terms])

        avals, terms = derived.in_avals[: n_body + n_carry], derived.in_avals[n_body + n_carry :]
        in_avals = [*avals[:n_body], *terms[:n_moved], *avals[n_body:], *terms[n_moved:]]
        results = self.bind(
            *for_cond, *for_body, *flat_series(body_series, b_mask), *carry, *flat_series(carry_series, mask),
            cond_jaxpr=_ignoring(params["cond_jaxpr"], terms[n_moved:]),
            body_jaxpr=stage(reordered, in_avals, body.jaxpr.debug_info),
            cond_nconsts=len(for_cond), body_nconsts=n_body + n_moved,
        )  # fmt: skip
        return results[:n_carry], spread_series(results[n_carry:], mask, order, body.out_avals)

    def linearize(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        # The tangent side is the whole loop again with its tangents: a while loop saves no residuals.
        outs = self.bind(*primals, **params)
        return outs, self.jvp(primals, tangents, **params)[1]

    def transpose(self, cotangents: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
        source = current()
        where = f" on line {source.line} of {source.file}" if source.file else ""
        raise ValueError(
            "Reverse-mode differentiation does not work for lax.while_loop or lax.fori_loop with "
            "dynamic start/stop values: the "
            f"loop{where} runs a number of times that is not known in advance, so what its steps "
            "save has no size.  Try using "
            "lax.scan, or lax.fori_loop with static start/stop values."
        )

    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[int | None], /, **params: Any
    ) -> tuple[list[Any], list[int | None]]:
        c_mask, b_mask, s_mask = self._parts([d is not None for d in dims], params)
        cond, body = params["cond_jaxpr"], params["body_jaxpr"]
        mask = tuple(s_mask)
        while True:
            # A batched condition freezes examples one by one, so then the whole carry is batched.
            _, (pred_batched,) = batched(cond, axis, tuple(c_mask) + mask, False)
            wider = (True,) * len(mask) if pred_batched else mask
            _, out_mask = batched(body, axis, tuple(b_mask) + wider, wider)
            if out_mask == mask:
                break
            mask = out_mask
        whole_mask = (*c_mask, *b_mask, *mask)
        whole = batch_where(operands, dims, whole_mask, axis.size)
        new_cond, _ = batched(cond, axis, tuple(c_mask) + mask, False)
        new_body, _ = batched(body, axis, tuple(b_mask) + mask, mask)
        if not pred_batched:
            outs = self.bind(*whole, **{**params, "cond_jaxpr": new_cond, "body_jaxpr": new_body})
            return outs, [0 if m else None for m in mask]
        # Whether an example goes on is computed once and kept in the carry: computed again in another kernel it could
        # round otherwise, and an example could wait for ever.
        n_cond, n_body = params["cond_nconsts"], params["body_nconsts"]
        for_cond, for_body, carry = self._parts(whole, params)
        (going,) = evaluate(new_cond.jaxpr, new_cond.consts, [*for_cond, *carry])
        outs = self.bind(
            *for_cond,
            *for_body,
            going,
            *carry,
            cond_jaxpr=_any_going(new_cond, n_cond),
            body_jaxpr=_freezing(new_cond, new_body, n_cond, n_body),
            cond_nconsts=0,
            body_nconsts=n_cond + n_body,
        )
        return outs[1:], [0] * (len(outs) - 1)


def carry_mask(body: ClosedJaxpr, consts: tuple[bool, ...], carry: tuple[bool, ...]) -> tuple[bool, ...]:
    """Which parts of the carry have a tangent after any number of steps."""
    while True:
        _, out = jvp_of(body, consts + carry, carry)
        out = out[: len(carry)]
        if out == carry:
            return carry
        carry = tuple(a or b for a, b in zip(carry, out, strict=True))


def _ignoring(closed: ClosedJaxpr, more: Sequence[ShapedArray]) -> ClosedJaxpr:
    """``closed`` with more arguments, which it does not read."""
    jaxpr = closed.jaxpr
    return ClosedJaxpr(jaxpr.replace(invars=(*jaxpr.invars, *(Var(a) for a in more))), closed.consts)


def _any_going(cond: ClosedJaxpr, n_cond: int) -> ClosedJaxpr:
    """The condition of the batch: whether any example goes on, which is the first part of the carry."""
    return stage(lambda going, *carry: [reduce_or(going, (0,))], [*cond.out_avals, *cond.in_avals[n_cond:]])


def _freezing(cond: ClosedJaxpr, body: ClosedJaxpr, n_cond: int, n_body: int) -> ClosedJaxpr:
    """The body of the batch: examples whose condition no longer holds keep their carry."""

    def step(*args: Any) -> list[Any]:
        for_cond, for_body = args[:n_cond], args[n_cond : n_cond + n_body]
        going, *carry = args[n_cond + n_body :]
        moved = evaluate(body.jaxpr, body.consts, [*for_body, *carry])
        kept_or_moved = [
            select(broadcast_in_dim(going, aval_of(new).shape, (0,)), new, old)
            for new, old in zip(moved, carry, strict=True)
        ]
        (again,) = evaluate(cond.jaxpr, cond.consts, [*for_cond, *kept_or_moved])
        return [bitwise_and(going, again), *kept_or_moved]

    avals = [*cond.in_avals[:n_cond], *body.in_avals[:n_body], *cond.out_avals, *body.in_avals[n_body:]]
    return stage(step, avals, body.jaxpr.debug_info)


while_p = While()


@final
@dataclasses.dataclass(frozen=True)
class LoopWords:
    """How messages speak of a loop: its function's name, its body's, and what in the carry the user did not write: how
    many leading parts count steps, and how many values of refs stand beside it."""

    name: str
    body: str
    counters: int = 0
    refs: int = 0


def check_carry(
    words: LoopWords, tree: Any, before: Sequence[ShapedArray], out_tree: Any, after: Sequence[ShapedArray]
) -> None:
    """``TypeError`` where the carry's structure or a leaf's type changes, with its path and both types."""
    if words.refs:
        tree, out_tree = tree.children()[0], out_tree.children()[0]
        before, after = before[: -words.refs], after[: -words.refs]
    if words.counters:
        tree, out_tree = tree.children()[-1], out_tree.children()[-1]
        before, after = before[words.counters :], after[words.counters :]
    must = f"{words.name}: {words.body} must give a carry of the"
    if tree != out_tree:
        raise TypeError(
            f"{must} structure that it takes, but the input carry has structure {tree} and the output carry {out_tree}."
        )
    paths = [p for p, _ in tree_leaves_with_path(tree.unflatten([0] * tree.num_leaves))]
    wrong = [
        f"  carry{keystr(p)} goes in as {a} and comes out as {b}"
        for p, a, b in zip(paths, before, after, strict=True)
        if not a.matches(b)
    ]
    if wrong:
        raise TypeError("\n".join([
            f"{must} types that it takes, but", *wrong,
            "Convert the result with .astype, or give an initial carry of the type that comes out.",
        ]))  # fmt: skip


def settle_carry(
    trace: Callable[[list[ShapedArray]], tuple[ClosedJaxpr, Any, int]], carry: list[Any]
) -> tuple[list[Any], ClosedJaxpr, Any]:
    """Traces a body on the carry's types; where a weak leaf comes out of another type, or strong, the initial one is
    promoted to it and the body traced again.

    ``trace`` gives the jaxpr, its result's structure and the position of the carry among its results.
    """
    for _ in range(len(carry) + 1):
        avals = [aval_of(c) for c in carry]
        closed, out_tree, at = trace(avals)
        after = closed.out_avals[at : at + len(carry)]
        if len(after) != len(carry) or not any(map(_unsettled, avals, after)):
            break
        carry = [_promoted(c, a, b) for c, a, b in zip(carry, avals, after, strict=True)]
    return carry, closed, out_tree


def _unsettled(before: ShapedArray, after: ShapedArray) -> bool:
    """Whether a weak leaf comes out as something else that it can be promoted to, or one that varies along more mesh
    axes than it did."""
    other = (before.dtype, True) != (after.dtype, after.weak_type)
    return bool(after.varying - before.varying) or (before.weak_type and other and not dtypes.is_key(after.dtype))


def _promoted(value: Any, before: ShapedArray, after: ShapedArray) -> Any:
    """A weak initial value in the type that it and what comes out promote to, strong from now on: so it settles."""
    value = vary_along(get("pvary"), value, after.varying)
    if not _unsettled(before.update(varying=after.varying), after):
        return value
    dtype, _ = dtypes.promote_types((before.dtype, True), (after.dtype, after.weak_type))
    return convert(value, dtype, False)


@boundary
def while_loop(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any) -> Any:
    """``body_fun`` applied to ``init_val`` again and again while ``cond_fun`` holds; types stay what they are.

    >>> while_loop(lambda x: x < 10.0, lambda x: x * 2.0, 1.0)
    Array(16., dtype=float32, weak_type=True)
    """
    if not (callable(cond_fun) and callable(body_fun)):
        raise TypeError("lax.while_loop: body_fun and cond_fun arguments should be callable.")
    if config.disable_jit.value:
        return _while_in_python(cond_fun, body_fun, init_val)
    return run_while(
        LoopWords("while_loop", "body_fun"), cond_fun, body_fun, init_val, debug_info(body_fun, (init_val,))
    )


def run_while(
    words: LoopWords, cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any, info: DebugInfo
) -> Any:
    """``while_loop``, for whatever function is a loop of that kind; ``info`` and ``words`` are what messages say."""

    def run(refs: list[Ref]) -> Any:
        if not refs:
            return _run_while(words, cond_fun, body_fun, init_val, info)
        cond, body = carrying(cond_fun, refs), carrying(body_fun, refs)
        init = (init_val, read_all(refs))
        more = dataclasses.replace(words, refs=len(refs))

        def reading(state: tuple[Any, list[Any]]) -> Any:
            going, after = cond(state[1], state[0])
            for ref, old, new in zip(refs, state[1], after, strict=True):
                if new is not old:
                    raise NotImplementedError(
                        f"{words.name}: cond_fun writes a {ref_type(ref.type)} from outside: it may only read refs. "
                        "Write it in body_fun."
                    )
            return going

        value, values = _run_while(more, reading, lambda s: body(s[1], s[0]), init, info)
        write_all(refs, values)
        return value

    return with_refs(run)


def _run_while(
    words: LoopWords, cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any, info: DebugInfo
) -> Any:
    leaves, tree = tree_flatten(init_val)
    leaves = [operand_of(x) for x in leaves]
    single = tree_flatten((init_val,))[1]

    def trace(avals: list[ShapedArray]) -> tuple[ClosedJaxpr, Any, int]:
        closed, out_tree = traced(body_fun, single, avals, info)
        return closed, out_tree, 0

    leaves, body, out_tree = settle_carry(trace, leaves)
    avals = [aval_of(x) for x in leaves]
    check_carry(words, tree, avals, out_tree, body.out_avals)
    cond, cond_tree = traced(cond_fun, single, avals, debug_info(cond_fun, (init_val,)))
    if (
        cond_tree.num_leaves != 1
        or cond_tree.kind is not None
        or not dtypes.is_bool(cond.out_avals[0].dtype)
        or cond.out_avals[0].shape
    ):
        given = ", ".join(map(str, cond.out_avals))
        raise TypeError(f"while_loop: cond_fun must return a boolean scalar, but got {given} in structure {cond_tree}.")
    cond, cond_consts = closed_over_nothing(cond)
    body, body_consts = closed_over_nothing(body)
    outs = while_p.bind(
        *cond_consts, *body_consts, *leaves, cond_jaxpr=cond, body_jaxpr=body,
        cond_nconsts=len(cond_consts), body_nconsts=len(body_consts),
    )  # fmt: skip
    return tree.unflatten(outs)


def _while_in_python(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], value: Any) -> Any:
    while cond_fun(value):
        value = body_fun(value)
    return value


@boundary
def fori_loop(
    lower: Any, upper: Any, body_fun: Callable[[Any, Any], Any], init_val: Any, *, unroll: int | bool | None = None
) -> Any:
    """``body_fun(i, value)`` for ``i`` from ``lower`` up to but not including ``upper``; fixed bounds become a
    ``scan``.

    >>> fori_loop(0, 4, lambda i, total: total + i, 0)
    Array(6, dtype=int32, weak_type=True)
    """
    from jaxlite.lax.control.scan import run_scan

    if not callable(body_fun):
        raise TypeError("lax.fori_loop: body_fun argument should be callable.")
    for name, bound in (("lower", lower), ("upper", upper)):
        aval = aval_of(operand_of(bound))
        if aval.shape or not dtypes.is_integer(aval.dtype):
            raise TypeError(f"fori_loop: {name} must be an integer scalar, got {aval}.")
    dtype, weak = _index_type(lower, upper)
    if not isinstance(lower, Tracer) and not isinstance(upper, Tracer):
        first, trips = int(lower), max(int(upper) - int(lower), 0)
        if config.disable_jit.value:
            for i in range(first, first + trips):
                init_val = body_fun(i, init_val)
            return init_val

        def step(state: tuple[Any, Any], _: None) -> tuple[tuple[Any, Any], None]:
            i, value = state
            return (add(i, full_like(i, 1)), body_fun(i, value)), None

        start = first if weak else constant(first, dtype)
        words = LoopWords("fori_loop", "body_fun", counters=1)
        info = debug_info(body_fun, (start, init_val))
        (_, out), _ = run_scan(words, step, (start, init_val), None, trips, info, unroll=unroll or 1)
        return out
    if unroll is not None:
        raise ValueError("Can only use `unroll` in `fori_loop` if the loop bounds are statically known.")
    start, stop = convert(lower, dtype), convert(upper, dtype)
    out = run_while(
        LoopWords("fori_loop", "body_fun", counters=2),
        lambda s: lt(s[0], s[1]),
        lambda s: (add(s[0], constant(1, dtype)), s[1], body_fun(s[0], s[2])),
        (start, stop, init_val),
        debug_info(body_fun, (start, init_val)),
    )
    return out[2]


def _index_type(lower: Any, upper: Any) -> tuple[Any, bool]:
    a, b = (aval_of(operand_of(x)) for x in (lower, upper))
    return dtypes.promote_types((a.dtype, a.weak_type), (b.dtype, b.weak_type))
