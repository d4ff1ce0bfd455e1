"""The linear-algebra family: factorisations and solves of (batches of) matrices in the last two axes.

A member says by what steps a matrix is worked on (``steps``): a :class:`Stage` runs a formula, written against an
emitter, at each place of a small index space of each matrix; a :class:`Routine` calls LAPACK or BLAS for each.  Small
matrices are one stage, unrolled in registers; large ones are copied by a stage, factored by a routine, read by stages.
"""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal, Protocol, final

from jaxlite.core import dtypes
from jaxlite.core.avals import ShapedArray
from jaxlite.core.factors import Axes, Factors, axes_of
from jaxlite.core.primitive import Primitive
from jaxlite.lax.families.elementwise import check_accepts

Place = tuple[Any, ...]


@final
@dataclasses.dataclass(frozen=True)
class Memory:
    """One matrix's part of an operand, a result, or scratch that steps share; row-major, ``shape`` without batch."""

    kind: Literal["operand", "result", "scratch"]
    number: int
    shape: tuple[int, ...]
    dtype: Any


class Access(Protocol):
    """How a stage reads and writes the memory of its matrix."""

    def read(self, memory: Memory, place: Place) -> Any: ...

    def write(self, memory: Memory, place: Place, value: Any) -> None: ...


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Stage:
    """``body(emitter, index, access)`` at each index of ``domain``, in any order, for each matrix.

    ``work``: scalar operations of one index, about.  ``vector``: whether neighbouring indices may run in lanes.
    """

    domain: tuple[int, ...]
    body: Callable[[Any, Place, Access], None]
    work: int
    vector: bool = True


@final
@dataclasses.dataclass(frozen=True)
class Routine:
    """One call a matrix of the routine ``name`` (without its dtype's letter): integers, marks, numbers, memory."""

    name: str
    arguments: tuple[int | str | float | Memory, ...]
    writes: tuple[Memory, ...]
    work: int


class LinearAlgebra(Primitive):
    """Base of such primitives, of float32 and float64."""

    family: ClassVar[str] = "linalg"
    accepts: ClassVar[str] = "f"
    core_rank: ClassVar[int] = 2  # how many trailing axes of the first operand one problem takes

    def factors(self, avals: Sequence[ShapedArray], results: Sequence[ShapedArray], **params: Any) -> Factors | None:
        batch = avals[0].ndim - self.core_rank
        sizes = dict(enumerate(avals[0].shape[:batch]))
        sides: list[list[Axes]] = [[], []]
        for side, arrays in zip(sides, (avals, results), strict=True):
            for aval in arrays:
                own = range(len(sizes), len(sizes) + aval.ndim - batch)
                sizes.update(zip(own, aval.shape[batch:], strict=True))
                side.append(axes_of([*range(batch), *own]))
        why = f"{self.name} works on whole matrices, which must be unsharded along their own axes."
        whole = {f: why for f in sizes if f >= batch}
        return Factors(tuple(sides[0]), tuple(sides[1]), sizes, whole=whole)

    @abstractmethod
    def steps(self, *avals: ShapedArray, **params: Any) -> Sequence[Stage | Routine]:
        """How one matrix is worked on; avals are whole, batch axes first."""


def memory_of(kind: Literal["operand", "result"], number: int, aval: ShapedArray, core: int = 2) -> Memory:
    """The part of an operand or result that belongs to one matrix: its last ``core`` axes."""
    return Memory(kind, number, aval.shape[aval.ndim - core :], aval.dtype)


def check_matrices(primitive: Primitive, avals: Sequence[ShapedArray], square: bool) -> None:
    """``TypeError`` where operands are no float32 or float64 matrices, ``ValueError`` where they must be square."""
    check_accepts(primitive, avals)
    for aval in avals:
        if dtypes.is_narrow_float(aval.dtype):
            raise TypeError(
                f"{primitive.name} does not accept dtype {aval.dtype.name}: factorisations are done in float32 or "
                "float64; convert the matrix first."
            )
        if aval.ndim < 2:
            raise TypeError(
                f"{primitive.name} takes matrices in the last two axes, got an array of shape {aval.shape}."
            )
    if square and avals[0].shape[-1] != avals[0].shape[-2]:
        raise ValueError(
            f"{primitive.name} takes square matrices, got the shape {avals[0].shape}: its last two axes differ."
        )
