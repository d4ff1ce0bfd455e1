"""Comparisons: two operands of one dtype to bool."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, final

import numpy as np

from jaxlite.core.primitive import Sample
from jaxlite.lax.convert import operands_of
from jaxlite.lax.families.elementwise import Elementwise

_PAIR = (Sample(((3, 4), (3, 4))), Sample(((5,), ())), Sample(((), ())))


class Comparison(Elementwise):
    """Base of comparisons: ``opcode`` of the emitter and NumPy's ``function``."""

    opcode: ClassVar[str]
    function: ClassVar[Callable[..., Any]]
    exact = True
    samples = _PAIR
    partials = None  # type: ignore[assignment]

    def result_dtype(self, *operands: Any, **params: Any) -> Any:
        return np.dtype(bool)

    def scalar(self, e: Any, *xs: Any, **params: Any) -> Any:
        return getattr(e, self.opcode)(*xs)

    def numpy(self, *xs: Any, **params: Any) -> Any:
        return type(self).function(*xs)


@final
class Eq(Comparison):
    name, opcode, function = "eq", "eq", np.equal


@final
class Ne(Comparison):
    name, opcode, function = "ne", "ne", np.not_equal


@final
class Lt(Comparison):
    name, opcode, function = "lt", "lt", np.less


@final
class Le(Comparison):
    name, opcode, function = "le", "le", np.less_equal


@final
class Gt(Comparison):
    name, opcode, function = "gt", "gt", np.greater


@final
class Ge(Comparison):
    name, opcode, function = "ge", "ge", np.greater_equal


eq_p, ne_p, lt_p, le_p, gt_p, ge_p = Eq(), Ne(), Lt(), Le(), Gt(), Ge()


def eq(x: Any, y: Any) -> Any:
    """Elementwise ``x == y``."""
    return eq_p.bind(*operands_of(x, y))


def ne(x: Any, y: Any) -> Any:
    """Elementwise ``x != y``."""
    return ne_p.bind(*operands_of(x, y))


def lt(x: Any, y: Any) -> Any:
    """Elementwise ``x < y``."""
    return lt_p.bind(*operands_of(x, y))


def le(x: Any, y: Any) -> Any:
    """Elementwise ``x <= y``."""
    return le_p.bind(*operands_of(x, y))


def gt(x: Any, y: Any) -> Any:
    """Elementwise ``x > y``."""
    return gt_p.bind(*operands_of(x, y))


def ge(x: Any, y: Any) -> Any:
    """Elementwise ``x >= y``."""
    return ge_p.bind(*operands_of(x, y))
