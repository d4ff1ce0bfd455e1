"""Small forms of the programs that speed is measured on, each against NumPy in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import jaxlite as jax
import jaxlite.numpy as jnp
from jaxlite import lax

RNG = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray[Any, Any]:
    return RNG.standard_normal(shape).astype(np.float32)


X, G, B = normal(40, 33), normal(33), normal(33)
S, K, T = (RNG.uniform(a, b, 50).astype(np.float32) for a, b in ((5, 30), (1, 100), (0.25, 10)))


def black_scholes(xp: Any, erf: Any) -> Callable[..., Any]:
    cdf = lambda x: 0.5 * (1.0 + erf(x / np.sqrt(np.float32(2.0))))

    def price(s: Any, k: Any, t: Any) -> Any:
        r, v = 0.02, 0.30
        d1 = (xp.log(s / k) + (r + v * v / 2) * t) / (v * xp.sqrt(t))
        return s * cdf(d1) - k * xp.exp(-r * t) * cdf(d1 - v * xp.sqrt(t))

    return price


def layer_norm(xp: Any) -> Callable[..., Any]:
    def f(x: Any, g: Any, b: Any) -> Any:
        m, v = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        return (x - m) / xp.sqrt(v + 1e-5) * g + b

    return f


def heat(roll: Any) -> Callable[..., Any]:
    def step(u: Any) -> Any:
        return u + 0.1 * (roll(u, 1, 0) + roll(u, -1, 0) + roll(u, 1, 1) + roll(u, -1, 1) - 4 * u)

    return step


def wave(u: Any, prev: Any, put: Any) -> Any:
    lap = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]
    return put(u, 2 * u[1:-1, 1:-1] - prev[1:-1, 1:-1] + 0.1 * lap)


def put_numpy(u: Any, v: Any) -> Any:
    out = u.copy()
    out[1:-1, 1:-1] = v
    return out


def lorenz(stack: Any) -> Callable[..., Any]:
    def f(s: Any) -> Any:
        x, y, z = s
        return stack([10.0 * (y - x), x * (28.0 - z) - y, x * y - 8.0 / 3.0 * z])

    def step(s: Any, h: float = 0.001) -> Any:
        k1 = f(s)
        k2 = f(s + h / 2 * k1)
        k3 = f(s + h / 2 * k2)
        return s + h / 6 * (k1 + 2 * k2 + 2 * k3 + f(s + h * k3))

    return step


def repeated(step: Callable[[Any], Any], s: Any, times: int) -> Any:
    for _ in range(times):
        s = step(s)
    return s


def mandelbrot_numpy(a: Any, b: Any) -> Any:
    x, y, i = np.float32(0), np.float32(0), 0
    while x * x + y * y <= 4 and i < 30:
        x, y, i = x * x - y * y + a, 2 * x * y + b, i + 1
    return i


def mandelbrot(a: Any, b: Any) -> Any:
    start = (jnp.float32(0), jnp.float32(0), jnp.int32(0))
    going = lambda s: (s[0] * s[0] + s[1] * s[1] <= 4.0) & (s[2] < 30)
    return lax.while_loop(going, lambda s: (s[0] * s[0] - s[1] * s[1] + a, 2 * s[0] * s[1] + b, s[2] + 1), start)[2]


def wide(*arrays: Any) -> list[Any]:
    return [np.asarray(a, np.float64) for a in arrays]


def nbody(pos: Any, vel: Any, steps: int) -> Any:
    for _ in range(steps):
        d = pos[None] - pos[:, None]
        vel = vel + 0.001 * (d * (((d * d).sum(-1) + 0.05) ** -1.5)[..., None]).sum(1)
        pos = pos + 0.001 * vel
    return pos


def kmeans(x: Any, c: Any) -> Any:
    a = ((x[:, None] - c[None]) ** 2).sum(-1).argmin(1)
    return np.array([x[a == i].sum(0) / max((a == i).sum(), 1) for i in range(len(c))])


def kmeans_jax(x: Any, c: Any) -> Any:
    a = ((x[:, None] - c[None]) ** 2).sum(-1).argmin(1)
    s = jnp.zeros_like(c).at[a].add(x)
    n = jnp.zeros(len(c)).at[a].add(1.0)
    return s / jnp.maximum(n, 1)[:, None]


U, POS, VEL, C = RNG.random((24, 24)).astype(np.float32), normal(20, 3), normal(20, 3), normal(5, 33)

# name -> (ours, arguments, what NumPy gives in float64, relative tolerance: ulps of the largest entry times the terms)
WORKLOADS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], Callable[[], Any], float]] = {
    "pairwise": (
        jax.vmap(jax.vmap(lambda x, y: jnp.abs(x - y).sum(), (0, None)), (None, 0)),
        (X, X),
        lambda: np.abs(wide(X)[0][None] - wide(X)[0][:, None]).sum(-1),
        33e-7,
    ),
    "black-scholes": (
        black_scholes(jnp, lax.erf),
        (S, K, T),
        lambda: black_scholes(np, scipy.special.erf)(*wide(S, K, T)),
        3e-6,
    ),
    "softmax": (jax.nn.softmax, (X,), lambda: scipy.special.softmax(wide(X)[0], -1), 2e-6),
    "layer norm": (layer_norm(jnp), (X, G, B), lambda: layer_norm(np)(*wide(X, G, B)), 3e-6),
    "heat": (
        lambda u: lax.fori_loop(0, 10, lambda i, u: heat(jnp.roll)(u), u),
        (U,),
        lambda: repeated(heat(np.roll), wide(U)[0], 10),
        3e-6,
    ),
    "wave": (
        lambda u: lax.fori_loop(0, 10, lambda i, s: (wave(*s, lambda u, v: u.at[1:-1, 1:-1].set(v)), s[0]), (u, u))[0],
        (U,),
        lambda: repeated(lambda s: (wave(*s, put_numpy), s[0]), (wide(U)[0],) * 2, 10)[0],
        1e-5,
    ),
    "lorenz": (
        lambda s: lax.scan(lambda s, _: (lorenz(jnp.stack)(s), None), s, None, length=100)[0],
        (np.ones(3, np.float32),),
        lambda: repeated(lorenz(np.array), np.ones(3), 100),
        2e-5,
    ),
    "bodies": (
        lambda p, v: lax.fori_loop(
            0, 5, lambda _, s: ((v := s[1] + 0.001 * accel(s[0])), (s[0] + 0.001 * v, v))[1], (p, v)
        )[0],
        (POS, VEL),
        lambda: nbody(*wide(POS, VEL), 5),
        3e-6,
    ),
    "mandelbrot": (
        jax.vmap(mandelbrot, (0, None)),
        (np.linspace(-2, 0.4, 17, dtype=np.float32), np.float32(0.3)),
        lambda: [mandelbrot_numpy(a, 0.3) for a in np.linspace(-2, 0.4, 17)],
        0,
    ),
    "k-means": (kmeans_jax, (X, C), lambda: kmeans(*wide(X, C)), 1e-5),
    "sort": (lambda x: jnp.sort(x, 0), (X,), lambda: np.sort(X, 0), 0),
    "gather": (lambda x: x[jnp.array([3, 1, 3])], (X,), lambda: X[[3, 1, 3]], 0),
    "cumulative sum": (lambda x: jnp.cumsum(x, 0), (X,), lambda: np.cumsum(wide(X)[0], 0), 4e-6),
}


def accel(p: Any) -> Any:
    d = p[None] - p[:, None]
    return (d * (((d * d).sum(-1) + 0.05) ** -1.5)[..., None]).sum(1)


@pytest.mark.parametrize("name", WORKLOADS)
def test_against_numpy(name: str) -> None:
    f, args, wanted, rtol = WORKLOADS[name]
    want = np.asarray(wanted(), np.float64)
    for g in (jax.jit(f), f):
        got = np.asarray(g(*map(jnp.asarray, args)), np.float64)
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=0, atol=rtol * np.abs(want).max())


def test_a_classifier_learns() -> None:
    """Three layers, log-softmax, Adam: the loss falls tenfold, jitted and not the same."""
    x, labels = normal(64, 8), RNG.integers(0, 3, 64)
    params = [(jnp.asarray(normal(m, n) * 0.4), jnp.zeros(n)) for m, n in ((8, 16), (16, 16), (16, 3))]

    def loss(params: Any, x: Any, y: Any) -> Any:
        for w, b in params[:-1]:
            x = jnp.tanh(x @ w + b)
        w, b = params[-1]
        return -(jax.nn.log_softmax(x @ w + b) * jax.nn.one_hot(y, 3)).sum(1).mean()

    @jax.jit
    def step(params: Any, m: Any, v: Any) -> Any:
        value, g = jax.value_and_grad(loss)(params, x, labels)
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        v = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, v, g)
        return jax.tree.map(lambda p, m, v: p - 0.03 * m / (jnp.sqrt(v) + 1e-8), params, m, v), m, v, value

    m = v = jax.tree.map(jnp.zeros_like, params)
    values = []
    for _ in range(200):
        params, m, v, value = step(params, m, v)
        values.append(float(value))
    assert values[-1] < values[0] / 10
