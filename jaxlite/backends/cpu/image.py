"""Image: a compiled program as data, all that running it needs; what the disk cache keeps.

It holds machine code and symbols but no addresses, so one process may write it and another load it.  A program that
calls Python has calls that only its own process knows: they stand beside the image, and it is not stored.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any, final

import numpy as np

from jaxlite.core.progress import Loop, Loops
from jaxlite.core.source import UNKNOWN

ENTRY = "jl_entry"  # the symbol of the function to call


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Image:
    """``results``: the bytes of each.  ``blas``: the BLAS and LAPACK routines that it calls.  ``long``: whether it
    gives up the interpreter lock; ``splits``: whether it divides work over the threads.  ``loops``: those that it tells
    the progress of: the number of each among the jaxpr's (-1: of none), and its iterations (-1: not known).
    ``takeovers``: which results may be written where which arguments lie, as a plan has them.
    """

    name: str
    arguments: int
    results: tuple[int, ...]
    workspace_bytes: int
    blas: tuple[str, ...]
    long: bool
    splits: bool
    objects: tuple[bytes, ...]
    constants: tuple[np.ndarray[Any, Any], ...] = ()
    loops: tuple[tuple[int, int], ...] = ()
    takeovers: tuple[tuple[int, int], ...] = ()

    def named(self, loops: Loops) -> Loops:
        """The loops of the entry as users know them, found among those of the jaxpr when somebody asks."""

        def known() -> list[Loop]:
            all_loops = loops()
            named = [all_loops[k] if 0 <= k < len(all_loops) else Loop("loop", UNKNOWN) for k, _ in self.loops]
            totals = [trips if trips >= 0 else None for _, trips in self.loops]
            return [dataclasses.replace(n, total=t) for n, t in zip(named, totals, strict=True)]

        return known

    def to_bytes(self) -> bytes:
        """The image as bytes: a line of JSON, then the objects and the constants, one after another."""
        parts = [*self.objects, *[np.ascontiguousarray(c).tobytes() for c in self.constants]]
        head = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name not in _PARTS}
        head["lengths"] = [len(part) for part in parts]
        head["objects"] = len(self.objects)
        return b"".join([json.dumps(head).encode(), b"\n", *parts])

    @staticmethod
    def from_bytes(text: bytes) -> Image:
        """The image that ``to_bytes`` wrote; constants come back as bytes, which is all that code sees of them."""
        line, _, body = text.partition(b"\n")
        head = json.loads(line)
        parts: list[bytes] = []
        at = 0
        for length in head.pop("lengths"):
            parts.append(body[at : at + length])
            at += length
        objects = head.pop("objects")
        constants = tuple([np.frombuffer(part, np.uint8).copy() for part in parts[objects:]])
        head["results"], head["blas"] = tuple(head["results"]), tuple(head["blas"])
        head["loops"] = tuple([(number, trips) for number, trips in head["loops"]])
        head["takeovers"] = tuple([(result, argument) for result, argument in head["takeovers"]])
        return Image(**head, objects=tuple(parts[:objects]), constants=constants)


_PARTS = ("objects", "constants")
