"""The native code by which a running program is stopped and watched: its frame, and the look at the clock.

A program that may take long keeps a frame on its stack (`FRAME_WORDS` words). Its loops take work from
the frame's budget; when that is used up `jl_poll` looks at the clock, and every 50 ms takes the
interpreter lock, asks Python for pending signals, and tells the hook how far the outermost loop is.
A handler or hook that raised makes the frame's status, and every later answer, not 0: the program
then returns at once, with the exception set as any C function would.

Long kernels poll for themselves. Workers of the pool, which have no frame, are told by the word
`CANCELLED`, which the caller of their job sets.
"""

from __future__ import annotations

import time

from jaxlite.core.progress import RUN_OVER

POLL_WORK = 1 << 20  # scalar operations between looks at the clock
POLL_NANOSECONDS = 50_000_000

# A program's frame, in 8-byte words.
FRAME_BUDGET = 0  # work left until the next look at the clock
FRAME_DEADLINE = 1  # when to take the interpreter lock, in nanoseconds; 0 before the first look
FRAME_THREAD = 2  # Python's thread state, while the lock is given up
FRAME_STATUS = 3  # not 0: the program stops
FRAME_POOLED = 4  # 1 while a job of this program is in the pool
FRAME_START = 5  # when the first look at the clock was
FRAME_LOOP = 6  # the number of the outermost loop that runs, -1 outside
FRAME_DONE = 7  # its iterations
FRAME_PROGRAM = 8  # the program's `Host`, for the hook
FRAME_TOLD = 9  # 1 when the hook has heard of this run
FRAME_WORDS = 10
FRAME_TYPE = f"[{FRAME_WORDS} x i64]"

# In the pool's memory (`pool_code.py`), bytes: the word that cancels a job; the hook, a Python object or 0
CANCELLED, HOOK = 640, 704

PYTHON_SYMBOLS = (
    "PyErr_CheckSignals",
    "PyErr_Fetch",
    "PyErr_Restore",
    "PyEval_RestoreThread",
    "PyEval_SaveThread",
    "PyObject_CallFunction",
    "Py_DecRef",
)


def pool_word(offset: int) -> str:
    """The address of a word of the pool's memory, as a constant expression."""
    return f"getelementptr (i8, ptr @jl_pool, i64 {offset})"


def field(frame: str, word: int) -> str:
    """`frame` is an LLVM value: the name under which `fields_of` has put the address of one of its words."""
    return f"{frame}.{word}"


def fields_of(frame: str, *words: int) -> str:
    """Instructions that compute the addresses of words of a frame."""
    return "\n".join(f"  {field(frame, word)} = getelementptr i64, ptr {frame}, i64 {word}" for word in words)


def watch_text() -> str:
    """The functions: `spend`, `jl_poll`, `jl_leave`."""
    return "\n".join((_DECLARATIONS, _SPEND, _POLL, _TELL, _LEAVE))


_DECLARATIONS = """
declare i32 @clock_gettime(i32, ptr)
declare void @PyErr_Fetch(ptr, ptr, ptr)
declare void @PyErr_Restore(ptr, ptr, ptr)
declare i32 @PyErr_CheckSignals()
declare void @PyEval_RestoreThread(ptr)
declare ptr @PyEval_SaveThread()
declare ptr @PyObject_CallFunction(ptr, ptr, ...)
declare void @Py_DecRef(ptr)
"""

# Take `work` from the frame's budget and poll when it is used up; a kernel may have polled meanwhile.
_SPEND = f"""
define internal i32 @spend(ptr %frame, i64 %work) {{
{fields_of("%frame", FRAME_STATUS)}
  %status.now = load i64, ptr {field("%frame", FRAME_STATUS)}
  %status = trunc i64 %status.now to i32
  %budget = load i64, ptr %frame
  %rest = sub i64 %budget, %work
  store i64 %rest, ptr %frame
  %out = icmp slt i64 %rest, 0
  br i1 %out, label %poll, label %done
poll:
  %polled = call i32 @jl_poll(ptr %frame)
  ret i32 %polled
done:
  ret i32 %status
}}
"""

_POLL = f"""
define i32 @jl_poll(ptr %frame) {{
entry:
  %worker = icmp eq ptr %frame, null
  br i1 %worker, label %listen, label %caller
listen:
  %cancelled = load atomic i32, ptr {pool_word(CANCELLED)} acquire, align 4
  ret i32 %cancelled
caller:
{fields_of("%frame", FRAME_DEADLINE, FRAME_THREAD, FRAME_STATUS, FRAME_POOLED, FRAME_START)}
  %status.now = load i64, ptr {field("%frame", FRAME_STATUS)}
  %stopping = icmp ne i64 %status.now, 0
  br i1 %stopping, label %stopped, label %look
stopped:
  ret i32 1
look:
  store i64 {POLL_WORK}, ptr %frame
  %now = call i64 @now()
  %deadline = load i64, ptr {field("%frame", FRAME_DEADLINE)}
  %early = icmp slt i64 %now, %deadline
  br i1 %early, label %go.on, label %due
due:
  %next = add i64 %now, {POLL_NANOSECONDS}
  store i64 %next, ptr {field("%frame", FRAME_DEADLINE)}
  %first = icmp eq i64 %deadline, 0
  br i1 %first, label %begin, label %ask
begin:
  store i64 %now, ptr {field("%frame", FRAME_START)}
  br label %go.on
ask:
  %thread = load ptr, ptr {field("%frame", FRAME_THREAD)}
  call void @PyEval_RestoreThread(ptr %thread)
  %signalled = call i32 @PyErr_CheckSignals()
  %quiet = icmp eq i32 %signalled, 0
  br i1 %quiet, label %tell, label %asked
tell:
  %told = call i32 @tell(ptr %frame, i64 %now)
  br label %asked
asked:
  %answer = phi i32 [ 1, %ask ], [ %told, %tell ]
  %thread.new = call ptr @PyEval_SaveThread()
  store ptr %thread.new, ptr {field("%frame", FRAME_THREAD)}
  %wide = zext i32 %answer to i64
  store i64 %wide, ptr {field("%frame", FRAME_STATUS)}
  %pooled = load i64, ptr {field("%frame", FRAME_POOLED)}
  %cancel = trunc i64 %pooled to i1
  br i1 %cancel, label %spread, label %answered
spread:
  store atomic i32 %answer, ptr {pool_word(CANCELLED)} release, align 4
  br label %answered
answered:
  ret i32 %answer
go.on:
  ret i32 0
}}

define internal i64 @now() {{
  %time = alloca [2 x i64]
  call i32 @clock_gettime(i32 {time.CLOCK_MONOTONIC}, ptr %time)
  %seconds = load i64, ptr %time
  %rest.address = getelementptr i64, ptr %time, i64 1
  %rest = load i64, ptr %rest.address
  %scaled = mul i64 %seconds, 1000000000
  %now = add i64 %scaled, %rest
  ret i64 %now
}}
"""

# Tell the hook, the lock held: hook(run, program, loop, done, nanoseconds); 1 if it raised. `run` tells runs apart.
_TELL = f"""
@tell.format = private constant [6 x i8] c"LOLLL\\00"

define internal i32 @tell(ptr %frame, i64 %now) {{
entry:
{fields_of("%frame", FRAME_START, FRAME_LOOP, FRAME_DONE, FRAME_PROGRAM, FRAME_TOLD)}
  %hook = load ptr, ptr {pool_word(HOOK)}
  %deaf = icmp eq ptr %hook, null
  %loop = load i64, ptr {field("%frame", FRAME_LOOP)}
  %heard = load i64, ptr {field("%frame", FRAME_TOLD)}
  %outside = icmp slt i64 %loop, 0
  %fresh = icmp eq i64 %heard, 0
  %nothing = and i1 %outside, %fresh
  %silent = or i1 %deaf, %nothing
  br i1 %silent, label %good, label %call
call:
  store i64 1, ptr {field("%frame", FRAME_TOLD)}
  %run = ptrtoint ptr %frame to i64
  %program = load ptr, ptr {field("%frame", FRAME_PROGRAM)}
  %done = load i64, ptr {field("%frame", FRAME_DONE)}
  %start = load i64, ptr {field("%frame", FRAME_START)}
  %elapsed = sub i64 %now, %start
  %result = call ptr (ptr, ptr, ...) @PyObject_CallFunction(ptr %hook, ptr @tell.format, i64 %run, ptr %program,
    i64 %loop, i64 %done, i64 %elapsed)
  %raised = icmp eq ptr %result, null
  br i1 %raised, label %bad, label %called
called:
  call void @Py_DecRef(ptr %result)
  ret i32 0
bad:
  ret i32 1
good:
  ret i32 0
}}
"""

# The end of a program: take the lock; a hook that has heard of the run hears that it is over, while the
# exception that ended it, if one did, is laid aside. Returns 1 if the hook raised.
_LEAVE = f"""
define i32 @jl_leave(ptr %frame) {{
entry:
{fields_of("%frame", FRAME_THREAD, FRAME_LOOP, FRAME_TOLD)}
  %thread = load ptr, ptr {field("%frame", FRAME_THREAD)}
  call void @PyEval_RestoreThread(ptr %thread)
  %told = load i64, ptr {field("%frame", FRAME_TOLD)}
  %unknown = icmp eq i64 %told, 0
  br i1 %unknown, label %good, label %end
end:
  %type = alloca ptr
  %value = alloca ptr
  %traceback = alloca ptr
  call void @PyErr_Fetch(ptr %type, ptr %value, ptr %traceback)
  store i64 {RUN_OVER}, ptr {field("%frame", FRAME_LOOP)}
  %now = call i64 @now()
  %status = call i32 @tell(ptr %frame, i64 %now)
  %kept = load ptr, ptr %type
  %clean = icmp eq ptr %kept, null
  br i1 %clean, label %told.clean, label %restore
told.clean:
  ret i32 %status
restore:
  %kept.value = load ptr, ptr %value
  %kept.traceback = load ptr, ptr %traceback
  call void @PyErr_Restore(ptr %kept, ptr %kept.value, ptr %kept.traceback)
  ret i32 1
good:
  ret i32 0
}}
"""
