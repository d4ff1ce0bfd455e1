"""Every exception class that users meet, and the check that refuses parameters without effect.

A message says what was given, what was expected, and what to write instead.
"""

from __future__ import annotations

from typing import Any


class TypePromotionError(ValueError):
    """Dtypes that do not promote to a common one."""


class JAXTypeError(TypeError):
    """A value of a kind that a transformation cannot use."""


class JAXIndexError(IndexError):
    """An index of a kind that tracing cannot use."""


class ConcretizationTypeError(JAXTypeError):
    """A concrete value was asked of a traced one."""


class TracerArrayConversionError(JAXTypeError):
    """NumPy was given a traced array."""


class TracerIntegerConversionError(JAXTypeError):
    """An integer was asked of a traced array."""


class TracerBoolConversionError(ConcretizationTypeError):
    """A truth value was asked of a traced array."""


class NonConcreteBooleanIndexError(JAXIndexError):
    """A traced boolean mask was used where its count of true entries sets a shape."""


class UnexpectedTracerError(JAXTypeError):
    """A tracer was used after its transformation ended."""


class KeyReuseError(RuntimeError):
    """A random key was used twice."""


class JaxRuntimeError(RuntimeError):
    """A compiled program failed while running."""


class DoesNotFitError(JaxRuntimeError, MemoryError):
    """Arrays or a program would take more memory than there is; nothing has run."""


class ShardingTypeError(Exception):
    """Shardings of operands do not say how a result lies."""


class NonDifferentiableError(TypeError):
    """A derivative was asked of something that has none."""


def refuse(function: str, parameter: str, value: Any, default: Any, why: str) -> None:
    """``NotImplementedError`` unless ``value`` is the parameter's default: what has no effect is not accepted.

    >>> refuse("vmap", "spmd_axis_name", None, None, "there is no sharding")
    """
    if value is default or (type(value) is type(default) and value == default):
        return
    raise NotImplementedError(
        f"{function}: {parameter}={value!r} is not supported: {why}. Leave {parameter} out; its default is {default!r}."
    )
