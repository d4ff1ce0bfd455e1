"""Resharding: values laid out otherwise over a mesh.  Elements stay what they are, so one device does nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, final

import numpy as np

from jaxlite.core.array import Array
from jaxlite.core.avals import ShapedArray, aval_of
from jaxlite.core.mesh import AbstractMesh, AxisType
from jaxlite.core.mesh_in_use import named
from jaxlite.core.partition_spec import PartitionSpec
from jaxlite.core.primitive import AxisData, Sample
from jaxlite.core.propagation import fitting, in_program
from jaxlite.core.pytree import broadcast_prefix, keystr, tree_flatten, tree_flatten_with_path
from jaxlite.core.shardings import NamedSharding, Sharding, SingleDeviceSharding
from jaxlite.core.trace import Tracer
from jaxlite.lax.convert import operand_of
from jaxlite.lax.families.elementwise import Elementwise

_ANYWHERE = NamedSharding(AbstractMesh((1,), ("x",), AxisType.Auto), PartitionSpec("x"))


class _Laid(Elementwise):
    """Base of primitives that give their operand under the sharding that they have as a parameter."""

    accepts = "biufK"
    exact = True
    piecewise_linear = True
    types_sharding = True
    parameter: ClassVar[str]

    def abstract_eval(self, *avals: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        return (avals[0].update(sharding=fitting(params[self.parameter], avals[0])),)

    def scalar(self, e: Any, *xs: Any, **params: Any) -> Any:
        return xs[0]

    def numpy(self, *xs: Any, **params: Any) -> Any:
        return np.asarray(xs[0])

    def partials(self, out: Any, *xs: Any, **params: Any) -> Any:
        return (lambda t: self.bind(t, **params),)

    def pull_back(self, cotangent: Any, *operands: Any, **params: Any) -> list[Any]:
        return [cotangent]  # laid out as the operand is by whoever pulls back

    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[int | None], /, **params: Any
    ) -> tuple[list[Any], list[int | None]]:
        (dim,) = dims
        assert dim is not None
        whole = aval_of(operands[0])
        lies = None if whole.sharding is None else whole.sharding.spec.axes_of(dim)
        asked = fitting(params[self.parameter], whole.without_axis(dim)).with_axis(
            dim, lies or PartitionSpec.UNCONSTRAINED
        )
        return [self.bind(operands[0], **{**params, self.parameter: asked})], [dim]


@final
class Reshard(_Laid):
    name, parameter = "reshard", "dst_sharding"
    samples = (Sample(((3, 4),), {"dst_sharding": _ANYWHERE}),)


@final
class ShardingConstraint(_Laid):
    """A wish to the compiler, of automatic axes."""

    name, parameter = "sharding_constraint", "sharding"
    samples = (Sample(((3, 4),), {"sharding": _ANYWHERE}),)

    def abstract_eval(self, *avals: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        (aval,) = avals
        asked = fitting(params["sharding"], aval)
        explicit = set(asked.mesh.explicit_axes)
        have = aval.sharding
        for position in range(aval.ndim if explicit else 0):
            own = tuple(n for n in (have.spec.axes_of(position) if have else ()) if n in explicit)
            if own != tuple(n for n in asked.spec.axes_of(position) if n in explicit):
                raise AssertionError(
                    "`with_sharding_constraint` acts as an assert when all axes of mesh are of type `Explicit`. The "
                    f"array sharding: {have} did not match the sharding provided: {asked}. Please use "
                    "`jax.sharding.reshard` to shard your input to the sharding you want."
                )
        return (in_program(aval.update(sharding=asked)),)


reshard_p, sharding_constraint_p = Reshard(), ShardingConstraint()


def laid_out(value: Any, sharding: NamedSharding) -> Any:
    """``value`` under ``sharding``; itself where it lies so already."""
    aval = aval_of(value)
    lies_so = aval.sharding is not None and aval.sharding == fitting(sharding, aval)
    return value if lies_so else reshard_p.bind(value, dst_sharding=sharding)


def constrained(value: Any, sharding: NamedSharding) -> Any:
    """``value``, wished to lie so."""
    out = sharding_constraint_p.bind(value, sharding=sharding)
    lies_anywhere = isinstance(out, Array) and not sharding.mesh.explicit_axes
    return out.of_type(out.aval.update(sharding=sharding)) if lies_anywhere else out


def for_leaves(given: Any, tree: Any, what: str) -> list[Any]:
    """For each leaf what ``given``, a tree prefix, says of it."""
    if given is None or isinstance(given, (Sharding, PartitionSpec)) or not isinstance(given, (tuple, list, dict)):
        return [given] * len(tree_flatten(tree)[0])
    return broadcast_prefix(given, tree, f"{what} shardings", lambda s: s is None or isinstance(s, Sharding))


def check_splits(
    what: str, path: str, aval: ShapedArray, sharding: NamedSharding, *, may_be_uneven: bool = False
) -> None:
    """``ValueError`` where the spec is too long for an array, or its parts do not come out even."""
    who = f"{what} of x{path}, {aval.short()}, to {sharding.spec} on {sharding.mesh}"
    try:
        sharding.parts(aval.ndim)
        if not may_be_uneven:
            sharding.shard_shape(aval.shape)
    except ValueError as error:
        raise type(error)(f"{who}: {error}") from None


def reshard(xs: Any, out_shardings: Any) -> Any:
    """``xs`` (a pytree) laid out as shardings or specs over the mesh in use say; values stay what they are.

    >>> import jaxlite as jax, jaxlite.numpy as jnp
    >>> mesh = jax.make_mesh((1,), ("x",))
    >>> with jax.set_mesh(mesh):
    ...     jax.typeof(jax.reshard(jnp.ones((4, 2)), jax.P("x")))
    ShapedArray(float32[4@x,2])
    """
    return _over_leaves(xs, out_shardings, "reshard", laid_out)


def with_sharding_constraint(x: Any, shardings: Any) -> Any:
    """``x`` (a pytree), which the compiler lays out so over automatic axes; over explicit ones a check."""
    return _over_leaves(x, shardings, "with_sharding_constraint", constrained)


def _over_leaves(x: Any, shardings: Any, what: str, change: Callable[[Any, NamedSharding], Any]) -> Any:
    leaves, tree = tree_flatten(x)
    paths = [path for path, _ in tree_flatten_with_path(x)[0]]
    out = []
    for leaf, target, path in zip(leaves, for_leaves(shardings, x, what), paths, strict=True):
        value = operand_of(leaf)
        if target is None or isinstance(target, SingleDeviceSharding):
            out.append(value)
            continue
        sharding = named(target, what)
        wished = change is constrained and isinstance(value, Tracer) and not sharding.mesh.explicit_axes
        check_splits(what, keystr(path), aval_of(value), sharding, may_be_uneven=wished)
        out.append(change(value, sharding))
    return tree.unflatten(out)
