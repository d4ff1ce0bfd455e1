"""scan, while_loop, fori_loop, cond and switch: against Python, under every transformation, native, and refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jaxlite as jax
import jaxlite.numpy as jnp
from jaxlite import lax
from jaxlite.backends.cpu import hostcall

X = np.linspace(0.1, 1.0, 5, dtype=np.float32)
EPS = float(np.finfo(np.float32).eps)  # one ulp of numbers just above 1
CLOSE = {"rtol": 1e-5, "atol": 1e-6}  # sums of at most 30 float32 terms, each a few ulps


def step(c: Any, x: Any) -> Any:
    return c * jnp.cos(x) + x, {"y": c * x}


def by_scan(c: Any, xs: Any) -> Any:
    return lax.scan(step, c, xs)


def by_python(c: Any, xs: Any) -> Any:
    ys = []
    for i in range(len(xs)):
        c, y = step(c, xs[i])
        ys.append(y["y"])
    return c, {"y": jnp.stack(ys)}


def loss(f: Any) -> Any:
    def scalar(c: Any, xs: Any) -> Any:
        carry, ys = f(c, xs)
        return carry * 2 + (ys["y"] ** 2).sum()

    return scalar


def assert_same(a: Any, b: Any) -> None:
    assert jax.tree.structure(a) == jax.tree.structure(b)
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_allclose(x, y, **CLOSE)


TRANSFORMED = {
    "value": lambda f: f,
    "jit": lambda f: jax.jit(f),
    "jvp": lambda f: lambda c, xs: jax.jvp(f, (c, xs), (1.0, xs * 2)),
    "jit of jvp": lambda f: jax.jit(lambda c, xs: jax.jvp(f, (c, xs), (1.0, xs * 2))),
    "grad": lambda f: jax.grad(loss(f), (0, 1)),
    "jit of grad": lambda f: jax.jit(jax.grad(loss(f), (0, 1))),
    "grad of jit": lambda f: jax.grad(loss(jax.jit(f)), (0, 1)),
    "hessian": lambda f: jax.hessian(loss(f), 1),
    "vmap of carry": lambda f: lambda c, xs: jax.vmap(f, (0, None))(jnp.stack([c, 2 * c]), xs),
    "vmap of inputs": lambda f: lambda c, xs: jax.vmap(f, (None, 1))(c, jnp.stack([xs, xs * 2], 1)),
    "grad of vmap": lambda f: jax.grad(
        lambda c, xs: jax.vmap(loss(f), (None, 0))(c, jnp.stack([xs, xs * 2])).sum(), (0, 1)
    ),
    "vmap of grad": lambda f: (
        lambda c, xs: jax.jit(jax.vmap(jax.grad(loss(f), (0, 1)), (0, None)))(jnp.stack([c, 2 * c]), xs)
    ),
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_scan_is_a_python_loop(name: str) -> None:
    c, xs = jnp.float32(0.5), jnp.asarray(X)
    assert_same(TRANSFORMED[name](by_scan)(c, xs), TRANSFORMED[name](by_python)(c, xs))


def test_scan_reverse_and_closure() -> None:
    w = jnp.float32(3.0)

    def f(w: Any, xs: Any) -> Any:
        return lax.scan(lambda c, x: (c * w + x, c), jnp.float32(0), xs, reverse=True)

    def g(w: Any, xs: Any) -> Any:
        c, ys = jnp.float32(0), []
        for i in reversed(range(len(xs))):
            ys.insert(0, c)
            c = c * w + xs[i]
        return c, jnp.stack(ys)

    xs = jnp.asarray(X)
    assert_same(f(w, xs), g(w, xs))
    total = lambda f: lambda w, xs: f(w, xs)[0] + f(w, xs)[1].sum()
    assert_same(jax.jit(jax.grad(total(f), (0, 1)))(w, xs), jax.grad(total(g), (0, 1))(w, xs))


def test_a_million_steps_call_no_python() -> None:
    f = jax.jit(lambda x: lax.scan(lambda c, _: (c + 1, None), x, None, length=1_000_000)[0])
    before = hostcall.calls_made()
    assert float(f(0.0)) == 1_000_000.0
    assert hostcall.calls_made() == before


def test_length_zero() -> None:
    carry, ys = jax.jit(lambda c: lax.scan(lambda c, x: (c + x, x * 2), c, jnp.zeros((0, 3))))(jnp.ones(3))
    np.testing.assert_array_equal(carry, [1, 1, 1])
    assert ys.shape == (0, 3)


def test_fori_loop_static_and_traced_bounds() -> None:
    body = lambda i, c: c * 2 + i
    assert int(lax.fori_loop(0, 5, body, 1)) == 58
    assert int(jax.jit(lambda n: lax.fori_loop(0, n, body, 1))(5)) == 58
    assert int(lax.fori_loop(3, 1, body, 7)) == 7
    g = jax.grad(lambda x: lax.fori_loop(0, 4, lambda i, c: c * x, x))(2.0)
    assert float(g) == 80.0


def newton(a: Any) -> Any:
    return lax.while_loop(lambda x: jnp.abs(x * x - a) > 1e-4, lambda x: 0.5 * (x + a / x), a)


def test_while_loop() -> None:
    a = jnp.array([2.0, 9.0, 100.0])
    want = np.sqrt(np.asarray(a))
    # |x^2 - a| <= 1e-4 puts x within 1e-4 / 2a of the root, relatively: 2.5e-5 for a = 2; the product of the condition
    # is rounded to an ulp of a, which is as much as half an ulp of x.
    np.testing.assert_allclose(jnp.stack([newton(x) for x in a]), want, rtol=2.5e-5 + EPS)
    for f in (jax.vmap(newton), jax.jit(jax.vmap(newton))):
        got = f(a)
        np.testing.assert_array_equal(got, jnp.stack([newton(x) for x in a]))
    # Each example stops by itself: what the batch gives is what each gives alone, derivative included.
    _, slope = jax.jvp(newton, (2.0,), (1.0,))
    assert float(slope) == pytest.approx(0.5 / np.sqrt(2), rel=1e-3)


def test_every_example_stops_however_products_are_contracted() -> None:
    # The condition's products may round otherwise in the loop's two kernels; an example must not wait for itself for
    # ever.
    def root(t: Any) -> Any:
        f = lambda x: x**3 + t * x - 1.0
        start = (jnp.float32(1.0), 0)
        step = lambda s: (s[0] - f(s[0]) / jax.grad(f)(s[0]), s[1] + 1)
        return lax.while_loop(lambda s: (s[1] < 20) & (jnp.abs(f(s[0])) > 1e-6), step, start)

    x, steps = jax.jit(jax.vmap(root))(jnp.linspace(0.1, 3.0, 5000))
    assert int(steps.max()) < 20 and float(jnp.abs(x**3 + jnp.linspace(0.1, 3.0, 5000) * x - 1).max()) < 2e-6


def test_reverse_through_while_names_line_and_way_out() -> None:
    with pytest.raises(ValueError, match=r"(?s)test_control_flow.py.*lax.scan") as error:
        jax.grad(newton)(2.0)
    assert "line" in str(error.value)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_cond_under_transformations(wrap: Any) -> None:
    f = lambda p, x: lax.cond(p, lambda x: jnp.sin(x) * x, lambda x: x**3, x)
    for p, g in ((True, lambda x: np.sin(x) + x * np.cos(x)), (False, lambda x: 3 * x * x)):
        assert float(wrap(jax.grad(f, 1))(p, 1.5)) == pytest.approx(float(g(1.5)), rel=1e-6)
    ps, xs = jnp.array([True, False, True]), jnp.array([1.0, 2.0, 3.0])
    rows = jnp.stack([f(p, x) for p, x in zip(ps, xs, strict=True)])
    # Both sides are the same products of the same sine, which compiled code may contract: an ulp for each of two.
    np.testing.assert_allclose(wrap(jax.vmap(f))(ps, xs), rows, rtol=2 * EPS)
    np.testing.assert_allclose(
        wrap(jax.vmap(f, (None, 0)))(True, xs), jnp.stack([f(True, x) for x in xs]), rtol=2 * EPS
    )
    slopes = jnp.stack([jax.grad(f, 1)(p, x) for p, x in zip(ps, xs, strict=True)])
    # A slope is a sum of two such products, none of which cancels here.
    np.testing.assert_allclose(wrap(jax.vmap(jax.grad(f, 1)))(ps, xs), slopes, rtol=4 * EPS)


def test_switch_clamps() -> None:
    branches = [lambda x: x, lambda x: x * 10, lambda x: x * 100]
    f = jax.jit(lambda i, x: lax.switch(i, branches, x))
    assert [float(f(i, 1.0)) for i in (-3, 0, 1, 2, 9)] == [1, 1, 10, 100, 100]


def test_closures_over_arrays_and_tracers() -> None:
    table = jnp.arange(4.0)

    def f(x: Any) -> Any:
        return lax.cond(x > 0, lambda: (table * x).sum(), lambda: table.max() * x)

    assert float(jax.jit(f)(2.0)) == 12.0 and float(jax.grad(f)(-1.0)) == 3.0


def test_nested_loops() -> None:
    def f(x: Any) -> Any:
        def outer(c: Any, i: Any) -> Any:
            return lax.fori_loop(0, 3, lambda j, v: v + i * c, c), c

        return lax.scan(outer, x, jnp.arange(3.0))

    def g(x: Any) -> Any:
        ys, c = [], x
        for i in range(3):
            ys.append(c)
            v = c
            for _ in range(3):
                v = v + i * c
            c = v
        return c, jnp.stack(ys)

    assert_same(jax.jit(f)(jnp.float32(1.5)), g(jnp.float32(1.5)))
    assert_same(jax.jit(jax.grad(lambda x: f(x)[0]))(1.5), jax.grad(lambda x: g(x)[0])(1.5))


WEAK_CARRIES = {
    "fori_loop": (lambda: lax.fori_loop(0, 3, lambda i, c: c * 1.5, 1), 3.375),
    "fori_loop, traced bound": (lambda: jax.jit(lambda n: lax.fori_loop(0, n, lambda i, c: c * 1.5, 1))(3), 3.375),
    "scan": (lambda: lax.scan(lambda c, x: (c * 1.5, None), 1, None, length=3)[0], 3.375),
    "while_loop": (lambda: lax.while_loop(lambda c: c < 3, lambda c: c * 1.5, 1), 3.375),
    "weak array": (lambda: lax.fori_loop(0, 3, lambda i, c: c * 1.5, jnp.asarray(1)), 3.375),
    "swapped, first": (lambda: lax.fori_loop(0, 3, lambda i, c: (c[1], c[0]), (1, 2.5))[0], 2.5),
    "swapped, second": (lambda: lax.scan(lambda c, _: ((c[1], c[0]), None), (1, 2.5), None, length=1)[0][1], 1.0),
    "slope": (lambda: jax.grad(lambda x: lax.fori_loop(0, 3, lambda i, c: c * x, 1))(2.0), 12.0),
}


@pytest.mark.parametrize("name", WEAK_CARRIES)
def test_weak_integers_become_what_the_body_gives(name: str) -> None:
    loop, wanted = WEAK_CARRIES[name]
    result = loop()
    assert result.dtype == jnp.float32 and float(result) == wanted


def test_a_weak_carry_takes_the_width_of_the_body() -> None:
    a, b = lax.fori_loop(0, 3, lambda i, c: (c[1], c[0]), (1, jnp.float16(2.5)))
    assert (a.dtype, float(a)) == (jnp.float16, 2.5) and (b.dtype, float(b)) == (jnp.float16, 1.0)


REFUSED = [
    (
        lambda: lax.scan(lambda c, x: (jnp.ones(2), x), jnp.ones(3), jnp.ones(4)),
        TypeError,
        r"float32\[3\].*float32\[2\]",
    ),
    (lambda: lax.scan(lambda c, x: ({"a": c}, x), jnp.ones(3), jnp.ones(4)), TypeError, "structure"),
    (lambda: lax.scan(lambda c, x: c, 1.0, jnp.ones(4)), TypeError, "must be a pair"),
    (
        lambda: lax.scan(lambda c, x: (c, x), 1.0, (jnp.ones(4), jnp.ones(5))),
        ValueError,
        r"xs\[0\] has 4, xs\[1\] has 5",
    ),
    (lambda: lax.scan(lambda c, x: (c, x), 1.0, None), ValueError, "length"),
    (lambda: lax.scan(lambda c, x: (c, x), 1.0, jnp.ones(4), length=3), ValueError, "disagrees"),
    (lambda: lax.scan(lambda c, x: (c, "text"), 1.0, jnp.ones(4)), TypeError, r"result\[1\] is a str"),
    (lambda: lax.while_loop(lambda x: x, lambda x: x, 1.0), TypeError, "boolean scalar"),
    (lambda: lax.while_loop(lambda x: x < 1, lambda x: jnp.int32(1), 1.0), TypeError, "carry goes in as float32"),
    (lambda: lax.cond(True, lambda x: x, lambda x: (x, x), 1.0), TypeError, "structure"),
    (
        lambda: lax.cond(True, lambda x: x, lambda x: jnp.ones(2), 1.0),
        TypeError,
        r"float32\[2\] in false_fun|false_fun but",
    ),
    (lambda: lax.cond(jnp.ones(2) > 0, lambda: 1, lambda: 2), TypeError, "Pred must be a scalar"),
    (lambda: lax.switch(0, []), ValueError, "Empty branch"),
    (
        lambda: lax.fori_loop(0, 3, lambda i, c: {"a": c["a"] * 1.5}, {"a": jnp.int32(1)}),
        TypeError,
        r"fori_loop: body_fun must .*\n  carry\['a'\] goes in as int32\[\] and comes out as float32\[\]",
    ),
    (
        lambda: jax.jit(lambda n: lax.fori_loop(0, n, lambda i, c: {"a": c["a"] * 1.5}, {"a": jnp.int32(1)}))(3),
        TypeError,
        r"fori_loop: body_fun must .*\n  carry\['a'\] goes in as int32\[\] and comes out as float32\[\]",
    ),
    (
        lambda: lax.fori_loop(0, 3, lambda i, c: (c, c), 1),
        TypeError,
        r"input carry has structure PyTreeDef\(\*\) and the output carry PyTreeDef\(\(\*, \*\)\)",
    ),
    (lambda: lax.fori_loop(0, 3, lambda i, c: jnp.int32(2), 1.5), TypeError, "carry goes in as float32"),
    (lambda: lax.fori_loop(0, 3, lambda i, c: c * 1.5, True), TypeError, "carry goes in as bool"),
    (lambda: lax.fori_loop(0.5, 3, lambda i, x: x, 1), TypeError, "lower must be an integer"),
]


@pytest.mark.parametrize("call, error, message", REFUSED, ids=range(len(REFUSED)))
def test_refused(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
