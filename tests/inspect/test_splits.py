"""Calls and compilations taken apart: the stages are there, add up, and nothing is measured that was not asked for."""

from __future__ import annotations

import pytest

import jaxlite as jax
import jaxlite.numpy as jnp
from jaxlite.backends.cpu import disk_cache
from jaxlite.inspect import Split, call_split, compilation_split


def test_a_call():
    calls = []
    f = jax.jit(lambda x, y: (calls.append(1), {"a": x @ x, "b": y + 1})[1])
    split = call_split(f, jnp.ones((100, 100)), y=2)
    assert [stage for stage, _ in split.rows] == ["flatten", "look-up", "native", "wrap", "enter"]
    assert len(calls) == 1  # traced once
    times = dict(split.rows)
    assert split.total == pytest.approx(sum(times.values()))
    assert max(times, key=times.get) == "native"  # a product of 10^6 multiplications
    assert str(split).splitlines()[0].startswith("a call of <lambda>: ")
    assert len(str(split).splitlines()) == 6


def test_what_has_no_such_calls():
    with pytest.raises(TypeError, match=r"write jax\.jit\(it\)"):
        call_split(abs, 1)
    with pytest.raises(ValueError, match="static or donated"):
        call_split(jax.jit(lambda x: x, donate_argnums=0), jnp.ones(3))
    with pytest.raises(ValueError, match="not warm"), jax.enable_x64(True):
        call_split(jax.jit(lambda x: x), jnp.ones(3))


def test_a_compilation():
    def f(x):
        return jax.lax.scan(lambda c, t: (jnp.sin(c) + t, c), 0.0, x)[0]

    report = jax.jit(f).lower(jnp.arange(5.0)).compile().report
    split = compilation_split(report)
    stages = [stage for stage, _ in split.rows]
    passes = [f"pass {name}" for name in ("inline", "simplify", "fuse", "lower", "memory")]
    assert stages[0] == "trace" and sorted(stages[1:6]) == sorted(passes)
    assert set(stages[6:]) == {"emit", "parse", "generate", "link"}
    assert all(seconds > 0 for _, seconds in split.rows)
    assert str(split).startswith("f, compiled: ")


def test_a_loaded_program(tmp_path):
    with disk_cache.config.enable_compilation_cache(True), disk_cache.config.compilation_cache_dir(str(tmp_path / "c")):
        for _ in range(2):
            report = jax.jit(lambda x: jnp.cos(x) + 3).lower(1.0).compile().report
    split = compilation_split(report)
    assert [stage for stage, _ in split.rows] == ["trace", "fingerprint", "read", "link"]
    assert str(split).startswith("<lambda>, loaded from the disk cache: ")


def test_shares_of_nothing():
    assert str(Split("nothing", (("a", 0.0), ("b", 0.0)))).count("0%") == 2
