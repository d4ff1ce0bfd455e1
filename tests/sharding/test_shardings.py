"""Meshes, specs and named shardings as data: what they print, what is equal, and which device holds which part.

The texts and the equalities are those of JAX 0.12.
"""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import jaxlite as jax
from jaxlite.core.device import device_of
from jaxlite.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, PartitionSpec as P, SingleDeviceSharding

DEVICES = np.array([device_of(n) for n in range(8)], object)
MESH = Mesh(DEVICES.reshape(4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
MESH_TEXT = "Mesh('x': 4, 'y': 2, axis_types=(Explicit, Explicit))"


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (P(), "P()"),
        (P("a"), "P('a',)"),
        (P(None), "P(None,)"),
        (P("a", None, ("b", "c")), "P('a', None, ('b', 'c'))"),
        (P(["a", "b"]), "P(('a', 'b'),)"),
        (P(("a",)), "P('a',)"),
        (P((), "a"), "P(None, 'a')"),
        (P(P.UNCONSTRAINED, "a"), "P(UNCONSTRAINED, 'a')"),
        (P("a", unreduced={"b"}), "P('a', unreduced={'b'}, unreduced_kind=sum)"),
        (P("a", reduced={"b"}), "P('a', reduced={'b'})"),
        (P("a") + P("b"), "P('a', 'b')"),
        (P("a") + tuple("b"), "P('a', 'b')"),
        (tuple("b") + P("a"), "P('b', 'a')"),
        (P("a", "b").update(partitions=("c",)), "P('c',)"),
    ],
)
def test_spec_text(spec, text):
    assert repr(spec) == text
    for again in (copy.deepcopy(spec), pickle.loads(pickle.dumps(spec))):
        assert again == spec and hash(again) == hash(spec) and repr(again) == text


def test_spec_equality():
    assert P("a") == P(("a",)) and hash(P("a")) == hash(P(("a",)))
    assert P("a") != P("a", None)
    assert P("a") != ("a",) and P("a") != "a"
    assert P("a", unreduced={"b"}) != P("a")
    assert jax.P is P


def test_spec_as_a_sequence():
    spec = P(None, "a", ("b", "c"))
    assert (len(spec), spec[1], tuple(spec), spec.index("a"), spec.count(None)) == (
        3,
        "a",
        (None, "a", ("b", "c")),
        1,
        1,
    )
    assert spec.axes == ("a", "b", "c")


def test_spec_refusals():
    with pytest.raises(TypeError, match=r"write unreduced=\{'x'\}"):
        P(unreduced="x")
    with pytest.raises(ValueError, match="unreduced and reduced share"):
        P(unreduced={"x"}, reduced={"x"})


def test_mesh_text_and_fields():
    assert str(MESH) == MESH_TEXT
    assert repr(MESH) == "Mesh(axis_sizes=(4, 2), axis_names=('x', 'y'), axis_types=(Explicit, Explicit))"
    assert dict(MESH.shape) == {"x": 4, "y": 2} and MESH.size == 8 and MESH.shape_tuple == (("x", 4), ("y", 2))
    assert MESH.device_ids.tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert (MESH.explicit_axes, MESH.auto_axes, MESH.are_all_axes_explicit, MESH.empty) == (("x", "y"), (), True, False)
    assert repr(MESH.abstract_mesh) == (
        "AbstractMesh('x': 4, 'y': 2, axis_types=(Explicit, Explicit), device_kind=cpu, num_cores=None, platform=cpu)"
    )
    assert repr(AbstractMesh((2,), "a")) == "AbstractMesh('a': 2, axis_types=(Explicit,))"
    assert repr(Mesh(DEVICES, "a")) == "Mesh(axis_sizes=(8,), axis_names=('a',), axis_types=(Auto,))"
    assert list(AxisType) == [AxisType.Auto, AxisType.Explicit, AxisType.Manual]
    assert repr(list(AxisType)) == "[Auto, Explicit, Manual]"


def test_mesh_equality():
    same = Mesh(DEVICES.reshape(4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
    assert same == MESH and hash(same) == hash(MESH) and pickle.loads(pickle.dumps(MESH)) == MESH
    assert MESH != Mesh(DEVICES.reshape(4, 2), ("x", "y"))
    assert MESH != Mesh(DEVICES[::-1].reshape(4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
    assert MESH.abstract_mesh == AbstractMesh((4, 2), ("x", "y"))
    changed = MESH.abstract_mesh.update_axis_types({"y": AxisType.Manual})
    assert changed.manual_axes == ("y",) and changed.explicit_axes == ("x",)


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: Mesh(DEVICES, ("a", "b")), ValueError, r"devices.ndim == 1 and len\(axis_names\) == 2"),
        (lambda: Mesh(DEVICES.reshape(2, 4), ("a", None)), ValueError, "cannot be None"),
        (lambda: Mesh(DEVICES.reshape(2, 4), ("a", "a")), ValueError, "names must differ"),
        (
            lambda: Mesh(DEVICES, "a", axis_types=(AxisType.Auto,) * 2),
            ValueError,
            "should match the number of axis_types",
        ),
        (lambda: Mesh(DEVICES, "a", axis_types="x"), TypeError, "must be of type"),
        (lambda: AbstractMesh((2, 2), ("a",)), ValueError, "a length for each axis name"),
        (lambda: AbstractMesh((2,), "a").update_axis_types({"b": AxisType.Auto}), ValueError, "'b' is no axis"),
        (lambda: jax.make_mesh((16,), ("a",)), ValueError, "set jax_num_cpu_devices to 16"),
        (lambda: jax.make_mesh((1, 1), ("a",)), ValueError, "devices.ndim == 2"),
        (lambda: jax.make_mesh((0,), ("a",)), ValueError, "lengths from 1"),
        (lambda: NamedSharding(MESH, P("z")), ValueError, r"Resource axis: z of P\('z',\) is not found in mesh"),
        (lambda: NamedSharding(MESH, P("x", "x")), ValueError, "duplicate entries for `x`"),
        (lambda: NamedSharding(MESH, P("x", unreduced={"x"})), ValueError, "duplicate entries for `x`"),
        (lambda: NamedSharding(MESH, ("x",)), TypeError, r"write P\('x', None\)"),
        (lambda: NamedSharding(3, P()), TypeError, "takes a mesh"),
        (
            lambda: NamedSharding(MESH, P("x")).shard_shape((7,)),
            ValueError,
            "partitioned 4 times, but the dimension size is 7",
        ),
        (lambda: NamedSharding(MESH, P("x", "y")).shard_shape((8,)), ValueError, "more than the 1 axes"),
        (lambda: NamedSharding(MESH.abstract_mesh, P()).device_set, ValueError, "its mesh is abstract"),
    ],
)
def test_refusals(make, error, text):
    with pytest.raises(error, match=text):
        make()


def test_named_sharding():
    sharding = NamedSharding(MESH, P("x", "y"))
    assert repr(sharding) == f"NamedSharding(mesh={MESH_TEXT}, spec=P('x', 'y'), memory_kind=device)"
    assert sharding.shard_shape((8, 8)) == (2, 4)
    indices = sharding.devices_indices_map((8, 4))
    assert indices[device_of(0)] == (slice(0, 2), slice(0, 2)) and indices[device_of(7)] == (slice(6, 8), slice(2, 4))
    assert (sharding.num_devices, sharding.is_fully_replicated, sharding.is_fully_addressable) == (8, False, True)
    assert NamedSharding(MESH, P("x")).replicated_axes == {"y"}
    assert sharding.update(spec=P("y")) == NamedSharding(MESH, P("y"))


@pytest.mark.parametrize(
    "spec", [P("x", "y"), P("y", "x"), P(("x", "y")), P(("y", "x")), P(None, "y"), P(), P(None, ("y", "x"))]
)
def test_parts_make_the_whole(spec):
    """Every element lies on as many devices as the mesh axes that do not split it allow."""
    shape = (16, 8)
    sharding = NamedSharding(MESH, spec)
    held = np.zeros(shape, int)
    for device, index in sharding.devices_indices_map(shape).items():
        assert held[index].shape == sharding.shard_shape(shape), device
        held[index] += 1
    assert (held == 8 // np.prod([MESH.shape[name] for name in spec.axes], dtype=int)).all()


def test_several_axes_count_the_first_slowest():
    slow_x = NamedSharding(MESH, P(("x", "y"))).devices_indices_map((8,))
    slow_y = NamedSharding(MESH, P(("y", "x"))).devices_indices_map((8,))
    assert [slow_x[d][0].start for d in DEVICES] == [0, 1, 2, 3, 4, 5, 6, 7]
    assert [slow_y[d][0].start for d in DEVICES] == [0, 4, 1, 5, 2, 6, 3, 7]


def test_equivalence():
    assert NamedSharding(MESH, P("x", "y")).is_equivalent_to(NamedSharding(MESH, P("x", "y", None)), 3)
    assert NamedSharding(MESH, P()) != NamedSharding(MESH, P(None))
    assert NamedSharding(MESH, P()).is_equivalent_to(NamedSharding(MESH, P(None)), 2)
    assert not NamedSharding(MESH, P("x")).is_equivalent_to(NamedSharding(MESH, P("y")), 1)
    assert not NamedSharding(MESH, P("x", "y")).is_equivalent_to(NamedSharding(MESH, P("x")), 1)
    flat = Mesh(DEVICES, "z")
    assert NamedSharding(flat, P("z")).is_equivalent_to(NamedSharding(MESH, P(("x", "y"))), 1)
    one = Mesh(DEVICES[:1], "z")
    assert NamedSharding(one, P("z")).is_equivalent_to(SingleDeviceSharding(DEVICES[0]), 1)


CHILD = """
import jaxlite as jax, numpy as np
print(jax.device_count(), jax.devices()[-1], len(jax.local_devices()))
print(jax.make_mesh((2, 2), ("a", "b")))
print(jax.make_mesh((8,), ("a",), devices=jax.devices()[::-1]).device_ids)
try:
    jax.config.update("jax_num_cpu_devices", 3); jax.devices()
except RuntimeError as error:
    print(error)
"""


@pytest.mark.parametrize("name", ["JAX_NUM_CPU_DEVICES", "XLA_FLAGS"])
def test_virtual_devices(name):
    value = "8" if name == "JAX_NUM_CPU_DEVICES" else "--xla_foo=1 --xla_force_host_platform_device_count=8"
    environ = {k: v for k, v in os.environ.items() if k not in ("JAX_NUM_CPU_DEVICES", "XLA_FLAGS")} | {name: value}
    done = subprocess.run([sys.executable, "-c", CHILD], env=environ, capture_output=True, text=True, check=True)
    first, second, third, fourth = done.stdout.splitlines()
    assert first == "8 TFRT_CPU_7 8"
    assert second == "Mesh('a': 2, 'b': 2, axis_types=(Explicit, Explicit))"
    assert third == "[7 6 5 4 3 2 1 0]"
    assert "was set to 3 after devices were used, of which there are 8" in fourth
