"""The fusion payload: the kernels of a compiled program, what is in each, and why it ends there.

In: a compile report. Out: a dict of kernels (equations with their lines, bytes, loop nest), of the
decisions of every pass with reasons and numbers, and of the seconds that each pass took.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from jaxlite.core.jaxpr import JaxprEqn
from jaxlite.core.printing import equation_text, namer
from jaxlite.inspect.graph import kernel_id, value_data
from jaxlite.inspect.quantities import VERSION, measured, predicted
from jaxlite.inspect.sources import FileLabel, Lines

if TYPE_CHECKING:
    from jaxlite.compiler.groups import Group
    from jaxlite.compiler.report import CompileReport, Decision, KernelRecord, PassRecord


def fusion_payload(report: CompileReport, file_label: FileLabel | None = None) -> dict[str, Any]:
    """The payload of ``report``."""
    lines, names = Lines(file_label), namer()
    for var in (*report.simplified.jaxpr.constvars, *report.simplified.jaxpr.invars):
        names(var)
    for eqn in report.simplified.eqns:  # names as the printed jaxpr has them
        equation_text(eqn, names)
    records = _matching(report)
    return {
        "version": VERSION,
        "kind": "fusion",
        "name": report.name,
        "traced": len(report.jaxpr.eqns),
        "equations": len(report.simplified.eqns),
        "kernels": [_kernel(n, g, records.get(n), names, lines) for n, g in enumerate(report.groups)],
        "passes": [_pass(p, report.name, lines) for p in report.passes],
        "seconds": {k: measured(v, "s") for k, v in report.seconds.items()},
        "host_calls": list(report.host_calls),
        "lines": lines.lines,
    }


def _matching(report: CompileReport) -> dict[int, KernelRecord]:
    """The record of each group that became a kernel: both lists are in the order of lowering."""
    waiting: dict[str, list[KernelRecord]] = {}
    for record in report.kernels:
        waiting.setdefault(record.name, []).append(record)
    groups = enumerate(report.groups)
    return {n: waiting[g.name].pop(0) for n, g in groups if waiting.get(g.name)}


def _kernel(number: int, group: Group, record: KernelRecord | None, names: Any, lines: Lines) -> dict[str, Any]:
    data = {
        "id": kernel_id(number),
        "name": group.name,
        "kind": group.kind,
        "reason": group.reason,
        "equations": [_equation(e, names, lines) for e in group.eqns],
        "recomputed": [_equation(e, names, lines) for e in group.inlined],
        "outputs": [value_data(names(v), v.aval) for v in group.outputs],
        "loop_nest": "",
        "reads": None,
        "writes": predicted(sum(v.aval.nbytes for v in group.outputs), "B"),
    }
    if record is not None:
        data["loop_nest"] = record.loop_nest()
        data["reads"] = predicted(record.reads_bytes, "B")
        data["writes"] = predicted(record.writes_bytes, "B")
    return data


def _equation(eqn: JaxprEqn, names: Any, lines: Lines) -> dict[str, Any]:
    text = equation_text(eqn, names).splitlines()
    shown = text[0] + (" ..." if len(text) > 1 else "")
    return {"text": shown, "source": lines.add(eqn.source)}


def _pass(record: PassRecord, program: str, lines: Lines) -> dict[str, Any]:
    return {
        "name": record.name,
        "scope": "" if record.scope == program else record.scope,
        "why": record.why,
        "equations": record.equations,
        "seconds": measured(record.seconds, "s"),
        "decisions": [_decision(d, lines) for d in record.decisions],
    }


def _decision(decision: Decision, lines: Lines) -> dict[str, Any]:
    return {
        "subject": decision.subject,
        "verdict": decision.verdict,
        "reason": decision.reason,
        "numbers": {k: predicted(v, _unit(k)) for k, v in decision.numbers.items()},
        "source": lines.add(decision.source),
    }


def _unit(name: str) -> str:
    return "B" if "bytes" in name else ""


def decisions_of(payload: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Every decision with its pass's name, in order."""
    return [(p["name"], d) for p in payload["passes"] for d in p["decisions"]]
