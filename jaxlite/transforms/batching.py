"""``vmap``: a function of examples becomes one of batches."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

from jaxlite.core.avals import aval_of, is_valid
from jaxlite.core.context import context, context_kept
from jaxlite.core.errors import refuse
from jaxlite.core.primitive import AxisData
from jaxlite.core.pytree import broadcast_prefix, tree_flatten, tree_leaves
from jaxlite.core.ref import CapturedRef, Ref, away, ref_type
from jaxlite.core.tracebacks import boundary
from jaxlite.interpreters.batch import batch, place_axis
from jaxlite.lax.convert import operand_of
from jaxlite.transforms.arguments import check_callable, debug_info_of, flat_function


def vmap(
    fun: Callable[..., Any],
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_name: Any = None,
    axis_size: int | None = None,
    spmd_axis_name: Any = None,
    sum_match: bool = False,
) -> Callable[..., Any]:
    """``fun`` over a batch: ``in_axes`` says for each argument (a tree prefix) which axis runs over it, None for none.

    >>> import jaxlite.numpy as jnp
    >>> vmap(lambda x, y: x @ y, in_axes=(0, None))(jnp.ones((4, 3)), jnp.ones(3)).shape
    (4,)
    """
    refuse("vmap", "spmd_axis_name", spmd_axis_name, None, "there is no sharding")
    refuse("vmap", "sum_match", sum_match, False, "there is no sharding")
    check_callable(fun, "vmap")
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if not all(_is_axis(leaf) for leaf in tree_leaves(in_axes)):
        raise TypeError(
            "vmap in_axes must be an int, None, or a tuple of entries corresponding to the "
            f"positional arguments passed to the function, but got {in_axes}."
        )
    if not all(_is_axis(leaf) for leaf in tree_leaves(out_axes)):
        raise TypeError(
            "vmap out_axes must be an int, None, or a (nested) container with those types as "
            f"leaves, but got {out_axes}."
        )

    @boundary
    @functools.wraps(fun, updated=())
    def batched(*args: Any, **kwargs: Any) -> Any:
        if isinstance(in_axes, tuple) and len(in_axes) != len(args):
            raise ValueError(
                "vmap in_axes must be an int, None, or a tuple of entries corresponding to the "
                "positional arguments passed to the function, "
                f"but got len(in_axes)={len(in_axes)}, len(args)={len(args)}."
            )
        leaves, tree = tree_flatten((args, kwargs))
        axes = broadcast_prefix((in_axes, 0), (args, kwargs), "vmap in_axes")
        names = debug_info_of(fun, args, kwargs).argument_names
        names = names if len(names) == len(leaves) else tuple(f"number {i}" for i in range(len(leaves)))
        refs = {i: x for i, (x, a) in enumerate(zip(leaves, axes, strict=True)) if type(x) is Ref and a is not None}
        _refuse_twice(leaves, refs, names)
        leaves = [x.read() if i in refs else x for i, x in enumerate(leaves)]
        leaves = [_operand(x, a, n) for x, a, n in zip(leaves, axes, names, strict=True)]
        dims = [_normal(a, x, n) for a, x, n in zip(axes, leaves, names, strict=True)]
        size = _batch_size(leaves, dims, names, axis_size)
        out: list[Any] = []
        flat = flat_function(lambda a, k: fun(*a, **k), tree, out)
        if refs:
            results, out_dims = _batch_with_refs(flat, leaves, dims, AxisData(axis_name, size), refs, names)
        else:
            results, out_dims = batch(flat, leaves, dims, AxisData(axis_name, size), context.trace)
        wanted = broadcast_prefix(out_axes, out[0].unflatten(results), "vmap out_axes")
        return out[0].unflatten([_placed(r, d, w, size) for r, d, w in zip(results, out_dims, wanted, strict=True)])

    return batched


def _refuse_twice(leaves: list[Any], refs: dict[int, Ref], names: tuple[str, ...]) -> None:
    """``ValueError`` where a mapped ref is also passed as another argument: neither would see the other's writes."""
    for i, ref in refs.items():
        others = [names[j] for j, x in enumerate(leaves) if x is ref and j != i]
        if others:
            raise ValueError(
                f"vmap: one {ref_type(ref.type)} is passed as the argument {names[i]} and as {', '.join(others)}.  "
                "Pass it once."
            )


@context_kept
def _batch_with_refs(
    flat: Callable[..., list[Any]], leaves: list[Any], dims: list[int | None], axis: AxisData, refs: dict[int, Ref],
    names: tuple[str, ...],
) -> tuple[list[Any], list[int | None]]:  # fmt: skip
    """``batch``, each example with its own part of ``refs`` (by the places of their values among ``leaves``)."""

    def with_own(*values: Any) -> list[Any]:
        own = {i: Ref(values[i]) for i in refs}
        results = flat(*[own.get(i, v) for i, v in enumerate(values)])
        return [*results, *(ref.end() for ref in own.values())]

    try:
        with away(list(refs.values())):
            results, out_dims = batch(with_own, leaves, dims, axis, context.trace)
    except CapturedRef as error:
        for i, ref in refs.items():
            if ref is error.ref:
                raise ValueError(
                    f"vmap: one {ref_type(ref.type)} is both closed over and passed as the argument {names[i]}.  "
                    "Pass it once."
                ) from None
        raise
    count = len(results) - len(refs)
    for (i, ref), value, dim in zip(refs.items(), results[count:], out_dims[count:], strict=True):
        ref.write(place_axis(value, dim, axis.size, dims[i] or 0))
    return results[:count], out_dims[:count]


def _operand(leaf: Any, axis: int | None, name: str) -> Any:
    """``leaf`` as the function sees it: any Python object passes where it is not mapped."""
    if axis is None and not is_valid(leaf):
        return leaf
    try:
        return operand_of(leaf)
    except TypeError as error:
        raise TypeError(
            f"vmap maps argument {name} along axis {axis}, but {error} "
            "Pass it by position, with None in in_axes, to have it as it is."
        ) from None


def _is_axis(entry: Any) -> bool:
    return isinstance(entry, int) and not isinstance(entry, bool)


def _normal(axis: int | None, leaf: Any, name: str) -> int | None:
    if axis is None:
        return None
    aval = aval_of(leaf)
    if not -aval.ndim <= axis < aval.ndim:
        raise ValueError(
            f"vmap was requested to map its argument along axis {axis}, which implies that its rank should be at least "
            f"{axis + 1 if axis >= 0 else -axis}, but is only {aval.ndim} (its shape is {aval.shape}): argument {name}."
        )
    return operator.index(axis) % aval.ndim


def _batch_size(leaves: list[Any], dims: list[int | None], names: tuple[str, ...], axis_size: int | None) -> int:
    sizes = [
        (aval_of(x).shape[d], d, name, aval_of(x))
        for x, d, name in zip(leaves, dims, names, strict=True)
        if d is not None
    ]
    if axis_size is not None:
        sizes.append((axis_size, None, "axis_size", None))  # type: ignore[arg-type]
    if not sizes:
        if not leaves:
            raise ValueError(
                "vmap wrapped function must be passed at least one argument containing an array, got empty arguments."
            )
        raise ValueError("vmap must have at least one non-None value in in_axes, or axis_size.")
    distinct = {s[0] for s in sizes}
    if len(distinct) == 1:
        return int(sizes[0][0])
    lines = [
        f"  * one axis had size {n}: axis {d} of argument {name} of type {aval};"
        if d is not None
        else f"  * axis_size was given as {n};"
        for n, d, name, aval in sizes
    ]
    raise ValueError("\n".join(["vmap got inconsistent sizes for array axes to be mapped:", *lines]))


def _placed(result: Any, dim: int | None, wanted: int | None, size: int) -> Any:
    if wanted is None:
        if dim is not None:
            raise ValueError(
                "vmap has mapped output but out_axes is None: the result depends on the batch.  "
                "Give out_axes an int, or reduce the "
                "result over the batch (for example with jax.lax.psum and axis_name)."
            )
        return result
    rank = aval_of(result).ndim + (dim is None)
    if not -rank <= wanted < rank:
        raise ValueError(f"vmap out_axes={wanted} is out of bounds for a result of {rank} axes, the batch's included.")
    return place_axis(result, dim, size, wanted % rank)
