"""Constant tables that kernels read, as LLVM globals; a module holds those its kernels name."""

from __future__ import annotations

from jaxlite.backends.cpu.coefficients import TWO_OVER_PI

TWO_OVER_PI_TABLE = "jl_table_two_over_pi"


def _words(name: str, values: tuple[int, ...]) -> str:
    body = ", ".join(f"i64 {value}" for value in values)
    return f"@{name} = private constant [{len(values)} x i64] [{body}], align 64"


# Zero words around the digits: windows may start before the point and end after the digits.
TABLES: dict[str, str] = {
    TWO_OVER_PI_TABLE: _words(TWO_OVER_PI_TABLE, (0, 0, *TWO_OVER_PI, 0, 0)),
}
