"""Where warm calls go: the table in docs/backends.md.

    python benchmarks/call_split.py

Prints microseconds by stage for one small array, for fifty in a nested dict, and for eager operations in all.
"""

from __future__ import annotations

import statistics
import time

import jaxlite as jax
import jaxlite.numpy as jnp
from jaxlite.inspect import call_split


def main() -> None:
    """Measures and prints."""
    tree = {f"layer{i}": {"w": jnp.ones((4, 4)), "b": jnp.ones((4,))} for i in range(25)}
    calls = {
        "one array": (jax.jit(lambda x: x + 1.0), jnp.float32(1.0)),
        "50 arrays in dicts": (jax.jit(lambda t: jax.tree.map(lambda a: a * 0.5, t)), tree),
    }
    splits = {name: call_split(*call) for name, call in calls.items()}
    stages = [stage for stage, _ in next(iter(splits.values())).rows]
    print("| call |", " | ".join(stages), "| all |")
    print("| --- |" + " --- |" * (len(stages) + 1))
    for name, split in splits.items():
        cells = [f"{seconds * 1e6:.1f}" for _, seconds in split.rows]
        print(f"| {name} |", " | ".join(cells), f"| {split.total * 1e6:.1f} |")
    x, matrix = jnp.arange(10.0), jnp.ones((4, 4))
    operations = {
        "x + x": lambda: x + x, "x * 2": lambda: x * 2, "jnp.sin(x)": lambda: jnp.sin(x), "x.sum()": lambda: x.sum(),
        "m @ m": lambda: matrix @ matrix, "m.T": lambda: matrix.T,
    }  # fmt: skip
    print()
    print("| eager |", " | ".join(operations), "|")
    print("| --- |" + " --- |" * len(operations))
    print("| |", " | ".join(f"{microseconds(operation):.1f}" for operation in operations.values()), "|")


def microseconds(operation: object, rounds: int = 41, calls: int = 50) -> float:
    """The median of the time of a call."""
    taken = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(calls):
            operation()  # type: ignore[operator]
        taken.append((time.perf_counter() - start) / calls)
    return statistics.median(taken) * 1e6


if __name__ == "__main__":
    main()
