"""Jaxprs as text, in JAX's notation.  In: a jaxpr.  Out: a string; the same jaxpr always gives the same one."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxlite.core import dtypes
from jaxlite.core.jaxpr import ClosedJaxpr, DropVar, Jaxpr, JaxprEqn, Literal

_WIDTH = 80


class _Names:
    """Names variables a, b, ..., z, aa, ... in the order of their first mention."""

    def __init__(self) -> None:
        self._names: dict[Any, str] = {}

    def __call__(self, var: Any) -> str:
        if isinstance(var, DropVar):
            return "_"
        if var not in self._names:
            number, name = len(self._names), ""
            while number >= 0:
                name = chr(ord("a") + number % 26) + name
                number = number // 26 - 1
            self._names[var] = name
        return self._names[var]


def literal_text(literal: Literal) -> str:
    """``2.0:f32[]``."""
    value = literal.val
    value = value.item() if isinstance(value, (np.generic, np.ndarray)) and value.dtype.kind in "biuf" else value
    return f"{value}:{literal.aval.short()}"


def _binder(var: Any, names: _Names) -> str:
    return f"{names(var)}:{var.aval.short()}"


def _atom(atom: Any, names: _Names) -> str:
    return literal_text(atom) if isinstance(atom, Literal) else names(atom)


def _param(value: Any) -> str:
    if isinstance(value, np.dtype) or dtypes.is_key(value):
        return str(value.name)
    if isinstance(value, type):
        return value.__name__
    if callable(value) and hasattr(value, "__name__"):
        return str(value.__name__)
    return str(value)


def _indent(text: str, by: int) -> str:
    return text.replace("\n", "\n" + " " * by)


def _params(params: dict[str, Any], source_info: bool) -> str:
    entries = []
    for key, value in sorted(params.items()):
        if isinstance(value, ClosedJaxpr):
            text = _indent(_braced(value.jaxpr, _Names(), source_info), 2)
        elif isinstance(value, tuple) and value and isinstance(value[0], ClosedJaxpr):
            inner = "\n".join(_indent(_braced(v.jaxpr, _Names(), source_info), 2) for v in value)
            text = f"(\n    {_indent(inner, 4)}\n  )"
        else:
            text = _param(value)
        entries.append(f"{key}={text}")
    one_line = " ".join(entries)
    if len(one_line) <= _WIDTH // 2 and "\n" not in one_line:
        return f"[{one_line}]" if entries else ""
    return "[\n  " + "\n  ".join(entries) + "\n]"


def equation_text(eqn: JaxprEqn, names: _Names, source_info: bool = False) -> str:
    """``c:f32[3] = mul a b``."""
    left = " ".join(_binder(v, names) if not isinstance(v, DropVar) else f"_:{v.aval.short()}" for v in eqn.outvars)
    params = _params(eqn.params, source_info)
    right = " ".join([f"{eqn.primitive.name}{params}", *(_atom(a, names) for a in eqn.invars)])
    text = f"{left} = {right}"
    if source_info and eqn.source.summary():
        text += f" # {eqn.source.summary()}"
    return text


def _braced(jaxpr: Jaxpr, names: _Names, source_info: bool) -> str:
    consts = " ".join(_binder(v, names) for v in jaxpr.constvars)
    args = " ".join(_binder(v, names) for v in jaxpr.invars)
    head = "lambda " + "; ".join([consts + " " if consts else "", args])
    lines = [equation_text(e, names, source_info) for e in jaxpr.eqns]
    outs = ", ".join(_atom(a, names) for a in jaxpr.outvars)
    outs = f"({outs},)" if len(jaxpr.outvars) == 1 else f"({outs})"
    if not lines:
        return f"{{ {head}. let  in {outs} }}"
    if len(lines) == 1 and "\n" not in lines[0] and len(head) + len(lines[0]) + len(outs) < _WIDTH - 12:
        return f"{{ {head}. let {lines[0]} in {outs} }}"
    body = "\n".join("    " + _indent(line, 4) for line in lines)
    return f"{{ {head}. let\n{body}\n  in {outs} }}"


def jaxpr_text(jaxpr: Jaxpr, source_info: bool = False) -> str:
    """The whole jaxpr as JAX prints it, with ``# file:line (function)`` after each equation if asked."""
    return _braced(jaxpr, _Names(), source_info)


def namer() -> _Names:
    """A fresh naming, for callers that print equations one by one."""
    return _Names()
