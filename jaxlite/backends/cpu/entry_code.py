"""Fixed pieces of a program's entry, LLVM IR text: giving the interpreter lock up and back, long copies.

`program.py` writes the rest. A long copy or fill goes piece by piece and polls between two.
"""

from __future__ import annotations

from jaxlite.backends.cpu import watch_code

PIECE = 1 << 24  # bytes that are copied or filled at once

DECLARATIONS = """
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare i32 @jl_poll(ptr)
declare i32 @jl_leave(ptr)
declare i32 @jl_pool_run(ptr, ptr, ptr, i64, i64, i64, ptr, i64)
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare i32 @llvm.smax.i32(i32, i32)
declare i32 @llvm.smin.i32(i32, i32)
"""


def _store(word: int, what: str) -> tuple[str, str]:
    at = f"%frame.{word}"
    return f"  {at} = getelementptr i64, ptr %frame, i64 {word}", f"  store {what}, ptr {at}"


RELEASE = (
    f"  %frame = alloca {watch_code.FRAME_TYPE}",
    "  %thread = call ptr @PyEval_SaveThread()",
    "  %program.number = load i64, ptr %context",
    *_store(watch_code.FRAME_BUDGET, f"i64 {watch_code.POLL_WORK}"),
    *_store(watch_code.FRAME_DEADLINE, "i64 0"),
    *_store(watch_code.FRAME_THREAD, "ptr %thread"),
    *_store(watch_code.FRAME_STATUS, "i64 0"),
    *_store(watch_code.FRAME_POOLED, "i64 0"),
    *_store(watch_code.FRAME_LOOP, "i64 -1"),
    *_store(watch_code.FRAME_PROGRAM, "i64 %program.number"),
    *_store(watch_code.FRAME_TOLD, "i64 0"),
)
REACQUIRE = (
    "  %raised = call i32 @jl_leave(ptr %frame)",
    "  %left = or i32 %result, %raised",
)


def _in_pieces(name: str, parameter: str, piece: str) -> str:
    """A function that does something to memory piece by piece, and polls between two."""
    return f"""
define internal i32 @{name}(ptr %to, {parameter}, i64 %nbytes, ptr %frame) nounwind {{
entry:
  br label %piece
piece:
  %at = phi i64 [ 0, %entry ], [ %next, %going ]
  %left = sub i64 %nbytes, %at
  %length = call i64 @llvm.umin.i64(i64 %left, i64 {PIECE})
  %there = getelementptr i8, ptr %to, i64 %at
{piece}
  %status = call i32 @jl_poll(ptr %frame)
  %stop = icmp ne i32 %status, 0
  br i1 %stop, label %done, label %going
going:
  %next = add i64 %at, %length
  %more = icmp ult i64 %next, %nbytes
  br i1 %more, label %piece, label %done
done:
  ret i32 %status
}}
"""


PIECES = "\n".join(
    (
        "declare i64 @llvm.umin.i64(i64, i64)",
        _in_pieces(
            "copy_in_pieces",
            "ptr %from",
            "  %here = getelementptr i8, ptr %from, i64 %at\n"
            "  call void @llvm.memmove.p0.p0.i64(ptr %there, ptr %here, i64 %length, i1 false)",
        ),
        _in_pieces(
            "fill_in_pieces",
            "i8 %byte",
            "  call void @llvm.memset.p0.i64(ptr %there, i8 %byte, i64 %length, i1 false)",
        ),
    )
)
