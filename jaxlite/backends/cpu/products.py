"""Matrix products as native code: a task that calls BLAS on tiles, and how a product is tiled.

The tiles depend on the shape alone, never on the number of threads, so results do not either; k is
never split. Measured on one core (AVX-512), a product of 1024 runs at 150 GFLOP/s in tiles of 256,
170 in tiles of 512 and 199 whole: so few, squarish tiles, enough for eight threads when large.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from jaxlite.compiler.plan import MatrixProduct

TILED_FLOPS = 1 << 21  # smaller products stay whole
TILE_FLOPS = 1 << 26
MAX_TILES = 8
LONG_TILE_FLOPS = 1 << 31  # beyond it there are more tiles: between two tiles a program can stop
TILE_UNIT = 64  # rows and columns of a tile: a multiple, so that BLAS's inner kernels stay whole
CHUNK_FLOPS = 1 << 20  # small products of a batch are grouped up to this


@final
@dataclass(frozen=True)
class Tiling:
    """`tile_rows` x `tile_columns` tiles, `rows` x `columns` of them for each of the batch."""

    tile_rows: int
    tile_columns: int
    rows: int
    columns: int

    @property
    def count(self) -> int:
        return self.rows * self.columns


def tiling(m: int, n: int, k: int) -> Tiling:
    """The tiles of one (m, k) times (k, n) product."""
    flops = 2 * m * n * k
    wanted = max(min(max(flops // TILE_FLOPS, 2), MAX_TILES), flops // LONG_TILE_FLOPS) if flops >= TILED_FLOPS else 1
    tile_rows, tile_columns = max(m, 1), max(n, 1)
    rows = columns = 1
    while rows * columns < wanted and max(tile_rows, tile_columns) >= 2 * TILE_UNIT:
        if tile_rows >= tile_columns:
            tile_rows = _half(tile_rows)
            rows = -(-m // tile_rows)
        else:
            tile_columns = _half(tile_columns)
            columns = -(-n // tile_columns)
    return Tiling(tile_rows, tile_columns, rows, columns)


def _half(extent: int) -> int:
    return -(-extent // (2 * TILE_UNIT)) * TILE_UNIT


def chunk_of(product: MatrixProduct, tiles: Tiling) -> int:
    """How many tiles one chunk of the job takes: one, or several small products of a batch."""
    flops = 2 * tiles.tile_rows * tiles.tile_columns * max(product.k, 1)
    return max(1, CHUNK_FLOPS // flops)


def product_key(product: MatrixProduct) -> tuple[object, ...]:
    """What the native task depends on: all but the addresses."""
    operands = (product.left, product.right, product.out)
    layout = tuple((o.leading, o.batch_stride, o.transposed) for o in operands)
    return (product.dtype, product.m, product.n, product.k, product.batch, layout)


def product_text(product: MatrixProduct, symbol: str) -> str:
    """A task over tiles: buffers are left, right, out.

    BLAS is column-major: it is asked for out.T = right.T @ left.T, with the same memory.
    """
    tiles = tiling(product.m, product.n, product.k)
    name, scalar = ("sgemm", "float") if product.dtype.itemsize == 4 else ("dgemm", "double")
    itemsize = product.dtype.itemsize
    left, right, out = product.left, product.right, product.out
    row_step = 1 if left.transposed else left.leading
    column_step = right.leading if right.transposed else 1
    integers = {"k": product.k, "ldl": left.leading, "ldr": right.leading, "ldo": out.leading}
    integers = {name: value if name == "k" else max(value, 1) for name, value in integers.items()}
    allocated = "\n".join(f"  %{n}.at = alloca i32" for n in ("rows", "columns", *integers))
    stored = "\n".join(f"  store i32 {value}, ptr %{n}.at" for n, value in integers.items())
    return f"""
declare void @jl_{name}(ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr)
declare i64 @llvm.umin.i64(i64, i64)
define internal void @{symbol}(ptr %buffers, ptr %sizes, i64 %lo, i64 %hi, ptr %frame) nounwind {{
entry:
{allocated}
  %left.mark = alloca i8
  %right.mark = alloca i8
  %one = alloca {scalar}
  %zero = alloca {scalar}
{stored}
  store i8 {ord("T" if left.transposed else "N")}, ptr %left.mark
  store i8 {ord("T" if right.transposed else "N")}, ptr %right.mark
  store {scalar} 1.0, ptr %one
  store {scalar} 0.0, ptr %zero
  %left = load ptr, ptr %buffers
  %right.at = getelementptr ptr, ptr %buffers, i64 1
  %right = load ptr, ptr %right.at
  %out.at = getelementptr ptr, ptr %buffers, i64 2
  %out = load ptr, ptr %out.at
  br label %tile
tile:
  %index = phi i64 [ %lo, %entry ], [ %next, %tile ]
  %batch = udiv i64 %index, {tiles.count}
  %number = urem i64 %index, {tiles.count}
  %tile.row = udiv i64 %number, {tiles.columns}
  %tile.column = urem i64 %number, {tiles.columns}
  %row = mul i64 %tile.row, {tiles.tile_rows}
  %column = mul i64 %tile.column, {tiles.tile_columns}
  %rows.left = sub i64 {product.m}, %row
  %columns.left = sub i64 {product.n}, %column
  %rows = call i64 @llvm.umin.i64(i64 %rows.left, i64 {tiles.tile_rows})
  %columns = call i64 @llvm.umin.i64(i64 %columns.left, i64 {tiles.tile_columns})
  %rows.word = trunc i64 %rows to i32
  %columns.word = trunc i64 %columns to i32
  store i32 %rows.word, ptr %rows.at
  store i32 %columns.word, ptr %columns.at
  %left.batch = mul i64 %batch, {left.batch_stride * itemsize}
  %left.row = mul i64 %row, {row_step * itemsize}
  %left.offset = add i64 %left.batch, %left.row
  %left.tile = getelementptr i8, ptr %left, i64 %left.offset
  %right.batch = mul i64 %batch, {right.batch_stride * itemsize}
  %right.column = mul i64 %column, {column_step * itemsize}
  %right.offset = add i64 %right.batch, %right.column
  %right.tile = getelementptr i8, ptr %right, i64 %right.offset
  %out.batch = mul i64 %batch, {out.batch_stride * itemsize}
  %out.row = mul i64 %row, {out.leading * itemsize}
  %out.column = mul i64 %column, {itemsize}
  %out.rows = add i64 %out.batch, %out.row
  %out.offset = add i64 %out.rows, %out.column
  %out.tile = getelementptr i8, ptr %out, i64 %out.offset
  call void @jl_{name}(ptr %right.mark, ptr %left.mark, ptr %columns.at, ptr %rows.at, ptr %k.at,
    ptr %one, ptr %right.tile, ptr %ldr.at, ptr %left.tile, ptr %ldl.at, ptr %zero,
    ptr %out.tile, ptr %ldo.at)
  %next = add i64 %index, 1
  %more = icmp ult i64 %next, %hi
  br i1 %more, label %tile, label %done
done:
  ret void
}}
"""
