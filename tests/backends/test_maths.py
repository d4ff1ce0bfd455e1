"""The elementary functions: error in ulps over the whole range, and special values.

Reference: NumPy in float64 for float32, in 80-bit long double for float64 where the machine has it,
Python's math and SciPy for erf, gamma and their like. An ulp is the spacing of floats at the exact
result. The bounds below are those that the modules promise, plus one ulp where the reference itself
is only float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special
from native import Native
from test_emit_llvm import TARGETS, elementwise

from jaxlite.backends.cpu.maths import FUNCTIONS

F32, F64 = np.dtype("f4"), np.dtype("f8")
Array = np.ndarray[Any, Any]
HAS_LONG_DOUBLE = np.finfo(np.longdouble).nmant > 60

NUMPY: dict[str, Callable[..., Array]] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "log": np.log,
    "log2": np.log2,
    "log1p": np.log1p,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "cbrt": np.cbrt,
    "pow": np.power,
    "atan2": np.arctan2,
}
SPECIAL: dict[str, Callable[..., Array]] = {
    "erf": np.vectorize(math.erf),
    "erfc": np.vectorize(math.erfc),
    "erf_inv": scipy.special.erfinv,
    "lgamma": scipy.special.gammaln,
    "digamma": scipy.special.digamma,
}
# In ulps; 2 where nothing is said. The second: of float64 against a float64 reference.
BOUNDS = {"erfc": 4, "erf_inv": 4}
DOUBLE_BOUNDS = {"erf": 3, "erfc": 5, "erf_inv": 5}
BINARY = ("pow", "atan2")


def samples(dtype: Any, count: int, seed: int) -> Array:
    """Special values, every magnitude (random bits), and ordinary numbers."""
    rng = np.random.default_rng(seed)
    info = np.finfo(dtype)
    edges = [0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 0.5, -0.5, 2, -2, 3, -3, 1e9, -1e9]
    edges += [
        info.tiny,
        info.smallest_subnormal,
        info.max,
        -info.max,
        1 - info.epsneg,
        1 + info.eps,
    ]
    bits = f"u{dtype.itemsize}"
    everything = rng.integers(0, np.iinfo(bits).max, count, dtype=bits).view(dtype)
    ordinary = [
        rng.normal(size=count // 4),
        rng.uniform(-10, 10, count // 4),
        rng.uniform(-1, 1, count // 4),
        rng.uniform(0.9, 1.1, count // 4),
        rng.uniform(-800, 800, count // 4),
    ]
    everything = everything[np.isfinite(everything)]
    values: Array = np.concatenate([np.array(edges), everything, *ordinary]).astype(dtype)
    return values


def evaluate(opcode: str, args: list[Array], target: Any = TARGETS[0]) -> Array:
    dtype = args[0].dtype
    out = np.zeros_like(args[0])
    kernel = elementwise(opcode, [dtype] * len(args))
    Native(kernel, target)(*args, out, sizes=[len(out)], high=len(out))
    return out


def errors(result: Array, exact: Array) -> Array:
    """|result - exact| in ulps of the result's dtype; infinite where NaN or infinity differ."""
    dtype = result.dtype
    with np.errstate(all="ignore"):
        rounded = exact.astype(dtype)
        same = (result == rounded) | (np.isnan(result) & np.isnan(rounded))
        spacing = np.spacing(np.maximum(np.abs(rounded), np.finfo(dtype).tiny))
        wide = np.longdouble if dtype == F64 else np.float64
        difference = np.abs(result.astype(wide) - exact.astype(wide)) / spacing.astype(wide)
    error: Array = np.where(same, np.minimum(np.nan_to_num(difference), 0.5), difference)
    return error.astype(float)


def arguments(opcode: str, dtype: Any, count: int) -> list[Array]:
    x = samples(dtype, count, 0)
    if opcode not in BINARY:
        return [x]
    y = samples(dtype, count, 1)
    size = min(len(x), len(y))
    x, y = x[:size], np.random.default_rng(2).permutation(y[:size])
    if opcode == "pow":
        x[size // 2 :] = np.exp(np.random.default_rng(3).normal(size=size - size // 2))
    return [x, y]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's own, on poles and overflow
@pytest.mark.parametrize("opcode", FUNCTIONS)
def test_float32(opcode: str) -> None:
    args = arguments(opcode, F32, 100_000)
    reference = (NUMPY | SPECIAL)[opcode](*(arg.astype(F64) for arg in args))
    if opcode == "digamma":  # -inf at either zero, as JAX has it
        reference[args[0] == 0] = -np.inf
    error = errors(evaluate(opcode, args), reference)
    worst = int(np.nanargmax(error))
    assert error[worst] <= BOUNDS.get(opcode, 2), [arg[worst] for arg in args]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's own, on poles and overflow
@pytest.mark.skipif(not HAS_LONG_DOUBLE, reason="long double is no wider than float64 here")
@pytest.mark.parametrize("opcode", NUMPY)
def test_float64(opcode: str) -> None:
    args = arguments(opcode, F64, 50_000)
    reference = NUMPY[opcode](*(arg.astype(np.longdouble) for arg in args))
    error = errors(evaluate(opcode, args), reference)
    worst = int(np.nanargmax(error))
    assert error[worst] <= 2, [arg[worst] for arg in args]


@pytest.mark.parametrize("opcode", ["erf", "erfc", "erf_inv"])
def test_float64_error_functions(opcode: str) -> None:
    limit = 1 if opcode == "erf_inv" else 26
    x = np.concatenate([np.linspace(-limit, limit, 20_001), np.logspace(-300, -1, 500)])
    error = errors(evaluate(opcode, [x]), SPECIAL[opcode](x))
    worst = int(np.argmax(error))
    assert error[worst] <= DOUBLE_BOUNDS[opcode], x[worst]


@pytest.mark.parametrize("opcode", ["lgamma", "digamma"])
def test_float64_gamma_is_accurate_to_the_larger_of_1_and_its_value(opcode: str) -> None:
    x = np.concatenate([np.linspace(1e-3, 20, 5000), np.logspace(-8, 15, 500)])
    result, reference = evaluate(opcode, [x]), SPECIAL[opcode](x)
    # both sum about ten terms of size up to 10: 16 roundings of 2**-53 of them at most
    scale = np.maximum(np.abs(reference), 10)
    assert (np.abs(result - reference) <= 16 * 2.0**-53 * scale).all()
    assert evaluate("lgamma", [np.array([1.0, 2.0])]).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
def test_signed_zeros(dtype: Any) -> None:
    zero = np.array([0.0, -0.0], dtype)
    names = "expm1 sinh tanh log1p asinh atanh sin tan asin atan cbrt erf erf_inv".split()
    for opcode in names:
        result = evaluate(opcode, [zero])
        assert (result == 0).all() and np.signbit(result).tolist() == [False, True], opcode
    y = np.array([0.0, 0.0, -0.0, -0.0], dtype)
    x = np.array([0.0, -0.0, 0.0, -0.0], dtype)
    angle = evaluate("atan2", [y, x])
    np.testing.assert_array_equal(angle, np.arctan2(y, x))
    np.testing.assert_array_equal(np.signbit(angle), np.signbit(np.arctan2(y, x)))


@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
def test_sine_of_multiples_of_pi_and_of_huge_arguments(dtype: Any) -> None:
    k = np.arange(1, 20_000)
    x = np.concatenate([k * np.pi / 2, 2.0 ** np.arange(10, 120), 2.0 ** np.arange(10, 120) / 3])
    x = x.astype(dtype)
    wide = np.longdouble if dtype == F64 else np.float64
    if dtype == F64 and not HAS_LONG_DOUBLE:
        pytest.skip("long double is no wider than float64 here")
    for opcode, function in {"sin": np.sin, "cos": np.cos, "tan": np.tan}.items():
        error = errors(evaluate(opcode, [x]), function(x.astype(wide)))
        assert error.max() <= 2, (opcode, x[error.argmax()])


def test_the_three_widths_agree_bit_for_bit() -> None:
    for dtype in (F32, F64):
        x = samples(dtype, 2000, 5)
        for opcode in NUMPY:
            args = [x, x[::-1].copy()] if opcode in BINARY else [x]
            first, *others = (evaluate(opcode, args, target) for target in TARGETS)
            for other in others:
                np.testing.assert_array_equal(other, first, err_msg=opcode)
