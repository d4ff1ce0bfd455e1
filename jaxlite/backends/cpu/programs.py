"""build: a jaxpr in, a `Program` (arrays in, arrays out) out: from the disk cache if it is there, else compiled."""

from __future__ import annotations

import functools
import itertools
import logging
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, final

from jaxlite.backends.cpu import disk_cache
from jaxlite.backends.cpu.donation import Donating
from jaxlite.backends.cpu.environment import environment_digest
from jaxlite.backends.cpu.executable import Executable
from jaxlite.backends.cpu.image import Image
from jaxlite.backends.cpu.limits import CHECKED
from jaxlite.backends.cpu.memory import Block
from jaxlite.compiler.fingerprint import NotStorable, fingerprint
from jaxlite.core import config
from jaxlite.core.array import Array, to_array
from jaxlite.core.avals import ShapedArray
from jaxlite.core.errors import DoesNotFitError
from jaxlite.core.jaxpr import ClosedJaxpr
from jaxlite.core.progress import loops_of
from jaxlite.core.propagation import meshes_inside
from jaxlite.core.trace import Tracer
from jaxlite.interpreters import nan_check
from jaxlite.interpreters.eval import refuse_tracers

if TYPE_CHECKING:
    from jaxlite.compiler.partition import Partition
    from jaxlite.compiler.report import CompileReport
    from jaxlite.core.shardings import NamedSharding

logger = logging.getLogger("jaxlite")

_NO_VIEWS = itertools.repeat(None)


@final
class Program:
    """A compiled program: arrays in, arrays out."""

    def __init__(
        self,
        native: Executable,
        out_avals: Sequence[ShapedArray],
        seconds: dict[str, float],
        report: Callable[[], CompileReport],
    ) -> None:
        self.seconds = seconds
        self._executable, self._native = native, native.run
        self._lets_others_run = native.lets_others_run
        self._out_avals = tuple(out_avals)
        self._report = report

    @functools.cached_property
    def report(self) -> CompileReport:
        """How it was compiled."""
        return self._report()

    def __call__(self, operands: Sequence[Any]) -> list[Array]:
        """The results for these operands, which have the types that the program was compiled for."""
        addresses, owners = self.run(operands)
        made = list(map(Array, self._out_avals, _NO_VIEWS, addresses, owners))
        if nan_check.checking():
            nan_check.find_origin(self.report.jaxpr, list(map(in_memory, operands)), made)
        return made

    def run(self, operands: Sequence[Any]) -> tuple[list[int], list[Block]]:
        """Addresses and owners of the results, not yet arrays."""
        try:
            held = [x._owner or x._view for x in operands] if self._lets_others_run else None
            given = [x._address or x.address for x in operands]
        except AttributeError:  # numbers, NumPy arrays
            operands = [x if type(x) is Array else in_memory(x) for x in operands]
            held = [x.owner for x in operands]
            given = [x.address for x in operands]
        try:
            return self._native(given)
        except DoesNotFitError as refusal:
            raise self._explained(refusal) from None
        finally:
            del held  # until here: somebody might delete an operand while the program runs

    def donating(self, donated: Sequence[int]) -> Callable[[Sequence[Any]], list[Array]]:
        """The program for calls that give up the operands of these numbers."""
        calls = Donating(self._executable, donated)

        def call(operands: Sequence[Any]) -> list[Array]:
            if nan_check.checking():  # which needs the operands once more if it finds one
                return self(operands)
            try:
                addresses, owners = calls.run(list(map(in_memory, operands)))
            except DoesNotFitError as refusal:
                raise self._explained(refusal) from None
            return list(map(Array, self._out_avals, _NO_VIEWS, addresses, owners))

        return call

    def _explained(self, refusal: DoesNotFitError) -> DoesNotFitError:
        """The refusal with the largest buffers and the user's lines."""
        if self.report.plan.workspace_bytes + sum(self._executable.image.results) < CHECKED:
            return refusal  # not this program's own
        return DoesNotFitError(f"{refusal}\n{self.report.memory.largest_text()}")


def in_memory(value: Any) -> Array:
    """A concrete operand as an array."""
    if isinstance(value, Tracer):
        refuse_tracers([value])
    return to_array(value)


def build(jaxpr: ClosedJaxpr, name: str, shardings: Sequence[NamedSharding | None] = ()) -> Program:
    """The program, ready to run; ``shardings``: how arguments lie on a mesh, where some do."""
    if any(s is not None for s in shardings) or next(meshes_inside(jaxpr), None) is not None:
        from jaxlite.compiler.partition import partition

        parts = partition(jaxpr, shardings or [None] * len(jaxpr.in_avals))
        if parts is not None:
            return _build(parts.whole, name, parts)
    return _build(jaxpr, name, None)


def _build(jaxpr: ClosedJaxpr, name: str, parts: Partition | None) -> Program:
    out_avals = list(jaxpr.out_avals)
    if parts is not None:
        out_avals = [a.update(sharding=s) for a, s in zip(out_avals, parts.out_shardings, strict=True)]
    start = time.perf_counter()
    cache = disk_cache.current()
    key = _key(jaxpr, name) if cache is not None else None
    keyed = time.perf_counter()
    stored = cache.load(key) if cache is not None and key is not None else None
    if stored is not None:
        read = time.perf_counter()
        native = Executable(Image.from_bytes(stored), loops=lambda: loops_of(jaxpr))
        seconds = {"fingerprint": keyed - start, "read": read - keyed, "link": time.perf_counter() - read}
        contract_fma = config.contract_fma.value

        def report() -> CompileReport:
            return _with_partition(_report_of_loaded(jaxpr, name, seconds, contract_fma), parts)

        return Program(native, out_avals, seconds, report)

    from jaxlite.backends.cpu.compile_program import compile_program

    code, compiled = compile_program(jaxpr, name)
    if cache is not None and key is not None and not code.host_calls:
        cache.store(key, code.image.to_bytes())
    before = time.perf_counter()
    native = Executable(code.image, code.host_calls, lambda: loops_of(jaxpr))
    compiled.seconds["link"] = time.perf_counter() - before
    return Program(native, out_avals, compiled.seconds, lambda: _with_partition(compiled, parts))


def _with_partition(report: CompileReport, parts: Partition | None) -> CompileReport:
    report.partition = parts
    return report


def _key(jaxpr: ClosedJaxpr, name: str) -> bytes | None:
    try:
        return fingerprint(environment_digest(), config.tracing_key(), name, jaxpr)
    except NotStorable as reason:
        logger.debug("%s is not kept on disk: %s", name, reason)
        return None


def _report_of_loaded(jaxpr: ClosedJaxpr, name: str, seconds: dict[str, float], contract_fma: bool) -> CompileReport:
    from jaxlite.backends.cpu.compile_program import report_of_loaded

    return report_of_loaded(jaxpr, name, seconds, contract_fma)
