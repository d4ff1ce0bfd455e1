"""Derivatives at the edges of functions: at kinks, poles and infinities, and of places outside an array."""

import math

import numpy as np
import pytest

import jaxlite as jax
import jaxlite.numpy as jnp
from jaxlite.scipy import special

INF, NAN = math.inf, math.nan

ONE_ARGUMENT = {  # function: (point, slope) by hand: limits from the right, 0 at infinity, NaN where there is none
    "abs": (jnp.abs, [(0.0, 1), (-0.0, 1), (2.0, 1), (-2.0, -1), (INF, 1), (-INF, -1)]),
    "l1 norm": (lambda x: jnp.linalg.norm(jnp.stack([x, x]), 1), [(0.0, 2), (3.0, 2), (-3.0, -2)]),
    "cbrt": (jnp.cbrt, [(0.0, INF), (-0.0, INF), (8.0, 1 / 12), (-8.0, 1 / 12), (INF, 0), (-INF, 0)]),
    "gammaln": (special.gammaln, [(0.0, -INF), (1.0, -0.5772157), (INF, INF)]),
    "entr": (special.entr, [(0.0, INF), (1.0, -1), (INF, -INF)]),
    "x ** 0": (lambda x: x**0, [(0.0, 0), (NAN, 0)]),
    "x ** integer array": (lambda x: jnp.power(x, jnp.array(0)), [(0.0, 0), (NAN, 0)]),
}

TWO_ARGUMENTS = {  # function: (x, y, slope along x, slope along y)
    "power": (
        jnp.power,
        [
            (0.0, 0.0, NAN, 0),
            (0.0, 1.0, 1, 0),
            (0.0, 2.0, 0, 0),
            (2.0, 0.0, 0, math.log(2)),
            (3.0, 2.0, 6, 9 * math.log(3)),
        ],
    ),
    "hypot": (
        jnp.hypot,
        [(0.0, 0.0, NAN, NAN), (3.0, 4.0, 0.6, 0.8), (0.0, -2.0, 0, -1), (1.0, INF, 0, NAN), (1e30, 0.0, 1, 0)],
    ),
    "xlog1py": (special.xlog1py, [(0.0, -1.0, -INF, NAN), (0.0, 1.0, math.log(2), 0), (2.0, 1.0, math.log(2), 1)]),
}


def _slopes(function, *args):
    """Reverse, forward, and reverse staged."""
    numbers = tuple(range(len(args)))
    forward = [jax.jvp(function, args, tuple(float(i == n) for i in numbers))[1] for n in numbers]
    return jax.grad(function, numbers)(*args), forward, jax.jit(jax.grad(function, numbers))(*args)


@pytest.mark.parametrize("name", ONE_ARGUMENT)
def test_one_argument(name):
    function, points = ONE_ARGUMENT[name]
    for x, want in points:
        np.testing.assert_allclose(_slopes(function, x), np.full((3, 1), want), rtol=2e-6, err_msg=str(x))


@pytest.mark.parametrize("name", TWO_ARGUMENTS)
def test_two_arguments(name):
    function, points = TWO_ARGUMENTS[name]
    for x, y, *want in points:
        reverse, forward, staged = _slopes(function, x, y)
        np.testing.assert_allclose(reverse, want, rtol=2e-6, err_msg=str((x, y)))
        np.testing.assert_allclose(staged, want, rtol=2e-6, err_msg=str((x, y)))
        if not np.isnan(want).any():  # forward, the tangent 0 times NaN is NaN
            np.testing.assert_allclose(forward, want, rtol=2e-6, err_msg=str((x, y)))


def test_digamma_at_its_poles():
    x = jnp.array([0.0, -0.0, -1.0, 1.0])
    for function in (special.digamma, jax.jit(special.digamma)):
        np.testing.assert_allclose(function(x), [-INF, -INF, NAN, -0.5772157], rtol=1e-6)


# Reading outside gives the nearest element, yet no element moves the result (as in JAX): the slope is dropped.
OUTSIDE = {
    "x[i]": lambda x, i: x[i],
    "at get": lambda x, i: x.at[i].get(),
    "at get promised": lambda x, i: x.at[i].get(mode="promise_in_bounds"),
    "at get fill": lambda x, i: x.at[i].get(mode="fill", fill_value=0),
    "take": lambda x, i: jnp.take(x, i, fill_value=0),
    "take_along_axis": lambda x, i: jnp.take_along_axis(x, i, 0, mode="promise_in_bounds"),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_the_slope_of_places_outside_is_dropped(name):
    read, places, x = OUTSIDE[name], jnp.array([5, 1, -9, -1]), jnp.arange(3.0)
    for transform in (lambda f: f, jax.jit):
        slope = transform(jax.grad(lambda v: read(v, places).sum()))(x)
        np.testing.assert_array_equal(slope, [0, 1, 1])
    np.testing.assert_array_equal(jax.jacrev(lambda v: read(v, places))(x).sum(0), [0, 1, 1])


def test_the_slope_of_clipped_places_is_kept():
    places, x = jnp.array([5, 1, -9]), jnp.arange(3.0)
    for read in (lambda v: jnp.take(v, places, mode="clip"), lambda v: v.at[places].get(mode="clip")):
        np.testing.assert_array_equal(jax.grad(lambda v, read=read: read(v).sum())(x), [1, 1, 1])


def test_updates_that_break_their_promise_are_dropped():
    places, x = jnp.array([5, 1, -9]), jnp.arange(3.0)
    for function in (lambda v: v.at[places].set(7.0, mode="promise_in_bounds"), lambda v: v.at[places].set(7.0)):
        np.testing.assert_array_equal(function(x), [0, 7, 2])
        np.testing.assert_array_equal(jax.jit(function)(x), [0, 7, 2])


@pytest.mark.parametrize("transform", [jax.grad, jax.value_and_grad, jax.jacrev, jax.jacfwd, jax.hessian])
@pytest.mark.parametrize("argnums", [(0, 0), (1, -1), [0, 1, 0]])
def test_an_argument_is_named_once(transform, argnums):
    with pytest.raises(TypeError, match="more than once"):
        transform(lambda a, b: a * b, argnums=argnums)(1.0, 2.0)


@pytest.mark.parametrize("primal", [1.0, np.float16(1), jnp.float32(1)], ids=repr)
@pytest.mark.parametrize("tangent", [1, True, jnp.asarray(1), np.int8(1), jnp.bfloat16(1)], ids=repr)
def test_tangents_have_the_dtype_of_their_primals(primal, tangent):
    name = np.result_type(primal).name if isinstance(primal, np.float16) else "float32"
    said = rf"expected tangent {name}\[\], but got .*\[\]. Write jnp.asarray\(value, jnp.{name}\)"
    with pytest.raises(TypeError, match=said):
        jax.jvp(lambda x: x * 2, (primal,), (tangent,))
    with pytest.raises(ValueError, match=said):
        jax.linearize(lambda x: x * 2, primal)[1](tangent)
    with pytest.raises(ValueError, match=rf"{name}\[\] was expected"):
        jax.vjp(lambda x: x * 2, primal)[1](tangent)


def test_tangents_of_integers_are_float0():
    with pytest.raises(TypeError, match="float0"):
        jax.jvp(lambda x: x * 2, (1,), (1,))
    out, moved = jax.jvp(lambda x: x * 2, (1,), (np.zeros((), jax.dtypes.float0),))
    assert int(out) == 2
    assert moved.dtype == jax.dtypes.float0


def test_python_floats_are_tangents_of_float32():
    assert float(jax.jvp(lambda x: x * 2, (jnp.float32(1),), (3.0,))[1]) == 6
    assert float(jax.linearize(lambda x: x * 2, 1.0)[1](3.0)) == 6
