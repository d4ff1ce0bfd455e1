"""Who owns a buffer: nothing that is exported is written to by a result, and nothing that is imported is held on to.

Each rule is proven by addresses, and by values after the memory was asked for again many times over.
"""

from __future__ import annotations

import copy
import gc
import pickle
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jaxlite as jax
import jaxlite.numpy as jnp

N = 5000  # elements of 4 bytes: more than share a block


def made(value: float = 3.0, n: int = N) -> Any:
    """An array in a block of its own, as a compiled program gives it."""
    return jax.jit(lambda x: x + 0)(jnp.full(n, value))


def churn(n: int = N) -> None:
    """Asks for memory of the same size again and again, and fills it with something else."""
    fill = jax.jit(lambda x: x * 0 - 77)
    kept = [fill(jnp.ones(n)) for _ in range(20)]
    del kept


EXPORTS: dict[str, Callable[[Any], np.ndarray[Any, Any]]] = {
    "numpy": np.asarray,
    "numpy of a view": lambda x: np.asarray(x)[10:20],
    "dlpack": np.from_dlpack,
    "dlpack of version 0": lambda x: np.from_dlpack(OldConsumer(x)),
    "numpy of an eager view": lambda x: np.asarray(jnp.reshape(x, (-1, 2)).T),
    "imported again": lambda x: np.asarray(jnp.from_dlpack(x)),
}
if sys.version_info >= (3, 12):
    EXPORTS["memoryview"] = lambda x: np.asarray(memoryview(x))


class OldConsumer:
    """An exporter seen by a consumer that knows DLPack before version 1 only."""

    def __init__(self, x: Any) -> None:
        self.x = x

    def __dlpack__(self, **_: Any) -> Any:
        return self.x.__dlpack__()

    def __dlpack_device__(self) -> Any:
        return self.x.__dlpack_device__()


@pytest.mark.parametrize("export", EXPORTS.values(), ids=list(EXPORTS))
def test_views_outlive_their_arrays(export: Any) -> None:
    x = made()
    view = export(x)
    del x
    churn()
    assert (view == 3).all()


@pytest.mark.parametrize("export", EXPORTS.values(), ids=list(EXPORTS))
def test_no_result_lands_where_a_view_looks(export: Any) -> None:
    step = jax.jit(lambda x: x * 2, donate_argnums=0)
    x = made()
    address = x.address
    view = export(x)
    y = step(x)
    assert x.is_deleted() and y.address != address
    assert (view == 3).all() and (np.asarray(y) == 6).all()
    del view
    gc.collect()
    x = made()
    address = x.address
    export(x)  # and dropped at once
    assert step(x).address == address


def test_a_donated_block_is_taken_over() -> None:
    step = jax.jit(lambda x, y: (x * 2 + y, y.sum()), donate_argnums=0)
    x, y = made(), made(1.0)
    for k in range(8):
        address = x.address
        expected = np.array(x) * 2 + 1
        new, _ = step(x, y)
        assert new.address == address and x.is_deleted() and not y.is_deleted(), k
        np.testing.assert_array_equal(np.asarray(new), expected)
        x = new


def test_reading_an_array_does_not_keep_it_from_being_donated() -> None:
    step = jax.jit(lambda x: x + 1, donate_argnums=0)
    x = made()
    address = x.address
    repr(x), float(x[0]), x.tolist()
    assert step(x).address == address


def test_other_arrays_on_the_block_are_left_alone() -> None:
    step = jax.jit(lambda x: x + 1, donate_argnums=0)
    x = made()
    other, kept = jnp.reshape(x, (-1, 2)), copy.copy(x)
    new = step(x)
    assert (np.asarray(other) == 3).all() and (np.asarray(kept) == 3).all() and (np.asarray(new) == 4).all()


def test_small_results_that_share_a_block_are_donated_alone() -> None:
    split = jax.jit(lambda x: (x + 1, x + 2, x + 3))
    a, b, c = split(jnp.zeros(8))
    assert a.owner is b.owner is c.owner
    a2 = jax.jit(lambda x: x * 10, donate_argnums=0)(a)
    churn(8)
    assert a.is_deleted() and not b.is_deleted()
    np.testing.assert_array_equal([np.asarray(v)[0] for v in (a2, b, c)], [10, 2, 3])


IN_ONE_CALL = "in the same call to Execute() (flattened argument 1, replica 0, partition 0, first use: 0)"
GIVEN_TWICE = [  # the function, what is donated of it, and what JAX 0.12 says of f(a, a)
    (
        lambda a, b: (a + 1, b + 2),
        (0, 1),
        "donate the same buffer twice in Execute() (flattened argument 1, replica 0, partition 0, first use: 0). Toy "
        "example for this bug: `f(donate(a), donate(a))`.",
    ),
    (
        lambda a, b: a + b,
        0,
        f"use a buffer that was previously donated {IN_ONE_CALL}. Toy example for this bug: `f(donate(a), a)`.",
    ),
    (lambda a, b: a + b, 1, "donate a buffer which is also used by the same call to Execute() (flattened argument 1, "),
    (lambda a, b: a + 1, 0, None),  # the other is not read
    (lambda a, b: a.sum() + b.sum(), (0, 1), None),  # neither can be used
    (lambda a, b: a + b, (), None),
]


@pytest.mark.filterwarnings("ignore:Some donated buffers")
@pytest.mark.parametrize("function, donated, message", GIVEN_TWICE, ids=range(len(GIVEN_TWICE)))
def test_an_array_given_twice_is_not_donated(function: Any, donated: Any, message: str | None) -> None:
    f = jax.jit(function, donate_argnums=donated)
    for _ in range(5):  # the short way too
        f(made(), made())
    x = made()
    if message is None:
        assert np.isfinite(np.asarray(f(x, x))).all()
        return
    with pytest.raises(jax.errors.JaxRuntimeError) as refusal:
        f(x, x)
    assert str(refusal.value).startswith(f"INVALID_ARGUMENT: Attempt to {message}")
    assert not x.is_deleted() and (np.asarray(x) == 3).all()


def test_what_a_function_closes_over_is_not_taken_over() -> None:
    x = made()
    y = jax.jit(lambda a: a * 2 + jnp.flip(x), donate_argnums=0)(x)
    assert (np.asarray(y) == 9).all()


def test_what_a_program_closes_over_stays_when_it_is_donated_or_deleted_elsewhere() -> None:
    increment = jax.jit(lambda v: v + 1, donate_argnums=0)
    for x in (made(), jnp.asarray(np.full(5000, 3, np.float32))):
        f = jax.jit(lambda y, x=x: y + x)
        loop = jax.jit(lambda y, x=x: jax.lax.fori_loop(0, 2, lambda _, c: c + x, y))
        assert (np.asarray(f(1.0)) == 4).all() and (np.asarray(loop(jnp.zeros(5000))) == 6).all()
        address = x.address
        new = increment(x)
        assert x.is_deleted() and new.address != address and (np.asarray(new) == 4).all()
        churn()
        assert (np.asarray(f(1.0)) == 4).all() and (np.asarray(loop(jnp.zeros(5000))) == 6).all()
        assert (np.asarray(jax.grad(lambda y, f=f: f(y).sum())(1.0)) == 5000).all()


def test_donation_in_every_way_of_calling() -> None:
    f = jax.jit(
        lambda tree, *, scale: jax.tree.map(lambda v: v * scale, tree), donate_argnames="tree", donate_argnums=0
    )
    for k in range(6):  # from the fourth on by the short way
        tree = {"a": made(), "b": (made(2.0), jnp.arange(4.0))}
        address = tree["a"].address
        out = f(tree, scale=jnp.float32(2))
        assert out["a"].address == address and all(v.is_deleted() for v in jax.tree.leaves(tree)), k
        assert (np.asarray(out["b"][0]) == 4).all()
    ahead = jax.jit(lambda x: x + 1, donate_argnums=0).lower(made()).compile()
    x = made()
    address = x.address
    assert ahead(x).address == address and x.is_deleted()


def test_a_donated_array_counts_as_deleted_after_an_error_or_an_interrupt() -> None:
    def fails(v: Any) -> Any:
        raise ValueError("no")

    def stops(v: Any) -> Any:
        raise KeyboardInterrupt

    for callback, error in ((fails, Exception), (stops, KeyboardInterrupt)):
        f = jax.jit(
            lambda x, call=callback: x + jax.pure_callback(call, jax.ShapeDtypeStruct((), np.float32), x[0]),
            donate_argnums=0,
        )
        x = made()
        with pytest.raises(error):
            f(x)
        assert x.is_deleted()
        with pytest.raises(RuntimeError, match=r"Array has been deleted with shape=f32\[5000\]"):
            f(x)
        assert (np.asarray(made()) == 3).all()


def test_an_error_while_tracing_leaves_the_array() -> None:
    x = made()
    with pytest.raises(NameError):
        jax.jit(lambda x: x + undefined, donate_argnums=0)(x)  # type: ignore[name-defined]  # noqa: F821
    assert not x.is_deleted()


UNUSABLE = [
    (lambda x: x.sum(), 1),
    (lambda x: x.astype(jnp.int32), 1),
    (lambda x: x[1:], 1),
    (lambda x: x + 1, 0),
    (lambda x: jnp.zeros(3), 0),  # it is not read: JAX does not take it, and says nothing
]


@pytest.mark.parametrize("function, warnings", UNUSABLE)
def test_donated_for_nothing_warns_and_stays_as_in_jax(function: Any, warnings: int) -> None:
    f = jax.jit(function, donate_argnums=0)
    x = made()
    if warnings:
        with pytest.warns(UserWarning, match=r"Some donated buffers were not usable: float32\[5000\]") as found:
            f(x)
        assert len(found) == 1 and found[0].filename == __file__
    else:
        f(x)
    f(made())  # warned of once
    assert x.is_deleted() == (function is UNUSABLE[3][0])


def test_two_donated_arrays_for_one_result() -> None:
    f = jax.jit(lambda x, y: x + y, donate_argnums=(0, 1))
    x, y = made(), made()
    with pytest.warns(UserWarning, match="not usable"):
        f(x, y)
    assert x.is_deleted() and not y.is_deleted()  # as in JAX: each result uses up the first that fits


def test_donation_under_a_transformation_or_in_another_jit_is_none() -> None:
    f = jax.jit(lambda x: x * 2, donate_argnums=0)
    x = made()
    jax.grad(lambda v: f(v).sum())(x)
    jax.jit(lambda v: f(v) + v)(x)
    assert not x.is_deleted() and (np.asarray(x) == 3).all()


def test_deleting_what_a_running_program_reads() -> None:
    x = made(1.0, 4_000_000)
    work = jax.jit(lambda a: jax.lax.fori_loop(0, 20, lambda i, c: jnp.sin(c) + a, jnp.zeros_like(a)).max())
    expected = float(work(x))

    def delete() -> None:
        time.sleep(0.02)
        x.delete()
        churn(4_000_000)

    thread = threading.Thread(target=delete)
    thread.start()
    got = float(work(x))
    thread.join()
    assert got == expected and x.is_deleted()


def test_a_callback_may_delete_what_its_program_reads() -> None:
    x = made()

    def callback(_: Any) -> Any:
        x.delete()
        churn()
        return np.float32(0)

    f = jax.jit(lambda a: jax.pure_callback(callback, jax.ShapeDtypeStruct((), np.float32), a[0]) + a * 2)
    assert (np.asarray(f(x)) == 6).all()


def test_what_a_callback_keeps_stays_as_it_was() -> None:
    kept: list[Any] = []

    def keep(v: Any) -> Any:
        kept.append(v)
        return np.asarray(v)

    f = jax.jit(lambda x: jax.pure_callback(keep, jax.ShapeDtypeStruct((N,), np.float32), x * 3))
    results = [f(jnp.full(N, float(k))) for k in range(4)]
    churn()
    assert [float(v[N - 1]) for v in kept] == [float(r[0]) for r in results] == [0, 3, 6, 9]


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_what_a_callback_gives_is_copied(wrap: Any) -> None:
    own = np.ones(N, np.float32)
    f = wrap(lambda x: jax.pure_callback(lambda v: own, jax.ShapeDtypeStruct((N,), np.float32), x))
    result = f(jnp.float32(0))
    own[:] = 9
    assert (np.asarray(result) == 1).all()


def test_numpy_views_cannot_be_written_to() -> None:
    for x in (made(), jnp.asarray(np.arange(5.0)), jnp.arange(4), jnp.ones((2, 3)).T, jnp.float32(1)):
        view = np.asarray(x)
        assert not view.flags.writeable
        with pytest.raises(ValueError, match="WRITEABLE"):
            view.flags.writeable = True
        with pytest.raises(ValueError, match="read-only"):
            view[...] = 7


@pytest.mark.parametrize("take", [jnp.asarray, jnp.array, jax.device_put, lambda a: jax.jit(lambda x: x)(a)])
def test_numpy_arrays_are_copied(take: Any) -> None:
    source = np.zeros(N, np.float32)
    x = take(source)
    source[:] = 9
    assert (np.asarray(x) == 0).all()


def test_copies_are_independent() -> None:
    x = made()
    for other in (copy.copy(x), copy.deepcopy(x), x.copy(), pickle.loads(pickle.dumps(x)), jnp.array(x)):
        assert other.address != x.address
    others = [copy.copy(x), copy.deepcopy([x])[0], pickle.loads(pickle.dumps({"x": x}))["x"]]
    x.delete()
    churn()
    assert all((np.asarray(other) == 3).all() for other in others)


@pytest.mark.parametrize(
    "x",
    [
        jnp.float32(2.5), jnp.arange(3), jnp.ones((2, 0)), jnp.ones(3, jnp.bfloat16), jnp.array([True, False]),
        jnp.asarray(2.0), jax.random.key(3), jnp.arange(6.0).reshape(2, 3).T,
    ],
)  # fmt: skip
def test_pickled_and_copied_as_it_was(x: Any) -> None:
    for other in (pickle.loads(pickle.dumps(x)), copy.copy(x), copy.deepcopy(x)):
        assert (other.dtype, other.shape, other.weak_type, repr(other)) == (x.dtype, x.shape, x.weak_type, repr(x))


def test_deleted_arrays_can_neither_be_pickled_nor_exported() -> None:
    x = made()
    x.delete()
    x.delete()
    for use in (pickle.dumps, copy.copy, copy.deepcopy, np.asarray, np.from_dlpack, bytes, jnp.sin, jax.jit(jnp.sin)):
        with pytest.raises(RuntimeError, match="deleted"):
            use(x)


def test_bytes_and_buffers() -> None:
    x = jnp.asarray(np.array([[1, 2], [3, 4]], np.uint8))
    assert bytes(x) == bytes([1, 2, 3, 4]) and bytes(x.T) == bytes([1, 3, 2, 4])
    if sys.version_info >= (3, 12):
        view = memoryview(x)
        assert view.readonly and view.shape == (2, 2) and view.tolist() == [[1, 2], [3, 4]]
        with pytest.raises(BufferError, match="bfloat16"):
            memoryview(jnp.ones(3, jnp.bfloat16))
    else:  # a class in Python cannot offer a buffer: its NumPy view does
        with pytest.raises(TypeError):
            memoryview(x)
        assert memoryview(np.asarray(x)).readonly
