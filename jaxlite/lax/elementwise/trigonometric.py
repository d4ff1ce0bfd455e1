"""Trigonometric and hyperbolic functions and their inverses."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from jaxlite.core.errors import refuse
from jaxlite.core.primitive import Sample
from jaxlite.interpreters.series import Series, integrated, minus, scaled, slope, solved, squared
from jaxlite.lax.convert import full_like, operands_of
from jaxlite.lax.elementwise.arithmetic import add, div, mul, neg, sub
from jaxlite.lax.elementwise.exponential import one_minus_square
from jaxlite.lax.elementwise.powers import rsqrt, sqrt, square
from jaxlite.lax.families.elementwise import Elementwise
from jaxlite.lax.families.mapped import Mapped

_ANY = (Sample(((3, 5),)), Sample(((),)))
_UNIT = (Sample(((3, 5),), low=-0.9, high=0.9), Sample(((),), low=-0.9, high=0.9))


def pair(sine: Any, cosine: Any, x: Series, sign: int) -> tuple[list[Any], list[Any]]:
    """The coefficients after the first of s and c, where ``s' = c x'`` and ``c' = sign s x'``."""
    dx, s, c = slope(x), [sine], [cosine]
    for k in range(1, len(x)):
        following = integrated(dx, c, k), scaled(integrated(dx, s, k), sign)
        s.append(following[0])
        c.append(following[1])
    return s[1:], c[1:]


@final
class Sin(Mapped):
    name, opcode, function, accepts, samples = "sin", "sin", np.sin, "f", _ANY

    def partials(self, out: Any, x: Any) -> Any:
        return (lambda t: mul(t, cos(x)),)

    def coefficients(self, out: Any, *xs: Series) -> list[Any]:
        return pair(out, cos(xs[0][0]), xs[0], -1)[0]


@final
class Cos(Mapped):
    name, opcode, function, accepts, samples = "cos", "cos", np.cos, "f", _ANY

    def partials(self, out: Any, x: Any) -> Any:
        return (lambda t: neg(mul(t, sin(x))),)

    def coefficients(self, out: Any, *xs: Series) -> list[Any]:
        return pair(sin(xs[0][0]), out, xs[0], -1)[1]


@final
class Tan(Mapped):
    name, opcode, function, accepts = "tan", "tan", np.tan, "f"
    samples = (Sample(((3, 5),), low=-1.2, high=1.2),)

    def partials(self, out: Any, x: Any) -> Any:
        return (lambda t: mul(t, add(full_like(x, 1), square(out))),)

    def coefficients(self, out: Any, *xs: Series) -> list[Any]:
        return solved(out, xs[0], squared, add(full_like(out, 1), square(out)))  # y' = (1 + y^2) x'


@final
class Asin(Mapped):
    name, opcode, function, accepts, samples = "asin", "asin", np.arcsin, "f", _UNIT

    def partials(self, out: Any, x: Any) -> Any:
        return (lambda t: mul(t, rsqrt(one_minus_square(x))),)


@final
class Acos(Mapped):
    name, opcode, function, accepts, samples = "acos", "acos", np.arccos, "f", _UNIT

    def partials(self, out: Any, x: Any) -> Any:
        return (lambda t: mul(t, neg(rsqrt(one_minus_square(x)))),)


@final
class Atan(Mapped):
    name, opcode, function, accepts, samples = "atan", "atan", np.arctan, "f", _ANY

    def partials(self, out: Any, x: Any) -> Any:
        return (lambda t: div(t, add(full_like(x, 1), square(x))),)


@final
class Atan2(Mapped):
    """The angle of the point (y, x)."""

    name, opcode, function, accepts = "atan2", "atan2", np.arctan2, "f"
    samples = (Sample(((3, 5), (3, 5)), low=0.3), Sample(((4,), ()), low=0.3))

    def partials(self, out: Any, x: Any, y: Any) -> Any:
        def along_x(t: Any) -> Any:
            return mul(t, div(y, add(square(x), square(y))))

        def along_y(t: Any) -> Any:
            return mul(t, div(neg(x), add(square(x), square(y))))

        return along_x, along_y


@final
class Sinh(Mapped):
    name, opcode, function, accepts, samples = "sinh", "sinh", np.sinh, "f", _ANY

    def partials(self, out: Any, x: Any) -> Any:
        return (lambda t: mul(t, cosh(x)),)

    def coefficients(self, out: Any, *xs: Series) -> list[Any]:
        return pair(out, cosh(xs[0][0]), xs[0], 1)[0]


@final
class Cosh(Mapped):
    name, opcode, function, accepts, samples = "cosh", "cosh", np.cosh, "f", _ANY

    def partials(self, out: Any, x: Any) -> Any:
        return (lambda t: mul(t, sinh(x)),)

    def coefficients(self, out: Any, *xs: Series) -> list[Any]:
        return pair(sinh(xs[0][0]), out, xs[0], 1)[1]


@final
class Tanh(Mapped):
    name, opcode, function, accepts, samples = "tanh", "tanh", np.tanh, "f", _ANY

    def partials(self, out: Any, x: Any) -> Any:
        return (lambda t: mul(t, tanh_slope_p.bind(x)),)

    def coefficients(self, out: Any, *xs: Series) -> list[Any]:
        # y' = (1 - y^2) x'
        return solved(out, xs[0], lambda y, k: minus(None, squared(y, k)), tanh_slope_p.bind(xs[0][0]))


@final
class TanhSlope(Elementwise):
    """The derivative of tanh, 4 e / (1 + e)^2 with e = exp(-2 |x|): 1 - tanh(x)^2 would cancel for large x."""

    name, accepts, samples = "tanh_slope", "f", _ANY

    def scalar(self, e: Any, x: Any) -> Any:
        decay = e.exp(e.mul(e.abs(x), -2.0))
        whole = e.add(decay, 1.0)
        return e.div(e.mul(decay, 4.0), e.mul(whole, whole))

    def numpy(self, x: Any) -> Any:
        decay = np.exp(-2 * np.abs(x.astype(np.float64)))
        return 4 * decay / (1 + decay) ** 2

    def partials(self, out: Any, x: Any) -> Any:
        return (lambda t: mul(t, mul(full_like(x, -2), mul(tanh(x), out))),)


@final
class Asinh(Mapped):
    name, opcode, function, accepts, samples = "asinh", "asinh", np.arcsinh, "f", _ANY

    def partials(self, out: Any, x: Any) -> Any:
        return (lambda t: mul(t, rsqrt(add(square(x), full_like(x, 1)))),)


@final
class Acosh(Mapped):
    name, opcode, function, accepts = "acosh", "acosh", np.arccosh, "f"
    samples = (Sample(((3, 5),), low=1.2, high=4.0),)

    def partials(self, out: Any, x: Any) -> Any:
        one = full_like(x, 1)
        return (lambda t: mul(t, div(one, sqrt(mul(sub(x, one), add(x, one))))),)


@final
class Atanh(Mapped):
    name, opcode, function, accepts, samples = "atanh", "atanh", np.arctanh, "f", _UNIT

    def partials(self, out: Any, x: Any) -> Any:
        return (lambda t: div(t, one_minus_square(x)),)


sin_p, cos_p, tan_p, asin_p, acos_p, atan_p, atan2_p = Sin(), Cos(), Tan(), Asin(), Acos(), Atan(), Atan2()
tanh_slope_p = TanhSlope()
sinh_p, cosh_p, tanh_p, asinh_p, acosh_p, atanh_p = Sinh(), Cosh(), Tanh(), Asinh(), Acosh(), Atanh()


def sin(x: Any, accuracy: Any = None) -> Any:
    """Elementwise sine; radians."""
    refuse("sin", "accuracy", accuracy, None, "elementary functions are within 2 ulp, whatever is asked")
    return sin_p.bind(*operands_of(x))


def cos(x: Any, accuracy: Any = None) -> Any:
    """Elementwise cosine; radians."""
    refuse("cos", "accuracy", accuracy, None, "elementary functions are within 2 ulp, whatever is asked")
    return cos_p.bind(*operands_of(x))


def tan(x: Any, accuracy: Any = None) -> Any:
    """Elementwise tangent; radians."""
    refuse("tan", "accuracy", accuracy, None, "elementary functions are within 2 ulp, whatever is asked")
    return tan_p.bind(*operands_of(x))


def asin(x: Any) -> Any:
    """Elementwise inverse sine, in radians."""
    return asin_p.bind(*operands_of(x))


def acos(x: Any) -> Any:
    """Elementwise inverse cosine, in radians."""
    return acos_p.bind(*operands_of(x))


def atan(x: Any) -> Any:
    """Elementwise inverse tangent, in radians."""
    return atan_p.bind(*operands_of(x))


def atan2(x: Any, y: Any) -> Any:
    """Elementwise angle of the point with ordinate ``x`` and abscissa ``y``, in radians."""
    return atan2_p.bind(*operands_of(x, y))


def sinh(x: Any) -> Any:
    """Elementwise hyperbolic sine."""
    return sinh_p.bind(*operands_of(x))


def cosh(x: Any) -> Any:
    """Elementwise hyperbolic cosine."""
    return cosh_p.bind(*operands_of(x))


def tanh(x: Any, accuracy: Any = None) -> Any:
    """Elementwise hyperbolic tangent."""
    refuse("tanh", "accuracy", accuracy, None, "elementary functions are within 2 ulp, whatever is asked")
    return tanh_p.bind(*operands_of(x))


def asinh(x: Any) -> Any:
    """Elementwise inverse hyperbolic sine."""
    return asinh_p.bind(*operands_of(x))


def acosh(x: Any) -> Any:
    """Elementwise inverse hyperbolic cosine."""
    return acosh_p.bind(*operands_of(x))


def atanh(x: Any) -> Any:
    """Elementwise inverse hyperbolic tangent."""
    return atanh_p.bind(*operands_of(x))
