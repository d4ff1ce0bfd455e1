"""Payloads in words, for terminals and for the last resort of a notebook."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jaxlite.inspect.fusion import decisions_of
from jaxlite.inspect.quantities import amount_text, quantity_text
from jaxlite.inspect.sources import source_text


def graph_text(payload: Mapping[str, Any]) -> str:
    """The nodes, indented by the groups that hold them, each with its type and line."""
    depth: dict[str | None, int] = {None: 0}
    labels = {g["id"]: g for g in payload["groups"]}
    for group in payload["groups"]:
        depth[group["id"]] = depth[group["parent"]] + 1
    kernels = sum(g["kind"] == "kernel" for g in payload["groups"])
    head = f"{payload['name']}: {len(payload['nodes'])} nodes, {len(payload['edges'])} edges"
    lines = [head + (f", {kernels} kernels" if kernels else "")]
    before: str | None = None
    for node in payload["nodes"]:
        if node["parent"] != before and node["parent"] is not None:
            label = labels[node["parent"]]["label"]
            lines.append("  " * depth[node["parent"]] + f"[{label}]")
        before = node["parent"]
        lines.append("  " * (depth[node["parent"]] + 1) + node_text(node))
    return "\n".join(lines)


def node_text(node: Mapping[str, Any]) -> str:
    """One node on one line: ``mul  f32[3] 12 B  # Cell In[3], line 4``."""
    types = ", ".join(f"{v['type']} {amount_text(v['bytes'])}" for v in node["values"])
    at = f"  # {source_text(node['source'])}" if node["source"] else ""
    return f"{node['label']}  {types}{at}"


def fusion_text(payload: Mapping[str, Any]) -> str:
    """The kernels with their equations, the passes with their times, then why each boundary is there."""
    lines = [
        f"{payload['name']}: {payload['traced']} equations traced, {payload['equations']} after "
        f"simplification, {len(payload['kernels'])} kernels and steps"
    ]
    for kernel in payload["kernels"]:
        lines += ["", *_kernel_lines(kernel)]
    lines += ["", "Passes:", *map(pass_text, payload["passes"])]
    decisions = decisions_of(payload)
    if decisions:
        lines += ["", "Decisions:"]
    for name, decision in decisions:
        at = f"  # {source_text(decision['source'])}" if decision["source"] else ""
        lines.append(f"  {name}: {decision_text(decision)}{at}")
    if payload["host_calls"]:
        lines += ["", f"Calls into Python: {', '.join(payload['host_calls'])}"]
    return "\n".join(lines)


def pass_text(record: Mapping[str, Any]) -> str:
    """``  fuse (why): 13 equations, 4.44 ms (measured)``, and over whose body where it is not the program's."""
    over = f" over the {record['scope']}" if record["scope"] else ""
    after = f"{record['equations']} equations, {quantity_text(record['seconds'])}"
    return f"  {record['name']}{over} ({record['why']}): {after}"


def decision_text(decision: Mapping[str, Any]) -> str:
    """``subject: verdict (reason; bytes 400 B)``, the numbers being predicted."""
    numbers = "".join(f"; {k.replace('_', ' ')} {amount_text(v).strip()}" for k, v in decision["numbers"].items())
    basis = ", predicted" if decision["numbers"] else ""
    return f"{decision['subject']}: {decision['verdict']} ({decision['reason']}{numbers}{basis})"


def _kernel_lines(kernel: Mapping[str, Any]) -> list[str]:
    traffic = [f"{w} {quantity_text(kernel[w])}" for w in ("reads", "writes") if kernel[w]]
    lines = [f"{kernel['name']} ({kernel['kind']}): {', '.join(traffic)}"]
    if kernel["reason"]:
        lines.append(f"  {kernel['reason']}")
    for what in ("equations", "recomputed"):
        mark = "" if what == "equations" else "(recomputed) "
        for equation in kernel[what]:
            at = f"  # {source_text(equation['source'])}" if equation["source"] else ""
            lines.append(f"    {mark}{equation['text']}{at}")
    return lines
