"""``jax.debug.breakpoint``: stops a program, compiled or not, and opens a prompt on the variables of its calls.

When the program is traced, the frames that lead to the breakpoint are noted; traced arrays among their variables, also
inside lists, dicts and other pytrees, become operands of a callback, so that each run sees its own values.  Everything
else is what it was when the program was traced.
"""

from __future__ import annotations

import dataclasses
import operator
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, final

from jaxlite.core.avals import aval_of
from jaxlite.core.pytree import PyTreeDef, tree_flatten
from jaxlite.core.source import is_library_code
from jaxlite.core.trace import Tracer
from jaxlite.core.tracebacks import boundary
from jaxlite.lax.control.callback import debug_callback_p
from jaxlite.lax.families.higher_order import jvp_of
from jaxlite.transforms.arguments import flat_operands
from jaxlite.transforms.callback import bind_callback, pure_callback
from jaxlite.transforms.custom import custom_jvp
from jaxlite.transforms.debugger import Debugger, Frame
from jaxlite.transforms.jit import JitFunction

BACKENDS = (None, "cli")
OPTIONS = ("completekey", "stdin", "stdout")


@boundary
def breakpoint(
    *,
    backend: str | None = None,
    filter_frames: bool = True,
    num_frames: int | None = None,
    ordered: bool = False,
    token: Any = None,
    **kwargs: Any,
) -> Any:
    """Stops here each time the program gets here, and asks for commands: ``p x`` prints, ``u`` and ``d`` go to the
    frames of callers and back, ``l`` lists, ``c`` continues, ``q`` ends the program, ``h`` names them all.

    ``num_frames`` limits the frames; ``filter_frames=False`` shows the library's too.  With ``token`` (arrays), these
    are given back, and the breakpoint is one step in computing them: it may be left out where nobody reads them.
    ``stdin`` and ``stdout``, files, stand in for the terminal or notebook.

    >>> import io
    >>> breakpoint(stdin=io.StringIO("p 1 + 1\\nc\\n"))
    Entering jdb:
    (jdb) 2
    (jdb)
    """
    _check(backend, num_frames, ordered, token, kwargs)
    notes, tracers = _noted(sys._getframe(1), bool(filter_frames), num_frames)

    def stop(*values: Any) -> None:
        Debugger([n.filled(values) for n in notes], **kwargs).run()

    if token is not None:
        return _through(token, tracers, stop)

    def run(*values: Any) -> tuple[()]:
        stop(*values)
        return ()

    bind_callback(debug_callback_p, run, (), tuple(tracers), {}, ordered=bool(ordered))
    return None


def _check(backend: Any, num_frames: Any, ordered: Any, token: Any, options: dict[str, Any]) -> None:
    if backend not in BACKENDS:
        raise ValueError(f"debug.breakpoint: backend must be one of {BACKENDS}, got {backend!r}.")
    if num_frames is not None and operator.index(num_frames) < 1:
        raise ValueError(f"debug.breakpoint: num_frames must be 1 or more, or None for all, got {num_frames}.")
    if ordered and token is not None:
        raise ValueError("debug.breakpoint: give token or ordered=True, not both: a token says when the stop comes.")
    unknown = sorted(set(options) - set(OPTIONS))
    if unknown:
        raise TypeError(f"debug.breakpoint got unexpected keyword arguments {unknown}; it takes {', '.join(OPTIONS)}.")


def _through(token: Any, tracers: Sequence[Any], stop: Callable[..., None]) -> Any:
    """``token``, as a callback gives it back after the stop; its derivative is its own."""
    leaves, tree = flat_operands(token, "token")
    count = len(leaves)
    shapes = [aval_of(x) for x in leaves]

    def run(*values: Any) -> list[Any]:
        stop(*values[count:])
        return list(values[:count])

    @custom_jvp
    def same(*values: Any) -> Any:
        return pure_callback(run, shapes, *values, vmap_method="sequential")

    @same.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        return same(*primals), list(tangents[:count])

    return tree.unflatten(same(*leaves, *tracers))


# -- frames ------------------------------------------------------------------------------------


@final
@dataclasses.dataclass(frozen=True)
class _Slot:
    """Stands for operand ``number`` of the callback among the leaves of a variable."""

    number: int


@final
@dataclasses.dataclass(frozen=True)
class _Note:
    """A frame as it was traced; ``traced`` holds the leaves and structure of the variables with arrays to fill in."""

    frame: Frame
    traced: dict[str, tuple[list[Any], PyTreeDef]]

    def filled(self, values: Sequence[Any]) -> Frame:
        """The frame with this run's values."""
        filled = {
            name: tree.unflatten([values[x.number] if type(x) is _Slot else x for x in leaves])
            for name, (leaves, tree) in self.traced.items()
        }
        return dataclasses.replace(self.frame, locals={**self.frame.locals, **filled})


def _noted(frame: FrameType | None, filtered: bool, limit: int | None) -> tuple[list[_Note], list[Tracer]]:
    """The frames from this one outward, innermost first, and the traced arrays in them."""
    notes: list[_Note] = []
    slots: dict[int, _Slot] = {}
    tracers: list[Tracer] = []
    inside = True  # of what is traced once and kept for other calls, so that it cannot read what its callers trace
    while frame is not None and (limit is None or len(notes) < limit):
        code = frame.f_code
        if filtered and code.co_filename.endswith(_NOTEBOOK):
            break  # below lie the notebook's own frames
        inside = inside and code not in _KEPT
        if not (filtered and is_library_code(code)):
            notes.append(_note(frame, slots if inside else None, tracers))
        frame = frame.f_back
    return notes, tracers


_NOTEBOOK = ("IPython/core/interactiveshell.py", r"IPython\core\interactiveshell.py")
_KEPT = (JitFunction._trace.__code__, jvp_of.__code__)  # the latter of all that ``remembered`` decorates


def _note(frame: FrameType, slots: dict[int, _Slot] | None, tracers: list[Tracer]) -> _Note:
    code = frame.f_code
    # The variables of a module are its globals, which the prompt reads as they are then.
    variables = {} if frame.f_locals is frame.f_globals else dict(frame.f_locals)
    traced: dict[str, tuple[list[Any], PyTreeDef]] = {}
    for name, value in variables.items() if slots is not None else ():
        leaves, tree = _leaves(value)
        if any(isinstance(x, Tracer) for x in leaves):
            traced[name] = [_slot(x, slots, tracers) for x in leaves], tree  # type: ignore[arg-type]
    count = code.co_argcount + code.co_kwonlyargcount
    frozen = Frame(
        code.co_filename, frame.f_lineno, code.co_name, code.co_firstlineno, code.co_varnames[:count], variables,
        frame.f_globals,
    )  # fmt: skip
    return _Note(frozen, traced)


def _leaves(value: Any) -> tuple[list[Any], PyTreeDef]:
    try:
        return tree_flatten(value)
    except Exception:  # a dict whose keys cannot be sorted, a class that cannot be taken apart now: shown as it is
        return tree_flatten(None)


def _slot(leaf: Any, slots: dict[int, _Slot], tracers: list[Tracer]) -> Any:
    """What stands for a leaf: a slot for a tracer, the same one each time it is met."""
    if not isinstance(leaf, Tracer) or getattr(leaf._trace, "finished", False):
        return leaf
    if id(leaf) not in slots:
        slots[id(leaf)] = _Slot(len(tracers))
        tracers.append(leaf)
    return slots[id(leaf)]
