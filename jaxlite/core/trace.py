"""Traces and tracers: how a transformation sees the operations of a function as it runs.

There is one current trace (``context.trace``; None is eager evaluation).  A transformation makes a
:class:`Trace` that knows its parent, makes it current, and calls the function on :class:`Tracer` objects; each
primitive applied meanwhile goes to ``Trace.process``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from jaxlite.core import errors, source
from jaxlite.core.avals import ShapedArray
from jaxlite.core.context import context

if TYPE_CHECKING:
    from jaxlite.core.primitive import Primitive


class Trace(ABC):
    """One transformation at work; ``batches`` says that it runs a function for many examples at once."""

    __slots__ = ()
    batches: ClassVar[bool] = False

    @abstractmethod
    def process(self, primitive: Primitive, operands: Sequence[Any], params: dict[str, Any]) -> Sequence[Any]:
        """The results of a primitive under this transformation."""


class current_trace:
    """A block in which ``trace`` is the one that primitives go to."""

    __slots__ = ("_before", "_trace")

    def __init__(self, trace: Trace | None) -> None:
        self._trace = trace

    def __enter__(self) -> None:
        self._before = context.trace
        context.trace = self._trace

    def __exit__(self, *exception: object) -> None:
        context.trace = self._before


def process(
    trace: Trace | None, primitive: Primitive, operands: Sequence[Any], params: dict[str, Any]
) -> Sequence[Any]:
    """Applies ``primitive`` in ``trace`` (None: eagerly), which is made current meanwhile."""
    before = context.trace
    context.trace = trace
    try:
        results = primitive.bind(*operands, **params)
    finally:
        context.trace = before
    return results if primitive.multiple_results else (results,)


class Tracer:
    """Stands for a value inside a transformation.  Array methods and operators are added by ``jaxlite.numpy``."""

    __slots__ = ("__weakref__", "_trace", "aval")
    __array_priority__ = 1000
    __hash__: ClassVar[Any] = object.__hash__

    aval: ShapedArray
    _trace: Any

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

    def concrete(self) -> Any:
        """The value where the transformation knows it, else None."""
        return None

    def describe(self) -> str:
        """What the user should know of where this came from; '' where there is nothing to tell."""
        return ""

    def __len__(self) -> int:
        if not self.aval.shape:
            raise TypeError("len() of unsized object: the array has no axes.")
        return self.aval.shape[0]

    def __repr__(self) -> str:
        return f"{type(self).__name__}<{self.aval}>"

    def _concrete_or(self, error: type[Exception], what: str, instead: str) -> Any:
        value = self.concrete()
        if value is None:
            raise error(concretization_message(self, what, instead))
        return value

    def _refused(self, error: type[Exception], what: str, instead: str) -> Exception:
        """For what no tracer becomes, because the result would carry no derivative."""
        return error(concretization_message(self, what, instead if self.concrete() is None else _CONSTANT))

    def __bool__(self) -> bool:
        instead = (
            "Use jax.numpy.where(condition, a, b) to choose between values, jax.lax.cond to run one of two functions, "
            "or jax.lax.while_loop for a loop; if the choice is known when tracing, mark the argument static "
            "(static_argnums or static_argnames of jax.jit)."
        )
        return bool(
            self._concrete_or(
                errors.TracerBoolConversionError, "its truth value (an if, while, and, or, not or assert)", instead
            )
        )

    def __int__(self) -> int:
        return int(self._concrete_or(errors.ConcretizationTypeError, "an int", _STATIC))

    def __float__(self) -> float:
        raise self._refused(errors.ConcretizationTypeError, "a float", _STATIC)

    def __complex__(self) -> complex:
        raise self._refused(errors.ConcretizationTypeError, "a complex", _STATIC)

    def __index__(self) -> int:
        return int(
            self._concrete_or(
                errors.TracerIntegerConversionError, "an integer (a shape, an axis, an index of a list)", _STATIC
            ).__index__()
        )

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        instead = "Use the function of jax.numpy of the same name, or jax.pure_callback to call NumPy from traced code."
        raise self._refused(errors.TracerArrayConversionError, "a NumPy array", instead)

    def item(self) -> Any:
        """The one element as a Python number, a constant to derivatives; only where the value is known."""
        value = self._concrete_or(errors.ConcretizationTypeError, "a Python number", _STATIC)
        return value.item() if hasattr(value, "item") else value

    def tolist(self) -> Any:
        """Refused: use ``jax.lax.stop_gradient(x).tolist()`` where only derivatives are in the way."""
        raise self._refused(errors.ConcretizationTypeError, "a list", _STATIC)

    def block_until_ready(self) -> Tracer:
        """Itself: there is nothing to wait for."""
        return self


_STATIC = (
    "Keep the computation in jax.numpy, or mark the argument static (static_argnums or static_argnames of jax.jit) so "
    "that it is an ordinary Python value."
)

_CONSTANT = (
    "The result would carry no derivative: keep the computation in jax.numpy, or "
    "convert jax.lax.stop_gradient of it if it is to count as a constant."
)


def concretization_message(tracer: Tracer, what: str, instead: str) -> str:
    """The message of an attempt to see a traced value: which value, what was asked, what to write."""
    frame = source.user_frame()
    where = f" at {frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else ""
    origin = tracer.describe()
    return (
        f"Attempted to use a traced array of type {tracer.aval} where a concrete value is needed: {what} was asked of "
        f"it{where}.{chr(10) + origin if origin else ''}\n{instead}"
    )


def escaped_message(tracer: Tracer) -> str:
    """The message for a tracer used after its transformation ended."""
    origin = tracer.describe()
    return (
        f"Encountered an unexpected tracer: a traced array of type {tracer.aval} was used after "
        "the function that it was made "
        f"in had returned.{chr(10) + origin if origin else ''}\nReturn the value from the "
        "transformed function instead of "
        "keeping it in a global, an attribute, a list or a closure."
    )
