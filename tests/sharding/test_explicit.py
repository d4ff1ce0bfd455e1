"""Explicit axes: types say how values lie.  Types written out are what JAX 0.12 gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import jaxlite as jax
import jaxlite.numpy as jnp
from jaxlite import lax
from jaxlite.core.device import device_of
from jaxlite.core.errors import ShardingTypeError
from jaxlite.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P, SingleDeviceSharding

DEVICES = np.array([device_of(n) for n in range(8)], object)
MESH = Mesh(DEVICES.reshape(2, 4), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
AUTO = Mesh(DEVICES[:2], "d")
SQUARE = np.arange(64, dtype=np.float32).reshape(8, 8) / 10


def put(spec: Any, value: Any = SQUARE) -> Any:
    return jax.device_put(value, NamedSharding(MESH, spec))


A, B, C, D = put(P("x", "y")), put(P("x", None)), put(P(None, "y")), put(P("y", None))
R = jnp.asarray(SQUARE)
V = put(P("y"), np.arange(8, dtype=np.float32))
CUBE = put(P("x", None, "y"), np.arange(512, dtype=np.float32).reshape(8, 8, 8))
AT = np.array([1, 2, 3, 0])


@pytest.fixture(autouse=True)
def mesh() -> Iterator[None]:
    with jax.set_mesh(MESH):
        yield


TYPES: dict[str, tuple[Callable[[], Any], str]] = {
    "alike": (lambda: A + B, "8@x,8@y"),
    "merged": (lambda: B + C, "8@x,8@y"),
    "with a whole one": (lambda: A + R, "8@x,8@y"),
    "broadcast": (lambda: A + V, "8@x,8@y"),
    "with a number": (lambda: A * 2.0, "8@x,8@y"),
    "sum over rows": (lambda: A.sum(0), "8@y"),
    "sum": (lambda: A.sum(), ""),
    "max": (lambda: A.max(1), "8@x"),
    "argmax": (lambda: jnp.argmax(A, 1), "8@x"),
    "transpose": (lambda: A.T, "8@y,8@x"),
    "ravel of both": (lambda: A.reshape(-1), "64@(x,y)"),
    "ravel of rows": (lambda: B.reshape(-1), "64@x"),
    "split behind": (lambda: B.reshape(8, 2, 4), "8@x,2,4"),
    "split in front": (lambda: B.reshape(2, 4, 8), "2@x,4,8"),
    "split of four": (lambda: D.reshape(4, 2, 8), "4@y,2,8"),
    "joined": (lambda: CUBE.reshape(64, 8), "64@x,8@y"),
    "new axes": (lambda: A[:, None, :, None], "8@x,1,8@y,1"),
    "rows times whole": (lambda: B @ R, "8@x,8"),
    "whole times columns": (lambda: R @ C, "8,8@y"),
    "rows times columns": (lambda: B @ C, "8@x,8@y"),
    "one contracted": (lambda: C @ R, "8,8"),
    "other contracted": (lambda: R @ B, "8,8"),
    "batched": (lambda: jnp.einsum("bij,bjk->bik", CUBE, CUBE), "8@x,8,8@y"),
    "contracted, asked": (lambda: jnp.matmul(C, D, out_sharding=P()), "8,8"),
    "contracted, asked in parts": (lambda: jnp.matmul(C, D, out_sharding=P("x", None)), "8@x,8"),
    "column": (lambda: B[:, 0], "8@x"),
    "columns": (lambda: B[:, :3], "8@x,3"),
    "columns by index": (lambda: B[:, AT], "8@x,4"),
    "dynamic columns": (lambda: lax.dynamic_slice(B, (0, 1), (8, 3)), "8@x,3"),
    "dynamic rows": (lambda: lax.dynamic_slice(B, (1, 0), (4, 8)), "4@x,8"),
    "concatenated": (lambda: jnp.concatenate([B, B], 0), "16@x,8"),
    "stacked": (lambda: jnp.stack([B, B]), "2,8@x,8"),
    "flipped": (lambda: B[::-1], "8@x,8"),
    "padded": (lambda: jnp.pad(B, ((1, 1), (0, 0))), "10@x,8"),
    "rolled": (lambda: jnp.roll(B, 1, 1), "8@x,8"),
    "running": (lambda: jnp.cumsum(B, 1), "8@x,8"),
    "sorted": (lambda: jnp.sort(B, 1), "8@x,8"),
    "column set": (lambda: B.at[:, 1].set(1.0), "8@x,8"),
    "where": (lambda: jnp.where(A > 1, A, 0), "8@x,8@y"),
    "broadcast_to": (lambda: jnp.broadcast_to(V, (3, 8)), "3,8@y"),
    "softmax": (lambda: jax.nn.softmax(A, -1), "8@x,8@y"),
    "vmap": (lambda: jax.vmap(lambda r: r * 2)(A), "8@x,8@y"),
    "vmap of a sum": (lambda: jax.vmap(lambda r: r.sum())(A), "8@x"),
    "vmap over columns": (lambda: jax.vmap(lambda r: r * 2, in_axes=1, out_axes=1)(A), "8@x,8@y"),
    "scan": (lambda: lax.scan(lambda c, x: (c + x.sum(), x * 2), 0.0, C)[1], "8,8@y"),
    "loop": (lambda: lax.fori_loop(0, 3, lambda i, c: c * 2, B), "8@x,8"),
    "cond": (lambda: lax.cond(True, lambda: B, lambda: B * 2), "8@x,8"),
    "arange": (lambda: jnp.arange(8.0, out_sharding=P("x")), "8@x"),
    "zeros": (lambda: jnp.zeros((8, 8), out_sharding=P("x", "y")), "8@x,8@y"),
    "normal": (lambda: jax.random.normal(jax.random.key(0), (8, 8), out_sharding=P("x")), "8@x,8"),
    "grad": (lambda: jax.grad(lambda a: (a * a).sum())(A), "8@x,8@y"),
    "grad of a factor": (lambda: jax.grad(lambda w: ((B @ w) ** 2).sum())(R), "8,8"),
    "grad of a factor in parts": (lambda: jax.grad(lambda w: ((w @ R) ** 2).sum())(C), "8,8@y"),
    "reshard": (lambda: jax.reshard(D, P("x", "y")), "8@x,8@y"),
    "batched factorisation": (lambda: jnp.linalg.cholesky(jnp.eye(8) + 0 * put(P("x"), np.ones((8, 8, 8)))), "8@x,8,8"),
}


@pytest.mark.parametrize(("function", "dims"), TYPES.values(), ids=list(TYPES))
def test_types_and_values(function: Callable[[], Any], dims: str) -> None:
    eager, compiled = function(), jax.jit(function)()
    for value in (eager, compiled):
        assert str(jax.typeof(value)) == f"{value.dtype}[{dims}]"
        assert isinstance(value.sharding, NamedSharding) and value.sharding.mesh == MESH
    np.testing.assert_array_equal(np.asarray(eager).shape, np.asarray(compiled).shape)
    # sums over devices come in another order: a few ulps
    np.testing.assert_allclose(eager, compiled, rtol=3e-6, atol=1e-5)


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "two ways": (
        lambda: A + D,
        r"add got incompatible shardings for broadcasting: \('x', 'y'\), \('y', None\).*reshard",
    ),
    "contraction": (lambda: C @ D, "(?s)Contracting dimensions are sharded and it is ambiguous.*out_sharding=P()"),
    "contraction of others": (lambda: C @ B, "Contracting dimensions are sharded"),
    "ravel of columns": (lambda: C.reshape(-1), r"This reshape is not supported.*float32\[8,8@y\].*\(64,\)"),
    "split unevenly": (lambda: D.reshape(2, 4, 8), "This reshape is not supported"),
    "rows by index": (lambda: B[AT], r"Use `.at\[...\].get\(out_sharding=\)`"),
    "add to rows": (lambda: B.at[AT].add(1.0), r"Use `.at\[...\].set/add/mul/...\(out_sharding=\)`"),
    "running along": (lambda: jnp.cumsum(B, 0), "Input should be unsharded over the axis being reduced"),
    "sort along": (lambda: jnp.sort(B, 0), "must be unsharded over the sorting dimension"),
    "one axis twice": (lambda: B + B.T, r"illegally sharded result: f32\[8@x,8@x\]"),
    "factorisation": (lambda: lax.linalg.cholesky(B, symmetrize_input=False), "works on whole matrices"),
}


@pytest.mark.parametrize(("function", "message"), REFUSED.values(), ids=list(REFUSED))
def test_what_is_ambiguous_is_refused_with_the_line(function: Callable[[], Any], message: str) -> None:
    for call in (function, jax.jit(function)):
        with pytest.raises(ShardingTypeError, match=f"(?s){message}") as refusal:
            call()
        assert f"test_explicit.py:{function.__code__.co_firstlineno}" in str(refusal.value)


def test_carries_and_branches_keep_their_types() -> None:
    with pytest.raises(TypeError, match=r"float32\[8,8\] in .* but float32\[8@x,8\]"):
        lax.cond(True, lambda: B, lambda: R)
    with pytest.raises(TypeError, match="carry"):
        lax.scan(lambda c, _: (c + B, None), R, None, length=2)


# -- arrays -----------------------------------------------------------------------------------------------


def test_an_array_knows_its_parts() -> None:
    assert A.sharding == NamedSharding(MESH, P("x", "y")) and not A.is_fully_replicated
    shards = A.addressable_shards
    assert [s.device.id for s in shards] == list(range(8)) and {s.replica_id for s in shards} == {0}
    for shard in shards:
        np.testing.assert_array_equal(np.asarray(shard.data), SQUARE[shard.index])
        assert shard.data.shape == (4, 2)
    assert [s.replica_id for s in B.addressable_shards] == [0, 1, 2, 3] * 2
    np.testing.assert_array_equal(A.addressable_data(7), SQUARE[4:, 6:])
    assert isinstance(R.sharding, SingleDeviceSharding) and R.is_fully_replicated
    assert len(R.addressable_shards) == 1
    assert put(P()).is_fully_replicated and len(put(P()).addressable_shards) == 8
    assert put(P("x")).sharding.spec == P("x")


def test_bad_placements_name_path_shape_spec_and_mesh() -> None:
    tree = {"w": [np.ones((3, 4), np.float32)]}
    with pytest.raises(ValueError, match=r"x\['w'\]\[0\], f32\[3,4\], to P\('x',\) on Mesh\('x': 2, 'y': 4.*axis 0"):
        jax.device_put(tree, P("x"))
    with pytest.raises(ValueError, match=r"x\['w'\]\[0\].*3 entries, more than the 2 axes"):
        jax.device_put(tree, P(None, None, "x"))
    with pytest.raises(ValueError, match=r"z of .* is not found in mesh"):
        jax.device_put(tree, P("z"))
    other = Mesh(DEVICES[:2], "z", axis_types=AxisType.Explicit)
    moved = jax.device_put(SQUARE, NamedSharding(other, P("z")))
    with pytest.raises(ValueError, match=r"(?s)incompatible devices: add.*Mesh"):
        A + moved
    with jax.set_mesh(None), pytest.raises(ValueError, match=r"without a mesh: set one by jax.set_mesh"):
        jax.device_put(tree, P("x"))
    with pytest.raises(ValueError, match=r"zeros with the sharding P\('y',\)"):
        jnp.zeros(6, out_sharding=P("y"))


def test_set_mesh_as_function_and_block() -> None:
    assert jax.sharding.get_mesh() == MESH and jax.sharding.get_abstract_mesh() == MESH.abstract_mesh
    with jax.set_mesh(AUTO):
        assert jax.sharding.get_mesh() == AUTO
        jax.set_mesh(MESH)
        assert jax.sharding.get_mesh() == MESH
    assert jax.sharding.get_mesh() == MESH
    with jax.sharding.use_abstract_mesh(AUTO.abstract_mesh):
        assert jax.sharding.get_abstract_mesh() == AUTO.abstract_mesh
    with pytest.raises(ValueError, match=r"outside of `jax.jit`"):
        jax.jit(lambda: jax.set_mesh(AUTO))()


def test_arrays_made_of_parts() -> None:
    sharding = NamedSharding(MESH, P("x", "y"))
    x = jax.make_array_from_callback((8, 8), sharding, lambda index: SQUARE[index])
    np.testing.assert_array_equal(x, SQUARE)
    parts = [s.data for s in x.addressable_shards]
    again = jax.make_array_from_single_device_arrays((8, 8), sharding, parts)
    np.testing.assert_array_equal(again, SQUARE)
    whole = jax.make_array_from_process_local_data(sharding, SQUARE)
    assert again.sharding == x.sharding == whole.sharding == sharding
    with pytest.raises(ValueError, match="gave a part of shape"):
        jax.make_array_from_callback((8, 8), sharding, lambda index: SQUARE)


# -- automatic axes ----------------------------------------------------------------------------------------


def test_automatic_axes_are_in_no_type_and_arrays_know_them() -> None:
    x = jax.device_put(SQUARE, NamedSharding(AUTO, P("d")))
    assert str(jax.typeof(x)) == "float32[8,8]"
    assert x.sharding.spec == P("d")
    gradient = jax.grad(lambda v: jnp.sum(v**2))(x)
    assert gradient.sharding.is_equivalent_to(x.sharding, 2)
    np.testing.assert_array_equal(gradient, 2 * SQUARE)
    assert (x @ x.T).sharding.spec == P("d", None)


def test_loops_and_wishes_outside_of_jit() -> None:
    x = jax.device_put(SQUARE, NamedSharding(AUTO, P("d")))
    np.testing.assert_array_equal(lax.fori_loop(0, 2, lambda _, c: c * 2, x), 4 * SQUARE)
    carry, stacked = lax.scan(lambda c, r: (c + 1, r * 2), x, x)
    np.testing.assert_array_equal(carry, SQUARE + 8)
    np.testing.assert_array_equal(stacked, 2 * SQUARE)
    np.testing.assert_allclose(jax.jvp(jnp.sin, (x,), (x * 0 + 1,))[1], np.cos(SQUARE), rtol=1e-6)
    assert lax.with_sharding_constraint(SQUARE, NamedSharding(AUTO, P("d"))).sharding.spec == P("d")


def test_a_constraint_checks_explicit_axes() -> None:
    sharding = NamedSharding(MESH, P("x", None))
    assert str(jax.typeof(jax.jit(lambda v: lax.with_sharding_constraint(v, sharding))(B))) == "float32[8@x,8]"
    with pytest.raises(AssertionError, match="acts as an assert"):
        lax.with_sharding_constraint(C, sharding)
