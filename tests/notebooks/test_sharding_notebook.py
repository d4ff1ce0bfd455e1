"""The notebook about meshes: runs, counts its collectives, and computes what one device computes."""

from __future__ import annotations

import re
from typing import Any

import pytest

pytestmark = pytest.mark.long


def text_of(outputs: Any) -> str:
    """What a cell printed and gave."""
    given = [o.get("text", "") or o.get("data", {}).get("text/plain", "") for o in outputs]
    return "\n".join(given)


def test_arrays_lie_in_parts(sharded: Any) -> None:
    assert text_of(sharded["start"]) == "8"
    text = text_of(sharded["arrays"])
    assert text.count("CPU") == 8 and "(slice(4, 8, None), slice(2, 4, None)), (4, 2)" in text


def test_data_parallel_has_one_exchange_and_learns_the_same(sharded: Any) -> None:
    # 4*32 + 32 + 32 + 1 parameters and the loss, 4 bytes each: twice 7/8 of each value, rounded down
    (found,) = re.findall(r"'all_reduce', \['data'\], (\d+)", text_of(sharded["counts"]))
    assert 0 <= 2 * 4 * 194 * 7 // 8 - int(found) <= 2 * 5
    found = re.search(r"loss ([\d.]+), on one device ([\d.]+)", text_of(sharded["losses"]))
    assert found is not None and abs(float(found[1]) - float(found[2])) <= 1e-4
    (board,) = sharded["board"]
    assert "all_reduce over data" in board["data"]["text/plain"] and "Operations" in board["data"]["text/html"]


def test_tensor_parallel(sharded: Any) -> None:
    assert "float32[16@x,128@y]" in text_of(sharded["types"])
    assert text_of(sharded["ambiguous"]).startswith("ShardingTypeError: Contracting dimensions are sharded")
    text = text_of(sharded["tensor"])
    # each device's part of the result is 8 by 64: twice three quarters of its bytes
    assert "float32[16@x,64]" in text and f"('all_reduce', ['y'], {2 * (8 * 64 * 4 * 3 // 4)})" in text


def test_halo_exchange(sharded: Any) -> None:
    assert float(text_of(sharded["halo"])) <= 1e-6  # the same sums of numbers of at most one, 50 times
