"""erf, erfc and the inverse of erf.

erf: x + x P(x^2) within 1; beyond, 1 - erfc. erfc: exp(-a^2) P(t) / (1 + 2a), t = (a - c) / (a +
c), at most 4 ulp. erf_inv: the polynomials of M. Giles, "Approximating the erfinv function" (2010),
as JAX uses them; their error is theirs, about 5 ulp in float32.
"""

from __future__ import annotations

from jaxlite.backends.cpu import coefficients as c
from jaxlite.backends.cpu.instructions import Instructions
from jaxlite.backends.cpu.maths_common import INF, pick
from jaxlite.backends.cpu.maths_exp import exp
from jaxlite.backends.cpu.maths_log import log
from jaxlite.backends.cpu.words import F32, Word

_GILES_32 = (
    (2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
     -0.00125372503, -0.00417768164, 0.246640727, 1.50140941),
    (-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
     -0.0076224613, 0.00943887047, 1.00167406, 2.83297682),
)  # fmt: skip
_GILES_64 = (
    (-3.6444120640178196996e-21, -1.685059138182016589e-19, 1.2858480715256400167e-18,
     1.115787767802518096e-17, -1.333171662854620906e-16, 2.0972767875968561637e-17,
     6.6376381343583238325e-15, -4.0545662729752068639e-14, -8.1519341976054721522e-14,
     2.6335093153082322977e-12, -1.2975133253453532498e-11, -5.4154120542946279317e-11,
     1.051212273321532285e-09, -4.1126339803469836976e-09, -2.9070369957882005086e-08,
     4.2347877827932403518e-07, -1.3654692000834678645e-06, -1.3882523362786468719e-05,
     0.0001867342080340571352, -0.00074070253416626697512, -0.0060336708714301490533,
     0.24015818242558961693, 1.6536545626831027356),
    (2.2137376921775787049e-09, 9.0756561938885390979e-08, -2.7517406297064545428e-07,
     1.8239629214389227755e-08, 1.5027403968909827627e-06, -4.013867526981545969e-06,
     2.9234449089955446044e-06, 1.2475304481671778723e-05, -4.7318229009055733981e-05,
     6.8284851459573175448e-05, 2.4031110387097893999e-05, -0.0003550375203628474796,
     0.00095328937973738049703, -0.0016882755560235047313, 0.0024914420961078508066,
     -0.0037512085075692412107, 0.005370914553590063617, 1.0052589676941592334,
     3.0838856104922207635),
    (-2.7109920616438573243e-11, -2.5556418169965252055e-10, 1.5076572693500548083e-09,
     -3.7894654401267369937e-09, 7.6157012080783393804e-09, -1.4960026627149240478e-08,
     2.9147953450901080826e-08, -6.7711997758452339498e-08, 2.2900482228026654717e-07,
     -9.9298272942317002539e-07, 4.5260625972231537039e-06, -1.9681778105531670567e-05,
     7.5995277030017761139e-05, -0.00021503011930044477347, -0.00013871931833623122026,
     1.0103004648645343977, 4.8499064014085844221),
)  # fmt: skip


def _erfc_of_positive(e: Instructions, a: Word) -> Word:
    """erfc(a), a >= 0."""
    single = a.dtype == F32
    a = e.minimum(10.2 if single else 28.0, a)
    centre = 2.0 if single else 4.0
    under = e.add(a, centre)
    t = e.div(e.sub(a, centre), under)
    # The quotient's rounding error, carried to first order, keeps t accurate near 1.
    p = e.polynomial(t, pick(a, c.ERFC_32, c.ERFC_64))
    square = e.mul(a, a)
    lost = e.fma(a, a, e.neg(square))
    gauss = exp(e, e.neg(square))
    gauss = e.fma(e.neg(gauss), lost, gauss)
    return e.mul(gauss, e.div(p, e.fma(2.0, a, 1.0)))


def erfc(e: Instructions, x: Word) -> Word:
    """1 - erf(x), accurate where it is small."""
    a = e.abs(x)
    tail = _erfc_of_positive(e, a)
    z = e.mul(x, x)
    p = e.polynomial(z, pick(x, c.ERF_32, c.ERF_64))
    near = e.sub(1.0, e.fma(x, p, x))
    far = e.select(e.lt(x, 0.0), e.sub(2.0, tail), tail)
    value = e.select(e.lt(a, 0.5), near, far)
    return e.select(e.is_nan(x), x, value)


def erf(e: Instructions, x: Word) -> Word:
    """The error function."""
    a = e.abs(x)
    z = e.mul(x, x)
    near = e.fma(a, e.polynomial(z, pick(x, c.ERF_32, c.ERF_64)), a)
    if x.dtype == F32:
        tail = exp(e, e.polynomial(e.minimum(4.0, a), c.LOG_ERFC_32))
    else:
        tail = _erfc_of_positive(e, a)
    value = e.select(e.lt(a, 1.0), near, e.sub(1.0, tail))
    return e.copysign(e.select(e.is_nan(x), x, value), x)


def erf_inv(e: Instructions, x: Word) -> Word:
    """The inverse of erf; w = -log(1 - x^2) chooses the polynomial, its tails behind a branch."""
    w = e.neg(log(e, e.fma(e.neg(x), x, 1.0)))
    tables: tuple[tuple[float, ...], ...] = _GILES_32 if x.dtype == F32 else _GILES_64
    limit, centre = (5.0, 2.5) if x.dtype == F32 else (6.25, 3.125)
    usual = e.polynomial(e.sub(w, centre), tables[0])

    def rare() -> list[Word]:
        root = e.sqrt(w)
        if x.dtype == F32:
            return [e.polynomial(e.sub(root, 3.0), tables[1])]
        middle = e.polynomial(e.sub(root, 3.25), tables[1])
        far = e.polynomial(e.sub(root, 5.0), tables[2])
        return [e.select(e.lt(w, 16.0), middle, far)]

    (p,) = e.when_any(e.ge(w, limit), [usual], rare)
    return e.select(e.eq(e.abs(x), 1.0), e.mul(x, INF), e.mul(p, x))
