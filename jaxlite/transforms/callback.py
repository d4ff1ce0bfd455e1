"""Python functions called from traced programs: ``pure_callback`` and ``io_callback``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jaxlite.core.avals import ShapedArray, aval_of
from jaxlite.core.device import check_placement
from jaxlite.core.pytree import tree_flatten
from jaxlite.lax.control.callback import Callback, io_callback_p, pure_callback_p
from jaxlite.transforms.arguments import check_callable, flat_operands
from jaxlite.transforms.jaxprs import abstract

METHODS = (None, "sequential", "sequential_unrolled", "expand_dims", "broadcast_all")


def bind_callback(
    primitive: Callback, function: Callable[..., Any], result_shapes: Any, args: Any, kwargs: Any, **params: Any
) -> Any:
    """Binds ``primitive`` on the leaves of the arguments; gives the tree of results that ``result_shapes``
    describes."""
    check_callable(function, primitive.name)
    leaves, in_tree = flat_operands((args, kwargs))
    shapes, out_tree = tree_flatten(result_shapes)
    avals: tuple[ShapedArray, ...] = tuple(abstract(s).strip_weak_type() for s in shapes)

    def flat(*arrays: Any) -> list[Any]:
        given, keywords = in_tree.unflatten(arrays)
        results, tree = tree_flatten(function(*given, **keywords))
        if tree != out_tree:
            raise RuntimeError(f"The callback gave a result of structure {tree}, but promised {out_tree}.")
        return results

    operand_avals = tuple(aval_of(x) for x in leaves)
    outs = primitive.bind(*leaves, callback=flat, operand_avals=operand_avals, result_avals=avals, **params)
    return out_tree.unflatten(outs)


def pure_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    vmap_method: str | None = None,
    **kwargs: Any,
) -> Any:
    """Calls a Python function without side effects; ``result_shape_dtypes`` says what it gives (a tree of shapes and
    dtypes).

    It may be called any number of times, or not at all where nobody needs its result.  Under ``vmap``: ``vmap_method``
    "sequential", "broadcast_all" or "expand_dims".

    >>> import numpy as np
    >>> from jaxlite import ShapeDtypeStruct
    >>> pure_callback(np.sin, ShapeDtypeStruct((), "float32"), 0.0)
    Array(0., dtype=float32)
    """
    check_placement("pure_callback", sharding=sharding)
    if vmap_method not in METHODS:
        raise ValueError(f"vmap_method must be one of {METHODS}, got {vmap_method!r}.")
    return bind_callback(pure_callback_p, callback, result_shape_dtypes, args, kwargs, vmap_method=vmap_method)


def io_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    ordered: bool = False,
    **kwargs: Any,
) -> Any:
    """Calls a Python function with side effects, once per execution; ``ordered`` ones in the order of the program."""
    check_placement("io_callback", sharding=sharding)
    return bind_callback(io_callback_p, callback, result_shape_dtypes, args, kwargs, ordered=bool(ordered))
