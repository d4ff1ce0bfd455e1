"""The plan IR: what the verifier refuses, and what the printer shows. Nothing is run."""

from __future__ import annotations

import numpy as np
import pytest

from jaxlite.compiler.builder import Builder
from jaxlite.compiler.plan import (
    Branch,
    Copy,
    Counter,
    Fill,
    For,
    HostCall,
    HostOperand,
    KernelCall,
    MatrixOperand,
    MatrixProduct,
    Plan,
    Reference,
    Storage,
    While,
    step_work,
)
from jaxlite.compiler.plan_printer import plan_text
from jaxlite.compiler.plan_verifier import PlanError, verify_plan

F32 = np.dtype(np.float32)
ARGUMENT = Storage("argument", 40, 0)
RESULT = Storage("result", 40, 0)
TEMPORARY = Storage("temporary", 40, 0)
STORAGES = (ARGUMENT, RESULT, TEMPORARY)
WRITTEN = Copy(Reference(1), Reference(0), 40)


def plan(*steps, storages=STORAGES, workspace=64, constants=()):
    return Plan("test", storages, steps, workspace, constants)


def kernel(elements=10):
    b = Builder()
    x, out = b.buffer("x", F32, elements, "input"), b.buffer("out", F32, elements, "output")
    with b.loop(elements, parallel=True, vector=True) as i:
        b.store(out, i, b.neg(b.load(x, i)))
    return b.finish("neg")


def product(k=2, leading=5):
    matrix = MatrixOperand(Reference(0), leading)
    return MatrixProduct(F32, matrix, matrix, MatrixOperand(Reference(1), 5), 2, 5, k)


def test_good_plans():
    i = Counter()
    verify_plan(plan(WRITTEN))
    verify_plan(plan(KernelCall(kernel(), (Reference(0), Reference(1)))))
    verify_plan(plan(For(i, 10, (Copy(Reference(1).along(i, 4), Reference(0), 4),))))
    verify_plan(plan(product()))
    verify_plan(plan(Branch(Reference(0), ((WRITTEN,), (WRITTEN,)))))
    verify_plan(plan(For(i, 0, (Copy(Reference(1, 4000), Reference(0), 4),)), WRITTEN))


i, j = Counter(), Counter()
BAD = {
    "result 0 .* is not written on every path": plan(),
    "is not written on every path; write it": plan(Branch(Reference(0), ((WRITTEN,), ()))),
    "result 0 .* not written": plan(For(i, 0, (WRITTEN,))),
    r"result 0 \(storage 1\)": plan(While(i, (), Reference(0), (WRITTEN,))),
    "copy source reaches bytes 4 to 44 of argument": plan(Copy(Reference(1), Reference(0, 4), 40)),
    "copy destination writes to argument 0": plan(Copy(Reference(0), Reference(1), 4)),
    "names storage 9 of 3": plan(Copy(Reference(9), Reference(0), 4)),
    "copy source follows the counter of a loop that is not around it": plan(
        Copy(Reference(1), Reference(0).along(i, 4), 4)
    ),
    "fill destination reaches bytes 0 to 44": plan(For(i, 11, (Fill(Reference(1).along(i, 4), 4),))),
    "fill destination reaches bytes -4 to 36": plan(For(i, 10, (Fill(Reference(1).along(i, 4, reverse_from=8), 4),))),
    "reuses the counter": plan(For(i, 2, (For(i, 2, (WRITTEN,)),))),
    "while loop's counter without `modulo`": plan(While(i, (Fill(Reference(1).along(i, 4), 4),), Reference(0), ())),
    "runs -1 times": plan(For(i, -1, (WRITTEN,))),
    "has no branches": plan(Branch(Reference(0), ())),
    "neg: x reaches bytes 4 to 44": plan(KernelCall(kernel(), (Reference(0, 4), Reference(1)))),
    "neg has 2 buffers, its call gives 1": plan(KernelCall(kernel(), (Reference(0),))),
    "neg has 0 sizes, its call gives 1": plan(KernelCall(kernel(), (Reference(0), Reference(1)), (3,))),
    "left reaches bytes 0 to 52": plan(product(k=3, leading=10)),
    "left has 2 columns, 1 apart": plan(product(leading=1)),
    "no multiple of 64": plan(WRITTEN, storages=(ARGUMENT, RESULT, Storage("temporary", 4, 8))),
    "takes bytes 64 to 104 of a workspace of 64": plan(
        WRITTEN, storages=(ARGUMENT, RESULT, Storage("temporary", 40, 64))
    ),
    r"positions \[0, 0\]": plan(WRITTEN, storages=(ARGUMENT, RESULT, ARGUMENT)),
    "1 constant storages, 0 constants": plan(WRITTEN, storages=(ARGUMENT, RESULT, Storage("constant", 4, 0))),
    "expected 8 row-major": plan(
        WRITTEN,
        storages=(ARGUMENT, RESULT, Storage("constant", 8, 0)),
        constants=(np.zeros(1, F32),),
    ),
}


@pytest.mark.parametrize("message", BAD)
def test_bad_plans(message):
    with pytest.raises(PlanError, match=message):
        verify_plan(BAD[message])


def test_text():
    def python(inputs, outputs):
        raise AssertionError

    operand = HostOperand(Reference(2), (10,), F32)
    steps = (
        Fill(Reference(2), 40, 255),
        For(i, 10, (Copy(Reference(1).along(i, 4, reverse_from=9), Reference(0).along(i, 4), 4),)),
        While(
            j,
            (KernelCall(kernel(), (Reference(0), Reference(1)), (), 10, 20),),
            Reference(2, 8),
            (Branch(Reference(0), ((product(),), ())),),
        ),
        HostCall(python, (), (operand,), "show"),
    )
    assert (
        plan_text(plan(*steps))
        == """\
plan test(1 argument, 1 result, workspace 64 bytes)
  argument argument0: 40 bytes
  result result0: 40 bytes
  temporary t2: 40 bytes at 0
  fill t2 with 255   40 bytes
  for i < 10:
    copy argument0+4*i -> result0+4*(9-i)   4 bytes
  while j, t2+8:
    kernel neg(argument0) -> result0   extent 10, work 20
  do:
    branch argument0 is 0:
      product float32 (2, 2) @ (2, 5): argument0[leading 5] @ argument0[leading 5] -> \
result0[leading 5]
    branch argument0 is 1:
  host show() -> t2:float32[10]
"""
    )


def test_work():
    call = KernelCall(kernel(), (Reference(0), Reference(1)), (), 10, 1000)
    assert step_work(call) == 1000
    assert step_work(For(i, 7, (call, call))) == 14_000
    assert step_work(Fill(Reference(1), 4)) == 16
