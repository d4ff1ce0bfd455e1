"""Array: an immutable value in memory.

An ``Array`` knows its aval and where its elements lie from birth: a NumPy view, or an address and the object that
keeps it alive (what compiled programs give), of which the view is made when somebody asks.  Operators and methods
are added by ``jaxlite.numpy`` from its table.
"""

from __future__ import annotations

import ctypes
import dataclasses
from collections.abc import Iterator
from typing import Any, ClassVar, final

import numpy as np

from jaxlite.core import config, dlpack, dtypes, runtime
from jaxlite.core.avals import ShapedArray, aval_of, check_dtype, refuse_masked
from jaxlite.core.device import CPU
from jaxlite.core.pytree import add_leaf_type
from jaxlite.core.shardings import SingleDeviceSharding


@final
class Array:
    """The array that every function of jaxlite takes and gives.  Made by ``jaxlite.numpy.array`` and the like.

    >>> import jaxlite.numpy as jnp
    >>> jnp.arange(3)
    Array([0, 1, 2], dtype=int32)
    """

    __slots__ = ("__weakref__", "_address", "_owner", "_view", "aval")
    __array_priority__ = 100
    __hash__: ClassVar[Any] = None

    def __init__(
        self, aval: ShapedArray, view: np.ndarray[Any, Any] | None, address: int = 0, owner: Any = None
    ) -> None:
        self.aval = aval
        self._view = view
        self._address = address
        self._owner = owner

    # -- where it lies ------------------------------------------------------------------------

    @property
    def elements(self) -> np.ndarray[Any, Any]:
        """The elements as NumPy sees them (physical dtype); for jaxlite's own use, which never writes to it."""
        view = self._view
        if view is None:
            if self._owner is None:
                raise RuntimeError(
                    f"Array has been deleted with shape={self.aval.short()}: it was donated or delete() was called "
                    "on it.  Use the result of the call that it was donated to, or do not donate it."
                )
            view = self._view = _view_of(self._address, self._owner, self.aval)
        return view

    @property
    def address(self) -> int:
        """Where the first element lies; the elements follow in row-major order without gaps."""
        if self._address:
            return self._address
        view = self.elements
        if not view.flags.c_contiguous:
            view = self._view = copy_of(view, view.dtype, "a copy in row-major order")
        self._address = view.__array_interface__["data"][0] if view.size else _NOWHERE
        return self._address

    @property
    def owner(self) -> Any:
        """What keeps the elements alive."""
        return self._owner if self._owner is not None else self._view

    def forget_view(self) -> None:
        """Lets go of the array's own NumPy view of its block: it is made again when somebody asks."""
        if self._owner is not None:
            self._view = None

    def delete(self) -> None:
        """Gives the elements up; any later use raises ``RuntimeError``."""
        self._view = self._owner = None
        self._address = 0

    def is_deleted(self) -> bool:
        """Whether the elements were given up, by :meth:`delete` or by donation."""
        return self._view is None and self._owner is None

    # -- what it is ---------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the axes."""
        return self.aval.shape

    @property
    def dtype(self) -> Any:
        """The element type."""
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.aval.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.aval.size

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return int(self.aval.dtype.itemsize)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.aval.nbytes

    @property
    def weak_type(self) -> bool:
        """Whether the type gives way to others in promotion."""
        return self.aval.weak_type

    @property
    def is_fully_addressable(self) -> bool:
        """Whether this process holds every element: true, as there is one process."""
        return True

    def __len__(self) -> int:
        if not self.aval.shape:
            raise TypeError("len() of unsized object: the array has no axes.")
        return self.aval.shape[0]

    def __iter__(self) -> Iterator[Any]:
        if not self.aval.shape:
            raise TypeError("iteration over a 0-d array")
        return iter([self[i] for i in range(self.aval.shape[0])])  # type: ignore[index]

    @property
    def sharding(self) -> Any:
        """How the array lies on devices."""
        return SingleDeviceSharding(CPU) if self.aval.sharding is None else self.aval.sharding

    @property
    def is_fully_replicated(self) -> bool:
        """Whether every device that has a part has the whole."""
        return bool(self.sharding.is_fully_replicated)

    @property
    def addressable_shards(self) -> list[Shard]:
        """The parts, one for each device of this process, in the order of the mesh."""
        return shards_of(self)

    global_shards = addressable_shards

    def addressable_data(self, index: int) -> Array:
        """The data of shard number ``index``."""
        return self.addressable_shards[index].data

    def of_type(self, aval: ShapedArray) -> Array:
        """The same memory as an array of another type, of the same shape and dtype."""
        return Array(aval, self._view, self._address, self._owner)

    # -- as something else --------------------------------------------------------------------

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if dtypes.is_key(self.aval.dtype):
            raise TypeError(
                "JAX array with PRNGKey dtype cannot be converted to a NumPy array.  Use "
                "jax.random.key_data(arr) if you wish to extract the underlying integer array."
            )
        view = self.elements
        other_type = dtype is not None and np.dtype(dtype) != view.dtype
        if other_type and copy is False:
            raise ValueError(
                f"An array of {view.dtype} becomes one of {np.dtype(dtype)} only by copying, and copy=False was given: "
                "use np.asarray(x, dtype)."
            )
        if copy or other_type:
            return np.array(view, dtype=dtype)
        return view.view() if self._owner is not None else _read_only(view)

    def __bool__(self) -> bool:
        if self.aval.size != 1:
            raise ValueError(
                "The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()"
                if self.aval.size
                else "The truth value of an empty array is ambiguous. Use `array.size > 0` to check "
                "that an array is not empty."
            )
        return bool(self.elements.reshape(())[()])

    def _scalar(self, kind: str) -> Any:
        if self.aval.shape:
            raise TypeError(
                f"Only scalar arrays can be converted to Python scalars; got arr.ndim={self.ndim}, wanted {kind}."
            )
        return self.elements[()]

    def __int__(self) -> int:
        return int(self._scalar("an int"))

    def __float__(self) -> float:
        return float(self._scalar("a float"))

    def __complex__(self) -> complex:
        return complex(self._scalar("a complex"))

    def __index__(self) -> int:
        if not dtypes.is_integer(self.aval.dtype) or self.aval.shape:
            raise TypeError(f"Only integer scalar arrays can be converted to a scalar index; got {self.aval}.")
        return int(self.elements[()])

    def item(self, *args: int) -> Any:
        """The one element (or the one at ``args``) as a Python number."""
        return self.elements.item(*args)

    def tolist(self) -> Any:
        """Nested lists of Python numbers."""
        return self.elements.tolist()

    def tobytes(self, order: Any = "C") -> bytes:
        """The elements' bytes."""
        return self.elements.tobytes(order)

    def __reduce__(self) -> Any:
        return _rebuild, (np.array(self.elements), self.aval.dtype, self.aval.weak_type)

    def __deepcopy__(self, memo: Any) -> Array:
        return self.copied()

    def __copy__(self) -> Array:
        return self.copied()

    def copied(self) -> Array:
        """An array of its own memory: deleting or donating one leaves the other."""
        return Array(self.aval, copy_of(self.elements, self.elements.dtype, "a copy"))

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        if not dlpack.is_supported_dtype(self.aval.dtype):
            raise BufferError(
                f"Arrays of {self.aval.dtype.name} cannot be exported: DLPack has no such dtype."
                + ("  Export jax.random.key_data(keys)." if dtypes.is_key(self.aval.dtype) else "")
            )
        shared = _view_of(self.address, self.owner, self.aval, writable=True)
        return dlpack.capsule(shared, stream, max_version, dl_device, copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack.CPU_DEVICE

    def __buffer__(self, flags: int) -> memoryview:  # Python asks for it from 3.12 on
        if self.aval.dtype.name == "bfloat16":
            raise BufferError("A buffer cannot hold bfloat16: write memoryview(np.asarray(x).view(np.uint16)).")
        return self.__array__().data

    def __bytes__(self) -> bytes:
        return self.tobytes()

    def block_until_ready(self) -> Array:
        """Itself: results are there when a call returns."""
        return self

    def copy_to_host_async(self) -> None:
        """Nothing: elements lie in host memory."""

    # -- text ---------------------------------------------------------------------------------

    def __repr__(self) -> str:
        if self.is_deleted():
            return f"Array(deleted, shape={self.shape}, dtype={self.dtype.name})"
        if dtypes.is_key(self.aval.dtype):
            words = np.ascontiguousarray(self.elements).view(np.uint32).reshape((*self.shape, 2))
            return f"Array({self.shape}, dtype={self.dtype.name}) overlaying:\n{words}"
        weak = ", weak_type=True" if self.aval.weak_type else ""
        tail = f"dtype={self.aval.dtype.name}{weak})"
        width = np.get_printoptions()["linewidth"]
        if self.aval.size == 0:
            body = f"[], shape={self.shape}"
        else:
            body = np.array2string(self.elements, prefix="Array(", suffix=",", separator=", ", max_line_width=width)
        last_line = len(body) - body.rfind("\n") + 1
        separator = "\n" + " " * len("Array(") if last_line + len(tail) + 1 > width else " "
        return f"Array({body},{separator}{tail}"

    def __str__(self) -> str:
        return repr(self) if dtypes.is_key(self.aval.dtype) or self.is_deleted() else str(self.elements)

    def __format__(self, spec: str) -> str:
        return format(self.elements[()], spec) if not self.aval.shape else format(str(self), spec)


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Shard:
    """One device's part of an array: ``index`` says which slices of it, ``replica_id`` which copy of the part."""

    device: Any
    index: tuple[slice, ...]
    replica_id: int
    data: Array

    def __repr__(self) -> str:
        return f"Shard(device={self.device!r}, index={self.index}, replica_id={self.replica_id}, data={self.data})"


def shards_of(array: Array) -> list[Shard]:
    """The parts of an array; devices of one process share its memory."""
    out: list[Shard] = []
    seen: dict[str, int] = {}
    for device, index in array.sharding.addressable_devices_indices_map(array.shape).items():
        replica = seen.get(repr(index), 0)
        seen[repr(index)] = replica + 1
        part = array.elements[index]
        aval = ShapedArray(part.shape, array.aval.dtype, array.aval.weak_type)
        out.append(Shard(device, index, replica, Array(aval, part)))
    return out


add_leaf_type(Array)
_NOWHERE = 64  # the address of an array without elements: never read, only not null


def _view_of(address: int, owner: Any, aval: ShapedArray, writable: bool = False) -> np.ndarray[Any, Any]:
    """The memory at ``address`` as a NumPy array that keeps ``owner`` alive."""
    dtype = dtypes.physical(aval.dtype)
    if aval.size == 0:
        return np.zeros(aval.shape, dtype)
    memory: Any = (ctypes.c_byte * aval.nbytes).from_address(address)
    memory._owner = owner  # keeps the block alive as long as the view's buffer lives
    bytes_ = memoryview(memory) if writable else memoryview(memory).toreadonly()
    view: np.ndarray[Any, Any] = np.frombuffer(bytes_, dtype).reshape(aval.shape)
    return view


def _read_only(view: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """NumPy's own memory as an array that nobody can make writable."""
    dtype = view.dtype
    plain: Any = view if dtype.isbuiltin == 1 else view.view(np.uint16)  # bfloat16 is no buffer
    shown: np.ndarray[Any, Any] = np.asarray(memoryview(plain).toreadonly())
    return shown if plain is view else shown.view(dtype)


def _rebuild(view: np.ndarray[Any, Any], dtype: Any, weak_type: bool) -> Array:
    return Array(ShapedArray(view.shape, dtype, weak_type), view)


def from_numpy(view: np.ndarray[Any, Any], weak_type: bool = False) -> Array:
    """An ``Array`` on NumPy's own memory, which nobody may write to afterwards; the dtype is kept."""
    view = np.asarray(view)
    return Array(ShapedArray(view.shape, view.dtype, weak_type), view)


def constant(value: Any, dtype: Any) -> Any:
    """A NumPy scalar of ``dtype``; an ``Array`` where NumPy's would be halved, as beside one made while x64 was on."""
    if dtypes.is_key(dtype):  # both words of the key
        return Array(ShapedArray((), dtype), np.asarray(value * (2**32 + 1), dtype.physical))
    scalar = dtype.type(value)
    return from_numpy(scalar) if dtype.itemsize >= 8 and dtypes.canonicalize(dtype) != dtype else scalar


def full_like(x: Any, value: Any) -> Any:
    """A constant of the type of ``x`` (weak where that is) that broadcasts against it.  It has no axes of its own."""
    aval = aval_of(x)
    scalar = constant(value, aval.dtype)
    return Array(ShapedArray((), aval.dtype, True), np.asarray(scalar)) if aval.weak_type else scalar


def to_array(value: Any, dtype: Any = None) -> Array:
    """An ``Array`` with a copy of a NumPy value's or a Python scalar's elements, 64-bit types halved while they are
    off."""
    if isinstance(value, Array) and dtype is None:
        return value
    value = dtypes.plain_number(value)
    scalar = dtypes.PYTHON_SCALARS.get(type(value))
    if scalar is not None:
        wanted = dtypes.canonicalize(scalar if dtype is None else dtype)
        weak = dtype is None and type(value) is not bool
        return Array(ShapedArray((), wanted, weak), np.array(value, wanted))
    refuse_masked(value)
    array = np.asarray(value)
    check_dtype(array.dtype, value)
    wanted = dtypes.canonicalize(array.dtype if dtype is None else dtype)
    return Array(ShapedArray(array.shape, wanted), copy_of(array, wanted, "an array"))


def copy_of(view: np.ndarray[Any, Any], dtype: Any, what: str) -> np.ndarray[Any, Any]:
    """The elements in row-major order in memory of their own; ``DoesNotFitError`` where there is none for them."""
    nbytes = view.size * np.dtype(dtype).itemsize
    if nbytes >= runtime.LARGE:
        runtime.current().refuse_too_large(nbytes, what)
    return np.array(view, dtype, order="C")


def numpy_of(value: Any, x64: bool | None = None) -> np.ndarray[Any, Any]:
    """The elements of any concrete value, in the dtype that its aval says."""
    if isinstance(value, Array):
        return value.elements
    value = dtypes.plain_number(value)
    scalar = dtypes.PYTHON_SCALARS.get(type(value))
    if scalar is not None:
        wide = config.enable_x64.value if x64 is None else x64
        return np.array(value, scalar if wide else dtypes._HALVED.get(scalar, scalar))
    refuse_masked(value)
    array = np.asarray(value)
    wanted = dtypes.canonicalize(array.dtype)
    return array if array.dtype == wanted else array.astype(wanted)
