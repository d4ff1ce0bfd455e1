"""Flags: their names, defaults, environment variables, and how to read, set and scope them.

A flag is read as ``enable_x64.value``.  ``config.update("jax_enable_x64", True)`` sets it for the process,
``with enable_x64(True):`` for the running thread, and ``JAX_ENABLE_X64=1`` at the start, as in JAX.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, final

from jaxlite.core.device import CPU
from jaxlite.core.precision import DEFAULT_PRECISIONS


@final
class Settings:
    """``version``: a number that no other state of all the flags has had, or 0 while a ``with`` block overrides one,
    when flags may differ among threads.  What was made under a version that is not 0 holds as long as it stands."""

    __slots__ = ("latest", "open", "version")

    def __init__(self) -> None:
        self.open, self.latest, self.version = 0, 1, 1  # blocks that are open; the latest version

    def changed(self) -> None:
        """Notes that a flag was set."""
        self.latest += 1
        self.version = 0 if self.open else self.latest


settings = Settings()


@final
class Flag:
    """One named setting: process-wide value, per-thread override, environment variable, and a check."""

    def __init__(self, name: str, default: Any, parse: Callable[[str, Any], Any], what: str) -> None:
        self.name, self.default, self.what = name, default, what
        self.__doc__ = what
        self._parse = parse
        self._local = threading.local()
        self._overrides = 0  # how many ``with`` blocks are open, in any thread
        text = os.environ.get(name.upper())
        self._global = default if text is None else parse(name, text)

    @property
    def value(self) -> Any:
        """The override of this thread, else the value of the process."""
        if not self._overrides:
            return self._global
        return getattr(self._local, "value", self._global)

    def set(self, value: Any) -> None:
        """Sets the process-wide value."""
        self._global = self._parse(self.name, value)
        settings.changed()

    @contextlib.contextmanager
    def __call__(self, value: Any = True) -> Iterator[None]:
        """Overrides the flag in this thread for the length of a ``with`` block."""
        value = self._parse(self.name, value)
        missing = object()
        local, before, opened = self._local, getattr(self._local, "value", missing), False
        # A block opens and closes without a call: neither a signal handler nor another thread comes in between.
        try:
            local.value = value
            self._overrides += 1
            settings.open += 1
            settings.latest += 1
            settings.version = 0
            opened = True
            yield
        finally:
            if opened:
                if before is missing:
                    del local.value
                else:
                    local.value = before
                self._overrides -= 1
                settings.open -= 1
                settings.latest += 1
                settings.version = 0 if settings.open else settings.latest


def _boolean(name: str, value: Any) -> bool:
    if isinstance(value, str):
        known = {"1": True, "true": True, "yes": True, "on": True, "y": True, "t": True}
        known |= {"0": False, "false": False, "no": False, "off": False, "n": False, "f": False}
        if value.lower() not in known:
            raise ValueError(f"{name} takes true or false, not {value!r}.")
        return known[value.lower()]
    return bool(value)


def _integer(name: str, value: Any) -> int | None:
    if value is None or value == "":
        return None
    try:
        return int(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name} takes a whole number, not {value!r}.") from None


def _count(name: str, value: Any) -> int | None:
    number = _integer(name, value)
    if number is not None and number < 1:
        raise ValueError(f"{name} takes a whole number from 1, not {value!r}.")
    return number


def _bytes(name: str, value: Any) -> int | None:
    number = _integer(name, value)
    if number is not None and number < -1:
        raise ValueError(f"{name} takes a number of bytes, or -1 for no bound, not {value!r}.")
    return sys.maxsize if number == -1 else number


def _path(name: str, value: Any) -> str | None:
    if not isinstance(value, (str, os.PathLike, type(None))):
        raise ValueError(f"{name} takes a folder's path, not {value!r}.")
    return os.fspath(value) if value else None


def _choice(*choices: str | None) -> Callable[[str, Any], Any]:
    def parse(name: str, value: Any) -> Any:
        if value not in choices:
            listed = ", ".join(map(repr, choices))
            raise ValueError(f"{name} takes one of {listed}, not {value!r}.")
        return value

    return parse


def _platforms(name: str, value: Any) -> Any:
    """Platforms in the order of preference: the CPU must be among them."""
    if value and (not isinstance(value, str) or "cpu" not in value.split(",")):
        raise ValueError(f"{name}={value!r}: jaxlite runs on 'cpu'; write 'cpu', a list with it, or None.")
    return value


def _device(name: str, value: Any) -> Any:
    if value not in (None, "cpu", CPU):
        raise ValueError(f"{name}={value!r}: all arrays lie on the one CPU; give jax.devices()[0], 'cpu' or None.")
    return value


_FLAGS: dict[str, Flag] = {}


def _flag(name: str, default: Any, parse: Callable[[str, Any], Any], what: str) -> Flag:
    _FLAGS[name] = flag = Flag(name, default, parse, what)
    return flag


enable_x64 = _flag("jax_enable_x64", False, _boolean, "Keep 64-bit types instead of halving them.")
disable_jit = _flag("jax_disable_jit", False, _boolean, "Run jitted functions op by op.")
debug_nans = _flag("jax_debug_nans", False, _boolean, "Raise where a NaN is first made.")
debug_infs = _flag("jax_debug_infs", False, _boolean, "Raise where an infinity is first made.")
enable_checks = _flag("jax_enable_checks", False, _boolean, "Verify every IR after every pass.")
check_tracer_leaks = _flag("jax_check_tracer_leaks", False, _boolean, "Raise where a tracer escapes.")
checking_leaks = functools.partial(check_tracer_leaks, True)
log_compiles = _flag("jax_log_compiles", False, _boolean, "Log every compilation.")
explain_cache_misses = _flag("jax_explain_cache_misses", False, _boolean, "Log why a call retraces.")
debug_key_reuse = _flag("jax_debug_key_reuse", False, _boolean, "Raise where a random key is used twice.")
numpy_dtype_promotion = _flag(
    "jax_numpy_dtype_promotion", "standard", _choice("standard", "strict"), "How dtypes promote."
)
numpy_rank_promotion = _flag(
    "jax_numpy_rank_promotion", "allow", _choice("allow", "warn", "raise"), "Whether ranks promote."
)
default_matmul_precision = _flag(
    "jax_default_matmul_precision", None, _choice(None, *DEFAULT_PRECISIONS), "How exact matrix products are."
)
threefry_partitionable = _flag("jax_threefry_partitionable", True, _boolean, "Shardable random bits.")
default_prng_impl = _flag(
    "jax_default_prng_impl", "threefry2x32", _choice("threefry2x32"), "The generator of new keys."
)
default_device = _flag("jax_default_device", None, _device, "Where new arrays are put.")
platforms = _flag("jax_platforms", None, _platforms, "Platforms to look for, comma separated.")
num_cpu_devices = _flag("jax_num_cpu_devices", None, _count, "How many virtual CPU devices there are.")
traceback_filtering = _flag(
    "jax_traceback_filtering",
    "auto",
    _choice("off", "tracebackhide", "remove_frames", "quiet_remove_frames", "auto"),
    "What to do with frames of the library.",
)
enable_compilation_cache = _flag("jax_enable_compilation_cache", True, _boolean, "Keep compiled programs on disk.")
compilation_cache_dir = _flag(
    "jax_compilation_cache_dir", None, _path, "Where they are kept; None: the user's cache folder."
)
compilation_cache_max_size = _flag(
    "jax_compilation_cache_max_size", None, _bytes, "The most bytes that they take; None: 1 GiB; -1: no bound."
)
contract_fma = _flag("jaxlite_contract_fma", True, _boolean, "Contract a product used once into a fused multiply-add.")
num_threads = _flag("jaxlite_num_threads", None, _count, "Threads of the pool; None: one for each CPU there is to use.")
progress = _flag("jaxlite_progress", "auto", _choice("auto", "off"), "Whether runs longer than a second get a bar.")


# What a traced program depends on besides its arguments: part of the key under which it is kept.
_SEEN_BY_TRACING = (
    enable_x64,
    numpy_dtype_promotion,
    numpy_rank_promotion,
    default_matmul_precision,
    threefry_partitionable,
    default_prng_impl,
    contract_fma,
    debug_key_reuse,
)


def tracing_key() -> tuple[Any, ...]:
    """The values of the flags that a traced program depends on."""
    return tuple([flag.value for flag in _SEEN_BY_TRACING])


@final
class Config:
    """``jax.config``: read flags as attributes, set them with :meth:`update`.

    >>> import jaxlite
    >>> jaxlite.config.jax_enable_x64
    False
    """

    def update(self, name: str, value: Any) -> None:
        """Sets flag ``name`` for the process; ``AttributeError`` where there is no such flag."""
        if name not in _FLAGS:
            close = [f for f in _FLAGS if name.removeprefix("jax_") in f]
            hint = f"  Did you mean {close[0]!r}?" if close else ""
            raise AttributeError(f"Unrecognized config option: {name}.{hint}")
        _FLAGS[name].set(value)

    def read(self, name: str) -> Any:
        """The value of flag ``name``."""
        return getattr(self, name)

    def __getattr__(self, name: str) -> Any:
        if name in _FLAGS:
            return _FLAGS[name].value
        raise AttributeError(f"Unrecognized config option: {name}.")

    def __dir__(self) -> list[str]:
        return [*_FLAGS, "update", "read"]


config = Config()
