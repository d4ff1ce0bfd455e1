"""Limits: how much memory there is to have, and refusing what would take more, before it runs.

In: the bytes that an array or a program is about to take.  Nothing is looked at for less than `CHECKED` bytes.  The
limit is the least of what the system has available, what the control group leaves, and what the address space leaves.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator, Sequence
from pathlib import Path

from jaxlite.backends.cpu import memory
from jaxlite.core import runtime, source
from jaxlite.core.errors import DoesNotFitError

CHECKED = runtime.LARGE  # bytes: smaller needs are not checked, the system itself refuses them

_GROUPS = Path("/sys/fs/cgroup")
_PROCESS = Path("/proc/self")


def available() -> tuple[int, str]:
    """Bytes that can still be had, and whose limit it is."""
    return min(_limits())


def refuse_too_large(needs: Sequence[int], what: str) -> None:
    """``DoesNotFitError`` if the bytes of ``needs``, beyond what is kept warm, are more than there is."""
    total = sum(needs)
    if total < CHECKED or total <= available()[0]:
        return
    memory.trim()
    limit, whose = available()
    if total > limit:
        where = source.current()
        line = f" at {where.file}:{where.line}" if where.file else ""
        raise DoesNotFitError(
            f"RESOURCE_EXHAUSTED: Out of memory: {what}{line} needs {in_words(total)} of its own, but only "
            f"{in_words(limit)} are available ({whose}).  Nothing has run."
        )


def in_words(nbytes: int) -> str:
    """``1,073,741,824 bytes (1.0 GiB)``.

    >>> in_words(3 << 30)
    '3,221,225,472 bytes (3.0 GiB)'
    """
    units = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
    power = next((k for k in range(1, len(units)) if nbytes < 1024 ** (k + 1)), len(units))
    return f"{nbytes:,} bytes ({nbytes / 1024**power:,.1f} {units[power - 1]})"


def _limits() -> Iterator[tuple[int, str]]:
    yield _system()
    yield from _control_groups()
    address_space = resource.getrlimit(resource.RLIMIT_AS)[0]
    if address_space != resource.RLIM_INFINITY:
        pages = _words(_PROCESS / "statm")
        taken = int(pages[0]) * os.sysconf("SC_PAGE_SIZE") if pages else 0
        yield max(address_space - taken, 0), "RLIMIT_AS, less the address space in use"


def _system() -> tuple[int, str]:
    for line in _text(Path("/proc/meminfo")).splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024, "MemAvailable of the system"
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), "the memory of the machine"


def _control_groups() -> Iterator[tuple[int, str]]:
    """What each control group around this process leaves; files that the system could drop do not count as used."""
    for line in _text(_PROCESS / "cgroup").splitlines():
        number, controllers, path = line.split(":", 2)
        if number == "0":
            folder, limit, used = _GROUPS, "memory.max", "memory.current"
        elif "memory" in controllers.split(","):
            folder, limit, used = _GROUPS / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes"
        else:
            continue
        inner = folder / path.lstrip("/")
        for group in (inner, *inner.parents):
            bounds, taken = _words(group / limit), _words(group / used)
            if bounds and taken and bounds[0].isdigit():
                left = int(bounds[0]) - int(taken[0]) + _droppable(group / "memory.stat")
                yield max(left, 0), f"the limit of the control group {path}"
            if group == folder:
                break


def _droppable(stat: Path) -> int:
    counts = dict(line.split(None, 1) for line in _text(stat).splitlines())
    names = (
        ("total_active_file", "total_inactive_file")
        if "total_active_file" in counts
        else ("active_file", "inactive_file")
    )
    return sum(int(counts.get(name, 0)) for name in names)


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _words(path: Path) -> list[str]:
    return _text(path).split()
