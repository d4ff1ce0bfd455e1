"""``ufunc``: functions of two arguments with NumPy's methods (``reduce``, ``outer``, ``at``, ...).

The ten functions that JAX gives these methods: add, subtract, multiply, maximum, minimum, negative, the logical and
bitwise ones, logaddexp.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

from jaxlite.numpy import arithmetic, float_functions, logic
from jaxlite.numpy.promotion import array_operand, promoted_float, refuse_out
from jaxlite.numpy.reductions import all_, any_, max_, min_, prod, sum_


@final
class ufunc:
    """An elementwise function, callable, with methods that combine the elements of one array.

    >>> import jaxlite.numpy as jnp
    >>> jnp.add.reduce(jnp.arange(4))
    Array(6, dtype=int32)
    """

    def __init__(
        self, function: Callable[..., Any], name: str, nin: int, identity: Any = None, reduction: Any = None
    ) -> None:
        self._function, self.__name__, self.nin, self.nout = function, name, nin, 1
        self.nargs, self.identity, self._reduction = nin + 1, identity, reduction
        self.__doc__ = function.__doc__ or f"Elementwise {name}."

    def __repr__(self) -> str:
        return f"<jnp.ufunc '{self.__name__}'>"

    def __call__(self, *args: Any, out: Any = None, where: Any = None) -> Any:
        refuse_out(self.__name__, out)
        if where is not None:
            raise NotImplementedError(f"jnp.{self.__name__}: where= is not supported; use jnp.where on the result.")
        if len(args) != self.nin:
            raise TypeError(f"{self.__name__} takes {self.nin} arguments, got {len(args)}.")
        return self._function(*args)

    def reduce(
        self, a: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False,
        initial: Any = None, where: Any = None,
    ) -> Any:  # fmt: skip
        """The elements along ``axis`` combined."""
        refuse_out(f"{self.__name__}.reduce", out)
        if self._reduction is None:
            raise NotImplementedError(f"jnp.{self.__name__}.reduce is not supported.")
        value = array_operand(f"{self.__name__}.reduce", a)
        result = self._reduction(value, axis=axis, keepdims=keepdims, where=where)
        if initial is not None:
            result = self(result, initial)
        return result if dtype is None else result.astype(dtype)

    def outer(self, a: Any, b: Any, /) -> Any:
        """The function of every pair."""
        x, y = array_operand(self.__name__, a), array_operand(self.__name__, b)
        return self(x.reshape((*x.shape, *(1,) * y.ndim)), y.reshape((*(1,) * x.ndim, *y.shape)))

    def at(self, a: Any, indices: Any, b: Any = None, /, *, inplace: bool = True) -> Any:
        """``a`` with the function applied at ``indices``; needs ``inplace=False``."""
        if inplace:
            raise NotImplementedError(f"jnp.{self.__name__}.at: arrays are immutable, pass inplace=False.")
        updates = {"add": "add", "multiply": "multiply", "maximum": "max", "minimum": "min", "subtract": "subtract"}
        if self.__name__ not in updates:
            raise NotImplementedError(f"jnp.{self.__name__}.at is not supported.")
        return getattr(array_operand(self.__name__, a).at[indices], updates[self.__name__])(b)


add = ufunc(arithmetic.add2, "add", 2, 0, sum_)
subtract = ufunc(arithmetic.subtract2, "subtract", 2)
multiply = ufunc(arithmetic.multiply2, "multiply", 2, 1, prod)
maximum = ufunc(arithmetic.maximum2, "maximum", 2, None, max_)
minimum = ufunc(arithmetic.minimum2, "minimum", 2, None, min_)
negative = ufunc(arithmetic.negative2, "negative", 1)
logical_and = ufunc(logic.logical_and2, "logical_and", 2, True, all_)
logical_or = ufunc(logic.logical_or2, "logical_or", 2, False, any_)
logical_xor = ufunc(logic.logical_xor2, "logical_xor", 2, False)
bitwise_and = ufunc(logic.bitwise_and2, "bitwise_and", 2, -1)
bitwise_or = ufunc(logic.bitwise_or2, "bitwise_or", 2, 0)
bitwise_xor = ufunc(logic.bitwise_xor2, "bitwise_xor", 2, 0)
logaddexp = ufunc(float_functions.logaddexp_, "logaddexp", 2, float("-inf"))
logaddexp2 = ufunc(
    lambda x, y: float_functions.logaddexp2_(*promoted_float("logaddexp2", x, y)),
    "logaddexp2", 2, float("-inf"),
)  # fmt: skip
