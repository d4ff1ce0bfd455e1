"""Dtypes at their edges: those that no array holds, and arrays made with 64-bit types on and used with them off."""

import numpy as np
import pytest

import jaxlite as jax
import jaxlite.numpy as jnp
from jaxlite import lax

NO_ARRAY_HOLDS = [
    "V4",
    "datetime64[s]",
    "timedelta64[s]",
    "S",
    "U3",
    object,
    str,
    np.dtype([("a", "f4")]),
    np.dtype("f4").newbyteorder(),  # bytes in the other order
    *(t for t in (np.longdouble, np.clongdouble) if np.longdouble(0).itemsize > 8),
]

ASKING = {
    "astype": lambda dtype: jnp.ones(2).astype(dtype),
    "asarray": lambda dtype: jnp.asarray([1, 2], dtype=dtype),
    "ones": lambda dtype: jnp.ones(2, dtype),
    "zeros": lambda dtype: jnp.zeros(2, dtype),
    "full": lambda dtype: jnp.full(2, 1, dtype),
    "arange": lambda dtype: jnp.arange(3, dtype=dtype),
    "sum": lambda dtype: jnp.sum(jnp.ones(2), dtype=dtype),
    "convert_element_type": lambda dtype: lax.convert_element_type(jnp.ones(2), dtype),
    "bitcast_convert_type": lambda dtype: lax.bitcast_convert_type(jnp.ones(2), dtype),
    "view": lambda dtype: jnp.ones(2).view(dtype),
}

GIVING = {
    "asarray": jnp.asarray,
    "add": lambda x: jnp.ones(2) + x,
    "sin": jnp.sin,
    "jit": jax.jit(lambda x: x),
    "grad": jax.grad(lambda x: 1.0),
    "vmap": jax.vmap(lambda x: x),
    "device_put": jax.device_put,
}


@pytest.mark.parametrize("dtype", NO_ARRAY_HOLDS, ids=str)
@pytest.mark.parametrize("call", ASKING)
def test_a_dtype_that_no_array_holds_cannot_be_asked_for(call, dtype):
    with pytest.raises(TypeError, match="not a valid JAX array type"):
        ASKING[call](dtype)


@pytest.mark.parametrize("dtype", NO_ARRAY_HOLDS, ids=str)
@pytest.mark.parametrize("call", GIVING)
def test_a_value_of_a_dtype_that_no_array_holds_is_refused(call, dtype):
    with pytest.raises(TypeError):
        GIVING[call](np.zeros(2, dtype))


@pytest.fixture
def wide():
    """float64 [0, 1, 2], int64 [0, 1, 2] and a weak float64 2, in a session without 64-bit types."""
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    values = jnp.arange(3.0), jnp.arange(3), jnp.asarray(2.0)
    jax.config.update("jax_enable_x64", False)
    assert [v.dtype for v in values] == [np.float64, np.int64, np.float64]
    yield values
    jax.config.update("jax_enable_x64", before)


NARROWED = {  # of float64 [0, 1, 2], by hand
    "sum": (jnp.sum, 3.0),
    "prod": (jnp.prod, 0.0),
    "max": (jnp.max, 2.0),
    "min": (jnp.min, 0.0),
    "mean": (jnp.mean, 1.0),
    "var": (jnp.var, 2 / 3),
    "median": (jnp.median, 1.0),
    "cumsum": (jnp.cumsum, [0.0, 1.0, 3.0]),
    "mul": (lambda w: w * 2, [0.0, 2.0, 4.0]),
    "div": (lambda w: w / 2, [0.0, 0.5, 1.0]),
    "radd": (lambda w: 1.0 + w, [1.0, 2.0, 3.0]),
    "add float32": (lambda w: w + jnp.ones(3), [1.0, 2.0, 3.0]),
    "where": (lambda w: jnp.where(w > 0, w, 5.0), [5.0, 1.0, 2.0]),
    "clip": (lambda w: jnp.clip(w, 0, 1), [0.0, 1.0, 1.0]),
    "vmap": (jax.vmap(lambda x: x * 2), [0.0, 2.0, 4.0]),
    "closure": (lambda w: jax.jit(lambda y: y * w)(jnp.ones(3)), [0.0, 1.0, 2.0]),
}


@pytest.mark.parametrize("staged", [False, True])
@pytest.mark.parametrize("name", NARROWED)
def test_what_was_made_with_x64_on_narrows_where_it_meets_others(name, staged, wide):
    function, want = NARROWED[name]
    out = jax.jit(function)(wide[0]) if staged else function(wide[0])
    assert out.dtype == np.float32
    np.testing.assert_allclose(out, want, rtol=1e-6)


def test_wide_integers_and_weak_scalars_narrow_too(wide):
    _, integers, weak = wide
    for out, want in ((integers + 1, [1, 2, 3]), (integers.sum(), 3), (jnp.cumsum(integers), [0, 1, 3])):
        assert out.dtype == np.int32
        np.testing.assert_array_equal(out, want)
    assert (weak + weak).dtype == np.float32
    assert float(weak + weak) == 4


def test_comparisons_of_what_was_made_with_x64_on(wide):
    np.testing.assert_array_equal(wide[0] > 0, [False, True, True])
    np.testing.assert_array_equal(wide[1] == 1, [False, True, False])
    assert bool(jnp.all(wide[0] >= 0))


def test_what_moves_elements_alone_keeps_the_dtype(wide):
    for out in (wide[0][1:], wide[0].reshape(3, 1), -wide[0], jnp.tril(jnp.outer(wide[0], wide[0]))):
        assert out.dtype == np.float64


def test_derivatives_with_respect_to_what_was_made_with_x64_on(wide):
    w = wide[0]
    for gradient in (jax.grad(lambda x: (x**2).sum()), jax.jit(jax.grad(lambda x: (x**2).sum()))):
        out = gradient(w)
        assert out.dtype == np.float64  # the argument's own
        np.testing.assert_array_equal(out, [0, 2, 4])
    for jacobian in (jax.jacrev, jax.jacfwd):
        np.testing.assert_array_equal(jacobian(lambda x: x**3)(w), np.diag([0.0, 3.0, 12.0]))


RESULTS = {  # dtype and weak type, as JAX's
    "gelu of a number": (lambda: jax.nn.gelu(1.0), np.float32, False),
    "gelu times bfloat16": (lambda: jax.nn.gelu(1.0) * jnp.bfloat16(1), np.float32, False),
    "exact gelu": (lambda: jax.nn.gelu(1.0, approximate=False), np.float32, False),
    "heaviside of integers": (lambda: jnp.heaviside(jnp.arange(2), 0.5), np.float32, False),
    "heaviside of numbers": (lambda: jnp.heaviside(1.0, 0.5), np.float32, True),
    "ldexp": (lambda: jnp.ldexp(1.0, 2), np.float32, False),
    "True ** int8": (lambda: True ** jnp.int8(2), np.int32, False),
    "uint8 ** int8": (lambda: jnp.uint8(3) ** jnp.int8(2), np.uint8, False),
    "int8 ** uint32": (lambda: jnp.int8(3) ** jnp.uint32(2), np.int8, False),
    "2 ** int8": (lambda: 2 ** jnp.int8(2), np.int32, True),
    "2.0 ** int8": (lambda: 2.0 ** jnp.int8(2), np.float32, True),
    "uint8 ** int8 array": (lambda: jnp.uint8(3) ** jnp.array([2], jnp.int8), np.int16, False),
}


@pytest.mark.parametrize("name", RESULTS)
def test_result_types(name):
    call, dtype, weak = RESULTS[name]
    out = call()
    assert (out.dtype, bool(out.weak_type)) == (dtype, weak)


def test_known_powers_have_the_values_of_numpy():
    for base, exponent in ((np.uint8(3), np.int8(2)), (np.int8(-3), np.uint32(3)), (np.float32(2), np.int8(-2))):
        out = jnp.asarray(base) ** jnp.asarray(exponent)
        assert out.dtype == base.dtype
        assert float(out) == float(base) ** int(exponent)
