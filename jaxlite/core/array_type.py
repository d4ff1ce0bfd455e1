"""``jax.Array``, the type that users ask about: concrete arrays and tracers alike are instances of it."""

from __future__ import annotations

from typing import Any, final

from jaxlite.core.array import Array as ConcreteArray
from jaxlite.core.trace import Tracer


class _ArrayMeta(type):
    """Makes ``isinstance`` and ``issubclass`` see every kind of array."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, (ConcreteArray, Tracer))

    def __subclasscheck__(cls, subclass: type) -> bool:
        return subclass is cls or issubclass(subclass, (ConcreteArray, Tracer))


@final
class Array(metaclass=_ArrayMeta):
    """An array of jaxlite's: one that holds values, or a tracer that stands for one while a function is transformed.

    For ``isinstance`` and annotations; arrays are made by ``jaxlite.numpy.array`` and the like.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("jax.Array is not made directly: use jax.numpy.array, zeros, ones, arange and the like.")


Array.__module__ = "jax"
