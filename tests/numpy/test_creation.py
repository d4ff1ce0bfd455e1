"""Making arrays: copies of their own, keys, numbers read from text, grids."""

import copy

import numpy as np
import pytest

import jaxlite as jax
import jaxlite.numpy as jnp
from jaxlite import lax

COPIES = {
    "array": jnp.array,
    "asarray(copy=True)": lambda a: jnp.asarray(a, copy=True),
    "method": lambda a: a.copy(),
    "copy": jnp.copy,
    "clone": lambda a: a.clone(),
    "copy.copy": copy.copy,
    "copy.deepcopy": copy.deepcopy,
}


@pytest.mark.parametrize("name", COPIES)
def test_a_copy_has_memory_of_its_own(name):
    for original in (jnp.arange(3.0), jnp.asarray(1.0), jax.random.key(0)):
        made = COPIES[name](original)
        assert made is not original
        assert made.aval == original.aval
        original.delete()
        assert not made.is_deleted()
    a = jnp.arange(3.0)
    made = COPIES[name](a)
    assert not np.shares_memory(np.asarray(a), np.asarray(made))
    np.testing.assert_array_equal(made, [0, 1, 2])


def test_what_does_not_copy():
    a = jnp.arange(3.0)
    assert jnp.asarray(a) is a
    assert jnp.array(a, copy=False) is a


@pytest.mark.parametrize("function", [jnp.zeros_like, jnp.empty_like, jax.jit(jnp.zeros_like)])
def test_zeros_like_keys_are_keys(function):
    for keys in (jax.random.key(7), jax.random.split(jax.random.key(7), 3)):
        out = function(keys)
        assert (out.dtype, out.shape) == (keys.dtype, keys.shape)
        np.testing.assert_array_equal(jax.random.key_data(out), np.zeros((*keys.shape, 2)))
    np.testing.assert_array_equal(jax.random.key_data(jnp.ones_like(jax.random.key(7))), [1, 1])


def test_numbers_are_read_from_text_where_a_dtype_is_given():
    assert np.isnan(jnp.float32("nan"))
    assert int(jnp.int32("3")) == 3
    assert float(jnp.bfloat16("0.5")) == 0.5
    assert jnp.float32(b"-inf").dtype == np.float32
    np.testing.assert_array_equal(jnp.float32(["3", "4"]), [3, 4])
    with pytest.raises(ValueError, match="abc"):
        jnp.float32("abc")
    with pytest.raises(TypeError, match="not a valid JAX array type"):
        jnp.asarray("3")


def test_meshgrid_is_a_tuple():
    grid = jnp.meshgrid(jnp.arange(2), jnp.arange(3))
    assert isinstance(grid, tuple)
    for ours, theirs in zip(grid, np.meshgrid(np.arange(2), np.arange(3)), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_subnormal_numbers_are_kept():
    x = jnp.asarray(1e-40)
    assert float(x * 1.0) == float(jax.jit(lambda v: v * 1.0)(x)) == float(np.float32(1e-40))


def test_without_axes_they_are_arrays_too() -> None:
    x = jnp.float32(2)
    made = [
        jnp.zeros(()),
        jnp.ones((), "int32"),
        jnp.full((), 3.0),
        jnp.empty(()),
        jnp.zeros_like(x),
        lax.full_like(x, 3),
    ]
    assert [type(m) for m in made] == [type(jnp.arange(2))] * len(made)
    assert [float(m.at[()].add(1)) for m in made] == [1, 2, 4, 1, 1, 4]
    assert jax.jit(lambda v: jnp.zeros(()).at[()].add(v))(2.0) == 2
