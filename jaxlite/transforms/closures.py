"""Functions seen as data: ``closure_convert``, ``linear_transpose``, ``custom_gradient``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from jaxlite.core import dtypes
from jaxlite.core.avals import aval_of
from jaxlite.core.errors import refuse
from jaxlite.core.jaxpr import evaluate
from jaxlite.core.pytree import tree_flatten
from jaxlite.interpreters.transpose import backward_pass
from jaxlite.interpreters.zeros import LinearOperand, instantiate
from jaxlite.lax.control.trace_functions import traced
from jaxlite.transforms.arguments import check_callable, debug_info_of, flat_operands
from jaxlite.transforms.custom import custom_vjp
from jaxlite.transforms.jaxprs import abstract


def closure_convert(fun: Callable[..., Any], *example_args: Any) -> tuple[Callable[..., Any], list[Any]]:
    """``fun`` with the floating-point arrays that it closes over as further arguments, and these arrays."""
    check_callable(fun, "closure_convert")
    leaves, tree = flat_operands(example_args)
    closed, out_tree = traced(fun, tree, [aval_of(x) for x in leaves], debug_info_of(fun, example_args))
    hoisted = [dtypes.is_inexact(aval_of(c).dtype) for c in closed.consts]

    def converted(*args: Any) -> Any:
        given = flat_operands(args[: len(args) - sum(hoisted)])[0]
        moved = iter(args[len(args) - sum(hoisted) :])
        consts = [next(moved) if h else c for h, c in zip(hoisted, closed.consts, strict=True)]
        return out_tree.unflatten(evaluate(closed.jaxpr, consts, given))

    return converted, [c for c, h in zip(closed.consts, hoisted, strict=True) if h]


def linear_transpose(fun: Callable[..., Any], *primals: Any, reduce_axes: Any = ()) -> Callable[..., Any]:
    """The transpose of a linear function: takes a cotangent of its result to a tuple of cotangents of its arguments."""
    refuse("linear_transpose", "reduce_axes", reduce_axes, (), "sums over a named axis are written with psum")
    check_callable(fun, "linear_transpose")
    leaves, tree = tree_flatten(primals, lambda x: hasattr(x, "shape") and hasattr(x, "dtype"))
    avals = [abstract(x) for x in leaves]
    if not all(dtypes.is_inexact(a.dtype) for a in avals):
        raise TypeError(
            "linear_transpose only supports functions with inexact input and output dtypes, got "
            f"{', '.join(a.dtype.name for a in avals)}."
        )
    closed, out_tree = traced(fun, tree, avals, debug_info_of(fun, primals))

    def transposed(cotangent: Any) -> Any:
        given, structure = flat_operands(cotangent, "cotangent")
        if structure != out_tree:
            raise TypeError(f"cotangent tree does not match function output, expected {out_tree} but got {structure}.")
        for c, aval in zip(given, closed.out_avals, strict=True):
            if aval_of(c).shape != aval.shape:
                raise TypeError(f"cotangent type does not match function output, expected {aval} but got {aval_of(c)}.")
        pulled = backward_pass(closed.jaxpr, closed.consts, [LinearOperand(a) for a in avals], given)
        return tree.unflatten([instantiate(c) for c in pulled])

    return transposed


def custom_gradient(fun: Callable[..., Any]) -> Callable[..., Any]:
    """A function that gives (value, function from its cotangent to those of the arguments) becomes one of value alone.

    >>> from jaxlite import grad
    >>> grad(custom_gradient(lambda x: (x * x, lambda g: (g * x,))))(3.0)
    Array(3., dtype=float32, weak_type=True)
    """
    check_callable(fun, "custom_gradient")

    @custom_vjp
    @functools.wraps(fun, updated=())
    def wrapped(*args: Any) -> Any:
        return fun(*args)[0]

    kept: dict[str, Any] = {}

    def forward(*args: Any) -> Any:
        value, rule = fun(*args)
        leaves, _ = flat_operands(value)
        closed, rule_tree = traced(
            rule, tree_flatten((value,))[1], [aval_of(x) for x in leaves], debug_info_of(rule, (value,))
        )
        kept["jaxpr"], kept["tree"] = closed.jaxpr, rule_tree
        return value, list(closed.consts)

    def backward(residuals: Any, cotangent: Any) -> Any:
        results = evaluate(kept["jaxpr"], residuals, flat_operands(cotangent)[0])
        pulled = kept["tree"].unflatten(results)
        return pulled if isinstance(pulled, tuple) else (pulled,)

    wrapped.defvjp(forward, backward)

    @functools.wraps(fun, updated=())
    def call(*args: Any) -> Any:
        return wrapped(*args)

    return call
