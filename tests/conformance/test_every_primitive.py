"""Every registered primitive, every check: NumPy's meaning, compiled code, derivatives, batching, special values.

A primitive's class brings its samples; adding one adds its tests.  Tolerances are in ulps of the result's dtype,
relative to the largest magnitude of the result (what a sum of rounded terms can lose).
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ml_dtypes import finfo

import jaxlite as jax
from jaxlite import lax
from jaxlite.core import dtypes
from jaxlite.core.array import Array, from_numpy, numpy_of
from jaxlite.core.avals import ShapedArray
from jaxlite.core.config import contract_fma
from jaxlite.core.primitive import Primitive, Sample, registry
from jaxlite.lax.control.check import check_p
from jaxlite.lax.families.higher_order import HigherOrder

ALL_DTYPES = {
    "b": ["bool"],
    "i": ["int8", "int16", "int32", "int64"],
    "u": ["uint8", "uint16", "uint32", "uint64"],
    "f": ["float16", "bfloat16", "float32", "float64"],
    "K": ["key<fry>"],
}
# These take functions or named axes, not arrays alone: the folder whose tests call them, by what the user writes.
ELSEWHERE = {
    "all_gather": "lax.all_gather(",
    "all_reduce": '"all_reduce"',
    "all_to_all": "lax.all_to_all(",
    "axis_index": "lax.axis_index(",
    "check": "checkify.check(",
    "checkpoint": "checkpoint(",
    "cond": "lax.cond(",
    "custom_jvp_call": "custom_jvp",
    "custom_linear_solve": "custom_linear_solve(",
    "custom_root": "custom_root(",
    "custom_tangents": "custom_vjp",
    "custom_vjp_call": "custom_vjp",
    "custom_vmap_call": "custom_vmap",
    "debug_callback": "debug.print(",
    "io_callback": "io_callback(",
    "jit": "jit(",
    "optimization_barrier": "optimization_barrier(",
    "pmax": "lax.pmax(",
    "pmin": "lax.pmin(",
    "ppermute": "lax.ppermute(",
    "psum": "lax.psum(",
    "psum_invariant": "lax.psum(",
    "pvary": "lax.pcast(",
    "reduce_scatter": "lax.psum_scatter(",
    "pure_callback": "pure_callback(",
    "scan": "lax.scan(",
    "while": "lax.while_loop(",
}
SPECIAL_FAMILIES = ("collective", "callback", "check", "barrier")
PRIMITIVES = [p for name, p in sorted(registry.items()) if name not in ELSEWHERE]


def draw(shape: tuple[int, ...], name: str, sample: Sample, seed: int) -> Array:
    """Values of a dtype between the sample's bounds."""
    rng = np.random.default_rng(seed)
    if name == "key<fry>":
        return Array(ShapedArray(shape, dtypes.KEY), rng.integers(0, 2**63, shape, dtype=np.uint64))
    dtype = dtypes.as_dtype(name)
    if dtype.kind == "b":
        return from_numpy(rng.random(shape) < 0.5)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        low, high = max(int(np.ceil(sample.low)), info.min), min(int(np.floor(sample.high)), info.max)
        if sample.high <= 4 and sample.low >= -4:  # a wider range says more where nothing forbids it
            low, high = (max(-7, info.min) if sample.low < 0 else 1), 9
        return from_numpy(rng.integers(low, high, shape, dtype=np.int64, endpoint=True).astype(dtype))
    return from_numpy(rng.uniform(sample.low, sample.high, shape).astype(dtype))


def cases() -> Iterator[Any]:
    for primitive in PRIMITIVES:
        for number, sample in enumerate(primitive.samples):
            names = [n for kind in primitive.accepts for n in ALL_DTYPES[kind]] if sample.dtypes is None else [None]
            for name in names:
                yield pytest.param(primitive, sample, name, id=f"{primitive.name}-{number}-{name or 'given'}")


def operands(primitive: Primitive, sample: Sample, name: str | None) -> list[Array]:
    chosen = sample.dtypes or [name] * len(sample.shapes)
    return [draw(s, str(n), sample, seed) for seed, (s, n) in enumerate(zip(sample.shapes, chosen, strict=True))]


def bind(primitive: Primitive, sample: Sample) -> Any:
    def call(*xs: Any) -> tuple[Any, ...]:
        out = primitive.bind(*xs, **sample.params)
        return tuple(out) if primitive.multiple_results else (out,)

    call.__name__ = "call"
    return call


def fits(primitive: Primitive, sample: Sample, arrays: list[Array]) -> bool:
    """Whether the primitive takes these dtypes with these parameters (a negative integer power takes floats only)."""
    try:
        primitive.abstract_eval(*(a.aval for a in arrays), **sample.params)
    except TypeError:
        return False
    return True


@pytest.fixture(autouse=True)
def _wide_and_uncontracted() -> Iterator[None]:
    with jax.enable_x64(True), contract_fma(False):
        yield


def raw(x: Any) -> np.ndarray[Any, Any]:
    return np.asarray(numpy_of(x))


def ulps_apart(got: Any, want: Any) -> float:
    """The largest difference, in ulps of the result's largest finite magnitude; NaN and infinities must coincide."""
    got, want = raw(got), raw(want)
    assert got.dtype == want.dtype and got.shape == want.shape
    if got.size == 0 or got.dtype.kind in "biu":
        assert np.array_equal(got, want)
        return 0.0
    unit = float(finfo(got.dtype).eps)
    g, w = got.astype(np.float64), want.astype(np.float64)
    assert np.array_equal(np.isnan(g), np.isnan(w))
    infinite = np.isinf(w) | np.isinf(g)
    assert np.array_equal(g[infinite], w[infinite])
    finite = np.isfinite(w)
    if not finite.any():
        return 0.0
    scale = max(np.abs(w[finite]).max(), float(finfo(got.dtype).smallest_normal))
    return float(np.abs(g - w)[finite].max() / (scale * unit))


def test_primitives_without_samples_are_tested_elsewhere() -> None:
    special = {n for n, p in registry.items() if isinstance(p, HigherOrder) or p.family in SPECIAL_FAMILIES}
    assert special == set(ELSEWHERE)
    assert check_p.name in special  # registered by its module, which users import through jaxlite.experimental
    tests = "".join(p.read_text("utf-8") for p in Path(__file__).parents[1].rglob("test_*.py") if p != Path(__file__))
    missing = [name for name, call in ELSEWHERE.items() if call not in tests]
    assert not missing, f"no test calls {missing}"


# NumPy's and our elementary functions: 2 ulp each, 4 for the inverse and gamma functions, and a sum of n terms in
# another
# order loses up to n half-ulps: the samples fold at most 12.
NUMPY_ULPS = 8.0


@pytest.mark.parametrize("primitive", PRIMITIVES, ids=lambda p: p.name)
def test_has_samples(primitive: Primitive) -> None:
    assert primitive.samples, f"{type(primitive).__name__} needs `samples`: calls that the tests make"


@pytest.mark.parametrize("primitive, sample, name", list(cases()))
def test_numpy_reference_and_compiled(primitive: Primitive, sample: Sample, name: str | None) -> None:
    xs = operands(primitive, sample, name)
    if not fits(primitive, sample, xs):
        with pytest.raises(TypeError):
            bind(primitive, sample)(*xs)
        return
    eager = bind(primitive, sample)(*xs)
    compiled = jax.jit(bind(primitive, sample))(*xs)
    avals = primitive.abstract_eval(*(x.aval for x in xs), **sample.params)
    with np.errstate(all="ignore"):
        wanted = primitive.evaluate(*map(numpy_of, xs), **sample.params)
    for e, c, w, aval in zip(eager, compiled, wanted, avals, strict=True):
        assert len({a.update(sharding=None) for a in (e.aval, c.aval, aval)}) == 1
        assert ulps_apart(c, w) <= NUMPY_ULPS
        if primitive.family in ("reduction", "contraction", "scatter"):
            assert ulps_apart(e, c) <= NUMPY_ULPS
        else:
            assert raw(e).tobytes() == raw(c).tobytes(), "eager and compiled must agree bit for bit"


NO_DERIVATIVE: dict[str, type[Exception]] = {"digamma": TypeError, "scatter_mul": NotImplementedError}
# Their derivative is taken to be zero although values move: differences say nothing.
TAKEN_AS_CONSTANT = {"stop_gradient", "nextafter"}
# Piecewise constant at the scale of a difference quotient.
STEPS = {"round", "floor", "ceil", "sign", "reduce_precision"}


def float_cases(exempt: Container[str] = ()) -> list[Any]:
    """Cases with float operands and float64 results, but for the exempt primitives."""
    found = []
    for case in cases():
        primitive, sample, name = case.values
        if (name == "float64" or (name is None and "float32" in sample.dtypes)) and primitive.name not in exempt:
            with jax.enable_x64(True):
                if has_float_side(primitive, sample, name):
                    found.append(case)
    return found


def has_float_side(primitive: Primitive, sample: Sample, name: str | None) -> bool:
    """Whether, at float64, there are float operands with elements, and every float result is float64 too.

    A cast to a narrower float is left out: a difference quotient of its results says nothing.
    """
    sample, xs, _, floats = at_float64(primitive, sample, name)
    if not floats or any(f.size == 0 for f in floats) or not fits(primitive, sample, xs):
        return False
    outs = primitive.abstract_eval(*(x.aval for x in xs), **sample.params)
    kinds = {o.dtype for o in outs if dtypes.is_float(o.dtype)}
    return kinds == {np.dtype(np.float64)}


def split_floats(xs: list[Array]) -> tuple[list[int], list[Array]]:
    """Where the float operands are, and they in float64."""
    where = [i for i, x in enumerate(xs) if x.dtype.kind == "f"]
    return where, [from_numpy(raw(xs[i]).astype(np.float64)) for i in where]


def of_floats(primitive: Primitive, sample: Sample, xs: list[Array], where: list[int]) -> Any:
    def call(*floats: Any) -> tuple[Any, ...]:
        full: list[Any] = list(xs)
        for i, f in zip(where, floats, strict=True):
            full[i] = f
        return bind(primitive, sample)(*full)

    return call


def in_float64(sample: Sample) -> Sample:
    params = {k: (np.dtype(np.float64) if v == np.dtype(np.float32) else v) for k, v in sample.params.items()}
    return Sample(sample.shapes, params, sample.low, sample.high, sample.dtypes)


def at_float64(
    primitive: Primitive, sample: Sample, name: str | None
) -> tuple[Sample, list[Array], list[int], list[Array]]:
    """The sample with its float operands made float64: parameters, operands, and where the float ones are."""
    sample = in_float64(sample)
    xs = operands(primitive, sample, name)
    where, floats = split_floats(xs)
    for i, f in zip(where, floats, strict=True):
        xs[i] = f
    return sample, xs, where, floats


def function_of_floats(primitive: Primitive, sample: Sample, name: str | None) -> tuple[Any, list[Array]]:
    """The function of the float operands alone, at float64, and these."""
    sample, xs, where, floats = at_float64(primitive, sample, name)
    return of_floats(primitive, sample, xs, where), floats


def directions(floats: list[Array], seed: int = 7) -> list[Array]:
    rng = np.random.default_rng(seed)
    return [from_numpy(rng.uniform(-1, 1, f.shape)) for f in floats]


def sum_of_squares(outs: Any) -> Any:
    total: Any = np.float64(0)
    for out in outs:
        if out.dtype.kind == "f":
            total = lax.add(total, lax.reduce_sum(lax.square(out), tuple(range(out.ndim))))
    return total


def inner(a: Any, b: Any) -> float:
    return float(
        sum(
            np.vdot(raw(x).astype(np.float64), raw(y).astype(np.float64))
            for x, y in zip(a, b, strict=True)
            if raw(x).dtype.kind == "f"
        )
    )


@pytest.mark.parametrize("name", NO_DERIVATIVE)
def test_a_missing_derivative_is_an_error(name: str) -> None:
    primitive = registry[name]
    f, floats = function_of_floats(primitive, primitive.samples[0], "float64")
    with pytest.raises(NO_DERIVATIVE[name], match=name):
        jax.jvp(f, floats, floats)


@pytest.mark.parametrize("primitive, sample, name", float_cases({*NO_DERIVATIVE, *TAKEN_AS_CONSTANT, *STEPS}))
def test_jvp_against_differences(primitive: Primitive, sample: Sample, name: str | None) -> None:
    f, floats = function_of_floats(primitive, sample, name)
    moves = directions(floats)
    h = 1e-6  # central differences lose h^2 of the third derivative and eps/h of the values: about 1e-9 here
    above = f(*(from_numpy(raw(x) + h * raw(v)) for x, v in zip(floats, moves, strict=True)))
    below = f(*(from_numpy(raw(x) - h * raw(v)) for x, v in zip(floats, moves, strict=True)))
    _, tangents = jax.jvp(f, tuple(floats), tuple(moves))
    for a, b, t in zip(above, below, tangents, strict=True):
        if raw(a).dtype.kind != "f":
            continue
        quotient = (raw(a) - raw(b)) / (2 * h)
        known = ~np.isnan(quotient)  # a fill value of NaN has a tangent of zero
        np.testing.assert_allclose(raw(t)[known], quotient[known], rtol=2e-6, atol=2e-7)


# Tangents of reduce_precision are rounded too, so not exactly linear.
@pytest.mark.parametrize("primitive, sample, name", float_cases({*NO_DERIVATIVE, "reduce_precision"}))
def test_vjp_is_the_transpose_of_jvp_and_compiles(primitive: Primitive, sample: Sample, name: str | None) -> None:
    f, floats = function_of_floats(primitive, sample, name)
    moves = directions(floats)
    outs, tangents = jax.jvp(f, tuple(floats), tuple(moves))
    cotangents = tuple(
        from_numpy(np.random.default_rng(3).uniform(-1, 1, o.shape))
        if o.dtype.kind == "f"
        else np.zeros(o.shape, jax.float0)
        for o in outs
    )
    _, pull = jax.vjp(f, *floats)
    pulled = pull(cotangents)
    # Two inner products of at most 60 terms of order one, each rounded: 1e-12 is 100 times what they can lose.
    assert inner(tangents, cotangents) == pytest.approx(inner(moves, pulled), rel=1e-12, abs=1e-12)
    again = (
        jax.jit(lambda xs, cts: jax.vjp(f, *xs)[1](cts))(tuple(floats), cotangents)
        if all(o.dtype.kind == "f" for o in outs)
        else pulled
    )
    for a, b in zip(again, pulled, strict=True):
        np.testing.assert_allclose(raw(a), raw(b), rtol=1e-12, atol=1e-12)


# The second derivative of lgamma is polygamma, a gap that says so.
@pytest.mark.parametrize("primitive, sample, name", float_cases({*NO_DERIVATIVE, *STEPS, "lgamma"}))
def test_second_order(primitive: Primitive, sample: Sample, name: str | None) -> None:
    f, floats = function_of_floats(primitive, sample, name)
    moves = directions(floats)

    def slope(*xs: Any) -> Any:
        _, pull = jax.vjp(lambda *a: sum_of_squares(f(*a)), *xs)
        return pull(np.float64(1))

    _, forward = jax.jvp(slope, tuple(floats), tuple(moves))
    # Slopes of up to about 25, off by 4 ulps (1e-14 each), become 2e-8 when their difference is divided by 2h; the
    # difference quotient's own error, h^2 times a fourth derivative, is 1e-10 at most.
    h = 1e-6
    above = slope(*(from_numpy(raw(x) + h * raw(v)) for x, v in zip(floats, moves, strict=True)))
    below = slope(*(from_numpy(raw(x) - h * raw(v)) for x, v in zip(floats, moves, strict=True)))
    for a, b, t in zip(above, below, forward, strict=True):
        quotient = (raw(a) - raw(b)) / (2 * h)
        np.testing.assert_allclose(raw(t), quotient, rtol=0, atol=2e-8 * max(1.0, np.abs(quotient).max(initial=0)))


def batch_cases() -> list[Any]:
    preferred = ("float32", "int32", "bool", "uint32", "key<fry>", None)
    chosen: dict[tuple[str, int], Any] = {}
    for case in cases():
        primitive, sample, name = case.values
        key = (primitive.name, id(sample))
        if (
            sample.shapes
            and name in preferred
            and (key not in chosen or preferred.index(name) < preferred.index(chosen[key].values[2]))
        ):
            chosen[key] = case
    return list(chosen.values())


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("primitive, sample, name", batch_cases())
def test_vmap_is_a_loop(primitive: Primitive, sample: Sample, name: str | None, compiled: bool) -> None:
    xs = operands(primitive, sample, name)
    f = bind(primitive, sample)
    n = 3
    chosen = sample.dtypes or [name] * len(sample.shapes)
    for batched in {tuple(True for _ in xs), (True, *(False for _ in xs[1:])), (*(False for _ in xs[1:]), True)}:
        dims = [min(1, x.ndim) if b else None for x, b in zip(xs, batched, strict=True)]
        whole = []
        for i, (x, d) in enumerate(zip(xs, dims, strict=True)):
            if d is None:
                whole.append(x)
                continue
            parts = [raw(draw(x.shape, str(chosen[i]), sample, 100 + 10 * i + j)) for j in range(n)]
            stacked = np.stack(parts, axis=d)
            whole.append(Array(ShapedArray(stacked.shape, x.dtype), stacked))
        mapped = jax.vmap(f, in_axes=tuple(dims))
        got = (jax.jit(mapped) if compiled else mapped)(*whole)
        rows = [
            f(
                *(
                    x if d is None else Array(x_aval(x, d), np.asarray(np.take(raw(x), j, axis=d), order="C"))
                    for x, d in zip(whole, dims, strict=True)
                )
            )
            for j in range(n)
        ]
        for g, *column in zip(got, *rows, strict=True):
            wanted = np.stack([raw(c) for c in column])
            assert ulps_apart(Array(g.aval, raw(g)), Array(g.aval, wanted)) <= NUMPY_ULPS


def x_aval(x: Array, d: int) -> ShapedArray:
    return x.aval.update(shape=x.shape[:d] + x.shape[d + 1 :])


SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 3.5e38, 0.5, 2.5, -2.5, 1e10, -1e10, 123.25]


@pytest.mark.parametrize("name", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize(
    "primitive", [p for p in PRIMITIVES if p.family == "elementwise" and "f" in p.accepts], ids=lambda p: p.name
)
def test_special_values(primitive: Primitive, name: str) -> None:
    """Infinities, NaN, signed zeros, subnormals and large values: the same eagerly, compiled, and in NumPy."""
    sample = primitive.samples[0]
    if sample.dtypes is not None and name not in sample.dtypes:
        return
    with np.errstate(all="ignore"):
        values = np.array(SPECIAL).astype(dtypes.as_dtype(name))
    grid = [g.ravel() for g in np.meshgrid(*[values] * max(len(sample.shapes), 1), indexing="ij")][: len(sample.shapes)]
    if len(sample.shapes) > 2:
        grid = [g[:512] for g in grid]
    chosen = sample.dtypes or [name] * len(grid)
    xs = [from_numpy(np.asarray(g if c == name else g > 0, order="C")) for g, c in zip(grid, chosen, strict=True)]
    if not fits(primitive, sample, xs):
        return
    f = bind(primitive, sample)
    eager, compiled = f(*xs), jax.jit(f)(*xs)
    with np.errstate(all="ignore"):
        wanted = primitive.evaluate(*map(numpy_of, xs), **sample.params)
    for e, c, w in zip(eager, compiled, wanted, strict=True):
        e, c, w = raw(e), raw(c), np.asarray(w)
        nan = np.isnan(c) if c.dtype.kind == "f" or c.dtype.name == "bfloat16" else np.zeros(c.shape, bool)
        assert e[~nan].tobytes() == c[~nan].tobytes()
        assert np.array_equal(nan, np.isnan(e) if nan.any() else nan)
        if c.dtype.kind in "biu":
            assert np.array_equal(c, w)
            continue
        g64, w64 = c.astype(np.float64), w.astype(np.float64)
        assert np.array_equal(np.isnan(g64), np.isnan(w64)), np.asarray(grid)[:, np.isnan(g64) != np.isnan(w64)]
        eps = float(finfo(c.dtype).eps)
        tiny = float(finfo(c.dtype).smallest_subnormal)
        near_zeros = 1.0 if primitive.name in {"lgamma", "digamma"} else 0.0  # accurate absolutely there
        with np.errstate(invalid="ignore"):
            w_scale = np.maximum(np.abs(w64), near_zeros)
            close = (g64 == w64) | np.isnan(w64) | (np.abs(g64 - w64) <= NUMPY_ULPS * (eps * w_scale + tiny))
        assert close.all(), list(zip(*(np.asarray(g)[~close] for g in grid), g64[~close], w64[~close], strict=True))[:5]
