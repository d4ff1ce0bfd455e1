"""jit: one trace a signature, static and donated arguments, nesting, stages, and messages that name arguments."""

from __future__ import annotations

import functools
import traceback
from typing import Any

import numpy as np
import pytest

import jaxlite as jax
import jaxlite.numpy as jnp


def counted(f: Any) -> tuple[Any, list[int]]:
    traces: list[int] = []

    @functools.wraps(f)
    def g(*args: Any, **kwargs: Any) -> Any:
        traces.append(1)
        return f(*args, **kwargs)

    return g, traces


def test_one_trace_for_each_signature() -> None:
    f, traces = counted(lambda x, scale=1.0: x * scale)
    j = jax.jit(f)
    for x in (1.0, 2.0, 3.0):
        j(x)
    assert len(traces) == 1
    j(jnp.ones(3)), j(jnp.ones(4)), j(1), j(1.0, scale=2.0), j(jnp.float32(1.0))
    assert len(traces) == 6
    with jax.enable_x64(True):
        assert j(1.0).dtype == np.float64


def test_static_arguments() -> None:
    f, traces = counted(lambda x, n, mode="a": x * n if mode == "a" else x + n)
    j = jax.jit(f, static_argnums=1, static_argnames="mode")
    assert float(j(2.0, 3)) == 6.0 and float(j(2.0, 3, mode="b")) == 5.0 and float(j(5.0, 3)) == 15.0
    assert len(traces) == 2
    by_name = jax.jit(lambda x, n: jnp.ones(n) * x, static_argnames="n")
    assert by_name(2.0, n=3).shape == (3,) and by_name(2.0, 2).shape == (2,)
    # 1, 1.0 and True are equal and hash alike, but are different programs.
    typed = jax.jit(lambda x, n: x + n, static_argnums=1)
    assert [typed(jnp.int32(1), n).dtype.name for n in (1, 1.0, True)] == ["int32", "float32", "int32"]


def test_donated_arguments_are_deleted() -> None:
    j = jax.jit(lambda x, y: x + y, donate_argnums=0)
    x, y = jnp.ones(4), jnp.ones(4)
    np.testing.assert_array_equal(j(x, y), [2, 2, 2, 2])
    assert x.is_deleted() and not y.is_deleted()
    with pytest.raises(RuntimeError, match="deleted"):
        j(x, y)


STATIC_FROM_THE_END = [
    (lambda x, n=2: x * n, {"static_argnums": -1}, (), {}, 2.0),
    (lambda x, n=2: x * n, {"static_argnums": -1}, (3,), {}, 3.0),
    (lambda x, n=2: x * n, {"static_argnums": -1}, (), {"n": 3}, 3.0),
    (lambda x, n=2: x * n, {"static_argnums": -1, "donate_argnums": -2}, (), {"n": 3}, 3.0),
    (lambda *a: a[0] * a[-1], {"static_argnums": -1}, (4,), {}, 4.0),
    (lambda x, *, n=2: x * n, {"static_argnames": "n"}, (), {"n": 5}, 5.0),
]


@pytest.mark.parametrize("f, options, args, kwargs, value", STATIC_FROM_THE_END, ids=range(len(STATIC_FROM_THE_END)))
def test_static_arguments_counted_from_the_end(f: Any, options: Any, args: Any, kwargs: Any, value: float) -> None:
    np.testing.assert_array_equal(jax.jit(f, **options)(jnp.ones(3), *args, **kwargs), np.full(3, value))


# which arguments JAX 0.12 deletes: positional ones, then those given by name
DONATED = [
    (lambda x, y: x + y, {"donate_argnums": 1}, 1, "y", [False, True]),
    (lambda a, b=None, c=None: a + 1, {"donate_argnums": 2}, 1, "", [False]),
    (lambda *a: [v + 1 for v in a], {"donate_argnums": 5}, 3, "", [False] * 3),
    (lambda *a: [v + 1 for v in a], {"donate_argnums": -1}, 3, "", [False] * 3),
    (lambda x, *a: [v + 1 for v in (x, *a)], {"donate_argnums": 2}, 3, "", [False, False, True]),
    (lambda x, y=1.0: x * y, {"donate_argnums": -1}, 1, "", [False]),
    (lambda x, *, y: x + y, {"donate_argnums": -1}, 1, "y", [True, False]),
    (lambda x, y, **k: [x + y, *k.values()], {"donate_argnums": -1}, 2, "z", [False, True, False]),
    (lambda x, y: (x + 1, y + 1), {"donate_argnums": -1}, 0, "xy", [False, True]),
    (lambda x, y: (x + 1, y + 1), {"donate_argnames": "y"}, 2, "", [False, True]),
    (lambda *a, y: [*a, y], {"donate_argnums": -1}, 2, "y", [False] * 3),
]


@pytest.mark.parametrize("f, options, count, names, deleted", DONATED, ids=range(len(DONATED)))
def test_which_arguments_are_donated(f: Any, options: Any, count: int, names: str, deleted: list[bool]) -> None:
    arrays = [jnp.ones(3) for _ in range(count + len(names))]
    jax.jit(f, **options)(*arrays[:count], **dict(zip(names, arrays[count:], strict=True)))
    assert [x.is_deleted() for x in arrays] == deleted


def test_pytrees_and_constants() -> None:
    table = jnp.arange(3.0)
    j = jax.jit(lambda d: {"out": (d["a"] * table, d["b"][0]), "none": None})
    out = j({"a": 2.0, "b": [jnp.int32(3)]})
    np.testing.assert_array_equal(out["out"][0], [0, 2, 4])
    assert int(out["out"][1]) == 3 and out["none"] is None


def test_methods_and_decorator_forms() -> None:
    class Model:
        scale = 3.0

        @functools.partial(jax.jit, static_argnums=0)
        def __call__(self, x: Any) -> Any:
            return x * self.scale

    assert float(Model()(2.0)) == 6.0

    @jax.jit
    def g(x: Any) -> Any:
        "Doc."
        return x

    assert g.__doc__ == "Doc." and g.__name__ == "g" and "jitted" in repr(g)


def test_disable_jit() -> None:
    seen = []
    j = jax.jit(lambda x: seen.append(x) or x * 2)
    with jax.disable_jit():
        assert float(j(3.0)) == 6.0
    assert seen == [3.0]


def test_stages() -> None:
    f = jax.jit(lambda x: (x * 2).sum())
    traced = f.trace(jax.ShapeDtypeStruct((3,), "float32"))
    assert "reduce_sum" in str(traced.jaxpr) and traced.out_info.shape == ()
    lowered = traced.lower()
    assert "reduce_sum" in lowered.as_text()
    compiled = lowered.compile()
    assert float(compiled(jnp.ones(3))) == 6.0
    assert "define" in compiled.as_text() and compiled.report.kernels
    assert compiled.cost_analysis()["bytes accessed"] == 16 and compiled.memory_analysis().argument_size_in_bytes == 12
    with pytest.raises(TypeError, match=r"float32\[4\], compiled for float32\[3\]"):
        compiled(jnp.ones(4))
    assert f.eval_shape(jnp.ones(3)).dtype == np.float32
    assert jax.eval_shape(lambda x: {"a": x @ x}, jax.ShapeDtypeStruct((2, 2), "float32"))["a"].shape == (2, 2)


def test_printing_only_while_tracing(capsys: pytest.CaptureFixture[str]) -> None:
    @jax.jit
    def noisy(x: Any) -> Any:
        print("tracing")
        return x + 1

    assert [float(noisy(x)) for x in (1.0, 2.0)] == [2.0, 3.0]
    assert capsys.readouterr().out == "tracing\n"


def test_source_lines_and_transformations_are_kept() -> None:
    def f(x: Any) -> Any:
        return jnp.sum(jnp.sin(x) * x)  # this very line

    line = f.__code__.co_firstlineno + 1
    closed = jax.make_jaxpr(jax.grad(f))(jnp.ones(3))
    assert {e.source.line for e in closed.eqns} == {line}
    assert any("transpose" in e.source.transformations for e in closed.eqns)
    assert f"test_jit.py:{line} (f)" in closed.pretty_print(source_info=True)


def test_tracebacks_are_the_users() -> None:
    def inner(x: Any) -> Any:
        raise KeyError("mine")

    calls = [
        lambda: jax.jit(inner)(1.0),
        lambda: jax.grad(inner)(1.0),
        lambda: jax.vmap(inner)(jnp.ones(2)),
        lambda: jax.jit(jax.grad(lambda x: jax.lax.scan(lambda c, _: (inner(c), None), x, None, length=2)[0]))(1.0),
        lambda: jax.grad(inner)("text"),
    ]
    for call in calls:
        with pytest.raises((KeyError, TypeError)) as error:
            call()
        frames = traceback.extract_tb(error.value.__traceback__)
        assert sum("jaxlite" in f.filename and "tests" not in f.filename for f in frames) <= 1


def leak() -> Any:
    kept = []
    jax.jit(lambda x: kept.append(x * 2) or x)(1.0)
    return kept[0] + 1


@jax.jit
def branch(speed: Any) -> Any:
    return speed if speed > 0 else -speed


class Labelled:
    def __init__(self, value: Any, label: Any) -> None:
        self.value, self.label = value, label


jax.tree_util.register_pytree_node(
    Labelled, lambda node: ((node.value,), node.label), lambda label, children: Labelled(children[0], label)
)


def test_data_of_nodes_need_not_hash() -> None:
    traces = []

    @jax.jit
    def f(node: Any) -> Any:
        traces.append(node.label)
        return Labelled(node.value * len(node.label), node.label)

    results = [f(Labelled(2.0, label)) for label in ([1, 2], [1, 2], [1, 2, 3], {"a": 1})]
    assert [float(r.value) for r in results] == [4.0, 4.0, 6.0, 2.0]
    assert traces == [[1, 2], [1, 2, 3], {"a": 1}]


def test_arrays_as_data_of_nodes() -> None:
    label = np.arange(3.0)
    f = jax.jit(lambda node: node.value * node.label.sum())
    assert [float(f(Labelled(2.0, label))) for _ in range(2)] == [6.0, 6.0]
    assert (
        float(jax.lax.fori_loop(0, 2, lambda i, n: Labelled(n.value * 3.0, label), Labelled(2.0, label)).value) == 18.0
    )
    same_hash = Labelled(2.0, label.copy())
    with pytest.raises(ValueError, match="data of a pytree node of class Labelled do not compare"):
        f(same_hash)


def test_where_programs_run() -> None:
    (device,) = jax.devices("cpu")[:1]
    assert float(jax.jit(lambda x: x * 2, device=device, backend="cpu")(3.0)) == 6.0


REFUSED = [
    (lambda: jax.jit(lambda x: x, device="tpu"), NotImplementedError, "jit: device='tpu'"),
    (lambda: jax.jit(lambda x: x, backend="tpu"), NotImplementedError, "jit: backend='tpu'"),
    (lambda: jax.jit(lambda x: x, abstracted_axes=("n",)), NotImplementedError, "jit: abstracted_axes="),
    (lambda: jax.jit(lambda x: x, in_shardings=(None, "x")), ValueError, "jit in_shardings takes shardings"),
    (
        lambda: branch(3.0),
        jax.errors.TracerBoolConversionError,
        r"(?s)argument speed of the function branch.*jax.numpy.where.*lax.cond",
    ),
    (lambda: jax.jit(lambda x, n: x, static_argnums=1)(1.0, [1]), ValueError, r"static argument n of .* is \[1\]"),
    (leak, jax.errors.UnexpectedTracerError, r"(?s)used after the function.*test_jit.py"),
    (lambda: jax.jit(lambda x: np.sin(x))(1.0), jax.errors.TracerArrayConversionError, "jax.numpy"),
    (lambda: jax.jit(lambda x: list(range(x)))(3), jax.errors.TracerIntegerConversionError, "argument x"),
    (lambda: jax.jit(lambda x: float(x))(3.0), jax.errors.ConcretizationTypeError, "static_argnums"),
    (lambda: jax.jit(lambda x: x)("text"), TypeError, "text"),
    (lambda: jax.jit(lambda x: x)({"a": [object()]}), TypeError, r"\['a'\]\[0\]"),
    (lambda: jax.jit(lambda x: "text")(1.0), TypeError, "str, which is not a valid JAX type"),
    (lambda: jax.jit(3), TypeError, "callable"),
    (lambda: jax.jit(lambda x: x, static_argnames="y"), ValueError, "y"),
    (lambda: jax.jit(lambda x: x, static_argnums=0, donate_argnums=0), ValueError, "both static and donated"),
    (lambda: jax.jit(lambda x: x, compiler_options={"xla": 1}), ValueError, "compiler_options"),
]


@pytest.mark.parametrize("call, error, message", REFUSED, ids=range(len(REFUSED)))
def test_refused(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_threads_share_a_function() -> None:
    import threading

    f, _ = counted(lambda x: jnp.sin(x).sum())
    j, results = jax.jit(f), []
    threads = [threading.Thread(target=lambda: results.append(float(j(jnp.ones(100))))) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(set(results)) == 1 and len(results) == 8


def test_the_stages_of_a_program_say_what_its_arguments_are() -> None:
    f = jax.jit(lambda x, y: x, donate_argnums=0)
    lowered = f.lower(1.0, y=jnp.arange(2))
    (x,), keywords = lowered.args_info
    assert (x.shape, x.dtype.name, x.donated) == ((), "float32", True)
    assert (keywords["y"].shape, keywords["y"].dtype.name, keywords["y"].donated) == ((2,), "int32", False)
    compiled = lowered.compile()
    assert compiled.args_info == lowered.args_info == f.trace(1.0, y=jnp.arange(2)).args_info
    assert compiled.out_info.shape == ()
    kinds = (jax.stages.Wrapped, jax.stages.Traced, jax.stages.Lowered, jax.stages.Compiled)
    for stage, kind in zip((f, f.trace(1.0, y=jnp.arange(2)), lowered, compiled), kinds, strict=True):
        assert isinstance(stage, kind)
    with pytest.raises(TypeError, match="unexpected keyword"):
        f.trace(1.0, y=2).lower(_platforms=("cpu",))
    with pytest.raises(NotImplementedError, match="lowering_platforms"):
        f.trace(1.0, y=2).lower(lowering_platforms=("tpu",))


def test_checking_leaks_is_the_flag() -> None:
    kept: list[Any] = []
    with jax.checking_leaks(), pytest.raises(Exception, match="Leaked trace"):
        jax.jit(lambda x: kept.append(x))(1.0)
    kept.clear()
    with jax.checking_leaks():
        assert jax.jit(lambda x: x + 1)(1.0) == 2.0
