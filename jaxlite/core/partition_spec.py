"""PartitionSpec (``P``): for each axis of an array, the mesh axes over which it is split."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, final


@final
class _Unconstrained:
    """The entry that leaves an axis to the compiler."""

    def __repr__(self) -> str:
        return "UNCONSTRAINED"

    def __reduce__(self) -> str:
        return "_UNCONSTRAINED"


_UNCONSTRAINED = _Unconstrained()


@final
class PartitionSpec:
    """``P("x", None, ("y", "z"))``: the first axis split over mesh axis x, the second whole, the third over y and z.

    Axes that are not spoken of are whole.  ``unreduced`` names mesh axes over which the parts are still to be summed,
    ``reduced`` those over which a value is known to be the same.

    >>> PartitionSpec("x", ("y",), ())
    P('x', 'y', None)
    """

    __slots__ = ("__weakref__", "partitions", "reduced", "unreduced")

    UNCONSTRAINED: ClassVar[Any] = _UNCONSTRAINED

    def __init__(self, *partitions: Any, unreduced: Iterable[Any] = (), reduced: Iterable[Any] = ()) -> None:
        self.partitions = tuple(map(_entry, partitions))
        self.unreduced = _names("unreduced", unreduced)
        self.reduced = _names("reduced", reduced)
        if self.unreduced & self.reduced:
            raise ValueError(
                f"unreduced and reduced share {sorted(map(str, self.unreduced & self.reduced))}: "
                "a value is either still to be summed over a mesh axis or the same along it."
            )

    def __iter__(self) -> Iterator[Any]:
        return iter(self.partitions)

    def __len__(self) -> int:
        return len(self.partitions)

    def __getitem__(self, index: Any) -> Any:
        return self.partitions[index]

    def __add__(self, other: Any) -> PartitionSpec:
        if isinstance(other, PartitionSpec):
            return PartitionSpec(
                *self.partitions,
                *other.partitions,
                unreduced=self.unreduced | other.unreduced,
                reduced=self.reduced | other.reduced,
            )
        return self.update(partitions=(*self.partitions, *other)) if isinstance(other, tuple) else NotImplemented

    def __radd__(self, other: Any) -> PartitionSpec:
        return self.update(partitions=(*other, *self.partitions)) if isinstance(other, tuple) else NotImplemented

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, PartitionSpec)
            and self.partitions == other.partitions
            and self.unreduced == other.unreduced
            and self.reduced == other.reduced
        )

    def __hash__(self) -> int:
        return hash((self.partitions, self.unreduced, self.reduced))

    def __reduce__(self) -> Any:
        return _rebuild, (self.partitions, self.unreduced, self.reduced)

    def __repr__(self) -> str:
        parts = [repr(p) for p in self.partitions]
        if self.unreduced:
            parts += [f"unreduced={_set_text(self.unreduced)}", "unreduced_kind=sum"]
        if self.reduced:
            parts.append(f"reduced={_set_text(self.reduced)}")
        alone = len(parts) == 1 == len(self.partitions)
        return f"P({', '.join(parts)}{',' if alone else ''})"

    def count(self, value: Any) -> int:
        """How many axes have this entry."""
        return self.partitions.count(_entry(value))

    def index(self, value: Any) -> int:
        """The first axis with this entry; ``ValueError`` where there is none."""
        return self.partitions.index(_entry(value))

    def update(self, **changes: Any) -> PartitionSpec:
        """A copy with ``partitions``, ``unreduced`` or ``reduced`` replaced."""
        partitions = changes.pop("partitions", self.partitions)
        return PartitionSpec(*partitions, **{"unreduced": self.unreduced, "reduced": self.reduced, **changes})

    def axes_of(self, position: int) -> tuple[Any, ...]:
        """The mesh axes over which array axis ``position`` is split, the slowest first."""
        return axes_in(self.partitions[position]) if position < len(self.partitions) else ()

    @property
    def axes(self) -> tuple[Any, ...]:
        """Every mesh axis that splits an array axis, in order."""
        return tuple(name for entry in self.partitions for name in axes_in(entry))


P = PartitionSpec


def axes_in(entry: Any) -> tuple[Any, ...]:
    """The mesh axes of one entry."""
    if entry is None or entry is _UNCONSTRAINED:
        return ()
    return entry if isinstance(entry, tuple) else (entry,)


def _entry(value: Any) -> Any:
    """An entry in its one form: None, a name, or a tuple of several."""
    if isinstance(value, (list, tuple)):
        names = tuple(value)
        return None if not names else names[0] if len(names) == 1 else names
    return value


def _names(what: str, names: Any) -> frozenset[Any]:
    if isinstance(names, str):
        raise TypeError(f"{what} takes a set of mesh axis names, got {names!r}: write {what}={{{names!r}}}.")
    return frozenset(names)


def _set_text(names: frozenset[Any]) -> str:
    return "{" + ", ".join(sorted(map(repr, names))) + "}"


def _rebuild(partitions: tuple[Any, ...], unreduced: frozenset[Any], reduced: frozenset[Any]) -> PartitionSpec:
    return PartitionSpec(*partitions, unreduced=unreduced, reduced=reduced)
