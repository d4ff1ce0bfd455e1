"""Nothing is read or written past the end of an array, nor before it: programs on memory between forbidden pages.

Vector tails of every dtype, odd lengths, transposes, reductions, indices far out of range.  Each group runs in a
process of its own, so that a segmentation fault is a failed test, which names the program.
"""

from __future__ import annotations

import ctypes
import signal
import subprocess
import sys
from pathlib import Path

import guarded_memory
import pytest
from guard_pages import GROUPS

HERE = Path(__file__).parent


def child(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], cwd=HERE, capture_output=True, text=True, timeout=500)


@pytest.mark.parametrize("group", GROUPS)
def test_programs_stay_inside_their_arrays(group):
    done = child("guard_pages.py", group)
    *_, last = done.stdout.splitlines() or ["nothing"]
    assert done.returncode == 0, f"stopped ({done.returncode}) in {last}\n{done.stderr}"
    assert last.endswith("programs passed")


@pytest.mark.parametrize("place, number", [("before", "7"), ("after", "-1")])
def test_the_guards_bite(place, number):
    """One element past the end, or before the begin, kills the process that reads it."""
    program = """
import ctypes, sys
import guarded_memory, numpy as np
with guarded_memory.placed(sys.argv[1]):
    array = guarded_memory.guarded(np.zeros(7, np.float32))
print(ctypes.c_float.from_address(array.ctypes.data).value, flush=True)
print(ctypes.c_float.from_address(array.ctypes.data + 4 * int(sys.argv[2])).value)
"""
    done = child("-c", program, place, number)
    assert -done.returncode in (signal.SIGSEGV, signal.SIGBUS)
    assert done.stdout == "0.0\n"  # the elements themselves can be read


def test_what_is_written_into_padding_is_found():
    block = guarded_memory.GuardedClass(28).take()
    assert block.address % 64 == 0
    guarded_memory.check()
    ctypes.memset(block.address + 28, 1, 1)
    with pytest.raises(AssertionError, match="outside of 28 bytes"):
        guarded_memory.check()
