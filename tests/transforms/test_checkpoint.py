"""checkpoint: the same derivatives, fewer residuals, and what policies save."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jaxlite as jax
import jaxlite.numpy as jnp
from jaxlite import lax
from jaxlite.ad_checkpoint import checkpoint_name, print_saved_residuals
from jaxlite.transforms.checkpoint import saved_residuals

W = jnp.asarray(np.random.default_rng(0).standard_normal((4, 4)).astype(np.float32))
X = jnp.linspace(-1.0, 1.0, 4)


def block(w: Any, x: Any) -> Any:
    h = checkpoint_name(jnp.tanh(w @ x), "hidden")
    return jnp.sin(w @ h) * x


def loop(w: Any, x: Any) -> Any:
    return lax.scan(lambda c, _: (jax.checkpoint(block)(w, c), None), x, None, length=3)[0]


POLICIES = {
    "nothing": None,
    "everything": jax.checkpoint_policies.everything_saveable,
    "dots": jax.checkpoint_policies.dots_saveable,
    "names": jax.checkpoint_policies.save_only_these_names("hidden"),
}


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("policy", POLICIES)
def test_derivatives_are_the_same(policy: str, wrap: Any) -> None:
    plain = lambda w, x: block(w, block(w, x)).sum()
    again = jax.checkpoint(block, policy=POLICIES[policy])
    saved = lambda w, x: again(w, again(w, x)).sum()
    batched = lambda f: jax.vmap(jax.grad(f), (None, 0))
    for transform, x in (
        (lambda f: jax.grad(f, (0, 1)), X),
        (lambda f: jax.hessian(f, 1), X),
        (batched, jnp.stack([X, 2 * X])),
    ):
        got, want = wrap(transform(saved))(W, x), transform(plain)(W, x)
        for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)  # sums of 16 products of order one, twice


def test_inside_scan() -> None:
    plain = lambda w, x: lax.scan(lambda c, _: (block(w, c), None), x, None, length=3)[0].sum()
    got = jax.jit(jax.grad(lambda w, x: loop(w, x).sum(), (0, 1)))(W, X)
    for a, b in zip(got, jax.grad(plain, (0, 1))(W, X), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)


def residual_sources(policy: Any) -> list[str]:
    return [where.split(" from")[0] for _, where in saved_residuals(jax.checkpoint(block, policy=policy), W, X)]


def test_what_is_saved() -> None:
    assert all("argument" in where for where in residual_sources(None))
    assert any("checkpoint" in w for w in residual_sources(POLICIES["names"]))
    assert len(saved_residuals(block, W, X)) > len(residual_sources(None))


def test_recomputation_survives_the_compiler() -> None:
    f = lambda x: jax.checkpoint(lambda y: jnp.sin(jnp.sin(y)))(x).sum()
    count = lambda g: [e.primitive.name for e in jax.jit(g).lower(X).compile().report.simplified.eqns].count("sin")
    plain = lambda x: jnp.sin(jnp.sin(x)).sum()
    assert count(jax.value_and_grad(f)) == count(jax.value_and_grad(plain)) + 1


def test_printing(capsys: pytest.CaptureFixture[str]) -> None:
    print_saved_residuals(lambda x: jnp.sin(x).sum(), X)
    assert "f32[4] (16 bytes) output of cos" in capsys.readouterr().out
