"""Calls of BLAS and LAPACK routines as native code: a task that calls one for each matrix of a batch.

Fortran routines take the address of each argument, so numbers and characters are put on the stack once.
"""

from __future__ import annotations

from jaxlite.compiler.plan import LibraryCall, Pointer


def library_call_text(call: LibraryCall, symbol: str) -> str:
    """The task: buffers are the call's, an index is one matrix."""
    scalar = "float" if call.real.itemsize == 4 else "double"
    before: list[str] = []
    inside: list[str] = []
    arguments: list[str] = []
    for number, argument in enumerate(call.arguments):
        name = f"%argument.{number}"
        arguments.append(f"ptr {name}")
        if isinstance(argument, Pointer):
            before += [
                f"  {name}.slot = getelementptr ptr, ptr %buffers, i64 {argument.buffer}",
                f"  {name}.base = load ptr, ptr {name}.slot",
            ]
            inside += [
                f"  {name}.offset = mul i64 %index, {argument.nbytes}",
                f"  {name} = getelementptr i8, ptr {name}.base, i64 {name}.offset",
            ]
            continue
        kind, value = _constant(argument, scalar)
        before += [f"  {name} = alloca {kind}", f"  store {kind} {value}, ptr {name}"]
    lines = [
        f"declare void @jl_{call.routine}({', '.join('ptr' for _ in arguments)})",
        f"define internal void @{symbol}(ptr %buffers, ptr %sizes, i64 %lo, i64 %hi, ptr %frame) nounwind {{",
        "entry:",
        *before,
        "  br label %call",
        "call:",
        "  %index = phi i64 [ %lo, %entry ], [ %next, %call ]",
        *inside,
        f"  call void @jl_{call.routine}({', '.join(arguments)})",
        "  %next = add i64 %index, 1",
        "  %more = icmp ult i64 %next, %hi",
        "  br i1 %more, label %call, label %done",
        "done:",
        "  ret void",
        "}",
        "",
    ]
    return "\n".join(lines)


def _constant(argument: int | str | float, scalar: str) -> tuple[str, str]:
    """The LLVM type and text of a number or character."""
    if isinstance(argument, str):
        return "i8", str(ord(argument))
    if isinstance(argument, float):
        return scalar, repr(argument)
    return "i32", str(argument)
