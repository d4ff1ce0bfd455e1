"""Functions with batching rules of the user's own: ``custom_vmap`` and ``sequential_vmap``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, final

from jaxlite.core.avals import aval_of
from jaxlite.core.pytree import PyTreeDef, tree_flatten, tree_map
from jaxlite.interpreters.batch import one_example
from jaxlite.interpreters.stage import stage
from jaxlite.lax.control.custom_vmap import custom_vmap_call_p
from jaxlite.lax.control.mapping import map as map_sequentially
from jaxlite.transforms.arguments import check_callable, flat_function, flat_operands
from jaxlite.transforms.custom import bound_arguments


@final
class custom_vmap:
    """A function whose behaviour under ``vmap`` is given by ``def_vmap``.

    >>> import jaxlite as jax, jaxlite.numpy as jnp
    >>> @custom_vmap
    ... def f(x):
    ...     return x + 1
    >>> @f.def_vmap
    ... def rule(axis_size, in_batched, x):
    ...     return x + 10, in_batched[0]
    >>> jax.vmap(f)(jnp.zeros(2))
    Array([10., 10.], dtype=float32)
    """

    def __init__(self, fun: Callable[..., Any]) -> None:
        check_callable(fun, "custom_vmap")
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.vmap_rule: Callable[..., Any] | None = None

    def def_vmap(self, vmap_rule: Callable[..., Any]) -> Callable[..., Any]:
        """Sets the rule: ``vmap_rule(axis_size, in_batched, *args)`` gives results and, in a tree like theirs, which of
        them are batched (along their first axis); ``in_batched`` is such a tree of the arguments."""
        check_callable(vmap_rule, "def_vmap")
        self.vmap_rule = vmap_rule
        return vmap_rule

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.vmap_rule is None:
            name = getattr(self.fun, "__name__", "function")
            raise AttributeError(f"No batching rule defined for custom_vmap function {name} using def_vmap")
        leaves, in_tree = flat_operands(tuple(bound_arguments(self.fun, args, kwargs)))
        out: list[PyTreeDef] = []
        call = flat_function(self.fun, in_tree, out)
        rule = functools.partial(self._flat_rule, in_tree, call, out)
        results = custom_vmap_call_p.bind(*leaves, call=call, rule=rule, num_consts=0)
        return out[0].unflatten(results)

    def _flat_rule(
        self,
        in_tree: PyTreeDef,
        call: Callable[..., list[Any]],
        out: list[PyTreeDef],
        size: int,
        batched: Sequence[bool],
        *values: Any,
    ) -> tuple[list[Any], list[bool]]:
        assert self.vmap_rule is not None
        name = getattr(self.vmap_rule, "__name__", "the vmap rule")
        flags = list(in_tree.unflatten(batched))
        pair = self.vmap_rule(size, flags, *in_tree.unflatten(values))
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise TypeError(
                f"The vmap rule {name} must give a pair (results, which of them are batched), "
                f"got {type(pair).__name__}."
            )
        results, tree = flat_operands(pair[0], "result of the vmap rule")
        which, flag_tree = tree_flatten(pair[1])
        if not out:  # the function itself has not run: its trace says what its result is like
            stage(call, [one_example(aval_of(v), 0 if b else None) for v, b in zip(values, batched, strict=True)])
        if tree != out[0]:
            raise ValueError(
                f"structure of output returned by custom vmap rule {name} {tree} is not that of the "
                f"function's own, {out[0]}."
            )
        if flag_tree != tree:
            raise ValueError(
                f"structure of output batching flags of custom vmap rule {name}, {flag_tree}, is not that "
                f"of its output, {tree}."
            )
        for result, flag in zip(results, which, strict=True):
            shape = aval_of(result).shape
            if flag and (not shape or shape[0] != size):
                raise ValueError(
                    f"The vmap rule {name} says that a result of shape {shape} is batched, so its first axis "
                    f"must have the length {size}."
                )
        out[:] = [tree]
        return results, [bool(f) for f in which]


def sequential_vmap(f: Callable[..., Any]) -> custom_vmap:
    """``f`` with a batching rule that runs the examples one after the other, by ``lax.map``.

    >>> import jaxlite as jax, jaxlite.numpy as jnp
    >>> jax.vmap(sequential_vmap(lambda x: x * 2))(jnp.arange(3.0))
    Array([0., 2., 4.], dtype=float32)
    """
    mapped = custom_vmap(f)

    @mapped.def_vmap
    def rule(axis_size: int, in_batched: Any, *args: Any) -> tuple[Any, Any]:
        leaves, tree = tree_flatten(args)
        flags = tree_flatten(tuple(in_batched))[0]

        def one(chosen: Sequence[Any]) -> Any:
            given = iter(chosen)
            return f(*tree.unflatten([next(given) if b else x for x, b in zip(leaves, flags, strict=True)]))

        out = map_sequentially(one, [x for x, b in zip(leaves, flags, strict=True) if b])
        return out, tree_map(lambda _: True, out)

    return mapped
