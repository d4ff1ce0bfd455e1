"""``%%jit`` in a real shell: what is traced, what is constant, what is assigned, how it fails."""

from __future__ import annotations

import numpy as np
import pytest
from IPython.core.completer import provisionalcompleter

from jaxlite.core.array import Array


def test_assigns_and_gives_the_last_value(shell):
    shell.run("x = np.arange(3, dtype=np.float32)")
    value, _ = shell.run("%%jit\ny = x * 2\nn = 3\ny + n")
    assert isinstance(shell.names["y"], Array) and shell.names["n"] == 3
    assert np.asarray(value).tolist() == [3, 5, 7]


def test_a_semicolon_silences_the_value(shell):
    shell.run("x = np.ones(2)")
    _, shown = shell.run("%%jit\nx + 1;")
    assert shown.stdout == ""


def test_is_compiled_once_for_equal_types_and_constants(shell):
    shell.run("x = np.ones(3); scale = 2")
    cell = "%%jit\nprint('traced')\ny = x * scale"
    assert "traced" in shell.run(cell)[1].stdout
    shell.run("x = np.zeros(3)")
    assert "traced" not in shell.run(cell)[1].stdout  # another value, the same type
    assert np.asarray(shell.names["y"]).tolist() == [0, 0, 0]
    shell.run("scale = 3")
    assert "traced" in shell.run(cell)[1].stdout  # a constant changed
    shell.run("scale = 3.0")
    assert "traced" in shell.run(cell)[1].stdout  # its type too


def test_a_name_that_the_cell_assigns_first_is_no_input(shell):
    shell.run("x = np.ones(3)")
    cell = "%%jit\nprint('traced')\ny = x + 1\nz = y * 2"
    assert "traced" in shell.run(cell)[1].stdout
    shell.run("y = 'something else'")
    assert "traced" not in shell.run(cell)[1].stdout


def test_pytrees_are_taken_leaf_by_leaf(shell):
    shell.run("p = {'w': np.ones(2), 'depth': 2, 'act': np.tanh, 'b': [np.zeros(2)]}")
    loop = "for _ in range(p['depth']):\n    out = out + p['w']"
    cell = f"%%jit\nprint('traced')\nout = p['b'][0]\n{loop}"
    shell.run(cell)
    assert np.asarray(shell.names["out"]).tolist() == [2, 2]
    shell.run("p['w'] = np.full(2, 5.0)")
    assert "traced" not in shell.run(cell)[1].stdout
    assert np.asarray(shell.names["out"]).tolist() == [10, 10]


def test_a_function_of_the_notebook_sees_its_variables_traced(shell):
    shell.run("w = np.ones(2)\ndef model(x):\n    return x * w")
    shell.run("x = np.full(2, 3.0)")
    cell = "%%jit\nprint('traced')\ny = model(x)"
    shell.run(cell)
    shell.run("w = np.full(2, 10.0)")
    assert "traced" not in shell.run(cell)[1].stdout
    assert np.asarray(shell.names["y"]).tolist() == [30, 30]


def test_a_function_that_was_redefined_is_compiled_anew(shell):
    shell.run("x = np.ones(2)\ndef f(x): return x + 1")
    cell = "%%jit\ny = f(x)"
    shell.run(cell)
    shell.run("def f(x): return x + 2")
    shell.run(cell)
    assert np.asarray(shell.names["y"]).tolist() == [3, 3]


def test_a_jitted_function_keeps_its_own_constants(shell):
    shell.run("w = np.ones(2)\nx = np.ones(2)\nf = jax.jit(lambda x: x * w)")
    shell.run("%%jit\ny = f(x) + w")
    value, _ = shell.run("f(x)")  # its cache holds nothing of the cell's tracing
    assert np.asarray(value).tolist() == [1, 1]


def test_functions_defined_in_the_cell_serve_afterwards(shell):
    shell.run("x = np.full(2, 2.0)")
    shell.run("%%jit\ndef f(t):\n    return t * x\ny = f(x)")
    value, _ = shell.run("f(1.0)")
    assert np.asarray(value).tolist() == [2, 2]


def test_trace_and_static_override(shell):
    shell.run("n = 3; x = np.ones(2); flags = np.array([1, 0])")
    cell = "%%jit --trace n --static flags\nprint('traced')\ny = x * n if flags[0] else x"
    shell.run(cell)
    shell.run("n = 4")
    assert "traced" not in shell.run(cell)[1].stdout
    assert np.asarray(shell.names["y"]).tolist() == [4, 4]
    shell.run("flags = np.array([0, 0])")
    assert "traced" in shell.run(cell)[1].stdout


def test_no_run_assigns_nothing(shell):
    shell.run("x = np.ones(2)")
    value, shown = shell.run("%%jit --no-run --show jaxpr\ny = x + 1\ny")
    assert value is None and "y" not in shell.names
    assert "add" in shown.outputs[0].data["text/plain"]


@pytest.mark.parametrize("what", ["graph", "jaxpr", "fusion", "kernels"])
def test_shows_each_view_as_html_and_text(shell, what):
    shell.run("x = np.ones(2)")
    _, shown = shell.run(f"%%jit --show {what}\ny = x + 1")
    bundle = shown.outputs[0].data
    assert bundle["text/html"].startswith('<div class="jaxlite"') and "add" in bundle["text/plain"]


def test_shows_several_views_in_order(shell):
    shell.run("x = np.ones(2)")
    _, shown = shell.run("%%jit --show fusion,graph -s jaxpr\ny = x + 1")
    texts = [o.data["text/plain"] for o in shown.outputs]
    assert ["kernels and steps" in t for t in texts] == [True, False, False]
    assert ["nodes" in t for t in texts] == [False, True, False]


def test_views_name_the_cell_and_its_line(shell):
    shell.run("x = np.ones(2)")
    _, shown = shell.run("%%jit --show graph\nt = 1\ny = x + t")
    number = shell.ipython.execution_count - 1
    assert f"Cell In[{number}], line 3" in shown.outputs[0].data["text/plain"]


def test_bench_says_that_its_numbers_are_measured(shell):
    shell.run("x = np.ones(2)")
    _, shown = shell.run("%%jit --bench 2\ny = x + 1")
    text = shown.outputs[0].data["text/plain"]
    assert "measured, 2 runs each" in text and "uncompiled" in text


def test_a_failing_cell_changes_nothing_and_shows_its_own_line(shell):
    shell.run("x = np.ones(2); y = 'before'")
    before = dict(shell.names)
    result, shown = shell.attempt("%%jit\ny = x + 1\nz = y + np.ones(3)")
    assert type(result.error_in_exec).__name__ in ("TypeError", "ValueError")
    assert "----> 3 z = y + np.ones(3)" in shown.stdout and "program.py" not in shown.stdout
    assert shell.names["y"] == "before" and "z" not in shell.names
    changed = {k for k, v in shell.names.items() if before.get(k) is not v}
    assert all(k.startswith("_") for k in changed), changed  # IPython's own history


def test_an_error_while_running_changes_nothing(shell):
    shell.run("x = np.ones(2)")
    result, _ = shell.attempt("%%jit\ny = x + 1\nraise ValueError('mine')")
    assert str(result.error_in_exec) == "mine" and "y" not in shell.names


def test_branching_on_a_traced_value_names_the_variable(shell):
    shell.run("x = np.ones(2)")
    result, _ = shell.attempt("%%jit\nif x[0] > 0:\n    y = 1")
    assert "x" in str(result.error_in_exec) and "cond" in str(result.error_in_exec)


def test_syntax_errors_show_the_line(shell):
    result, shown = shell.attempt("%%jit\ny = (1")
    assert type(result.error_in_exec).__name__ == "CellError"
    assert "---->   2 y = (1" in shown.stdout


def test_changing_a_list_in_place_says_what_to_write(shell):
    shell.run("losses = [1.0]; x = np.ones(2)")
    result, shown = shell.attempt("%%jit\nlosses.append(x.sum())")
    assert "losses = [*losses, x]" in str(result.error_in_exec)
    assert "---->   2 losses.append" in shown.stdout and shell.names["losses"] == [1.0]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--show everything", "graph, jaxpr, fusion, kernels"),
        ("--trace nowhere", "no variable 'nowhere'"),
        ("--static unread", "the cell does not read it; it reads x"),
        ("--trace x --static x", "both traced and static"),
        ("--bench 0", "1 or more"),
        ("--turbo", "unrecognized arguments"),
    ],
)
def test_wrong_options_are_usage_errors(shell, line, message):
    shell.run("x = np.ones(2); unread = 1")
    result, _ = shell.attempt(f"%%jit {line}\ny = x + 1")
    assert type(result.error_in_exec).__name__ == "UsageError"
    assert message in str(result.error_in_exec)


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("%%jit --n", {"--no-run"}),
        ("%%jit --show ", {"graph", "jaxpr", "fusion", "kernels"}),
        ("%%jit --show graph,f", {"fusion"}),
        ("%%jit -s k", {"kernels"}),
        ("%%jit --static my_", {"my_array"}),
    ],
)
def test_completions(shell, line, offered):
    shell.run("my_array = np.ones(2)")
    with provisionalcompleter():
        found = shell.ipython.Completer.completions(f"{line}\ny = 1", len(line))
        assert {c.text for c in found} == offered


def test_loading_twice_and_unloading(shell):
    shell.ipython.run_line_magic("reload_ext", "jaxlite")
    names = [getattr(m, "matcher_identifier", "") for m in shell.ipython.Completer.custom_matchers]
    assert names.count("jaxlite.jit_options") == 1
    shell.ipython.run_line_magic("unload_ext", "jaxlite")
    assert shell.ipython.find_cell_magic("jit") is None


def test_a_report_shows_itself(shell):
    value, _ = shell.run("jax.jit(lambda x: x + 1).lower(np.ones(2)).compile().report")
    bundle, _ = shell.ipython.display_formatter.format(value)
    assert "data:image/svg+xml" in bundle["text/html"] and "kernels" in bundle["text/plain"]
