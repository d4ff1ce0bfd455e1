"""The prompt of a breakpoint: commands as of ``pdb`` over frames that were noted when the program was traced.

In: frames, innermost first, their variables with the values of this run.  It reads lines by ``input``, which a notebook
answers with a box to type into, or from ``stdin`` where that is given.
"""

from __future__ import annotations

import ast
import cmd
import dataclasses
import inspect
import linecache
import pprint
import sys
from collections.abc import Sequence
from typing import Any, TextIO, final

from jaxlite.core.errors import JaxRuntimeError
from jaxlite.core.trace import current_trace

AROUND = 5  # how many lines ``list`` shows before and after the current one


@final
@dataclasses.dataclass(frozen=True)
class Frame:
    """A call of the user's: where it stands, and what its names mean."""

    file: str
    line: int
    function: str
    first_line: int
    arguments: tuple[str, ...]
    locals: dict[str, Any]
    globals: dict[str, Any]

    def place(self) -> str:
        """``> file(line)function()`` and the line itself, as pdb writes them."""
        text = linecache.getline(self.file, self.line).strip()
        return f"> {self.file}({self.line}){self.function}()\n-> {text}"


@final
class Debugger(cmd.Cmd):
    """One stop at a breakpoint.  :meth:`run` returns when the program goes on, and raises where the user quits."""

    prompt = "(jdb) "
    doc_header = "Commands (help NAME says more); anything else is evaluated, or executed, in the selected frame:"

    def __init__(
        self,
        frames: Sequence[Frame],
        completekey: str = "tab",
        stdin: TextIO | None = None,
        stdout: TextIO | None = None,
    ) -> None:
        super().__init__(completekey, stdin, stdout)
        self.use_rawinput = stdin is None
        self.frames, self.selected = list(frames), 0
        self.names = [{**f.globals, **f.locals} for f in frames]
        self.quitting = False

    def run(self) -> None:
        """Asks for commands until one of them lets the program go on or end."""
        frame = self.frames[0]
        self.say("Entering jdb:")
        with current_trace(None):
            if self.use_rawinput and sys.stdin is None:
                self.goes_on("there is no standard input")
                return
            try:
                self.cmdloop()
            except NotImplementedError as error:  # what a notebook's input() raises where nobody can answer
                self.goes_on(str(error))
        if self.quitting:
            raise JaxRuntimeError(
                f"The program was ended by quit at the breakpoint on line {frame.line} of {frame.file}."
            )

    def say(self, text: str) -> None:
        """Prints a line."""
        print(text, file=self.stdout, flush=True)

    def goes_on(self, why: str) -> None:
        """Says why nobody was asked."""
        self.say(f"\nNo commands can be read ({why}), so the program goes on from the breakpoint.")

    # -- values -------------------------------------------------------------------------------

    def evaluate(self, text: str) -> Any:
        """The value of an expression in the selected frame, None where it fails, which is printed."""
        try:
            return eval(text.strip(), self.names[self.selected])
        except Exception as error:
            self.say(f"*** {type(error).__name__}: {error}")
            return _FAILED

    def default(self, line: str) -> None:
        text = line.removeprefix("!").strip()
        try:
            ast.parse(text, mode="eval")
        except SyntaxError:
            try:
                exec(text, self.names[self.selected])
            except Exception as error:
                self.say(f"*** {type(error).__name__}: {error}")
            return
        value = self.evaluate(text)
        if value is not None and value is not _FAILED:
            self.say(repr(value))

    def completedefault(self, *given: Any) -> list[str]:
        return sorted(name for name in self.names[self.selected] if name.startswith(given[0]))

    def do_p(self, arg: str) -> None:
        """p EXPRESSION: print its value."""
        value = self.evaluate(arg)
        if value is not _FAILED:
            self.say(repr(value))

    def do_pp(self, arg: str) -> None:
        """pp EXPRESSION: print its value over several lines."""
        value = self.evaluate(arg)
        if value is not _FAILED:
            self.say(pprint.pformat(value))

    def do_args(self, arg: str) -> None:
        """a(rgs): print the arguments of the selected frame."""
        frame = self.frames[self.selected]
        for name in frame.arguments:
            self.say(f"{name} = {frame.locals.get(name, '(deleted)')!r}")

    # -- frames -------------------------------------------------------------------------------

    def select(self, number: int, end: str) -> None:
        """Makes frame ``number`` the one that names are looked up in; ``end`` says what is beyond."""
        if not 0 <= number < len(self.frames):
            self.say(f"*** {end}")
            return
        self.selected = number
        self.say(self.frames[number].place())

    def do_up(self, arg: str) -> None:
        """u(p) [COUNT]: select the frame that called this one."""
        self.select(self.selected + _count(arg), "Oldest frame")

    def do_down(self, arg: str) -> None:
        """d(own) [COUNT]: select the frame that this one called."""
        self.select(self.selected - _count(arg), "Newest frame")

    def do_where(self, arg: str) -> None:
        """w(here), bt: print the frames, the innermost last; > marks the selected one."""
        for number in range(len(self.frames) - 1, -1, -1):
            text = self.frames[number].place().removeprefix("> ")
            self.say(("> " if number == self.selected else "  ") + text)

    def do_list(self, arg: str) -> None:
        """l(ist): print the lines around the selected frame's."""
        line = self.frames[self.selected].line
        self.lines(max(line - AROUND, 1), line + AROUND)

    def do_ll(self, arg: str) -> None:
        """ll: print the whole function of the selected frame."""
        frame = self.frames[self.selected]
        lines = linecache.getlines(frame.file)
        whole = frame.function == "<module>"
        self.lines(frame.first_line, len(lines) if whole else frame.first_line + _block(lines, frame.first_line) - 1)

    def lines(self, first: int, last: int) -> None:
        """Prints lines of the selected frame's file; -> marks the current one."""
        frame = self.frames[self.selected]
        source = linecache.getlines(frame.file)
        if not source:
            self.say(f"*** The text of {frame.file} is not known.")
        for number in range(first, min(last, len(source)) + 1):
            mark = "->" if number == frame.line else "  "
            self.say(f"{number:4d} {mark} {source[number - 1].rstrip()}".rstrip())

    # -- going on -----------------------------------------------------------------------------

    def do_continue(self, arg: str) -> bool:
        """c(ont(inue)): let the program go on."""
        return True

    def do_quit(self, arg: str) -> bool:
        """q(uit), exit: end the program with an error."""
        self.quitting = True
        return True

    def do_EOF(self, arg: str) -> bool:
        """The end of the input: the program goes on."""
        self.goes_on("the standard input is at its end")
        return True

    do_a, do_u, do_d, do_l = do_args, do_up, do_down, do_list
    do_w = do_bt = do_where
    do_c = do_cont = do_continue
    do_q = do_exit = do_quit


_FAILED = object()


def _count(arg: str) -> int:
    """How many frames to go: 1 unless a whole number is given."""
    return int(arg) if arg.strip().isdigit() else 1


def _block(lines: Sequence[str], first: int) -> int:
    """How many lines the function that starts on line ``first`` has."""
    return len(inspect.getblock(lines[first - 1 :]))
