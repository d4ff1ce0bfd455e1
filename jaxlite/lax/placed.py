"""``placed``: what ``out_sharding`` and ``device`` mean, said once for all functions that have them.

Such a function computes as if nothing were asked; what is ambiguous about shardings is resolved meanwhile, and the
result is laid out as asked.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from jaxlite.core.avals import aval_of
from jaxlite.core.context import context, context_kept
from jaxlite.core.device import CPU
from jaxlite.core.mesh_in_use import named
from jaxlite.core.partition_spec import PartitionSpec
from jaxlite.core.primitive import get
from jaxlite.core.pytree import tree_map
from jaxlite.core.shardings import Sharding, SingleDeviceSharding

F = TypeVar("F", bound=Callable[..., Any])
KEYWORDS = ("out_sharding", "device")


def placed(function: F, called: str = "") -> F:
    """``function`` with the keywords ``out_sharding`` (a spec over the mesh in use, or a sharding) and ``device`` (the
    CPU, or a sharding); messages name it as it is ``called``."""
    places = _places(function)
    name = called or function.__name__.lstrip("_")

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        for place, keyword in places:
            if len(args) > place:
                kwargs[keyword], args = args[place], args[:place]
        if not kwargs:
            return function(*args)
        wanted = {k: kwargs.pop(k) for k in KEYWORDS if kwargs.get(k) is not None}
        if not wanted:
            return function(*args, **kwargs)
        targets = [_target(name, k, v) for k, v in wanted.items()]
        result = _resolving(function, args, kwargs)
        for sharding in targets:
            if sharding is not None:
                result = tree_map(functools.partial(_laid_out, name, sharding), result)
        return result

    return call  # type: ignore[return-value]


def _places(function: Callable[..., Any]) -> list[tuple[int, str]]:
    """Where the keywords stand among the parameters, if they need not be named; the last first."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = inspect.signature(function).parameters.values()
    found = [(n, p.name) for n, p in enumerate(parameters) if p.name in KEYWORDS and p.kind is kind]
    return found[::-1]


def _target(name: str, keyword: str, given: Any) -> Any:
    """The sharding that is asked for; None where it is the one CPU."""
    if given is CPU or (isinstance(given, SingleDeviceSharding) and given.device is CPU):
        return None
    if isinstance(given, (Sharding, PartitionSpec)):
        return named(given, name)
    raise NotImplementedError(
        f"{name}: {keyword}={given!r} is not supported: all arrays lie on the one CPU, in parts over a mesh of its "
        f"devices.  Leave {keyword} out, or give jax.devices()[0], a PartitionSpec or a NamedSharding."
    )


@context_kept
def _resolving(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    before, context.resolving = context.resolving, True
    result = function(*args, **kwargs)
    context.resolving = before
    return result


def _laid_out(name: str, sharding: Any, value: Any) -> Any:
    try:
        sharding.shard_shape(aval_of(value).shape)
    except ValueError as error:
        raise type(error)(f"{name} with the sharding {sharding.spec} on {sharding.mesh}: {error}") from None
    primitive = get("reshard" if sharding.mesh.explicit_axes else "sharding_constraint")
    parameter = "dst_sharding" if primitive.name == "reshard" else "sharding"
    return primitive.bind(value, **{parameter: sharding})
