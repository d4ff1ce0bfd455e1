"""Primitive: the whole contract of an operation, on one page, and the registry of all of them.

A primitive is one small final class, instantiated once (``sin_p = Sin()``): the instance registers itself
under its name.  What it lacks of the contract is an abstract method, so a forgotten rule fails at import and
names itself.  Families (``jaxlite.lax.families``) supply what follows from an operation's kind.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, final

import numpy as np

from jaxlite.core import runtime
from jaxlite.core.avals import ShapedArray
from jaxlite.core.context import context
from jaxlite.core.effects import NO_EFFECTS, Effects
from jaxlite.core.factors import Factors
from jaxlite.core.varying import mark_alike

registry: dict[str, Primitive] = {}


@final
@dataclasses.dataclass(frozen=True)
class Sample:
    """One call that the conformance test makes: shapes of the operands, parameters, and how to draw values.

    ``low`` and ``high`` bound the values drawn; ``dtypes`` fixes the operands' dtypes where the primitive's own
    list does not say it all.
    """

    shapes: tuple[tuple[int, ...], ...]
    params: dict[str, Any] = dataclasses.field(default_factory=dict)
    low: float = -2.0
    high: float = 2.0
    dtypes: tuple[str, ...] | None = None


@final
@dataclasses.dataclass(frozen=True)
class AxisData:
    """The axis that ``vmap`` adds: its name (None where it has none) and size."""

    name: Any
    size: int


class Primitive(ABC):
    """An operation of the language of jaxprs.

    ``name`` is what jaxprs print; ``family`` what the compiler goes by; ``multiple_results`` says whether ``bind``
    gives a list; ``accepts`` lists the kinds of dtype it takes ("b" bool, "i" signed, "u" unsigned, "f" float, "K"
    keys); ``exact`` says that ``evaluate`` gives the very bits that compiled code gives; ``identities`` names the rules
    of ``compiler.simplify`` that hold for it; ``piecewise_linear`` says that a step from any point within some
    distance moves the results by what ``jvp`` gives for it, and by no more; ``types_variation`` says that
    ``abstract_eval`` gives the mesh axes along which results vary: those of others vary as their operands do;
    ``types_sharding``, that it gives their shardings: those of others follow from ``factors``; ``linear_in`` lists sets
    of operands in which, taken together, the results are linear.
    """

    name: ClassVar[str]
    family: ClassVar[str]
    multiple_results: ClassVar[bool] = False
    accepts: ClassVar[str] = "biuf"
    exact: ClassVar[bool] = False
    identities: ClassVar[Sequence[str]] = ()
    piecewise_linear: ClassVar[bool] = False
    types_variation: ClassVar[bool] = False
    types_sharding: ClassVar[bool] = False
    linear_in: ClassVar[Sequence[tuple[int, ...]]] = ()
    samples: ClassVar[Sequence[Sample]] = ()

    def __init__(self) -> None:
        if self.name in registry:
            raise ValueError(f"Two primitives are called {self.name!r}: {registry[self.name]!r} and {self!r}.")
        registry[self.name] = self

    @abstractmethod
    def abstract_eval(self, *avals: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        """The avals of the results; raises where operands do not fit."""

    @abstractmethod
    def evaluate(self, *arrays: np.ndarray[Any, Any], **params: Any) -> tuple[np.ndarray[Any, Any], ...]:
        """The results as NumPy computes them: the meaning, and the eager path where ``exact``."""

    @abstractmethod
    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        """Results and their tangents; a tangent may be a ``Zero``."""

    @abstractmethod
    def transpose(self, cotangents: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
        """A cotangent (or None) for each operand; linear operands come as ``LinearOperand``, others as values."""

    @abstractmethod
    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[int | None], /, **params: Any
    ) -> tuple[list[Any], list[int | None]]:
        """Results for operands with one more axis each at ``dims`` (None: not batched), and where theirs is."""

    def linearize(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        """Like ``jvp``, with tangents that are being recorded: results must not depend on them.

        The ``jvp`` rule serves where it computes results from primals alone; primitives that hold jaxprs split them.
        """
        return self.jvp(primals, tangents, **params)

    def jet(
        self, primals: Sequence[Any], series: Sequence[Sequence[Any]], **params: Any
    ) -> tuple[list[Any], list[list[Any]]] | None:
        """Results and their Taylor coefficients after the first, given those of the operands; any may be a ``Zero``.

        None where they follow from ``jvp``: see ``interpreters.jet``.
        """
        return None

    def to_staged(self, operands: Sequence[Any], params: dict[str, Any]) -> tuple[Sequence[Any], dict[str, Any]]:
        """Operands and parameters as an equation holds them: where ``bind`` takes functions, jaxprs."""
        return operands, params

    def factors(self, avals: Sequence[ShapedArray], results: Sequence[ShapedArray], **params: Any) -> Factors | None:
        """How the axes of operands and results belong together; None: it is computed whole on every device."""
        return None

    def localized(
        self, params: dict[str, Any], avals: Sequence[ShapedArray], results: Sequence[ShapedArray]
    ) -> dict[str, Any]:
        """The parameters with which the primitive gives parts ``results`` of parts ``avals``."""
        return params

    def part_from(self, params: dict[str, Any], shape: tuple[int, ...], starts: Sequence[Any]) -> Any:
        """Of a primitive without operands, the part of its result of this shape from ``starts`` (None: 0) on."""
        return None

    def keeps_place(self, *avals: ShapedArray, **params: Any) -> bool:
        """Whether each element of the result is the operand's at the same row-major place, or its only one."""
        return False

    def repeats_along(self, **params: Any) -> tuple[int, ...] | None:
        """For broadcasts, the axes of the result that the operand's are; else None."""
        return None

    def inlined(self, **params: Any) -> Any:
        """For primitives that only apply a jaxpr to their operands, that jaxpr; else None."""
        return None

    def uses_up(self, **params: Any) -> tuple[int, ...]:
        """The operands that are random keys and must not be used again; only while ``jax_debug_key_reuse`` is on."""
        return ()

    def axis_names(self, **params: Any) -> tuple[Any, ...]:
        """The named axes that the parameters speak of."""
        return ()

    def effects(self, **params: Any) -> Effects:
        """What an equation does besides computing."""
        return NO_EFFECTS

    def bind(self, *operands: Any, **params: Any) -> Any:
        """Applies the primitive in the current trace; eager where there is none."""
        trace = context.trace
        if trace is None:
            results = runtime.evaluate(self, operands, params)
        else:
            if context.manual:
                operands = tuple(mark_alike(registry["pvary"], self, operands))
            results = trace.process(self, operands, params)
        return list(results) if self.multiple_results else results[0]

    def __repr__(self) -> str:
        return self.name


def get(name: str) -> Primitive:
    """The primitive called ``name``: how families reach the primitives that their rules are made of."""
    return registry[name]
