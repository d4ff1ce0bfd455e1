"""The ``%%jit`` magic: a cell compiled as one function of the variables that it reads.

In: the magic's line and the cell. Out: the value of the cell's last expression; what the cell
assigns is assigned, what was asked for is shown, and a failing cell changes nothing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, final

from IPython.core.error import UsageError
from IPython.core.magic import no_var_expand, output_can_be_silenced
from IPython.core.magic_arguments import MagicArgumentParser
from IPython.display import display

from jaxlite.core import config
from jaxlite_jupyter.bench import BenchView, times
from jaxlite_jupyter.cell import Cell, parse_cell
from jaxlite_jupyter.completions import SHOWN
from jaxlite_jupyter.errors import UserTraceback
from jaxlite_jupyter.labels import file_label
from jaxlite_jupyter.program import CellProgram, run_in
from jaxlite_jupyter.variables import Variables, read_variables
from jaxlite_jupyter.views import TextView, fusion, graph

KEPT_PROGRAMS = 64


def _parser() -> Any:
    parser = MagicArgumentParser(prog="%%jit", add_help=False)
    add = parser.add_argument
    add("--show", "-s", action="append", default=[], help=f"what to show: {', '.join(SHOWN)}")
    add("--no-run", "-n", action="store_true", help="compile and show, but run nothing")
    add("--bench", type=int, metavar="N", help="time N runs beside the uncompiled cell")
    add("--trace", action="append", default=[], metavar="NAME", help="trace its numbers too")
    add("--static", action="append", default=[], metavar="NAME", help="treat it as a constant")
    return parser


PARSER = _parser()


@final
class JitMagic:
    """The magic of one shell, with the programs that its cells were compiled to."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._programs: dict[Any, CellProgram] = {}

    def function(self) -> Callable[[str, str], Any]:
        """What IPython calls."""

        def jit(line: str, cell: str) -> Any:
            __tracebackhide__ = True
            return self.run(line, cell)

        jit.__doc__ = f"Runs the cell compiled.\n\n{PARSER.format_help()}"
        marked: Callable[[str, str], Any] = no_var_expand(output_can_be_silenced(jit))
        return marked

    def run(self, line: str, text: str) -> Any:
        """Compiles the cell (or finds it compiled), shows what is asked for, runs it."""
        __tracebackhide__ = True
        options = PARSER.parse_argstring(line)
        shown = _shown(options.show)
        namespace: dict[str, Any] = self._shell.user_ns
        cell = self._parse(line, text)
        trace, static = _names(options.trace), _names(options.static)
        _check_names(cell, namespace, trace, static)
        variables = read_variables(namespace, cell.reads, trace, static)
        with UserTraceback():
            start = time.perf_counter()
            program = self._program(cell, variables)
            first = time.perf_counter() - start
            for what in shown:
                display(_VIEWS[what](program))
            if options.bench is not None:
                display(self._bench(options.bench, cell, program, variables, first))
            if options.no_run:
                return None
            effects = program(variables)
        return effects.apply(namespace)

    def _parse(self, line: str, text: str) -> Cell:
        shell = self._shell
        # With the magic's own line first, lines are counted as the notebook counts them.
        source = f"# %%jit {line}\n{shell.transform_cell(text)}"
        # The history holds the cell that runs; execution_count counts ahead on some versions.
        number = max(len(shell.history_manager.input_hist_raw) - 1, 0)
        file = shell.compile.cache(source, number, raw_code=text)
        return parse_cell(source, file)

    def _program(self, cell: Cell, variables: Variables) -> CellProgram:
        settings = (config.enable_x64.value, config.contract_fma.value, config.disable_jit.value)
        key = (cell.source, variables.key, settings)
        program = self._programs.pop(key, None)
        if program is None:
            program = CellProgram(cell, variables, self._shell.user_ns)
        self._programs[key] = program  # the last used comes last
        while len(self._programs) > KEPT_PROGRAMS:
            del self._programs[next(iter(self._programs))]
        return program

    def _bench(self, runs: int, cell: Cell, program: CellProgram, variables: Variables, first: float) -> BenchView:
        if runs < 1:
            raise UsageError(f"%%jit --bench {runs}: give the number of runs, 1 or more.")
        namespace = self._shell.user_ns
        plain = times(lambda: run_in(cell, namespace, {}), runs)
        return BenchView(runs, times(lambda: program(variables), runs), plain, first)


def _jaxpr_view(program: CellProgram) -> TextView:
    text = program.jaxpr.pretty_print(source_info=True)
    for file in {e.source.file for e in program.jaxpr.eqns}:
        text = text.replace(f"# {os.path.basename(file)}:", f"# {file_label(file)}, line ")
    return TextView("jaxpr", text)


def _kernels_view(program: CellProgram) -> TextView:
    report = program.report
    nests = [f"{k.name}:\n{k.loop_nest()}" for k in report.kernels]
    return TextView("kernels", "\n\n".join([*nests, "Generated code:", report.target_text]))


_VIEWS: dict[str, Callable[[CellProgram], Any]] = {
    "graph": lambda program: graph(program.report),
    "jaxpr": _jaxpr_view,
    "fusion": lambda program: fusion(program.report),
    "kernels": _kernels_view,
}


def _names(given: list[str]) -> list[str]:
    return [name for part in given for name in part.split(",") if name]


def _shown(given: list[str]) -> list[str]:
    names = _names(given)
    for name in names:
        if name not in SHOWN:
            raise UsageError(f"%%jit --show {name}: it shows {', '.join(SHOWN)}.")
    return names


def _check_names(cell: Cell, namespace: dict[str, Any], trace: list[str], static: list[str]) -> None:
    for option, names in (("--trace", trace), ("--static", static)):
        for name in names:
            if name not in namespace:
                raise UsageError(f"%%jit {option} {name}: the notebook has no variable {name!r}.")
            if name not in cell.reads:
                reads = ", ".join(sorted(n for n in cell.reads if n in namespace)) or "nothing"
                raise UsageError(f"%%jit {option} {name}: the cell does not read it; it reads {reads}.")
    both = sorted(set(trace) & set(static))
    if both:
        raise UsageError(f"%%jit: {', '.join(both)} cannot be both traced and static.")
