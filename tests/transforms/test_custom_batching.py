"""custom_vmap and sequential_vmap: the user's batching rule is the one used."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jaxlite as jax
import jaxlite.numpy as jnp
from jaxlite import lax
from jaxlite.custom_batching import custom_vmap, sequential_vmap

X = np.arange(3.0, dtype=np.float32)


def times(seen: list[Any] | None = None) -> Any:
    """The product, ten times as large when batched, to tell the rule from the function."""

    @custom_vmap
    def f(x: Any, y: Any) -> Any:
        return {"s": x * y}

    @f.def_vmap
    def rule(size: int, batched: Any, x: Any, y: Any) -> Any:
        if seen is not None:
            seen.append((size, batched))
        return {"s": x * y * 10.0}, {"s": any(batched)}

    return f


def test_the_rule_is_used_under_vmap_alone() -> None:
    seen: list[Any] = []
    f = times(seen)
    assert float(f(2.0, 3.0)["s"]) == 6.0 and float(jax.jit(f)(2.0, 3.0)["s"]) == 6.0
    assert seen == []
    assert jax.vmap(f, (0, None))(X, 2.0)["s"].tolist() == [0.0, 20.0, 40.0]
    assert jax.jit(jax.vmap(f))(X, X)["s"].tolist() == [0.0, 10.0, 40.0]
    assert seen == [(3, [True, False]), (3, [True, True])]


def test_axes_are_first_and_kept_through_jit_and_scan() -> None:
    f = times()
    pairs = np.stack([X, X + 1], 1)
    assert jax.vmap(f, (1, None))(pairs, 1.0)["s"].tolist() == (pairs.T * 10).tolist()
    assert jax.vmap(jax.jit(f))(X, X)["s"].tolist() == [0.0, 10.0, 40.0]
    loop = lambda x: lax.scan(lambda c, u: (f(c, u)["s"], None), x, jnp.ones(2))[0]
    assert jax.vmap(loop)(X).tolist() == [0.0, 100.0, 200.0]


def test_derivatives() -> None:
    f = times()
    assert float(jax.grad(lambda x: f(x, 3.0)["s"])(2.0)) == 3.0
    out, moved = jax.vmap(lambda x: jax.jvp(f, (x, 3.0), (1.0, 0.0)))(X)
    assert out["s"].tolist() == [0.0, 30.0, 60.0] and moved["s"].tolist() == [30.0] * 3
    out, moved = jax.jvp(lambda x: jax.vmap(f)(x, x), (X,), (np.ones(3, np.float32),))
    assert moved["s"].tolist() == [0.0, 20.0, 40.0]
    assert jax.grad(lambda x: jax.vmap(f)(x, x)["s"].sum())(X).tolist() == [0.0, 20.0, 40.0]


def test_unbatched_results() -> None:
    @custom_vmap
    def f(x: Any) -> Any:
        return x, 1.0

    f.def_vmap(lambda size, batched, x: ((x, 5.0), (True, False)))
    first, second = jax.vmap(f)(X)
    assert first.tolist() == X.tolist() and second.tolist() == [5.0] * 3


def test_sequential() -> None:
    f = sequential_vmap(lambda x, y: jnp.sin(x) + y)
    wanted = np.sin(X)[:, None] + X
    # sin: at most 2 ulps from NumPy's own 1
    np.testing.assert_allclose(jax.jit(jax.vmap(jax.vmap(f, (None, 0)), (0, None)))(X, X), wanted, rtol=4e-7)
    np.testing.assert_allclose(jax.vmap(jax.grad(f))(X, X), np.cos(X), rtol=4e-7)


def test_refused() -> None:
    with pytest.raises(AttributeError, match="No batching rule defined"):
        custom_vmap(lambda x: x)(1.0)
    with pytest.raises(TypeError, match="expected a callable"):
        custom_vmap(3)  # type: ignore[arg-type]
    wrong: list[tuple[Any, type[Exception], str]] = [
        (lambda size, b, x: x, TypeError, "must give a pair"),
        (lambda size, b, x: ([x], [True]), ValueError, "structure of output returned"),
        (lambda size, b, x: (x, [True]), ValueError, "structure of output batching flags"),
        (lambda size, b, x: (x[0], True), ValueError, "must have the length 3"),
    ]
    for rule, error, message in wrong:
        f = custom_vmap(lambda x: x)
        f.def_vmap(rule)
        f(1.0)
        with pytest.raises(error, match=message):
            jax.vmap(f)(X)
