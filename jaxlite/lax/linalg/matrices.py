"""Small tools of the linear-algebra rules: transposes, triangles, products and row permutations of batched matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxlite.core.avals import aval_of
from jaxlite.lax.contraction import dot_general
from jaxlite.lax.convert import full_like
from jaxlite.lax.elementwise.arithmetic import add
from jaxlite.lax.elementwise.casts import convert
from jaxlite.lax.elementwise.comparison import eq, ge
from jaxlite.lax.elementwise.select import select
from jaxlite.lax.indexing.gather import gather_p
from jaxlite.lax.indexing.places import GatherDimensionNumbers, GatherScatterMode
from jaxlite.lax.layout.iota import broadcasted_iota
from jaxlite.lax.layout.shaping import broadcast_in_dim, reshape, transpose
from jaxlite.lax.layout.slicing import pad


def transposed(x: Any) -> Any:
    """Each matrix's rows as columns."""
    rank = len(aval_of(x).shape)
    return transpose(x, (*range(rank - 2), rank - 1, rank - 2))


def lower_part(x: Any, k: int = 0) -> Any:
    """0 above diagonal ``k``."""
    return select(_mask(x, k), x, full_like_matrix(x, 0))


def upper_part(x: Any, k: int = 0) -> Any:
    """0 below diagonal ``k``."""
    return select(_mask(x, k - 1), full_like_matrix(x, 0), x)


def full_like_matrix(x: Any, value: Any) -> Any:
    """``value`` in the shape and dtype of ``x``."""
    return broadcast_in_dim(full_like(x, value), aval_of(x).shape, ())


def _mask(x: Any, k: int) -> Any:
    """Where column <= row + k."""
    shape = aval_of(x).shape
    rank = len(shape)
    rows = broadcasted_iota(np.int32, shape, rank - 2)
    columns = broadcasted_iota(np.int32, shape, rank - 1)
    return ge(add(rows, np.int32(k)), columns)


def identity(shape: tuple[int, ...], dtype: Any) -> Any:
    """Ones on the diagonals of the last two axes."""
    rank = len(shape)
    rows, columns = broadcasted_iota(np.int32, shape, rank - 2), broadcasted_iota(np.int32, shape, rank - 1)
    return convert(eq(rows, columns), dtype)


def product(x: Any, y: Any) -> Any:
    """Matrix products; batch axes must be equal."""
    rank = len(aval_of(x).shape)
    batch = tuple(range(rank - 2))
    return dot_general(x, y, (((rank - 1,), (rank - 2,)), (batch, batch)))


def grown(x: Any, rows: int, columns: int) -> Any:
    """Zeros added below and to the right, up to ``rows`` by ``columns``."""
    shape = aval_of(x).shape
    config = [(0, 0, 0)] * (len(shape) - 2) + [(0, rows - shape[-2], 0), (0, columns - shape[-1], 0)]
    return pad(x, full_like(x, 0), config)


def rows_taken(x: Any, order: Any) -> Any:
    """Row ``order[i]`` of each matrix as its row ``i``; ``order`` has the batch axes of ``x``."""
    if not aval_of(x).size:
        return x
    shape = aval_of(x).shape
    rank = len(shape)
    batch = tuple(range(rank - 2))
    numbers = GatherDimensionNumbers((rank - 1,), (rank - 2,), (rank - 2,), batch, batch)
    return gather_p.bind(
        x, reshape(order, (*aval_of(order).shape, 1)), dimension_numbers=numbers,
        slice_sizes=(*(1 for _ in batch), 1, shape[-1]), mode=GatherScatterMode.PROMISE_IN_BOUNDS, fill_value=None,
        indices_are_sorted=False, unique_indices=True,
    )  # fmt: skip
