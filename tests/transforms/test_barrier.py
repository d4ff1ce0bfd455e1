"""``optimization_barrier`` is the identity under every transformation, and keeps apart what is equal on its sides."""

import numpy as np

import jaxlite as jax
import jaxlite.numpy as jnp
from jaxlite import lax

X = jnp.array([1.0, 2.0, 3.0])


def through(x):
    first, second = lax.optimization_barrier((x, {"twice": 2 * x}))
    return first * second["twice"]


def test_identity_on_trees():
    tree = {"a": X, "b": (X + 1, 2.0)}
    out = lax.optimization_barrier(tree)
    assert jax.tree.structure(out) == jax.tree.structure(tree)
    np.testing.assert_array_equal(out["b"][0], X + 1)
    assert out["b"][1] == 2.0


def test_every_transformation_goes_through():
    # Products of numbers below 10 with few digits: exact in float32.
    np.testing.assert_array_equal(jax.jit(through)(X), 2 * X * X)
    np.testing.assert_array_equal(jax.vmap(through)(X), 2 * X * X)
    np.testing.assert_array_equal(jax.vmap(jax.grad(through))(X), 4 * X)
    np.testing.assert_array_equal(jax.jvp(through, (X,), (X,))[1], 4 * X * X)


def test_it_stays_in_the_program():
    assert "optimization_barrier" in str(jax.make_jaxpr(through)(X))
