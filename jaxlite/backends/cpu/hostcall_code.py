"""The native code of a host call: a program calls a Python object as C code would.

In: whether the program gives the interpreter lock up. Out: LLVM text of `call_host(object, number, addresses,
frame)`, which takes the lock back for the call. An exception stays set, as the C API has it: nothing lies between
the Python function and the caller of the program where an interrupt could be lost.
"""

from __future__ import annotations

from jaxlite.backends.cpu.watch_code import FRAME_THREAD

SYMBOLS = ("PyObject_CallFunction", "Py_DecRef")

_CALL = """
  %result = call ptr (ptr, ptr, ...) @PyObject_CallFunction(ptr %object, ptr @host.format, i64 %number,
    ptr %addresses)
  %raised = icmp eq ptr %result, null
  br i1 %raised, label %called, label %good
good:
  call void @Py_DecRef(ptr %result)
  br label %called
called:
  %status = zext i1 %raised to i32
"""


def host_call_text(long: bool) -> str:
    """The function: 0, or 1 if Python raised."""
    take, give = (_TAKE, _GIVE) if long else ("", "")
    return f"""
declare ptr @PyObject_CallFunction(ptr, ptr, ...)
declare void @Py_DecRef(ptr)
@host.format = private constant [3 x i8] c"LL\\00"
define internal i32 @call_host(ptr %object, i64 %number, ptr %addresses, ptr %frame) nounwind {{
{take}{_CALL}{give}
  ret i32 %status
}}
"""


_TAKE = f"""
  %thread.at = getelementptr i64, ptr %frame, i64 {FRAME_THREAD}
  %thread = load ptr, ptr %thread.at
  call void @PyEval_RestoreThread(ptr %thread)
"""
_GIVE = """
  %thread.new = call ptr @PyEval_SaveThread()
  store ptr %thread.new, ptr %thread.at
"""
