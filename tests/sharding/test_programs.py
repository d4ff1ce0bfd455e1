"""Programs as users write them, with what JAX 0.12 prints; each in a process of its own with eight devices."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

TRAINING = """
import jaxlite as jax
import jaxlite.numpy as jnp
from jaxlite.sharding import AxisType, PartitionSpec as P

mesh = jax.make_mesh((8,), ("batch",), axis_types=(AxisType.Explicit,))
jax.sharding.set_mesh(mesh)
keys = jax.random.split(jax.random.key(5), 3)
weights = [(jax.random.normal(keys[0], (6, 24)), jnp.zeros(24)), (jax.random.normal(keys[1], (24, 2)), jnp.zeros(2))]
data = jax.random.normal(keys[2], (40, 6))
labels = data[:, :2] ** 2

def loss(weights, data, labels):
    (w1, b1), (w2, b2) = weights
    return jnp.mean((jnp.tanh(data @ w1 + b1) @ w2 + b2 - labels) ** 2)

alone = jax.grad(loss)(weights, data, labels)
data, labels = jax.device_put((data, labels), P("batch"))
print(data.sharding.spec, len(data.addressable_shards), data.addressable_shards[0].data.shape)
slopes = jax.jit(jax.grad(loss))(weights, data, labels)
print(jax.typeof(data), jax.typeof(slopes[0][0]), slopes[0][0].sharding.spec)
print(all(float(abs(a - b).max()) < 1e-5 for a, b in zip(jax.tree.leaves(alone), jax.tree.leaves(slopes))))
"""
PRINTED = """\
P('batch',) 8 (5, 6)
float32[40@batch,6] float32[6,24] P(None, None)
True
"""

GRADIENT = """
import numpy as np
import jaxlite as jax, jaxlite.numpy as jnp
from jaxlite.sharding import Mesh, NamedSharding, PartitionSpec as P
mesh = Mesh(np.array(jax.devices()[:2]), ("d",))
sharding = NamedSharding(mesh, P("d"))
x = jax.device_put(jnp.arange(8.0), sharding)
for grad in (jax.grad(lambda x: jnp.sum(x**2)), jax.jit(jax.grad(lambda x: jnp.sum(x**2)))):
    g = grad(x)
    print(g.sharding.is_equivalent_to(sharding, 1), g.tolist())
"""


@pytest.mark.parametrize(
    ("script", "printed"),
    [(TRAINING, PRINTED), (GRADIENT, "True [0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0]\n" * 2)],
    ids=["training", "the gradient lies as its argument does"],
)
@pytest.mark.parametrize("variable", ["JAX_NUM_CPU_DEVICES=8", "XLA_FLAGS=--xla_force_host_platform_device_count=8"])
def test_prints_what_jax_prints(script: str, printed: str, variable: str) -> None:
    name, value = variable.split("=", 1)
    environment = {k: v for k, v in os.environ.items() if k not in ("JAX_NUM_CPU_DEVICES", "XLA_FLAGS")}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, env={**environment, name: value}
    )
    assert (done.stdout, done.stderr) == (printed, "")
