"""Programs over eight virtual devices, timed in jaxlite or JAX: the table in docs/sharding.md.

    python benchmarks/sharding.py MODULE [ROUNDS]          one module, here and now
    python benchmarks/sharding.py --against PYTHON [TIMES]  jaxlite here and JAX by another interpreter, in turns

Prints the median milliseconds of a warm call of each program; the second form also the ratio of each pair of runs.
"""

from __future__ import annotations

import importlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

DEVICES = 8
SECONDS = 1.0  # that each program is run for


def programs(jax: Any) -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    """Jitted functions and their arguments, laid out over the devices."""
    jnp, P = jax.numpy, jax.sharding.PartitionSpec
    named = lambda mesh, *spec: jax.sharding.NamedSharding(mesh, P(*spec))
    auto = (jax.sharding.AxisType.Auto,)
    line = jax.make_mesh((DEVICES,), ("d",), axis_types=auto)

    def random(number: int, *shape: int) -> Any:
        return jax.random.normal(jax.random.key(number), shape) / shape[-1] ** 0.5

    def loss(params: Any, batch: Any) -> Any:
        x, y = batch
        for w, b in params:
            x = jnp.tanh(x @ w + b)
        return jnp.mean((x - y) ** 2)

    def train(params: Any, batch: Any) -> Any:
        value, slopes = jax.value_and_grad(loss)(params, batch)
        return value, jax.tree.map(lambda p, g: p - 0.1 * g, params, slopes)

    layers = [(random(k, 256, 256), jnp.zeros(256)) for k in range(4)]
    layers = jax.device_put(layers, named(line))
    batch = jax.device_put((random(9, 1024, 256), random(10, 1024, 256)), named(line, "d"))

    def block(weights: Any, x: Any) -> Any:
        q, k, v, o, w1, w2 = weights
        heads = lambda w: jnp.einsum("bte,ehd->bhtd", x, w)
        scores = jax.nn.softmax(jnp.einsum("bhtd,bhsd->bhts", heads(q), heads(k)), -1)
        x = x + jnp.einsum("bhts,bhsd,hde->bte", scores, heads(v), o)
        return x + jax.nn.relu(x @ w1) @ w2

    def transformer(weights: Any, x: Any) -> Any:
        return jax.grad(lambda w: jnp.mean(block(w, x) ** 2))(weights)

    heads = [jax.device_put(random(k, 128, 8, 16), named(line, None, "d")) for k in range(3)]
    out = jax.device_put(random(3, 8, 16, 128), named(line, "d"))
    mlp = (
        jax.device_put(random(4, 128, 512), named(line, None, "d")),
        jax.device_put(random(5, 512, 128), named(line, "d")),
    )
    tokens = jax.device_put(random(6, 8, 64, 128), named(line))

    def halo(u: Any) -> Any:
        right = [(i, (i + 1) % DEVICES) for i in range(DEVICES)]
        left = [(b, a) for a, b in right]

        def step(_: Any, u: Any) -> Any:
            above = jax.lax.ppermute(u[-1:], "d", right)
            below = jax.lax.ppermute(u[:1], "d", left)
            rows = jnp.concatenate([above, u, below])
            return 0.25 * (rows[:-2] + rows[2:] + jnp.roll(u, 1, 1) + jnp.roll(u, -1, 1))

        return jax.lax.fori_loop(0, 20, step, u)

    stencil = jax.shard_map(halo, mesh=line, in_specs=P("d"), out_specs=P("d"))
    grid = jax.device_put(random(7, 512, 512), named(line, "d"))
    a = jax.device_put(random(8, 1024, 1024), named(line, "d"))
    b = jax.device_put(random(11, 1024, 1024), named(line, None, "d"))
    return {
        "data-parallel MLP step": (jax.jit(train), (layers, batch)),
        "tensor-parallel transformer step": (jax.jit(transformer), ([*heads, out, *mlp], tokens)),
        "sharded matrix product": (jax.jit(lambda a, b: a @ b), (a, b)),
        "halo stencil": (jax.jit(stencil), (grid,)),
    }


def measure(module: str) -> dict[str, float]:
    """Median milliseconds by program, and under "check NAME" a sum of the results."""
    jax = importlib.import_module(module)
    found: dict[str, float] = {}
    for name, (function, args) in programs(jax).items():
        result = jax.block_until_ready(function(*args))
        found[f"check {name}"] = sum(float(abs(x).sum()) for x in jax.tree.leaves(result))
        jax.block_until_ready(function(*args))
        taken: list[float] = []
        end = time.perf_counter() + SECONDS
        while len(taken) < 5 or time.perf_counter() < end:
            start = time.perf_counter()
            jax.block_until_ready(function(*args))
            taken.append(time.perf_counter() - start)
        found[name] = statistics.median(taken) * 1e3
    return found


def against(other: str, times: int) -> None:
    """Runs both in turns and prints medians and ratios."""
    rows: dict[str, list[tuple[float, float]]] = {}
    for _ in range(times):
        pair = []
        for python, module in ((sys.executable, "jaxlite"), (other, "jax")):
            done = subprocess.run([python, __file__, module], capture_output=True, text=True, check=True)
            pair.append(json.loads(done.stdout.splitlines()[-1]))
        for name in pair[0]:
            rows.setdefault(name, []).append((pair[0][name], pair[1][name]))
    print("| program | jaxlite | JAX | ratios |\n| --- | --- | --- | --- |")
    for name, pairs in rows.items():
        if name.startswith("check"):
            assert all(abs(a - b) <= 1e-3 * abs(b) for a, b in pairs), (name, pairs)
            continue
        ours, theirs = (statistics.median(column) for column in zip(*pairs, strict=True))
        ratios = ", ".join(f"{b / a:.2f}" for a, b in pairs)
        print(f"| {name} | {ours:.2f} | {theirs:.2f} | {ratios} |")


if __name__ == "__main__":
    os.environ.setdefault("JAX_NUM_CPU_DEVICES", str(DEVICES))
    if sys.argv[1] == "--against":
        against(sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 3)
    else:
        print(json.dumps(measure(sys.argv[1])))
