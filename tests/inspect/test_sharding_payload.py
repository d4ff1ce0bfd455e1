"""The sharding payload: numbers that follow from shapes, and the text of a board."""

from __future__ import annotations

import json

import numpy as np
import pytest

import jaxlite as jax
import jaxlite.numpy as jnp
from jaxlite.core.device import device_of
from jaxlite.inspect import sharding_payload, sharding_text
from jaxlite.sharding import Mesh, NamedSharding, PartitionSpec as P

MESH = Mesh(np.array([device_of(n) for n in range(4)], object), "d")


def loss(weights, batch):
    return jnp.mean((batch @ weights) ** 2)


def report():
    batch = jax.device_put(np.ones((8, 3), np.float32), NamedSharding(MESH, P("d")))
    return jax.jit(jax.grad(loss)).lower(np.ones((3, 2), np.float32), batch).compile().report


def test_the_payload_of_a_gradient():
    payload = sharding_payload(report(), measure=True)
    assert json.loads(json.dumps(payload)) == payload
    assert payload["mesh"] == [{"name": "d", "size": 4, "type": "Auto"}]
    weights, batch = payload["arguments"]
    assert (weights["name"], weights["type"], weights["spec"], weights["local"]) == (
        "weights", "f32[3,2]", "P(None, None)", "f32[3,2]",
    )  # fmt: skip
    assert (batch["spec"], batch["local"], batch["bytes"]["value"]) == ("P('d', None)", "f32[2,3]", 2 * 3 * 4)
    assert batch["picture"].count("CPU") == 4
    (collective,) = payload["communications"]
    assert (collective["kind"], collective["axes"]) == ("all_reduce", ["d"])
    assert collective["bytes"]["value"] == 2 * (3 * 2 * 4 * 3 // 4)  # twice three quarters of the gradient
    assert collective["seconds"]["value"] > 0 and collective["seconds"]["basis"] == "measured"
    summed = [o for o in payload["operations"] if any("unreduced" in r["spec"] for r in o["results"])]
    assert summed[0]["name"] == "dot_general"
    # arguments, and at least what the product of the batch's part takes
    assert payload["held"]["value"] >= 24 + 24 + 2 * 2 * 4


def test_the_text():
    text = sharding_text(sharding_payload(report()))
    assert "over the mesh d: 4 (auto)" in text
    assert "in 1 collective." in text and "all_reduce over d: 36 B (predicted)" in text
    assert "dot_general: P('d', None), P(None, None) -> P('d', None)  # test_sharding_payload.py, line" in text


def test_a_program_on_one_device_has_no_board():
    compiled = jax.jit(jnp.sin).lower(1.0).compile()
    with pytest.raises(ValueError, match="runs on one device: lay an argument out over a mesh first"):
        sharding_payload(compiled.report)
