"""The ``%sharding`` magic: the board of a call, of a compile report, or of an array.

In: an expression.  A call of a function is compiled, not run; ``--measure`` times the collectives.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import no_var_expand

from jaxlite_jupyter.views import ShardingView, TextView, sharding

USAGE = "%sharding [--measure] f(x, y), or a compile report, or an array"


def sharding_magic(shell: Any) -> Callable[[str], Any]:
    """What IPython calls."""

    def run(line: str) -> ShardingView | TextView:
        """Shows how a call, a compiled program or an array lies on its mesh."""
        text = line.strip()
        measure = text.startswith("--measure")
        text = text.removeprefix("--measure").strip()
        if not text:
            raise UsageError(f"%sharding takes an expression: {USAGE}.")
        try:
            expression = ast.parse(text, mode="eval").body
        except SyntaxError as error:
            raise UsageError(f"%sharding {text}: {error.msg}; write {USAGE}.") from None
        names = shell.user_ns
        if not isinstance(expression, ast.Call):
            return sharding(_value(expression, names), measure=measure)
        function = _value(expression.func, names)
        args = _value(ast.List(expression.args, ast.Load()), names)
        keys: list[ast.expr | None] = [None if k.arg is None else ast.Constant(k.arg) for k in expression.keywords]
        kwargs = _value(ast.Dict(keys, [k.value for k in expression.keywords]), names)
        return sharding(function, *args, measure=measure, **kwargs)

    run.__name__ = "sharding"
    marked: Callable[[str], Any] = no_var_expand(run)
    return marked


def _value(node: ast.expr, names: dict[str, Any]) -> Any:
    return eval(compile(ast.fix_missing_locations(ast.Expression(node)), "<%sharding>", "eval"), names)
