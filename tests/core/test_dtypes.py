"""The promotion lattice against a recorded table (JAX 0.12, 64-bit types on; ``*`` marks weak results)."""

from __future__ import annotations

import numpy as np
import pytest

import jaxlite as jax
from jaxlite.core import dtypes

TABLE = """
bool bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 bfloat16 float16 float32 float64 int64* float64*
uint8 uint8 uint8 uint16 uint32 uint64 int16 int16 int32 int64 bfloat16 float16 float32 float64 uint8 float64*
uint16 uint16 uint16 uint16 uint32 uint64 int32 int32 int32 int64 bfloat16 float16 float32 float64 uint16 float64*
uint32 uint32 uint32 uint32 uint32 uint64 int64 int64 int64 int64 bfloat16 float16 float32 float64 uint32 float64*
uint64 uint64 uint64 uint64 uint64 uint64 float64* float64* float64* float64* bfloat16 float16 float32 float64 uint64 float64*
int8 int8 int16 int32 int64 float64* int8 int16 int32 int64 bfloat16 float16 float32 float64 int8 float64*
int16 int16 int16 int32 int64 float64* int16 int16 int32 int64 bfloat16 float16 float32 float64 int16 float64*
int32 int32 int32 int32 int64 float64* int32 int32 int32 int64 bfloat16 float16 float32 float64 int32 float64*
int64 int64 int64 int64 int64 float64* int64 int64 int64 int64 bfloat16 float16 float32 float64 int64 float64*
bfloat16 bfloat16 bfloat16 bfloat16 bfloat16 bfloat16 bfloat16 bfloat16 bfloat16 bfloat16 bfloat16 float32 float32 float64 bfloat16 bfloat16
float16 float16 float16 float16 float16 float16 float16 float16 float16 float16 float32 float16 float32 float64 float16 float16
float32 float32 float32 float32 float32 float32 float32 float32 float32 float32 float32 float32 float32 float64 float32 float32
float64 float64 float64 float64 float64 float64 float64 float64 float64 float64 float64 float64 float64 float64 float64 float64
int* int64* uint8 uint16 uint32 uint64 int8 int16 int32 int64 bfloat16 float16 float32 float64 int64* float64*
float* float64* float64* float64* float64* float64* float64* float64* float64* float64* bfloat16 float16 float32 float64 float64* float64*
"""
ROWS = [line.split() for line in TABLE.strip().splitlines()]
LABELS = [row[0] for row in ROWS]


def typed(label: str) -> tuple[np.dtype, bool]:
    name = {"int*": "int64", "float*": "float64"}.get(label, label)
    return dtypes.as_dtype(name), label.endswith("*")


@pytest.mark.parametrize("row", ROWS, ids=LABELS)
def test_promotion(row: list[str]) -> None:
    with jax.enable_x64(True):
        for other, wanted in zip(LABELS, row[1:], strict=True):
            dtype, weak = dtypes.promote_types(typed(row[0]), typed(other))
            assert dtype.name + "*" * weak == wanted, (row[0], other)


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
