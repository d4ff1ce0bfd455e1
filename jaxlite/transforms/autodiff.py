"""Derivatives: grad, value_and_grad, vjp, jvp, linearize, jacobians, hessian."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jaxlite.core import dtypes
from jaxlite.core.array import from_numpy, to_array
from jaxlite.core.avals import ShapedArray, aval_of
from jaxlite.core.context import context
from jaxlite.core.errors import refuse
from jaxlite.core.jaxpr import ClosedJaxpr, evaluate
from jaxlite.core.pytree import tree_flatten, tree_map, tree_structure
from jaxlite.core.trace import Tracer
from jaxlite.core.tracebacks import boundary
from jaxlite.interpreters import jvp as forward, linearize as linear
from jaxlite.interpreters.transpose import backward_pass
from jaxlite.interpreters.zeros import LinearOperand, Zero, has_tangent, instantiate, zero_of
from jaxlite.lax.convert import full_like
from jaxlite.lax.layout.shaping import reshape
from jaxlite.lax.layout.slicing import slice_in_dim
from jaxlite.transforms.arguments import (
    as_argnums,
    check_callable,
    check_enough,
    check_inexact,
    flat_function,
    flat_operands,
    leaf_paths,
    positional,
)
from jaxlite.transforms.auxiliary import WithAux
from jaxlite.transforms.batching import vmap


def grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[..., Any]:
    """The gradient of a scalar function with respect to its arguments ``argnums``; (gradient, aux) if ``has_aux``.

    >>> grad(lambda x: x ** 3)(2.0)
    Array(12., dtype=float32, weak_type=True)
    """
    both = value_and_grad(fun, argnums, has_aux, holomorphic, allow_int, reduce_axes)

    @boundary
    @functools.wraps(fun, updated=())
    def gradient(*args: Any, **kwargs: Any) -> Any:
        value, g = both(*args, **kwargs)
        return (g, value[1]) if has_aux else g

    return gradient


def value_and_grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[..., Any]:
    """Value and gradient of a scalar function; ((value, aux), gradient) if ``has_aux``."""
    check_callable(fun, "grad")
    _refuse_holomorphic("grad", holomorphic)
    _refuse_reduce_axes("grad", reduce_axes)

    @boundary
    @functools.wraps(fun, updated=())
    def value_and_gradient(*args: Any, **kwargs: Any) -> Any:
        check_enough(argnums, len(args), "grad")
        numbers = as_argnums(argnums, len(args), "grad")
        chosen = tuple(args[n] for n in numbers)
        leaves, in_tree = flat_operands(chosen)
        paths = leaf_paths(chosen, "args")
        check_inexact(leaves, paths, "grad", allow_int)
        outs, pull, tree, aux = _vjp(positional(fun, numbers, args, kwargs), leaves, in_tree, has_aux)
        _check_scalar(fun, outs, tree)
        one = full_like(outs[0], 1)
        cotangents = in_tree.unflatten(pull([one]))
        result = cotangents[0] if isinstance(argnums, int) else cotangents
        value = tree.unflatten(outs)
        return ((value, aux), result) if has_aux else (value, result)

    return value_and_gradient


def _check_scalar(fun: Any, outs: Sequence[Any], tree: Any) -> None:
    name = getattr(fun, "__name__", "the function")
    if len(outs) != 1 or tree.num_nodes != 1:
        raise TypeError(
            f"Gradient only defined for scalar-output functions. Output of {name} was {tree.unflatten(outs)}."
        )
    aval = aval_of(outs[0])
    if aval.shape:
        raise TypeError(
            f"Gradient only defined for scalar-output functions. Output had shape: {aval.shape}. "
            "To get the gradient, reduce the output to "
            "a scalar with output.sum(), or use jax.jacobian to differentiate a function with a non-scalar output."
        )
    if not dtypes.is_inexact(aval.dtype):
        raise TypeError(
            "grad requires real- or complex-valued outputs (output dtype that is a sub-dtype of "
            f"np.inexact), but got {aval.dtype.name}. "
            "Use a float, or jax.vjp."
        )


def _refuse_holomorphic(what: str, holomorphic: bool) -> None:
    refuse(what, "holomorphic", holomorphic, False, "derivatives of complex functions are not defined yet")


def _refuse_reduce_axes(what: str, reduce_axes: Sequence[Any]) -> None:
    refuse(what, "reduce_axes", tuple(reduce_axes), (), "sums over a named axis are written with jax.lax.psum")


def _linearized(
    fun: Callable[..., Any], leaves: list[Any], active: list[bool], in_tree: Any, has_aux: bool
) -> tuple[list[Any], ClosedJaxpr, list[bool], Any, Any]:
    """Results, their linear map, which of them have tangents, their structure, and aux."""
    out: list[Any] = []
    if not has_aux:
        flat = flat_function(fun, in_tree, out)
        outs, closed, nonzero = linear.linearize(flat, leaves, active, context.trace)
        return outs, closed, nonzero, out[0], None
    both = WithAux(fun)
    outs, closed, nonzero = linear.linearize(flat_function(both, in_tree, out), leaves, active, context.trace)
    tree = out[0].children()[0]
    cut = tree.num_leaves
    jaxpr = closed.jaxpr
    closed = ClosedJaxpr(jaxpr.replace(outvars=jaxpr.outvars[: sum(nonzero[:cut])]), closed.consts)
    return outs[:cut], closed, nonzero[:cut], tree, both.aux(outs[cut:])


def _vjp(
    fun: Callable[..., Any], leaves: list[Any], in_tree: Any, has_aux: bool
) -> tuple[list[Any], Callable[..., list[Any]], Any, Any]:
    """Results, the function from their cotangents to the arguments', the results' structure, and aux."""
    active = [has_tangent(aval_of(x)) for x in leaves]
    outs, closed, nonzero, out_tree, aux = _linearized(fun, leaves, active, in_tree, has_aux)
    in_avals = [aval_of(x) for x in leaves]

    def pull(cotangents: Sequence[Any]) -> list[Any]:
        given = [c for c, nz in zip(cotangents, nonzero, strict=True) if nz]
        operands = [LinearOperand(v.aval) for v in closed.jaxpr.invars]
        pulled = iter(backward_pass(closed.jaxpr, closed.consts, operands, given))
        return [
            instantiate(next(pulled)) if a else _no_cotangent(aval) for a, aval in zip(active, in_avals, strict=True)
        ]

    return outs, pull, out_tree, aux


def _no_cotangent(aval: ShapedArray) -> Any:
    return np.zeros(aval.shape, dtypes.float0)


@boundary
def vjp(fun: Callable[..., Any], *primals: Any, has_aux: bool = False, reduce_axes: Sequence[Any] = ()) -> Any:
    """Value at ``primals`` and the function that takes cotangents of the value to those of the primals.

    >>> value, pull_back = vjp(lambda x, y: x * y, 2.0, 3.0)
    >>> pull_back(1.0)
    (Array(3., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True))
    """
    check_callable(fun, "vjp")
    _refuse_reduce_axes("vjp", reduce_axes)
    leaves, in_tree = flat_operands(primals)
    outs, pull, out_tree, aux = _vjp(fun, leaves, in_tree, has_aux)
    avals = [aval_of(o) for o in outs]

    def pull_back(cotangent: Any) -> Any:
        given, tree = flat_operands(cotangent, "cotangent")
        if tree != out_tree:
            raise ValueError(
                f"The tree structure of the cotangent must match that of the output, {out_tree}, got {tree}."
            )
        for path, c, aval in zip(leaf_paths(cotangent, "cotangent"), given, avals, strict=True):
            have, want = aval_of(c), aval.to_tangent_aval()
            if have.shape != want.shape or (have.dtype != want.dtype and want.dtype != dtypes.float0):
                raise ValueError(
                    f"The type of {path} must match that of the output's tangent: the output is {aval}, so {want} was "
                    f"expected, got {have}. {_conversion(have, want)}"
                )
        return in_tree.unflatten(pull(given))

    value = out_tree.unflatten(outs)
    return (value, pull_back, aux) if has_aux else (value, pull_back)


def _conversion(have: ShapedArray, want: ShapedArray) -> str:
    """What to write to make a value of type ``have`` one of type ``want``."""
    if want.dtype == dtypes.float0:
        return f"Write np.zeros({want.shape}, jax.dtypes.float0)."
    if have.shape == want.shape:
        return f"Write jnp.asarray(value, jnp.{want.dtype.name})."
    return f"Give an array of shape {want.shape}."


def _check_tangents(
    primals: Any, tangents: Any, what: str, mismatch: type[Exception] = TypeError
) -> tuple[list[Any], list[Any], Any]:
    """Primals, tangents and their structure; ``mismatch`` is raised where a tangent has not its primal's type."""
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise TypeError(
            f"primal and tangent arguments to {what} must be tuples or lists; found "
            f"{type(primals).__name__} and {type(tangents).__name__}."
        )
    values, tree = flat_operands(tuple(primals))
    moved, t_tree = flat_operands(tuple(tangents), "tangent")
    if tree != t_tree:
        raise TypeError(
            f"primal and tangent arguments to {what} must have the same tree structure; primals "
            f"have {tree}, tangents {t_tree}."
        )
    result: list[Any] = []
    for path, p, t in zip(leaf_paths(tuple(primals), "primals"), values, moved, strict=True):
        want, have = aval_of(p).to_tangent_aval(), aval_of(t)
        if not have.matches(want):
            raise mismatch(
                f"primal and tangent arguments to {what} do not match; dtypes must be equal, or in "
                "case of int/bool primal dtype the tangent "
                f"dtype must be float0. Got {aval_of(p)} for {path} and so expected tangent {want}, but got {have}. "
                + _conversion(have, want)
            )
        result.append(zero_of(p) if want.dtype == dtypes.float0 else t)
    return values, result, tree


@boundary
def jvp(fun: Callable[..., Any], primals: Any, tangents: Any, has_aux: bool = False) -> Any:
    """Value at ``primals`` and its directional derivative along ``tangents``.

    >>> jvp(lambda x: x * x, (3.0,), (1.0,))
    (Array(9., dtype=float32, weak_type=True), Array(6., dtype=float32, weak_type=True))
    """
    check_callable(fun, "jvp")
    values, moved, in_tree = _check_tangents(primals, tangents, "jax.jvp")
    out: list[Any] = []
    both = WithAux(fun) if has_aux else None
    outs, out_tangents = forward.jvp(flat_function(both or fun, in_tree, out), values, moved, context.trace)
    value = out[0].unflatten(map(_as_array, outs))
    tangent = out[0].unflatten([_tangent_of(o, t) for o, t in zip(outs, out_tangents, strict=True)])
    return (value, tangent) if both is None else (value[0], tangent[0], both.aux(value[1]))


def _as_array(value: Any) -> Any:
    return value if isinstance(value, Tracer) else to_array(value)


def _tangent_of(value: Any, tangent: Any) -> Any:
    if type(tangent) is Zero:
        aval = aval_of(value)
        return instantiate(tangent) if has_tangent(aval) else np.zeros(aval.shape, dtypes.float0)
    return tangent


@boundary
def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Value at ``primals`` and the linear function of tangents that approximates ``fun`` there; what it needs is
    computed once."""
    check_callable(fun, "linearize")
    leaves, in_tree = flat_operands(primals)
    active = [has_tangent(aval_of(x)) for x in leaves]
    outs, closed, nonzero, out_tree, aux = _linearized(fun, leaves, active, in_tree, has_aux)

    def linear_function(*tangents: Any) -> Any:
        _, moved, _ = _check_tangents(primals, tangents, "the function that jax.linearize returned", ValueError)
        given = [instantiate(t) for t, a in zip(moved, active, strict=True) if a]
        results = iter(evaluate(closed.jaxpr, closed.consts, given))
        flat = [next(results) if nz else _tangent_of(o, zero_of(o)) for o, nz in zip(outs, nonzero, strict=True)]
        return out_tree.unflatten(flat)

    value = out_tree.unflatten(outs)
    return (value, linear_function, aux) if has_aux else (value, linear_function)


def _basis(tree: Any) -> Any:
    """For each leaf of ``tree``, its unit tangents stacked: together the identity."""
    leaves, structure = tree_flatten(tree)
    avals = [aval_of(x) for x in leaves]
    total = sum(a.size for a in avals)
    parts, before = [], 0
    for aval in avals:
        block = np.zeros((total, aval.size), aval.dtype)
        block[np.arange(before, before + aval.size), np.arange(aval.size)] = 1
        parts.append(from_numpy(block.reshape((total, *aval.shape))))
        before += aval.size
    return structure.unflatten(parts)


def _split_leading(stacked: Any, tree: Any, leading: bool) -> Any:
    """``stacked``, whose first axis runs over all elements of ``tree``, as a tree of arrays with ``tree``'s shapes."""
    leaves, structure = tree_flatten(tree)
    parts, start = [], 0
    for leaf in leaves:
        aval = aval_of(leaf)
        part = slice_in_dim(stacked, start, start + aval.size, axis=0 if leading else -1)
        shape = aval_of(part).shape
        parts.append(reshape(part, (*aval.shape, *shape[1:]) if leading else (*shape[:-1], *aval.shape)))
        start += aval.size
    return structure.unflatten(parts)


def jacfwd(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable[..., Any]:
    """The Jacobian by forward mode: a column for each element of the arguments; good where there are fewer inputs
    than outputs."""
    check_callable(fun, "jacfwd")
    _refuse_holomorphic("jacfwd", holomorphic)

    @boundary
    @functools.wraps(fun, updated=())
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        numbers = as_argnums(argnums, len(args), "jacfwd")
        chosen = tuple(args[n] for n in numbers)
        check_inexact(flat_operands(chosen)[0], leaf_paths(chosen, "args"), "jacfwd", False)
        partial = positional(fun, numbers, args, kwargs)

        def push(tangents: Any) -> Any:
            result = jvp(partial, chosen, tangents, has_aux=has_aux)
            return (result[1], result[2]) if has_aux else (result[1], None)

        both = WithAux(push)
        columns, traced = vmap(both, out_axes=(-1, None))(_basis(chosen))
        tree = tree_map(lambda y: _split_leading(y, chosen, leading=False), columns)
        tree = (
            tree_map(
                lambda parts: parts[0],
                tree,
                is_leaf=lambda x: (
                    isinstance(x, tuple) and len(x) == len(numbers) and tree_structure(x) == tree_structure(chosen)
                ),
            )
            if isinstance(argnums, int)
            else tree
        )
        return (tree, both.aux(traced)) if has_aux else tree

    return jacobian


def jacrev(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """The Jacobian by reverse mode: a row for each element of the output; good where there are fewer outputs than
    inputs."""
    check_callable(fun, "jacrev")
    _refuse_holomorphic("jacrev", holomorphic)

    @boundary
    @functools.wraps(fun, updated=())
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        numbers = as_argnums(argnums, len(args), "jacrev")
        chosen = tuple(args[n] for n in numbers)
        check_inexact(flat_operands(chosen)[0], leaf_paths(chosen, "args"), "jacrev", allow_int)
        partial = positional(fun, numbers, args, kwargs)
        result = vjp(partial, *chosen, has_aux=has_aux)
        value, pull = result[0], result[1]
        rows = vmap(pull)(_basis(value))
        rows = rows[0] if isinstance(argnums, int) else rows
        # rows: a tree of arguments whose leaves run over the output's elements; wanted: output outside, arguments
        # inside.
        leaves, structure = tree_flatten(rows)
        split = [tree_flatten(_split_leading(leaf, value, leading=True))[0] for leaf in leaves]
        outputs = tree_structure(value)
        tree = outputs.unflatten([structure.unflatten(column) for column in zip(*split, strict=True)])
        return (tree, result[2]) if has_aux else tree

    return jacobian


def hessian(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable[..., Any]:
    """The matrix of second derivatives: forward over reverse."""
    return jacfwd(jacrev(fun, argnums, has_aux, holomorphic), argnums, has_aux, holomorphic)


jacobian = jacrev
