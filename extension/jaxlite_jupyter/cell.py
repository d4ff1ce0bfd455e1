"""A cell's text as code: which names it reads, and its last expression as a value.

In: the cell's source, after IPython's own syntax was translated. Out: a :class:`Cell`, whose code
runs in the notebook's namespace and leaves the value of its last expression under ``VALUE``.
"""

from __future__ import annotations

import ast
import dataclasses
import symtable
from collections.abc import Iterator
from types import CodeType
from typing import final

from jaxlite_jupyter.errors import CellError

VALUE = "__jaxlite_value__"


@final
@dataclasses.dataclass(frozen=True)
class Cell:
    """A parsed cell: ``reads`` are the global names whose value it may use from outside."""

    source: str
    file: str
    code: CodeType
    reads: frozenset[str]


def parse_cell(source: str, file: str) -> Cell:
    """The cell; :class:`CellError`, with the line, where it is not a function's body."""
    try:
        tree = ast.parse(source, filename=file)
        _refuse(tree, source)
        last = tree.body[-1] if tree.body else None
        reads = _read_names(tree, symtable.symtable(source, file, "exec"))
        if isinstance(last, ast.Expr):
            value = ast.Assign([ast.Name(VALUE, ast.Store())], last.value)
            tree.body[-1] = ast.copy_location(value, last)
            ast.fix_missing_locations(tree)
        code = compile(tree, file, "exec")
    except SyntaxError as error:
        raise CellError(f"invalid syntax: {error.msg}", source, error.lineno) from None
    return Cell(source, file, code, frozenset(reads))


def _refuse(tree: ast.Module, source: str) -> None:
    """Errors for what a function of the cell's variables cannot do."""
    for node in _outside_functions(tree):
        if isinstance(node, (ast.Await, ast.AsyncFor, ast.AsyncWith)):
            message = "%%jit cannot compile `await`: wait for the value in a cell of its own."
            raise CellError(message, source, node.lineno)


def _outside_functions(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            yield from _outside_functions(child)


def _read_names(tree: ast.Module, table: symtable.SymbolTable) -> set[str]:
    """Names used as globals in any scope, but those that are always assigned before."""
    used = set(_used_outside(tree)) | _used_inside(table)
    for node in ast.walk(tree):  # `x += 1` reads x, which symbol tables do not say
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            used.add(node.target.id)
    seen: set[str] = set()
    assigned_first: set[str] = set()
    for statement in tree.body:
        mentioned = {n.id for n in ast.walk(statement) if isinstance(n, ast.Name)}
        assigned_first |= _always_assigns(statement) - seen
        seen |= mentioned
    return used - assigned_first


def _used_outside(node: ast.AST) -> Iterator[str]:
    """Names read by the cell's own statements and comprehensions, not by the functions in them.

    Symbol tables do not say: from Python 3.13 on they count a comprehension's names as the cell's.
    """
    parts: list[ast.AST | None]
    match node:
        case ast.Name(id=name, ctx=ast.Load()):
            yield name
            return
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            targets = [n for g in node.generators for n in ast.walk(g.target)]
            bound = {n.id for n in targets if isinstance(n, ast.Name)}
            inside = {n for child in ast.iter_child_nodes(node) for n in _used_outside(child)}
            yield from inside - bound
            yield from _used_outside(node.generators[0].iter)  # read before anything is bound
            return
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            parts = [*node.decorator_list, node.args, node.returns]
        case ast.Lambda():
            parts = [node.args]
        case ast.ClassDef():
            parts = [*node.decorator_list, *node.bases, *node.keywords]
        case _:
            parts = [*ast.iter_child_nodes(node)]
    for part in parts:
        if part is not None:
            yield from _used_outside(part)


def _used_inside(table: symtable.SymbolTable) -> set[str]:
    names: set[str] = set()
    for child in table.get_children():
        names |= {s.get_name() for s in child.get_symbols() if s.is_global() and s.is_referenced()}
        names |= _used_inside(child)
    return names


def _always_assigns(statement: ast.stmt) -> set[str]:
    """The names that a statement binds without looking at their old value."""
    value: ast.AST
    match statement:
        case ast.Assign(targets=targets, value=value):
            bound = {n.id for t in targets for n in _bound_names(t)}
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
            bound = {name}
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            value, bound = statement, {name}
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return {(a.asname or a.name).split(".")[0] for a in names}
        case _:
            return set()
    loads = {n.id for n in ast.walk(value) if isinstance(n, ast.Name)}
    return bound - loads


def _bound_names(target: ast.expr) -> list[ast.Name]:
    match target:
        case ast.Name():
            return [target]
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return [n for part in parts for n in _bound_names(part)]
        case ast.Starred(value=inner):
            return _bound_names(inner)
        case _:
            return []  # x[i] = ... and x.a = ... change what is there
