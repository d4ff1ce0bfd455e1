"""The CUDA emitter: every opcode and dtype compiles, and the golden nests read as they did."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from golden_nests import FOLDER, NESTS, golden_texts
from test_emit_llvm import DTYPES, accepted, elementwise

from jaxlite.backends.gpu import nvrtc
from jaxlite.backends.gpu.emit import COMPILE_OPTIONS, emit_kernel, module_text
from jaxlite.compiler.builder import Builder, Carry
from jaxlite.compiler.loops import OPCODES

needs_nvrtc = pytest.mark.skipif(nvrtc.library() is None, reason="the wheel nvidia-cuda-nvrtc-cu12 is not installed")


@pytest.mark.parametrize("nest", NESTS)
def test_golden_nests_read_as_they_did(nest: str) -> None:
    for name, text in golden_texts(nest).items():
        assert text == (FOLDER / name).read_text(), f"{name}: see tests/golden_nests.py"


@needs_nvrtc
def test_golden_nests_compile() -> None:
    texts = [emit_kernel(build(), f"jl_{nest}") for nest, build in NESTS.items()]
    ptx = nvrtc.compile_to_ptx(module_text(texts), COMPILE_OPTIONS)
    for nest in NESTS:
        assert f".entry jl_{nest}" in ptx


@needs_nvrtc
def test_every_opcode_compiles() -> None:
    texts = []
    for number, (opcode, dtype) in enumerate(accepted()):
        arity = OPCODES[opcode].arity
        dtypes = [np.dtype(bool), dtype, dtype] if opcode == "select" else [dtype] * arity
        texts.append(emit_kernel(elementwise(opcode, dtypes), f"jl_{opcode}_{number}"))
    pairs: list[tuple[Any, Any]] = [(a, b) for a in DTYPES for b in DTYPES if a != b]
    for number, (a, b) in enumerate(pairs):
        texts.append(emit_kernel(elementwise("convert", [a], b), f"jl_convert_{number}"))
    nvrtc.compile_to_ptx(module_text(texts), COMPILE_OPTIONS)


@needs_nvrtc
def test_a_reduction_of_two_values_compiles() -> None:
    b = Builder()
    x = b.buffer("x", np.float32, 100, "input")
    out = b.buffer("out", np.int64, 1, "output")

    def better(e: Builder, a: Any, c: Any) -> Any:
        first = e.gt(a[0], c[0])
        return e.select(first, a[0], c[0]), e.select(first, a[1], c[1])

    none = (np.float32(-np.inf), np.int64(-1))
    with b.fold(100, Carry(none, better), vector=True) as loop:
        loop.update(*better(b, (b.load(x, loop.axis), loop.axis), loop.carried))
    b.store(out, 0, loop.results[1])
    text = emit_kernel(b.finish("argmax"), "jl_argmax")
    assert "threadIdx.x == 0" in text
    nvrtc.compile_to_ptx(module_text([text]), COMPILE_OPTIONS)


def test_the_compiler_is_told_not_to_contract() -> None:
    assert "--fmad=false" in COMPILE_OPTIONS
    text = emit_kernel(NESTS["fused_elementwise"](), "jl_k")
    assert "fmaf(" in text
    assert "fmaf(" not in emit_kernel(NESTS["fused_elementwise"](), "jl_k", contract_fma=False)


@needs_nvrtc
def test_a_wrong_source_shows_the_log() -> None:
    with pytest.raises(nvrtc.CompileError, match="nonsense"):
        nvrtc.compile_to_ptx("nonsense;", COMPILE_OPTIONS)
