"""Trains a small model with optax under ``python -m jaxlite.as_jax``: prints each optimiser's first and last loss."""

from __future__ import annotations

import inspect
from typing import Any

import jax
import jax.numpy as jnp
import optax

OPTIMISERS = (
    "adabelief adadelta adafactor adagrad adam adamax adamaxw adamw adan amsgrad fromage lamb lars lbfgs lion nadam "
    "nadamw noisy_sgd novograd optimistic_adam optimistic_gradient_descent polyak_sgd radam rmsprop rprop sgd "
    "sign_sgd sm3 yogi"
).split()
STEPS = 40


def data() -> tuple[Any, Any]:
    x = jax.random.normal(jax.random.key(0), (64, 5))
    return x, x @ jnp.arange(5.0) + 0.5


def parameters() -> dict[str, Any]:
    first, second = jax.random.split(jax.random.key(1))
    hidden = jax.random.normal(first, (5, 8)) * 0.3
    return {"hidden": hidden, "out": jax.random.normal(second, (8,)) * 0.3, "bias": jnp.zeros((1,))}


def loss(p: dict[str, Any]) -> Any:
    x, y = data()
    return jnp.mean((jnp.tanh(x @ p["hidden"]) @ p["out"] + p["bias"] - y) ** 2)


def train(name: str) -> tuple[float, float]:
    make = getattr(optax, name)
    wanted = inspect.signature(make).parameters
    options: dict[str, Any] = {}
    if "learning_rate" in wanted and name not in ("polyak_sgd", "lbfgs"):  # these two choose their steps
        options["learning_rate"] = 1.0 if name == "adadelta" else 0.01
    if name == "noisy_sgd":
        options["key"] = jax.random.key(0)
    optimiser = make(**options)
    p = parameters()
    state = optimiser.init(p)
    more = {"lbfgs": ("value", "grad", "value_fn"), "polyak_sgd": ("value",)}.get(name, ())

    @jax.jit
    def step(p: Any, state: Any) -> tuple[Any, Any, Any]:
        value, gradient = jax.value_and_grad(loss)(p)
        known = {"value": value, "grad": gradient, "value_fn": loss}
        updates, state = optimiser.update(gradient, state, p, **{k: known[k] for k in more})
        return optax.apply_updates(p, updates), state, value

    losses = []
    for _ in range(STEPS):
        p, state, value = step(p, state)
        losses.append(float(value))
    return losses[0], losses[-1]


if __name__ == "__main__":
    assert jax.__name__ == "jaxlite"
    for name in OPTIMISERS:
        print(name, *train(name))
