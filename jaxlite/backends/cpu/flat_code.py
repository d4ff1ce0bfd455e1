"""flat_code: an elementwise primitive in, the object of its flat loop out.  Imported when one is not found on disk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxlite.backends.cpu import engine
from jaxlite.backends.cpu.emit import emit_kernel, module_text
from jaxlite.backends.cpu.target import host_target
from jaxlite.compiler.builder import Builder
from jaxlite.compiler.loops import INDEX, Kernel
from jaxlite.core import dtypes


def flat_kernel(primitive: Any, operands: Sequence[tuple[Any, bool]], out_dtype: Any, params: dict[str, Any]) -> Kernel:
    """The loop nest; ``operands`` are (dtype, whether it has axes)."""
    b = Builder()
    inputs = [b.buffer(f"in{i}", dtypes.physical(d), None, "input") for i, (d, _) in enumerate(operands)]
    out = b.buffer("out", dtypes.physical(out_dtype), None, "output")
    with b.loop(b.size(), parallel=True, vector=True) as i:
        zero = b.constant(0, INDEX)
        xs = [b.load(n, i if spread else zero) for n, (_, spread) in zip(inputs, operands, strict=True)]
        b.store(out, i, primitive.scalar(b, *xs, **params))
    return b.finish(primitive.name)


def flat_object(
    primitive: Any,
    operands: Sequence[tuple[Any, bool]],
    out_dtype: Any,
    params: dict[str, Any],
    contract_fma: bool,
    symbol: str,
) -> bytes:
    """Its machine code."""
    kernel = flat_kernel(primitive, operands, out_dtype, params)
    return engine.generate(module_text([emit_kernel(kernel, host_target(contract_fma), symbol)]))[0]
