"""The Runtime protocol: the one door through which eager evaluation and ``jit`` reach a backend.

A backend is installed with a loader, called at the first use, so that importing jaxlite imports no compiler.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, final

if TYPE_CHECKING:
    from jaxlite.core.jaxpr import ClosedJaxpr
    from jaxlite.core.primitive import Primitive


LARGE = 1 << 26  # bytes: smaller arrays are left to the system to refuse


@final
@dataclasses.dataclass(frozen=True)
class MemoryInUse:
    """Bytes of a runtime: given out to arrays, workspaces and constants; kept warm for the next, of at most
    ``warm_bound`` and a little more."""

    given_out: int
    warm: int
    warm_bound: int


class Executable(Protocol):
    """A compiled program: flat arrays in, flat arrays out, and the report of how it was compiled.

    ``seconds`` says what making it took, by stage; ``run`` is the call without its results made arrays,
    ``donating`` one that may write results where these operands lie.
    """

    report: Any
    seconds: dict[str, float]

    def run(self, operands: Sequence[Any]) -> Any: ...

    def donating(self, donated: Sequence[int]) -> Callable[[Sequence[Any]], list[Any]]: ...

    def __call__(self, operands: Sequence[Any]) -> list[Any]: ...


class Runtime(Protocol):
    """What a backend offers."""

    def evaluate(self, primitive: Primitive, operands: Sequence[Any], params: dict[str, Any]) -> Sequence[Any]:
        """The results of one primitive on concrete operands."""
        ...

    def compile(self, jaxpr: ClosedJaxpr, name: str, shardings: Sequence[Any] = ()) -> Executable:
        """Machine code for a whole program; ``shardings``: how its arguments lie on a mesh, where some do."""
        ...

    def clear(self) -> None:
        """Forgets compiled programs."""
        ...

    def memory_in_use(self) -> MemoryInUse:
        """How much memory is given out, and how much is kept warm."""
        ...

    def refuse_too_large(self, nbytes: int, what: str) -> None:
        """``DoesNotFitError`` where the system has no such memory; asked from ``LARGE`` bytes on."""
        ...

    def release_memory(self) -> int:
        """Returns what is kept warm to the system; how many bytes."""
        ...


_loader: Callable[[], Runtime] | None = None
_runtime: Runtime | None = None


def install(loader: Callable[[], Runtime]) -> None:
    """Says where the runtime comes from; ``loader`` runs at the first use."""
    global _loader, _runtime
    _loader, _runtime = loader, None


def current() -> Runtime:
    """The runtime in use."""
    global _runtime
    if _runtime is None:
        if _loader is None:
            raise RuntimeError("No runtime is installed: import jaxlite, which installs one.")
        _runtime = _loader()
    return _runtime


def evaluate(primitive: Primitive, operands: Sequence[Any], params: dict[str, Any]) -> Sequence[Any]:
    """The results of one primitive on concrete operands."""
    return (_runtime or current()).evaluate(primitive, operands, params)
