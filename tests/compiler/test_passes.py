"""The passes over jaxprs, each by itself: what they give and what they say of it.  No kernel runs here."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jaxlite as jax
import jaxlite.numpy as jnp
from jaxlite import lax
from jaxlite.compiler import memory_plan
from jaxlite.compiler.fuse import fuse
from jaxlite.compiler.inline import inline_calls
from jaxlite.compiler.lifetimes import timeline
from jaxlite.compiler.loop_verifier import verify_kernel
from jaxlite.compiler.memory_plan import place
from jaxlite.compiler.pipeline import compile_jaxpr
from jaxlite.compiler.plan import Copy, For, MatrixProduct, Reference, Storage, all_steps
from jaxlite.compiler.plan_verifier import verify_plan
from jaxlite.compiler.simplify import simplify
from jaxlite.core.jaxpr import check, evaluate

ROWS = jnp.ones((8, 32))


def front(f: Any, *args: Any) -> Any:
    """The jaxpr of ``f``, inlined and simplified."""
    return simplify(inline_calls(jax.make_jaxpr(f)(*args))[0])[0]


def names(closed: Any) -> list[str]:
    return [e.primitive.name for e in closed.eqns]


def groups(f: Any, *args: Any) -> list[tuple[str, list[str]]]:
    return [(g.kind, [e.primitive.name for e in g.eqns]) for g in fuse(front(f, *args))[0]]


def test_inline_keeps_the_meaning() -> None:
    inner = jax.jit(lambda x, y: (jnp.sin(x) * y, y))
    f = lambda x: inner(inner(x, 2.0)[0], x)[0]
    closed = jax.make_jaxpr(f)(3.0)
    flat, decisions = inline_calls(closed)
    check(flat.jaxpr)
    assert "jit" not in names(flat) and len(decisions) == 2
    assert float(evaluate(flat.jaxpr, flat.consts, [3.0])[0]) == float(f(3.0))


def test_inline_custom_rules() -> None:
    f = jax.custom_jvp(jnp.sin)
    f.defjvp(lambda p, t: (f(*p), t[0]))
    assert names(inline_calls(jax.make_jaxpr(f)(1.0))[0]) == ["sin"]


SIMPLER = [
    (lambda x: x * 1.0, []),
    (lambda x: 1.0 * x, []),
    (lambda x: x / 1.0, []),
    (lambda x: jnp.sin(x) + jnp.sin(x), ["sin", "add"]),
    (lambda x: (jnp.cos(x), x)[1] * 2.0, ["mul"]),
    (lambda x: lax.stop_gradient(x) + x, ["add"]),
    (lambda x: x + 0.0, ["add"]),  # -0.0 + 0.0 is 0.0: not an identity
    (lambda x: x * 0.0, ["mul"]),  # NaN and infinities are not 0
    (lambda x: x - x, ["sub"]),
]


@pytest.mark.parametrize("f, left", SIMPLER, ids=range(len(SIMPLER)))
def test_simplify_is_exact(f: Any, left: list[str]) -> None:
    assert names(front(f, jnp.ones(3))) == left


def test_what_fuses() -> None:
    softmax = lambda x: (
        jnp.exp(x - x.max(-1, keepdims=True)) / jnp.exp(x - x.max(-1, keepdims=True)).sum(-1, keepdims=True)
    )
    ((kind, equations),) = groups(softmax, ROWS)
    assert kind == "row" and equations.count("exp") == 1 and "div" in equations

    adam = lambda p, g, m: (p - (0.9 * m + 0.1 * g) / jnp.sqrt(g * g + 1.0), 0.9 * m + 0.1 * g)
    ((kind, _),) = groups(adam, ROWS, ROWS, ROWS)
    assert kind == "map"

    assert [k for k, _ in groups(lambda x: (x * x).sum(0), ROWS)] == ["reduce"]
    assert [k for k, _ in groups(lambda x: x + x.T, jnp.ones((4, 4)))] == ["map"]


def test_what_does_not_fuse_and_why() -> None:
    # The product is read by the sum over columns and is a result: both need it, so it is written once and read again.
    both = front(lambda x: ((y := jnp.exp(x)), y.sum(0)), ROWS)
    made, decisions = fuse(both)
    assert [g.kind for g in made] == ["map", "reduce"]
    assert any(d.verdict == "not fused" and "other readers" in d.reason and d.source is not None for d in decisions)

    # A transposed reader needs the whole of what it reads.
    through = groups(lambda x: jnp.exp(x) + jnp.exp(x).T, jnp.ones((4, 4)))
    assert [k for k, _ in through] == ["map", "map"]


def test_what_is_read_through_layout_is_finished_first() -> None:
    # The gradient reads a reversed value of the kernel that it joins otherwise: found by random programs.
    f = lambda x: (x[::-1] * jnp.cos(x * x.sum(1, keepdims=True))).sum()
    made, _ = fuse(front(jax.grad(f), ROWS))
    for group in made:
        assert group not in group.through and not group.through & {
            g for g in made if made.index(g) >= made.index(group)
        }
    x = jnp.asarray(np.random.default_rng(0).uniform(-1, 1, (3, 4)).astype(np.float32))
    # A slope is a sum of at most 6 products below 4, each rounded three times by at most half an ulp of 4 (4 eps).
    np.testing.assert_allclose(jax.jit(jax.grad(f))(x), jax.grad(f)(x), rtol=0, atol=36 * np.finfo(np.float32).eps)


def test_matrix_products_and_their_reasons() -> None:
    big, small = jnp.ones((64, 64)), jnp.ones((3, 3))
    assert any(
        isinstance(s, MatrixProduct)
        for s in all_steps(compile_jaxpr(jax.make_jaxpr(jnp.matmul)(big, big), "f").plan.steps)
    )
    compiled = compile_jaxpr(jax.make_jaxpr(jnp.matmul)(small, small), "f")
    assert not any(isinstance(s, MatrixProduct) for s in all_steps(compiled.plan.steps))
    assert any("small" in d.reason for p in compiled.passes for d in p.decisions)


PROGRAMS = {
    "elementwise": (lambda x: jnp.tanh(x) * 2 + 1, (ROWS,)),
    "softmax": (lambda x: jnp.exp(x - x.max(-1, keepdims=True)) / x.sum(-1, keepdims=True), (ROWS,)),
    "column sum": (lambda x: x.sum(0), (ROWS,)),
    "large sum": (lambda x: (x * x).sum(), (jnp.ones((1000, 1000)),)),
    "narrow rows": (lambda x: x.sum(-1), (jnp.ones((500, 3)),)),
    "argmax": (lambda x: (x.argmax(1), x.argmin(0)), (ROWS,)),
    "pads and slices": (
        lambda x: jnp.concatenate([jnp.pad(x, 1)[::2], x[:4, ::-1].repeat(1, 0)[:, :1] * jnp.ones((1, 34))]),
        (ROWS,),
    ),
    "gather": (lambda x, i: x[i] * 2, (ROWS, jnp.array([1, 3]))),
    "scatter": (lambda x, i: x.at[i].add(1.0), (ROWS, jnp.array([1, 3]))),
    "gradient": (jax.grad(lambda w, x: (jnp.tanh(x @ w) ** 2).sum()), (jnp.ones((32, 16)), ROWS)),
    "scan": (lambda x: lax.scan(lambda c, r: (c + r, c.sum()), x[0], x), (ROWS,)),
    "scan gradient": (jax.grad(lambda x: lax.scan(lambda c, r: (jnp.sin(c * r), None), x[0], x)[0].sum()), (ROWS,)),
    "while": (lambda x: lax.while_loop(lambda c: c.sum() < 1e4, lambda c: c * 2, x), (ROWS,)),
    "cond": (lambda x: lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x), (ROWS,)),
    "sort": (lambda x: jnp.sort(x, 0), (ROWS,)),
    "empty": (lambda x: (x * 2, x.sum()), (jnp.ones((0, 3)),)),
    "bf16": (lambda x: (x @ x.T).sum(), (ROWS.astype(jnp.bfloat16),)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_level_verifies(name: str) -> None:
    f, args = PROGRAMS[name]
    closed = jax.make_jaxpr(f)(*args)
    check(closed.jaxpr)
    with jax.enable_checks(True):
        compiled = compile_jaxpr(closed, name)
    check(compiled.simplified.jaxpr)
    verify_plan(compiled.plan)
    for record in compiled.kernels:
        assert record.loop_nest().strip() and record.equations
    for step in all_steps(compiled.plan.steps):
        if hasattr(step, "kernel"):
            verify_kernel(step.kernel)
    for record in compiled.passes:
        assert record.why and all(d.reason for d in record.decisions)


def test_host_calls_are_those_allowed() -> None:
    """What calls back into Python: sorting alone, for now; anything else that falls back fails here."""
    called: set[str] = set()
    for f, args in PROGRAMS.values():
        report = jax.jit(f).lower(*args).compile().report
        called |= set(report.host_calls)
    assert called == {"sort"}


def test_memory_is_shared_by_lifetime(monkeypatch: pytest.MonkeyPatch) -> None:
    n = 1024
    storages = [Storage("argument", n, 0), *(Storage("temporary", n, 0) for _ in range(3)), Storage("result", n, 0)]
    steps = tuple(Copy(Reference(i + 1), Reference(i), n) for i in range(4))
    _, size, decisions = place(storages, steps)
    assert size == n and [d.verdict for d in decisions] == ["in place"] * 2  # a copy may stay where it is
    monkeypatch.setattr(memory_plan, "IN_PLACE", False)
    placed, size, decisions = place(storages, steps)
    assert size == 2 * n and not decisions  # else a chain needs two places, whatever its length
    assert placed[1].position != placed[2].position and placed[1].position == placed[3].position


def test_what_a_loop_reads_lives_through_it() -> None:
    from jaxlite.compiler.plan import Counter

    inside = (Copy(Reference(2), Reference(1), 64), Copy(Reference(3), Reference(2), 64))
    steps = (Copy(Reference(1), Reference(0), 64), For(Counter(), 5, inside), Copy(Reference(4), Reference(3), 64))
    alive = timeline(steps).spans
    begin, end = alive[1]
    assert begin == 0 and end >= alive[2][1], "read in every iteration: alive to the loop's end"
    assert alive[2][0] > begin and alive[3][1] > alive[2][1]


def test_equal_programs_have_equal_code() -> None:
    text = [jax.jit(lambda x: jnp.sin(x) + 1).lower(np.ones(3, np.float32)).compile().as_text() for _ in range(2)]
    assert text[0] == text[1]
