"""``jit`` with shardings, axes of other types for a while, pictures, arrays of devices.  Errors are JAX 0.12's."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import jaxlite as jax
import jaxlite.numpy as jnp
from jaxlite.core.device import device_of
from jaxlite.core.errors import ShardingTypeError
from jaxlite.core.sharding_drawing import drawing
from jaxlite.experimental import mesh_utils
from jaxlite.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P, auto_axes, explicit_axes

DEVICES = np.array([device_of(n) for n in range(8)], object)
LINE = Mesh(DEVICES, "d")
SPLIT, WHOLE = NamedSharding(LINE, P("d")), NamedSharding(LINE, P())
GRID = Mesh(DEVICES.reshape(2, 4), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
X = np.arange(8, dtype=np.float32)


@pytest.fixture
def grid() -> Iterator[Mesh]:
    with jax.set_mesh(GRID):
        yield GRID


def test_arguments_and_results_are_laid_out() -> None:
    f = jax.jit(lambda a, b: (a * 2, b + 1), in_shardings=(SPLIT, None), out_shardings=(None, WHOLE))
    for a in (X, jnp.asarray(X), jax.device_put(X, SPLIT)):
        double, more = f(a, X)
        assert double.sharding.spec == P("d") and more.is_fully_replicated
        assert len(more.addressable_shards) == 8
        np.testing.assert_array_equal(double, 2 * X)
        np.testing.assert_array_equal(more, X + 1)
    outs = {"sum": WHOLE, "a": SPLIT}
    tree = jax.jit(lambda t: {"sum": t["a"].sum(), "a": t["a"]}, in_shardings=SPLIT, out_shardings=outs)
    for _ in range(5):  # the short way too
        out = tree({"a": X})
        assert out["sum"] == 28 and out["a"].sharding.spec == P("d")
    assert f.lower(X, X).compile().report.partition is not None


def test_refusals_of_jit() -> None:
    placed = jax.device_put(X, SPLIT)
    double = lambda a: a * 2
    with pytest.raises(ValueError, match="Sharding passed to jit does not match the sharding on the respective arg"):
        jax.jit(double, in_shardings=WHOLE)(placed)
    with pytest.raises(ValueError, match="does not support kwargs"):
        jax.jit(double, in_shardings=SPLIT)(a=X)
    with pytest.raises(ValueError, match=r"(?s)key path \[0\].*partitioned 8 times, but the dimension size is 7"):
        jax.jit(double, in_shardings=SPLIT)(X[:7])
    with pytest.raises(ValueError, match=r"(?s)key path result .*partitioned 8 times, but the dimension size is 7"):
        jax.jit(lambda a: a[:7], out_shardings=SPLIT)(X)
    with pytest.raises(ValueError, match="tuple of length 1, got one of length 2"):
        jax.jit(double, in_shardings=(SPLIT, SPLIT))(X)
    with pytest.raises(RuntimeError, match="non-empty mesh in context"):
        jax.jit(double, out_shardings=P("d"))(X)
    with pytest.raises(ValueError, match="takes shardings, PartitionSpecs and None, got 3"):
        jax.jit(double, in_shardings=3)


def test_specs_over_the_mesh_in_use(grid: Mesh) -> None:
    out = jax.jit(lambda a: a * 2, in_shardings=P("y"), out_shardings=P("x"))(X)
    assert str(jax.typeof(out)) == "float32[8@x]"
    np.testing.assert_array_equal(out, 2 * X)


def test_automatic_and_explicit_axes_for_a_while(grid: Mesh) -> None:
    a = jax.device_put(np.outer(X, X), P("x", "y"))
    with pytest.raises(ShardingTypeError):
        a @ a.T
    f = auto_axes(lambda v: v @ v.T, out_sharding=P("x", None))
    for function in (f, jax.jit(f)):
        out = function(a)
        assert str(jax.typeof(out)) == "float32[8@x,8]"
        np.testing.assert_allclose(out, np.outer(X, X) @ np.outer(X, X).T)
    with jax.set_mesh(GRID.update(axis_types=(AxisType.Auto,) * 2)):
        seen = []
        b = jax.device_put(np.outer(X, X), P("x", "y"))
        g = explicit_axes(lambda v: (seen.append(str(jax.typeof(v))), v * 2)[1], in_sharding=P("x", None))
        assert str(jax.typeof(g(b))) == "float32[8,8]" and seen == ["float32[8@x,8]"]
        assert g(b).sharding.spec == P("x", None)
    with pytest.raises(ValueError, match="'z' is no axis of the mesh"):
        auto_axes(lambda v: v, axes="z")(a)
    with jax.set_mesh(None), pytest.raises(ValueError, match="auto_axes needs a mesh"):
        auto_axes(lambda v: v)(a)


PICTURES = {
    P("x", "y"): """\
┌─────────┬─────────┬─────────┬─────────┐
│  CPU 0  │  CPU 1  │  CPU 2  │  CPU 3  │
├─────────┼─────────┼─────────┼─────────┤
│  CPU 4  │  CPU 5  │  CPU 6  │  CPU 7  │
└─────────┴─────────┴─────────┴─────────┘""",
    P(None, "y"): """\
┌─────────┬─────────┬─────────┬─────────┐
│ CPU 0,4 │ CPU 1,5 │ CPU 2,6 │ CPU 3,7 │
└─────────┴─────────┴─────────┴─────────┘""",
    P("x"): """\
┌─────────────┐
│ CPU 0,1,2,3 │
├─────────────┤
│ CPU 4,5,6,7 │
└─────────────┘""",
}


@pytest.mark.parametrize("spec", PICTURES)
def test_pictures(spec: P, capsys: pytest.CaptureFixture[str]) -> None:
    jax.debug.visualize_array_sharding(jax.device_put(np.ones((8, 8)), NamedSharding(GRID, spec)))
    assert capsys.readouterr().out == PICTURES[spec] + "\n"


def test_what_has_no_picture() -> None:
    cube = Mesh(DEVICES.reshape(2, 2, 2), ("x", "y", "z"))
    with pytest.raises(ValueError, match="splits 3 of those"):
        drawing((4, 4, 4), NamedSharding(cube, P("x", "y", "z")))
    assert drawing((4, 4, 4), NamedSharding(cube, P(None, "y", "z"))).count("CPU") == 4
    assert "CPU 0,1,2,3,4,5,6,7" in drawing((), NamedSharding(cube, P()))
    with pytest.raises(ValueError, match=r"float32\[8\] does not say how it lies"):
        jax.jit(lambda v: jax.debug.inspect_array_sharding(v, callback=print))(X)
    seen = []
    jax.debug.inspect_array_sharding(jax.device_put(X, SPLIT), callback=seen.append)
    assert seen == [SPLIT]


def test_arrays_of_devices() -> None:
    assert mesh_utils.create_device_mesh((2, 4), DEVICES).tolist() == DEVICES.reshape(2, 4).tolist()
    assert mesh_utils.create_hybrid_device_mesh((2, 2), (1, 1), DEVICES[:4]).shape == (2, 2)
    with pytest.raises(ValueError, match="Number of devices 8 must equal the product"):
        mesh_utils.create_device_mesh((3, 2), DEVICES)
    with pytest.raises(ValueError, match="Number of slices 1 must equal the product"):
        mesh_utils.create_hybrid_device_mesh((2, 2), (2, 1), DEVICES)
    assert jax.process_indices() == [0]
