"""vmap: axes in and out, trees, names, nesting, collectives, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jaxlite as jax
import jaxlite.numpy as jnp
from jaxlite import lax

A = np.arange(12.0, dtype=np.float32).reshape(3, 4)


def test_axes() -> None:
    x, v = jnp.asarray(A), jnp.arange(4.0)
    np.testing.assert_array_equal(jax.vmap(lambda r: r * v)(x), A * np.arange(4))
    np.testing.assert_array_equal(jax.vmap(lambda c: c.sum(), in_axes=1)(x), A.sum(0))
    np.testing.assert_array_equal(jax.vmap(lambda c: c * 2, in_axes=1, out_axes=-1)(x), A * 2)
    np.testing.assert_array_equal(jax.vmap(lambda r, s: r * s, in_axes=(0, None))(x, 2.0), A * 2)
    both = jax.vmap(
        lambda d: {"s": d["a"] + d["b"], "b": d["b"]}, in_axes=({"a": 0, "b": None},), out_axes={"s": 1, "b": None}
    )
    out = both({"a": x, "b": v})
    np.testing.assert_array_equal(out["s"], (A + np.arange(4)).T)
    np.testing.assert_array_equal(out["b"], v)
    np.testing.assert_array_equal(jax.vmap(lambda: jnp.ones(2), axis_size=3)(), np.ones((3, 2)))


def test_pairwise() -> None:
    l1 = lambda x, y: jnp.abs(x - y).sum()
    x = jnp.asarray(A)
    got = jax.vmap(jax.vmap(l1, (0, None)), (None, 0))(x, x)
    np.testing.assert_array_equal(got, np.abs(A[None] - A[:, None]).sum(-1))


COLLECTIVES = {
    "psum": (lambda x: lax.psum(x, "i"), lambda a: np.tile(a.sum(0), (3, 1))),
    "pmean": (lambda x: lax.pmean(x, "i"), lambda a: np.tile(a.mean(0), (3, 1))),
    "pmax": (lambda x: lax.pmax(x, "i"), lambda a: np.tile(a.max(0), (3, 1))),
    "pmin": (lambda x: lax.pmin(x, "i"), lambda a: np.tile(a.min(0), (3, 1))),
    "all_gather": (lambda x: lax.all_gather(x, "i"), lambda a: np.stack([a] * 3)),
    "tiled": (lambda x: lax.all_gather(x, "i", tiled=True), lambda a: np.stack([a.ravel()] * 3)),
    "ppermute": (lambda x: lax.ppermute(x, "i", [(0, 1), (1, 2)]), lambda a: np.stack([0 * a[0], a[0], a[1]])),
    "axis_index": (lambda x: x * lax.axis_index("i"), lambda a: a * np.arange(3)[:, None]),
    "axis_size": (lambda x: x * lax.psum(1, "i"), lambda a: a * 3),
}


@pytest.mark.parametrize("name", COLLECTIVES)
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit inside"])
def test_collectives(name: str, wrap: Any) -> None:
    f, wanted = COLLECTIVES[name]
    # Sums of small whole numbers are exact, and their third is rounded once here as in NumPy.
    np.testing.assert_array_equal(jax.vmap(wrap(f), axis_name="i")(jnp.asarray(A)), wanted(A))


def test_collectives_differentiate() -> None:
    f = lambda x: jax.vmap(lambda r: (r * lax.psum(r, "i")).sum(), axis_name="i")(x).sum()
    np.testing.assert_array_equal(jax.grad(f)(jnp.asarray(A)), np.tile(2 * A.sum(0), (3, 1)))


def test_all_to_all_is_a_transpose() -> None:
    x = jnp.arange(9.0).reshape(3, 3)
    got = jax.vmap(lambda r: lax.all_to_all(r, "i", 0, 0), axis_name="i")(x)
    np.testing.assert_array_equal(got, np.arange(9.0).reshape(3, 3).T)


def test_unbound_axis() -> None:
    with pytest.raises(NameError, match="unbound axis name: j"):
        jax.vmap(lambda x: lax.psum(x, "j"), axis_name="i")(jnp.ones(3))


def test_unmapped_arguments_pass_as_they_are() -> None:
    x, marker = jnp.arange(2.0), object()
    np.testing.assert_array_equal(jax.vmap(lambda x, f: f(x), (0, None))(x, jnp.square), [0, 1])
    np.testing.assert_array_equal(jax.vmap(lambda x, d: x + len(d["a"]), (0, None))(x, {"a": "abc"}), [3, 4])
    np.testing.assert_array_equal(jax.vmap(lambda x, m: x + (m is marker), (0, None))(x, marker), [1, 2])
    np.testing.assert_array_equal(
        jax.jit(lambda x: jax.vmap(lambda x, p: p[0](x) * p[1], (0, (None, 0)))(x, (jnp.square, x)))(x + 1), [1, 8]
    )


REFUSED = [
    (
        lambda: jax.vmap(lambda x, f: x)(jnp.ones(2), "abc"),
        TypeError,
        "maps argument f along axis 0, but 'abc' of type",
    ),
    (lambda: jax.vmap(lambda x, f: x)(jnp.ones(2), f=len), TypeError, "maps argument f .* by position, with None"),
    (
        lambda: jax.vmap(lambda x, y: x + y)(jnp.ones(3), jnp.ones(4)),
        ValueError,
        r"(?s)size 3: axis 0 of argument x.*size 4: axis 0 of argument y",
    ),
    (lambda: jax.vmap(lambda x: x, in_axes=2)(jnp.ones(3)), ValueError, "rank should be at least 3.*argument x"),
    (lambda: jax.vmap(lambda x: x, in_axes=(0, 0))(jnp.ones(3)), ValueError, r"len\(in_axes\)=2, len\(args\)=1"),
    (lambda: jax.vmap(lambda x: x, in_axes="a"), TypeError, "in_axes"),
    (lambda: jax.vmap(lambda x: x, out_axes=None)(jnp.ones(3)), ValueError, "out_axes is None"),
    (lambda: jax.vmap(lambda x: x, in_axes=None)(jnp.ones(3)), ValueError, "non-None"),
    (lambda: jax.vmap(lambda x: x, in_axes=({"a": 0},))({"b": jnp.ones(3)}), ValueError, "tree prefix"),
    (lambda: jax.vmap(lambda: 1)(), ValueError, "at least one argument"),
]


@pytest.mark.parametrize("call, error, message", REFUSED, ids=range(len(REFUSED)))
def test_refused(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
