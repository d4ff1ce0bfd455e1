"""What jaxlite holds and how it behaves as a whole: caches, live arrays, transfers, the environment."""

from __future__ import annotations

import contextlib
import gc
import platform as platform_
import sys
from collections.abc import Iterator

import numpy as np

from jaxlite.core import pytree, runtime
from jaxlite.core.array import Array
from jaxlite.transforms import jit
from jaxlite.transforms.device import devices

TRANSFERS = ("allow", "log", "disallow", "log_explicit", "disallow_explicit")


def clear_caches() -> None:
    """Forgets every traced and compiled program; the next calls trace and compile anew."""
    jit.clear_programs()
    runtime.current().clear()
    pytree.forget_shared()


def live_arrays(platform: str | None = None) -> list[Array]:
    """Every array that is alive and not deleted."""
    devices(platform)  # raises where there is none
    return [o for o in gc.get_objects() if type(o) is Array and not o.is_deleted()]


def effects_barrier() -> None:
    """Waits for pending effects; there are none: a call returns when its effects are done."""


@contextlib.contextmanager
def transfer_guard(new_val: str) -> Iterator[None]:
    """Checks its argument and does nothing more: on the CPU no array is ever moved."""
    if new_val not in TRANSFERS:
        raise ValueError(f"transfer_guard takes one of {', '.join(map(repr, TRANSFERS))}, not {new_val!r}.")
    yield


transfer_guard_host_to_device = transfer_guard_device_to_host = transfer_guard_device_to_device = transfer_guard


def print_environment_info(return_string: bool = False) -> str | None:
    """Prints (or gives) the versions and machine that a bug report needs."""
    lines = [
        f"jaxlite: {sys.modules['jaxlite'].__version__}",
        f"numpy:   {np.__version__}",
        f"python:  {sys.version}",
        f"machine: {platform_.platform()} {platform_.machine()}",
    ]
    text = "\n".join(lines)
    if return_string:
        return text
    print(text)
    return None
