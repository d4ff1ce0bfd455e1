"""Donation: what becomes of donated arguments when a program runs.

As in JAX, a donated array is used up if some result has its shape and dtype (each result uses up one); it counts as
deleted after the call, also after one that raised or was stopped.  Others stay, with a warning that their memory is of
no use.  Whether a result really is written there is for the backend to say, call by call.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, final

from jaxlite.core import runtime, source
from jaxlite.core.array import Array
from jaxlite.core.avals import ShapedArray
from jaxlite.core.errors import DoesNotFitError, JaxRuntimeError
from jaxlite.core.jaxpr import ClosedJaxpr, Var


@final
class Donation:
    """A program and the operands that it uses up: call it as the program itself."""

    __slots__ = ("_read", "_run", "_used")

    def __init__(self, executable: runtime.Executable, used: Sequence[int], read: Sequence[int]) -> None:
        self._used, self._read = tuple(used), tuple(read)
        self._run: Callable[[Sequence[Any]], list[Any]] = executable.donating(self._used)

    def __call__(self, operands: Sequence[Any]) -> list[Any]:
        """The results; the operands that were used up count as deleted."""
        if len({*map(id, operands)}) < len(operands):
            self._refuse_used_again(operands)
        try:
            results = self._run(operands)
        except DoesNotFitError:
            raise  # nothing has run
        except BaseException:
            self._delete(operands)
            raise
        self._delete(operands)
        return results

    def _refuse_used_again(self, operands: Sequence[Any]) -> None:
        """``JaxRuntimeError``, in XLA's words, if an array that is used up is also given in another place."""
        places: dict[int, int] = {}
        for place, number in enumerate(self._read):
            first = places.setdefault(id(operands[number]), place)
            if first == place or type(operands[number]) is not Array:
                continue
            again, before = number in self._used, self._read[first] in self._used
            if not (again or before):
                continue
            what, example = (
                ("donate the same buffer twice in", "f(donate(a), donate(a))")
                if again and before
                else ("donate a buffer which is also used by the same call to", "f(a, donate(a))")
                if again
                else ("use a buffer that was previously donated in the same call to", "f(donate(a), a)")
            )
            raise JaxRuntimeError(
                f"INVALID_ARGUMENT: Attempt to {what} Execute() (flattened argument {place}, replica 0, partition 0, "
                f"first use: {first}). Toy example for this bug: `{example}`."
            )

    def _delete(self, operands: Sequence[Any]) -> None:
        for number in self._used:
            if type(operands[number]) is Array:
                operands[number].delete()


def used_up(closed: ClosedJaxpr, donated: Sequence[bool]) -> tuple[list[int], list[ShapedArray]]:
    """Which arguments some result has the memory's shape and dtype of, and the types of those that none has."""
    read = _read(closed)
    waiting: dict[Any, list[int]] = {}
    for number, (var, given) in enumerate(zip(closed.jaxpr.invars, donated, strict=True)):
        if given and var in read:  # what the program does not read, it does not take
            waiting.setdefault((var.aval.shape, var.aval.dtype), []).append(number)
    used = [numbers.pop(0) for aval in closed.out_avals if (numbers := waiting.get((aval.shape, aval.dtype)))]
    rest = sorted(number for numbers in waiting.values() for number in numbers)
    return used, [closed.jaxpr.invars[number].aval for number in rest]


def read_arguments(closed: ClosedJaxpr) -> list[int]:
    """The numbers of the arguments that the program reads."""
    read = _read(closed)
    return [number for number, var in enumerate(closed.jaxpr.invars) if var in read]


def _read(closed: ClosedJaxpr) -> set[Var]:
    read = {v for e in closed.eqns for v in e.invars if isinstance(v, Var)}
    return read | {v for v in closed.jaxpr.outvars if isinstance(v, Var)}


def warn_of(unused: Sequence[ShapedArray], name: str) -> None:
    """The warning that donated arrays stay, at the user's line."""
    frame = source.user_frame()
    types = ", ".join(f"{a.dtype.name}[{','.join(map(str, a.shape))}]" for a in unused)
    message = (
        f"Some donated buffers were not usable: {types}.\nNo result of {name} that is still free has the shape and "
        "dtype, so the memory cannot be used for one, and the arrays stay.  Do not donate them."
    )
    if frame is None:
        warnings.warn(message, stacklevel=2)
        return
    registry = frame.f_globals.setdefault("__warningregistry__", {})
    warnings.warn_explicit(message, UserWarning, frame.f_code.co_filename, frame.f_lineno, registry=registry)
