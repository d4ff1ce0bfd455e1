"""Refs handed to transformed functions, written by backward passes, and looked at ahead of time.

Right values are those that JAX 0.12 gives, written down; where it has none they are worked out by hand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jaxlite as jax
import jaxlite.numpy as jnp
import jaxlite.ref as jref
from jaxlite import lax
from jaxlite.core.avals import ShapedArray
from jaxlite.core.ref import CapturedRef

COS = np.float32(0.5403023)  # of 1


def equal(got: Any, want: Any) -> None:
    np.testing.assert_array_equal(np.asarray(got), np.asarray(want))


def close(got: Any, want: Any) -> None:
    """Within 2 ulp: sin and cos are, and a float32 literal is half an ulp off; the products here are by powers of 2."""
    np.testing.assert_allclose(np.asarray(got), np.asarray(want, np.float32), rtol=3 * 2.0**-23)


# -- vmap ---------------------------------------------------------------------------------------


def test_each_example_has_its_part_of_a_mapped_ref() -> None:
    out = jax.new_ref(jnp.zeros(3))

    def scale_into(x: Any, ref: Any) -> Any:
        assert (ref.shape, repr(ref)) == ((), "Ref{float32[]}")
        ref[...] += 2 * x
        return ref[...] * 10

    equal(jax.vmap(scale_into)(jnp.arange(3.0), out), [0, 20, 40])
    equal(out[...], [0, 2, 4])
    equal(jax.jit(jax.vmap(scale_into))(jnp.arange(3.0), out), [0, 40, 80])
    equal(jax.vmap(jax.jit(scale_into))(jnp.arange(3.0), out), [0, 60, 120])
    equal(out[...], [0, 6, 12])


def test_a_ref_is_mapped_along_any_axis() -> None:
    ref = jax.new_ref(jnp.arange(6.0).reshape(2, 3))

    def f(x: Any, column: Any) -> Any:
        column[0] += x
        return column[...]

    want = [[0, 2, 4], [3, 4, 5]]
    equal(jax.vmap(f, in_axes=(0, 1), out_axes=1)(jnp.arange(3.0), ref), want)
    equal(ref[...], want)
    jax.vmap(f, in_axes=(None, -1), out_axes=1)(1.0, ref)
    equal(ref[...], [[1, 3, 5], [3, 4, 5]])
    each = jax.new_ref(jnp.zeros((2, 3)))
    jax.vmap(jax.vmap(lambda x, r: r.addupdate(x)))(jnp.arange(6.0).reshape(2, 3), each)
    equal(each[...], [[0, 1, 2], [3, 4, 5]])
    tree = {"a": jax.new_ref(jnp.zeros(3))}
    jax.vmap(lambda x, t: t["a"].addupdate(lax.psum(x, "i")), axis_name="i")(jnp.arange(3.0), t=tree)
    equal(tree["a"][...], [3, 3, 3])


def test_loops_branches_and_derivatives_within_vmap() -> None:
    ref = jax.new_ref(jnp.zeros(3))

    def running(xs: Any, total: Any) -> Any:
        def body(_: Any, x: Any) -> Any:
            total[...] += x
            return _, total[...]

        return lax.scan(body, None, xs)[1]

    equal(jax.vmap(running)(jnp.arange(6.0).reshape(3, 2), ref), [[0, 1], [2, 5], [4, 9]])
    equal(ref[...], [1, 5, 9])
    marks = jax.new_ref(jnp.zeros(3))

    def mark(p: Any, r: Any) -> None:
        lax.cond(p, lambda: r.addupdate(1.0), lambda: r.addupdate(2.0))

    jax.vmap(mark)(jnp.array([True, False, True]), marks)
    equal(marks[...], [1, 2, 1])

    def noting(x: Any, r: Any) -> Any:
        r[...] = lax.stop_gradient(x) * 2
        return x**2

    equal(jax.vmap(jax.grad(noting))(jnp.arange(3.0), ref), [0, 2, 4])
    equal(ref[...], [0, 2, 4])


@pytest.mark.parametrize("compiled", [False, True])
def test_a_mapped_ref_comes_in_one_way(compiled: bool) -> None:
    ref = jax.new_ref(jnp.zeros(3))
    wrap: Callable[[Any], Any] = jax.jit if compiled else lambda f: f
    if not compiled:
        with pytest.raises(ValueError, match="passed as the argument a and as b"):
            jax.vmap(lambda a, b: None)(ref, ref)
        with pytest.raises(ValueError, match="passed as the argument a and as b"):
            jax.vmap(lambda a, b: None, in_axes=(0, None))(ref, ref)
    with pytest.raises(ValueError, match="both closed over and passed as the argument a"):
        wrap(lambda: jax.vmap(lambda a: a.addupdate(ref[0]))(ref))()
    with pytest.raises(ValueError, match=r"inconsistent sizes(.|\n)*argument b of type float32\[3\]"):
        jax.vmap(lambda a, b: None)(jnp.ones(2), ref)
    kept: list[Any] = []
    jax.vmap(kept.append)(ref)
    with pytest.raises(ValueError, match="can be neither read nor written"):
        kept[0][...]
    equal(ref[...], np.zeros(3))


def test_a_batch_writes_no_ref_from_outside_whatever_the_value() -> None:
    ref = jax.new_ref(0.0)

    def add(x: Any) -> None:
        ref.addupdate(1.0)

    def loop(x: Any) -> None:
        lax.fori_loop(0, 2, lambda i, c: add(x), None)

    for f in (add, loop, jax.jit(add), jax.vmap(add, in_axes=None, axis_size=2)):
        with pytest.raises(ValueError, match="written in it, by every example at once"):
            jax.vmap(f)(jnp.ones(3))
    equal(jax.vmap(lambda x: x + ref[...])(jnp.arange(3.0)), [0, 1, 2])
    with pytest.raises(ValueError, match="batched by vmap"):
        jax.vmap(lambda x, r: r.addupdate(1.0), in_axes=(0, None))(jnp.ones(3), ref)
    equal(ref[...], 0.0)


# -- operands of branches, checkpoint -----------------------------------------------------------


@pytest.mark.parametrize("compiled", [False, True])
def test_branches_and_checkpoint_take_refs(compiled: bool) -> None:
    a, b = jax.new_ref(0.0), jax.new_ref(jnp.zeros(2))
    wrap: Callable[[Any], Any] = jax.jit if compiled else lambda f: f

    def first(pair: Any, x: Any) -> Any:
        pair["a"][...] = x
        return 2 * x

    def second(pair: Any, x: Any) -> Any:
        pair["b"][1] = x
        return 3 * x

    @wrap
    def choose(p: Any, x: Any) -> Any:
        return lax.cond(p, first, second, {"a": a, "b": b}, x)

    equal(choose(True, 5.0), 10.0)
    equal(choose(False, 7.0), 21.0)
    equal((a[...], b[1]), (5, 7))
    wrap(lambda i: lax.switch(i, [lambda r: None, lambda r: r.addupdate(100.0)], a))(1)
    equal(a[...], 105.0)

    @jax.checkpoint
    def count(x: Any, r: Any) -> Any:
        r[...] += 1.0
        return x * x

    equal(wrap(lambda x: count(x, a))(3.0), 9.0)
    equal(wrap(jax.grad(lambda x: count(x, a)))(3.0), 6.0)
    equal(a[...], 107.0)


def test_a_condition_only_reads() -> None:
    ref = jax.new_ref(0.0)

    def going(i: Any) -> Any:
        ref[...] += 1.0
        return i < 3

    with pytest.raises(NotImplementedError, match=r"while_loop: cond_fun writes a Ref\{float32\[\]\}"):
        lax.while_loop(going, lambda i: i + 1, 0)
    equal(ref[...], 0.0)


# -- backward passes ----------------------------------------------------------------------------


def stash() -> Any:
    """The identity, whose backward pass leaves the cotangent in a ref that it is handed."""

    @jax.custom_vjp
    def identity(ref: Any, x: Any) -> Any:
        return x

    def backward(ref: Any, g: Any) -> Any:
        ref[...] += g
        return None, g

    identity.defvjp(lambda ref, x: (x, ref), backward)
    return identity


WAYS: dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]] = {
    "grad": lambda f: jax.grad(f),
    "jit of grad": lambda f: jax.jit(jax.grad(f)),
    "grad of jit": lambda f: jax.grad(jax.jit(f)),
    "grad of checkpoint": lambda f: jax.grad(jax.checkpoint(f)),
    "grad of cond": lambda f: jax.grad(lambda x: lax.cond(x > 0, f, lambda x: x, x)),
    "grad of two jits": lambda f: jax.grad(jax.jit(lambda x: jax.jit(f)(x))),
    "grad of scan": lambda f: jax.grad(lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=1)[0]),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_backward_pass_writes_what_it_is_handed(way: str) -> None:
    keep, seen = stash(), jax.new_ref(0.0)
    slope = WAYS[way](lambda x: jnp.sin(keep(seen, x)))
    for total in (COS, 2 * COS, 3 * COS):
        close(slope(1.0), COS)
        np.testing.assert_allclose(np.asarray(seen[...]), total, rtol=5 * 2.0**-23)  # each sum rounds once more
    seen[...] = 0.0
    close(slope(1.0), COS)
    close(seen[...], COS)


def test_a_loop_adds_up_the_cotangents_of_its_steps() -> None:
    keep, seen, order = stash(), jax.new_ref(0.0), jax.new_ref(jnp.zeros(4))

    @jax.custom_vjp
    def note(x: Any) -> Any:
        return x

    def backward(_: Any, g: Any) -> Any:
        place = order[0].astype(int)
        order[place + 1] = g
        order[0] += 1.0
        return (g,)

    note.defvjp(lambda x: (x, None), backward)

    def f(x: Any) -> Any:
        return lax.scan(lambda c, _: (note(keep(seen, c)) * 2, None), x, None, length=3)[0]

    equal(jax.grad(f)(1.0), 8.0)  # the cotangents are 2, 4, 8, the last step's first
    equal(seen[...], 14.0)
    equal(order[...], [3, 2, 4, 8])
    order[...] = jnp.zeros(4)
    equal(jax.jit(jax.value_and_grad(f))(1.0), (8, 8))
    equal(seen[...], 28.0)
    equal(order[...], [3, 2, 4, 8])


def test_a_batch_of_backward_passes() -> None:
    keep, seen, out = stash(), jax.new_ref(jnp.zeros(3)), jax.new_ref(0.0)
    slope = jax.grad(lambda x, ref: jnp.sin(keep(ref, x)))
    want = np.cos(np.arange(3.0))
    close(jax.vmap(slope)(jnp.arange(3.0), seen), want)
    close(seen[...], want)
    equal(jax.vmap(keep, in_axes=(None, 0))(out, jnp.arange(2.0)), [0, 1])
    with pytest.raises(ValueError, match="batched by vmap"):
        jax.vmap(jax.grad(lambda x: keep(out, x)))(jnp.arange(3.0))
    equal(out[...], 0.0)
    with pytest.raises(ValueError, match="can be neither read nor written"):  # the parts are gone by then
        jax.grad(lambda x: jax.vmap(keep)(seen, x).sum())(jnp.arange(3.0))


def test_what_a_backward_pass_cannot_do_is_an_error() -> None:
    keep, seen = stash(), jax.new_ref(0.0)
    with pytest.raises(CapturedRef, match="after the function that made it returned"):
        jax.grad(jax.jit(lambda x, r: keep(r, x)))(1.0, seen)
    close(jax.jit(jax.grad(lambda x, r: jnp.sin(keep(r, x))))(1.0, seen), COS)
    close(seen[...], COS)

    @jax.custom_vjp
    def wrong(ref: Any, x: Any) -> Any:
        return x

    wrong.defvjp(lambda ref, x: (x, ref), lambda ref, g: (g, g))
    with pytest.raises(TypeError, match=r"must produce None for the Ref\{float32\[\]\} in argument 0"):
        jax.grad(wrong, argnums=1)(seen, 1.0)


# -- types, places, jaxprs ----------------------------------------------------------------------


def test_the_type_of_a_ref() -> None:
    kind = jax.typeof(jax.new_ref(jnp.arange(3.0)))
    assert type(kind) is jref.AbstractRef
    assert (str(kind), kind.shape, kind.ndim, kind.size) == ("Ref{float32[3]}", (3,), 1, 3)
    assert kind.dtype == np.float32 and str(kind.inner_aval) == "float32[3]"
    same = jref.AbstractRef(ShapedArray((3,), np.dtype("f4")))
    assert kind == same and hash(kind) == hash(same)
    assert kind != jref.AbstractRef(ShapedArray((2,), np.dtype("f4"))) and kind != same.inner_aval


def test_places_in_a_ref() -> None:
    ref = jax.new_ref(jnp.arange(5))
    part = ref.at[1:4]
    assert (part.shape, part.ndim, part.dtype) == ((3,), 1, np.dtype("i4"))
    part[0] = 9
    part.at[1:][0] += 10
    equal(part[...], [9, 12, 3])
    equal(jref.swap(part, 2, 7), 3)
    jref.addupdate(part, jnp.array([0, 0]), jnp.array([1, 1]))
    equal(ref[...], [0, 11, 12, 7, 4])
    jax.jit(lambda: part.at[...].__setitem__(0, 0))()
    equal(ref[1], 0)
    with pytest.raises(ValueError, match="index 5 is out of bounds"):
        ref.at[5]
    with pytest.raises(TypeError, match="freeze takes a Ref, got a place"):
        jax.freeze(part)


def test_jaxprs_of_functions_with_refs_take_and_give_values() -> None:
    outer, read = jax.new_ref(1.0), jax.new_ref(2.0)

    def f(ref: Any, x: Any) -> Any:
        ref[...] = ref[...] * x
        outer[...] += x
        return read[...] + x

    ref = jax.new_ref(jnp.arange(3.0))
    closed = jax.make_jaxpr(f)(ref, 2.0)
    assert [a.short() for a in closed.in_avals] == ["f32[3]", "f32[]"]
    assert sorted(map(float, closed.consts)) == [1.0, 2.0]
    # the result, then the last values of what is written: of refs closed over, then of arguments
    assert [a.short() for a in closed.out_avals] == ["f32[]", "f32[]", "f32[3]"]
    shape = jax.eval_shape(f, ref, jax.ShapeDtypeStruct((), np.float32))
    assert (shape.shape, shape.dtype) == ((), np.dtype("f4"))
    equal((outer[...], ref[...].sum()), (1, 3))
    assert [e.primitive.name for e in jax.make_jaxpr(lambda: read[...])().eqns] == []
