"""The thread pool's native code: LLVM IR text of the worker loop, fork/join and the look at signals.

One job at a time: a function `task(buffers, sizes, lo, hi, frame)` over [0, extent) in chunks. Every
participant owns a contiguous range of chunks (the same rows meet the same thread in every step)
and, when it is through, takes from the others. A ticket per participant holds how many of its
chunks are left; taking one is a compare-and-swap, and only after it is the job read, so a worker
that wakes late takes chunks of whatever job runs now, or none. The caller waits for chunks that
are running, never for threads that sleep. Waiting spins a little, then sleeps: by futex on Linux,
else by pthreads.

    jl_pool_run   split a job, take part, join; 0, or not 0 if the program is to stop
    jl_poll       called when a frame's budget of work is used up, and by long kernels (`watch_code.py`)
    jl_leave      take the interpreter lock at the end of a program
    jl_worker     what a worker thread runs until the pool stops
    jl_pool_claim, jl_pool_release
                  keep jobs out of the pool while its threads change: they run on their callers
"""

from __future__ import annotations

import platform
import sys

from jaxlite.backends.cpu import watch_code
from jaxlite.backends.cpu.watch_code import CANCELLED, FRAME_POOLED, field, fields_of, pool_word

# The pool's memory, byte offsets: one word per cache line.
GENERATION, SLEEPERS, PENDING, CALLER_SLEEPS, TAKEN, STOP = 0, 64, 128, 192, 256, 320
PARTICIPANTS = 328
TASK, BUFFERS, SIZES, EXTENT, CHUNK, CHUNKS, JOB_PARTICIPANTS = 384, 392, 400, 408, 416, 424, 432
MUTEX, CONDITION = 512, 576
TICKETS, TICKET_BYTES = 1024, 64
MAX_PARTICIPANTS = 256
POOL_BYTES = TICKETS + TICKET_BYTES * MAX_PARTICIPANTS
CLAIMED = 2  # what TAKEN holds while the threads change

SPINS = 2000  # pauses before a thread sleeps: about 0.1 ms

EXPORTS = (
    "jl_pool",
    "jl_pool_claim",
    "jl_pool_release",
    "jl_pool_reset",
    "jl_pool_run",
    "jl_pool_stop",
    "jl_poll",
    "jl_leave",
    "jl_worker",
)
PROGRAM_SYMBOLS = ("jl_pool_run", "jl_poll", "jl_leave")  # what a program's code calls
PTHREAD_SYMBOLS = (
    "pthread_mutex_init",
    "pthread_mutex_lock",
    "pthread_mutex_unlock",
    "pthread_cond_init",
    "pthread_cond_wait",
    "pthread_cond_broadcast",
)

_FUTEX_NUMBERS = {"x86_64": 202, "aarch64": 98}
_FUTEX_WAIT_PRIVATE, _FUTEX_WAKE_PRIVATE = 128, 129


def has_futex() -> bool:
    """Whether this machine sleeps by futex."""
    return sys.platform.startswith("linux") and platform.machine() in _FUTEX_NUMBERS


def system_symbols(futex: bool) -> tuple[str, ...]:
    """What the code calls in the C library."""
    return ("clock_gettime", *(("syscall",) if futex else PTHREAD_SYMBOLS))


def pool_text(futex: bool) -> str:
    """The module's text."""
    sleep = _futex_text() if futex else _pthread_text()
    return "\n".join((_head_text(), sleep, _WAIT, watch_code.watch_text(), _TAKE, _WORK, _WORKER, _JOIN, _RUN, _CLAIM))


_word = pool_word


def _pause() -> tuple[str, str]:
    """The instruction that eases spinning: its declaration and its call."""
    if platform.machine() in ("x86_64", "AMD64"):
        return "declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"
    if platform.machine() in ("aarch64", "arm64"):
        return "declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)"
    return "", ""


def _head_text() -> str:
    return f"""
@jl_pool = global [{POOL_BYTES} x i8] zeroinitializer, align 64
{_pause()[0]}
"""


def _futex_text() -> str:
    call = f"call i64 (i64, ...) @syscall(i64 {_FUTEX_NUMBERS[platform.machine()]}, ptr %word"
    return f"""
declare i64 @syscall(i64, ...)

define void @jl_pool_reset() {{
  ret void
}}

; sleep unless *word is no longer `old`; may return early
define internal void @sleep_on(ptr %word, i32 %old) {{
  {call}, i32 {_FUTEX_WAIT_PRIVATE}, i32 %old, ptr null, ptr null, i32 0)
  ret void
}}

define internal void @wake(ptr %word, i32 %count) {{
  {call}, i32 {_FUTEX_WAKE_PRIVATE}, i32 %count, ptr null, ptr null, i32 0)
  ret void
}}
"""


def _pthread_text() -> str:
    mutex, condition = f"ptr {_word(MUTEX)}", f"ptr {_word(CONDITION)}"
    return f"""
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)

define void @jl_pool_reset() {{
  call i32 @pthread_mutex_init({mutex}, ptr null)
  call i32 @pthread_cond_init({condition}, ptr null)
  ret void
}}

define internal void @sleep_on(ptr %word, i32 %old) {{
  call i32 @pthread_mutex_lock({mutex})
  %now = load atomic i32, ptr %word seq_cst, align 4
  %changed = icmp ne i32 %now, %old
  br i1 %changed, label %done, label %wait
wait:
  call i32 @pthread_cond_wait({condition}, {mutex})
  br label %done
done:
  call i32 @pthread_mutex_unlock({mutex})
  ret void
}}

define internal void @wake(ptr %word, i32 %count) {{
  call i32 @pthread_mutex_lock({mutex})
  call i32 @pthread_cond_broadcast({condition})
  call i32 @pthread_mutex_unlock({mutex})
  ret void
}}
"""


# Wait until *word is not `old`, counting among the sleepers while asleep; returns the new value.
_WAIT = f"""
define internal i32 @wait(ptr %word, i32 %old, ptr %sleepers) {{
entry:
  br label %spin
spin:
  %spins = phi i32 [ 0, %entry ], [ %more, %again ], [ 0, %sleep ]
  %now = load atomic i32, ptr %word seq_cst, align 4
  %changed = icmp ne i32 %now, %old
  br i1 %changed, label %done, label %patient
patient:
  {_pause()[1]}
  %more = add i32 %spins, 1
  %tired = icmp sgt i32 %more, {SPINS}
  br i1 %tired, label %sleep, label %again
again:
  br label %spin
sleep:
  atomicrmw add ptr %sleepers, i32 1 seq_cst
  call void @sleep_on(ptr %word, i32 %old)
  atomicrmw sub ptr %sleepers, i32 1 seq_cst
  br label %spin
done:
  ret i32 %now
}}
"""

# Take up to `most` chunks of a ticket (all if it has fewer); returns how many were left before.
_TAKE = """
define internal i64 @take(ptr %ticket, i64 %most) {
entry:
  br label %look
look:
  %left = load atomic i64, ptr %ticket acquire, align 8
  %empty = icmp eq i64 %left, 0
  br i1 %empty, label %done, label %try
try:
  %count = call i64 @llvm.umin.i64(i64 %left, i64 %most)
  %less = sub i64 %left, %count
  %pair = cmpxchg ptr %ticket, i64 %left, i64 %less acq_rel acquire
  %won = extractvalue { i64, i1 } %pair, 1
  br i1 %won, label %done, label %look
done:
  ret i64 %left
}

declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.umax.i64(i64, i64)
"""

# Run chunks, one's own first. `frame` is null for workers; the caller polls between chunks and,
# told to stop, takes all that is left without running it.
_WORK = f"""
define internal i32 @work(i64 %self, ptr %frame, i64 %chunk.work) {{
entry:
  %participants = load i64, ptr {_word(JOB_PARTICIPANTS)}
  br label %victims
victims:
  %turn = phi i64 [ 0, %entry ], [ %next.turn, %next ]
  %status = phi i32 [ 0, %entry ], [ %status.now, %next ]
  %over = icmp uge i64 %turn, %participants
  br i1 %over, label %done, label %victim
victim:
  %sum = add i64 %self, %turn
  %victim.number = urem i64 %sum, %participants
  %ticket.offset = mul i64 %victim.number, {TICKET_BYTES}
  %ticket = getelementptr i8, ptr {_word(TICKETS)}, i64 %ticket.offset
  %after = add i64 %victim.number, 1
  br label %chunk
chunk:
  %status.now = phi i32 [ %status, %victim ], [ %status.polled, %ran ]
  %stopping = icmp ne i32 %status.now, 0
  %most = select i1 %stopping, i64 -1, i64 1
  %left = call i64 @take(ptr %ticket, i64 %most)
  %none = icmp eq i64 %left, 0
  br i1 %none, label %next, label %taken
taken:
  br i1 %stopping, label %finished, label %run
run:
  %job.participants = load i64, ptr {_word(JOB_PARTICIPANTS)}
  %chunks = load i64, ptr {_word(CHUNKS)}
  %scaled = mul i64 %chunks, %after
  %end = udiv i64 %scaled, %job.participants
  %index = sub i64 %end, %left
  call void @run_chunk(i64 %index, ptr %frame)
  br label %finished
finished:
  %count.wide = select i1 %stopping, i64 %left, i64 1
  %count = trunc i64 %count.wide to i32
  %before = atomicrmw sub ptr {_word(PENDING)}, i32 %count seq_cst
  %last = icmp eq i32 %before, %count
  br i1 %last, label %tell, label %ran.maybe
tell:
  %asleep = load atomic i32, ptr {_word(CALLER_SLEEPS)} seq_cst, align 4
  %must = icmp ne i32 %asleep, 0
  br i1 %must, label %rouse, label %ran.maybe
rouse:
  call void @wake(ptr {_word(PENDING)}, i32 1)
  br label %ran.maybe
ran.maybe:
  %worker = icmp eq ptr %frame, null
  %quiet = or i1 %worker, %stopping
  br i1 %quiet, label %ran, label %spend
spend:
  %polled = call i32 @spend(ptr %frame, i64 %chunk.work)
  br label %ran
ran:
  %status.polled = phi i32 [ %status.now, %ran.maybe ], [ %polled, %spend ]
  br label %chunk
next:
  %next.turn = add i64 %turn, 1
  br label %victims
done:
  ret i32 %status
}}

define internal void @run_chunk(i64 %index, ptr %frame) {{
  %task = load ptr, ptr {_word(TASK)}
  %buffers = load ptr, ptr {_word(BUFFERS)}
  %sizes = load ptr, ptr {_word(SIZES)}
  %extent = load i64, ptr {_word(EXTENT)}
  %chunk = load i64, ptr {_word(CHUNK)}
  call void @run_range(ptr %task, ptr %buffers, ptr %sizes, i64 %extent, i64 %chunk, i64 %index, ptr %frame)
  ret void
}}

define internal void @run_range(ptr %task, ptr %buffers, ptr %sizes, i64 %extent, i64 %chunk,
                                i64 %index, ptr %frame) {{
  %lo = mul i64 %index, %chunk
  %limit = add i64 %lo, %chunk
  %hi = call i64 @llvm.umin.i64(i64 %limit, i64 %extent)
  call void %task(ptr %buffers, ptr %sizes, i64 %lo, i64 %hi, ptr %frame)
  ret void
}}
"""

_WORKER = f"""
define void @jl_worker(i64 %self) {{
entry:
  br label %idle
idle:
  %seen = phi i32 [ 0, %entry ], [ %now, %awake ]
  %now = call i32 @wait(ptr {_word(GENERATION)}, i32 %seen, ptr {_word(SLEEPERS)})
  %stop = load atomic i32, ptr {_word(STOP)} acquire, align 4
  %stopped = icmp ne i32 %stop, 0
  br i1 %stopped, label %done, label %awake
awake:
  call i32 @work(i64 %self, ptr null, i64 0)
  br label %idle
done:
  ret void
}}

define void @jl_pool_stop() {{
  store atomic i32 1, ptr {_word(STOP)} seq_cst, align 4
  atomicrmw add ptr {_word(GENERATION)}, i32 1 seq_cst
  call void @wake(ptr {_word(GENERATION)}, i32 1073741824)
  ret void
}}
"""

# Wait for the chunks that workers still run.
_JOIN = f"""
define internal void @join() {{
entry:
  br label %look
look:
  %left = load atomic i32, ptr {_word(PENDING)} seq_cst, align 4
  %done.now = icmp eq i32 %left, 0
  br i1 %done.now, label %done, label %wait
wait:
  call i32 @wait(ptr {_word(PENDING)}, i32 %left, ptr {_word(CALLER_SLEEPS)})
  br label %look
done:
  ret void
}}
"""

_RUN = f"""
define i32 @jl_pool_run(ptr %task, ptr %buffers, ptr %sizes, i64 %extent, i64 %chunk, i64 %chunks,
                        ptr %frame, i64 %chunk.work) {{
entry:
  %wanted = load i64, ptr {_word(PARTICIPANTS)}
  %alone = icmp ule i64 %wanted, 1
  br i1 %alone, label %serial, label %claim
claim:
  %pair = cmpxchg ptr {_word(TAKEN)}, i32 0, i32 1 acq_rel acquire
  %free = extractvalue {{ i32, i1 }} %pair, 1
  br i1 %free, label %publish, label %serial
publish:
  %now.wanted = load i64, ptr {_word(PARTICIPANTS)}
  %participants = call i64 @llvm.umax.i64(i64 %now.wanted, i64 1)
  store ptr %task, ptr {_word(TASK)}
  store ptr %buffers, ptr {_word(BUFFERS)}
  store ptr %sizes, ptr {_word(SIZES)}
  store i64 %extent, ptr {_word(EXTENT)}
  store i64 %chunk, ptr {_word(CHUNK)}
  store i64 %chunks, ptr {_word(CHUNKS)}
  store i64 %participants, ptr {_word(JOB_PARTICIPANTS)}
  store atomic i32 0, ptr {_word(CANCELLED)} release, align 4
{fields_of("%frame", FRAME_POOLED)}
  store i64 1, ptr {field("%frame", FRAME_POOLED)}
  %chunks.word = trunc i64 %chunks to i32
  store atomic i32 %chunks.word, ptr {_word(PENDING)} seq_cst, align 4
  br label %deal
deal:
  %owner = phi i64 [ 0, %publish ], [ %owner.next, %deal ]
  %first = phi i64 [ 0, %publish ], [ %end, %deal ]
  %owner.next = add i64 %owner, 1
  %scaled = mul i64 %chunks, %owner.next
  %end = udiv i64 %scaled, %participants
  %count = sub i64 %end, %first
  %ticket.offset = mul i64 %owner, {TICKET_BYTES}
  %ticket = getelementptr i8, ptr {_word(TICKETS)}, i64 %ticket.offset
  store atomic i64 %count, ptr %ticket release, align 8
  %dealt = icmp uge i64 %owner.next, %participants
  br i1 %dealt, label %call.workers, label %deal
call.workers:
  atomicrmw add ptr {_word(GENERATION)}, i32 1 seq_cst
  %sleepers = load atomic i32, ptr {_word(SLEEPERS)} seq_cst, align 4
  %asleep = icmp ne i32 %sleepers, 0
  br i1 %asleep, label %rouse, label %take.part
rouse:
  %others = sub i32 %chunks.word, 1
  call void @wake(ptr {_word(GENERATION)}, i32 %others)
  br label %take.part
take.part:
  %status = call i32 @work(i64 0, ptr %frame, i64 %chunk.work)
  call void @join()
  store i64 0, ptr {field("%frame", FRAME_POOLED)}
  store atomic i32 0, ptr {_word(TAKEN)} release, align 4
  ret i32 %status
serial:
  br label %serial.chunk
serial.chunk:
  %index = phi i64 [ 0, %serial ], [ %index.next, %serial.ran ]
  call void @run_range(ptr %task, ptr %buffers, ptr %sizes, i64 %extent, i64 %chunk, i64 %index, ptr %frame)
  %serial.status = call i32 @spend(ptr %frame, i64 %chunk.work)
  %stopped = icmp ne i32 %serial.status, 0
  br i1 %stopped, label %serial.done, label %serial.ran
serial.ran:
  %index.next = add i64 %index, 1
  %more = icmp ult i64 %index.next, %chunks
  br i1 %more, label %serial.chunk, label %serial.done
serial.done:
  ret i32 %serial.status
}}
"""

_CLAIM = f"""
define i32 @jl_pool_claim() {{
  %pair = cmpxchg ptr {_word(TAKEN)}, i32 0, i32 {CLAIMED} acq_rel acquire
  %won = extractvalue {{ i32, i1 }} %pair, 1
  %result = zext i1 %won to i32
  ret i32 %result
}}

define void @jl_pool_release() {{
  cmpxchg ptr {_word(TAKEN)}, i32 {CLAIMED}, i32 0 acq_rel acquire
  ret void
}}
"""
