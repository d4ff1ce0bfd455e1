"""Builder: records scalar Python arithmetic as a loop nest.

In: method calls named after the opcodes (`b.add(x, y)`), loads, stores and loops. Out: a `Kernel`.
While it records it folds constants, simplifies index arithmetic, shares equal operations, and puts
each pure operation in the outermost open block where its arguments exist, so invariants leave
loops. A primitive's scalar formula is written against the same object: `e.div(1.0, e.add(1.0,
e.exp(e.neg(x))))`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias, final

import numpy as np

from jaxlite.compiler.dead import without_dead
from jaxlite.compiler.folding import fold, simplify
from jaxlite.compiler.loops import (
    BOOL,
    INDEX,
    OPCODES,
    Buffer,
    Constant,
    DType,
    Kernel,
    Load,
    Loop,
    Op,
    Reduction,
    Region,
    Role,
    Size,
    Statement,
    Store,
    Value,
    kind,
    scalar_of,
)

Scalar: TypeAlias = Value | bool | int | float | np.generic
Combine: TypeAlias = str | Callable[["Builder", tuple[Value, ...], tuple[Value, ...]], Any] | None


@final
@dataclass(frozen=True)
class Carry:
    """What a loop carries: one state of one or more values, and how two partial states merge.

    `combine`: an opcode (`"add"`), or a function `(builder, a, b) -> state`, or None for a strictly
    ordered fold. `initial` defaults to the identities.
    """

    identities: tuple[np.generic, ...]
    combine: Combine
    initial: tuple[Scalar, ...] = ()


@final
@dataclass
class OpenLoop:
    """A loop being recorded: read `axis` and `carried`, call `update`, then read `results`."""

    axis: Value
    carried: tuple[Value, ...]
    results: tuple[Value, ...] = ()
    updates: tuple[Value, ...] | None = None
    builder: Builder | None = None

    def update(self, *updates: Scalar) -> None:
        """Say what the carried values become in the next iteration."""
        if len(updates) != len(self.carried):
            raise ValueError(
                f"the loop carries {len(self.carried)} values, update() got {len(updates)}; "
                "pass one update for each carried value, in order"
            )
        assert self.builder is not None
        self.updates = tuple(self.builder.value(new, old.dtype) for new, old in zip(updates, self.carried, strict=True))


@final
@dataclass
class _Block:
    """An open block: its statements, what it has computed already, and whether it surely runs."""

    statements: list[Statement] = field(default_factory=list)
    known: dict[Any, Value] = field(default_factory=dict)
    surely_runs: bool = True


@final
class Builder:
    """Records one kernel. Each opcode is a method (`and_`, `or_`, `not_` for the keywords)."""

    def __init__(self) -> None:
        self._buffers: list[Buffer] = []
        self._stored: set[int] = set()
        self._sizes = 0
        self._blocks = [_Block()]
        self._constants: dict[Value, np.generic] = {}

    # buffers, sizes, constants

    def buffer(self, name: str, dtype: Any, elements: int | None, role: Role) -> int:
        """Declare a flat buffer and return its number."""
        self._buffers.append(Buffer(name, np.dtype(dtype), elements, role))
        return len(self._buffers) - 1

    def size(self) -> Size:
        """Declare an extent that is given at run time."""
        self._sizes += 1
        return Size(self._sizes - 1)

    def constant(self, value: Any, dtype: Any) -> Value:
        """A constant of `dtype`; equal bits are one value."""
        dtype = np.dtype(dtype)
        scalar = scalar_of(value, dtype)
        key = ("constant", dtype, scalar.tobytes())
        known = self._blocks[0].known
        if key not in known:
            result = Value(dtype, 0)
            self._blocks[0].statements.append(Constant(scalar, result))
            known[key] = result
            self._constants[result] = scalar
        return known[key]

    def constant_value(self, value: Value) -> np.generic | None:
        """What `value` is, if it is a constant."""
        return self._constants.get(value)

    def value(self, scalar: Scalar, dtype: DType) -> Value:
        """`scalar` as a Value: itself, or a constant of `dtype`."""
        return scalar if isinstance(scalar, Value) else self.constant(scalar, dtype)

    # operations

    def emit(self, opcode: str, *args: Scalar, dtype: DType | None = None) -> Value:
        """Record `opcode(args)`, or find it known already. `dtype`: of convert and bitcast."""
        values = self._typed(opcode, args)
        rule = OPCODES[opcode]
        if rule.result == "bool":
            dtype = BOOL
        elif rule.result == "same" or dtype is None:
            dtype = values[-1].dtype
        constants = [self._constants.get(value) for value in values]
        folded = fold(opcode, constants, dtype)
        if folded is not None:
            return self.constant(folded, dtype)
        simpler = simplify(opcode, values, constants)
        if isinstance(simpler, Value):
            return simpler
        if simpler is not None:
            return self.constant(simpler, dtype)
        return self._place((opcode, values, dtype), values, dtype, lambda r: Op(opcode, values, r))

    def __getattr__(self, name: str) -> Callable[..., Value]:
        opcode = name.removesuffix("_")
        if opcode not in OPCODES:
            raise AttributeError(f"Builder has no method or opcode {name!r}; see loops.OPCODES")
        method = partial(self.emit, opcode)
        self.__dict__[name] = method
        return method

    def _typed(self, opcode: str, args: Sequence[Scalar]) -> tuple[Value, ...]:
        """Check the arguments' number and dtypes, and type the Python scalars among them."""
        rule = OPCODES[opcode]
        if len(args) != rule.arity:
            raise TypeError(f"{opcode} takes {rule.arity} arguments, got {len(args)}")
        operands = args[1:] if opcode == "select" else args
        dtypes = [operand.dtype for operand in operands if isinstance(operand, Value | np.generic)]
        if not dtypes:
            raise TypeError(
                f"{opcode}: all arguments are Python scalars, so no dtype is known; "
                "write one of them as constant(value, dtype)"
            )
        if any(dtype != dtypes[0] for dtype in dtypes) or kind(dtypes[0]) not in rule.accepts:
            raise TypeError(
                f"{opcode} got {', '.join(dtype.name for dtype in dtypes)}; expected one dtype of "
                f"kind {'/'.join(rule.accepts)}: convert the arguments first"
            )
        values = tuple(self.value(operand, dtypes[0]) for operand in operands)
        if opcode != "select":
            return values
        condition = self.value(args[0], BOOL)
        if condition.dtype != BOOL:
            raise TypeError(f"select: the condition is {condition.dtype.name}; expected a bool")
        return (condition, *values)

    def _place(
        self,
        key: Any,
        reads: Sequence[Value],
        dtype: DType,
        make: Callable[[Value], Statement],
        at_least: int = 0,
    ) -> Value:
        """Put a pure statement in the outermost open block where all it reads exists."""
        depth = max([at_least, *(value.depth for value in reads)])
        block = self._blocks[depth]
        if key not in block.known:
            block.known[key] = Value(dtype, depth)
            block.statements.append(make(block.known[key]))
        return block.known[key]

    def convert(self, x: Value, dtype: Any) -> Value:
        """`x` as `dtype`; floats saturate into integers, NaN becomes 0."""
        return x if x.dtype == np.dtype(dtype) else self.emit("convert", x, dtype=np.dtype(dtype))

    def bitcast(self, x: Value, dtype: Any) -> Value:
        """The bits of `x` as another dtype of the same size."""
        dtype = np.dtype(dtype)
        if dtype.itemsize != x.dtype.itemsize:
            raise TypeError(f"bitcast from {x.dtype.name} to {dtype.name}: the sizes differ")
        return x if x.dtype == dtype else self.emit("bitcast", x, dtype=dtype)

    # memory

    def load(self, buffer: int, index: Scalar, mask: Value | None = None) -> Value:
        """`buffer[index]`, zero where `mask` is false."""
        where = self.value(index, INDEX)
        declared = self._buffers[buffer]
        reads = (where,) if mask is None else (where, mask)
        if declared.role == "input":
            return self._place(
                ("load", buffer, *reads),
                reads,
                declared.dtype,
                lambda result: Load(buffer, where, result, mask),
                at_least=self._first_sure_block(),
            )
        result = Value(declared.dtype, len(self._blocks) - 1)
        self._blocks[-1].statements.append(Load(buffer, where, result, mask))
        return result

    def _first_sure_block(self) -> int:
        """The outermost block from which every open loop surely runs at least once."""
        depth = len(self._blocks) - 1
        while depth > 0 and self._blocks[depth].surely_runs:
            depth -= 1
        return depth

    def store(
        self,
        buffer: int,
        index: Scalar,
        value: Scalar,
        mask: Value | None = None,
        streaming: bool = False,
    ) -> None:
        """`buffer[index] = value` where `mask` is true."""
        declared = self._buffers[buffer]
        if declared.role == "input":
            raise ValueError(f"store into input buffer {declared.name!r}; declare it as an output")
        stored = self.value(value, declared.dtype)
        where = self.value(index, INDEX)
        self._blocks[-1].statements.append(Store(buffer, where, stored, mask, streaming))

    # loops

    @contextmanager
    def loop(
        self,
        extent: int | Size,
        *,
        parallel: bool = False,
        vector: bool = False,
        unroll: int = 1,
    ) -> Iterator[Value]:
        """`with b.loop(n) as i:` records a loop that carries nothing."""
        with self._open(extent, (), parallel, vector, unroll) as opened:
            yield opened.axis

    @contextmanager
    def fold(self, extent: int | Size, *carries: Carry, vector: bool = False, unroll: int = 1) -> Iterator[OpenLoop]:
        """A loop that carries values.

        with b.fold(n, Carry((zero,), "add"), vector=True) as loop:
            loop.update(b.add(loop.carried[0], b.load(x, loop.axis)))
        total, = loop.results
        """
        with self._open(extent, carries, False, vector, unroll) as opened:
            yield opened
            if opened.updates is None:
                raise ValueError("the loop carries values; call update(...) in its body")

    def reduce(
        self,
        extent: int | Size,
        term: Callable[[Value], Scalar],
        opcode: str,
        identity: np.generic,
        *,
        vector: bool = False,
        unroll: int = 1,
    ) -> Value:
        """Reduce `term(i)` over a loop by an associative, commutative opcode."""
        carry = Carry((identity,), opcode)
        with self.fold(extent, carry, vector=vector, unroll=unroll) as loop:
            loop.update(self.emit(opcode, loop.carried[0], term(loop.axis)))
        return loop.results[0]

    @contextmanager
    def _open(
        self,
        extent: int | Size,
        carries: Sequence[Carry],
        parallel: bool,
        vector: bool,
        unroll: int,
    ) -> Iterator[OpenLoop]:
        initial = [self._initial(carry) for carry in carries]
        combines = [self._region(carry) for carry in carries]
        depth = len(self._blocks)
        block = _Block(surely_runs=isinstance(extent, int) and extent >= 1)
        self._blocks.append(block)
        carried = [tuple(Value(v.dtype, depth) for v in state) for state in initial]
        flat = tuple(value for state in carried for value in state)
        opened = OpenLoop(Value(INDEX, depth), flat, builder=self)
        try:
            yield opened
        finally:
            self._blocks.pop()
        updates = iter(opened.updates or ())
        reductions = tuple(
            Reduction(
                carry.identities,
                start,
                state,
                tuple(next(updates) for _ in state),
                tuple(Value(value.dtype, depth - 1) for value in state),
                combine,
            )
            for carry, start, state, combine in zip(carries, initial, carried, combines, strict=True)
        )
        opened.results = tuple(value for r in reductions for value in r.results)
        loop = Loop(opened.axis, extent, tuple(block.statements), reductions, parallel, vector, unroll)
        self._blocks[-1].statements.append(loop)

    def _initial(self, carry: Carry) -> tuple[Value, ...]:
        starts = carry.initial or carry.identities
        return tuple(
            self.value(start, identity.dtype) for start, identity in zip(starts, carry.identities, strict=True)
        )

    def _region(self, carry: Carry) -> Region | None:
        if carry.combine is None:
            return None
        depth = len(self._blocks)
        first = tuple(Value(identity.dtype, depth) for identity in carry.identities)
        second = tuple(Value(identity.dtype, depth) for identity in carry.identities)
        self._blocks.append(_Block())
        try:
            if isinstance(carry.combine, str):
                opcode = carry.combine
                state: Any = tuple(self.emit(opcode, a, b) for a, b in zip(first, second, strict=True))
            else:
                state = carry.combine(self, first, second)
            results = (state,) if isinstance(state, Value) else tuple(state)
        finally:
            block = self._blocks.pop()
        return Region(first + second, tuple(block.statements), results)

    def finish(self, name: str) -> Kernel:
        """The kernel recorded so far."""
        if len(self._blocks) != 1:
            raise ValueError("finish() inside an open loop; leave its `with` block first")
        body = without_dead(tuple(self._blocks[0].statements))
        return Kernel(name, tuple(self._buffers), self._sizes, body)
