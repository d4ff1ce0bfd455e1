"""Numbers that say where they come from: predicted (from types and the plan) or measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Quantity = dict[str, Any]
VERSION = 1  # of every payload: raised when a field changes its meaning or goes


def predicted(value: int | float, unit: str) -> Quantity:
    """A number that follows from the program without running it."""
    return {"value": value, "unit": unit, "basis": "predicted"}


def measured(value: int | float, unit: str) -> Quantity:
    """A number that was observed on this machine."""
    return {"value": value, "unit": unit, "basis": "measured"}


def amount_text(quantity: Mapping[str, Any]) -> str:
    """``4,096 B`` or ``1.25 ms``: value and unit alone."""
    value, unit = quantity["value"], quantity["unit"]
    if unit == "s":
        return duration_text(value)
    return f"{value:,} {unit}" if isinstance(value, int) else f"{value:.4g} {unit}"


def quantity_text(quantity: Mapping[str, Any]) -> str:
    """``4,096 B (predicted)``."""
    return f"{amount_text(quantity)} ({quantity['basis']})"


def duration_text(seconds: float) -> str:
    """Seconds in the unit that reads best."""
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * scale >= 1:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"
