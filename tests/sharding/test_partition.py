"""One device's program: values as in one piece, and no more collectives or bytes than are needed."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import jaxlite as jax
import jaxlite.numpy as jnp
from jaxlite import lax
from jaxlite.compiler.partition import Partition
from jaxlite.compiler.partition.layouts import Layout, bytes_of_steps, steps_between
from jaxlite.core.device import device_of
from jaxlite.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P
from tests.properties.test_random_programs import CLOSE, EVERYTHING, Program, inputs, programs, run

DEVICES = np.array([device_of(n) for n in range(8)], object)
DATA = Mesh(DEVICES, "data")
GRID = Mesh(DEVICES.reshape(2, 4), ("x", "y"))


def put(value: Any, mesh: Mesh, *spec: Any) -> Any:
    return jax.device_put(value, NamedSharding(mesh, P(*spec)))


def random(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(sum(shape)).uniform(-1, 1, shape).astype(np.float32)


def compiled(function: Any, *args: Any) -> tuple[Any, Partition]:
    """The results, and how the program was split."""
    program = jax.jit(function).lower(*args).compile()
    parts = program.report.partition
    assert parts is not None
    return program(*args), parts


def kinds(parts: Partition) -> list[tuple[str, tuple[str, ...], int]]:
    return [(c.kind, c.axes, c.nbytes) for c in parts.communications]


def close(got: Any, want: Any) -> None:
    # sums of up to some hundred terms of order one, over devices in another order
    jax.tree.map(lambda g, w: np.testing.assert_allclose(g, w, rtol=1e-5, atol=1e-5), got, want)


# -- counts ------------------------------------------------------------------------------------------------


def loss(params: Any, batch: Any) -> Any:
    x, y = batch
    for w, b in params[:-1]:
        x = jnp.tanh(x @ w + b)
    w, b = params[-1]
    return jnp.mean((x @ w + b - y) ** 2)


def step(params: Any, batch: Any) -> Any:
    value, slopes = jax.value_and_grad(loss)(params, batch)
    return value, jax.tree.map(lambda p, g: p - 0.1 * g, params, slopes)


def test_a_data_parallel_step_has_one_all_reduce() -> None:
    params = [(random(4, 16), random(16)), (random(16, 16), random(16)), (random(16, 1), random(1))]
    batch = random(64, 4), random(64, 1)
    got, parts = compiled(step, params, jax.tree.map(lambda a: put(a, DATA, "data"), batch))
    close(got, step(params, batch))
    elements = 1 + sum(a.size for pair in params for a in pair)
    assert len(parts.communications) == 1
    (kind, axes, nbytes), *_ = kinds(parts)
    assert (kind, axes) == ("all_reduce", ("data",))
    # each of 7 values: twice 7/8 of its bytes, rounded down
    assert 2 * 4 * elements * 7 // 8 - 2 * 7 <= nbytes <= 2 * 4 * elements * 7 // 8


ROWS = {
    "softmax": lambda x: jax.nn.softmax(x, -1),
    "normalised": lambda x: (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5),
    "sorted": lambda x: jnp.sort(x, -1),
    "running": lambda x: jnp.cumsum(x, 1),
    "vmap of a loop": jax.vmap(lambda r: lax.fori_loop(0, 3, lambda _, c: jnp.sin(c) * r, r)),
    "scan over columns": lambda x: lax.scan(lambda c, r: (c + r, c * r), jnp.zeros(8), x.T)[0],
    "gradient": lambda x: jax.grad(lambda v: jnp.sum(jnp.tanh(v) ** 2))(x),
    "factorised": lambda x: jnp.linalg.cholesky(x[:, :, None] * x[:, None, :] + 9 * jnp.eye(5)),
    "where": lambda x: jnp.where(x > 0, x, 0.1 * x),
    "columns taken": lambda x: x[:, jnp.array([2, 0, 1])],
    "padded columns": lambda x: jnp.pad(x, ((0, 0), (1, 1))),
    "new axes": lambda x: x[:, None, :, None] * 2,
    "a constant": lambda x: x * jnp.arange(8.0)[:, None] + jnp.eye(8, 5),
    "a branch": lambda x: lax.cond(True, jnp.sin, jnp.cos, x),
}


@pytest.mark.parametrize("name", ROWS)
def test_what_is_done_by_rows_needs_none(name: str) -> None:
    x = random(8, 5)
    got, parts = compiled(ROWS[name], put(x, DATA, "data"))
    close(got, ROWS[name](x))
    assert not parts.communications, str(parts)


def test_products() -> None:
    a, b = random(16, 32), random(32, 24)
    want = a @ b
    cases: list[tuple[Sequence[Any], Sequence[Any], list[str]]] = [
        (("x", None), (None, "y"), []),
        ((None, None), (None, "y"), []),
        ((None, "y"), ("y", None), ["all_reduce"]),
        (("x", "y"), ("y", None), ["all_reduce"]),
        (("x", None), ("x", None), ["all_gather"]),
    ]
    for left, right, expected in cases:
        got, parts = compiled(jnp.matmul, put(a, GRID, *left), put(b, GRID, *right))
        close(got, want)
        assert [c.kind for c in parts.communications] == expected, (left, right, str(parts))


def test_a_product_takes_the_cheaper_way() -> None:
    def product(a: Any, b: Any) -> Any:
        return lax.with_sharding_constraint(a @ b, NamedSharding(DATA, P("data")))

    # contracted over the split axis: with a small result the parts of sums are exchanged, with a large one operands
    small, parts = compiled(product, put(random(8, 512), DATA, None, "data"), put(random(512, 8), DATA, "data"))
    close(small, random(8, 512) @ random(512, 8))
    assert [c.kind for c in parts.communications] == ["reduce_scatter"]
    assert kinds(parts)[0][2] == 8 * 8 * 4 * 7 // 8
    large, parts = compiled(product, put(random(512, 8), DATA, None, "data"), put(random(8, 512), DATA, "data"))
    close(large, random(512, 8) @ random(8, 512))
    assert {c.kind for c in parts.communications} <= {"all_gather", "all_to_all"}
    assert sum(c.nbytes for c in parts.communications) < 512 * 512 * 4 * 7 // 8
    assert any("against" in d.reason for d in parts.decisions)


def test_random_numbers_are_made_where_they_are_needed_and_are_the_same() -> None:
    def draw(key: Any) -> Any:
        return lax.with_sharding_constraint(jax.random.uniform(key, (64, 16)), NamedSharding(DATA, P("data")))

    key = jax.random.key(3)
    got, parts = compiled(draw, key)
    assert np.array_equal(got, jax.random.uniform(key, (64, 16)))
    assert not parts.communications
    sizes = {v.aval.size for eqn in parts.local.eqns for v in eqn.outvars if v.aval.shape}
    assert max(sizes) == 64 * 16 // 8, "no device makes all of them"


def test_only_what_is_used_is_summed() -> None:
    def f(x: Any) -> Any:
        total = x.sum(0)
        return (total * 2 - total) / 3, -total

    x = random(64, 3)
    got, parts = compiled(f, put(x, DATA, "data"))
    close(got, f(x))
    assert [c.kind for c in parts.communications] == ["all_reduce"]


def test_extrema_over_devices() -> None:
    x = random(64, 3)
    got, parts = compiled(lambda v: (v.max(0), v.min(), jnp.argmax(v, 0)), put(x, DATA, "data"))
    close(got, (x.max(0), x.min(), x.argmax(0)))
    assert [c.kind for c in parts.communications].count("all_reduce") == 2


def test_a_wish_that_does_not_come_out_even_is_whole() -> None:
    wish = NamedSharding(DATA, P("data"))
    got, parts = compiled(lambda v: lax.with_sharding_constraint(v[:7] * 2, wish), put(random(8), DATA, "data"))
    close(got, random(8)[:7] * 2)
    assert got.sharding.is_fully_replicated
    assert any("does not come out even over data" in d.reason for d in parts.decisions)
    with pytest.raises(ValueError, match="partitioned 8 times, but the dimension size is 7"):
        lax.with_sharding_constraint(jnp.arange(7.0), wish)


# -- loops and branches -------------------------------------------------------------------------------------


def test_a_loop_whose_carry_is_split() -> None:
    def f(x: Any, w: Any) -> Any:
        return lax.scan(lambda c, _: (jnp.tanh(c @ w), c.sum()), x, None, length=5)

    x, w = random(16, 8), random(8, 8)
    got, parts = compiled(f, put(x, DATA, "data"), w)
    close(got, f(x, w))
    assert [c.kind for c in parts.communications] == ["all_reduce"]
    assert parts.communications[0].times == 5 and "5 times" in parts.text()
    assert parts.out_layouts[0] == (("data",), ())


def test_a_loop_that_changes_layouts_settles() -> None:
    def f(x: Any) -> Any:
        return lax.fori_loop(0, 3, lambda _, c: c.T * 0.5 + 1, x)

    x = random(8, 8)
    got, _ = compiled(f, put(x, DATA, "data"))
    close(got, f(x))


def test_while_loops_and_branches() -> None:
    def f(x: Any) -> Any:
        y = lax.while_loop(lambda c: c.sum() < 100, lambda c: c * 1.5 + 0.1, jnp.abs(x))
        return lax.cond(y[0, 0] > 1, lambda v: v.T @ v, lambda v: v @ v.T, y), lax.switch(
            1, [jnp.sin, lambda v: v[::-1], jnp.cos], y
        )

    x = random(8, 8)
    got, _ = compiled(f, put(x, DATA, "data"))
    close(got, f(x))


# -- anything ------------------------------------------------------------------------------------------------

MESHES = [Mesh(DEVICES[:1], "a"), Mesh(DEVICES[:2], "a"), Mesh(DEVICES[:4].reshape(2, 2).T, ("a", "b"))]
LAYOUTS = st.sampled_from([(), ("a",), (None, "a"), (None, "b"), ("b",), (None, ("a", "b")), (None, ("b", "a"))])


@given(programs(EVERYTHING, 8), st.sampled_from(MESHES), LAYOUTS, LAYOUTS)
def test_random_programs(program: Program, mesh: Mesh, first: Any, second: Any) -> None:
    placed = []
    for value, entries in zip(inputs(), (first, second), strict=True):
        even = []
        for length, entry in zip(value.shape, entries, strict=False):
            names = tuple(n for n in (entry if isinstance(entry, tuple) else (entry,)) if n in mesh.axis_names)
            even.append(names if length % np.prod([mesh.shape[n] for n in names], initial=1, dtype=int) == 0 else None)
        placed.append(put(value, mesh, *even))
    f = functools.partial(run, EVERYTHING, program)
    for got, want in zip(jax.jit(f)(*placed), jax.jit(f)(*inputs()), strict=True):
        np.testing.assert_allclose(got, want, **CLOSE)


NAMES = ["a", "b", "c"]


@st.composite
def layouts(draw: st.DrawFn) -> tuple[Layout, Layout]:
    def one() -> Layout:
        names = draw(st.permutations(NAMES))
        places = [draw(st.integers(0, 3)) for _ in names]
        return tuple(tuple(n for n, p in zip(names, places, strict=True) if p == axis) for axis in range(3))

    return one(), one()


@given(layouts())
def test_steps_lead_from_one_layout_to_the_other(pair: tuple[Layout, Layout]) -> None:
    start, goal = pair
    now = [list(names) for names in start]
    for step in steps_between(start, goal):
        if step.kind == "cut":
            assert not any(step.name in names for names in now)
            now[step.axis].append(step.name)
        else:
            assert now[step.axis].pop() == step.name, "only the fastest can go"
            if step.kind == "exchange":
                now[step.to].append(step.name)
    assert tuple(map(tuple, now)) == goal
    assert bytes_of_steps(steps_between(start, start), 1000, dict.fromkeys(NAMES, 2)) == 0


# -- explicit axes --------------------------------------------------------------------------------------------


def test_types_hold_in_the_program_of_one_device() -> None:
    mesh = Mesh(DEVICES.reshape(2, 4), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
    with jax.set_mesh(mesh):
        x, w1, w2 = (jax.device_put(random(16, 16), P(*s)) for s in (("x", None), (None, "y"), ("y", None)))

        def tensor_parallel(x: Any, w1: Any, w2: Any) -> Any:
            return jnp.matmul(jax.nn.relu(x @ w1), w2, out_sharding=P("x", None))

        got, parts = compiled(tensor_parallel, x, w1, w2)
        close(got, np.maximum(random(16, 16) @ random(16, 16), 0) @ random(16, 16))
        assert str(jax.typeof(got)) == "float32[16@x,16]" and got.sharding.spec == P("x", None)
        assert kinds(parts) == [("all_reduce", ("y",), 2 * (8 * 16 * 4 * 3 // 4))]
        scattered, parts = compiled(
            lambda *a: jax.reshard(jnp.matmul(a[0], a[1], out_sharding=P("x", "y")), P("x", "y")), x @ w1, w2
        )
        close(scattered, random(16, 16) @ random(16, 16) @ random(16, 16))
        assert [c.kind for c in parts.communications] == ["reduce_scatter"]
