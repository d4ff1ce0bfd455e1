"""Ahead of time: a jitted function's program, traced, lowered and compiled, each step to be looked at."""

from __future__ import annotations

import dataclasses
from typing import Any, final

from jaxlite.core.array import to_array
from jaxlite.core.errors import refuse
from jaxlite.core.jaxpr import ClosedJaxpr
from jaxlite.core.propagation import in_program
from jaxlite.core.pytree import PyTreeDef, tree_flatten
from jaxlite.lax.convert import operand_of
from jaxlite.transforms.jaxprs import ShapeDtypeStruct


@final
@dataclasses.dataclass(frozen=True)
class MemoryAnalysis:
    """Bytes of arguments, of results, and of the workspace that temporaries share."""

    argument_size_in_bytes: int
    output_size_in_bytes: int
    temp_size_in_bytes: int
    alias_size_in_bytes: int = 0

    @property
    def peak_memory_in_bytes(self) -> int:
        """All of it at once."""
        return self.argument_size_in_bytes + self.output_size_in_bytes + self.temp_size_in_bytes


@final
@dataclasses.dataclass(frozen=True)
class ArgInfo:
    """An argument's shape and dtype, and whether its memory is given up."""

    shape: tuple[int, ...]
    dtype: Any
    donated: bool


@final
class TracedProgram:
    """The program as a jaxpr."""

    def __init__(self, function: Any, program: Any, donated: tuple[bool, ...], in_tree: PyTreeDef) -> None:
        self._function, self._program, self._donated, self.in_tree = function, program, donated, in_tree

    @property
    def jaxpr(self) -> ClosedJaxpr:
        """The jaxpr."""
        return self._program.closed  # type: ignore[no-any-return]

    @property
    def fun_name(self) -> str:
        """The function's name."""
        return str(self._program.name)

    @property
    def out_info(self) -> Any:
        """Shapes and dtypes of the result."""
        shapes = [ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type) for a in self._program.closed.out_avals]
        return self._program.out_tree.unflatten(shapes)

    @property
    def args_info(self) -> Any:
        """``ArgInfo`` in place of each argument: positional ones, then those by keyword."""
        infos = [ArgInfo(a.shape, a.dtype, d) for a, d in zip(self.jaxpr.in_avals, self._donated, strict=True)]
        return self.in_tree.unflatten(infos)

    def lower(self, *, lowering_platforms: Any = None) -> Lowered:
        """The next step."""
        if lowering_platforms is not None and "cpu" not in lowering_platforms:
            refuse("lower", "lowering_platforms", lowering_platforms, None, "programs run on the CPU")
        return Lowered(self)


@final
class Lowered:
    """The program ready for the compiler."""

    def __init__(self, traced: TracedProgram) -> None:
        self._traced = traced
        self.in_tree = traced.in_tree
        self.out_tree = traced._program.out_tree

    @property
    def out_info(self) -> Any:
        """Shapes and dtypes of the result."""
        return self._traced.out_info

    @property
    def args_info(self) -> Any:
        """``ArgInfo`` in place of each argument: positional ones, then those by keyword."""
        return self._traced.args_info

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """The jaxpr as text, with the user's lines if ``debug_info``."""
        refuse("as_text", "dialect", dialect, None, "a lowered program is a jaxpr")
        return self._traced.jaxpr.pretty_print(source_info=debug_info)

    def compile(self, compiler_options: Any = None) -> Compiled:
        """Machine code."""
        if compiler_options:
            raise ValueError(
                f"compiler_options {compiler_options} are XLA's: jaxlite has its own compiler, which takes none."
            )
        return Compiled(self._traced)


@final
class Compiled:
    """Machine code for arguments of exactly these types."""

    def __init__(self, traced: TracedProgram) -> None:
        self._traced = traced
        self._executable = traced._program.executable()
        self.in_tree, self.out_tree = traced.in_tree, traced._program.out_tree

    @property
    def args_info(self) -> Any:
        """``ArgInfo`` in place of each argument: positional ones, then those by keyword."""
        return self._traced.args_info

    @property
    def out_info(self) -> Any:
        """Shapes and dtypes of the result."""
        return self._traced.out_info

    @property
    def report(self) -> Any:
        """How the program was compiled: every pass, decision and kernel."""
        return self._executable.report

    def cost_analysis(self) -> dict[str, float]:
        """What one call costs, predicted: scalar operations, and bytes that kernels read and write."""
        report = self._executable.report
        return {"flops": float(report.operations), "bytes accessed": float(report.bytes_accessed)}

    def memory_analysis(self) -> MemoryAnalysis:
        """What one call holds in memory, by kind; planned, not measured."""
        report = self._executable.report
        return MemoryAnalysis(report.bytes_of("argument"), report.bytes_of("result"), report.plan.workspace_bytes)

    def as_text(self) -> str:
        """The generated code."""
        return str(self._executable.report.target_text)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        dynamic, keywords, _ = self._traced._function.options.without_static(args, kwargs)
        leaves, tree = tree_flatten((dynamic, keywords))
        if tree != self.in_tree:
            raise TypeError(
                "Function compiled with input pytree does not match the input pytree it was "
                f"called with: compiled for {self.in_tree}, called with {tree}."
            )
        operands = [to_array(operand_of(x)) for x in leaves]
        wanted = self._traced.jaxpr.in_avals
        for number, (operand, aval) in enumerate(zip(operands, wanted, strict=True)):
            if not in_program(operand.aval).matches(aval):
                raise TypeError(
                    "Argument types differ from the types for which this computation was "
                    f"compiled: leaf {number} is {operand.aval}, compiled for {aval}."
                )
        donated, program = self._traced._donated, self._traced._program
        run = program.donating(donated) if any(donated) else self._executable
        return self.out_tree.unflatten(run([*program.consts, *operands]))
