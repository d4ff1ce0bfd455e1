"""The promotion lattice against a recorded table (JAX 0.12, 64-bit types on; ``*`` marks weak results)."""

from __future__ import annotations

import numpy as np
import pytest

import jaxlite as jax
from jaxlite.core import dtypes

TABLE = """
bool bool u8 u16 u32 u64 i8 i16 i32 i64 bf16 f16 f32 f64 i64* f64*
u8 u8 u8 u16 u32 u64 i16 i16 i32 i64 bf16 f16 f32 f64 u8 f64*
u16 u16 u16 u16 u32 u64 i32 i32 i32 i64 bf16 f16 f32 f64 u16 f64*
u32 u32 u32 u32 u32 u64 i64 i64 i64 i64 bf16 f16 f32 f64 u32 f64*
u64 u64 u64 u64 u64 u64 f64* f64* f64* f64* bf16 f16 f32 f64 u64 f64*
i8 i8 i16 i32 i64 f64* i8 i16 i32 i64 bf16 f16 f32 f64 i8 f64*
i16 i16 i16 i32 i64 f64* i16 i16 i32 i64 bf16 f16 f32 f64 i16 f64*
i32 i32 i32 i32 i64 f64* i32 i32 i32 i64 bf16 f16 f32 f64 i32 f64*
i64 i64 i64 i64 i64 f64* i64 i64 i64 i64 bf16 f16 f32 f64 i64 f64*
bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 f32 f32 f64 bf16 bf16
f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f32 f16 f32 f64 f16 f16
f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f64 f32 f32
f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64
int* i64* u8 u16 u32 u64 i8 i16 i32 i64 bf16 f16 f32 f64 i64* f64*
float* f64* f64* f64* f64* f64* f64* f64* f64* f64* bf16 f16 f32 f64 f64* f64*
"""
ROWS = [line.split() for line in TABLE.strip().splitlines()]
LABELS = [row[0] for row in ROWS]
LONG_NAMES = {short: long for long, short in dtypes._SHORT.items()}


def typed(label: str) -> tuple[np.dtype, bool]:
    name = {"int*": "int64", "float*": "float64"}.get(label) or LONG_NAMES[label]
    return dtypes.as_dtype(name), label.endswith("*")


@pytest.mark.parametrize("row", ROWS, ids=LABELS)
def test_promotion(row: list[str]) -> None:
    with jax.enable_x64(True):
        for other, wanted in zip(LABELS, row[1:], strict=True):
            dtype, weak = dtypes.promote_types(typed(row[0]), typed(other))
            assert dtypes.short_name(dtype) + "*" * weak == wanted, (row[0], other)


def test_wide_types_are_halved_unless_switched_on() -> None:
    assert dtypes.canonicalize("float64") == np.float32
    assert dtypes.canonicalize(int) == np.int32
    with jax.enable_x64(True):
        assert dtypes.canonicalize("uint64") == np.uint64


def test_strict_promotion_refuses_two_types() -> None:
    with jax.numpy_dtype_promotion("strict"), pytest.raises(ValueError, match="strict"):
        dtypes.promote_types((np.dtype("int32"), False), (np.dtype("float32"), False))


def test_what_is_no_dtype() -> None:
    with pytest.raises(TypeError, match="not a dtype"):
        dtypes.as_dtype("float33")


def test_flags_say_what_they_take() -> None:
    with pytest.raises(ValueError, match="jax_enable_x64 takes true or false"):
        jax.config.update("jax_enable_x64", "perhaps")
    with pytest.raises(AttributeError, match="Unrecognized config option"):
        jax.config.update("jax_no_such_flag", 1)
