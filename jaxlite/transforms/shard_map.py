"""``shard_map``: a function written for one device, applied on every device of a mesh to its part of the arguments.

The function is staged once on types that say along which mesh axes values vary, so that derivatives taken inside it
sum over devices where they must, and results that are said to be the same on all devices are.  In one process, where
all devices share memory, the staged program is then applied to all parts at once, one batch axis for each mesh axis;
collectives are sums and exchanges along these.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, final

from jaxlite.core.avals import ShapedArray, aval_of
from jaxlite.core.context import context
from jaxlite.core.errors import refuse
from jaxlite.core.mesh import AnyMesh
from jaxlite.core.partition_spec import PartitionSpec
from jaxlite.core.pytree import broadcast_prefix, tree_flatten, tree_leaves
from jaxlite.core.tracebacks import boundary
from jaxlite.lax.control.trace_functions import traced
from jaxlite.lax.convert import operand_of
from jaxlite.transforms.all_devices import run_on_all_devices
from jaxlite.transforms.arguments import check_callable, debug_info_of

_UNSET: Any = object()
_WHOLE = PartitionSpec()


def shard_map(
    f: Callable[..., Any] | None = None,
    /,
    *,
    out_specs: Any,
    in_specs: Any = _UNSET,
    mesh: AnyMesh | None = None,
    axis_names: Any = (),
    check_vma: bool = True,
) -> Any:
    """``f`` on every device of ``mesh``: specs (tree prefixes) say how arguments are split and results put together.

    Inside, collectives such as ``lax.psum`` speak of the mesh axes by name, all or those in ``axis_names``.
    ``ValueError`` where an argument does not split evenly, a spec is longer than its array's rank, or (unless
    ``check_vma=False``) a result may differ along a mesh axis that ``out_specs`` does not name.

    >>> import jaxlite as jax, jaxlite.numpy as jnp
    >>> mesh = jax.make_mesh((1,), ("x",))
    >>> total = jax.shard_map(lambda x: jax.lax.psum(x, "x"), mesh=mesh, in_specs=jax.P("x"), out_specs=jax.P())
    >>> total(jnp.arange(3.0))
    Array([0., 1., 2.], dtype=float32)
    """
    if f is None:
        return functools.partial(
            shard_map, out_specs=out_specs, in_specs=in_specs, mesh=mesh, axis_names=axis_names, check_vma=check_vma
        )
    check_callable(f, "shard_map")
    if mesh is None:
        raise ValueError("shard_map takes a mesh: give mesh=jax.make_mesh((n,), ('x',)), as there is none in context.")
    if not isinstance(mesh, AnyMesh):
        raise TypeError(f"shard_map takes a mesh, got {mesh!r}: make one by jax.make_mesh((n,), ('x',)).")
    if in_specs is _UNSET:
        raise TypeError("shard_map takes in_specs: a PartitionSpec for each argument, as in in_specs=(P('x'), P()).")
    mapped = _Mapped(f, mesh, in_specs, out_specs, _manual(mesh, axis_names), check_vma)

    @boundary
    @functools.wraps(f, updated=())
    def call(*args: Any) -> Any:
        return mapped(*args)

    return call


def smap(
    f: Callable[..., Any], /, *, in_axes: Any = 0, out_axes: Any, axis_name: Any, mesh: AnyMesh | None = None
) -> Any:
    """``shard_map`` over one mesh axis, with axis numbers (or None) in the places of specs."""
    refuse("smap", "axis_name", axis_name if isinstance(axis_name, (tuple, list)) else None, None, "it names one axis")

    def spec(axis: int | None) -> PartitionSpec:
        return _WHOLE if axis is None else PartitionSpec(*[None] * axis, axis_name)

    def specs(axes: Any) -> Any:
        return tuple(map(specs, axes)) if isinstance(axes, (tuple, list)) else spec(axes)

    return shard_map(f, mesh=mesh, in_specs=specs(in_axes), out_specs=specs(out_axes), axis_names={axis_name})


def _manual(mesh: AnyMesh, axis_names: Any) -> tuple[Any, ...]:
    """The mesh axes that the function is written for, in the mesh's order."""
    names = {axis_names} if isinstance(axis_names, str) else set(axis_names)
    unknown = [n for n in names if n not in mesh.axis_names]
    if unknown:
        raise ValueError(f"shard_map: axis_names has {unknown[0]!r}, which is no axis of the mesh {mesh.axis_names}.")
    return tuple(n for n in mesh.axis_names if not names or n in names)


@final
class _Mapped:
    """A function and all that ``shard_map`` was told."""

    def __init__(
        self,
        function: Callable[..., Any],
        mesh: AnyMesh,
        in_specs: Any,
        out_specs: Any,
        axes: tuple[Any, ...],
        check: bool,
    ) -> None:
        self.function, self.mesh, self.axes, self.check = function, mesh, axes, check
        self.in_specs = tuple(in_specs) if isinstance(in_specs, list) else in_specs
        self.out_specs = out_specs
        self.name = getattr(function, "__name__", type(function).__name__)
        self.sizes = {n: mesh.shape[n] for n in axes}
        for what, specs in (("in_specs", in_specs), ("out_specs", out_specs)):
            for spec in tree_leaves(specs):
                self._check_names(what, spec)

    def _check_names(self, what: str, spec: Any) -> None:
        if not isinstance(spec, PartitionSpec):
            raise TypeError(
                f"shard_map {what} argument must be a pytree of `jax.sharding.PartitionSpec` instances, but it has "
                f"{spec!r}: write P() for what all devices have whole."
            )
        for name in spec.axes:
            if name not in self.axes:
                raise ValueError(
                    f"shard_map {what} argument must refer to an axis marked as manual ({self.axes}), but:\n\n"
                    f"  {what} refers to {name!r}\n\nCheck the {what} values passed to shard_map."
                )
        if len(set(spec.axes)) < len(spec.axes):
            raise ValueError(f"shard_map {what}: {spec} names a mesh axis twice.")

    def __call__(self, *args: Any) -> Any:
        leaves, tree = tree_flatten(args)
        leaves = [operand_of(x) for x in leaves]
        if context.manual & set(self.axes):
            twice = sorted(map(str, context.manual & set(self.axes)))
            raise ValueError(
                f"shard_map inside shard_map over the same mesh axis {twice[0]!r}: name others in axis_names."
            )
        given = broadcast_prefix(self.in_specs, args, "shard_map in_specs")
        specs = [_WHOLE if s is None else s for s in given]
        info = debug_info_of(self.function, args, {})
        names = (
            info.argument_names
            if len(info.argument_names) == len(leaves)
            else [f"leaf {i}" for i in range(len(leaves))]
        )
        locals_ = [self._local(x, s, n) for x, s, n in zip(leaves, specs, names, strict=True)]
        before = context.manual, context.axis_sizes
        context.manual, context.axis_sizes = before[0] | set(self.axes), {**before[1], **self.sizes}
        try:
            closed, out_tree = traced(self.function, tree, locals_, info)
        finally:
            context.manual, context.axis_sizes = before
        results = out_tree.unflatten(range(out_tree.num_leaves))
        outs = broadcast_prefix(self.out_specs, results, "shard_map out_specs")
        outs = [_WHOLE if s is None else s for s in outs]
        for number, (aval, spec) in enumerate(zip(closed.out_avals, outs, strict=True)):
            self._check_result(aval, spec, number)
        return out_tree.unflatten(run_on_all_devices(closed, leaves, specs, outs, self.sizes))

    def _local(self, value: Any, spec: PartitionSpec, name: str) -> ShapedArray:
        """The type of one device's part of an argument."""
        aval = aval_of(value)
        if len(spec) > aval.ndim:
            raise ValueError(
                f"shard_map applied to the function {self.name!r} was given an in_specs entry which is too long to be "
                f"compatible with the corresponding input value from the function:\n\nin_specs is {spec} which has "
                f"length {len(spec)}, but the passed argument {name} has shape {aval.short()}, which has rank "
                f"{aval.ndim} (and {aval.ndim} < {len(spec)})\n\nRevise the spec to be shorter; for scalars write P()."
            )
        shape = list(aval.shape)
        for axis in range(len(spec)):
            count = math.prod([self.sizes[n] for n in spec.axes_of(axis)])
            if shape[axis] % count:
                raise ValueError(
                    f"shard_map applied to the function {self.name!r} was given argument arrays with axis sizes that "
                    "are not evenly divisible by the corresponding mesh axis sizes:\n\n"
                    f"The mesh given has shape {self.mesh.axis_sizes} with corresponding axis names "
                    f"{self.mesh.axis_names}.\n\nthe argument {name} of shape {aval.short()} corresponds to in_specs "
                    f"of value {spec}, which maps array axis {axis} (of size {shape[axis]}) to mesh axes "
                    f"{spec.axes_of(axis)} (of size {count}), but {count} does not evenly divide {shape[axis]}\n\n"
                    "Consider changing the mesh axis sizes, or padding the input."
                )
            shape[axis] //= count
        return aval.update(shape=tuple(shape), varying=aval.varying | set(spec.axes))

    def _check_result(self, aval: ShapedArray, spec: PartitionSpec, number: int) -> None:
        if len(spec) > aval.ndim:
            raise ValueError(
                f"shard_map applied to the function {self.name!r} was given an out_specs entry which is too long to be "
                f"compatible with the corresponding output value from the function:\n\nout_specs is {spec} which has "
                f"length {len(spec)}, but result {number} has shape {aval.short()}, which has rank {aval.ndim} (and "
                f"{aval.ndim} < {len(spec)})\n\nRevise the spec to be shorter; add an axis to a scalar that is not the "
                "same on all devices, so that the scalars can be put together."
            )
        differs = (aval.varying & set(self.axes)) - set(spec.axes)
        if self.check and differs:
            named = "{" + ", ".join(sorted(map(str, spec.axes))) + "}"
            raise ValueError(
                f"shard_map applied to the function {self.name!r} was given out_specs which require replication which "
                f"can't be statically inferred given the mesh:\n\nThe mesh given has shape {self.mesh.axis_sizes} with "
                f"corresponding axis names {self.mesh.axis_names}.\n\nout_specs is {spec} which implies that the "
                f"corresponding output value is only varying across mesh axes {named} and not "
                f"{{{', '.join(sorted(map(str, differs)))}}}, but it was inferred to be possibly varying over "
                f"{{{', '.join(sorted(map(str, aval.varying)))}}}\n\nCheck if these output values are meant to be "
                "replicated over those mesh axes. If not, consider revising the corresponding out_specs entries. If "
                "so, consider disabling the check by passing the check_vma=False argument to `jax.shard_map`."
            )
