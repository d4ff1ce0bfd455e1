"""Fit the polynomials of the CPU's elementary functions and write `coefficients.py`.

Each fit interpolates at Chebyshev points with 120 digits (within a small factor of the best
polynomial) at the lowest degree whose error, weighted by what it contributes to the function's
relative error, is below the tolerance of the dtype. Needs mpmath. Run: `python
tools/fit_polynomials.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np

mp.mp.dps = 120
OUTPUT = Path(__file__).parents[1] / "jaxlite" / "backends" / "cpu" / "coefficients.py"
TOLERANCE = {"32": mp.mpf(2) ** -28, "64": mp.mpf(2) ** -57}
Real = Callable[[Any], Any]


@dataclass(frozen=True)
class Fit:
    """`function` on [low, high]; an error d there is `weight(z) * d` of the result, relatively."""

    name: str
    formula: str
    function: Real
    low: Any
    high: Any
    weight: Real
    sizes: tuple[str, ...] = ("32", "64")


def odd(function: Real) -> Real:
    """(f(x) - x) / x^3 as a function of z = x^2."""

    def quotient(z: Any) -> Any:
        x = mp.sqrt(z)
        return (function(x) - x) / x**3

    return quotient


def scaled_erfc(centre: int) -> Real:
    """(1 + 2a) exp(a^2) erfc(a) as a function of t = (a - centre) / (a + centre)."""

    def value(t: Any) -> Any:
        a = centre * (1 + t) / (1 - t)
        return (1 + 2 * a) * mp.exp(a * a) * mp.erfc(a)

    return value


def log_quotient(z: Any) -> Any:
    """(log((1 + s) / (1 - s)) - 2s) / s^3, z = s^2."""
    s = mp.sqrt(z)
    return (mp.log((1 + s) / (1 - s)) - 2 * s) / s**3


def stirling(w: Any) -> Any:
    """x (lgamma(x) - Stirling's main terms), w = 1 / x^2."""
    x = 1 / mp.sqrt(w)
    main = (x - mp.mpf(1) / 2) * mp.log(x) - x + mp.log(2 * mp.pi) / 2
    return x * (mp.loggamma(x) - main)


def digamma_tail(w: Any) -> Any:
    """x^2 (log x - 1 / 2x - digamma(x)), w = 1 / x^2."""
    x = 1 / mp.sqrt(w)
    return x * x * (mp.log(x) - 1 / (2 * x) - mp.digamma(x))


HALF_LOG2 = mp.log(2) / 2 * mp.mpf("1.001")
QUARTER = (mp.pi / 4 * mp.mpf("1.02")) ** 2
ROOT = mp.sqrt(2)
FITS = [
    Fit(
        "EXP",
        "(exp(r) - 1 - r) / r^2, |r| <= log(2) / 2",
        lambda r: (mp.exp(r) - 1 - r) / r**2,
        -HALF_LOG2,
        HALF_LOG2,
        lambda r: r / 4,
    ),
    Fit(
        "LOG",
        "(log(1 + f) - f + f^2 / 2) / f^3, sqrt(1/2) <= 1 + f <= sqrt(2)",
        lambda f: (mp.log(1 + f) - f + f * f / 2) / f**3,
        1 / ROOT - 1,
        ROOT - 1,
        lambda f: f**2 * abs(f / mp.log(1 + f)) if f else 0,
        ("32",),
    ),
    Fit(
        "LOG",
        "(log((1 + s) / (1 - s)) - 2 s) / s^3 in s^2",
        log_quotient,
        0,
        mp.mpf("0.02945"),
        lambda z: z / 2,
        ("64",),
    ),
    Fit(
        "LOG_TAIL",
        "(log((1 + s) / (1 - s)) - 2 s - 2/3 s^3) / s^5 in s^2",
        lambda z: (log_quotient(z) - mp.mpf(2) / 3) / z,
        0,
        mp.mpf("0.02945"),
        lambda z: z**2 * 2**8,
        ("64",),
    ),
    Fit("SIN", "(sin r - r) / r^3 in r^2", odd(mp.sin), 0, QUARTER, lambda z: z),
    Fit(
        "COS",
        "(cos r - 1 + r^2 / 2) / r^4 in r^2",
        lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2,
        0,
        QUARTER,
        lambda z: z**2,
    ),
    Fit("ASIN", "(asin x - x) / x^3 in x^2", odd(mp.asin), 0, mp.mpf("0.2501"), lambda z: z),
    Fit("ATAN", "(atan x - x) / x^3 in x^2", odd(mp.atan), 0, mp.mpf("0.1717"), lambda z: z),
    Fit("SINH", "(sinh x - x) / x^3 in x^2", odd(mp.sinh), 0, 1, lambda z: z),
    Fit("TANH", "(tanh x - x) / x^3 in x^2", odd(mp.tanh), 0, mp.mpf("0.391"), lambda z: z),
    Fit("ASINH", "(asinh x - x) / x^3 in x^2", odd(mp.asinh), 0, mp.mpf("0.2501"), lambda z: z),
    Fit(
        "ERF",
        "erf(x) / x - 1 in x^2, |x| <= 1",
        lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1,
        0,
        1,
        lambda z: mp.mpf(1),
    ),
    Fit(
        "LOG_ERFC",
        "log(erfc(a)), 1 <= a <= 4",
        lambda a: mp.log(mp.erfc(a)),
        mp.mpf(1),
        4,
        mp.erfc,
        ("32",),
    ),
    Fit(
        "ERFC",
        "(1 + 2a) exp(a^2) erfc(a) in (a - 2) / (a + 2), 0 <= a <= 10.2",
        scaled_erfc(2),
        -1,
        mp.mpf("0.673"),
        lambda t: mp.mpf(1),
        ("32",),
    ),
    Fit(
        "ERFC",
        "(1 + 2a) exp(a^2) erfc(a) in (a - 4) / (a + 4), 0 <= a <= 28",
        scaled_erfc(4),
        -1,
        mp.mpf("0.75"),
        lambda t: mp.mpf(1),
        ("64",),
    ),
    Fit("STIRLING", "x (lgamma(x) - Stirling), x >= 8, in 1 / x^2", stirling, mp.mpf(10) ** -9,
        mp.mpf(1) / 64, lambda w: mp.mpf(1) / 64, ("64",)),
    Fit("DIGAMMA", "x^2 (log x - 1 / 2x - digamma(x)), x >= 8, in 1 / x^2", digamma_tail,
        mp.mpf(10) ** -9, mp.mpf(1) / 64, lambda w: mp.mpf(1) / 128, ("64",)),
]  # fmt: skip


def interpolate(fit: Fit, degree: int) -> list[Any]:
    """Coefficients, highest first, of the polynomial through the Chebyshev points."""
    middle, half = (fit.low + fit.high) / mp.mpf(2), (fit.high - fit.low) / mp.mpf(2)
    count = degree + 1
    points = [middle + half * mp.cos(mp.pi * (2 * i + 1) / (2 * count)) + mp.mpf(10) ** -25 for i in range(count)]
    rows = mp.matrix(count, count)
    for i, point in enumerate(points):
        for power in range(count):
            rows[i, power] = point ** (degree - power)
    return list(mp.lu_solve(rows, mp.matrix([fit.function(point) for point in points])))


def error(fit: Fit, coefficients: list[Any]) -> Any:
    """The largest weighted error, sampled."""
    worst = mp.mpf(0)
    for i in range(101):
        z = fit.low + (fit.high - fit.low) * (mp.mpf(i) + mp.mpf("0.37")) / mp.mpf("101")
        difference = mp.polyval(coefficients, z) - fit.function(z)
        worst = max(worst, abs(difference * fit.weight(z)))
    return worst


def rounded(value: Any, size: str) -> float:
    """The nearest number of the dtype."""
    return float(np.float32(float(value))) if size == "32" else float(value)


def table(fit: Fit, size: str) -> str:
    """One table's text, at the lowest degree that is accurate enough."""
    for degree in range(1, 30):
        coefficients = interpolate(fit, degree)
        worst = error(fit, coefficients)
        if worst < TOLERANCE[size]:
            break
    print(fit.name, size, "degree", degree, "error 2 **", float(mp.log(worst, 2)))
    lines = "".join(f"    {rounded(c, size)!r},\n" for c in coefficients)
    return f"# {fit.formula}\n{fit.name}_{size} = (\n{lines})\n"


def parts(value: Any, count: int, size: str) -> list[float]:
    """`value` as a sum of numbers of the dtype, each the rest rounded."""
    result = []
    for _ in range(count):
        result.append(rounded(value, size))
        value -= mp.mpf(result[-1])
    return result


def truncated(value: Any, bits: int) -> float:
    """`value` cut to `bits` bits, so that small multiples of it are exact."""
    mantissa, exponent = mp.frexp(value)
    return float(mp.ldexp(mp.floor(mp.ldexp(mantissa, bits)), int(exponent) - bits))


def constants() -> str:
    """Constants in parts, and the binary digits of 2/pi."""
    lines = []
    for size, bits in (("32", 15), ("64", 40)):
        high = truncated(mp.log(2), bits)
        low = rounded(mp.log(2) - mp.mpf(high), size)
        lines.append(f"LOG2_{size} = ({high!r}, {low!r})  # log(2); k times the first is exact")
        pi_parts = ", ".join(map(repr, parts(mp.pi / 2, 3, size)))
        lines.append(f"HALF_PI_{size} = ({pi_parts})  # pi / 2")
        log2e = ", ".join(map(repr, parts(1 / mp.log(2), 2, size)))
        lines.append(f"LOG2_E_{size} = ({log2e})  # 1 / log(2)")
    with mp.workprec(1400):
        digits = int(mp.floor(2 / mp.pi * mp.mpf(2) ** 1216))
    words = [(digits >> (64 * (18 - i))) & (2**64 - 1) for i in range(19)]
    body = "".join(f"    0x{word:016X},\n" for word in words)
    lines.append(f"# The binary digits of 2/pi after the point, 64 to a word.\nTWO_OVER_PI = (\n{body})")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the file."""
    head = '"""Coefficients of the elementary functions; written by `tools/fit_polynomials.py`."""\n\n'
    tables = [table(fit, size) for fit in FITS for size in fit.sizes]
    OUTPUT.write_text(head + constants() + "\n" + "\n".join(tables))


if __name__ == "__main__":
    main()
