"""Which names a cell reads, and what tells one constant from another."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

from jaxlite_jupyter.cell import VALUE, parse_cell
from jaxlite_jupyter.errors import CellError
from jaxlite_jupyter.variables import constant_key, read_variables


@pytest.mark.parametrize(
    ("source", "reads"),
    [
        ("y = x", {"x"}),
        ("y = 1\nz = y", set()),
        ("y = y + 1", {"y"}),
        ("y += 1", {"y"}),
        ("y = 0\ny += x", {"x"}),
        ("a, (b, *c) = x\nd = a + b", {"x"}),
        ("if x:\n    y = 1\nz = y", {"x", "y"}),
        ("def f(x):\n    return x + w", {"w"}),
        ("def f():\n    return y\ny = 1", {"y"}),  # f may be called before
        ("y = [i * k for i in x]", {"k", "x"}),
        ("y = {a: b for a, b in x if c for d in e}", {"c", "e", "x"}),
        ("@d\ndef f(x: t = v) -> r:\n    pass", {"d", "t", "v", "r"}),
        ("class A(base, metaclass=m):\n    y = x", {"base", "m", "x"}),
        ("x[0] = 1", {"x"}),
        ("import numpy as np\nnp.ones(3)", set()),
        ("y: int = x", {"x", "int"}),
        ("f = lambda t: t + s", {"s"}),
        ("class A:\n    def f(self):\n        return g", {"g"}),
    ],
)
def test_names_that_a_cell_reads(source, reads):
    assert parse_cell(source, "cell").reads == reads


def test_the_last_expression_is_kept_under_a_name():
    namespace: dict[str, object] = {}
    exec(parse_cell("x = 2\nx + 1", "cell").code, namespace)
    assert namespace[VALUE] == 3


def test_await_is_refused_but_in_functions():
    parse_cell("async def f():\n    await g()", "cell")
    with pytest.raises(CellError, match="await"):
        parse_cell("await g()", "cell")


@pytest.mark.parametrize(
    ("a", "b"),
    [(1, True), (1, 1.0), (0.0, -0.0), ("1", 1), (None, 0), ({1}, {True}), (np.float32(1), 1.0)],
)
def test_constants_of_other_types_or_signs_differ(a, b):
    assert constant_key(a) != constant_key(b)


@pytest.mark.parametrize(
    "make",
    [lambda: float("nan"), lambda: 2, lambda: {1, 2}, lambda: np.arange(3), lambda: 1 + 2j],
)
def test_equal_constants_are_equal(make):
    assert constant_key(make()) == constant_key(make())


def test_functions_differ_by_identity():
    def make():
        return lambda x: x

    f, g = make(), make()
    assert constant_key(f) == constant_key(f) != constant_key(g)


def test_what_cannot_be_hashed_is_told_apart_by_identity():
    a, b = (bytearray(b"x"), bytearray(b"x"))
    assert constant_key(a) == constant_key(a) != constant_key(b)


def test_functions_are_followed_to_the_variables_that_they_use():
    namespace: dict[str, Any] = {"w": np.ones(2), "b": np.ones(2), "unused": np.ones(2)}
    exec("def inner(x): return x + b\ndef outer(x): return inner(x) * w", namespace)
    namespace["partial"] = functools.partial(namespace["outer"])
    variables = read_variables(namespace, {"partial"})
    assert set(variables.by_name) == {"partial", "inner", "w", "b"}
    assert set(variables.arguments()) == {"w", "b"}
