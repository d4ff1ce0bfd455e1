"""Special functions: error functions, the logarithm of gamma, digamma."""

from __future__ import annotations

import math
from typing import Any, final

import numpy as np

from jaxlite.core.errors import NonDifferentiableError
from jaxlite.core.primitive import Sample
from jaxlite.lax.convert import full_like, operands_of
from jaxlite.lax.elementwise.arithmetic import mul, neg
from jaxlite.lax.elementwise.exponential import exp
from jaxlite.lax.elementwise.powers import square
from jaxlite.lax.families.mapped import Mapped
from jaxlite.lax.scipy_special import special

_ANY = (Sample(((3, 5),)), Sample(((),)))


@final
class Erf(Mapped):
    name, opcode, accepts, samples = "erf", "erf", "f", _ANY
    function = staticmethod(lambda x: special("erf", x))

    def partials(self, out: Any, x: Any) -> Any:
        return (lambda t: mul(full_like(x, 2 / math.sqrt(math.pi)), mul(t, exp(neg(square(x))))),)


@final
class Erfc(Mapped):
    name, opcode, accepts, samples = "erfc", "erfc", "f", _ANY
    function = staticmethod(lambda x: special("erfc", x))

    def partials(self, out: Any, x: Any) -> Any:
        return (lambda t: mul(full_like(x, -2 / math.sqrt(math.pi)), mul(t, exp(neg(square(x))))),)


@final
class ErfInv(Mapped):
    name, opcode, accepts = "erf_inv", "erf_inv", "f"
    samples = (Sample(((3, 5),), low=-0.9, high=0.9),)
    function = staticmethod(lambda x: special("erfinv", x))

    def partials(self, out: Any, x: Any) -> Any:
        return (lambda t: mul(full_like(x, math.sqrt(math.pi) / 2), mul(t, exp(square(out)))),)


@final
class Lgamma(Mapped):
    name, opcode, accepts = "lgamma", "lgamma", "f"
    samples = (Sample(((3, 5),), low=0.3, high=6.0),)
    function = staticmethod(lambda x: special("gammaln", x))

    def partials(self, out: Any, x: Any) -> Any:
        return (lambda t: mul(t, digamma(x)),)


@final
class Digamma(Mapped):
    name, opcode, accepts = "digamma", "digamma", "f"
    samples = (Sample(((3, 5),), low=0.3, high=6.0),)
    function = staticmethod(
        lambda x: np.where(x == 0, -np.inf, special("digamma", x))
    )  # the limit from the right at both zeros, as JAX has it

    def partials(self, out: Any, x: Any) -> Any:
        raise NonDifferentiableError(
            "digamma has no derivative here: it is polygamma(1, x), which jaxlite does not have yet."
        )


erf_p, erfc_p, erf_inv_p, lgamma_p, digamma_p = Erf(), Erfc(), ErfInv(), Lgamma(), Digamma()


def erf(x: Any) -> Any:
    """Elementwise error function."""
    return erf_p.bind(*operands_of(x))


def erfc(x: Any) -> Any:
    """Elementwise 1 - erf(x), accurate for large x."""
    return erfc_p.bind(*operands_of(x))


def erf_inv(x: Any) -> Any:
    """Elementwise inverse error function."""
    return erf_inv_p.bind(*operands_of(x))


def lgamma(x: Any) -> Any:
    """Elementwise log of the absolute value of gamma(x)."""
    return lgamma_p.bind(*operands_of(x))


def digamma(x: Any) -> Any:
    """Elementwise derivative of ``lgamma``."""
    return digamma_p.bind(*operands_of(x))
