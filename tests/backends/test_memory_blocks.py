"""Blocks of memory: where they lie, when they come back, and that a signal handler can neither lose nor halve one."""

from __future__ import annotations

import gc
import itertools
import signal
import sys
import time

import numpy as np
import pytest

from jaxlite.backends.cpu import memory, memory_code
from jaxlite.core.errors import DoesNotFitError


@pytest.mark.parametrize("nbytes", [0, 1, 64, 65, 1000, 4096, 4097, 100_000, 3 << 20])
def test_blocks_are_aligned_large_enough_and_apart(nbytes):
    blocks = [memory.allocate(nbytes) for _ in range(200 if nbytes < 1 << 20 else 5)]
    ranges = sorted((b.address, b.address + b.nbytes) for b in blocks)
    assert all(start % 64 == 0 and end - start >= max(nbytes, 1) for start, end in ranges)
    assert all(before <= start for (_, before), (start, _) in itertools.pairwise(ranges))
    for k, block in enumerate(blocks):
        memory.view(block.address, (block.nbytes,), np.dtype(np.uint8), block, writeable=True)[:] = k
    for k, block in enumerate(blocks):
        assert (memory.view(block.address, (block.nbytes,), np.dtype(np.uint8), block) == k).all()


def test_counts_say_what_is_owned_and_what_is_free():
    size = memory.size_class(3000)
    owned, free = size.owned_blocks, size.free_blocks
    before = memory.owned_bytes()
    blocks = [size.take() for _ in range(free + 1)]
    assert size.owned_blocks == owned + free + 1
    assert memory.owned_bytes() == before + (free + 1) * 4096
    assert size.free_blocks == memory_code.SLAB // 4096 - 2  # a new slab, less its header and the last block
    del blocks
    assert size.owned_blocks == owned


def test_slabs_return_when_nothing_of_them_is_in_use():
    size = memory.size_class(2048)
    memory.trim()
    per_slab = memory_code.SLAB // 2048 - 1
    blocks = [size.take() for _ in range(10 * per_slab)]
    kept = blocks[::per_slab][:4]  # in four slabs at most
    del blocks
    before = memory.warm_bytes()
    returned = size.trim()
    assert returned >= 5 * memory_code.SLAB
    assert memory.warm_bytes() == before - returned // memory_code.SLAB * per_slab * 2048
    addresses = {b.address for b in kept}
    again = [size.take() for _ in range(5 * per_slab)]
    assert not addresses & {b.address for b in again}


def test_small_blocks_beyond_the_quota_return_by_themselves():
    size = memory.size_class(4096)
    blocks = [size.take() for _ in range(3 * memory.QUOTA // 4096)]
    del blocks
    assert size.free_blocks <= memory.QUOTA // 4096 + memory_code.SLAB // 4096


def test_blocks_of_medium_size_keep_to_their_quota(monkeypatch):
    size = memory.size_class(100_000)
    monkeypatch.setattr(memory._natives[0].limit, "value", 0)
    blocks = [size.take() for _ in range(100)]
    del blocks
    assert size.free_blocks <= memory.QUOTA // size.nbytes


def test_memory_that_there_is_not():
    with pytest.raises(DoesNotFitError, match=r"RESOURCE_EXHAUSTED.*the system refuses"):
        memory.allocate(1 << 60)
    assert memory.allocate(100).nbytes == 128


def test_blocks_in_cycles_come_back():
    size = memory.size_class(10_000)
    owned = size.owned_blocks
    ring = [size.take()]
    ring.append(ring)
    del ring
    gc.collect()
    assert size.owned_blocks == owned


class Interrupt(Exception):
    """What the alarm raises."""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs alarms")
@pytest.mark.parametrize("nbytes", [100, 200_000, 2 << 20])
def test_no_interrupt_is_lost_in_a_destructor_and_no_block_at_an_interrupt(nbytes, monkeypatch):
    unraisable = []
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)

    def ring(*_):
        raise Interrupt

    size = memory.size_class(nbytes)
    owned = size.owned_blocks
    before = signal.signal(signal.SIGALRM, ring)
    chance = np.random.default_rng(0)
    try:
        for _ in range(300):
            until = time.perf_counter() + 5.0
            with pytest.raises(Interrupt):
                signal.setitimer(signal.ITIMER_REAL, chance.uniform(1e-4, 1e-3))
                while time.perf_counter() < until:
                    size.take()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert not unraisable
    gc.collect()
    assert size.owned_blocks == owned
