"""Refs: arrays that change.  A ``Ref`` is a cell; what it holds is an array, or a tracer of the trace it is used in.

Jaxprs stay pure: while a function is traced, reads and writes of a cell act on its present value, so that programs have
no references left.  A transformation that traces a function which uses a ref from outside is told by ``CapturedRef``,
and passes the value in and the last value out (:func:`with_refs`, :func:`bound`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, final

from jaxlite.core.array import Array
from jaxlite.core.avals import ShapedArray
from jaxlite.core.context import context, context_kept
from jaxlite.core.trace import Trace, Tracer


class Typed(ABC):
    """What has the shape and dtype of the value that its ``type`` is of."""

    __slots__ = ()

    @property
    @abstractmethod
    def type(self) -> ShapedArray:
        """The type of the value; not ``aval``, which would make it pass for an array."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the axes."""
        return self.type.shape

    @property
    def dtype(self) -> Any:
        """The element type."""
        return self.type.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.type.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.type.shape)


@final
class Cell:
    """What a ref holds in one trace of one thread: the value, the trace at work when it came, and the trace that
    records (None: operations are evaluated)."""

    __slots__ = ("home", "trace", "value")

    def __init__(self, value: Any) -> None:
        self.value, self.trace, self.home = value, context.trace, home_of(context.trace)


@final
class Ref(Typed):
    """A mutable array: ``ref[index]`` reads, ``ref[index] = value`` writes.  ``new_ref`` makes one."""

    __slots__ = ("__weakref__", "_cell", "_type")

    def __init__(self, value: Any) -> None:
        self._cell, self._type = Cell(unshared(value)), value.aval

    @property
    def type(self) -> ShapedArray:
        """The type of the value."""
        return self._type  # type: ignore[no-any-return]

    @property
    def cell(self) -> Cell:
        """The cell that counts here: that of the program being traced, if the ref was passed into it."""
        passed = context.refs.get(id(self))
        return self._cell if passed is None else passed

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a Ref without axes")
        return self.shape[0]

    def __repr__(self) -> str:
        value = self.cell.value
        if value is None or isinstance(value, Tracer):
            return ref_type(self.type)
        return "Ref" + repr(value).removeprefix("Array")

    def __jax_array__(self) -> Any:
        raise TypeError(f"A {ref_type(self.type)} cannot be passed where an array is expected: read it with ref[...].")

    def usable(self) -> bool:
        """Whether the ref can be read by the trace at work."""
        return self.cell.value is not None and self.cell.home is home_of(context.trace)

    def read(self) -> Any:
        """The whole value."""
        cell = self.cell
        if cell.value is None:
            raise ValueError(f"This {ref_type(self.type)} was frozen or freed: it can be neither read nor written.")
        if cell.home is not home_of(context.trace):
            raise noted(CapturedRef(self))
        return unshared(cell.value)

    def write(self, value: Any) -> None:
        """Replaces the whole value, by one of the same type."""
        write_all([self], [value])

    def ready_for(self, value: Any) -> tuple[Cell, Any]:
        """The cell to put it into, and what; an exception where ``value`` cannot be written."""
        self.read()
        trace = self.cell.trace
        if isinstance(value, Tracer) and value._trace is not trace and _runs_in(value._trace, trace):
            raise ValueError(
                f"A {ref_type(self.type)} from outside a differentiated or batched function was given a value that "
                f"depends on what is differentiated or batched.  {value.describe()}  Make the ref inside the function, "
                "or write jax.lax.stop_gradient(value)."
            )
        if any(t.batches for t in _within(context.trace, trace)):
            raise ValueError(
                f"A {ref_type(self.type)} from outside a function that is batched by vmap is written in it, by every "
                "example at once.  Pass the ref as a mapped argument, so that each has its part, or make it inside."
            )
        return self.cell, unshared(value)

    def end(self) -> Any:
        """The last value; the ref cannot be used any more."""
        value = self.read()
        if self.cell is not self._cell:
            raise ValueError(
                f"A {ref_type(self.type)} from outside cannot be frozen or freed in a function that is traced (by jit, "
                "a loop or a branch): do it where it was made."
            )
        self._cell.value = None
        return value


def unshared(value: Any) -> Any:
    """The same value by another handle: giving up the memory of one array leaves refs alone."""
    return Array(value.aval, value.elements) if type(value) is Array else value


@final
class AbstractRef(Typed):
    """The type of a ref: what ``jax.typeof`` gives for one.  ``inner_aval`` is the type of its value."""

    __slots__ = ("inner_aval", "kind", "memory_space")

    def __init__(self, inner_aval: ShapedArray, memory_space: Any = None, kind: Any = None) -> None:
        self.inner_aval, self.memory_space, self.kind = inner_aval, memory_space, kind

    @property
    def type(self) -> ShapedArray:
        """The type of the value."""
        return self.inner_aval

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbstractRef) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self._parts())

    def _parts(self) -> tuple[Any, ...]:
        return self.inner_aval, self.memory_space, self.kind

    def __repr__(self) -> str:
        return ref_type(self.inner_aval)


@final
class CapturedRef(Exception):
    """A traced function uses a ref from outside; an error only where no transformation passes the ref in."""

    def __init__(self, ref: Ref) -> None:
        super().__init__(
            f"A {ref_type(ref.type)} is used in a function that is traced apart from where the ref was made, by a "
            "transformation that does not pass refs in (jit, scan, while_loop, fori_loop, cond, switch, map and "
            "checkpoint do), or after the function that made it returned.  Make the ref inside, or pass its value: "
            "ref[...]."
        )
        self.ref = ref


def ref_type(aval: ShapedArray) -> str:
    """How messages write the type of a ref."""
    return f"Ref{{{aval}}}"


def home_of(trace: Trace | None) -> Trace | None:
    """The trace that records what ``trace`` does; None where it is evaluated."""
    while trace is not None and hasattr(trace, "parent"):
        trace = trace.parent
    return trace


def _within(trace: Trace | None, outer: Trace | None) -> Iterator[Trace]:
    """The transformations at work from ``trace`` up to ``outer``, which is not among them."""
    while trace is not None and trace is not outer:
        yield trace
        trace = getattr(trace, "parent", None)


def _runs_in(trace: Trace | None, outer: Trace | None) -> bool:
    """Whether what ``trace`` does goes to ``outer`` at last."""
    while trace is not outer:
        if trace is None or not hasattr(trace, "parent"):
            return False
        trace = trace.parent
    return True


def noted(error: CapturedRef) -> CapturedRef:
    """The error, known to the trace that records: it does not end well though the user's code catches the error."""
    here: Any = home_of(context.trace)
    if here is not None:
        here.captured = error
    return error


class _Cells:
    """A block in which refs have these cells."""

    def __init__(self, refs: Sequence[Ref], cells: Sequence[Cell]) -> None:
        self.refs = refs
        self._cells = {id(r): c for r, c in zip(refs, cells, strict=True)}

    def __enter__(self) -> Callable[[], list[Any]]:
        self._before = context.refs
        context.refs = {**self._before, **self._cells}
        return lambda: read_all(self.refs)

    def __exit__(self, *exception: object) -> None:
        context.refs = self._before


def bound(refs: Sequence[Ref], values: Sequence[Any]) -> _Cells:
    """A block in which refs from outside hold ``values`` in the trace at work; gives a function for what they hold
    then."""
    return _Cells(refs, [Cell(v) for v in values])


def away(refs: Sequence[Ref]) -> _Cells:
    """While the values of ``refs`` are on their way through a program, the refs cannot be used from within it."""
    cells = [Cell(r.read()) for r in refs]
    for cell in cells:
        cell.home = _AWAY
    return _Cells(refs, cells)


_AWAY: Any = object()


@context_kept
def with_refs(call: Callable[[list[Ref]], Any], known: list[Ref] | None = None) -> Any:
    """``call(refs)``, again for each ref of the trace at work that it turns out to use; ``known`` are those that it is
    known to use, and grows."""
    refs: list[Ref] = [] if known is None else known
    while True:
        try:
            return call(refs)
        except CapturedRef as captured:
            if not belongs_here(captured.ref, refs):
                raise noted(captured) from None
            refs.append(captured.ref)


def belongs_here(ref: Ref, known: Sequence[Ref]) -> bool:
    """Whether a captured ref can be read in the trace at work and was not passed already."""
    return ref.usable() and all(r is not ref for r in known)


def carrying(function: Callable[..., Any], refs: Sequence[Ref]) -> Callable[..., Any]:
    """``(values, *args) -> (result, last values)``: the function with the refs' values as argument and result."""

    def call(values: Sequence[Any], *args: Any, **kwargs: Any) -> tuple[Any, list[Any]]:
        with bound(refs, values) as last:
            return function(*args, **kwargs), last()

    return call


def read_all(refs: Sequence[Ref]) -> list[Any]:
    """The refs' values."""
    return [r.read() for r in refs]


def write_all(refs: Sequence[Ref], values: Sequence[Any]) -> None:
    """Gives the refs new values: all of them, or none if an exception or a signal handler comes in between."""
    ready = [ref.ready_for(value) for ref, value in zip(refs, values, strict=True)]
    deque(map(_set_value, [cell for cell, _ in ready], [value for _, value in ready]), maxlen=0)  # no bytecode inside


_set_value = Cell.__dict__["value"].__set__  # of the slot
