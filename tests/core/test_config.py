"""Flags take what they can act on, and say what they take of the rest."""

import pytest

import jaxlite as jax
from jaxlite.core import config

CPU = jax.devices()[0]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("platforms", None),
        ("platforms", ""),
        ("platforms", "cpu"),
        ("platforms", "cuda,cpu"),
        ("default_device", CPU),
        ("default_device", "cpu"),
        ("default_matmul_precision", None),
        ("default_matmul_precision", "highest"),
        ("default_matmul_precision", "BF16_BF16_F32_X3"),
        ("default_prng_impl", "threefry2x32"),
        ("num_cpu_devices", 1),
    ],
)
def test_taken(name, value):
    flag = getattr(config, name)
    with flag(value):
        assert flag.value == value


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("platforms", "tpu", "jax_platforms='tpu': jaxlite runs on 'cpu'"),
        ("platforms", "cuda", "jaxlite runs on 'cpu'"),
        ("platforms", ["cpu"], "a list with it"),
        ("default_device", "gpu", "jax_default_device='gpu': all arrays lie on the one CPU"),
        ("default_matmul_precision", "nonsense", "jax_default_matmul_precision takes one of .*'highest'.*'nonsense'"),
        ("default_prng_impl", "rbg", "takes one of 'threefry2x32', not 'rbg'"),
        ("num_cpu_devices", 0, "takes a whole number from 1, not 0"),
        ("num_threads", "many", "jaxlite_num_threads takes a whole number, not 'many'"),
    ],
)
def test_refused(name, value, message):
    flag = getattr(config, name)
    with pytest.raises(ValueError, match=message):
        flag.set(value)
    with pytest.raises(ValueError, match=message), flag(value):
        pass
