"""``jit(in_shardings=, out_shardings=)``: arguments laid out before a call, results as part of the program."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, final

from jaxlite.core.array import Array
from jaxlite.core.avals import aval_of
from jaxlite.core.mesh_in_use import mesh_in_use
from jaxlite.core.partition_spec import PartitionSpec
from jaxlite.core.pytree import broadcast_prefix, keystr, tree_flatten, tree_flatten_with_path, tree_leaves
from jaxlite.core.shardings import IndivisibleError, NamedSharding, Sharding, SingleDeviceSharding
from jaxlite.lax.convert import operand_of
from jaxlite.lax.layout.resharding import constrained, laid_out
from jaxlite.transforms.placing import device_put


@final
class InShardings:
    """What ``in_shardings`` says of positional arguments."""

    def __init__(self, given: Any, function: Callable[..., Any]) -> None:
        self._given = _checked("in_shardings", given)
        self._name = getattr(function, "__name__", "the function")

    def place(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """The arguments, laid out; ``ValueError`` where one lies otherwise, does not split, or is a keyword."""
        if kwargs:
            raise ValueError("jit does not support kwargs when in_shardings is specified: give them by position.")
        given = self._given
        if isinstance(given, (tuple, list)) and len(given) != len(args):
            raise ValueError(
                "jit in_shardings specification must be a tree prefix of the positional arguments tuple. In "
                f"particular, it must be a Sharding, a PartitionSpec, or a tuple of length {len(args)}, got one of "
                f"length {len(given)}."
            )
        leaves, tree = tree_flatten(args)
        paths = [path for path, _ in tree_flatten_with_path(args)[0]]
        wanted = broadcast_prefix(tuple(given) if isinstance(given, list) else given, args, "jit in_shardings")
        placed = [
            x if s is None else self._placed(x, named_for_jit(s, "in_shardings"), keystr(p))
            for x, s, p in zip(leaves, wanted, paths, strict=True)
        ]
        return tree.unflatten(placed)  # type: ignore[no-any-return]

    def _placed(self, value: Any, sharding: NamedSharding | SingleDeviceSharding, path: str) -> Any:
        aval = aval_of(operand_of(value))
        have = aval.sharding if isinstance(value, Array) else None
        if have is not None and not have.is_equivalent_to(sharding, aval.ndim):
            raise ValueError(
                "Sharding passed to jit does not match the sharding on the respective arg. Got jit sharding: "
                f"{sharding},\narg sharding: {have} for arg type: {aval}: jax.device_put(x, sharding) first, or leave "
                "in_shardings out."
            )
        check_even("arguments", path, aval.shape, sharding)
        return device_put(value, sharding)


def laying_out(function: Callable[..., Any], out_shardings: Any) -> Callable[..., Any]:
    """``function``, whose results (a tree that ``out_shardings`` is a prefix of) are laid out so."""
    given = _checked("out_shardings", out_shardings)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        leaves, tree = tree_flatten(result)
        paths = [path for path, _ in tree_flatten_with_path(result)[0]]
        wanted = broadcast_prefix(given, result, "jit out_shardings")
        return tree.unflatten(
            [
                x if s is None else _laid(x, named_for_jit(s, "out_shardings"), keystr(p))
                for x, s, p in zip(leaves, wanted, paths, strict=True)
            ]
        )

    return call


def _laid(value: Any, sharding: NamedSharding | SingleDeviceSharding, path: str) -> Any:
    if isinstance(sharding, SingleDeviceSharding):
        return value
    operand = operand_of(value)
    check_even("outputs", f"result{path}", aval_of(operand).shape, sharding)
    return (laid_out if sharding.mesh.explicit_axes else constrained)(operand, sharding)


def check_even(what: str, path: str, shape: tuple[int, ...], sharding: Sharding) -> None:
    """``ValueError`` that names the path of what does not split."""
    try:
        sharding.shard_shape(shape)
    except ValueError as error:
        kind = type(error) if isinstance(error, IndivisibleError) else ValueError
        raise kind(f"One of jit's {what} with pytree key path {path} was given a sharding that {error}") from None


def named_for_jit(sharding: Any, what: str) -> NamedSharding | SingleDeviceSharding:
    """A sharding, or that of a spec over the mesh in use; ``RuntimeError`` where there is none."""
    if isinstance(sharding, (NamedSharding, SingleDeviceSharding)):
        return sharding
    mesh = mesh_in_use.value
    if mesh.empty:
        raise RuntimeError(
            f"jit requires a non-empty mesh in context if you are passing `PartitionSpec`s to {what}. You can define a "
            f"context mesh via `jax.set_mesh(mesh)`. Alternatively, provide `Sharding`s to {what}."
        )
    return NamedSharding(mesh, sharding)


def _checked(what: str, given: Any) -> Any:
    for leaf in tree_leaves(given):
        if not isinstance(leaf, (NamedSharding, SingleDeviceSharding, PartitionSpec)):
            raise ValueError(f"jit {what} takes shardings, PartitionSpecs and None, got {leaf!r}.")
    return given
