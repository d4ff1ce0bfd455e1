"""What random numbers are made of: the Threefry hash, and typed keys taken apart and put together.

A key is two words of 32 bits.  ``threefry2x32`` follows Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as
easy
as 1, 2, 3" (SC 2011), with 20 rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import numpy as np

from jaxlite.core import dtypes
from jaxlite.core.avals import ShapedArray
from jaxlite.core.factors import Factors, leading, pointwise
from jaxlite.core.primitive import AxisData, Primitive, Sample
from jaxlite.interpreters.batch import move_axis
from jaxlite.interpreters.zeros import Zero, zero_of
from jaxlite.lax.families.elementwise import align_batched, check_accepts, check_same_dtypes, common_shape

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA
_U32, _U64 = np.dtype(np.uint32), np.dtype(np.uint64)


def _hash(add: Any, xor: Any, rotate: Any, constant: Any, k0: Any, k1: Any, x0: Any, x1: Any) -> tuple[Any, Any]:
    """Five groups of four rounds, a key word added after each (Salmon et al., section 3.3)."""
    schedule = (k0, k1, xor(xor(k0, k1), constant(_PARITY)))
    x0, x1 = add(x0, k0), add(x1, k1)
    for group in range(5):
        for distance in _ROTATIONS[group % 2]:
            x0 = add(x0, x1)
            x1 = xor(x0, rotate(x1, distance))
        x0 = add(x0, schedule[(group + 1) % 3])
        x1 = add(x1, add(schedule[(group + 2) % 3], constant(group + 1)))
    return x0, x1


class _WithoutDerivative(Primitive):
    """Base of primitives on integers and keys, which have no tangents."""

    piecewise_linear = True

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        outs = self.bind(*primals, **params)
        outs = list(outs) if self.multiple_results else [outs]
        return outs, [zero_of(o) for o in outs]

    def transpose(self, cotangents: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
        return [Zero(o.aval) if hasattr(o, "aval") else None for o in operands]


@final
class Threefry2x32(_WithoutDerivative):
    """Hashes the counter (x0, x1) with the key (k0, k1); all uint32, two results."""

    name, family, multiple_results, accepts = "threefry2x32", "elementwise", True, "u"
    samples = (Sample(((), (), (5,), (5,)), dtypes=("uint32",) * 4, low=0, high=2**31),)

    def abstract_eval(self, *avals: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        check_accepts(self, avals)
        check_same_dtypes(self, avals)
        if avals[0].dtype != _U32:
            raise TypeError(f"threefry2x32 takes uint32, got {avals[0].dtype.name}.")
        out = ShapedArray(common_shape(self.name, avals), _U32)
        return out, out

    def factors(self, avals: Sequence[ShapedArray], results: Sequence[ShapedArray], **params: Any) -> Factors | None:
        return pointwise(avals, results)

    def evaluate(self, *arrays: np.ndarray[Any, Any], **params: Any) -> tuple[np.ndarray[Any, Any], ...]:
        def rotate(x: Any, by: int) -> Any:
            return (x << np.uint32(by)) | (x >> np.uint32(32 - by))

        return tuple(map(np.asarray, _hash(np.add, np.bitwise_xor, rotate, np.uint32, *np.broadcast_arrays(*arrays))))

    def element(
        self, e: Any, number: int, index: tuple[Any, ...], read: Any, avals: Sequence[ShapedArray], **params: Any
    ) -> Any:
        def rotate(x: Any, by: int) -> Any:
            return e.or_(e.shift_left(x, by), e.shift_right_logical(x, 32 - by))

        words = [read(i, index if a.shape else ()) for i, a in enumerate(avals)]
        return _hash(e.add, e.xor, rotate, lambda v: e.constant(v, _U32), *words)[number]

    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[int | None], /, **params: Any
    ) -> tuple[list[Any], list[int | None]]:
        return self.bind(*align_batched(operands, dims, axis.size)), [0, 0]


@final
class RandomWrap(_WithoutDerivative):
    """Pairs of words along the last axis become keys."""

    name, family, accepts, exact = "random_wrap", "layout", "u", True
    samples = (Sample(((3, 2),), dtypes=("uint32",), low=0, high=2**31),)

    def abstract_eval(self, *avals: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        (aval,) = avals
        if aval.dtype != _U32 or not aval.shape or aval.shape[-1] != 2:
            raise TypeError(f"Key data must be uint32 with a last axis of 2, got {aval}.")
        return (ShapedArray(aval.shape[:-1], dtypes.KEY),)

    def factors(self, avals: Sequence[ShapedArray], results: Sequence[ShapedArray], **params: Any) -> Factors | None:
        return leading(avals[0], results[0], "The two words of a key must not be split.")

    def evaluate(self, *arrays: np.ndarray[Any, Any], **params: Any) -> tuple[np.ndarray[Any, Any], ...]:
        words = np.ascontiguousarray(arrays[0])
        return (words.reshape(-1).view(_U64).reshape(words.shape[:-1]),)

    def element(
        self, e: Any, number: int, index: tuple[Any, ...], read: Any, avals: Sequence[ShapedArray], **params: Any
    ) -> Any:
        low, high = (e.convert(read(0, (*index, e.constant(i, np.dtype(np.int64)))), _U64) for i in (0, 1))
        return e.or_(low, e.shift_left(high, 32))

    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[int | None], /, **params: Any
    ) -> tuple[list[Any], list[int | None]]:
        assert dims[0] is not None
        return [self.bind(move_axis(operands[0], dims[0], 0))], [0]


@final
class RandomUnwrap(_WithoutDerivative):
    """Keys become pairs of words along a new last axis; ``uses_up`` where random numbers are made of these."""

    name, family, accepts, exact = "random_unwrap", "layout", "K", True
    samples = (Sample(((3,),), dtypes=("key<fry>",), low=0, high=2**31),)

    def uses_up(self, **params: Any) -> tuple[int, ...]:
        return (0,) if params.get("uses_up", False) else ()

    def abstract_eval(self, *avals: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        (aval,) = avals
        if not dtypes.is_key(aval.dtype):
            raise TypeError(f"Expected random keys, got {aval}.  Make one with jax.random.key(seed).")
        return (ShapedArray((*aval.shape, 2), _U32),)

    def factors(self, avals: Sequence[ShapedArray], results: Sequence[ShapedArray], **params: Any) -> Factors | None:
        return leading(avals[0], results[0], "The two words of a key must not be split.")

    def evaluate(self, *arrays: np.ndarray[Any, Any], **params: Any) -> tuple[np.ndarray[Any, Any], ...]:
        keys = np.asarray(arrays[0], order="C")
        return (keys.reshape(-1).view(_U32).reshape((*keys.shape, 2)),)

    def element(
        self, e: Any, number: int, index: tuple[Any, ...], read: Any, avals: Sequence[ShapedArray], **params: Any
    ) -> Any:
        shift = e.convert(e.mul(index[-1], 32), _U64)
        return e.convert(e.shift_right_logical(read(0, index[:-1]), shift), _U32)

    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[int | None], /, **params: Any
    ) -> tuple[list[Any], list[int | None]]:
        assert dims[0] is not None
        return [self.bind(move_axis(operands[0], dims[0], 0), **params)], [0]


threefry2x32_p, random_wrap_p, random_unwrap_p = Threefry2x32(), RandomWrap(), RandomUnwrap()
