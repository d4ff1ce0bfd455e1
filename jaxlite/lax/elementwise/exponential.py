"""Exponentials and logarithms."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from jaxlite.core.avals import aval_of
from jaxlite.core.errors import refuse
from jaxlite.core.primitive import Sample
from jaxlite.interpreters.series import Series, logarithm, minus, scaled, solved, squared
from jaxlite.lax.convert import full_like, operands_of
from jaxlite.lax.elementwise.arithmetic import add, div, mul, neg, sub
from jaxlite.lax.families.elementwise import Elementwise
from jaxlite.lax.families.mapped import Mapped

_ANY = (Sample(((3, 5),)), Sample(((),)), Sample(((0,),)))
_POSITIVE = (Sample(((3, 5),), low=0.1), Sample(((),), low=0.1))


@final
class Exp(Mapped):
    name, opcode, function, accepts, samples = "exp", "exp", np.exp, "f", _ANY

    def partials(self, out: Any, x: Any) -> Any:
        return (lambda t: mul(t, out),)

    def coefficients(self, out: Any, *xs: Series) -> list[Any]:
        return solved(out, xs[0], lambda y, k: y[k], out)


@final
class Exp2(Mapped):
    name, opcode, function, accepts, samples = "exp2", "exp2", np.exp2, "f", _ANY

    def partials(self, out: Any, x: Any) -> Any:
        # 2 log(2) exp2(x - 1): the result may overflow where its derivative does not.
        return (lambda t: mul(t, mul(full_like(x, 2 * np.log(2)), exp2(sub(x, full_like(x, 1))))),)

    def coefficients(self, out: Any, *xs: Series) -> list[Any]:
        x = [scaled(c, np.log(2)) for c in xs[0]]
        return solved(out, x, lambda y, k: y[k], out)


@final
class Expm1(Mapped):
    name, opcode, function, accepts, samples = "expm1", "expm1", np.expm1, "f", _ANY

    def partials(self, out: Any, x: Any) -> Any:
        return (lambda t: mul(t, add(out, full_like(x, 1))),)

    def coefficients(self, out: Any, *xs: Series) -> list[Any]:
        return solved(out, xs[0], lambda y, k: y[k], add(out, full_like(out, 1)))


@final
class Log(Mapped):
    name, opcode, function, accepts, samples = "log", "log", np.log, "f", _POSITIVE

    def partials(self, out: Any, x: Any) -> Any:
        return (lambda t: div(t, x),)

    def coefficients(self, out: Any, *xs: Series) -> list[Any]:
        return logarithm(xs[0], xs[0][0])


@final
class Log1p(Mapped):
    name, opcode, function, accepts = "log1p", "log1p", np.log1p, "f"
    samples = (Sample(((3, 5),), low=-0.9), Sample(((),), low=-0.9))

    def partials(self, out: Any, x: Any) -> Any:
        return (lambda t: div(t, add(x, full_like(x, 1))),)

    def coefficients(self, out: Any, *xs: Series) -> list[Any]:
        return logarithm(xs[0], add(xs[0][0], full_like(out, 1)))


@final
class Logistic(Elementwise):
    """1 / (1 + exp(-x))."""

    name, accepts, samples = "logistic", "f", _ANY

    def scalar(self, e: Any, x: Any) -> Any:
        return e.div(1.0, e.add(1.0, e.exp(e.neg(x))))

    def numpy(self, x: Any) -> Any:
        wide = x.astype(np.float32) if x.dtype.itemsize == 2 else x
        return 1 / (1 + np.exp(-wide))

    def partials(self, out: Any, x: Any) -> Any:
        # sigmoid'(x) = s(x) s(-x): 1 - s(x) would cancel for large x.
        return (lambda t: mul(t, mul(out, logistic(neg(x)))),)

    def coefficients(self, out: Any, *xs: Series) -> list[Any]:
        slope = mul(out, logistic(neg(xs[0][0])))
        return solved(out, xs[0], lambda y, k: minus(y[k], squared(y, k)), slope)  # y' = (y - y^2) x'


exp_p, exp2_p, expm1_p, log_p, log1p_p, logistic_p = Exp(), Exp2(), Expm1(), Log(), Log1p(), Logistic()


def exp(x: Any, accuracy: Any = None) -> Any:
    """Elementwise e ** x."""
    refuse("exp", "accuracy", accuracy, None, "elementary functions are within 2 ulp, whatever is asked")
    return exp_p.bind(*operands_of(x))


def exp2(x: Any, accuracy: Any = None) -> Any:
    """Elementwise 2 ** x."""
    refuse("exp2", "accuracy", accuracy, None, "elementary functions are within 2 ulp, whatever is asked")
    return exp2_p.bind(*operands_of(x))


def expm1(x: Any, accuracy: Any = None) -> Any:
    """Elementwise e ** x - 1, accurate near 0."""
    refuse("expm1", "accuracy", accuracy, None, "elementary functions are within 2 ulp, whatever is asked")
    return expm1_p.bind(*operands_of(x))


def log(x: Any, accuracy: Any = None) -> Any:
    """Elementwise natural logarithm."""
    refuse("log", "accuracy", accuracy, None, "elementary functions are within 2 ulp, whatever is asked")
    return log_p.bind(*operands_of(x))


def log1p(x: Any, accuracy: Any = None) -> Any:
    """Elementwise log(1 + x), accurate near 0."""
    refuse("log1p", "accuracy", accuracy, None, "elementary functions are within 2 ulp, whatever is asked")
    return log1p_p.bind(*operands_of(x))


def logistic(x: Any, accuracy: Any = None) -> Any:
    """Elementwise sigmoid, 1 / (1 + exp(-x))."""
    refuse("logistic", "accuracy", accuracy, None, "elementary functions are within 2 ulp, whatever is asked")
    return logistic_p.bind(*operands_of(x))


def one_minus_square(x: Any) -> Any:
    """Elementwise (1 - x) (1 + x): what tanh's derivative is made of, without cancellation near 1."""
    one = full_like(x, 1)
    assert aval_of(x).dtype == one.dtype
    return mul(sub(one, x), add(one, x))
