"""``jax.nn.initializers``: functions of a key, a shape and a dtype that make the first values of parameters."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from jaxlite import random
from jaxlite.core import dtypes
from jaxlite.lax.elementwise.casts import convert
from jaxlite.lax.placed import placed
from jaxlite.numpy.arithmetic import multiply2
from jaxlite.numpy.creation import full, ones as ones_of, zeros as zeros_of


class Initializer(Protocol):
    """A function that makes the first values of a parameter."""

    def __call__(self, key: Any, shape: Any, dtype: Any = ..., out_sharding: Any = None) -> Any: ...


an_initializer = functools.partial(placed, called="an initializer")


def _float(dtype: Any) -> Any:
    return dtypes.canonicalize(np.float64 if dtype is None else dtype)


@placed
def zeros(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Any:
    """Zeros."""
    return zeros_of(shape, _float(dtype))


@placed
def ones(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Any:
    """Ones."""
    return ones_of(shape, _float(dtype))


def constant(value: Any, dtype: Any = None) -> Initializer:
    """Everywhere ``value``."""

    @an_initializer
    def init(key: Any, shape: Any, dtype: Any = dtype, out_sharding: Any = None) -> Any:
        return full(shape, value, _float(dtype))

    return init


def uniform(scale: Any = 0.01, dtype: Any = None) -> Initializer:
    """Spread evenly from 0 to ``scale``."""

    @an_initializer
    def init(key: Any, shape: Any, dtype: Any = dtype, out_sharding: Any = None) -> Any:
        return multiply2(random.uniform(key, shape, _float(dtype)), convert(scale, _float(dtype)))

    return init


def normal(stddev: Any = 0.01, dtype: Any = None) -> Initializer:
    """Normal of deviation ``stddev``."""

    @an_initializer
    def init(key: Any, shape: Any, dtype: Any = dtype, out_sharding: Any = None) -> Any:
        return multiply2(random.normal(key, shape, _float(dtype)), convert(stddev, _float(dtype)))

    return init


def truncated_normal(stddev: Any = 0.01, dtype: Any = None, lower: Any = -2.0, upper: Any = 2.0) -> Initializer:
    """Normal of deviation ``stddev``, cut off at ``lower`` and ``upper`` deviations."""

    @an_initializer
    def init(key: Any, shape: Any, dtype: Any = dtype, out_sharding: Any = None) -> Any:
        wanted = _float(dtype)
        return multiply2(random.truncated_normal(key, lower, upper, shape, wanted), convert(stddev, wanted))

    return init


def _fans(shape: Sequence[int], in_axis: Any, out_axis: Any, batch_axis: Any) -> tuple[float, float]:
    """How many inputs and outputs a parameter of ``shape`` connects."""
    if len(shape) <= 1:
        raise ValueError(
            f"Can't compute input and output sizes of a {len(shape)}-dimensional weights tensor. Must be at least 2D."
        )
    sides = [[axis] if isinstance(axis, int) else list(axis) for axis in (in_axis, out_axis, batch_axis)]
    fan_in, fan_out, batch = (math.prod(shape[a] for a in axes) for axes in sides)
    field = math.prod(shape) / fan_in / fan_out / batch
    return fan_in * field, fan_out * field


def variance_scaling(
    scale: Any, mode: str, distribution: str, in_axis: Any = -2, out_axis: Any = -1, batch_axis: Any = (),
    dtype: Any = None,
) -> Initializer:  # fmt: skip
    """Values of variance ``scale`` divided by the number of inputs ("fan_in"), outputs, their mean or geometric
    mean."""

    @an_initializer
    def init(key: Any, shape: Any, dtype: Any = dtype, out_sharding: Any = None) -> Any:
        wanted = _float(dtype)
        fan_in, fan_out = _fans(shape, in_axis, out_axis, batch_axis)
        shares = {
            "fan_in": fan_in,
            "fan_out": fan_out,
            "fan_avg": (fan_in + fan_out) / 2,
            "fan_geo_avg": math.sqrt(fan_in * fan_out),
        }
        if mode not in shares:
            raise ValueError(f"invalid mode for variance scaling initializer: {mode}")
        variance = wanted.type(scale / shares[mode])
        if distribution == "normal":
            return multiply2(random.normal(key, shape, wanted), np.sqrt(variance))
        if distribution == "uniform":
            return multiply2(random.uniform(key, shape, wanted, -1), np.sqrt(wanted.type(3) * variance))
        if distribution == "truncated_normal":
            # The deviation of a normal cut off at two deviations is 0.8796.
            deviation = np.sqrt(variance) / wanted.type(0.87962566103423978)
            return multiply2(random.truncated_normal(key, -2, 2, shape, wanted), deviation)
        raise ValueError(f"invalid distribution for variance scaling initializer: {distribution}")

    return init


def _scaled(name: str, scale: float, mode: str, distribution: str) -> Callable[..., Initializer]:
    def make(in_axis: Any = -2, out_axis: Any = -1, batch_axis: Any = (), dtype: Any = None) -> Initializer:
        return variance_scaling(scale, mode, distribution, in_axis, out_axis, batch_axis, dtype)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"``variance_scaling`` with scale {scale}, {mode!r}, {distribution!r}."
    return make


glorot_uniform = xavier_uniform = _scaled("glorot_uniform", 1.0, "fan_avg", "uniform")
glorot_normal = xavier_normal = _scaled("glorot_normal", 1.0, "fan_avg", "truncated_normal")
lecun_uniform = _scaled("lecun_uniform", 1.0, "fan_in", "uniform")
lecun_normal = _scaled("lecun_normal", 1.0, "fan_in", "truncated_normal")
he_uniform = kaiming_uniform = _scaled("he_uniform", 2.0, "fan_in", "uniform")
he_normal = kaiming_normal = _scaled("he_normal", 2.0, "fan_in", "truncated_normal")
