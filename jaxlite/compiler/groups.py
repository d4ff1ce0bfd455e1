"""Groups: which equations become one kernel, which one library call, loop, branch or host call.

A kernel's group has a domain: the full shape that its equations run over.  ``map``: every element by itself.
``row``: the domain's trailing axes are reduced and broadcast back within a row, so that a row stays in cache.
``reduce``: other axes (or all) are folded, and nothing of the full shape is written.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import final

from jaxlite.core.jaxpr import JaxprEqn, Literal, Var

Shape = tuple[int, ...]


@final
@dataclasses.dataclass(eq=False)
class Group:
    """``eqns`` in order; ``inlined``: layout equations recomputed inside; ``outputs``: the variables written.

    ``kind``: "map", "row", "reduce"; for what is no fused kernel "scatter", "contraction" ("library" by BLAS),
    "loop", "branch",
    "barrier", "host".  ``rank``: how many leading axes of ``domain`` count rows.  ``axes``: what a "reduce" folds.
    """

    kind: str
    domain: Shape
    eqns: list[JaxprEqn] = dataclasses.field(default_factory=list)
    inlined: list[JaxprEqn] = dataclasses.field(default_factory=list)
    outputs: list[Var] = dataclasses.field(default_factory=list)
    rank: int = 0
    axes: tuple[int, ...] = ()
    name: str = ""
    reason: str = ""
    after: set[Group] = dataclasses.field(default_factory=set)  # groups whose results it reads, in any way
    through: set[Group] = dataclasses.field(default_factory=set)  # those it reads through layout: they must be finished

    @property
    def defined(self) -> Iterator[Var]:
        """The variables that the group's equations compute."""
        return (v for e in self.eqns for v in e.outvars if isinstance(v, Var))


def operand_vars(eqn: JaxprEqn) -> list[Var]:
    """The variables among an equation's operands."""
    return [a for a in eqn.invars if not isinstance(a, Literal)]


def aligned_shapes(domain: Shape, rank: int) -> tuple[Shape, Shape]:
    """The two shapes of a value with one element a row: without the row's axes, or with axes of length 1."""
    return domain[:rank], domain[:rank] + (1,) * (len(domain) - rank)


def is_row_shape(shape: Shape, domain: Shape, rank: int) -> bool:
    """Whether ``shape`` is that of one element a row of ``domain``."""
    return shape in aligned_shapes(domain, rank) and shape != domain
