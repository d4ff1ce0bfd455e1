"""The disk cache: found again by another process, and never trusted where it is damaged, foreign or of another CPU."""

from __future__ import annotations

import logging
import os
import re
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import jaxlite as jax
import jaxlite.numpy as jnp
from jaxlite.backends.cpu import disk_cache, environment, programs
from jaxlite.backends.cpu.disk_cache import DiskCache
from jaxlite.backends.cpu.image import Image
from jaxlite.compiler.fingerprint import NotStorable, fingerprint
from jaxlite.interpreters.stage import stage

KEY = bytes(range(32))


@pytest.fixture
def folder(tmp_path):
    """Programs are kept in a folder of the test's own."""
    path = tmp_path / "cache"
    with (
        disk_cache.config.enable_compilation_cache(True),
        disk_cache.config.compilation_cache_dir(str(path)),
    ):
        yield path


def files(folder: Path) -> list[Path]:
    return sorted(p for p in folder.iterdir() if len(p.name) == 64) if folder.exists() else []


def program(scale=2.0):
    """A program of the same jaxpr for the same ``scale``, of a function of its own."""
    return jax.jit(lambda x, y: jnp.sin(x) * scale + jax.lax.scan(lambda c, t: (c + t, c), 0.0, y)[0])


X, Y = jnp.linspace(0.0, 1.0, 7), jnp.arange(3.0)
RIGHT = np.sin(np.linspace(0.0, 1.0, 7, dtype=np.float32)) * 2 + 3


def origin(f, *args):
    return f.lower(*args).compile().report.origin


# -- the folder ------------------------------------------------------------------------------


def test_what_was_stored_is_loaded(tmp_path):
    cache = DiskCache(str(tmp_path / "a" / "b"))
    assert cache.load(KEY) is None and not (tmp_path / "a").exists()
    cache.store(KEY, b"payload")
    assert DiskCache(cache.folder).load(KEY) == b"payload"
    assert stat.S_IMODE(os.stat(cache.folder).st_mode) == 0o700
    assert cache.load(bytes(32)) is None


@pytest.mark.parametrize("payload", [b"", b"x", bytes(1000)])
def test_truncated_at_every_length(tmp_path, payload):
    cache = DiskCache(str(tmp_path))
    tmp_path.chmod(0o700)
    cache.store(KEY, payload)
    (path,) = files(tmp_path)
    whole = path.read_bytes()
    for length in [*range(0, len(whole), 13), len(whole) - 1]:
        path.write_bytes(whole[:length])
        assert cache.load(KEY) is None
        assert not path.exists()  # it would be damaged the next time too
        cache.store(KEY, payload)
        assert cache.load(KEY) == payload


def test_every_flipped_bit_is_seen(tmp_path):
    tmp_path.chmod(0o700)
    cache = DiskCache(str(tmp_path))
    cache.store(KEY, b"some code")
    (path,) = files(tmp_path)
    whole = path.read_bytes()
    for bit in range(8 * len(whole)):
        text = bytearray(whole)
        text[bit // 8] ^= 1 << bit % 8
        path.write_bytes(bytes(text))
        assert cache.load(KEY) is None, bit


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o722])
def test_a_folder_that_others_can_write_to_is_not_used(tmp_path, caplog, mode):
    tmp_path.chmod(0o700)
    DiskCache(str(tmp_path)).store(KEY, b"payload")
    tmp_path.chmod(mode)
    cache = DiskCache(str(tmp_path))
    with caplog.at_level(logging.WARNING, "jaxlite"):
        assert cache.load(KEY) is None
        cache.store(bytes(32), b"payload")
        assert cache.load(bytes(32)) is None
    assert len(files(tmp_path)) == 1
    assert [r for r in caplog.messages if "others can write to it" in r and "chmod 700" in r] == caplog.messages[:1]
    assert len(caplog.messages) == 1  # said once


def test_a_file_that_others_can_write_to_is_not_used(tmp_path):
    tmp_path.chmod(0o700)
    cache = DiskCache(str(tmp_path))
    cache.store(KEY, b"payload")
    files(tmp_path)[0].chmod(0o666)
    assert cache.load(KEY) is None


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("what", ["folder", "file"])
def test_a_foreign_owner_is_not_trusted(tmp_path, what):
    tmp_path.chmod(0o700)
    DiskCache(str(tmp_path)).store(KEY, b"payload")
    os.chown(tmp_path if what == "folder" else files(tmp_path)[0], 12345, -1)
    assert DiskCache(str(tmp_path)).load(KEY) is None


def test_links_are_not_followed(tmp_path):
    tmp_path.chmod(0o700)
    cache = DiskCache(str(tmp_path))
    cache.store(KEY, b"payload")
    (path,) = files(tmp_path)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert cache.load(KEY) is None


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_a_pipe_is_not_waited_for(tmp_path):
    cache = DiskCache(str(tmp_path / "cache"))
    cache.store(KEY, b"payload")
    path = tmp_path / "cache" / KEY.hex()
    path.unlink()
    os.mkfifo(path, 0o600)
    assert cache.load(KEY) is None
    cache.store(KEY, b"another")
    assert cache.load(KEY) == b"another" and path.is_file()


def test_a_folder_that_cannot_be_made(tmp_path, caplog):
    (tmp_path / "file").write_bytes(b"")
    for folder in ("/proc/xx", str(tmp_path / "file" / "inside")):
        cache = DiskCache(folder)
        with caplog.at_level(logging.WARNING):
            assert cache.load(KEY) is None
            cache.store(KEY, b"x")
            cache.store(KEY, b"x")
        assert cache.stored == 0 and caplog.text.count(f"The cache folder {folder} is not used") == 1


@pytest.mark.parametrize("limit", [0, 100, 1000])
def test_the_bound_holds_after_every_store(tmp_path, limit):
    before = DiskCache(str(tmp_path))
    for n in range(3):
        before.store(bytes([n]) * 32, bytes(200))
    cache = DiskCache(str(tmp_path), limit)
    for n in range(20):
        key = bytes([100 + n]) * 32
        cache.store(key, bytes(150))
        assert sum(p.stat().st_size for p in files(tmp_path)) <= limit
        assert cache.load(key) == (bytes(150) if limit == 1000 else None)


def test_the_folder_is_a_file(tmp_path, caplog):
    path = tmp_path / "file"
    path.write_text("mine")
    cache = DiskCache(str(path))
    cache.store(KEY, b"payload")
    assert cache.load(KEY) is None and path.read_text() == "mine"
    assert len(caplog.messages) == 1


def test_a_full_disk_is_no_error(tmp_path, monkeypatch, caplog):
    tmp_path.chmod(0o700)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    cache = DiskCache(str(tmp_path))
    cache.store(KEY, b"payload")
    cache.store(KEY, b"payload")
    assert list(tmp_path.iterdir()) == []  # nothing half-written is left
    assert len(caplog.messages) == 1 and "No space left" in caplog.messages[0]


def test_the_least_recently_used_go_first(tmp_path):
    tmp_path.chmod(0o700)
    cache = DiskCache(str(tmp_path))
    keys = [bytes([n]) * 32 for n in range(20)]
    (tmp_path / "notes.txt").write_text("not ours")
    for n, key in enumerate(keys):
        cache.store(key, bytes(1000))
        os.utime(tmp_path / key.hex(), (n, n))
    cache = DiskCache(str(tmp_path), limit=10_000)
    assert cache.load(keys[0]) is not None  # old, so this use is noted
    assert cache.trim() <= 8_000
    assert cache.load(keys[0]) is not None and cache.load(keys[19]) is not None
    assert cache.load(keys[1]) is None
    assert (tmp_path / "notes.txt").exists()


def test_what_was_left_half_written_goes(tmp_path):
    tmp_path.chmod(0o700)
    old, new, other = (tmp_path / f"{KEY.hex()}.{n}" for n in ("1.1.1", "2.2.2", "3"))
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (1, 1))
    DiskCache(str(tmp_path)).trim()
    assert not old.exists() and new.exists() and not other.exists()


WRITER = """
import os, sys
from jaxlite.backends.cpu.disk_cache import DiskCache
cache = DiskCache(sys.argv[1])
print("ready", flush=True)
while True:
    for n in range(4):
        cache.store(bytes([n]) * 32, bytes([n]) * 200_000)
"""


def test_killed_while_writing_and_two_writers(tmp_path):
    """Readers see all of a file or none of it, whoever writes and dies."""
    tmp_path.chmod(0o700)
    cache = DiskCache(str(tmp_path))
    found = 0
    for _ in range(5):
        writers = [
            subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE) for _ in range(2)
        ]
        for writer in writers:
            assert writer.stdout.readline() == b"ready\n"
        until = time.monotonic() + 0.3
        while time.monotonic() < until:
            for n in range(4):
                payload = cache.load(bytes([n]) * 32)
                assert payload is None or payload == bytes([n]) * 200_000
                found += payload is not None
        for writer in writers:
            writer.send_signal(signal.SIGKILL)
            writer.wait()
            writer.stdout.close()
    assert found
    for n in range(4):
        assert cache.load(bytes([n]) * 32) == bytes([n]) * 200_000


def test_several_threads(tmp_path):
    cache = DiskCache(str(tmp_path / "new"))
    failures = []

    def work(n):
        for k in range(50):
            cache.store(bytes([k]) * 32, bytes([k]) * 5000)
            if cache.load(bytes([k]) * 32) != bytes([k]) * 5000:
                failures.append((n, k))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and len(files(tmp_path / "new")) == 50


# -- programs --------------------------------------------------------------------------------


def test_a_program_is_compiled_once(folder):
    first = program()
    assert origin(first, X, Y) == "compiled"
    again = program()
    compiled = again.lower(X, Y).compile()
    assert compiled.report.origin == "loaded from the disk cache"
    assert set(compiled.report.seconds) == {"trace", "fingerprint", "read", "link"}
    assert compiled.report.kernels and compiled.report.target_text == first.lower(X, Y).compile().report.target_text
    np.testing.assert_array_equal(again(X, Y), first(X, Y))
    np.testing.assert_allclose(again(X, Y), RIGHT, rtol=4e-7)  # sin: 1 ulp, times 2, sum rounded: 3 half-ulps of 6e-8


def test_large_kernels_are_kept_for_other_programs(folder):
    """A program that was edited elsewhere finds its large kernels again."""

    def large(x):
        for _ in range(6):
            x = jnp.sin(jnp.exp(jnp.tanh(x))) + jnp.log1p(x * x)
        return x

    x = jnp.linspace(0.0, 1.0, 50)
    one = jax.jit(lambda x: (large(x), x @ x)).lower(x).compile()
    assert re.search(r"declare void @jl_map_[0-9a-f]{16}\(", one.report.target_text), "no kernel stands apart"
    cache = disk_cache.current()
    hits = cache.hits
    other = jax.jit(lambda x: (x @ x[::-1], large(x)))
    assert origin(other, x) == "compiled"
    assert cache.hits == hits + 1
    np.testing.assert_array_equal(other(x)[1], one(x)[0])
    np.testing.assert_array_equal(other(x)[1], large(x))
    assert origin(jax.jit(lambda x: (x @ x[::-1], large(x))), x) == "loaded from the disk cache"


def test_another_constant_is_another_program(folder):
    program(2.0)(X, Y)
    other = program(3.0)
    assert origin(other, X, Y) == "compiled"
    np.testing.assert_allclose(other(X, Y), (RIGHT - 3) * 1.5 + 3, rtol=6e-7)


def test_damage_means_compiling_again(folder):
    program()(X, Y)
    for path in files(folder):
        text = bytearray(path.read_bytes())
        text[-1] ^= 1
        path.write_bytes(bytes(text))
    again = program()
    assert origin(again, X, Y) == "compiled"
    np.testing.assert_allclose(again(X, Y), RIGHT, rtol=4e-7)
    assert origin(program(), X, Y) == "loaded from the disk cache"


@pytest.mark.parametrize("what", ["cpu", "features", "llvm", "source"])
def test_another_environment_finds_nothing(folder, monkeypatch, what):
    program()(X, Y)
    before = environment.environment_digest()
    environment.environment_digest.cache_clear()
    if what == "cpu":
        monkeypatch.setattr(environment.llvm, "get_host_cpu_name", lambda: "pentium")
    elif what == "features":
        monkeypatch.setattr(environment.llvm, "get_host_cpu_features", lambda: environment.llvm.FeatureMap())
    elif what == "llvm":
        monkeypatch.setattr(environment.llvm, "llvm_version_info", (1, 2, 3))
    else:
        monkeypatch.setattr(environment, "_source_digest", lambda: bytes(32))
    try:
        assert environment.environment_digest() != before
        assert origin(program(), X, Y) == "compiled"
    finally:
        environment.environment_digest.cache_clear()
    monkeypatch.undo()


def test_the_source_digest_follows_the_contents(folder, tmp_path, monkeypatch):
    package = tmp_path / "package"
    package.mkdir()
    (package / "a.py").write_text("1")
    monkeypatch.setattr(environment, "_PACKAGE", str(package))
    one = environment._source_digest()
    assert environment._source_digest() == one  # from the cache
    status = os.stat(package / "a.py")
    (package / "a.py").write_text("2")
    os.utime(package / "a.py", ns=(status.st_atime_ns, status.st_mtime_ns))  # as a tool that sets times back does
    two = environment._source_digest()
    (package / "a.py").write_text("1")
    assert two != one == environment._source_digest()
    (package / "b.py").write_text("")
    assert environment._source_digest() not in (one, two)


def test_programs_that_call_python_are_not_kept(folder):
    def call(x):
        return jax.pure_callback(lambda v: np.asarray(v) + 1, jax.ShapeDtypeStruct((), jnp.float32), x)

    assert float(jax.jit(call)(1.0)) == 2.0
    assert float(jax.jit(lambda x: call(x) * 2)(1.0)) == 4.0
    assert not any(b"jl_entry" in path.read_bytes() for path in files(folder))


def test_switched_off(folder):
    with disk_cache.config.enable_compilation_cache(False):
        program()(X, Y)
    assert files(folder) == []


def test_folders_by_flag_and_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("JAXLITE_CACHE_DIR", str(tmp_path / "named"))
    assert disk_cache.default_folder() == str(tmp_path / "named")
    monkeypatch.delenv("JAXLITE_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert disk_cache.default_folder() == str(tmp_path / "jaxlite") or sys.platform == "darwin"
    with pytest.raises(ValueError, match="takes a folder"):
        jax.config.update("jax_compilation_cache_dir", 3)


CHILD = """
import jaxlite as jax, jaxlite.numpy as jnp
f = jax.jit(jax.grad(lambda w, x: jnp.sum(jax.nn.relu(x @ w) ** 2)))
w, x = jnp.ones((64, 32)), jnp.arange(640.0).reshape(10, 64) / 640
print(float(f(w, x).sum()), float(jnp.tanh(x).sum()), f.lower(w, x).compile().report.origin)
"""


def test_the_next_process_finds_it(tmp_path):
    environ = dict(os.environ, JAXLITE_CACHE_DIR=str(tmp_path / "c"), JAX_ENABLE_COMPILATION_CACHE="1")
    texts = [
        subprocess.run([sys.executable, "-c", CHILD], env=environ, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    (*first, first_origin), (*second, second_origin) = (text.strip().split(maxsplit=2) for text in texts)
    assert (first_origin, second_origin) == ("compiled", "loaded from the disk cache")
    assert first == second


def test_a_loaded_program_needs_no_compiler(tmp_path):
    child = """
import sys, jaxlite as jax, jaxlite.numpy as jnp
print(float(jax.jit(lambda x: jnp.sin(x) + jnp.ones(200_000).sum())(1.0)), float(jnp.cos(1.0)))
print([m for m in sys.modules if m in ("jaxlite.compiler.pipeline", "jaxlite.backends.cpu.emit")])
"""
    environ = dict(os.environ, JAXLITE_CACHE_DIR=str(tmp_path / "c"), JAX_ENABLE_COMPILATION_CACHE="1")
    texts = [
        subprocess.run([sys.executable, "-c", child], env=environ, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert "pipeline" in texts[0] and texts[1].splitlines()[1] == "[]"
    assert texts[0].splitlines()[0] == texts[1].splitlines()[0]


# -- fingerprints ----------------------------------------------------------------------------


def print_of(fun, *args):
    return fingerprint(stage(fun, [jax.typeof(jnp.asarray(a)) for a in args]))


ALIKE = [lambda x: x + 1.0, lambda y: y + 1.0]
DIFFERENT = [
    lambda x: x + 2.0,
    lambda x: x - 1.0,
    lambda x: x + 0.0,
    lambda x: x + -0.0,
    lambda x: x + jnp.nan,
    lambda x: x + jnp.bfloat16(1),
    lambda x: (x + 1.0, x),
    lambda x: (x, x + 1.0),
    lambda x: x + jnp.sum(x),
    lambda x: jnp.sum(x, keepdims=True) + x,
    lambda x: x.astype(jnp.float16) + 1,
    lambda x: x + np.arange(3, dtype=np.float32),
    lambda x: x + np.arange(1, 4, dtype=np.float32),
    lambda x: jax.lax.scan(lambda c, _: (c + 1.0, None), x, length=3)[0],
    lambda x: jax.lax.scan(lambda c, _: (c + 1.0, None), x, length=4)[0],
    lambda x: jax.lax.scan(lambda c, _: (c + 2.0, None), x, length=4)[0],
    lambda x: jax.nn.relu(x),
    lambda x: jax.nn.silu(x),
    lambda x: jax.lax.cond(x[0] > 0, lambda: x, lambda: -x),
    lambda x: jax.random.normal(jax.random.key(0), (3,)) + x,
    lambda x: x[jnp.array([0, 1])],
    lambda x: x[jnp.array([0, 2])],
    lambda x: x.at[jnp.array([0, 2])].add(1.0),
    lambda x: x.at[jnp.array([0, 2])].set(1.0),
]


def test_equal_programs_have_one_fingerprint():
    assert print_of(ALIKE[0], np.ones(3, np.float32)) == print_of(ALIKE[1], np.ones(3, np.float32))


def test_different_programs_have_different_ones():
    x = np.ones(3, np.float32)
    prints = [print_of(f, x) for f in [ALIKE[0], *DIFFERENT]]
    assert len(set(prints)) == len(prints)
    assert print_of(ALIKE[0], np.ones(4, np.float32)) not in prints


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (1, True), (1, 1.0), (1.0, np.float32(1)), (np.float32(1), np.float64(1)), ("1", 1), ((1, 2), [1, 2]),
        ((1, (2, 3)), ((1, 2), 3)), (0.0, -0.0), (None, "None"), ({"a": 1}, {"a": 2}), ({"a": 1}, {"b": 1}),
        (np.dtype(np.int32), np.dtype(np.float32)), (np.arange(3), np.arange(3)[::-1]), (("a\nb",), ("a", "b")),
        (np.zeros((2, 3)), np.zeros((3, 2))), (np.float32, np.float64), (slice(1), slice(2)),
    ],
)  # fmt: skip
def test_values_that_differ(a, b):
    assert fingerprint(a) != fingerprint(b)
    assert fingerprint(a) == fingerprint(a)


def test_order_of_sets_does_not_count():
    assert fingerprint({"a", "b", "c"}) == fingerprint({"c", "b", "a"})


def test_functions_have_none():
    with pytest.raises(NotStorable, match="function"):
        fingerprint(print_of)


def test_an_image_survives_its_bytes():
    image = Image(
        "nämé\n", 2, (4, 0), 64, ("sgemm",), True, False, (b"\0obj\n", b""), (np.arange(3.0), np.zeros(0)), ((0, -1),)
    )
    again = Image.from_bytes(image.to_bytes())
    for field in ("name", "arguments", "results", "workspace_bytes", "blas", "long", "splits", "objects", "loops"):
        assert getattr(again, field) == getattr(image, field), field
    assert [c.tobytes() for c in again.constants] == [c.tobytes() for c in image.constants]


def test_build_says_why_nothing_is_kept(folder, caplog):
    with caplog.at_level(logging.DEBUG, "jaxlite"):
        programs.build(stage(lambda x: jax.pure_callback(np.sin, x, x), [jax.typeof(X)]), "calls")
    assert any("calls is not kept on disk: it holds a" in m for m in caplog.messages)
