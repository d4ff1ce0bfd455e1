"""Python called from programs: values, order, once per execution, exceptions as themselves, inside native loops."""

from __future__ import annotations

import traceback
from typing import Any

import numpy as np
import pytest

import jaxlite as jax
import jaxlite.numpy as jnp
from jaxlite import lax
from jaxlite.experimental import io_callback

F32 = jax.ShapeDtypeStruct((), "float32")
WRAPS = {"eager": lambda f: f, "jit": jax.jit}


@pytest.mark.parametrize("wrap", WRAPS)
def test_pure_callback(wrap: str) -> None:
    f = WRAPS[wrap](
        lambda x: jax.pure_callback(
            lambda a: {"s": np.sin(a), "n": np.int32(3)}, {"s": F32, "n": jax.ShapeDtypeStruct((), "int32")}, x
        )
    )
    out = f(1.0)
    assert float(out["s"]) == pytest.approx(np.sin(1.0), rel=1e-7) and int(out["n"]) == 3


@pytest.mark.parametrize("method", ["sequential", "broadcast_all", "expand_dims"])
def test_pure_callback_vmap(method: str) -> None:
    shapes: list[Any] = []

    def add(a: Any, b: Any) -> Any:
        shapes.append((a.shape, b.shape))
        return np.asarray(a) + np.asarray(b)

    f = lambda x, y: jax.pure_callback(add, F32, x, y, vmap_method=method)
    np.testing.assert_array_equal(jax.jit(jax.vmap(f, (0, None)))(jnp.arange(3.0), 2.0), [2, 3, 4])
    wanted = {"sequential": [((), ())] * 3, "broadcast_all": [((3,), (3,))], "expand_dims": [((3,), (1,))]}
    assert shapes == wanted[method]


def test_once_per_execution_and_in_order() -> None:
    seen: list[tuple[str, float]] = []

    @jax.jit
    def f(x: Any) -> Any:
        def body(i: Any, c: Any) -> Any:
            io_callback(lambda v: seen.append(("first", float(v))), None, c, ordered=True)
            io_callback(lambda v: seen.append(("second", float(v))), None, c, ordered=True)
            return c * 2

        return lax.cond(x > 0, lambda x: lax.fori_loop(0, 2, body, x), lambda x: x, x)

    f(1.0)
    assert seen == [("first", 1.0), ("second", 1.0), ("first", 2.0), ("second", 2.0)]
    f(-1.0)
    assert len(seen) == 4


def test_debug_print(capsys: pytest.CaptureFixture[str]) -> None:
    def f(x: Any) -> Any:
        jax.debug.print("x = {x:.2f}, tree {t}", x=x, t={"a": x}, ordered=True)
        return x * x

    for g in (f, jax.jit(f), jax.grad(f), jax.jit(jax.grad(f))):
        g(1.5)
        assert capsys.readouterr().out == "x = 1.50, tree {'a': 1.5}\n".replace("1.5}", f"{np.float32(1.5)!r}}}")
    jax.vmap(lambda x: jax.debug.print("{}", x))(jnp.arange(2))
    assert capsys.readouterr().out == "0\n1\n"


def test_an_exception_arrives_as_itself_with_its_traceback() -> None:
    class Mine(Exception):
        pass

    def raises(_: Any) -> Any:
        raise Mine("from Python")

    with pytest.raises(Mine, match="from Python") as error:
        jax.jit(lambda x: jax.pure_callback(raises, F32, x))(1.0)
    assert "in raises" in "".join(traceback.format_exception(error.value))
    assert float(jax.jit(lambda x: x + 1)(1.0)) == 2.0


def test_a_callback_may_run_programs_itself() -> None:
    inner = jax.jit(lambda x: (jnp.sin(x) ** 2).sum())
    f = jax.jit(lambda x: jax.pure_callback(lambda a: np.float32(inner(a)), F32, x))
    # 1000 equal terms added in at least 4 lanes: 250 roundings of half an ulp; a sine of 2 ulps, squared: 5 more.
    rtol = 130 * float(np.finfo(np.float32).eps)
    np.testing.assert_allclose(f(jnp.ones(1000)), 1000 * np.sin(1.0) ** 2, rtol=rtol)


REFUSED = [
    (lambda: jax.grad(lambda x: jax.pure_callback(np.sin, F32, x))(1.0), ValueError, "custom_jvp"),
    (
        lambda: jax.pure_callback(lambda x: np.ones(3), F32, 1.0),
        RuntimeError,
        r"shape \(3,\), but promised float32\[\]",
    ),
    (lambda: jax.jit(lambda: jax.pure_callback(lambda: (1, 2), F32))(), RuntimeError, "structure"),
    (lambda: jax.vmap(lambda x: jax.pure_callback(np.sin, F32, x))(jnp.ones(2)), NotImplementedError, "vmap_method"),
    (lambda: jax.pure_callback(np.sin, F32, 1.0, vmap_method="all"), ValueError, "vmap_method must be one of"),
    (
        lambda: jax.vmap(lambda x: io_callback(lambda v: None, None, x, ordered=True))(jnp.ones(2)),
        ValueError,
        "ordered",
    ),
    (lambda: jax.debug.print("x", y=1), ValueError, "y"),
]


@pytest.mark.parametrize("call, error, message", REFUSED, ids=range(len(REFUSED)))
def test_refused(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
