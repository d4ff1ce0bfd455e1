"""``pmap``: a function of examples, one on each device, with collectives over them: ``jit`` of ``vmap`` where all
devices share memory."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from jaxlite.core.avals import aval_of
from jaxlite.core.errors import refuse
from jaxlite.core.pytree import broadcast_prefix, tree_leaves
from jaxlite.lax.convert import operand_of
from jaxlite.transforms.arguments import check_callable
from jaxlite.transforms.batching import vmap
from jaxlite.transforms.device import local_devices
from jaxlite.transforms.jit import jit


def pmap(
    fun: Callable[..., Any],
    axis_name: Any = None,
    *,
    in_axes: Any = 0,
    out_axes: Any = 0,
    static_broadcasted_argnums: int | Sequence[int] = (),
    devices: Sequence[Any] | None = None,
    backend: str | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Sequence[int] = (),
    global_arg_shapes: Any = None,
) -> Callable[..., Any]:
    """``fun`` for each of up to as many examples as there are devices, compiled.

    ``ValueError`` where there are more examples than devices, or no mapped argument.

    >>> import jaxlite.numpy as jnp
    >>> pmap(lambda x: x * 2)(jnp.ones((1, 3)))
    Array([[2., 2., 2.]], dtype=float32)
    """
    refuse("pmap", "global_arg_shapes", global_arg_shapes, None, "there is one process")
    check_callable(fun, "pmap")
    static = (
        (static_broadcasted_argnums,)
        if isinstance(static_broadcasted_argnums, int)
        else tuple(static_broadcasted_argnums)
    )
    available = list(local_devices(backend=backend) if devices is None else devices)
    axes = tuple(in_axes) if isinstance(in_axes, list) else in_axes

    def batched(*args: Any) -> Any:
        fixed = {n % len(args): args[n] for n in static}
        dynamic = [a for n, a in enumerate(args) if n not in fixed]
        own = (
            axes if not isinstance(axes, tuple) or not fixed else tuple(a for n, a in enumerate(axes) if n not in fixed)
        )

        def one(*values: Any) -> Any:
            given = iter(values)
            return fun(*[fixed[n] if n in fixed else next(given) for n in range(len(args))])

        return vmap(one, own, out_axes, axis_name=axis_name, axis_size=axis_size)(*dynamic)

    compiled = jit(batched, static_argnums=static or None, donate_argnums=donate_argnums or None)

    @functools.wraps(fun, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            raise TypeError(f"pmap takes positional arguments, got {sorted(kwargs)}: pass them by position.")
        _check_examples(args, {n % len(args) for n in static} if args else set(), axes, axis_size, len(available))
        return compiled(*args)

    return call


def _check_examples(args: tuple[Any, ...], static: set[int], axes: Any, axis_size: int | None, available: int) -> None:
    """``ValueError`` where examples are missing, or more than ``available``."""
    dynamic = tuple(a for n, a in enumerate(args) if n not in static)
    own = tuple(a for n, a in enumerate(axes) if n not in static) if isinstance(axes, tuple) else axes
    dims = broadcast_prefix(own, dynamic, "pmap in_axes")
    leaves = tree_leaves(dynamic)
    sizes = {aval_of(operand_of(x)).shape[d] for x, d in zip(leaves, dims, strict=True) if d is not None and _has(x, d)}
    if not sizes and axis_size is None:
        raise ValueError("pmap requires at least one argument with a mapped axis.")
    count = max(sizes | ({axis_size} if axis_size is not None else set()))
    if count > available:
        raise ValueError(
            f"compiling computation that requires {count} logical devices, but only {available} devices are available: "
            f"set jax_num_cpu_devices to {count} before anything else (JAX_NUM_CPU_DEVICES={count} in the environment)."
        )


def _has(x: Any, axis: int) -> bool:
    rank = aval_of(operand_of(x)).ndim
    return -rank <= axis < rank
