"""The thread pool: every chunk runs once, whoever runs it; forks, restarts and signals."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time

import llvmlite.binding as llvm
import numpy as np
import pytest

from jaxlite.backends.cpu import pool_code, watch_code
from jaxlite.backends.cpu.engine import CodeError, compile_text
from jaxlite.backends.cpu.objects import object_symbols
from jaxlite.backends.cpu.pool import Pool, pool, thread_count
from jaxlite.core.config import config

# adds 1 to x[lo:hi]
INCREMENT = """
define void @jl_increment(ptr %buffers, ptr %sizes, i64 %lo, i64 %hi, ptr %frame) {
entry:
  %x = load ptr, ptr %buffers
  br label %loop
loop:
  %i = phi i64 [ %lo, %entry ], [ %next, %loop ]
  %at = getelementptr i64, ptr %x, i64 %i
  %old = load i64, ptr %at
  %new = add i64 %old, 1
  store i64 %new, ptr %at
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %hi
  br i1 %more, label %loop, label %done
done:
  ret void
}
"""

RUN = ctypes.CFUNCTYPE(
    ctypes.c_int32,
    *(ctypes.c_void_p,) * 3,
    *(ctypes.c_int64,) * 3,
    ctypes.c_void_p,
    ctypes.c_int64,
)


class Job:
    """Splits the increment of an array over a pool."""

    def __init__(self, tested: Pool, elements: int) -> None:
        self.code = compile_text(INCREMENT, ["jl_increment"])
        self.x = np.zeros(elements, np.int64)
        self.buffers = (ctypes.c_void_p * 1)(self.x.ctypes.data)
        self.call = RUN(tested.code.addresses["jl_pool_run"])

    def run(self, chunk: int) -> int:
        frame = (ctypes.c_int64 * watch_code.FRAME_WORDS)(1 << 62)  # a budget that is never used up
        task, chunks = self.code.addresses["jl_increment"], -(-self.x.size // chunk)
        return self.call(task, self.buffers, None, self.x.size, chunk, chunks, frame, 1)


@pytest.fixture(params=["futex", "pthread"])
def tested(request):
    if request.param == "futex" and not pool_code.has_futex():
        pytest.skip("this system has no futex")
    made = Pool(request.param == "futex")
    yield made
    made.stop()


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("chunk", [1, 7, 64, 1000])
def test_every_element_once(tested, threads, chunk):
    tested.start(threads)
    assert tested.participants == threads
    job = Job(tested, 1000)
    for _ in range(200):
        assert job.run(chunk) == 0
    assert (job.x == 200).all()


def test_workers_that_sleep_are_woken_or_not_waited_for(tested):
    tested.start(3)
    job = Job(tested, 640)
    for _ in range(20):
        time.sleep(0.002)  # longer than workers spin
        job.run(64)
    assert (job.x == 20).all()


def test_second_thread_runs_serially(tested):
    tested.start(2)
    jobs = [Job(tested, 512) for _ in range(4)]
    threads = [threading.Thread(target=lambda job=job: [job.run(16) for _ in range(500)]) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((job.x == 500).all() for job in jobs)


def test_stop_and_start_again(tested):
    before = set(threading.enumerate())
    tested.start(3)
    assert len(set(threading.enumerate()) - before) == 2
    tested.stop()
    assert set(threading.enumerate()) <= before
    job = Job(tested, 100)
    assert job.run(10) == 0  # no workers: serially
    tested.start(2)
    assert job.run(10) == 0
    assert (job.x == 2).all()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # Python 3.12 on fork
def test_fork_resets_the_pool():
    shared = pool()
    shared.start(2)
    job = Job(shared, 1000)
    job.run(10)
    child = os.fork()
    if child == 0:
        fresh = not shared.started and shared.participants == 1
        job.run(10)
        shared.start(2)
        job.run(10)
        os._exit(0 if fresh and (job.x == 3).all() else 1)
    _, status = os.waitpid(child, 0)
    assert status == 0
    shared.stop()


def test_exit_with_workers_is_clean():
    script = "from jaxlite.backends.cpu.pool import pool; pool().start(3); print('ok')"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == ("ok\n", "")


def test_the_flag_sets_the_number_of_threads():
    before = config.jaxlite_num_threads
    try:
        config.update("jaxlite_num_threads", 3)
        assert thread_count() == 3
        config.update("jaxlite_num_threads", None)
        assert thread_count() >= 1
    finally:
        config.update("jaxlite_num_threads", before)


@pytest.mark.parametrize("text", ["many", "0", "-1"])
def test_numbers_of_threads_that_there_are_not(text):
    with pytest.raises(ValueError, match=f"jaxlite_num_threads takes a whole number.*{text}"):
        config.update("jaxlite_num_threads", text)


@pytest.mark.parametrize(
    ("setting", "update", "expected"),
    [("3", "", 3), ("3", "jaxlite.config.update('jaxlite_num_threads', 2)", 2)],
)
def test_the_pool_starts_with_as_many_as_the_flag_says(setting, update, expected):
    lines = ["import jaxlite", update, "from jaxlite.backends.cpu.pool import pool", "pool().start()"]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join([*lines, "print(pool().participants)"])],
        capture_output=True, text=True, timeout=60, env={**os.environ, "JAXLITE_NUM_THREADS": setting},
    )  # fmt: skip
    assert (done.stdout, done.stderr) == (f"{expected}\n", "")


def test_undefined_symbol_is_an_error():
    """Even one that the process has: the next machine may not."""
    text = "declare void @sinf()\ndefine void @jl_f() {\n  call void @sinf()\n  ret void\n}\n"
    with pytest.raises(CodeError, match=r"calls \['sinf'\]; it may call \['memcpy'"):
        compile_text(text, ["jl_f"])


@pytest.mark.parametrize("triple", ["x86_64-linux-gnu", "arm64-apple-macosx"])
def test_symbols_of_both_formats(triple):
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    text = (
        f'target triple = "{triple}"\ndeclare void @outside()\n'
        "define internal void @inside() noinline {\n  call void @outside()\n  ret void\n}\n"
        "define void @jl_f() {\n  call void @inside()\n  ret void\n}\n"
    )
    machine = llvm.Target.from_triple(triple).create_target_machine()
    assert object_symbols(machine.emit_object(llvm.parse_assembly(text))) == ({"jl_f"}, {"outside"})


def test_bad_text_is_an_error():
    with pytest.raises(CodeError, match="refuses the generated text"):
        compile_text("define void @jl_f() { ret i32 }", ["jl_f"])


def test_signal_ends_a_job():
    """A handler that raises ends the calling thread's work at the next poll."""
    script = """
import signal, numpy as np
from tests.backends.test_program import endless_plan
from jaxlite.backends.cpu.compile_plan import load_plan
signal.signal(signal.SIGINT, signal.default_int_handler)  # a parent may have had it ignored
executable = load_plan(endless_plan())
print("running", flush=True)
try:
    executable.run([])
except KeyboardInterrupt:
    print("interrupted")
"""
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, cwd=os.getcwd())
    assert process.stdout is not None
    assert process.stdout.readline() == "running\n"
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert output == "interrupted\n"
