"""References: reading and writing places of a ``Ref``, with every index that arrays take."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from jaxlite.core import dtypes
from jaxlite.core.array import to_array
from jaxlite.core.avals import ShapedArray, aval_of
from jaxlite.core.device import check_placement
from jaxlite.core.errors import refuse
from jaxlite.core.ref import Ref, Typed, ref_type
from jaxlite.core.trace import Tracer
from jaxlite.lax.convert import operand_of
from jaxlite.lax.elementwise.casts import convert
from jaxlite.numpy.creation import empty
from jaxlite.numpy.indexing import getitem
from jaxlite.numpy.updates import update


def new_ref(init_val: Any, *, memory_space: Any = None, kind: str | None = None, pin: bool = False) -> Ref:
    """A mutable array that starts as ``init_val``.  ``kind`` has no effect.

    >>> ref = new_ref(1.0)
    >>> ref[...] += 2.0
    >>> ref[...]
    Array(3., dtype=float32)
    """
    check_placement("new_ref", device=memory_space)
    refuse("new_ref", "pin", pin, False, "refs lie where arrays do")
    if kind not in (None, "no_grad_no_remat"):
        raise ValueError(f"new_ref: kind must be None or 'no_grad_no_remat', got {kind!r}.")
    if isinstance(init_val, Ref):
        raise TypeError(f"new_ref takes an array, got a {ref_type(init_val.type)}: write new_ref(ref[...]).")
    value = operand_of(init_val)
    if not hasattr(value, "aval"):
        value = to_array(value)
    return Ref(convert(value, value.aval.dtype) if value.aval.weak_type else value)


def empty_ref(ty: Any, *, memory_space: Any = None) -> Ref:
    """A mutable array of this shape and dtype; what it starts as is not said.

    >>> empty_ref(aval_of(to_array(1.0))).shape
    ()
    """
    return new_ref(empty(ty.shape, ty.dtype), memory_space=memory_space)


def freeze(ref: Ref) -> Any:
    """The last value of a ref, which cannot be used any more.

    >>> freeze(new_ref(1.0))
    Array(1., dtype=float32)
    """
    return _whole("freeze", ref).end()


def free_ref(ref: Ref) -> None:
    """Gives up a ref: it cannot be used any more.

    >>> free_ref(new_ref(1.0))
    """
    _whole("free_ref", ref).end()


def get(ref: Ref | RefView, idx: Any = None) -> Any:
    """``ref[idx]``; None is the whole.

    >>> get(new_ref(1.0))
    Array(1., dtype=float32)
    """
    value = _checked("ref.get", ref).read()
    _inside("ref.get", ref, idx)
    return _at(value, idx)


def set(ref: Ref | RefView, idx: Any, value: Any) -> None:
    """``ref[idx] = value``: of the shape and dtype that ``ref[idx]`` has.

    >>> ref = new_ref(1.0)
    >>> set(ref, ..., 5.0)
    >>> ref
    Ref(5., dtype=float32)
    """
    swap(ref, idx, value, "ref.set")


def swap(ref: Ref | RefView, idx: Any, value: Any, _function_name: str = "ref.swap") -> Any:
    """``ref[idx]`` as it was, and ``ref[idx] = value``.

    >>> swap(new_ref(1.0), ..., 5.0)
    Array(1., dtype=float32)
    """
    before = _checked(_function_name, ref).read()
    _inside(_function_name, ref, idx)
    old = _at(before, idx)
    new = _like(_function_name, ref, value, aval_of(old))
    ref.write(_replaced(before, idx, new))
    return old


def addupdate(ref: Ref | RefView, idx: Any, x: Any) -> None:
    """``ref[idx] += x``.

    >>> ref = new_ref(1.0)
    >>> addupdate(ref, ..., 5.0)
    >>> ref
    Ref(6., dtype=float32)
    """
    before = _checked("ref.addupdate", ref).read()
    _inside("ref.addupdate", ref, idx)
    old = _at(before, idx)
    ref.write(update(before, ... if idx is None else idx, _like("ref.addupdate", ref, x, aval_of(old)), "add"))


@final
class RefView(Typed):
    """A place in a ref, ``ref.at[index]``: indexed, it reads and writes that part of the ref.

    >>> ref = new_ref(to_array([1.0, 2.0, 3.0]))
    >>> ref.at[1:][0] = 5.0
    >>> ref
    Ref([1., 5., 3.], dtype=float32)
    """

    __slots__ = ("index", "ref")

    def __init__(self, ref: Ref | RefView, index: Any) -> None:
        _inside("ref.at", ref, index)
        self.ref, self.index = ref, index

    @property
    def type(self) -> ShapedArray:
        """The type of what the place holds."""
        return aval_of(self.read())

    @property
    def at(self) -> RefViews:
        """Places in this place."""
        return RefViews(self)

    def read(self) -> Any:
        """What the place holds."""
        return _at(self.ref.read(), self.index)

    def write(self, value: Any) -> None:
        """Replaces what the place holds."""
        self.ref.write(_replaced(self.ref.read(), self.index, value))

    def __getitem__(self, index: Any) -> Any:
        return _getitem(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        _setitem(self, index, value)

    def __repr__(self) -> str:
        return f"RefView({self.ref!r}, {self.index!r})"


@final
class RefViews:
    """What ``ref.at`` gives: indexed, it names a place."""

    __slots__ = ("ref",)

    def __init__(self, ref: Ref | RefView) -> None:
        self.ref = ref

    def __getitem__(self, index: Any) -> RefView:
        return RefView(self.ref, index)


def _checked(name: str, ref: Any) -> Ref | RefView:
    if type(ref) not in (Ref, RefView):
        raise TypeError(f"{name} takes a Ref (of new_ref), got {type(ref).__name__}: {ref!r}.")
    return ref  # type: ignore[no-any-return]


def _whole(name: str, ref: Any) -> Ref:
    if type(_checked(name, ref)) is not Ref:
        raise TypeError(f"{name} takes a Ref, got a place in one: {ref!r}.")
    return ref  # type: ignore[no-any-return]


def _is_whole(idx: Any) -> bool:
    """Whether an index of ``get`` and its kin means all elements as they lie: None, ``...`` or ``()``."""
    if type(idx) is tuple:
        return not idx or (len(idx) == 1 and idx[0] is Ellipsis)
    return idx is None or idx is Ellipsis


def _inside(name: str, ref: Ref | RefView, idx: Any) -> None:
    """``ValueError`` where a number in the index is not in the ref."""
    axis = 0
    for item in idx if type(idx) is tuple else (idx,):
        if item is None:
            continue
        if not isinstance(item, (int, np.integer, slice)) or isinstance(item, bool) or axis >= ref.ndim:
            return
        if not isinstance(item, slice) and not -ref.shape[axis] <= item < ref.shape[axis]:
            raise ValueError(
                f"{name}: index {item} is out of bounds for axis {axis} of {ref_type(ref.type)}, of length "
                f"{ref.shape[axis]}."
            )
        axis += 1


def _at(value: Any, idx: Any) -> Any:
    return value if _is_whole(idx) else getitem(value, idx)


def _replaced(value: Any, idx: Any, new: Any) -> Any:
    return new if _is_whole(idx) else update(value, idx, new, "set")


def _like(name: str, ref: Ref | RefView, value: Any, want: ShapedArray) -> Any:
    """``value`` as an array of the type of the place; Python numbers take its dtype, where they are of its kind."""
    value = operand_of(value)
    have = aval_of(value)
    promoted, _ = dtypes.promote_types((want.dtype, want.weak_type), (have.dtype, have.weak_type))
    if have.shape != want.shape or promoted != want.dtype or (have.dtype != want.dtype and not have.weak_type):
        raise ValueError(
            f"{name} on a {ref_type(ref.type)}: the place is {want}, the value {have}.  Write "
            f"jnp.broadcast_to(jnp.asarray(value, jnp.{want.dtype.name}), {want.shape})."
        )
    converted = convert(value, want.dtype) if have.dtype != want.dtype or have.weak_type else value
    return converted if isinstance(converted, Tracer) or hasattr(converted, "aval") else to_array(converted)


def _getitem(self: Ref | RefView, index: Any) -> Any:
    return getitem(self.read(), None) if index is None else get(self, index)


def _setitem(self: Ref | RefView, index: Any, value: Any) -> None:
    set(self, (None,) if index is None else index, value)


def _addupdate(self: Ref, x: Any, idx: Any = None) -> None:
    addupdate(self, idx, x)


def _iterate(self: Ref) -> Any:
    raise TypeError(f"A {ref_type(self.type)} cannot be iterated over: write ref[...] to read it first.")


for _name, _method in (("__getitem__", _getitem), ("__setitem__", _setitem), ("__iter__", _iterate)):
    setattr(Ref, _name, _method)
Ref.addupdate = _addupdate  # type: ignore[attr-defined]
Ref.at = property(RefViews)  # type: ignore[attr-defined]
