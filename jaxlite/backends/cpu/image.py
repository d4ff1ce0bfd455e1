"""Image: a compiled program as data, all that running it needs; what the disk cache keeps.

It holds machine code and symbols but no addresses, so one process may write it and another load it.  A program that
calls Python has calls that only its own process knows: they stand beside the image, and it is not stored.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any, final

import numpy as np

ENTRY = "jl_entry"  # the symbol of the function to call


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Image:
    """``results``: the bytes of each.  ``blas``: the BLAS and LAPACK routines that it calls.  ``long``: whether it
    gives up the interpreter lock; ``splits``: whether it divides work over the threads.
    """

    name: str
    arguments: int
    results: tuple[int, ...]
    workspace_bytes: int
    blas: tuple[str, ...]
    long: bool
    splits: bool
    object_bytes: bytes
    constants: tuple[np.ndarray[Any, Any], ...] = ()

    def to_bytes(self) -> bytes:
        """The image as bytes: a line of JSON, then the object and the constants, one after another."""
        parts = [self.object_bytes, *[np.ascontiguousarray(c).tobytes() for c in self.constants]]
        head = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name not in _PARTS}
        head["lengths"] = [len(part) for part in parts]
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
        constants = tuple([np.frombuffer(part, np.uint8).copy() for part in parts[1:]])
        head["results"], head["blas"] = tuple(head["results"]), tuple(head["blas"])
        return Image(**head, object_bytes=parts[0], constants=constants)


_PARTS = ("object_bytes", "constants")
