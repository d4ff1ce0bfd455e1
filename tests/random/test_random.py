"""Random numbers: the recorded bits of JAX 0.12 for the same keys, properties of draws, and refused keys."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

import jaxlite as jax
import jaxlite.numpy as jnp

KEY = jax.random.key(7)


def digest(x):
    return hashlib.sha256(np.ascontiguousarray(x).tobytes()).hexdigest()[:16]


# What JAX 0.12 gives: the first 16 hexadecimal digits of the SHA-256 of the bytes.
RECORDED = {
    "jax.random.key_data(jax.random.split(KEY, 5))": "24ad8a08454f3118",
    "jax.random.key_data(jax.random.split(KEY, (2, 3)))": "82a9a86bd9aec005",
    "jax.random.key_data(jax.random.fold_in(KEY, 12345))": "a565d539f7990332",
    "jax.random.PRNGKey(-5)": "b3069de8dfb1c548",
    "jax.random.bits(KEY, (7,), jnp.uint8)": "5e135e406d94dcd0",
    "jax.random.bits(KEY, (3, 5), jnp.uint8)": "4afde762b976ca99",
    "jax.random.bits(KEY, (), jnp.uint8)": "e7cf46a078fed4fa",
    "jax.random.bits(KEY, (7,), jnp.uint16)": "7aedab42e2133fd7",
    "jax.random.bits(KEY, (3, 5), jnp.uint16)": "a0d159fc2de8c7ea",
    "jax.random.bits(KEY, (), jnp.uint16)": "3c8cf93dcf446f39",
    "jax.random.bits(KEY, (7,), jnp.uint32)": "74fc54cf761cd0b5",
    "jax.random.bits(KEY, (3, 5), jnp.uint32)": "96b17a8cac90c482",
    "jax.random.bits(KEY, (), jnp.uint32)": "edf16ec70e9ed996",
    "jax.random.uniform(KEY, (3, 5), jnp.float32)": "5324de69b576edbc",
    "jax.random.uniform(KEY, (3, 5), jnp.float16)": "f21d1c1814192779",
    "jax.random.uniform(KEY, (33,), minval=-2.0, maxval=6.0)": "e6c26dde1531cec0",
    "jax.random.randint(KEY, (20,), -90, 100, jnp.int8)": "773cb0f1626e6256",
    "jax.random.randint(KEY, (20,), -90, 100, jnp.int16)": "8c09aab114df1d1b",
    "jax.random.randint(KEY, (20,), -90, 100, jnp.int32)": "338bbe7f6e25313e",
    "jax.random.randint(KEY, (20,), 0, 256, jnp.uint8)": "3d2c60fe04ee7f28",
    "jax.random.randint(KEY, (4,), 0, jnp.array([1, 9, 200, 70000]))": "c5483f7b89e47ca9",
    "jax.random.permutation(KEY, 100)": "e8284bba24d16650",
    "jax.random.permutation(KEY, jnp.arange(12).reshape(3, 4), 1)": "3ffbcb555256132f",
    "jax.random.permutation(KEY, jnp.arange(12).reshape(3, 4), 1, independent=True)": "4ef109b390715cf0",
    "jax.random.permutation(KEY, 3000)": "221b2dcf37ff0afe",
    "jax.random.bernoulli(KEY, 0.3, (40,))": "521c96557760fbfb",
    "jax.random.rademacher(KEY, (9,))": "75a5213c880b29e0",
    "jax.random.choice(KEY, 9, (5,))": "42581ef8f2276465",
    "jax.random.choice(KEY, 9, (5,), replace=False)": "4c394df8c7b107f1",
    "jax.random.categorical(KEY, jnp.zeros((4, 5)))": "da39ed3af3a2a733",
}


@pytest.mark.parametrize(("name", "expected"), RECORDED.items(), ids=list(RECORDED))
def test_the_bits_of_jax(name, expected):
    assert digest(eval(name, {"jax": jax, "jnp": jnp, "KEY": KEY})) == expected


def test_normals_are_those_of_jax():
    expected = [
        0.4512351453304291,
        1.9534509181976318,
        -0.5162394642829895,
        -0.14094029366970062,
        0.6154966950416565,
        0.3343164920806885,
    ]
    # JAX's inverse error function and ours differ by a few ulps.
    np.testing.assert_allclose(jax.random.normal(KEY, (6,)), expected, rtol=1e-5)


def test_keys_print_as_those_of_jax():
    assert repr(jax.random.key(0)) == "Array((), dtype=key<fry>) overlaying:\n[0 0]"
    assert str(jax.random.key(0).dtype) == "key<fry>"
    assert jax.random.key_impl(KEY) == "threefry2x32"


def test_raw_and_typed_keys_draw_alike():
    raw = jax.random.PRNGKey(7)
    np.testing.assert_array_equal(jax.random.uniform(raw, (3,)), jax.random.uniform(KEY, (3,)))
    np.testing.assert_array_equal(jax.random.split(raw, 3), jax.random.key_data(jax.random.split(KEY, 3)))
    assert jax.random.wrap_key_data(raw) == KEY


def test_draws_do_not_depend_on_transformations():
    keys = jax.random.split(KEY, 3)
    one_by_one = [jax.random.uniform(k, (2,)) for k in keys]
    np.testing.assert_array_equal(jax.vmap(lambda k: jax.random.uniform(k, (2,)))(keys), one_by_one)
    np.testing.assert_array_equal(jax.jit(lambda k: jax.random.uniform(k, (2,)))(keys[0]), one_by_one[0])


@pytest.mark.parametrize("independent", [False, True])
def test_permutations_keep_the_values(independent):
    x = jnp.arange(12).reshape(3, 4)
    out = jax.random.permutation(KEY, x, axis=1, independent=independent)
    np.testing.assert_array_equal(np.sort(out, axis=1), x)


def test_choices_without_replacement_are_different():
    assert len(set(jax.random.choice(KEY, 9, (9,), replace=False).tolist())) == 9
    weights = jnp.array([0.5, 0.0, 0.5])
    assert 1 not in jax.random.choice(KEY, 3, (50,), p=weights).tolist()


MOMENTS = [  # name, arguments, mean, variance
    ("uniform", (), 0.5, 1 / 12),
    ("normal", (), 0.0, 1.0),
    ("exponential", (), 1.0, 1.0),
    ("gumbel", (), np.euler_gamma, np.pi**2 / 6),
    ("laplace", (), 0.0, 2.0),
    ("logistic", (), 0.0, np.pi**2 / 3),
    ("rademacher", (), 0.0, 1.0),
]


@pytest.mark.parametrize(("name", "args", "mean", "variance"), MOMENTS, ids=[m[0] for m in MOMENTS])
def test_moments(name, args, mean, variance):
    draws = np.asarray(getattr(jax.random, name)(KEY, *args, (20000,)), np.float64)
    # The mean of 20000 draws is within five deviations; the variance within a tenth.
    assert abs(draws.mean() - mean) < 5 * np.sqrt(variance / 20000)
    assert abs(draws.var() / variance - 1) < 0.1


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: jax.random.normal(3), TypeError, r"invalid PRNG key.*jax\.random\.key\(seed\)"),
        (lambda: jax.random.normal(jnp.zeros(3, jnp.uint32)), TypeError, r"end with \(2,\); got shape=\(3,\)"),
        (lambda: jax.random.normal(jnp.zeros(2)), TypeError, "dtype uint32; got float32"),
        (lambda: jax.random.normal(jax.random.split(KEY)), ValueError, r"single key.*\(2,\).*vmap"),
        (lambda: jax.random.key(1.5), TypeError, "seed must be an integer"),
        (lambda: jax.random.key(jnp.arange(2)), TypeError, "seed must be a scalar"),
        (lambda: jax.random.key(0, impl="odd"), ValueError, "unrecognized PRNG implementation"),
        (lambda: jax.random.uniform(KEY, (2,), jnp.int32), ValueError, "must be a float dtype, got int32"),
        (lambda: jax.random.randint(KEY, (2,), 0, 9, jnp.float32), TypeError, "integer dtypes, got float32"),
        (lambda: jax.random.bernoulli(KEY, 1), TypeError, "floating dtype, got int32"),
        (lambda: jax.random.choice(KEY, 5, 3), TypeError, "shape argument"),
        (lambda: jax.random.choice(KEY, 3, (4,), replace=False), ValueError, "larger sample"),
        (lambda: jax.random.uniform(KEY, (2,), minval=jnp.zeros(3)), (ValueError, TypeError), "shape"),
        (lambda: KEY + 1, ValueError, "keys do not promote"),
    ],
)
def test_bad_calls(call, error, message):
    with pytest.raises(error, match=message):
        call()
