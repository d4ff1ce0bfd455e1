"""Casts: ``convert_element_type`` changes the dtype and keeps the value, ``bitcast_convert_type`` the reverse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import numpy as np

from jaxlite.core import dtypes
from jaxlite.core.array import Array
from jaxlite.core.avals import ShapedArray, aval_of
from jaxlite.core.factors import Factors, leading
from jaxlite.core.primitive import AxisData, Primitive, Sample
from jaxlite.interpreters.batch import move_axis
from jaxlite.interpreters.zeros import Zero, zero_of
from jaxlite.lax.convert import array_of, operand_of
from jaxlite.lax.families.elementwise import Elementwise

# bfloat16 is tested apart: naming it here would import ml_dtypes with jaxlite.
_TARGETS = ("float32", "int32", "bool", "float16", "int8", "uint8")


@final
class ConvertElementType(Elementwise):
    """Floats to integers saturate and take NaN to 0; integers wrap; anything to bool asks whether it is not 0."""

    name, identities = "convert_element_type", ("same",)
    samples = tuple(
        Sample(((3, 4),), {"new_dtype": dtypes.as_dtype(t), "weak_type": False, "sharding": None}, low=-9, high=9)
        for t in _TARGETS
    )
    piecewise_linear = True

    def abstract_eval(self, *avals: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        (aval,) = avals
        if dtypes.is_key(aval.dtype):
            raise TypeError(
                f"Random keys of dtype {aval.dtype} do not convert to {params['new_dtype']}: use jax.random.key_data."
            )
        for dtype in (aval.dtype, params["new_dtype"]):
            if dtype.kind == "c" and aval.dtype != params["new_dtype"]:
                raise NotImplementedError(
                    f"convert_element_type from {aval.dtype.name} to {params['new_dtype'].name}: complex arrays can be "
                    "held, but no operation takes them.  Keep real and imaginary part in two arrays."
                )
        return (ShapedArray(aval.shape, params["new_dtype"], params["weak_type"]),)

    def result_dtype(self, *operands: Any, **params: Any) -> Any:
        return params["new_dtype"]

    def scalar(self, e: Any, x: Any, new_dtype: Any, weak_type: bool, sharding: Any) -> Any:
        return e.convert(x, new_dtype)

    def numpy(self, x: Any, new_dtype: Any, weak_type: bool, sharding: Any) -> Any:
        if new_dtype.kind == "b":
            return x != 0
        if not (dtypes.is_float(x.dtype) and dtypes.is_integer(new_dtype)):
            return x.astype(new_dtype)
        info = np.iinfo(new_dtype)
        wide = np.trunc(x.astype(np.float64))
        inside = np.where((wide > info.min) & (wide < info.max), wide, 0).astype(new_dtype)
        inside = np.where(wide <= info.min, info.min, np.where(wide >= info.max, info.max, inside))
        return np.where(np.isnan(wide), 0, inside).astype(new_dtype)

    def partials(self, out: Any, x: Any, new_dtype: Any, weak_type: bool, sharding: Any) -> Any:
        if not dtypes.is_float(aval_of(x).dtype):
            return (None,)
        return (lambda t: self.bind(t, new_dtype=new_dtype, weak_type=weak_type, sharding=sharding),)

    def pull_back(self, cotangent: Any, x: Any, **params: Any) -> list[Any]:
        old = x.aval
        return [self.bind(cotangent, new_dtype=old.dtype, weak_type=old.weak_type, sharding=None)]


@final
class BitcastConvertType(Primitive):
    """The same bits under another dtype; a narrower one adds an axis of parts, lowest first, a wider one removes it."""

    name, family, accepts, exact = "bitcast_convert_type", "layout", "biuf", True
    samples = (
        Sample(((3, 4),), {"new_dtype": dtypes.as_dtype("int32")}, dtypes=("float32",)),
        Sample(((3, 4),), {"new_dtype": dtypes.as_dtype("uint8")}, dtypes=("int32",)),
        Sample(((3, 2),), {"new_dtype": dtypes.as_dtype("float32")}, dtypes=("uint16",)),
    )
    piecewise_linear = True

    def abstract_eval(self, *avals: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        (aval,) = avals
        old, new = aval.dtype.itemsize, params["new_dtype"].itemsize
        if old == new:
            return (ShapedArray(aval.shape, params["new_dtype"]),)
        if old > new:
            return (ShapedArray((*aval.shape, old // new), params["new_dtype"]),)
        if not aval.shape or aval.shape[-1] * old != new:
            raise ValueError(
                f"bitcast_convert_type from {aval} to {params['new_dtype'].name} needs a last axis of {new // old}."
            )
        return (ShapedArray(aval.shape[:-1], params["new_dtype"]),)

    def factors(self, avals: Sequence[ShapedArray], results: Sequence[ShapedArray], **params: Any) -> Factors | None:
        return leading(avals[0], results[0], "The parts of a number must not be split.")

    def evaluate(self, *arrays: np.ndarray[Any, Any], **params: Any) -> tuple[np.ndarray[Any, Any], ...]:
        (x,) = arrays
        (aval,) = self.abstract_eval(ShapedArray(x.shape, x.dtype), **params)
        flat = np.ascontiguousarray(x).reshape(-1).view(params["new_dtype"])
        return (flat.reshape(aval.shape),)

    def element(
        self, e: Any, number: int, index: tuple[Any, ...], read: Any, avals: Sequence[ShapedArray], new_dtype: Any
    ) -> Any:
        old, new = avals[0].dtype.itemsize, new_dtype.itemsize
        if old == new:
            return e.bitcast(read(0, index), new_dtype)
        unsigned = dtypes.as_dtype(f"uint{old * 8}")
        small = dtypes.as_dtype(f"uint{min(old, new) * 8}")
        if old > new:
            whole = e.bitcast(read(0, index[:-1]), unsigned)
            part = e.shift_right_logical(whole, e.convert(e.mul(index[-1], new * 8), unsigned))
            return e.bitcast(e.convert(part, small), new_dtype)
        wide = dtypes.as_dtype(f"uint{new * 8}")
        whole = e.constant(0, wide)
        for position in range(new // old):
            part = e.convert(e.bitcast(read(0, (*index, e.constant(position, np.dtype(np.int64)))), unsigned), wide)
            whole = e.or_(whole, e.shift_left(part, position * old * 8))
        return e.bitcast(whole, new_dtype)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        out = self.bind(*primals, **params)
        return [out], [zero_of(out)]

    def transpose(self, cotangents: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
        return [Zero(operands[0].aval)]

    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[int | None], /, **params: Any
    ) -> tuple[list[Any], list[int | None]]:
        assert dims[0] is not None
        return [self.bind(move_axis(operands[0], dims[0], 0), **params)], [0]


convert_element_type_p, bitcast_convert_type_p = ConvertElementType(), BitcastConvertType()


def convert_element_type(operand: Any, new_dtype: Any) -> Any:
    """Elementwise cast to ``new_dtype`` (a dtype, or a Python scalar type for a weak one)."""
    weak = new_dtype in (int, float, complex)
    return convert(array_of(operand), dtypes.canonicalize(new_dtype), weak)


def convert(operand: Any, dtype: Any, weak_type: bool = False) -> Any:
    """``operand`` with exactly this dtype and weak type; itself where it has them already."""
    if type(operand) is Array and operand.aval.dtype is dtype and operand.aval.weak_type == weak_type:
        return operand
    operand = operand_of(operand)
    aval = aval_of(operand)
    if aval.dtype == dtype and aval.weak_type == weak_type and not isinstance(operand, (bool, int, float, complex)):
        return operand
    return convert_element_type_p.bind(operand, new_dtype=dtype, weak_type=weak_type, sharding=None)


def bitcast_convert_type(operand: Any, new_dtype: Any) -> Any:
    """The bits of ``operand`` read as ``new_dtype``."""
    return bitcast_convert_type_p.bind(operand_of(operand), new_dtype=dtypes.canonicalize(new_dtype))
