"""Arrays without elements: indices without positions read nothing from them, everywhere and with derivatives."""

import numpy as np
import pytest

import jaxlite as jax
import jaxlite.numpy as jnp

NONE, NO_MASK = jnp.zeros(0, int), jnp.zeros(0, bool)

CALLS = {  # jaxlite's and NumPy's, of an empty array
    "x[none]": (lambda x: x[NONE], lambda x: x[np.zeros(0, int)], (0,)),
    "x[mask]": (lambda x: x[NO_MASK], lambda x: x[np.zeros(0, bool)], (0,)),
    "take": (lambda x: jnp.take(x, NONE), lambda x: np.take(x, np.zeros(0, int)), (0,)),
    "take of many axes": (
        lambda x: jnp.take(x, jnp.zeros((0, 4), int)),
        lambda x: np.take(x, np.zeros((0, 4), int)),
        (0,),
    ),
    "take clip": (lambda x: jnp.take(x, NONE, mode="clip"), lambda x: x, (0,)),
    "take wrap": (lambda x: jnp.take(x, NONE, mode="wrap"), lambda x: x, (0,)),
    "at get": (lambda x: x.at[NONE].get(mode="fill"), lambda x: x, (0,)),
    "at set": (lambda x: x.at[NONE].set(1.0), lambda x: x, (0,)),
    "take_along_axis": (lambda x: jnp.take_along_axis(x, NONE, 0), lambda x: x, (0,)),
    "sort": (jnp.sort, np.sort, (0,)),
    "permutation": (lambda x: jax.random.permutation(jax.random.key(0), x), lambda x: x, (0,)),
    "compress": (lambda x: jnp.compress(NO_MASK, x), lambda x: x, (0,)),
    "unique": (lambda x: jnp.unique(x, size=0), np.unique, (0,)),
    "rows": (lambda x: x[NONE], lambda x: x, (0, 3)),
    "columns": (lambda x: x[:, NONE], lambda x: x, (3, 0)),
    "pairs": (lambda x: x[NONE, NONE], lambda x: x[[], []], (0, 3)),
    "rows and a slice": (lambda x: x[NONE, 1:], lambda x: x[:, 1:], (0, 3)),
    "some rows": (lambda x: x[jnp.array([0, 2])], lambda x: x[[0, 2]], (3, 0)),
    "along columns": (lambda x: jnp.take_along_axis(x, jnp.zeros((3, 0), int), 1), lambda x: x, (3, 0)),
    "permuted columns": (lambda x: jax.random.permutation(jax.random.key(0), x, axis=1), lambda x: x, (3, 0)),
    "sorted rows": (jnp.sort, np.sort, (3, 0)),
}


@pytest.mark.parametrize("name", CALLS)
def test_as_numpy(name):
    ours, theirs, shape = CALLS[name]
    x = np.zeros(shape, np.float32)
    want = theirs(x).shape
    assert ours(jnp.asarray(x)).shape == want
    assert jax.jit(ours)(jnp.asarray(x)).shape == want
    assert jax.vmap(ours)(jnp.zeros((2, *shape))).shape == (2, *want)
    assert jax.grad(lambda v: ours(v).sum())(jnp.asarray(x)).shape == shape


def test_a_batch_of_none():
    found = jax.vmap(lambda x: jnp.searchsorted(x, jnp.ones(2)))(jnp.zeros((0, 2)))
    assert found.shape == (0, 2)
    assert jax.vmap(lambda x: x[jnp.array([1, 0, 1])])(jnp.zeros((0, 2))).shape == (0, 3)


def test_unique_of_nothing_is_its_fill_value():
    np.testing.assert_array_equal(jnp.unique(jnp.zeros(0), size=2, fill_value=7), [7, 7])
    with pytest.raises(ValueError, match="fill_value must be specified"):
        jnp.unique(jnp.zeros(0), size=2)


def test_elements_of_an_empty_array_are_refused():
    with pytest.raises(IndexError, match="non-empty"):
        jnp.take(jnp.zeros(0), jnp.array([0]))
    with pytest.raises(TypeError, match="slice_sizes"):
        jnp.zeros(0)[jnp.array([0])]
