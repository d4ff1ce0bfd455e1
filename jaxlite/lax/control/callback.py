"""Calls of Python from programs: ``pure_callback``, ``io_callback`` and ``debug_callback``.

A callback gets arrays and gives what its result types say.  Pure ones may be dropped or repeated; the others are
effects:
each runs once per execution, and ordered ones in the order of the program.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, final

import numpy as np

from jaxlite.core import dtypes
from jaxlite.core.array import Array
from jaxlite.core.avals import ShapedArray, aval_of, refuse_masked
from jaxlite.core.effects import Effect, Effects
from jaxlite.core.errors import NonDifferentiableError
from jaxlite.core.primitive import AxisData, Primitive
from jaxlite.interpreters.batch import broadcast_axis, move_axis, place_axis
from jaxlite.interpreters.zeros import Zero
from jaxlite.lax.layout.shaping import expand_dims
from jaxlite.lax.layout.slicing import index_in_dim


def as_array(value: np.ndarray[Any, Any], aval: ShapedArray) -> Array:
    """A program's value as the array that a callback gets: a copy, since the program's memory moves on."""
    return Array(aval, np.array(value))


class Callback(Primitive):
    """Base of callbacks: ``callback(*arrays)`` gives a flat sequence of arrays of ``result_avals``."""

    family: ClassVar[str] = "callback"
    multiple_results: ClassVar[bool] = True
    accepts: ClassVar[str] = "biufK"
    exact: ClassVar[bool] = True

    def abstract_eval(self, *avals: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        return tuple(params["result_avals"])

    def evaluate(self, *arrays: np.ndarray[Any, Any], **params: Any) -> tuple[np.ndarray[Any, Any], ...]:
        avals = params["operand_avals"]
        operands = [as_array(np.asarray(a), aval) for a, aval in zip(arrays, avals, strict=True)]
        results = params["callback"](*operands)
        return tuple(_checked(r, a, self.name) for r, a in zip(results, params["result_avals"], strict=True))

    def transpose(self, cotangents: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
        raise NonDifferentiableError(f"{self.name} has no transpose.")

    def one_by_one(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[int | None], params: dict[str, Any]
    ) -> Any:
        """The results of one call for each example, in order, stacked."""
        from jaxlite.lax.layout.slicing import concatenate

        columns = []
        for i in range(axis.size):
            example = [
                o if d is None else index_in_dim(o, i, d, keepdims=False) for o, d in zip(operands, dims, strict=True)
            ]
            columns.append(self.bind(*example, **params))
        stacked = [concatenate([expand_dims(v, (0,)) for v in values], 0) for values in zip(*columns, strict=True)]
        return stacked, [0] * len(stacked)


def _checked(result: Any, aval: ShapedArray, name: str) -> np.ndarray[Any, Any]:
    """``result`` as the callback promised it; ``RuntimeError`` where it is of another shape or dtype."""
    refuse_masked(result)
    array = np.array(
        result.elements if isinstance(result, Array) else result
    )  # the callback may write to its own again
    wanted = dtypes.physical(aval.dtype)
    if array.shape != aval.shape:
        raise RuntimeError(f"{name}: the callback gave an array of shape {array.shape}, but promised {aval}.")
    if array.dtype != wanted:
        if array.dtype.kind != wanted.kind and array.dtype.kind not in "biuf":
            raise RuntimeError(f"{name}: the callback gave {array.dtype.name}, but promised {aval}.")
        array = array.astype(wanted)
    return array


@final
class PureCallback(Callback):
    """Params: ``callback``, ``operand_avals``, ``result_avals``, ``vmap_method``."""

    name = "pure_callback"

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        raise ValueError(
            "Pure callbacks do not support JVP: jaxlite cannot see into the Python function. "
            "Please use jax.custom_jvp to use "
            "callbacks while taking gradients."
        )

    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[int | None], /, **params: Any
    ) -> tuple[list[Any], list[int | None]]:
        method = params["vmap_method"]
        if method is None:
            raise NotImplementedError(
                "pure_callback under vmap needs vmap_method: 'sequential' calls it for each "
                "example, 'broadcast_all' and 'expand_dims' "
                "once with whole batches."
            )
        if method.startswith("sequential"):
            return self.one_by_one(axis, operands, dims, params)  # type: ignore[no-any-return]
        if method == "broadcast_all":
            whole = [place_axis(o, d, axis.size, 0) for o, d in zip(operands, dims, strict=True)]
        else:  # "expand_dims": an axis of length 1 where there is no batch
            whole = [
                broadcast_axis(o, 1, 0) if d is None else move_axis(o, d, 0)
                for o, d in zip(operands, dims, strict=True)
            ]
        results = tuple(a.with_axis(axis.size) for a in params["result_avals"])
        changed = {"operand_avals": tuple(aval_of(w) for w in whole), "result_avals": results}
        return self.bind(*whole, **{**params, **changed}), [0] * len(results)


@final
class IOCallback(Callback):
    """Params: ``callback``, ``operand_avals``, ``result_avals``, ``ordered``."""

    name = "io_callback"

    def effects(self, **params: Any) -> Effects:
        return frozenset({Effect("io", params["ordered"])})

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        raise ValueError(
            "IO callbacks do not support JVP. Please use jax.custom_jvp to use callbacks while taking gradients."
        )

    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[int | None], /, **params: Any
    ) -> tuple[list[Any], list[int | None]]:
        if params["ordered"]:
            raise ValueError("Cannot `vmap` ordered IO callbacks: a batch has no order.  Use ordered=False.")
        return self.one_by_one(axis, operands, dims, params)  # type: ignore[no-any-return]


@final
class DebugCallback(Callback):
    """Params: ``callback``, ``operand_avals``, ``result_avals`` (none), ``ordered``.  Seen by no derivative."""

    name = "debug_callback"

    def effects(self, **params: Any) -> Effects:
        return frozenset({Effect("debug", params["ordered"])})

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        return self.bind(*primals, **params), []

    def transpose(self, cotangents: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
        return [Zero(o.aval) if hasattr(o, "aval") else None for o in operands]

    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[int | None], /, **params: Any
    ) -> tuple[list[Any], list[int | None]]:
        if params["ordered"]:
            raise ValueError("Cannot `vmap` ordered callbacks: a batch has no order.  Use ordered=False.")
        self.one_by_one(axis, operands, dims, params)
        return [], []


pure_callback_p, io_callback_p, debug_callback_p = PureCallback(), IOCallback(), DebugCallback()
