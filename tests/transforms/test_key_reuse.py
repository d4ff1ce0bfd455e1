"""``jax_debug_key_reuse``: a key used up twice is an error that names both lines; other programs run as without it."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import jaxlite as jax
import jaxlite.numpy as jnp
from jaxlite import lax
from jaxlite.core import key_reuse

random = jax.random


def twice(key: Any) -> Any:
    return random.normal(key) + random.uniform(key)


def split_then_draw(key: Any) -> Any:
    first, _ = random.split(key)
    return random.bits(first) ^ random.bits(key)


def drawn_in_a_call(key: Any) -> Any:
    return jax.jit(random.bits)(key) ^ jax.jit(random.bits)(key)


def in_steps(key: Any) -> Any:
    return lax.scan(lambda c, _: (c, random.bits(key)), 0, None, length=2)[1]


def carried(key: Any) -> Any:
    return lax.fori_loop(0, 2, lambda i, c: (c[0], c[1] + random.uniform(c[0])), (key, 0.0))[1]


def in_a_while_loop(key: Any) -> Any:
    return lax.while_loop(lambda c: c < 3, lambda c: c + random.uniform(key), 0.0)


def branch_then_draw(key: Any) -> Any:
    return lax.cond(True, lambda k: random.bits(k), lambda k: jnp.uint32(0), key) ^ random.bits(key)


def in_a_derivative(key: Any) -> Any:
    return jax.grad(lambda x: x * random.normal(key) + random.normal(key))(1.0)


STRAIGHT = [twice, split_then_draw, drawn_in_a_call, in_a_derivative]
LOOPS = [in_steps, carried, in_a_while_loop, branch_then_draw]


@pytest.mark.parametrize(
    "function",
    [*STRAIGHT, *(jax.jit(f) for f in [*STRAIGHT, *LOOPS])],
    ids=[*(f.__name__ for f in STRAIGHT), *(f"jit_{f.__name__}" for f in [*STRAIGHT, *LOOPS])],
)
def test_used_twice(function: Any) -> None:
    with jax.debug_key_reuse(True), pytest.raises(jax.errors.KeyReuseError, match=r"first at .*test_key_reuse.py:\d+"):
        function(random.key(0))


@pytest.mark.parametrize("function", STRAIGHT)
def test_off_by_default(function: Any) -> None:
    function(random.key(0))
    jax.jit(function)(random.key(0))


def test_both_lines_are_named() -> None:
    line = twice.__code__.co_firstlineno
    key = random.key(0)
    with jax.debug_key_reuse(True):
        random.normal(key)
        with pytest.raises(jax.errors.KeyReuseError) as error:
            random.uniform(key)
        assert "random.normal(key)`, then" in str(error.value) and "`random.uniform(key)`." in str(error.value)
        with pytest.raises(jax.errors.KeyReuseError, match=rf"test_key_reuse.py:{line + 1} `return random"):
            jax.jit(twice)(random.key(0))


def test_calls_use_up_their_arguments() -> None:
    draw, key = jax.jit(lambda k: random.bits(k)), random.key(0)
    with jax.debug_key_reuse(True):
        draw(key)
        for use in (draw, random.bits, random.split):
            with pytest.raises(jax.errors.KeyReuseError, match="draw"):
                use(key)
        draw(random.key(0))  # another key, though of one seed


def fresh(key: Any) -> Any:
    first, second, third = random.split(key, 3)
    folded = [random.bits(random.fold_in(third, i)) for i in range(2)]
    return jnp.stack([random.bits(first), random.bits(random.clone(first)), random.bits(second), *folded])


def one_branch(key: Any) -> Any:
    return lax.cond(True, lambda: random.bits(key), lambda: random.bits(key))


def split_in_steps(key: Any) -> Any:
    def step(key: Any, _: None) -> Any:
        key, now = random.split(key)
        return key, random.bits(now)

    return lax.scan(step, key, None, length=3)[1]


def choices(key: Any) -> Any:
    a, b, c = random.split(key, 3)
    return random.choice(a, 5) + random.categorical(b, jnp.ones(3)) + random.permutation(c, 4)[0]


def example_by_example(key: Any) -> Any:
    return jax.vmap(random.bits)(random.split(key, 3))


def raw(key: Any) -> Any:
    words = random.key_data(key)
    return random.bits(words) ^ random.bits(words)


@pytest.mark.parametrize("function", [fresh, one_branch, split_in_steps, choices, example_by_example, raw])
def test_programs_that_use_each_key_once(function: Any) -> None:
    wanted = function(random.key(3))
    with jax.debug_key_reuse(True):
        np.testing.assert_array_equal(function(random.key(3)), wanted)
        np.testing.assert_array_equal(jax.jit(function)(random.key(3)), wanted)


def test_keys_are_forgotten_when_they_go() -> None:
    with jax.debug_key_reuse(True):
        key = random.key(0)
        before = len(key_reuse._first_uses)
        random.bits(key)
        assert len(key_reuse._first_uses) == before + 1
        del key
        gc.collect()
        assert len(key_reuse._first_uses) <= before
