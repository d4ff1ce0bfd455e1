"""What custom rules see of tangents that vanish: ``SymbolicZero``, and primal values that know whether they move."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, final

from jaxlite.core.avals import ShapedArray
from jaxlite.core.pytree import tree_map
from jaxlite.interpreters.zeros import Zero, instantiate, zero_of


@final
@dataclasses.dataclass(frozen=True)
class SymbolicZero:
    """A tangent or cotangent that is zero without being stored: it has a type, and no value."""

    aval: ShapedArray

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the axes."""
        return self.aval.shape

    @property
    def dtype(self) -> Any:
        """The element type."""
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.aval.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.aval.size

    @property
    def weak_type(self) -> bool:
        """Whether the type gives way to others in promotion."""
        return self.aval.weak_type


@final
@dataclasses.dataclass(frozen=True, eq=False)
class CustomVJPPrimal:
    """An argument's leaf as ``fwd`` sees it with ``symbolic_zeros``: its value, and whether it has a tangent."""

    value: Any
    perturbed: bool


def as_symbolic(values: Sequence[Any]) -> list[Any]:
    """``Zero`` as users see it."""
    return [SymbolicZero(v.aval) if type(v) is Zero else v for v in values]


def zero_from_primal(value: Any, symbolic_zeros: bool = False) -> Any:
    """The zero tangent of ``value``: an array of zeros, or a ``SymbolicZero``."""
    zero = zero_of(value)
    return SymbolicZero(zero.aval) if symbolic_zeros else instantiate(zero)


def custom_vjp_primal_tree_values(tree: Any) -> Any:
    """``tree`` with the value of each ``CustomVJPPrimal`` in its place.

    >>> custom_vjp_primal_tree_values([CustomVJPPrimal(1.0, True)])
    [1.0]
    """

    def value(leaf: Any) -> Any:
        if not isinstance(leaf, CustomVJPPrimal):
            raise TypeError(
                f"custom_vjp_primal_tree_values takes a tree of CustomVJPPrimal, got {type(leaf).__name__}."
            )
        return leaf.value

    return tree_map(value, tree)
