"""Refs: cells that eager code, compiled programs and loops read and write.  Right values are worked out by hand."""

from __future__ import annotations

import functools
import sys
import threading
from typing import Any

import numpy as np
import pytest

import jaxlite as jax
import jaxlite.numpy as jnp
from jaxlite import lax
from jaxlite.core.ref import CapturedRef


def equal(got: Any, want: Any) -> None:
    np.testing.assert_array_equal(np.asarray(got), np.asarray(want))


# -- cells --------------------------------------------------------------------------------------


def test_a_ref_is_read_and_written_at_any_index() -> None:
    ref = jax.new_ref(jnp.arange(6.0).reshape(2, 3))
    assert (ref.shape, ref.dtype, ref.ndim, ref.size, len(ref)) == ((2, 3), np.dtype("f4"), 2, 6, 2)
    assert repr(ref) == "Ref([[0., 1., 2.],\n       [3., 4., 5.]], dtype=float32)"
    equal(ref[...], [[0, 1, 2], [3, 4, 5]])
    equal(ref[1], [3, 4, 5])
    equal(ref[:, ::2], [[0, 2], [3, 5]])
    equal(ref[None].shape, (1, 2, 3))
    ref[0, 1] = 9.0
    ref[1] += jnp.ones(3)
    ref[jnp.array([0, 1]), jnp.array([2, 2])] = jnp.array([7.0, 8.0])
    equal(ref[...], [[0, 9, 7], [4, 5, 8]])
    ref[...] = jnp.zeros((2, 3))
    equal(ref[()], np.zeros((2, 3)))


def test_functions_do_what_the_brackets_do() -> None:
    ref = jax.new_ref(jnp.array([10, 20, 30]))
    equal(jax.ref.get(ref, 1), 20)
    equal(jax.ref.get(ref), [10, 20, 30])
    equal(jax.ref.swap(ref, 1, 5), 20)
    jax.ref.set(ref, slice(0, 1), jnp.array([1]))
    jax.ref.addupdate(ref, (slice(None),), jnp.array([1, 1, 1]))
    equal(jax.ref.swap(ref, ..., jnp.array([0, 0, 0])), [2, 6, 31])
    equal(jax.ref.swap(ref, None, jnp.array([4, 4, 4])), [0, 0, 0])
    ref.addupdate(1, 0)
    equal(ref[...], [5, 4, 4])
    assert jax.ref.empty_ref(jax.ShapeDtypeStruct((2,), np.float32)).shape == (2,)


def test_a_number_becomes_an_array_of_a_strong_type() -> None:
    ref = jax.new_ref(1.0)
    assert repr(ref) == "Ref(1., dtype=float32)"
    ref[...] = 2
    assert repr(ref[...]) == "Array(2., dtype=float32)"


def test_a_frozen_or_freed_ref_is_over() -> None:
    ref = jax.new_ref(jnp.ones(2))
    equal(jax.freeze(ref), [1, 1])
    for use in (lambda: ref[...], lambda: jax.freeze(ref), lambda: ref.__setitem__(0, 1.0)):
        with pytest.raises(ValueError, match="frozen or freed"):
            use()
    other = jax.new_ref(1.0)
    jax.free_ref(other)
    with pytest.raises(ValueError, match=r"Ref\{float32\[\]\} was frozen or freed"):
        other[...]


@pytest.mark.parametrize(
    ("use", "error", "message"),
    [
        (lambda r: r.__setitem__(..., jnp.ones(4)), ValueError, r"place is float32\[3\], the value float32\[4\]"),
        (lambda r: r.__setitem__(..., 3), ValueError, r"place is float32\[3\], the value int32\[\]"),
        (lambda r: r.__setitem__(..., jnp.arange(3)), ValueError, r"the value int32\[3\]"),
        (lambda r: jax.ref.addupdate(r, 0, jnp.ones(2)), ValueError, "ref.addupdate"),
        (lambda r: jnp.sum(r), TypeError, r"read it with ref\[...\]"),
        (lambda r: jnp.ones(3) + r, TypeError, "Ref"),
        (lambda r: float(r), TypeError, "Ref"),
        (lambda r: list(r), TypeError, "cannot be iterated over"),
        (lambda r: jax.new_ref(r), TypeError, r"write new_ref\(ref\[...\]\)"),
        (lambda r: jax.new_ref([1.0]), TypeError, "not a valid JAX type"),
        (lambda r: jax.new_ref(1.0, kind="odd"), ValueError, "no_grad_no_remat"),
        (lambda r: jax.freeze(jnp.ones(3)), TypeError, "takes a Ref"),
        (lambda r: jax.jit(lambda a, b: a[0] + b[0])(r, r), ValueError, "argument a and passed as the argument b"),
        (lambda r: jax.jit(lambda a: r[0] + a[0])(r), ValueError, "both closed over and passed as the argument a"),
        (lambda r: jax.jit(lambda a: a)(r), TypeError, "is a Ref"),
        (lambda r: jax.grad(lambda a: a[0])(r), TypeError, "Ref"),
        (lambda r: lax.scan(lambda c, x: (c, x), 0, r), TypeError, r"read it with ref\[...\]"),
        (lambda r: jax.grad(lambda x: (r.__setitem__(0, x), x)[1])(1.0), ValueError, "being differentiated"),
        (lambda r: jax.vmap(lambda x: r.__setitem__(0, x))(jnp.ones(2)), ValueError, "batched by vmap"),
    ],
)
def test_wrong_uses_say_what_to_write(use: Any, error: type[Exception], message: str) -> None:
    ref = jax.new_ref(jnp.arange(3.0))
    with pytest.raises(error, match=message):
        use(ref)
    equal(ref[...], [0, 1, 2])


# -- compiled programs --------------------------------------------------------------------------


def test_jit_updates_refs_among_its_arguments() -> None:
    traces = []

    @jax.jit
    def step(state: dict[str, Any], x: Any) -> Any:
        traces.append(1)
        state["sum"][...] += x
        state["count"][0] = state["count"][0] + 1
        return state["sum"][...] * 2

    state = {"sum": jax.new_ref(0.0), "count": jax.new_ref(jnp.array([0, 0]))}
    equal(step(state, 3.0), 6.0)
    equal(step(state, 4.0), 14.0)
    equal(state["sum"][...], 7.0)
    equal(state["count"][...], [2, 0])
    assert len(traces) == 1
    other = {"sum": jax.new_ref(1.0), "count": jax.new_ref(jnp.array([5, 5]))}
    equal(step(other, 1.0), 4.0)
    equal(other["count"][...], [6, 5])
    equal(state["sum"][...], 7.0)
    assert len(traces) == 1


def test_jit_updates_refs_that_it_closes_over() -> None:
    first, second = jax.new_ref(1.0), jax.new_ref(jnp.zeros(2))

    @jax.jit
    def step(x: Any) -> Any:
        second[0] += x
        first[...] = first[...] * 2.0
        return first[...] + second[0]

    equal(step(1.0), 3.0)
    equal(step(1.0), 6.0)
    first[...] = 10.0
    equal(step(0.0), 22.0)
    equal(first[...], 20.0)
    equal(second[...], [2, 0])


def test_static_arguments_keywords_and_nested_jits() -> None:
    ref = jax.new_ref(0.0)
    inner = jax.jit(lambda x: ref.__setitem__(..., ref[...] + x))

    @jax.jit
    def outer(x: Any) -> Any:
        inner(x)
        inner(2 * x)
        return ref[...]

    equal(outer(1.0), 3.0)
    equal(outer(1.0), 6.0)
    inner(1.0)
    equal(ref[...], 7.0)
    power = jax.jit(lambda cell, n, *, factor: cell.__setitem__(..., cell[...] ** n * factor), static_argnums=1)
    power(ref, 2, factor=2.0)
    equal(ref[...], 98.0)
    with jax.disable_jit():
        power(ref, 1, factor=0.5)
    equal(ref[...], 49.0)


def test_a_ref_lives_inside_a_program() -> None:
    def f(x: Any) -> Any:
        ref = jax.new_ref(x)
        ref[...] = ref[...] * x
        ref[...] += 1.0
        return jax.freeze(ref)

    equal(jax.jit(f)(3.0), 10.0)
    equal(jax.grad(f)(3.0), 6.0)
    equal(jax.vmap(f)(jnp.arange(3.0)), [1, 2, 5])
    equal(jax.jit(jax.vmap(jax.grad(f)))(jnp.arange(3.0)), [0, 2, 4])
    assert [e.primitive.name for e in jax.make_jaxpr(f)(3.0).eqns] == ["convert_element_type", "mul", "add"]


def test_a_ref_that_left_its_program_is_refused() -> None:
    kept: list[Any] = []
    jax.jit(lambda x: kept.append(jax.new_ref(x)))(1.0)
    with pytest.raises(CapturedRef, match=r"Ref\{float32\[\]\}.*after the function"):
        kept[0][...]


# -- control flow -------------------------------------------------------------------------------


@pytest.mark.parametrize("compiled", [False, True])
def test_loops_and_branches_write_in_order(compiled: bool) -> None:
    ref, log = jax.new_ref(0.0), jax.new_ref(jnp.zeros(8))

    def program(xs: Any) -> Any:
        def body(i: Any, x: Any) -> Any:
            ref[...] = 2 * ref[...] + x
            log[i] = ref[...]
            return i + 1, ref[...]

        i, ys = lax.scan(body, 0, xs)

        def count(k: Any, i: Any) -> Any:
            ref[...] += 1.0
            log[i] = ref[...]
            return i + 1

        i = lax.fori_loop(0, 2, count, i)
        i = lax.while_loop(lambda i: (ref[...] < 10.0) & (i < 8), lambda i: count(0, i), i)
        lax.cond(ref[...] > 9.0, lambda: log.addupdate(0.5, 0), lambda: log.addupdate(0.25, 0))
        lax.switch(1, [lambda: None, lambda: ref.addupdate(100.0)])
        lax.map(lambda x: ref.addupdate(x), xs)
        return ys

    ys = (jax.jit(program) if compiled else program)(jnp.array([1.0, 0.0, 1.0]))
    # 1, 2, 5; then 6, 7; then up to 10
    equal(ys, [1, 2, 5])
    equal(log[...], [1.5, 2, 5, 6, 7, 8, 9, 10])
    equal(ref[...], 112.0)


def test_a_checkpointed_function_writes_once() -> None:
    ref = jax.new_ref(0.0)

    def f(x: Any) -> Any:
        ref[...] += 1.0
        return jnp.sin(x) * ref[...]

    assert float(jax.checkpoint(f)(0.0)) == 0.0
    equal(ref[...], 1.0)
    equal(jax.grad(jax.checkpoint(f))(0.0), 2.0)
    equal(ref[...], 2.0)


@pytest.mark.parametrize("loop", ["scan", "fori_loop", "while_loop"])
def test_a_wrong_carry_is_named_as_the_user_wrote_it(loop: str) -> None:
    ref = jax.new_ref(0.0)

    def body(c: Any) -> Any:
        ref[...] += 1.0
        return {"a": c["a"], "b": c["b"] + 0.5}

    start = {"a": 1.0, "b": jnp.int32(0)}
    loops = {
        "scan": lambda: lax.scan(lambda c, _: (body(c), None), start, length=2),
        "fori_loop": lambda: lax.fori_loop(0, 2, lambda i, c: body(c), start),
        "while_loop": lambda: lax.while_loop(lambda c: c["a"] < 2.0, body, start),
    }
    with pytest.raises(TypeError, match=rf"{loop}: .*\n  carry\['b'\] goes in as int32\[\] and comes out as float32"):
        loops[loop]()
    equal(ref[...], 0.0)


# -- derivatives --------------------------------------------------------------------------------


def test_derivatives_flow_through_a_ref_in_a_loop() -> None:
    def f(x: Any) -> Any:
        total = jax.new_ref(0.0)

        def body(i: Any, _: Any) -> Any:
            total[...] += x**i
            return _

        lax.fori_loop(0, 4, body, None)
        return total[...]

    equal(f(2.0), 15.0)
    equal(jax.grad(f)(2.0), 1 + 2 * 2 + 3 * 4)
    equal(jax.jit(jax.grad(f))(2.0), 17.0)
    equal(jax.jvp(f, (2.0,), (1.0,))[1], 17.0)


def test_values_that_do_not_move_can_be_noted_outside() -> None:
    seen = jax.new_ref(0.0)

    def f(x: Any) -> Any:
        y = x * x
        seen[...] = lax.stop_gradient(y)
        return y * 3

    equal(jax.grad(f)(2.0), 12.0)
    equal(seen[...], 4.0)
    equal(jax.jit(jax.grad(f))(3.0), 18.0)
    equal(seen[...], 9.0)


def test_a_backward_pass_can_write_a_ref() -> None:
    seen = jax.new_ref(0.0)

    @jax.custom_vjp
    def note(x: Any) -> Any:
        return x

    def backward(_: Any, cotangent: Any) -> Any:
        seen[...] = cotangent
        return (cotangent,)

    note.defvjp(lambda x: (x, None), backward)
    equal(jax.grad(lambda x: 5.0 * note(x))(1.0), 5.0)
    equal(seen[...], 5.0)


# -- what was found by trying to break them -----------------------------------------------------


def test_code_that_catches_every_error_loses_nothing() -> None:
    ref = jax.new_ref(10.0)

    def read(x: Any) -> Any:
        try:
            return ref[...] + x
        except Exception:
            return x

    def write(x: Any) -> None:
        try:
            ref[...] = x
        except Exception:
            pass

    equal(jax.jit(read)(1.0), 11.0)
    equal(lax.scan(lambda c, _: (read(c), None), 1.0, length=1)[0], 11.0)
    equal(jax.jit(lambda x: lax.cond(x > 0, read, lambda x: x, x))(1.0), 11.0)
    jax.jit(write)(5.0)
    equal(ref[...], 5.0)

    def outer(x: Any) -> Any:
        try:
            return lax.fori_loop(0, 2, lambda i, c: read(c), x)
        except Exception:
            return x

    equal(jax.jit(outer)(0.0), 10.0)


def test_threads_have_their_own_programs() -> None:
    ref = jax.new_ref(jnp.ones(5))
    f = jax.jit(lambda x: ref[...].sum() + x)
    f(1.0)
    interval, results = sys.getswitchinterval(), []
    sys.setswitchinterval(1e-6)
    try:
        workers = [threading.Thread(target=lambda: results.extend(float(f(1.0)) for _ in range(50))) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    finally:
        sys.setswitchinterval(interval)
    assert results == [6.0] * 200
    equal(ref[...], np.ones(5))


def test_donated_arrays_leave_refs_alone() -> None:
    give = jax.jit(lambda x: x + 1, donate_argnums=0)
    x = jnp.zeros(3)
    ref = jax.new_ref(x)
    give(x)
    give(ref[...])
    value = jnp.ones(3)
    ref[...] = value
    give(value)
    equal(ref[...], [1, 1, 1])
    both = jax.jit(lambda r, y: r.addupdate(y), donate_argnums=1)
    y = jnp.ones(3)
    both(ref, y)
    assert y.is_deleted()
    equal(ref[...], [2, 2, 2])


def test_what_a_call_closes_over_belongs_to_its_signature() -> None:
    class Counter:
        def __init__(self) -> None:
            self.ref = jax.new_ref(0.0)

        @functools.partial(jax.jit, static_argnums=0)
        def step(self, x: Any) -> Any:
            self.ref[...] += x
            return self.ref[...]

    a, b = Counter(), Counter()
    equal((a.step(1.0), b.step(2.0)), [1, 2])
    jax.freeze(a.ref)
    equal(b.step(1.0), 3.0)
    with pytest.raises(ValueError, match="frozen"):
        a.step(1.0)

    def inside(x: Any) -> Any:
        return Counter().step(x)

    equal(jax.jit(inside)(4.0), 4.0)
    equal(Counter().step(3.0), 3.0)
    box = {"ref": jax.new_ref(1.0)}
    f = jax.jit(lambda x: x + box["ref"][...])
    equal(f(1.0), 2.0)
    jax.freeze(box["ref"])
    box["ref"] = jax.new_ref(5.0)
    equal(f(1.0), 6.0)


def test_outer_refs_cannot_be_frozen_in_a_program() -> None:
    ref = jax.new_ref(1.0)
    for call in (lambda: jax.jit(lambda: jax.freeze(ref))(), lambda: jax.jit(jax.freeze)(ref)):
        with pytest.raises(ValueError, match="from outside cannot be frozen"):
            call()
    equal(ref[...], 1.0)


@pytest.mark.parametrize("index", [4, -5, 10**20, (4,), (None, 4), np.int32(4)])
def test_numbers_outside_are_refused(index: Any) -> None:
    ref = jax.new_ref(jnp.arange(4.0))
    uses = (lambda: ref[index], lambda: ref.__setitem__(index, 1.0), lambda: jax.ref.addupdate(ref, index, 1.0))
    for use in uses:
        with pytest.raises(ValueError, match="out of bounds for axis 0"):
            use()
    equal(ref[...], [0, 1, 2, 3])


def test_an_error_leaves_the_old_value() -> None:
    ref = jax.new_ref(1.0)

    def f(x: Any) -> Any:
        ref[...] = x
        raise KeyError("mine")

    for call in (lambda: jax.jit(f)(2.0), lambda: lax.scan(lambda c, _: (f(c), None), 2.0, length=3)):
        with pytest.raises(KeyError, match="mine"):
            call()
        equal(ref[...], 1.0)
