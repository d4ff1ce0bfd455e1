"""jax.debug.breakpoint: what its prompt shows of a program: eager, compiled, batched, differentiated."""

from __future__ import annotations

import io
import os
import pty
import select
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

import jaxlite as jax
import jaxlite.numpy as jnp
from jaxlite import lax
from jaxlite.debug import breakpoint as stop

ROOT = Path(__file__).parents[2]
WRAPS = {"eager": lambda f: f, "jit": jax.jit}
ENTERING = "Entering jdb:"


class Prompt:
    """What is typed at the stops, and what they print; ``files`` goes to the breakpoint."""

    def __init__(self, *commands: str) -> None:
        self.files = {"stdin": io.StringIO("\n".join(commands) + "\n"), "stdout": io.StringIO()}

    def answers(self) -> list[str]:
        """What was printed after each prompt, without the prompts; "Entering jdb:" where a stop begins."""
        text = self.files["stdout"].getvalue().replace(f"{ENTERING}\n", f"(jdb) {ENTERING}\n")
        return [part.strip() for part in text.split("(jdb) ")[1:] if part.strip()]


@pytest.mark.parametrize("wrap", WRAPS)
def test_values_of_this_run(wrap):
    prompt = Prompt("p y", "pp y", "y + 1", "c", "y", "cont")

    @WRAPS[wrap]
    def f(x):
        y = 2.0 * x
        stop(**prompt.files)
        return y

    assert float(f(jnp.float32(1))) == 2.0 and float(f(jnp.float32(2))) == 4.0
    two, three, four = (f"Array({n}., dtype=float32)" for n in (2, 3, 4))
    assert prompt.answers() == [ENTERING, two, two, three, ENTERING, four]


def test_frames_of_callers():
    prompt = Prompt("a", "u", "p w, k", "up 9", "d", "down", "bt", "l", "ll", "c")

    def inner(y, scale=2):
        z = y * scale
        stop(num_frames=2, **prompt.files)
        return z

    @jax.jit
    def outer(x):
        w, k = [x, {"twice": 2 * x}], "text"
        return (inner(w[0]), k)[0]

    outer(jnp.float32(3))
    _, args, up, caller, oldest, down, newest, trace, near, whole = prompt.answers()
    three, six = "Array(3., dtype=float32)", "Array(6., dtype=float32)"
    assert args == f"y = {three}\nscale = 2"
    assert up.endswith("outer()\n-> return (inner(w[0]), k)[0]") and up.startswith(f"> {__file__}(")
    assert caller == f"([{three}, {{'twice': {six}}}], 'text')"
    assert oldest == "*** Oldest frame" and down.endswith("stop(num_frames=2, **prompt.files)")
    assert newest == "*** Newest frame"
    assert [line.split(")")[-2].split("(")[0] for line in trace.splitlines()[::2]] == ["outer", "inner"]
    assert trace.splitlines()[2].startswith(f"> {__file__}(")
    current = "->         stop(num_frames=2, **prompt.files)"
    assert current in near and len(near.splitlines()) == 11 and "def outer(x):" in near
    assert current in whole and whole.splitlines()[0].endswith("def inner(y, scale=2):")
    assert whole.splitlines()[-1].endswith("return z")


def test_statements_and_errors_at_the_prompt():
    prompt = Prompt("t = x * 2", "t", "[t for _ in range(2)]", "!x", "nope", "p", "1 +", "np.pi", "help c", "help", "c")

    @jax.jit
    def f(x):
        stop(**prompt.files)
        return x

    f(jnp.int32(3))
    _, six, twice, three, unknown, empty, unfinished, of_a_module, text, listed = prompt.answers()
    assert six == "Array(6, dtype=int32)" and three == "Array(3, dtype=int32)" and twice == f"[{six}, {six}]"
    assert unknown == "*** NameError: name 'nope' is not defined" and of_a_module == str(np.pi)
    assert empty.startswith("*** SyntaxError") and unfinished.startswith("*** SyntaxError")
    assert "let the program go on" in text and "quit" in listed


def test_what_is_not_traced_is_as_it_was_when_traced():
    prompt = Prompt("settings['rate'], label, arrays, keys", "c")
    settings, label, arrays = {"rate": 0.5}, "first", [np.arange(2)]

    @jax.jit
    def f(x):
        keys = {1: x, "b": x}  # cannot be sorted, so it is no pytree
        stop(**prompt.files)
        return x + settings["rate"] + arrays[0][1] + len(label) + len(keys)

    f(jnp.float32(3))
    assert prompt.answers() == [
        ENTERING,
        "(0.5, 'first', [array([0, 1])], {1: JitTracer<float32[]>, 'b': JitTracer<float32[]>})",
    ]


def test_every_iteration_of_a_compiled_loop():
    prompt = Prompt("total", "c", "total", "c", "total", "c")

    @jax.jit
    def f(xs):
        def body(total, x):
            stop(ordered=True, **prompt.files)
            return total + x, None

        return lax.scan(body, 0.0, xs)[0]

    assert float(f(jnp.array([1.0, 2.0, 4.0]))) == 7.0
    values = [a for a in prompt.answers() if a != ENTERING]
    assert values == [f"Array({n}., dtype=float32)" for n in (0, 1, 3)]


def test_a_loop_sees_the_variables_of_the_function_around_it():
    prompt = Prompt("u", "scale", "c", "c")

    @jax.jit
    def f(x):
        scale = 2 * x

        def body(i, v):
            stop(num_frames=3, **prompt.files)
            return v + i

        return lax.fori_loop(0, 2, body, x) * scale

    f(jnp.float32(3))
    _, up, value, _ = prompt.answers()
    assert "f()" in up and value == "Array(6., dtype=float32)"


def test_only_where_the_program_goes():
    prompt = Prompt("x", "c")

    def branch(x):
        stop(**prompt.files)
        return x + 1.0

    f = jax.jit(lambda x: lax.cond(x > 0, branch, lambda x: x, x))
    assert float(f(-1.0)) == -1.0 and prompt.answers() == []
    assert float(f(1.0)) == 2.0 and prompt.answers() == [ENTERING, "Array(1., dtype=float32, weak_type=True)"]


@pytest.mark.parametrize("wrap", WRAPS)
def test_batched_it_stops_for_each_example(wrap):
    prompt = Prompt("x", "c", "x", "c")

    def f(x):
        stop(**prompt.files)
        return 2 * x

    np.testing.assert_array_equal(WRAPS[wrap](jax.vmap(f))(jnp.array([1.0, 2.0])), [2.0, 4.0])
    one, two = "Array(1., dtype=float32)", "Array(2., dtype=float32)"
    assert prompt.answers() == [ENTERING, one, ENTERING, two]
    with pytest.raises(ValueError, match="ordered"):
        jax.vmap(lambda x: (stop(ordered=True), x)[1])(jnp.ones(2))


@pytest.mark.parametrize("wrap", WRAPS)
def test_differentiated_it_shows_primals(wrap):
    prompt = Prompt("x", "c")

    def f(x):
        stop(**prompt.files)
        return x**3

    assert float(WRAPS[wrap](jax.grad(f))(jnp.float32(2))) == 12.0
    assert prompt.answers() == [ENTERING, "Array(2., dtype=float32)"]


def test_a_kept_program_does_not_hold_what_its_callers_trace():
    prompt = Prompt(*["x", "u", "p y", "c"] * 4)

    @jax.jit
    def f(x):
        stop(**prompt.files)
        return 2 * x

    def g(y):
        return f(y)

    for _ in range(2):  # the second run takes the program of the first
        np.testing.assert_array_equal(jax.vmap(g)(jnp.array([1.0, 2.0])), [2.0, 4.0])
    answers = prompt.answers()
    assert [a for a in answers if a.startswith("Array")] == ["Array(1., dtype=float32)", "Array(2., dtype=float32)"] * 2
    assert [a for a in answers if a.startswith("BatchTracer")] == ["BatchTracer<float32[]>"] * 4


def test_a_token_says_when():
    prompt = Prompt("x", "c", "x", "c")

    def f(x):
        return stop(token=x, **prompt.files) ** 2

    assert float(jax.jit(f)(jnp.float32(3))) == 9.0 and float(jax.grad(f)(jnp.float32(3))) == 6.0
    assert prompt.answers() == [ENTERING, "Array(3., dtype=float32)"] * 2

    def unused(x):
        stop(token={"t": x}, **prompt.files)
        return x

    assert float(jax.jit(unused)(1.0)) == 1.0 and len(prompt.answers()) == 4  # nobody reads it: it is left out
    with pytest.raises(TypeError, match="token"):
        stop(token="text")


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("command", ["q", "quit", "exit"])
def test_quit_ends_the_program(wrap, command):
    prompt = Prompt(command)
    reached = []

    @WRAPS[wrap]
    def f(x):
        stop(**prompt.files)
        jax.debug.callback(lambda: reached.append(1))
        return x

    with pytest.raises(jax.errors.JaxRuntimeError, match="ended by quit at the breakpoint on line"):
        f(1.0)
    assert not reached


def test_the_end_of_the_input_goes_on(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.StringIO("p x\n"))

    @jax.jit
    def f(x):
        stop()
        return 2 * x

    assert float(f(1.5)) == 3.0
    printed = capsys.readouterr().out
    assert "Array(1.5" in printed and "standard input is at its end" in printed and "goes on" in printed
    monkeypatch.setattr(sys, "stdin", None)
    assert float(f(2.5)) == 5.0
    assert "there is no standard input" in capsys.readouterr().out


def test_frames_of_the_library_are_shown_where_asked_for():
    prompt = Prompt("bt", "c", "bt", "c")

    def f(x, filtered):
        stop(filter_frames=filtered, **prompt.files)
        return x

    jax.jit(f, static_argnums=1)(1.0, True)
    jax.jit(f, static_argnums=1)(1.0, False)
    _, short, _, whole = prompt.answers()
    assert "jaxlite/transforms/jit.py" not in short and "jaxlite/transforms/jit.py" in whole


@pytest.mark.parametrize(
    "options, error, message",
    [
        ({"backend": "web"}, ValueError, "backend must be one of"),
        ({"num_frames": 0}, ValueError, "num_frames must be 1 or more"),
        ({"num_frames": "all"}, TypeError, "integer"),
        ({"token": 1.0, "ordered": True}, ValueError, "not both"),
        ({"width": 80}, TypeError, "unexpected keyword arguments.*completekey, stdin, stdout"),
    ],
)
def test_refusals(options, error, message):
    with pytest.raises(error, match=message):
        stop(**options)


SCRIPT = """
import jaxlite as jax
def body(i, x):
    jax.debug.breakpoint()
    return x * 2
print("result", float(jax.jit(lambda x: jax.lax.fori_loop(0, 2, body, x))(1.5)))
"""


def test_in_a_terminal(tmp_path):
    (tmp_path / "script.py").write_text(textwrap.dedent(SCRIPT))
    terminal, other = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "dumb"}
    command = [sys.executable, str(tmp_path / "script.py")]
    process = subprocess.Popen(command, stdin=other, stdout=other, stderr=other, env=environment)
    os.close(other)
    seen = ""

    def wait_for(text: str) -> None:
        nonlocal seen
        deadline = time.monotonic() + 120
        while text not in seen:
            assert time.monotonic() < deadline, seen
            if select.select([terminal], [], [], 1)[0]:
                seen += os.read(terminal, 4096).decode()

    try:
        for typed, shown in (("p x", "Array(1.5, "), ("c", ENTERING), ("p i, x", "(Array(1, "), ("c", "result 6.0")):
            wait_for("(jdb) ")
            seen = ""
            os.write(terminal, f"{typed}\n".encode())
            wait_for(shown)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
        os.close(terminal)
