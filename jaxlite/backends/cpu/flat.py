"""One kernel for all shapes: an eager elementwise operation as a loop whose length is given at each call.

In: an elementwise primitive, the types of its operands (their lengths apart) and its parameters.  Out: a
:class:`FlatKernel` that runs over any number of elements.  Operands without axes are read once.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any, final

from jaxlite.backends.cpu import engine, memory
from jaxlite.backends.cpu.programs import in_memory
from jaxlite.backends.cpu.stored import stored_object
from jaxlite.core import dtypes
from jaxlite.core.array import Array
from jaxlite.core.avals import ShapedArray
from jaxlite.core.primitive import Primitive

LONGEST = 1 << 16  # elements: longer operations run as a compiled program, split over the threads
_SYMBOL = "jl_flat"
_PROTOTYPE = ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


def fits(primitive: Primitive, avals: Sequence[ShapedArray], out: ShapedArray) -> bool:
    """Whether the operation is one flat loop: operands of the result's shape, or without axes."""
    return (
        primitive.family == "elementwise"
        and not primitive.multiple_results
        and out.size <= LONGEST
        and all(a.shape in ((), out.shape) for a in avals)
    )


@final
class FlatKernel:
    """Machine code for one elementwise operation on any number of elements.

    ``operands`` are (dtype, whether it has axes).
    """

    def __init__(
        self,
        primitive: Primitive,
        operands: Sequence[tuple[Any, bool]],
        out_dtype: Any,
        params: dict[str, Any],
        contract_fma: bool,
    ) -> None:
        def make() -> bytes:
            from jaxlite.backends.cpu.flat_code import flat_object

            return flat_object(primitive, operands, out_dtype, params, contract_fma, _SYMBOL)

        key = ("flat", primitive.name, operands, out_dtype, params, contract_fma)
        self._function = engine.load_object(stored_object(make, *key), [_SYMBOL]).function(_SYMBOL, _PROTOTYPE)
        self._addresses = ctypes.c_uint64 * (len(operands) + 1)

    def for_result(self, out: ShapedArray) -> Callable[[Sequence[Any]], list[Array]]:
        """The evaluation of operands that give a result of this type."""
        size = out.size
        sizes = (ctypes.c_int64 * 1)(size)
        blocks = memory.size_class(size * dtypes.physical(out.dtype).itemsize)
        function, addresses_of = self._function, self._addresses

        def evaluate(operands: Sequence[Any]) -> list[Array]:
            arrays = [x if type(x) is Array else in_memory(x) for x in operands]
            block = blocks.take()
            function(addresses_of(*[x._address or x.address for x in arrays], block.address), sizes, 0, size)
            return [Array(out, None, block.address, block)]

        return evaluate
