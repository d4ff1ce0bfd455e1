"""The short way of a jitted call gives what the long way gives, whatever changes between calls."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import jaxlite as jax
import jaxlite.numpy as jnp


def warmed(fun, *args, **options):
    """A jitted function after enough calls to have its short way."""
    f = jax.jit(fun, **options)
    for _ in range(5):
        f(*args)
    assert options.get("donate_argnums") is not None or f._recent is not None
    return f


def test_other_shapes_dtypes_and_weak_types():
    f = warmed(lambda x: x * 2, jnp.arange(3.0))
    for x in [jnp.arange(4.0), jnp.arange(3), jnp.float32(1), 3, 3.0, True, np.arange(3), np.float16(2)]:
        expected = jnp.asarray(x) * 2
        got = f(x)
        assert (got.dtype, got.weak_type, got.shape) == (expected.dtype, expected.weak_type, expected.shape)
        np.testing.assert_array_equal(got, expected)


def test_numbers_and_numpy_values():
    f = warmed(lambda x, y, n: x * y + n, jnp.arange(3.0), np.float32(2), 1)
    np.testing.assert_array_equal(f(jnp.arange(3.0), np.float32(3), 4), [4, 7, 10])
    np.testing.assert_array_equal(f(np.arange(3, dtype=np.float32), np.float32(3), 5), [5, 8, 11])
    with pytest.raises(OverflowError, match="out of bounds"):
        f(jnp.arange(3.0), np.float32(3), 2**40)


def test_other_structures():
    f = warmed(lambda t: jax.tree.map(lambda x: x + 1, t), {"a": jnp.ones(2), "b": [jnp.zeros(()), None]})
    assert f({"b": [jnp.zeros(()), None], "a": jnp.ones(2)})["b"][0] == 1  # another order of keys
    assert f({"a": jnp.ones(2)})["a"].tolist() == [2, 2]
    assert f((jnp.ones(2),))[0].tolist() == [2, 2]
    assert f({"a": jnp.ones(2), "b": (jnp.zeros(()), None)})["b"][0] == 1
    assert f({"a": jnp.ones(2), "b": [jnp.zeros(()), jnp.zeros(())]})["b"][1] == 1
    with pytest.raises(TypeError):
        f({"a": "text"})


def test_keywords():
    f = jax.jit(lambda x, y: x - y)
    for _ in range(5):
        assert f(jnp.float32(5), y=jnp.float32(2)) == 3
    assert f(y=jnp.float32(5), x=jnp.float32(2)) == -3
    assert f(jnp.float32(5), jnp.float32(2)) == 3


def test_flags_changed_between_calls():
    f = warmed(lambda x: x + 1, 1.5)
    assert f(1.5).dtype == np.float32
    with jax.enable_x64(True):
        assert f(1.5).dtype == np.float64
        assert f(1.5).dtype == np.float64
    assert f(1.5).dtype == np.float32
    jax.config.update("jax_enable_x64", True)
    try:
        for _ in range(6):
            assert f(1.5).dtype == np.float64
    finally:
        jax.config.update("jax_enable_x64", False)
    assert f(1.5).dtype == np.float32


def test_flags_of_another_thread():
    f = warmed(lambda x: x + 1, 1.5)
    inside, out = threading.Event(), threading.Event()
    kinds = []

    def other():
        with jax.enable_x64(True):
            inside.set()
            out.wait(10)
            kinds.extend(f(1.5).dtype.name for _ in range(6))

    thread = threading.Thread(target=other)
    thread.start()
    inside.wait(10)
    kinds.extend(f(1.5).dtype.name for _ in range(6))
    out.set()
    thread.join()
    assert kinds == ["float32"] * 6 + ["float64"] * 6
    assert f(1.5).dtype == np.float32


def test_disable_jit_and_debug_nans():
    seen = []
    f = warmed(lambda x: (seen.append(1), jnp.log(x))[1], jnp.float32(1))
    assert len(seen) == 1
    with jax.disable_jit():
        f(jnp.float32(1))
    assert len(seen) == 2
    with jax.debug_nans(True), pytest.raises(FloatingPointError):
        f(jnp.float32(-1))
    assert np.isnan(f(jnp.float32(-1)))


def test_inside_transformations():
    f = warmed(lambda x: x**3, jnp.float32(2))
    assert jax.grad(f)(jnp.float32(2)) == 12
    np.testing.assert_array_equal(jax.vmap(f)(jnp.arange(3.0)), [0, 1, 8])
    assert "jit" in str(jax.make_jaxpr(f)(1.0))
    assert jax.jit(lambda x: f(x) + f(jnp.float32(2)))(jnp.float32(1)) == 9


def test_cleared_caches_trace_again():
    seen = []
    f = warmed(lambda x: (seen.append(1), x)[1], jnp.float32(1))
    f.clear_cache()
    f(jnp.float32(1))
    assert len(seen) == 2
    for _ in range(5):
        f(jnp.float32(1))
    jax.clear_caches()
    f(jnp.float32(1))
    assert len(seen) == 3


def test_donation_is_each_jits_own():
    def fun(x, y):
        return x + y

    keeps, gives = warmed(fun, jnp.ones(3), jnp.ones(3)), jax.jit(fun, donate_argnums=0)
    for _ in range(6):
        x, y = jnp.ones(3), jnp.ones(3)
        assert gives(x, y).tolist() == [2, 2, 2]
        assert x.is_deleted() and not y.is_deleted()
        x = jnp.ones(3)
        keeps(x, y)
        assert not x.is_deleted()


def test_deleted_arguments():
    f = warmed(lambda x: x + 1, jnp.ones(3))
    x = jnp.ones(3)
    x.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        f(x)


def test_static_arguments_stay_apart():
    f = jax.jit(lambda x, n: x * n, static_argnums=1)
    for n in (2, 3, 2, 3, 2, 3, 2, 3):
        assert f(jnp.float32(5), n) == 5 * n


def test_closed_over_arrays():
    w = jnp.arange(3.0)
    f = warmed(lambda x: x * w, jnp.float32(2))
    np.testing.assert_array_equal(f(jnp.float32(3)), [0, 3, 6])


def test_many_signatures_of_one_function_are_bounded(monkeypatch):
    from jaxlite.transforms import jit

    monkeypatch.setattr(jit, "MOST_SIGNATURES", 8)
    f = jax.jit(lambda x: x.sum())
    for n in range(1, 20):
        assert f(jnp.ones(n)) == n
    assert f._cache_size() == 8
    assert f(jnp.ones(1)) == 1
