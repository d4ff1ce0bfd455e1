"""Memory that will not fit is refused before anything runs: with bytes, limit, largest values and the user's lines."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jaxlite as jax
import jaxlite.numpy as jnp
from jaxlite.backends.cpu import limits
from jaxlite.core.array import from_numpy
from jaxlite.core.errors import DoesNotFitError, JaxRuntimeError

SIDE = 10**7
ROW = np.ones(SIDE, np.float32)
SHORT = np.ones(1 << 20, np.float32)

TOO_LARGE: dict[str, tuple[Any, str]] = {
    "zeros": (lambda: jnp.zeros((SIDE, SIDE)), "400,000,000,000,000 bytes"),
    "ones": (lambda: jnp.ones((SIDE, SIDE)), "400,000,000,000,000 bytes"),
    "full": (lambda: jnp.full((SIDE, SIDE), 3), "400,000,000,000,000 bytes"),
    "zeros_like": (lambda: jnp.zeros_like(jax.ShapeDtypeStruct((SIDE, SIDE), np.int8)), "100,000,000,000,000 bytes"),
    "eye": (lambda: jnp.eye(SIDE), "400,000,000,000,000 bytes"),
    "linspace": (lambda: jnp.linspace(0, 1, 10**13), "TiB"),
    "tile": (lambda: jnp.tile(jnp.ones(1000), 10**10), "40,000,000,000,000 bytes"),
    "an outer sum": (lambda: jnp.asarray(ROW)[:, None] + jnp.asarray(ROW), "400,000,000,000,000 bytes"),
    "a product": (lambda: jnp.ones((SIDE, 1)) @ jnp.ones((1, SIDE)), "400,000,000,000,000 bytes"),
    "more than can be addressed": (lambda: jnp.zeros((2**40, 2**40)), "4,194,304.0 EiB"),
    "more than can be counted": (lambda: jnp.broadcast_to(jnp.float32(1), (2**40, 2**40)), "EiB"),
    "a jitted result": (lambda: jax.jit(lambda x: x[:, None] * x)(ROW), "400,000,000,000,000 bytes"),
    "a jitted workspace": (lambda: jax.jit(lambda x: jnp.sort(x[:, None] * x, 1).sum())(SHORT), "8,796,093,0"),
}


@pytest.mark.parametrize("call, nbytes", TOO_LARGE.values(), ids=list(TOO_LARGE))
def test_too_large(call: Any, nbytes: str) -> None:
    with pytest.raises(MemoryError) as refusal:
        call()
    text = str(refusal.value)
    assert nbytes in text and "available (" in text and f"{os.path.basename(__file__)}:" in text
    assert isinstance(refusal.value, JaxRuntimeError) and text.startswith("RESOURCE_EXHAUSTED: Out of memory")


def test_a_program_names_its_largest_values_and_their_lines() -> None:
    def pairwise(x: Any) -> Any:
        distances = x[:, None] * x
        return jnp.sort(distances, 1).sum()

    with pytest.raises(MemoryError) as refusal:
        jax.jit(pairwise)(SHORT)
    text = str(refusal.value)
    first = pairwise.__code__.co_firstlineno
    assert "the program pairwise" in text and "arguments 4,194,304" in text
    for line in (first + 1, first + 2):
        assert f"f32[1048576,1048576]: 4,398,046,511,104 bytes, test_too_large.py:{line} (pairwise)" in text


@pytest.mark.parametrize("shape", [(2**40, 2**40), (2**62,), (2**31, 2**31)])
def test_sizes_that_overflow_inside_a_program(shape: Any) -> None:
    def f(x: Any) -> Any:
        return (x + jnp.ones(shape)).sum()

    with pytest.raises(MemoryError, match=r"test_too_large.py:\d+ \(f\) gives f32\[.*2\*\*62"):
        jax.jit(f)(1.0)
    with pytest.raises(MemoryError, match=r"2\*\*62"):
        jax.jit(lambda x: jax.lax.fori_loop(0, 3, lambda i, c: f(c), x))(1.0)


def test_what_is_never_in_memory_is_no_matter() -> None:
    assert float(jax.jit(lambda x: jnp.broadcast_to(x, (10**6, 10**6))[3, 4])(2.0)) == 2


def test_a_limit_in_words() -> None:
    assert limits.in_words(3 << 29) == "1,610,612,736 bytes (1.5 GiB)"
    assert limits.in_words(1 << 70) == f"{1 << 70:,} bytes (1,024.0 EiB)"


def test_the_limit_is_looked_at_for_large_needs_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    f = jax.jit(lambda x: jnp.sin(x) + 1)
    f(jnp.ones(1000)), jnp.zeros(1000), jnp.arange(1000)

    def looked() -> Any:
        raise AssertionError("looked at the limit")

    monkeypatch.setattr(limits, "available", looked)
    f(jnp.ones(1000)), jnp.zeros(999), jnp.arange(999)
    with pytest.raises(AssertionError):
        f(jnp.zeros(limits.CHECKED // 4))


def test_refused_arguments_stay_although_donated(monkeypatch: pytest.MonkeyPatch) -> None:
    x = jax.jit(lambda v: v + 1)(jnp.zeros(limits.CHECKED // 4))
    in_place, apart = (jax.jit(f, donate_argnums=0) for f in (lambda v: v * 2, lambda v: v + jnp.flip(v)))
    monkeypatch.setattr(limits, "available", lambda: (1000, "a test"))
    with pytest.raises(MemoryError, match="Nothing has run"):
        apart(x)
    assert not x.is_deleted() and float(x[0]) == 1
    y = in_place(x)  # needs no memory of its own
    assert x.is_deleted() and float(y[0]) == 2


def groups(tmp_path: Path, line: str, files: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, str]]:
    """The limits that control groups made of these files give."""
    for name, text in files.items():
        path = tmp_path / "fs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "cgroup").write_text(line)
    monkeypatch.setattr(limits, "_GROUPS", tmp_path / "fs")
    monkeypatch.setattr(limits, "_PROCESS", tmp_path)
    return list(limits._control_groups())


def test_control_groups_of_version_2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        "a/b/memory.max": "max\n",
        "a/b/memory.current": "700\n",
        "a/memory.max": "5000\n",
        "a/memory.current": "1000\n",
        "a/memory.stat": "anon 600\nactive_file 100\ninactive_file 50\n",
    }
    assert groups(tmp_path, "0::/a/b\n", files, monkeypatch) == [(4150, "the limit of the control group /a/b")]


def test_control_groups_of_version_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        "memory/x/memory.limit_in_bytes": "3000\n",
        "memory/x/memory.usage_in_bytes": "2900\n",
        "memory/memory.limit_in_bytes": "9223372036854771712\n",
        "memory/memory.usage_in_bytes": "5000\n",
    }
    found = groups(tmp_path, "4:memory,cpu:/x\n3:pids:/y\n", files, monkeypatch)
    assert found[0][0] == 100 and len(found) == 2


@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_AS bounds nothing on macOS")
def test_the_limit_of_the_address_space() -> None:
    code = """if True:
        import resource
        import jaxlite as jax, jaxlite.numpy as jnp
        f = jax.jit(lambda x: x * 2)
        f(jnp.ones(3))
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (300 << 20), -1))
        f(jnp.ones(10 << 20))
        try:
            f(jnp.ones(90 << 20))
        except MemoryError as refusal:
            print(refusal)
        print(float(f(jnp.ones(10 << 20))[0]))
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "RLIMIT_AS" in done.stdout and done.stdout.endswith("2.0\n")


def test_the_error_is_of_all_three_kinds() -> None:
    assert issubclass(DoesNotFitError, (MemoryError,)) and issubclass(DoesNotFitError, jax.errors.JaxRuntimeError)


COPIES = {
    "asarray": jnp.asarray,
    "array": jnp.array,
    "device_put": jax.device_put,
    "an argument of jit": jax.jit(lambda x: x[0]),
    "copy": lambda x: from_numpy(x).copy(),
    "deepcopy": lambda x: copy.deepcopy(from_numpy(x)),
    "in another order": lambda x: jax.jit(lambda v: v[0])(from_numpy(x.reshape(2, -1).T)),
}


@pytest.mark.parametrize("call", COPIES.values(), ids=list(COPIES))
def test_copies_of_large_arrays(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.ones(17 << 20, np.float32)  # 68 MiB
    monkeypatch.setattr(limits, "available", lambda: (60 << 20, "a test"))
    with pytest.raises(MemoryError, match=r"71,303,168 bytes .* of its own, but only 62,914,560 bytes"):
        call(x)
    monkeypatch.setattr(limits, "available", lambda: (1 << 40, "a test"))
    call(x)
