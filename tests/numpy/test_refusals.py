"""Parameters of JAX's that have no effect here are refused unless they are their defaults, by name."""

from typing import Any

import numpy as np
import pytest

import jaxlite as jax
import jaxlite.numpy as jnp
from jaxlite import lax
from jaxlite.core.errors import refuse
from jaxlite.sharding import SingleDeviceSharding

X = jnp.array([3.0, 1.0, 2.0])
KEY = jax.random.key(0)

REFUSED = {
    "full: device='nonsense'": lambda: jnp.full(3, 0, device="nonsense"),
    "zeros: device='nonsense'": lambda: jnp.zeros(3, device="nonsense"),
    "zeros: out_sharding=3": lambda: jnp.zeros(3, out_sharding=3),
    "asarray: device='gpu'": lambda: jnp.asarray(X, device="gpu"),
    "array: order='Z'": lambda: jnp.array([1], order="Z"),
    "dot: out_sharding=3": lambda: jnp.dot(X, X, out_sharding=3),
    "matmul: out_sharding=3": lambda: jnp.matmul(X, X, out_sharding=3),
    "einsum: out_sharding=3": lambda: jnp.einsum("i,i", X, X, out_sharding=3),
    "isposinf": lambda: jnp.isposinf(X, out=X),
    "at[...].get: out_sharding=3": lambda: X.at[0].get(out_sharding=3),
    "at[...] update: out_sharding=3": lambda: X.at[0].set(1.0, out_sharding=3),
    "to_device: device='gpu'": lambda: X.to_device("gpu"),
    "normal: out_sharding=3": lambda: jax.random.normal(KEY, (3,), out_sharding=3),
    "an initializer: out_sharding=3": lambda: jax.nn.initializers.normal()(KEY, (3,), out_sharding=3),
    "exp: accuracy=3": lambda: lax.exp(1.0, accuracy=3),
    "full: sharding=3": lambda: lax.full((3,), 1.0, sharding=3),
    "psum: axis_index_groups=": lambda: jax.vmap(
        lambda x: lax.psum(x, "i", axis_index_groups=[[0, 1], [2]]), axis_name="i"
    )(X),
    "all_gather: axis_index_groups=": lambda: jax.vmap(
        lambda x: lax.all_gather(x, "i", axis_index_groups=[[0, 1], [2]]), axis_name="i"
    )(X),
    "make_jaxpr: axis_env=": lambda: jax.make_jaxpr(jnp.sin, axis_env=[("i", 3)]),
    "make_jaxpr: abstracted_axes=": lambda: jax.make_jaxpr(jnp.sin, abstracted_axes={0: "n"}),
    "linear_transpose: reduce_axes=": lambda: jax.linear_transpose(jnp.sum, X, reduce_axes=("i",)),
    "vmap: spmd_axis_name='i'": lambda: jax.vmap(jnp.sin, spmd_axis_name="i"),
    "device_put: src=3": lambda: jax.device_put(X, src=3),
    "as_text: dialect='hlo'": lambda: jax.jit(jnp.sin).lower(1.0).as_text("hlo"),
    "debug.print: partitioned=True": lambda: jax.debug.print("{}", 1, partitioned=True),
}


@pytest.mark.parametrize("begin", REFUSED)
def test_refused(begin):
    with pytest.raises(NotImplementedError) as caught:
        REFUSED[begin]()
    assert begin in str(caught.value)


def test_the_message_names_what_was_given_and_the_default():
    with pytest.raises(NotImplementedError, match=r"^f: p=2 is not supported: why\. Leave p out; its default is 1\.$"):
        refuse("f", "p", 2, 1, "why")
    refuse("f", "p", 1, 1, "why")


def test_a_default_is_not_confused_with_what_equals_it():
    with pytest.raises(NotImplementedError):
        refuse("f", "p", 0, False, "why")


def test_the_cpu_is_accepted():
    cpu = jax.devices()[0]
    for device in (None, cpu, SingleDeviceSharding(cpu)):
        np.testing.assert_array_equal(jnp.zeros(3, device=device), np.zeros(3))


@pytest.mark.parametrize("precision", [None, "highest", ("highest", "default"), lax.Precision.HIGH, "F32_F32_F32"])
def test_precisions_that_jax_knows(precision):
    assert jnp.dot(X, X, precision=precision) == 14.0


@pytest.mark.parametrize("product", [jnp.dot, jnp.matmul, lambda x, y, **k: jnp.einsum("i,i", x, y, **k), lax.dot])
@pytest.mark.parametrize("precision", ["nonsense", ("high", "low"), 3])
def test_precisions_that_jax_does_not_know(product, precision):
    with pytest.raises(ValueError, match="Precision argument must be"):
        product(X, X, precision=precision)


@pytest.mark.parametrize("kth", [3, -4])
@pytest.mark.parametrize("function", [jnp.partition, jnp.argpartition])
def test_kth_out_of_range(function, kth):
    with pytest.raises(ValueError, match=f"axis {kth} is out of bounds"):
        function(X, kth)


@pytest.mark.parametrize("function", [jnp.searchsorted, jnp.isin])
def test_unknown_methods(function):
    with pytest.raises(ValueError, match="method must be one of"):
        function(X, X, method="nonsense")


def test_einsum_takes_a_product_of_the_callers():
    calls = []

    def product(*args, **options):
        calls.append(args[2])
        return lax.dot_general(*args, **options)

    assert jnp.einsum("i,i", X, X, _dot_general=product) == 14.0
    assert calls == [(((0,), (0,)), ((), ()))]


def test_switch_takes_its_operand_by_name():
    branches = [lambda x: x, lambda x: x + 1]
    assert lax.switch(1, branches, operand=2.0) == 3.0
    with pytest.raises(TypeError, match="not both"):
        lax.switch(1, branches, 1.0, operand=2.0)
    with pytest.raises(TypeError, match="not both"):
        lax.cond(True, branches[0], branches[1], 1.0, operand=2.0)


def test_processes_and_backends_that_do_not_exist():
    with pytest.raises(ValueError, match="Unknown process_index 3"):
        jax.local_devices(process_index=3)
    for function in (jax.process_index, jax.process_count, jax.live_arrays):
        with pytest.raises(RuntimeError, match="Unknown backend tpu"):
            function("tpu")


@pytest.mark.parametrize(
    "call",
    [
        lambda: lax.convert_element_type(1.0, jnp.complex64),
        lambda: jnp.ones(2).astype(jnp.complex64),
        lambda: jax.jit(lambda x: x.astype(jnp.complex64))(1.0),
        lambda: jnp.array([1 + 2j]).astype(jnp.float32),
        lambda: jnp.array([1 + 2j]).real,
        lambda: jnp.imag(jnp.array([1 + 2j])),
    ],
)
def test_complex_arrays_are_refused_not_misread(call: Any) -> None:
    with pytest.raises(NotImplementedError, match="complex"):
        call()
