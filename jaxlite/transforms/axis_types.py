"""``auto_axes`` and ``explicit_axes``: functions in which mesh axes are of another type than around them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from jaxlite.core.avals import aval_of
from jaxlite.core.mesh import AbstractMesh, AnyMesh, AxisType, Mesh
from jaxlite.core.mesh_in_use import mesh_in_use
from jaxlite.core.partition_spec import PartitionSpec
from jaxlite.core.pytree import broadcast_prefix, tree_flatten, tree_map
from jaxlite.core.shardings import NamedSharding
from jaxlite.core.tracebacks import boundary
from jaxlite.lax.convert import operand_of
from jaxlite.lax.layout.resharding import laid_out


def auto_axes(
    f: Callable[..., Any] | None = None, /, *, axes: str | tuple[str, ...] | None = None, out_sharding: Any = None
) -> Any:
    """``f``, in which the compiler chooses how arrays lie along ``axes`` (None: all of the mesh).

    Results are laid out as ``out_sharding`` (a tree prefix of them) says.

    >>> import jaxlite as jax, jaxlite.numpy as jnp
    >>> with jax.set_mesh(jax.make_mesh((1,), ("x",))):
    ...     jax.typeof(auto_axes(lambda a: a @ a.T, out_sharding=jax.P("x"))(jnp.ones((4, 2))))
    ShapedArray(float32[4@x,4])
    """
    return _in_other_types("auto_axes", f, axes, None, out_sharding, AxisType.Auto)


def explicit_axes(
    f: Callable[..., Any] | None = None, /, *, axes: str | tuple[str, ...] | None = None, in_sharding: Any = None
) -> Any:
    """``f``, in which types say how arrays lie along ``axes`` (None: all of the mesh); its arguments are first
    laid out as ``in_sharding`` (a tree prefix of them) says."""
    return _in_other_types("explicit_axes", f, axes, in_sharding, None, AxisType.Explicit)


def _in_other_types(
    name: str, f: Callable[..., Any] | None, axes: Any, in_sharding: Any, out_sharding: Any, kind: AxisType
) -> Any:
    if f is None:
        return lambda g: _in_other_types(name, g, axes, in_sharding, out_sharding, kind)

    @boundary
    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        outer: Mesh | AbstractMesh = mesh_in_use.value
        if outer.empty:
            raise ValueError(f"{name} needs a mesh: set one by jax.set_mesh(mesh).")
        inner = outer.update(axis_types=_types(name, outer, axes, kind))
        given = tree_map(lambda x: _over(operand_of(x), inner), (args, kwargs))
        with mesh_in_use(inner):
            if in_sharding is not None:
                given = (_laid(given[0], in_sharding, inner, f"{name} in_sharding"), given[1])
            result = f(*given[0], **given[1])
        back = tree_map(lambda x: _over(operand_of(x), outer), result)
        return back if out_sharding is None else _laid(back, out_sharding, outer, f"{name} out_sharding")

    return call


def _types(name: str, mesh: AnyMesh, axes: Any, kind: AxisType) -> tuple[AxisType, ...]:
    chosen = mesh.axis_names if axes is None else (axes,) if isinstance(axes, str) else tuple(axes)
    unknown = [n for n in chosen if n not in mesh.axis_names]
    if unknown:
        raise ValueError(f"{name}: {unknown[0]!r} is no axis of the mesh, whose axes are {mesh.axis_names}.")
    return tuple([kind if n in chosen else t for n, t in zip(mesh.axis_names, mesh.axis_types, strict=True)])


def _over(value: Any, mesh: AnyMesh) -> Any:
    """``value``, which lies as it does, over the same devices under other types of axes."""
    have = aval_of(value).sharding
    if have is None or have.mesh == mesh or have.mesh.axis_names != mesh.axis_names:
        return value
    known = mesh
    if isinstance(have.mesh, Mesh) and not isinstance(mesh, Mesh):
        known = have.mesh.update(axis_types=mesh.axis_types)
    return laid_out(value, NamedSharding(known, have.spec))


def _laid(values: Any, shardings: Any, mesh: AnyMesh, what: str) -> Any:
    leaves, tree = tree_flatten(values)
    wanted = broadcast_prefix(shardings, values, what)
    out = []
    for leaf, sharding in zip(leaves, wanted, strict=True):
        if isinstance(sharding, PartitionSpec):
            sharding = NamedSharding(mesh, sharding)
        if sharding is not None and not isinstance(sharding, NamedSharding):
            raise TypeError(f"{what} takes PartitionSpecs and shardings, got {sharding!r}.")
        out.append(leaf if sharding is None else laid_out(operand_of(leaf), sharding))
    return tree.unflatten(out)
