"""Five loop nests that every target emits: the golden files hold their text.

Regenerate the files: `python tests/golden_nests.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from jaxlite.backends.cpu import emit as cpu
from jaxlite.backends.cpu.target import Target
from jaxlite.backends.gpu import emit as gpu
from jaxlite.compiler.builder import Builder, Carry
from jaxlite.compiler.loop_printer import print_kernel
from jaxlite.compiler.loops import Kernel, Value

FOLDER = Path(__file__).parent / "golden"
F32 = np.float32


def fused_elementwise() -> Kernel:
    """tanh(x y + 0.5) over any size."""
    b = Builder()
    x = b.buffer("x", F32, None, "input")
    y = b.buffer("y", F32, None, "input")
    out = b.buffer("out", F32, None, "output")
    with b.loop(b.size(), parallel=True, vector=True) as i:
        b.store(out, i, b.tanh(b.add(b.mul(b.load(x, i), b.load(y, i)), 0.5)))
    return b.finish("fused_elementwise")


def row_softmax(rows: int = 20, columns: int = 100) -> Kernel:
    """exp(x - max) / sum, row by row, the exponentials kept in scratch."""
    b = Builder()
    x = b.buffer("x", F32, rows * columns, "input")
    out = b.buffer("out", F32, rows * columns, "output")
    scratch = b.buffer("scratch", F32, columns, "local")
    with b.loop(rows, parallel=True) as row:
        base = b.mul(row, columns)

        def element(j: Value) -> Value:
            return b.load(x, b.add(base, j))

        top = b.reduce(columns, element, "max", F32(-np.inf), vector=True)
        with b.fold(columns, Carry((F32(0),), "add"), vector=True) as loop:
            power = b.exp(b.sub(element(loop.axis), top))
            b.store(scratch, loop.axis, power)
            loop.update(b.add(loop.carried[0], power))
        with b.loop(columns, vector=True) as j:
            b.store(out, b.add(base, j), b.div(b.load(scratch, j), loop.results[0]))
    return b.finish("row_softmax")


def column_reduction(rows: int = 30, columns: int = 50) -> Kernel:
    """Sums over rows: the columns are the vector axis, the rows a serial fold inside."""
    b = Builder()
    x = b.buffer("x", F32, rows * columns, "input")
    out = b.buffer("out", F32, columns, "output")
    with b.loop(columns, parallel=True, vector=True) as j:
        total = b.reduce(rows, lambda i: b.load(x, b.add(b.mul(i, columns), j)), "add", F32(0))
        b.store(out, j, total)
    return b.finish("column_reduction")


def transpose(rows: int = 24, columns: int = 40) -> Kernel:
    """out[j, i] = x[i, j]: contiguous stores, strided loads."""
    b = Builder()
    x = b.buffer("x", F32, rows * columns, "input")
    out = b.buffer("out", F32, rows * columns, "output")
    with b.loop(columns, parallel=True) as j, b.loop(rows, vector=True) as i:
        b.store(out, b.add(b.mul(j, rows), i), b.load(x, b.add(b.mul(i, columns), j)))
    return b.finish("transpose")


def gather(size: int = 200, table: int = 64) -> Kernel:
    """x[indices] with indices out of range read as zero."""
    b = Builder()
    x = b.buffer("x", F32, table, "input")
    indices = b.buffer("indices", np.int32, size, "input")
    out = b.buffer("out", F32, size, "output")
    with b.loop(size, parallel=True, vector=True) as i:
        index = b.convert(b.load(indices, i), np.int64)
        inside = b.and_(b.ge(index, 0), b.lt(index, table))
        b.store(out, i, b.load(x, index, inside))
    return b.finish("gather")


NESTS: dict[str, Callable[[], Kernel]] = {
    nest.__name__: nest for nest in (fused_elementwise, row_softmax, column_reduction, transpose, gather)
}


def golden_texts(nest: str) -> dict[str, str]:
    """The text of each golden file of a nest, by file name."""
    kernel = NESTS[nest]()
    return {
        f"{nest}.loops": print_kernel(kernel),
        f"{nest}.ll": cpu.module_text([cpu.emit_kernel(kernel, Target(32), f"jl_{nest}")]),
        f"{nest}.cu": gpu.emit_kernel(kernel, f"jl_{nest}"),
    }


def main() -> None:
    """Write all golden files."""
    FOLDER.mkdir(exist_ok=True)
    for nest in NESTS:
        for name, text in golden_texts(nest).items():
            (FOLDER / name).write_text(text)


if __name__ == "__main__":
    main()
