"""fingerprint: a closed jaxpr in, bytes out that are equal exactly where the compiled code would be.

Variables count by their order, so that a program traced again, in this process or another, has the same fingerprint;
lines and names of the user's do not count.  A program that holds what only this process knows (a Python function to
call, say) has none: :class:`NotStorable` says what stands in the way.
"""

from __future__ import annotations

import dataclasses
import enum
import hashlib
from collections.abc import Callable
from typing import Any, final

import numpy as np

from jaxlite.core import dtypes
from jaxlite.core.array import Array
from jaxlite.core.avals import ShapedArray
from jaxlite.core.jaxpr import ClosedJaxpr, DropVar, Jaxpr, Literal

DIGEST_BYTES = 32


@final
class NotStorable(Exception):
    """The program depends on something that has no meaning outside this process."""


def fingerprint(*values: Any) -> bytes:
    """The digest of jaxprs and of the values that equations may hold."""
    text = _Text()
    for value in values:
        text.value(value)
    return hashlib.blake2b("\n".join(text.lines).encode(), digest_size=DIGEST_BYTES).digest()


@final
class _Text:
    """Writes values as lines, each with its type, so that no two values have the same lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._avals: dict[int, str] = {}
        self._kept: list[Any] = []  # what `_avals` knows by identity

    def value(self, value: Any) -> None:
        write = _WRITERS.get(type(value))
        if write is not None:
            write(self, value)
        elif isinstance(value, np.dtype):
            self.lines.append(f"dtype {value.str if value.names is None else value.descr} {value.name}")
        elif isinstance(value, np.generic):
            self.array(np.asarray(value))
        elif isinstance(value, enum.Enum):
            self.lines.append(f"enum {type(value).__qualname__}.{value.name}")
        elif dtypes.is_key(value):
            self.lines.append(f"dtype {value.name}")
        elif isinstance(value, type):
            self.lines.append(f"type {value.__module__}.{value.__qualname__}")
        elif isinstance(value, tuple):  # a named one
            self.lines.append(type(value).__qualname__)
            self.sequence(tuple(value))
        elif dataclasses.is_dataclass(value):
            self.lines.append(f"{type(value).__qualname__} {len(dataclasses.fields(value))}")
            for field in dataclasses.fields(value):
                self.lines.append(field.name)
                self.value(getattr(value, field.name))
        else:
            raise NotStorable(f"it holds a {type(value).__qualname__}, {value!r}")

    def atom(self, value: Any) -> None:
        self.lines.append(f"{type(value).__name__} {value!r}")

    def sequence(self, values: Any) -> None:
        self.lines.append(f"{type(values).__name__} {len(values)}")
        for value in values:
            self.value(value)

    def mapping(self, values: dict[Any, Any]) -> None:
        self.lines.append(f"dict {len(values)}")
        for key in values:
            self.value(key)
            self.value(values[key])

    def unordered(self, values: Any) -> None:
        self.sequence(sorted(values, key=repr))

    def array(self, array: np.ndarray[Any, Any]) -> None:
        if array.dtype.hasobject:
            raise NotStorable(f"it holds an array of {array.dtype}")
        self.lines.append(f"array {array.dtype.name} {array.shape} {hashlib.blake2b(array.tobytes()).hexdigest()}")

    def own_array(self, array: Array) -> None:
        self.lines.append(self.aval(array.aval))
        self.array(array.elements)

    def aval(self, aval: ShapedArray) -> str:
        known = self._avals.get(id(aval))
        if known is None:
            sharding = "" if aval.sharding is None else f" {aval.sharding!r}"
            varying = f" {sorted(aval.varying)}" if aval.varying else ""
            known = f"{aval.dtype.name}{aval.shape}{aval.weak_type}{sharding}{varying}"
            self._avals[id(aval)] = known
            self._kept.append(aval)
        return known

    def write_aval(self, aval: ShapedArray) -> None:
        self.lines.append(self.aval(aval))

    def closed(self, closed: ClosedJaxpr) -> None:
        self.jaxpr(closed.jaxpr)
        self.sequence(closed.consts)

    def jaxpr(self, jaxpr: Jaxpr) -> None:
        numbers: dict[Any, int] = {}
        lines = self.lines

        def bind(var: Any) -> str:
            if isinstance(var, DropVar):
                return f"_:{self.aval(var.aval)}"
            numbers[var] = len(numbers)
            return f"{numbers[var]}:{self.aval(var.aval)}"

        def read(atom: Any) -> str:
            if not isinstance(atom, Literal):
                return str(numbers[atom])
            value = np.asarray(atom.val if not isinstance(atom.val, Array) else atom.val.elements)
            return f"{value.dtype.name} {value.tobytes().hex()}:{self.aval(atom.aval)}"

        lines.append(f"jaxpr {len(jaxpr.constvars)} {len(jaxpr.eqns)}")
        lines.append(" ".join(map(bind, (*jaxpr.constvars, *jaxpr.invars))))
        for eqn in jaxpr.eqns:
            inputs = " ".join(map(read, eqn.invars))
            lines.append(f"{eqn.primitive.name} {inputs} > {' '.join(map(bind, eqn.outvars))}")
            body = eqn.primitive.inlined(**eqn.params)  # of calls and custom rules nothing else is compiled
            if body is not None:
                self.value(body)
            elif eqn.params:
                self.mapping(eqn.params)
        lines.append(" ".join(map(read, jaxpr.outvars)))


_WRITERS: dict[type, Callable[[_Text, Any], None]] = {
    **dict.fromkeys((bool, int, float, complex, str, bytes, type(None), type(...), slice), _Text.atom),
    **dict.fromkeys((tuple, list), _Text.sequence),
    **dict.fromkeys((set, frozenset), _Text.unordered),
    dict: _Text.mapping,
    np.ndarray: _Text.array,
    Array: _Text.own_array,
    ShapedArray: _Text.write_aval,
    ClosedJaxpr: _Text.closed,
    Jaxpr: _Text.jaxpr,
}
