"""The rule for fused multiply-add: which products join the sum that reads them.

In: a kernel. Out: for each `add` or `sub` that contracts, the product it takes in. A product joins
if it is read exactly once in the whole kernel, of two candidates the left one, in float32 and
float64 only (16-bit floats round each operation). Every target follows this table and contracts
nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from jaxlite.compiler.loops import Kernel, Op, Value, statements, uses


@final
@dataclass(frozen=True)
class FusedMultiplyAdd:
    """`±(left * right) ± addend`, rounded once."""

    left: Value
    right: Value
    addend: Value
    negate_product: bool
    negate_addend: bool


@final
@dataclass(frozen=True)
class Contractions:
    """`fused`: the sums that contract; `absorbed`: the products that need no code of their own."""

    fused: dict[Op, FusedMultiplyAdd]
    absorbed: frozenset[Value]


NO_CONTRACTIONS = Contractions({}, frozenset())


def contractions(kernel: Kernel) -> Contractions:
    """Find the products of `kernel` that contract."""
    counts = uses(kernel)
    products: dict[Value, Op] = {}
    fused: dict[Op, FusedMultiplyAdd] = {}
    absorbed: set[Value] = set()
    for op in statements(kernel.body):
        if not isinstance(op, Op) or op.result.dtype.name not in ("float32", "float64"):
            continue
        if op.opcode == "mul" and counts.get(op.result) == 1:
            products[op.result] = op
        if op.opcode not in ("add", "sub"):
            continue
        first, second = op.args
        subtract = op.opcode == "sub"
        if first in products:  # a*b + c, a*b - c
            product, addend, signs = products[first], second, (False, subtract)
        elif second in products:  # c + a*b, c - a*b
            product, addend, signs = products[second], first, (subtract, False)
        else:
            continue
        fused[op] = FusedMultiplyAdd(product.args[0], product.args[1], addend, signs[0], signs[1])
        absorbed.add(product.result)
    return Contractions(fused, frozenset(absorbed))
