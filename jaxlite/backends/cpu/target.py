"""Target: what the emitter needs to know about a CPU, and `host_target()` for this one."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import final

import llvmlite.binding as llvm


@final
@dataclass(frozen=True)
class Target:
    """`vector_bytes`: width of the vectors. `masked`: has masked loads and stores for tails.

    `fma`: has fused multiply-add. `contract_fma`: use it for products used once (a flag of ours;
    the elementary functions use what the hardware has either way). `aligned_buffers`: buffers start
    at multiples of 64 bytes, so that streaming stores may be used.
    """

    vector_bytes: int = 32
    masked: bool = True
    fma: bool = True
    contract_fma: bool = True
    aligned_buffers: bool = False

    def __post_init__(self) -> None:
        if self.vector_bytes not in (16, 32, 64):
            raise ValueError(f"vector_bytes is {self.vector_bytes}; expected 16, 32 or 64")


@functools.cache
def host_target(contract_fma: bool = True) -> Target:
    """The target for the CPU that this runs on."""
    features = llvm.get_host_cpu_features()
    if features.get("avx512f") and features.get("avx512vl") and features.get("avx512dq"):
        return Target(64, True, True, contract_fma)
    if features.get("avx2"):
        return Target(32, True, bool(features.get("fma")), contract_fma)
    neon = bool(features.get("neon"))
    return Target(16, False, neon, contract_fma and neon)
