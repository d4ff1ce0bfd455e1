"""``checkpoint`` (``remat``) and its policies: which values the backward pass finds saved, and which it computes
again."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, final

from jaxlite.core.avals import aval_of
from jaxlite.core.context import context
from jaxlite.core.errors import refuse
from jaxlite.core.jaxpr import Var
from jaxlite.core.pytree import tree_map
from jaxlite.core.ref import Ref, carrying, read_all, with_refs, write_all
from jaxlite.interpreters.linearize import linearize
from jaxlite.interpreters.stage import closed_over_nothing
from jaxlite.interpreters.zeros import has_tangent
from jaxlite.lax.control.checkpoint import checkpoint_p, is_name, named
from jaxlite.lax.control.trace_functions import traced
from jaxlite.transforms.arguments import check_callable, debug_info_of, flat_function, flat_operands, operands_but_refs
from jaxlite.transforms.jaxprs import make_jaxpr, split_static


def checkpoint(
    fun: Callable[..., Any] | None = None,
    *,
    prevent_cse: bool = True,
    policy: Callable[..., bool] | None = None,
    static_argnums: int | Sequence[int] = (),
    concrete: bool = False,
) -> Any:
    """``fun``, of which the backward pass saves nothing but what ``policy`` says, and computes the rest again.

    >>> import jaxlite as jax
    >>> jax.grad(checkpoint(lambda x: x ** 3))(2.0)
    Array(12., dtype=float32, weak_type=True)
    """
    refuse("checkpoint", "concrete", concrete, False, "what is saved is decided by policy")
    if fun is None:
        return functools.partial(checkpoint, prevent_cse=prevent_cse, policy=policy, static_argnums=static_argnums)
    check_callable(fun, "checkpoint")
    static = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)

    @functools.wraps(fun, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        numbers = tuple(n % len(args) for n in static) if args else ()
        info = debug_info_of(fun, args, kwargs)

        def run(refs: list[Ref]) -> Any:
            dynamic, together = split_static(args, numbers)
            given = operands_but_refs((dynamic, kwargs))

            def of_leaves(own: list[Any]) -> Any:
                d, k = given.unflatten(own)
                return fun(*together(d), **k)

            body = carrying(of_leaves, refs)
            leaves, tree = flat_operands((read_all(refs), given.leaves))
            closed, out_tree = traced(body, tree, [aval_of(x) for x in leaves], info)
            opened, consts = closed_over_nothing(closed)
            outs = checkpoint_p.bind(
                *consts, *leaves, jaxpr=opened, policy=policy, prevent_cse=bool(prevent_cse), name=info.function
            )
            out, values = out_tree.unflatten(outs)
            write_all(refs, values)
            return out

        return with_refs(run)

    return call


remat = checkpoint


def checkpoint_name(x: Any, name: str) -> Any:
    """``x`` (a pytree), known to policies by ``name``."""
    return tree_map(lambda leaf: named(leaf, name), x)


def _is_contraction(primitive: Any) -> bool:
    return bool(primitive.family == "contraction")


@final
class _Policies:
    """``jax.checkpoint_policies``: functions of (primitive, *types, **parameters) that say whether a value is saved."""

    @staticmethod
    def everything_saveable(*_: Any, **__: Any) -> bool:
        """Save all."""
        return True

    @staticmethod
    def nothing_saveable(*_: Any, **__: Any) -> bool:
        """Save none."""
        return False

    @staticmethod
    def dots_saveable(primitive: Any, *_: Any, **__: Any) -> bool:
        """Save products."""
        return _is_contraction(primitive)

    checkpoint_dots = dots_saveable

    @staticmethod
    def dots_with_no_batch_dims_saveable(primitive: Any, *_: Any, **params: Any) -> bool:
        """Save products without batch axes."""
        return _is_contraction(primitive) and params["dimension_numbers"][1] == ((), ())

    checkpoint_dots_with_no_batch_dims = dots_with_no_batch_dims_saveable

    @staticmethod
    def save_only_these_names(*names: str) -> Callable[..., bool]:
        """Save values named by ``checkpoint_name`` with one of ``names``."""
        return lambda primitive, *_, **params: is_name(primitive) and params["name"] in names

    @staticmethod
    def save_any_names_but_these(*names: str) -> Callable[..., bool]:
        """Save named values, but for ``names``."""
        return lambda primitive, *_, **params: is_name(primitive) and params["name"] not in names

    @staticmethod
    def save_anything_except_these_names(*names: str) -> Callable[..., bool]:
        """Save all but values named one of ``names``."""
        return lambda primitive, *_, **params: not (is_name(primitive) and params["name"] in names)

    @staticmethod
    def save_from_both_policies(first: Callable[..., bool], second: Callable[..., bool]) -> Callable[..., bool]:
        """Save what either policy saves."""
        return lambda *args, **params: first(*args, **params) or second(*args, **params)


checkpoint_policies = _Policies()


def saved_residuals(f: Callable[..., Any], *args: Any, **kwargs: Any) -> list[tuple[Any, str]]:
    """The values that ``f``'s backward pass keeps: (type, where it comes from)."""
    leaves, tree = flat_operands((args, kwargs))
    out: list[Any] = []
    active = [has_tangent(aval_of(x)) for x in leaves]
    info = debug_info_of(f, args, kwargs)

    def residuals(*xs: Any) -> list[Any]:
        _, closed, _ = linearize(flat_function(lambda a, k: f(*a, **k), tree, out), xs, active, context.trace)
        return list(closed.consts)

    closed = make_jaxpr(residuals)(*leaves)
    makers = {v: e for e in closed.eqns for v in e.outvars if isinstance(v, Var)}
    names = dict(zip(closed.jaxpr.invars, info.argument_names, strict=False))
    report: list[tuple[Any, str]] = []
    for atom in dict.fromkeys(a for a in closed.jaxpr.outvars if isinstance(a, Var)):
        if atom in makers:
            eqn = makers[atom]
            report.append((atom.aval, f"output of {eqn.primitive.name} from {eqn.source.summary()}"))
        elif atom in names:
            report.append((atom.aval, f"from the argument {names[atom]}"))
        else:
            report.append((atom.aval, "from a constant"))
    return report


def print_saved_residuals(f: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Prints the values that ``f``'s backward pass keeps, with their bytes."""
    for aval, where in saved_residuals(f, *args, **kwargs):
        print(f"{aval.short()} ({aval.nbytes} bytes) {where}")
