"""Seconds to trace, differentiate and compile ever longer programs: ``python benchmarks/long_programs.py``."""

from __future__ import annotations

import time
from typing import Any

import jaxlite as jax
import jaxlite.numpy as jnp

LENGTHS = (1000, 2000, 5000, 10_000)


def chain(length: int) -> Any:
    """A function of about so many equations, none of which can be left out."""

    def f(x: Any) -> Any:
        for n in range(length // 2):
            x = jnp.sin(x) if n % 3 else x * 0.5
            x = x + n
        return jnp.sum(x)

    return f


def main() -> None:
    """Prints one line for each length."""
    x = jnp.arange(8.0)
    print(f"{'equations':>10} {'trace':>8} {'compile':>8} {'compile grad':>13}")
    for length in LENGTHS:
        f = chain(length)
        start = time.perf_counter()
        traced = jax.jit(f).trace(x)
        middle = time.perf_counter()
        traced.lower().compile()
        end = time.perf_counter()
        jax.jit(jax.grad(f)).trace(x).lower().compile()
        print(
            f"{len(traced.jaxpr.eqns):10d} {middle - start:8.2f} {end - middle:8.2f} {time.perf_counter() - end:13.2f}"
        )


if __name__ == "__main__":
    main()
