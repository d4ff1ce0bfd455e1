"""``shard_map`` and ``pmap``: values, derivatives and refusals.  Arrays written out are what JAX 0.12 gives."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import jaxlite as jax
import jaxlite.numpy as jnp
from jaxlite import lax
from jaxlite.core.device import device_of
from jaxlite.sharding import Mesh, PartitionSpec as P

MESH = Mesh(np.array([device_of(n) for n in range(8)], object).reshape(4, 2), ("x", "y"))
X = jnp.arange(8.0)


def mapped(f, in_specs, out_specs, **options):
    return jax.shard_map(f, mesh=MESH, in_specs=in_specs, out_specs=out_specs, **options)


ROUND = [(i, (i + 1) % 4) for i in range(4)]
CASES = {
    "pbroadcast": (lambda x: lax.pbroadcast(x, "x", 2), P("x"), P("x"), X, [4, 5] * 4),
    "psum": (lambda x: lax.psum(x, "x"), P("x"), P(), X, [12, 16]),
    "psum twice": (lambda x: lax.psum(lax.psum(x, "x"), "x"), P("x"), P(), X, [48, 64]),
    "psum of two axes": (
        lambda x: lax.psum(x, ("x", "y")), P("x", "y"), P(), jnp.arange(32.0).reshape(8, 4), [[104, 112], [136, 144]]
    ),
    "psum of a number": (lambda x: x * lax.psum(1, "x"), P("x"), P("x"), X, 4 * np.arange(8)),
    "pmean": (lambda x: lax.pmean(x, "x"), P("x"), P(), X, [3, 4]),
    "pmax": (lambda x: lax.pmax(x, "x"), P("x"), P(), X, [6, 7]),
    "pmin": (lambda x: lax.pmin(x, "x"), P("x"), P(), X, [0, 1]),
    "ppermute": (lambda x: lax.ppermute(x, "x", ROUND), P("x"), P("x"), X, [6, 7, 0, 1, 2, 3, 4, 5]),
    "all_gather": (lambda x: lax.all_gather(x, "x"), P("x"), P(None, "x"), X, np.tile(X.reshape(4, 2), 4)),
    "all_gather tiled": (lambda x: lax.all_gather(x, "x", tiled=True), P("x"), P("x"), X, np.tile(X, 4)),
    "psum_scatter": (lambda x: lax.psum_scatter(x, "x", tiled=True), P(), P("x"), X, 4 * np.arange(8)),
    "psum_scatter of rows": (
        lambda x: lax.psum_scatter(x.reshape(4, 2), "x"), P("y"), P(("x", "y")), jnp.arange(16.0),
        [0, 4, 32, 36, 8, 12, 40, 44, 16, 20, 48, 52, 24, 28, 56, 60],
    ),
    "psum_scatter of columns": (
        lambda x: lax.psum_scatter(x, "x", scatter_dimension=1, tiled=True), P("x"), P("x", None),
        jnp.arange(32.0).reshape(4, 8), [[48, 52], [56, 60], [64, 68], [72, 76]],
    ),
    "all_to_all": (
        lambda x: lax.all_to_all(x, "x", 1, 0, tiled=True), P("x"), P("x"), jnp.arange(32.0).reshape(8, 4),
        np.arange(32).reshape(8, 4).T.reshape(32, 1),
    ),
    "pswapaxes": (
        lambda x: lax.pswapaxes(x, "x", 1), P("x"), P("x"), jnp.arange(16.0).reshape(4, 4),
        np.arange(16).reshape(4, 4).T,
    ),
    "axis_index": (lambda x: x * 0 + lax.axis_index("x"), P("x"), P("x"), X, [0, 0, 1, 1, 2, 2, 3, 3]),
    "axis_index of two": (lambda x: x * 0 + lax.axis_index(("x", "y")), P(("x", "y")), P(("x", "y")), X, np.arange(8)),
    "axis_size": (lambda x: x * lax.axis_size("x"), P("x"), P("x"), X, 4 * np.arange(8)),
    "other order of axes": (
        lambda x: x + lax.axis_index("x"), P(("y", "x")), P(("y", "x")), X, [0, 2, 4, 6, 4, 6, 8, 10]
    ),
    "pcast": (lambda x: lax.pcast(x, "x", to="varying"), P(), P("x"), X, np.tile(X, 4)),
    "replicated along y": (lambda x: x * 2, P("x"), P("x"), X, 2 * np.arange(8)),
    "result named where equal": (lambda x: lax.psum(x, "x"), P("x"), P("y"), X, [12, 16, 12, 16]),
    "scan": (
        lambda x: lax.scan(lambda c, t: (c + t, c), 0.0, x)[0][None], P("x"), P("x"), X, [1, 5, 9, 13]
    ),
    "cond that differs": (
        lambda x: lax.cond(lax.axis_index("x") > 1, lambda x: x * 2, lambda x: -x, x), P("x"), P("x"), X,
        [0, -1, -2, -3, 8, 10, 12, 14],
    ),
    "cond of constants": (
        lambda x: lax.cond(lax.axis_index("x") > 1, lambda: 1.0, lambda: 2.0)[None], P("x"), P("x"), X, [2, 2, 1, 1]
    ),
    "while that differs": (
        lambda x: lax.while_loop(lambda c: c[0] < 5, lambda c: c + 1 + lax.axis_index("x"), x), P("x"), P("x"), X,
        [5, 6, 6, 7, 7, 8, 6, 7],
    ),
    "nested": (
        lambda x: jax.shard_map(
            lambda x: lax.psum(x, "y"), mesh=MESH, in_specs=P("y"), out_specs=P(), axis_names={"y"}
        )(x), P("x"), P("x"), X, [1, 5, 9, 13],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("how", ["eager", "jit", "vmap"])
def test_values(name, how):
    f, in_specs, out_specs, x, right = CASES[name]
    options = {"axis_names": {"x"}} if name == "nested" else {}
    g = mapped(f, in_specs, out_specs, **options)
    if how == "vmap":
        if name == "while that differs":
            pytest.skip("its condition reads one element of each example")
        got = jax.vmap(g)(jnp.stack([x, 2 * x]))[0]
    else:
        got = (jax.jit(g) if how == "jit" else g)(x)
    np.testing.assert_array_equal(got, np.asarray(right, np.float32))


LINEAR = [
    "psum", "psum twice", "ppermute", "all_gather", "all_gather tiled", "psum_scatter", "psum_scatter of rows",
    "psum_scatter of columns", "all_to_all", "pswapaxes", "pmean", "pcast", "replicated along y", "scan",
]  # fmt: skip


@pytest.mark.parametrize("name", LINEAR)
def test_transposes(name):
    """<f(x), y> = <x, f*(y)>, all in small integers."""
    f, in_specs, out_specs, x, right = CASES[name]
    g = mapped(f, in_specs, out_specs)
    y = jnp.arange(1.0, np.size(right) + 1).reshape(np.shape(right))
    out, back = jax.vjp(g, x)
    assert float(jnp.vdot(out, y)) == float(jnp.vdot(x, back(y)[0]))
    np.testing.assert_array_equal(jax.jvp(g, (x,), (x,))[1], out)


def loss(w, d):
    return lax.psum(jnp.sum((w**2 + 1) * d), "x")


def test_derivative_inside_is_that_of_the_sum():
    """d/dw of sum over devices of (w^2 + 1) d, w shared: 2 w sum(d) = 56."""
    inside = mapped(lambda w, d: jax.grad(loss)(w, d), (P(), P("x")), P())
    outside = jax.grad(mapped(loss, (P(), P("x")), P()))
    assert float(inside(1.0, X)) == float(jax.jit(inside)(1.0, X)) == float(outside(1.0, X)) == 56


def test_derivative_of_a_pmean_loss_trains_like_the_whole_batch():
    """A data-parallel gradient is the gradient of the mean over all rows."""
    rng = np.random.default_rng(0)
    w, b = rng.integers(-2, 3, (4, 3)).astype(np.float32), np.zeros(3, np.float32)
    rows = rng.integers(-2, 3, (16, 4)).astype(np.float32)

    def mean_loss(params, rows):
        return jnp.mean((rows @ params["w"] + params["b"]) ** 2)

    def step(params, rows):
        return jax.grad(lambda p: lax.pmean(mean_loss(p, rows), ("x", "y")))(params)

    got = mapped(step, (P(), P(("x", "y"))), P())({"w": w, "b": b}, rows)
    want = jax.grad(mean_loss)({"w": w, "b": b}, rows)
    for name in want:  # sums of 48 products rounded in another order: 48 ulp at most, of values up to about 8
        np.testing.assert_allclose(got[name], want[name], rtol=48 * 6e-8, atol=48 * 5e-7)


def test_derivative_through_a_loop_whose_carry_varies():
    """sum over devices of w^n prod(d): the carry starts as the shared 1."""

    def total(w, d):
        return lax.psum(lax.scan(lambda c, t: (c * w * t, None), 1.0, d)[0], "x")

    d = jnp.array([1.0, 2.0, 3.0, 1.0, 2.0, 2.0, 1.0, 1.0])
    inside = mapped(lambda w, d: jax.grad(total)(w, d), (P(), P("x")), P())
    assert float(inside(2.0, d)) == 2 * 2.0 * (2 + 3 + 4 + 1)


def test_derivative_with_respect_to_what_is_broadcast():
    f = mapped(lambda w, d: w * d, (P(), P("x")), P("x"))
    assert float(jax.grad(lambda w: f(w, X).sum())(2.0)) == 28


def test_types_say_what_varies():
    seen = []

    def f(x):
        seen.extend([jax.typeof(x), jax.typeof(lax.psum(x, "x")), jax.typeof(x * 2 + lax.axis_index("y"))])
        return x

    mapped(f, P("x"), P("x"))(X)
    assert list(map(str, seen)) == ["float32[2]{V:x}", "float32[2]", "float32[2]{V:(x,y)}"]


def test_pytrees_and_none():
    f = mapped(lambda t, n: {"sum": lax.psum(t["a"] * n, "x"), "own": t["b"]}, ({"a": P("x"), "b": P()}, None),
               {"sum": P(), "own": None})  # fmt: skip
    got = f({"a": X, "b": jnp.ones(3)}, 2.0)
    assert got["sum"].tolist() == [24, 32] and got["own"].tolist() == [1, 1, 1]


def test_as_a_decorator_and_smap():
    @jax.shard_map(mesh=MESH, in_specs=P("x"), out_specs=P())
    def total(x):
        """Sums."""
        return lax.psum(x, "x")

    assert total(X).tolist() == [12, 16] and total.__doc__ == "Sums."
    swapped = jax.smap(lambda x: x * lax.axis_index("x"), mesh=MESH, in_axes=1, out_axes=1, axis_name="x")
    assert swapped(jnp.ones((2, 4))).tolist() == [[0, 1, 2, 3]] * 2


def test_unchecked_takes_the_first():
    assert mapped(lambda x: x, P("x"), P(), check_vma=False)(X).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: mapped(lambda x: x, P("x"), P())(X), ValueError, r"possibly varying over \{x\}"),
        (lambda: mapped(lambda x: lax.all_gather(x, "x", tiled=True), P("x"), P())(X), ValueError, "possibly varying"),
        (lambda: mapped(lambda x: x, P("x"), P("x"))(jnp.arange(7.0)), ValueError, "4 does not evenly divide 7"),
        (lambda: mapped(lambda x: x, P("x"), P("x"))(1.0), ValueError, "too long.*argument x has shape f32"),
        (lambda: mapped(lambda x: x.sum(), P("x"), P("x"))(X), ValueError, r"too long.*add an axis to a scalar"),
        (lambda: mapped(lambda x, y: x, (P("x"),), P("x"))(X, X), ValueError, "in_specs must be a tree prefix"),
        (lambda: mapped(lambda x: x, P("z"), P()), ValueError, "in_specs refers to 'z'"),
        (lambda: mapped(lambda x: x, P("y"), P("y"), axis_names={"x"}), ValueError, "in_specs refers to 'y'"),
        (lambda: mapped(lambda x: x, P("x", "x"), P()), ValueError, "names a mesh axis twice"),
        (lambda: mapped(lambda x: x, "x", P()), TypeError, r"write P\(\)"),
        (lambda: mapped(lambda x: x, P(), P(), axis_names={"q"}), ValueError, "'q', which is no axis of the mesh"),
        (lambda: mapped(lambda x: lax.psum(x, "q"), P("x"), P())(X), NameError, "unbound axis name: q"),
        (lambda: jax.shard_map(lambda x: x, in_specs=P(), out_specs=P()), ValueError, "takes a mesh"),
        (lambda: jax.shard_map(lambda x: x, mesh=3, in_specs=P(), out_specs=P()), TypeError, "takes a mesh, got 3"),
        (lambda: jax.shard_map(lambda x: x, mesh=MESH, out_specs=P()), TypeError, "takes in_specs"),
        (lambda: mapped(lambda x: mapped(lambda x: x, P(), P())(x), P("x"), P("x"))(X), ValueError, "inside shard_map"),
        (lambda: mapped(lambda x: lax.pcast(x, "x", to="varying"), P("x"), P("x"))(X), ValueError, "varies along"),
        (lambda: mapped(lambda x: lax.pcast(x, "x", to="fixed"), P(), P())(X), ValueError, "takes to='varying'"),
        (lambda: mapped(lambda x: lax.psum_scatter(x, "x"), P(), P("x"))(X), ValueError, "must be 4"),
        (lambda: jax.pmap(lambda x: x)(jnp.ones(9)), ValueError, "only 1 devices are available"),
        (lambda: jax.pmap(lambda x: x)(1.0), ValueError, "at least one argument with a mapped axis"),
        (lambda: jax.pmap(lambda x: x)(x=X), TypeError, "positional"),
    ],
)  # fmt: skip
def test_refusals(make, error, text):
    with pytest.raises(error, match=f"(?s){text}"):
        make()


def test_nothing_is_left_behind_by_an_error():
    with pytest.raises(ZeroDivisionError):
        mapped(lambda x: 1 / 0, P("x"), P())(X)
    with pytest.raises(NameError, match="unbound axis name"):
        lax.psum(X, "x")
    assert str(jax.typeof(X * 2)) == "float32[8]"


CHILD = """
import jaxlite as jax, jaxlite.numpy as jnp
from jaxlite import lax
print(jax.pmap(lambda x, y: x + lax.psum(y, "i"), axis_name="i", in_axes=(0, None))(jnp.arange(4.0), 1.0))
print(jax.pmap(lambda x: lax.psum(x, "i"), axis_name="i")(jnp.arange(8.0)))
print(jax.pmap(lambda x: x, out_axes=1)(jnp.ones((2, 3))).shape)
print(jax.pmap(lambda x, n: x * n, static_broadcasted_argnums=1)(jnp.arange(4.0), 3))
print(jax.grad(lambda w: jax.pmap(lambda x: x * w)(jnp.arange(4.0)).sum())(2.0))
"""


def test_pmap():
    environ = {**os.environ, "JAX_NUM_CPU_DEVICES": "8"}
    done = subprocess.run([sys.executable, "-c", CHILD], env=environ, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "[4. 5. 6. 7.]", "[28. 28. 28. 28. 28. 28. 28. 28.]", "(3, 2)", "[0. 3. 6. 9.]", "6.0",
    ]  # fmt: skip
