"""Scalar types (``jnp.float32`` and the like): they name a dtype, and called make an array of it.

In: a value.  Out: an ``Array``.  NumPy reads them wherever it takes a dtype, through their ``dtype`` attribute.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxlite.core import dtypes


class ScalarType(type):
    """The class of scalar types: equal to their dtype, callable, never instantiated."""

    _dtype_name: str

    @property
    def dtype(self) -> Any:
        """The dtype that the type names."""
        return dtypes.as_dtype(self._dtype_name)

    def __hash__(self) -> int:
        return hash(self.dtype.type)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if isinstance(other, (np.dtype, type, ScalarType)):
            try:
                return bool(self.dtype == dtypes.as_dtype(other))
            except TypeError:
                return False
        return NotImplemented

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __call__(self, x: Any = 0) -> Any:
        from jaxlite.numpy.creation import asarray

        return asarray(x, dtype=self.dtype)

    def __instancecheck__(self, instance: Any) -> bool:
        return isinstance(instance, self.dtype.type)


def _scalar_type(name: str) -> Any:
    return ScalarType(name, (), {"_dtype_name": name, "__module__": "jax.numpy", "__doc__": f"The dtype {name}."})


bool_ = _scalar_type("bool")
int8, int16, int32, int64 = map(_scalar_type, ("int8", "int16", "int32", "int64"))
uint8, uint16, uint32, uint64 = map(_scalar_type, ("uint8", "uint16", "uint32", "uint64"))
float16, bfloat16, float32, float64 = map(_scalar_type, ("float16", "bfloat16", "float32", "float64"))
complex64, complex128 = map(_scalar_type, ("complex64", "complex128"))
single, double, csingle, cdouble = float32, float64, complex64, complex128
