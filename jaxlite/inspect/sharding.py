"""The sharding payload: how a program lies on its mesh, what each operation moves, and what a device must hold.

In: a compile report of a program over a mesh.  Out: a dict of the mesh, the arguments and results with their parts, the
operations with specs and collectives, and bytes; times where they were measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jaxlite.core.avals import ShapedArray
from jaxlite.core.partition_spec import PartitionSpec
from jaxlite.core.sharding_drawing import drawing
from jaxlite.core.shardings import NamedSharding
from jaxlite.inspect.quantities import VERSION, measured, predicted, quantity_text
from jaxlite.inspect.sources import FileLabel, Lines, source_text

if TYPE_CHECKING:
    from jaxlite.compiler.partition import Partition
    from jaxlite.compiler.partition.layouts import Layout, Names
    from jaxlite.compiler.report import CompileReport


def sharding_payload(
    report: CompileReport, file_label: FileLabel | None = None, measure: bool = False
) -> dict[str, Any]:
    """The payload; with ``measure`` each collective is run alone and timed.

    ``ValueError`` where the program runs on one device.
    """
    parts = report.partition
    if parts is None:
        raise ValueError(
            f"{report.name} runs on one device: lay an argument out over a mesh first, as in "
            "jax.device_put(x, NamedSharding(mesh, P('x')))."
        )
    lines = Lines(file_label)
    given = report.jaxpr.jaxpr.debug_info.argument_names
    names = [given[n] if n < len(given) and given[n] else f"constant {n}" for n in range(len(parts.in_layouts))]
    seconds = _measured(parts) if measure else [None] * len(parts.communications)
    communications = [
        {
            "kind": c.kind,
            "axes": list(map(str, c.axes)),
            "bytes": predicted(c.nbytes, "B"),
            "times": c.times,
            "why": c.why,
            "seconds": None if s is None else measured(s, "s"),
            "source": lines.add(c.source),
        }
        for c, s in zip(parts.communications, seconds, strict=True)
    ]
    ins = [
        _array(parts, name, aval, lay)
        for name, aval, lay in zip(names, report.jaxpr.in_avals, parts.in_layouts, strict=True)
    ]
    outs = [
        _array(parts, f"result {n}", aval, lay)
        for n, (aval, lay) in enumerate(zip(report.jaxpr.out_avals, parts.out_layouts, strict=True))
    ]
    return {
        "version": VERSION,
        "kind": "sharding",
        "name": report.name,
        "mesh": [
            {"name": str(name), "size": size, "type": kind.name}
            for (name, size), kind in zip(parts.mesh.shape_tuple, parts.mesh.axis_types, strict=True)
        ],
        "arguments": ins,
        "results": outs,
        "operations": [
            {
                "name": o.name,
                "operands": [_typed(*operand) for operand in o.operands],
                "results": [_typed(*result) for result in o.results],
                "communications": list(o.communications),
                "choice": o.choice,
                "source": lines.add(o.source),
            }
            for o in parts.operations
        ],
        "communications": communications,
        "received": predicted(sum(c.nbytes * (c.times or 1) for c in parts.communications), "B"),
        "held": predicted(_held(parts), "B"),
        "lines": lines.lines,
    }


def _measured(parts: Partition) -> Sequence[float]:
    from jaxlite.compiler.partition.timing import seconds_of

    return seconds_of(parts)


def _array(parts: Partition, name: str, aval: ShapedArray, layout: Layout) -> dict[str, Any]:
    sharding = NamedSharding(parts.mesh, PartitionSpec(*layout))
    local = aval.update(shape=sharding.shard_shape(aval.shape), sharding=None)
    split = sum(1 for names in layout if names)
    picture = drawing(aval.shape, sharding) if split <= 2 and hasattr(parts.mesh, "devices") else ""
    return {
        "name": name,
        "type": aval.update(sharding=None).short(),
        "spec": repr(PartitionSpec(*layout)),
        "local": local.short(),
        "bytes": predicted(local.nbytes, "B"),
        "picture": picture,
    }


def _typed(aval: ShapedArray, layout: Layout, due: Names) -> dict[str, Any]:
    """A value of an operation; ``due``: mesh axes over which it is still to be summed."""
    return {
        "type": aval.update(sharding=None).short(),
        "spec": repr(PartitionSpec(*layout, unreduced=due)),
        "layout": [list(map(str, names)) for names in layout],
    }


def _held(parts: Partition) -> int:
    """The most bytes that one device holds at once, if each value goes after its last use and none takes another's
    place."""
    jaxpr = parts.local.jaxpr
    arguments = sum(v.aval.nbytes for v in (*jaxpr.constvars, *jaxpr.invars))
    last: dict[Any, int] = {}
    for number, eqn in enumerate(jaxpr.eqns):
        last.update((a, number) for a in (*eqn.invars, *eqn.outvars) if hasattr(a, "aval") and not hasattr(a, "val"))
    kept = {a for a in jaxpr.outvars if not hasattr(a, "val")}
    alive: dict[Any, int] = {}
    most = 0
    for number, eqn in enumerate(jaxpr.eqns):
        alive.update((v, v.aval.nbytes) for v in eqn.outvars)
        most = max(most, sum(alive.values()))
        for var in [v for v in alive if last.get(v) == number and v not in kept]:
            del alive[var]
    return arguments + most


def sharding_text(payload: Mapping[str, Any]) -> str:
    """The board in words."""
    axes = ", ".join(f"{a['name']}: {a['size']} ({a['type'].lower()})" for a in payload["mesh"])
    count = len(payload["communications"])
    lines = [
        f"{payload['name']} over the mesh {axes}",
        f"Each device holds {quantity_text(payload['held'])} at most and receives {quantity_text(payload['received'])} "
        f"in {count} collective{'' if count == 1 else 's'}.",
    ]
    for title in ("arguments", "results"):
        lines += ["", f"{title.capitalize()}:"]
        for array in payload[title]:
            lines.append(
                f"  {array['name']}: {array['type']} {array['spec']}, on each device {array['local']}, "
                f"{quantity_text(array['bytes'])}"
            )
            lines += [f"    {row}" for row in array["picture"].splitlines()] if "'" in array["spec"] else []
    lines += ["", "Operations:"]
    for operation in payload["operations"]:
        lines.append(operation_text(operation))
        lines += [f"      {communication_text(payload['communications'][n])}" for n in operation["communications"]]
    return "\n".join(lines)


def operation_text(operation: Mapping[str, Any]) -> str:
    """``  dot_general: P('x', None), P(None, 'y') -> P('x', 'y')  # train.py, line 3``."""
    given = ", ".join(o["spec"] for o in operation["operands"])
    made = ", ".join(r["spec"] for r in operation["results"])
    at = f"  # {source_text(operation['source'])}" if operation["source"] else ""
    return f"  {operation['name']}: {given} -> {made}{at}"


def communication_text(communication: Mapping[str, Any]) -> str:
    """``all_reduce over x: 1,024 B (predicted), 12 µs (measured)``."""
    taken = f", {quantity_text(communication['seconds'])}" if communication["seconds"] else ""
    often = {1: "", None: ", in a loop"}.get(communication["times"], f", {communication['times']} times")
    what = f"{communication['kind']} over {', '.join(communication['axes'])}"
    return f"{what}: {quantity_text(communication['bytes'])}{taken}{often}"
