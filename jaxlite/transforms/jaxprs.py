"""Looking at a function without running it: ``make_jaxpr`` and ``eval_shape``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, final

from jaxlite.core import dtypes
from jaxlite.core.avals import ShapedArray, aval_of
from jaxlite.core.errors import refuse
from jaxlite.core.pytree import tree_flatten
from jaxlite.core.tracebacks import boundary
from jaxlite.lax.convert import operand_of
from jaxlite.transforms.arguments import check_callable, debug_info_of
from jaxlite.transforms.jaxpr_refs import trace_with_refs


@final
class ShapeDtypeStruct:
    """The shape and dtype of an array that there need not be.

    >>> ShapeDtypeStruct((3,), "float32")
    ShapeDtypeStruct(shape=(3,), dtype=float32)
    """

    def __init__(
        self, shape: Any, dtype: Any, *, sharding: Any = None, weak_type: bool = False, vma: Any = None
    ) -> None:
        refuse("ShapeDtypeStruct", "vma", vma, None, "there is no sharding")
        if dtype is None:
            raise ValueError("ShapeDtypeStruct: dtype must be specified.")
        self.shape = tuple(map(int, shape))
        self.dtype = dtypes.as_dtype(dtype)
        self.sharding = sharding
        self.weak_type = weak_type

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return ShapedArray(self.shape, self.dtype).size

    @property
    def abstract_value(self) -> ShapedArray:
        """The aval."""
        return ShapedArray(self.shape, dtypes.canonicalize(self.dtype), self.weak_type)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ShapeDtypeStruct) and (self.shape, self.dtype, self.weak_type) == (
            other.shape,
            other.dtype,
            other.weak_type,
        )

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype, self.weak_type))

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype.name}{weak})"


def abstract(value: Any) -> ShapedArray:
    """The aval of an array or of what describes one."""
    if isinstance(value, ShapeDtypeStruct):
        return value.abstract_value
    if isinstance(value, ShapedArray):
        return value
    return aval_of(operand_of(value))


def split_static(
    args: Sequence[Any], static_argnums: Sequence[int]
) -> tuple[list[Any], Callable[[Sequence[Any]], list[Any]]]:
    """The arguments that are traced, and how to put the static ones back among them."""
    dynamic = [a for n, a in enumerate(args) if n not in static_argnums]

    def together(values: Sequence[Any]) -> list[Any]:
        given = iter(values)
        return [args[n] if n in static_argnums else next(given) for n in range(len(args))]

    return dynamic, together


def make_jaxpr(
    fun: Callable[..., Any],
    static_argnums: int | Sequence[int] = (),
    axis_env: Any = None,
    return_shape: bool = False,
    abstracted_axes: Any = None,
) -> Callable[..., Any]:
    """The jaxpr that tracing ``fun`` gives.  Refs are values there: refs that ``fun`` closes over come first, as
    constants, and the last values of those that it writes follow its results.

    >>> print(make_jaxpr(lambda x: x * 2.0)(1.0))
    { lambda ; a:f32[]. let b:f32[] = mul a 2.0:f32[] in (b,) }
    """
    refuse("make_jaxpr", "axis_env", axis_env, None, "named axes come from vmap(axis_name=...)")
    refuse("make_jaxpr", "abstracted_axes", abstracted_axes, None, "shapes are fixed while tracing")
    check_callable(fun, "make_jaxpr")

    @boundary
    @functools.wraps(fun, updated=())
    def trace(*args: Any, **kwargs: Any) -> Any:
        given = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
        static = tuple(n % len(args) if args else n for n in given)
        dynamic, together = split_static(args, static)
        leaves, tree = tree_flatten((dynamic, kwargs))
        info = debug_info_of(fun, args, kwargs)
        names = [n for n in info.argument_names]
        info = type(info)(info.function, info.file, info.line, tuple(names) if not static else ())
        closed, out_tree = trace_with_refs(lambda d, k: fun(*together(d), **k), tree, leaves, info, abstract)
        if return_shape:
            avals = closed.out_avals[: out_tree.num_leaves]
            shapes = [ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type) for a in avals]
            return closed, out_tree.unflatten(shapes)
        return closed

    return trace


def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The shapes and dtypes of ``fun(*args, **kwargs)``, found by tracing, without computing anything."""
    return make_jaxpr(fun, return_shape=True)(*args, **kwargs)[1]
