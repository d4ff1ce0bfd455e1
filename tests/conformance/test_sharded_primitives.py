"""Every registered primitive over meshes: values and derivatives are those of arrays in one piece.

Each operand's axes are split over mesh axes, alone and together; batches of eight are split over 1, 2, 4 and 8 devices.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import jaxlite as jax
from jaxlite.core.array import Array
from jaxlite.core.config import contract_fma
from jaxlite.core.device import device_of
from jaxlite.core.primitive import Primitive, Sample
from jaxlite.sharding import Mesh, NamedSharding, PartitionSpec as P
from tests.conformance.test_every_primitive import (
    ALL_DTYPES,
    NO_DERIVATIVE,
    NUMPY_ULPS,
    PRIMITIVES,
    bind,
    draw,
    fits,
    float_cases,
    function_of_floats,
    operands,
    raw,
    sum_of_squares,
    ulps_apart,
)

EXAMPLES = 8


@pytest.fixture(autouse=True)
def _wide_and_uncontracted() -> Iterator[None]:
    with jax.enable_x64(True), contract_fma(False):
        yield


def preferred(primitive: Primitive, sample: Sample) -> str | None:
    """One dtype that the primitive takes: floats where it does."""
    if sample.dtypes is not None:
        return None
    names = [n for kind in "fiubK" if kind in primitive.accepts for n in ALL_DTYPES[kind]]
    return next(n for n in ("float32", "int32", *names) if n in names)


CASES = [
    pytest.param(p, s, id=f"{p.name}-{number}")
    for p in PRIMITIVES
    for number, s in enumerate(p.samples)
    if any(s.shapes)
]


def mesh_of(*sizes: int) -> Mesh:
    """A mesh of these lengths, its axes called x, y, ..."""
    devices = np.array([device_of(n) for n in range(int(np.prod(sizes)))], object)
    return Mesh(devices.reshape(sizes), tuple("xyz"[: len(sizes)]))


def divisor(length: int) -> int:
    """The least number of parts above one that come out even; 1 where there is none."""
    return next((k for k in range(2, length + 1) if length % k == 0), 1)


def placements(shapes: Sequence[tuple[int, ...]]) -> Iterator[list[P]]:
    """Specs for all operands and the sizes of x and y: each axis alone, then all of a length together."""
    axes = [(i, d, n) for i, shape in enumerate(shapes) for d, n in enumerate(shape) if n > 1]
    for i, d, _ in axes:
        yield [P(*[None] * d, "x") if j == i else P() for j in range(len(shapes))]
    for (i, d, _), (j, e, _) in itertools.combinations(axes, 2):
        specs: list[list[Any]] = [[None] * len(shape) for shape in shapes]
        specs[i][d], specs[j][e] = "x", "y" if i == j else "x"
        yield [P(*s) for s in specs]


def put(xs: Sequence[Array], specs: Sequence[P]) -> list[Array] | None:
    """The operands laid out over a mesh whose axes divide what they split; None where no mesh does."""
    lengths: dict[str, int] = {}
    for x, spec in zip(xs, specs, strict=True):
        for d, name in enumerate(spec):
            if name is not None:
                lengths[name] = int(np.gcd(lengths.get(name, 0), x.shape[d]))
    mesh = mesh_of(*[divisor(lengths.get(name, 1)) for name in "xy"])
    if mesh.size == 1:
        return None
    return [jax.device_put(x, NamedSharding(mesh, s)) for x, s in zip(xs, specs, strict=True)]


def check(primitive: Primitive, got: Sequence[Any], want: Sequence[Any]) -> None:
    for g, w in zip(got, want, strict=True):
        assert g.dtype == w.dtype and g.shape == w.shape
        assert ulps_apart(g, w) <= NUMPY_ULPS


@pytest.mark.parametrize("primitive, sample", CASES)
def test_split_operands_give_the_same(primitive: Primitive, sample: Sample) -> None:
    xs = operands(primitive, sample, preferred(primitive, sample))
    assert fits(primitive, sample, xs)
    function = bind(primitive, sample)
    want = jax.jit(function)(*xs)
    for specs in placements(sample.shapes):
        placed = put(xs, specs)
        if placed is None:
            continue
        compiled = jax.jit(bind(primitive, sample))(*placed)
        check(primitive, compiled, want)
        check(primitive, function(*placed), want)
        for out in compiled:
            for shard in out.addressable_shards:
                np.testing.assert_array_equal(raw(shard.data), raw(out)[shard.index])


@pytest.mark.parametrize("devices", [1, 2, 4, 8])
@pytest.mark.parametrize("primitive, sample", CASES)
def test_batches_over_devices_need_no_communication(primitive: Primitive, sample: Sample, devices: int) -> None:
    name = preferred(primitive, sample)
    chosen = sample.dtypes or [str(name)] * len(sample.shapes)
    xs = [draw((EXAMPLES, *s), n, sample, seed) for seed, (s, n) in enumerate(zip(sample.shapes, chosen, strict=True))]
    want = jax.jit(jax.vmap(bind(primitive, sample)))(*xs)
    placed = [jax.device_put(x, NamedSharding(mesh_of(devices), P("x"))) for x in xs]
    compiled = jax.jit(jax.vmap(bind(primitive, sample))).lower(*placed).compile()
    check(primitive, compiled(*placed), want)
    parts = compiled.report.partition
    assert parts is not None and not parts.communications, str(parts)


FLOATS = float_cases({*NO_DERIVATIVE})


@pytest.mark.parametrize("primitive, sample, name", FLOATS)
def test_derivatives_of_split_operands(primitive: Primitive, sample: Sample, name: str | None) -> None:
    f, floats = function_of_floats(primitive, sample, name)
    gradient = jax.jit(jax.grad(lambda xs: sum_of_squares(f(*xs))))
    want = gradient(tuple(floats))
    for specs in itertools.islice(placements([x.shape for x in floats]), 4):
        placed = put(floats, specs)
        if placed is not None:
            for g, w in zip(gradient(tuple(placed)), want, strict=True):
                # sums of at most 60 terms of order one in another order: 1e-12 is 100 times what they can lose
                np.testing.assert_allclose(raw(g), raw(w), rtol=1e-12, atol=1e-12)
