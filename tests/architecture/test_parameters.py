"""No function takes a parameter that its body never reads: what is given either works or is refused."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "jaxlite"

# parameter, or function.parameter -> why its body need not read it
UNREAD = {
    "copy": "arrays are immutable: a copy cannot be told from its original",
    "overwrite_a": "a permission, not a demand",
    "overwrite_b": "a permission, not a demand",
    "check_finite": "as in JAX: values are not known while tracing",
    "debug": "as in JAX: without effect",
    "sorted": "the order may be any if False, so also the sorted one",
    "donate": "a permission, not a demand",
    "may_alias": "arrays are immutable: a copy cannot be told from its original",
    "isin.assume_unique": "a promise, which the method at hand does not need",
    "lexsort.batch_size": "how, not what",
    "scan._split_transpose": "how, not what",
    "triangular_solve.conjugate_a": "no operation takes complex numbers",
    "zeros.key": "initializers have one signature",
    "ones.key": "initializers have one signature",
    "_sequence_keys.tree": "functions that name the children of a node have one signature",
    "_sequence_keys.data": "functions that name the children of a node have one signature",
    "_dict_keys.tree": "functions that name the children of a node have one signature",
    "_dict_keys.count": "functions that name the children of a node have one signature",
    "flat_index_keys.tree": "functions that name the children of a node have one signature",
    "flat_index_keys.data": "functions that name the children of a node have one signature",
    "_inline.front": "passes have one signature",
    "_simplify.front": "passes have one signature",
    "_fuse.front": "passes have one signature",
    "_place_memory.front": "passes have one signature",
    "custom_vjp.defvjp.optimize_remat": "how, not what",
    "load_ipython_extension.ipython": "IPython gives it",
}


def functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    """Functions of a module, and public methods of its public classes that override nothing."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef) and not node.bases and not node.name.startswith("_"):
            for method in node.body:
                if isinstance(method, ast.FunctionDef) and (method.name == "__init__" or method.name[0] != "_"):
                    yield f"{node.name}.{method.name}", method


def unread(function: ast.FunctionDef) -> list[str]:
    """Parameters that the body does not mention; none where the body is only a text, ``...`` or a ``raise``."""
    last = function.body[-1]
    if isinstance(last, ast.Raise) or (isinstance(last, ast.Expr) and isinstance(last.value, ast.Constant)):
        return []
    decorated = {n.id for d in function.decorator_list for n in ast.walk(d) if isinstance(n, ast.Name)}
    by_decorator = {"out_sharding", "device"} if decorated & {"placed", "an_initializer"} else set()
    read = by_decorator | {n.id for part in function.body for n in ast.walk(part) if isinstance(n, ast.Name)}
    given = function.args
    named = [*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg))]
    return [p.arg for p in named if p.arg not in read and p.arg not in ("self", "cls") and set(p.arg) != {"_"}]


def found() -> list[tuple[str, str, str]]:
    """(module and line, function, parameter) of every parameter that is not read."""
    return [
        (f"{path.relative_to(PACKAGE.parent)}:{function.lineno}", name, parameter)
        for path in sorted(PACKAGE.rglob("*.py"))
        for name, function in functions(ast.parse(path.read_text("utf-8")))
        for parameter in unread(function)
    ]


def test_every_parameter_is_read():
    wrong = [
        f"{where} {name}: {parameter}"
        for where, name, parameter in found()
        if parameter not in UNREAD and f"{name}.{parameter}" not in UNREAD
    ]
    assert not wrong, "make them work, or refuse() what is not their default:\n" + "\n".join(wrong)


def test_every_exception_is_needed():
    needed = {key for _, name, parameter in found() for key in (parameter, f"{name}.{parameter}")}
    assert set(UNREAD) <= needed, f"read by now: {sorted(set(UNREAD) - needed)}"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("def f(x, out=None): return x", ["out"]),
        ("def f(x, *, key, **rest): return x", ["key", "rest"]),
        ("def f(x): raise TypeError", []),
        ("def f(_, x): return lambda: x", []),
    ],
)
def test_the_search_finds_them(text, names):
    (function,) = ast.parse(text).body
    assert isinstance(function, ast.FunctionDef)
    assert unread(function) == names
