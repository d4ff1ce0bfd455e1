"""The loop IR: what the builder records, what the verifier refuses, what the printer shows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from jaxlite.compiler.builder import Builder, Carry
from jaxlite.compiler.contraction import contractions
from jaxlite.compiler.loop_printer import kernel_key, print_kernel
from jaxlite.compiler.loop_verifier import KernelError, verify_kernel
from jaxlite.compiler.loops import (
    BOOL,
    INDEX,
    Constant,
    Kernel,
    Load,
    Loop,
    Op,
    Store,
    Value,
    statements,
)

F32 = np.dtype(np.float32)


def scaled(extent: Any = 10) -> Kernel:
    """out[i] = x[i] * exp(s[0])."""
    b = Builder()
    x = b.buffer("x", F32, None, "input")
    s = b.buffer("s", F32, 1, "input")
    out = b.buffer("out", F32, None, "output")
    with b.loop(extent, parallel=True, vector=True) as i:
        b.store(out, i, b.mul(b.load(x, i), b.exp(b.load(s, 0))))
    return b.finish("scaled")


def opcodes(kernel: Kernel) -> list[str]:
    return [s.opcode for s in statements(kernel.body) if isinstance(s, Op)]


def test_invariants_leave_the_loop() -> None:
    outside = [s for s in scaled().body if isinstance(s, Load | Op)]
    assert [type(s) for s in outside] == [Load, Op]


def test_a_load_stays_in_a_loop_that_may_not_run() -> None:
    b = Builder()
    x = b.buffer("x", F32, None, "input")
    out = b.buffer("out", F32, None, "output")
    with b.loop(b.size()) as i:
        b.store(out, i, b.load(x, 5))
    assert not any(isinstance(s, Load) for s in b.finish("k").body)


def test_equal_operations_are_one() -> None:
    b = Builder()
    x = b.buffer("x", F32, 1, "input")
    out = b.buffer("out", F32, 1, "output")
    first, second = (b.add(b.load(x, 0), 1.0) for _ in range(2))
    b.store(out, 0, b.mul(first, second))
    kernel = b.finish("k")
    assert first is second
    assert opcodes(kernel) == ["add", "mul"]


def test_what_nobody_reads_is_dropped() -> None:
    b = Builder()
    x = b.buffer("x", F32, 1, "input")
    out = b.buffer("out", F32, 1, "output")
    b.exp(b.load(x, 0))
    b.store(out, 0, 1.0)
    assert opcodes(b.finish("k")) == []


@pytest.mark.parametrize(
    ("opcode", "constant"),
    [("add", 0), ("sub", 0), ("mul", 1), ("div", 1), ("or", 0), ("xor", 0), ("shift_left", 0)],
)
def test_neutral_constants_of_integers_vanish(opcode: str, constant: int) -> None:
    b = Builder()
    x = b.load(b.buffer("x", np.int64, 1, "input"), 0)
    assert b.emit(opcode, x, constant) is x


def test_float_zero_is_not_neutral() -> None:
    b = Builder()
    x = b.load(b.buffer("x", F32, 1, "input"), 0)
    assert b.add(x, 0.0) is not x  # -0 + 0 is 0


@pytest.mark.parametrize(
    ("opcode", "args", "dtype", "expected"),
    [
        ("add", (2**31 - 1, 1), np.int32, -(2**31)),
        ("div", (-7, 2), np.int32, -3),
        ("rem", (-7, 2), np.int32, -1),
        ("mul", (200, 2), np.uint8, 144),
        ("lt", (1, 2), np.int32, True),
        ("sub", (0.1, 0.3), np.float32, np.float32(0.1) - np.float32(0.3)),
    ],
)
def test_constants_fold_as_a_kernel_computes(opcode: str, args: tuple[Any, Any], dtype: Any, expected: Any) -> None:
    b = Builder()
    value = b.emit(opcode, *(b.constant(arg, dtype) for arg in args))
    folded = b.constant_value(value)
    assert folded is not None and folded.item() == expected


def test_errors_say_what_to_write() -> None:
    b = Builder()
    x = b.load(b.buffer("x", F32, 1, "input"), 0)
    with pytest.raises(TypeError, match=r"constant\(value, dtype\)"):
        b.add(1.0, 2.0)
    with pytest.raises(TypeError, match="convert the arguments first"):
        b.add(x, b.constant(1, np.int32))
    with pytest.raises(TypeError, match="takes 2 arguments"):
        b.add(x)
    with pytest.raises(AttributeError, match="no method or opcode 'addd'"):
        b.addd(x, x)
    with pytest.raises(ValueError, match="declare it as an output"):
        b.store(0, 0, x)
    with (
        pytest.raises(ValueError, match=r"call update\(...\)"),
        b.fold(3, Carry((x.dtype.type(0),), "add")),
    ):
        pass


def test_contraction_takes_products_that_are_used_once() -> None:
    b = Builder()
    x = b.load(b.buffer("x", F32, 1, "input"), 0)
    out = b.buffer("out", F32, 3, "output")
    b.store(out, 0, b.add(b.mul(x, 2.5), b.mul(x, 3.5)))  # the left one
    b.store(out, 1, b.sub(1.0, b.mul(x, 4.5)))
    twice = b.mul(x, x)
    b.store(out, 2, b.add(twice, b.abs(twice)))
    found = contractions(b.finish("k"))
    signs = [(f.negate_product, f.negate_addend) for f in found.fused.values()]
    assert signs == [(False, False), (True, False)]
    assert len(found.absorbed) == 2


# the printer


def test_the_printer_shows_everything() -> None:
    b = Builder()
    x = b.buffer("x", F32, None, "input")
    out = b.buffer("out", F32, 1, "output")
    total = b.reduce(b.size(), lambda i: b.load(x, i), "add", np.float32(0), vector=True, unroll=2)
    b.store(out, 0, total)
    assert (
        print_kernel(b.finish("total"))
        == """\
kernel total(1 sizes)
  b0: input float32[?] x
  b1: output float32[1] out
  v0: float32 = 0.0
  for v1 in sizes[0] vector unroll=2:
    carry v2: float32 from v0 (neutral 0.0)
    combine v3: float32, v4: float32:
      v5: float32 = add v3, v4
      -> v5
    v6: float32 = b0[v1]
    v7: float32 = add v2, v6
    next v7 -> v8: float32
  v9: int64 = 0
  b1[v9] = v8
"""
    )


def test_the_key_leaves_names_out_and_keeps_the_rest() -> None:
    kernel = scaled()
    assert kernel_key(replace(kernel, name="other")) == kernel_key(scaled())
    assert kernel_key(scaled(11)) != kernel_key(kernel)


def test_constants_of_different_bits_print_differently() -> None:
    def text(value: float) -> str:
        b = Builder()
        b.store(b.buffer("out", F32, 1, "output"), 0, value)
        return kernel_key(b.finish("k"))

    assert len({text(0.0), text(-0.0), text(1.0), text(float("nan")), text(float("inf"))}) == 5


# the verifier


def broken(change: str) -> Kernel:
    """`scaled()` with one rule broken."""
    kernel = scaled()
    loop = next(s for s in kernel.body if isinstance(s, Loop))
    store = next(s for s in loop.body if isinstance(s, Store))
    stray = Value(F32)
    index = Value(INDEX)
    match change:
        case "reads":
            return replace(kernel, body=(Op("exp", (stray,), Value(F32)), *kernel.body))
        case "twice":
            return replace(kernel, body=(kernel.body[0], *kernel.body))
        case "outermost":
            outer = Loop(Value(INDEX), 2, kernel.body)
            return replace(kernel, body=(outer,))
        case "vector loop inside":
            outer = Loop(Value(INDEX), 2, (replace(loop, parallel=False),), vector=True)
            rest = [s for s in kernel.body if s is not loop]
            return replace(kernel, body=(*rest, outer))
        case "input buffer":
            body = tuple(replace(s, buffer=0) if s is store else s for s in loop.body)
            return replace(kernel, body=tuple(replace(s, body=body) if s is loop else s for s in kernel.body))
        case "there are 3":
            return replace(kernel, body=(Constant(np.int64(0), index), Load(7, index, Value(F32))))
        case "the index is":
            return replace(kernel, body=(Constant(np.float32(0), stray), Load(0, stray, Value(F32))))
        case "unknown opcode":
            return replace(kernel, body=(Op("frobnicate", (), Value(F32)),))
        case "gives bool":
            constant = Constant(np.float32(1), stray)
            return replace(kernel, body=(constant, Op("exp", (stray,), Value(BOOL))))
        case _:
            raise AssertionError(change)


@pytest.mark.parametrize(
    "change",
    [
        "reads",
        "twice",
        "outermost",
        "vector loop inside",
        "input buffer",
        "there are 3",
        "the index is",
        "unknown opcode",
        "gives bool",
    ],
)
def test_the_verifier_refuses(change: str) -> None:
    verify_kernel(scaled())
    with pytest.raises(KernelError, match=change):
        verify_kernel(broken(change))


def test_a_vector_loop_may_not_fold_in_order() -> None:
    b = Builder()
    x = b.buffer("x", F32, 8, "input")
    out = b.buffer("out", F32, 1, "output")
    with b.fold(8, Carry((np.float32(0),), None), vector=True) as loop:
        loop.update(b.add(loop.carried[0], b.load(x, loop.axis)))
    b.store(out, 0, loop.results[0])
    with pytest.raises(KernelError, match="ordered fold"):
        verify_kernel(b.finish("k"))
