"""Reading a value inside a kernel: from memory, or by computing it again from the equation that makes it.

This is where layout costs nothing: a transposed, sliced, padded or gathered operand is read at another index.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, final

import numpy as np

from jaxlite.compiler.builder import Builder
from jaxlite.compiler.groups import Group, Shape
from jaxlite.compiler.loops import INDEX, Value
from jaxlite.core import dtypes
from jaxlite.core.jaxpr import Atom, JaxprEqn, Literal, Var

Index = tuple[Value, ...]


@final
class Reader:
    """Reads values for one kernel that is being built; counts what it reads and inlines."""

    def __init__(self, builder: Builder, group: Group, makers: dict[Var, JaxprEqn]) -> None:
        self.builder, self.group, self.makers = builder, group, makers
        self.buffers: dict[Var, int] = {}  # memory that the kernel reads
        self.order: list[Var] = []
        self.inside = {v: e for e in group.eqns for v in e.outvars if isinstance(v, Var)}
        self.inlined: dict[int, JaxprEqn] = {}
        self.rows: dict[Var, Value] = {}  # results of reductions at the current row
        self.operations = 0
        self._memo: dict[Any, Value] = {}

    def forget(self) -> None:
        """Forgets values computed at indices of a loop that was left."""
        self._memo.clear()

    def buffer_of(self, var: Var) -> int:
        """The kernel's number for the memory of ``var``."""
        if var not in self.buffers:
            dtype = dtypes.physical(var.aval.dtype)
            self.buffers[var] = self.builder.buffer(f"in{len(self.order)}", dtype, var.aval.size, "input")
            self.order.append(var)
        return self.buffers[var]

    def read(self, atom: Atom, index: Index, position: Value | None = None, mask: Value | None = None) -> Value:
        """The element of ``atom`` at ``index``; ``position`` is its row-major place where that is known already."""
        if isinstance(atom, Literal):
            return self.builder.constant(_bits(atom), dtypes.physical(atom.aval.dtype))
        if atom in self.rows:
            return self.rows[atom]
        if self._maker(atom) is None:
            return self._load(atom, index, position, mask)
        if (atom, index, position, mask) not in self._memo:
            self._compute_chain(atom, index, position, mask)
        return self._memo[atom, index, position, mask]

    def _maker(self, atom: Atom) -> JaxprEqn | None:
        """The equation that is computed here to give ``atom``; None where it is read."""
        if isinstance(atom, Literal) or atom in self.rows:
            return None
        return self.inside.get(atom) or self.makers.get(atom)

    def _compute_chain(self, atom: Var, index: Index, position: Value | None, mask: Value | None) -> None:
        """Computes ``atom`` and, before it, what it needs at the same index: long chains must not recurse."""
        pending = [atom]
        while pending:
            var = pending[-1]
            eqn = self._maker(var)
            if eqn is None or (var, index, position, mask) in self._memo:
                pending.pop()
                continue
            if eqn.primitive.family == "elementwise":
                shape = var.aval.shape
                first = [
                    a
                    for a in eqn.invars
                    if isinstance(a, Var)
                    and a.aval.shape == shape
                    and self._maker(a) is not None
                    and (a, index, position, mask) not in self._memo
                ]
                if first:
                    pending.extend(first)
                    continue
            if var not in self.inside:
                self.inlined[id(eqn)] = eqn
            self._memo[var, index, position, mask] = self._compute(eqn, var, index, position, mask)
            pending.pop()

    def _load(self, var: Var, index: Index, position: Value | None, mask: Value | None) -> Value:
        place = position if position is not None else self.position_of(index, var.aval.shape)
        return self.builder.load(self.buffer_of(var), place, mask)

    def position_of(self, index: Index, shape: Shape) -> Value:
        """The row-major place of ``index`` in an array of ``shape``."""
        b = self.builder
        place = b.constant(0, INDEX)
        for i, stride in zip(index, _strides(shape), strict=True):
            place = b.add(place, b.mul(i, stride))
        return place

    def _compute(self, eqn: JaxprEqn, var: Var, index: Index, position: Value | None, mask: Value | None) -> Value:
        number = eqn.outvars.index(var)
        self.operations += eqn.primitive.family == "elementwise"
        keeps_place = eqn.primitive.family == "elementwise"
        shape = var.aval.shape

        def read(operand: int, at: Index, inner_mask: Value | None = None) -> Value:
            atom = eqn.invars[operand]
            same = keeps_place and atom.aval.shape == shape
            both = self._both(mask, inner_mask)
            return self.read(atom, at, position if same else None, both)

        if eqn.primitive.family == "elementwise" and not eqn.primitive.multiple_results:
            xs = [
                self.read(a, index if a.aval.shape else (), position if a.aval.shape == shape else None, mask)
                for a in eqn.invars
            ]
            return eqn.primitive.scalar(self.builder, *xs, **eqn.params)  # type: ignore[attr-defined, no-any-return]
        avals = [a.aval for a in eqn.invars]
        if position is not None and eqn.primitive.keeps_place(*avals, **eqn.params):
            operand = eqn.invars[0]
            if operand.aval.size == 1:
                zero = self.builder.constant(0, INDEX)
                return self.read(operand, (zero,) * len(operand.aval.shape), zero, mask)
            return self.read(operand, unravel(self.builder, position, operand.aval.shape), position, mask)
        return eqn.primitive.element(self.builder, number, index, read, avals, **eqn.params)  # type: ignore[attr-defined, no-any-return]

    def _both(self, a: Value | None, b: Value | None) -> Value | None:
        if a is None or b is None:
            return b if a is None else a
        return self.builder.and_(a, b)


def needs_index(eqns: Sequence[JaxprEqn], makers: dict[Var, JaxprEqn]) -> bool:
    """Whether computing ``eqns`` element by element needs the index itself and not only the row-major place."""
    pending, seen = list(eqns), set()
    while pending:
        eqn = pending.pop()
        if id(eqn) in seen:
            continue
        seen.add(id(eqn))
        elementwise = eqn.primitive.family in ("elementwise", "reduction")
        if not elementwise and not eqn.primitive.keeps_place(*(a.aval for a in eqn.invars), **eqn.params):
            return True
        for atom in eqn.invars:
            if isinstance(atom, Literal) or not atom.aval.shape:
                continue
            if elementwise and atom.aval.shape != eqn.outvars[0].aval.shape and eqn.primitive.family == "elementwise":
                return True
            if atom in makers:
                pending.append(makers[atom])
    return False


def unravel(builder: Builder, place: Value, shape: Shape) -> Index:
    """The index of a row-major place."""
    index: list[Value] = []
    for n in reversed(shape):
        if len(index) + 1 == len(shape):
            index.append(place)
        else:
            index.append(builder.rem(place, n) if n != 1 else builder.constant(0, INDEX))
            place = builder.div(place, n) if n != 1 else place
    return tuple(reversed(index))


def _strides(shape: Shape) -> list[int]:
    return [math.prod(shape[d + 1 :]) for d in range(len(shape))]


def _bits(literal: Literal) -> Any:
    return np.asarray(literal.val)[()]
