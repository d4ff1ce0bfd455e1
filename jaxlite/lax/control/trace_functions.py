"""The users' functions inside control flow: traced to jaxprs on pytrees, with errors in terms of their arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from jaxlite.core.avals import ShapedArray, aval_of
from jaxlite.core.jaxpr import ClosedJaxpr, DebugInfo, Jaxpr, Var, evaluate
from jaxlite.core.pytree import PyTreeDef, keystr, tree_flatten, tree_leaves_with_path
from jaxlite.interpreters.stage import closed_over_nothing, stage
from jaxlite.lax.convert import operand_of


def debug_info(function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any] | None = None) -> DebugInfo:
    """What messages need to know of a call: the function's name and place, and a name for each leaf of its
    arguments."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    name = getattr(function, "__name__", type(function).__name__)
    names: list[str] = []
    try:
        bound = inspect.signature(function).bind(*args, **(kwargs or {}))
        parameters: list[tuple[str, Any]] = []
        for parameter, value in bound.arguments.items():
            kind = bound.signature.parameters[parameter].kind
            if kind is inspect.Parameter.VAR_POSITIONAL:
                parameters += [(f"{parameter}[{i}]", v) for i, v in enumerate(value)]
            elif kind is inspect.Parameter.VAR_KEYWORD:
                parameters += sorted(value.items())
            else:
                parameters.append((parameter, value))
    except (TypeError, ValueError):
        parameters = [(f"args[{i}]", a) for i, a in enumerate(args)] + sorted((kwargs or {}).items())
    for parameter, value in parameters:
        names += [parameter + keystr(path) for path, _ in tree_leaves_with_path(value)]
    file = code.co_filename if code is not None else ""
    return DebugInfo(name, file, code.co_firstlineno if code is not None else 0, tuple(names))


def traced(
    function: Callable[..., Any], in_tree: PyTreeDef, avals: Sequence[ShapedArray], info: DebugInfo
) -> tuple[ClosedJaxpr, PyTreeDef]:
    """The jaxpr of ``function`` on leaves of its (positional) arguments, and the structure of its result."""
    out_tree: list[PyTreeDef] = []

    def flat(*leaves: Any) -> list[Any]:
        result = function(*in_tree.unflatten(leaves))
        results, tree = tree_flatten(result)
        out_tree.append(tree)
        return [_checked(r, path, info) for r, (path, _) in zip(results, tree_leaves_with_path(result), strict=True)]

    closed = stage(flat, avals, info)
    return closed, out_tree[0]


def _checked(value: Any, path: Any, info: DebugInfo) -> Any:
    try:
        return operand_of(value)
    except TypeError:
        at = f" at {info.file}:{info.line}" if info.file else ""
        raise TypeError(
            f"Output from {info.function}{at} at result{keystr(path)} is a {type(value).__name__}, "
            "which is not a valid JAX "
            "type: return arrays and numbers, in tuples, lists, dicts or registered classes."
        ) from None


def closed_branches(
    functions: Sequence[Callable[..., Any]], operands: Sequence[Any]
) -> tuple[list[Any], list[ClosedJaxpr], list[Any], list[PyTreeDef]]:
    """Leaves of the operands, the branches with all constants of all of them as leading arguments, these, and
    structures."""
    leaves, in_tree = tree_flatten(tuple(operands))
    leaves = [operand_of(x) for x in leaves]
    avals = [aval_of(x) for x in leaves]
    pairs = [traced(f, in_tree, avals, debug_info(f, operands)) for f in functions]
    opened = [closed_over_nothing(c) for c, _ in pairs]
    constants = [c for _, consts in opened for c in consts]
    branches = []
    before = 0
    for closed, consts in opened:
        jaxpr, own = closed.jaxpr, len(consts)
        padding = [Var(aval_of(c)) for c in constants]
        invars = (*padding[:before], *jaxpr.invars[:own], *padding[before + own :], *jaxpr.invars[own:])
        branches.append(ClosedJaxpr(Jaxpr((), invars, jaxpr.outvars, jaxpr.eqns, jaxpr.effects, jaxpr.debug_info)))
        before += own
    branches = _without_weak_types(branches)
    return leaves, branches, constants, [t for _, t in pairs]


def _without_weak_types(branches: list[ClosedJaxpr]) -> list[ClosedJaxpr]:
    """Where some branches give a weak type and others do not, all give the strong one."""
    from jaxlite.lax.elementwise.casts import convert

    columns = [b.out_avals for b in branches]
    if any(len(c) != len(columns[0]) for c in columns):
        return branches
    mixed = [len({a.weak_type for a in column}) > 1 for column in zip(*columns, strict=True)]
    if not any(mixed):
        return branches

    def strong(closed: ClosedJaxpr) -> ClosedJaxpr:
        def body(*args: Any) -> list[Any]:
            outs = evaluate(closed.jaxpr, (), args)
            return [convert(o, aval_of(o).dtype) if m else o for o, m in zip(outs, mixed, strict=True)]

        return stage(body, closed.in_avals, closed.jaxpr.debug_info)

    return [strong(b) for b in branches]


def describe_mismatch(
    name: str,
    functions: Sequence[Callable[..., Any]],
    number: int,
    first: tuple[ClosedJaxpr, PyTreeDef],
    other: tuple[ClosedJaxpr, PyTreeDef],
) -> None:
    """``TypeError`` where two branches give results of different structure or types, with the difference."""
    (a, a_tree), (b, b_tree) = first, other
    labels = ("false_fun", "true_fun") if name == "cond" else ("branches[0]", f"branches[{number}]")
    lines = [
        f"{label} is {getattr(f, '__name__', f)}"
        for label, f in zip(labels, (functions[0], functions[number]), strict=True)
    ]
    if a_tree != b_tree:
        raise TypeError(
            f"{name} branches must give results of one structure: {labels[0]} gives {a_tree}, "
            f"{labels[1]} gives {b_tree} "
            f"({'; '.join(lines)})."
        )
    paths = [p for p, _ in tree_leaves_with_path(a_tree.unflatten([0] * a_tree.num_leaves))]
    wrong = [
        f"  result{keystr(p)} is {x} in {labels[0]} but {y} in {labels[1]}"
        for p, x, y in zip(paths, a.out_avals, b.out_avals, strict=True)
        if not x.matches(y)
    ]
    if wrong:
        raise TypeError("\n".join([f"{name} branches must give results of equal types ({'; '.join(lines)}):", *wrong]))
