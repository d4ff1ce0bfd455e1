"""Memory in use: arrays count while they live, then stay warm until they are given back."""

from __future__ import annotations

import gc

import jaxlite.numpy as jnp
from jaxlite.inspect import memory_in_use, release_memory

MIB = 1 << 20


def test_memory_is_given_out_kept_warm_and_released():
    gc.collect()
    release_memory()
    before = memory_in_use()
    x = jnp.sin(jnp.ones(5 * MIB // 4))
    held = memory_in_use()
    assert held.given_out >= before.given_out + 5 * MIB
    del x
    kept = memory_in_use()
    assert kept.given_out <= held.given_out - 5 * MIB and kept.warm >= before.warm + 5 * MIB
    assert 0 < kept.warm_bound <= 2 << 30
    assert release_memory() >= 5 * MIB
    assert memory_in_use().warm <= kept.warm - 5 * MIB
