"""Propagation: how results lie on a mesh, from how operands do.

In: a primitive's factors and its operands' shardings.  Out: a sharding (or None: whole) for each result.  Over explicit
axes what is ambiguous is an error, which says what to write; over automatic ones the larger operand decides.  An array
that no sharding is known of is whole on every device.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn, final

from jaxlite.core import source
from jaxlite.core.avals import ShapedArray
from jaxlite.core.context import context
from jaxlite.core.errors import ShardingTypeError
from jaxlite.core.factors import Axis, Factors, spread
from jaxlite.core.jaxpr import ClosedJaxpr, JaxprEqn, subjaxprs
from jaxlite.core.mesh import AnyMesh, AxisType, Mesh
from jaxlite.core.partition_spec import PartitionSpec
from jaxlite.core.shardings import NamedSharding

Names = tuple[Any, ...]


def with_shardings(
    primitive: Any, avals: Sequence[ShapedArray], results: Sequence[ShapedArray], params: Mapping[str, Any]
) -> Sequence[ShapedArray]:
    """``results`` with their shardings."""
    if primitive.types_sharding:
        return results
    asked = params.get("out_sharding") or params.get("sharding")
    if asked is not None:
        return [r.update(sharding=fitting(asked, r)) for r in results]
    shardings = _Propagation(primitive, avals, results, params).results()
    return [r.update(sharding=s) for r, s in zip(results, shardings, strict=True)]


def are_sharded(avals: Sequence[ShapedArray]) -> bool:
    """Whether any of them lies on a mesh in parts."""
    return any([a.sharding is not None for a in avals])


def asks_for_sharding(params: Mapping[str, Any]) -> bool:
    """Whether parameters say how the result is to lie."""
    return params.get("out_sharding") is not None or params.get("sharding") is not None


def asked_of(eqn: JaxprEqn) -> NamedSharding | None:
    """The sharding that an equation lays its operand out in."""
    asked = eqn.params.get("dst_sharding") or eqn.params.get("sharding")
    return asked if isinstance(asked, NamedSharding) else None


def meshes_inside(closed: ClosedJaxpr) -> Iterator[AnyMesh]:
    """The meshes that a program speaks of, also where its arguments lie on none: it makes arrays in parts itself."""
    for eqn in closed.eqns:
        asked = asked_of(eqn)
        if asked is not None:
            yield asked.mesh
        yield from (v.aval.sharding.mesh for v in eqn.outvars if v.aval.sharding is not None)
        for _, inner in subjaxprs(eqn.params):
            yield from meshes_inside(inner)


def fitting(sharding: NamedSharding, aval: ShapedArray) -> NamedSharding:
    """``sharding`` in its full form for a type: an entry for each axis."""
    sharding.parts(aval.ndim)
    entries = tuple(sharding.spec)
    spec = sharding.spec.update(partitions=(*entries, *[None] * (aval.ndim - len(entries))))
    return NamedSharding(sharding.mesh, spec)


def in_program(aval: ShapedArray) -> ShapedArray:
    """The type as a program sees it: what lies along automatic axes is the compiler's business."""
    sharding = aval.sharding
    if sharding is None:
        return aval
    explicit = set(sharding.mesh.explicit_axes)
    if not explicit:
        return aval.update(sharding=None)
    if explicit.issuperset(sharding.spec.axes) and len(sharding.spec) == aval.ndim:
        return aval
    entries = [tuple(n for n in sharding.spec.axes_of(d) if n in explicit) for d in range(aval.ndim)]
    return aval.update(sharding=NamedSharding(sharding.mesh, PartitionSpec(*entries)))


def common_mesh(avals: Sequence[ShapedArray], what: str) -> AnyMesh:
    """The mesh of all shardings; ``ValueError`` where there are several."""
    meshes: list[AnyMesh] = []
    for aval in avals:
        if aval.sharding is not None and aval.sharding.mesh not in meshes:
            meshes.append(aval.sharding.mesh)
    concrete = [m for m in meshes if isinstance(m, Mesh)]
    if len({m.abstract_mesh for m in meshes}) > 1 or len(concrete) > 1:
        listed = " and ".join(str(m) for m in meshes)
        raise ValueError(
            f"Received incompatible devices: {what} has operands on the meshes {listed}{_at()}; put them on one mesh: "
            "jax.device_put(x, NamedSharding(mesh, P(...)))."
        )
    return (concrete or meshes)[0]


@final
class _Propagation:
    """One application of a primitive."""

    def __init__(
        self,
        primitive: Any,
        avals: Sequence[ShapedArray],
        results: Sequence[ShapedArray],
        params: Mapping[str, Any],
    ) -> None:
        self.primitive, self.avals, self.outs = primitive, avals, results
        self.mesh = common_mesh(avals, primitive.name)
        self.sizes = self.mesh.shape
        self.factors: Factors | None = primitive.factors(avals, results, **params)
        self.explicit = () if context.resolving else self.mesh.explicit_axes
        self.types = dict(zip(self.mesh.axis_names, self.mesh.axis_types, strict=True))

    def results(self) -> list[NamedSharding]:
        """A sharding for each result."""
        factors = self.factors
        if factors is None:  # nothing is known of this primitive: it is computed whole
            return [NamedSharding(self.mesh, PartitionSpec(*[None] * a.ndim)) for a in self.outs]
        split = self._of_factors(factors)
        return [self._sharding(aval, axes, split) for aval, axes in zip(self.outs, factors.results, strict=True)]

    def _of_factors(self, factors: Factors) -> dict[int, Names]:
        """The mesh axes that split each factor."""
        split: dict[int, Names] = {}
        seen: dict[int, int] = {}  # how many operands split a factor
        largest_first = sorted(range(len(self.avals)), key=lambda n: -self.avals[n].nbytes)
        order = range(len(self.avals)) if self.explicit else largest_first
        for number in order:
            aval, axes = self.avals[number], factors.operands[number]
            if aval.sharding is None:
                continue
            for position, axis in enumerate(axes):
                names = aval.sharding.spec.axes_of(position)
                if not names:
                    continue
                found = spread(names, axis, factors.sizes, self.sizes)
                if found is None:
                    if self._is_explicit(names):
                        self._refuse_reshape(aval)
                    continue
                for factor, given in found.items():
                    seen[factor] = seen.get(factor, 0) + 1
                    if split.setdefault(factor, given) != given and self._is_explicit((*split[factor], *given)):
                        if factor not in factors.reduced:
                            self._refuse_operands()
        for factor, names in list(split.items()):
            if factor in factors.reduced and seen[factor] > 1 and self._is_explicit(names):
                self._refuse_contraction(factor)
            if factor in factors.whole:
                if self._is_explicit(names):
                    self._refuse_whole(factors.whole[factor])
                del split[factor]
        return split

    def _sharding(self, aval: ShapedArray, axes: Sequence[Axis], split: Mapping[int, Names]) -> NamedSharding:
        """A result's sharding; each mesh axis at its first place only, and only where parts come out even."""
        entries: list[Names] = []
        used: set[Any] = set()
        for axis, length in zip(axes, aval.shape, strict=True):
            names = self._joined(axis, split)
            twice = used.intersection(names)
            if twice and self._is_explicit(tuple(twice)):
                self._refuse_result(aval, axes, split)
            names = () if twice else names
            if length % math.prod([self.sizes[n] for n in names]):
                names = ()
            used.update(names)
            entries.append(names)
        return NamedSharding(self.mesh, PartitionSpec(*entries))

    def _joined(self, axis: Axis, split: Mapping[int, Names]) -> Names:
        """The mesh axes of an axis of several factors: those of faster ones count where slower ones are split."""
        names: Names = ()
        for place, factor in enumerate(axis):
            given = split.get(factor, ())
            before = [f for f in axis[:place] if self.factors is not None and self.factors.sizes[f] > 1]
            if given and any(not split.get(f) for f in before):
                if self._is_explicit(given):
                    self._refuse_reshape(self.avals[0])
                continue
            names += given
        return names

    # -- refusals ----------------------------------------------------------------------------------

    def _is_explicit(self, names: Names) -> bool:
        return any(n in self.explicit and self.types[n] is AxisType.Explicit for n in names)

    def _specs(self) -> str:
        return ", ".join(_entries_text(a) for a in self.avals if a.shape)

    def _refuse_operands(self) -> NoReturn:
        first = next(a for a in self.avals if a.sharding is not None)
        raise ShardingTypeError(
            f"{self.primitive.name} got incompatible shardings for broadcasting: {self._specs()}.\n"
            f"Choose one{_at()}: jax.reshard(x, {first.sharding.spec}) lays the other operand out like the first."
        )

    def _refuse_contraction(self, factor: int) -> NoReturn:
        raise ShardingTypeError(
            "Contracting dimensions are sharded and it is ambiguous how the output should be sharded. Please specify "
            f"the output sharding via the `out_sharding` parameter. Got {self.primitive.name} of "
            f"{' and '.join(a.short() for a in self.avals)}{_at()}.\n"
            "Write out_sharding=P() to sum the parts on every device, or name a mesh axis to have the sum in parts; or "
            "lay an operand out otherwise first: jax.reshard(x, P(...))."
        )

    def _refuse_whole(self, why: str) -> NoReturn:
        operand = next(a for a in self.avals if a.sharding is not None)
        raise ShardingTypeError(
            f"{why} Got {self.primitive.name} of {', '.join(a.short() for a in self.avals)}{_at()}.\n"
            f"Have that axis whole first: jax.reshard(x, P(...)) without its mesh axis, which now is "
            f"{operand.sharding.spec}."
        )

    def _refuse_reshape(self, aval: ShapedArray) -> NoReturn:
        new = ", ".join(str(r.shape) for r in self.outs)
        raise ShardingTypeError(
            "This reshape is not supported. Please specify the sharding of the output via the `out_sharding` argument "
            f"of jax.lax.reshape. Got operand type: {aval}, new sizes: {new}{_at()}."
        )

    def _refuse_result(self, aval: ShapedArray, axes: Sequence[Axis], split: Mapping[int, Names]) -> NoReturn:
        dims = [
            str(n) + (f"@{_names_text(names)}" if (names := self._joined(axis, split)) else "")
            for n, axis in zip(aval.shape, axes, strict=True)
        ]
        dtype = aval.short().split("[")[0]
        raise ShardingTypeError(
            f"{self.primitive.name} operation with inputs: {', '.join(a.short() for a in self.avals)} produces an "
            f"illegally sharded result: {dtype}[{','.join(dims)}]: a mesh axis splits one axis only{_at()}.\n"
            "Have one operand whole along it first: jax.reshard(x, P(...))."
        )


def _entries_text(aval: ShapedArray) -> str:
    entries = (None,) * aval.ndim if aval.sharding is None else tuple(aval.sharding.spec)
    return repr(entries)


def _names_text(names: Names) -> str:
    return str(names[0]) if len(names) == 1 else f"({','.join(map(str, names))})"


def _at() -> str:
    where = source.current().summary()
    return f", at {where}" if where else ""
