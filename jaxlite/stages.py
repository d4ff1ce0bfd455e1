"""``jax.stages``: the types of a program on its way from a function to machine code."""

from jaxlite.transforms.jit import JitFunction as Wrapped
from jaxlite.transforms.stages import (
    ArgInfo as ArgInfo,
    Compiled as Compiled,
    Lowered as Lowered,
    TracedProgram as Traced,
)

__all__ = ["ArgInfo", "Compiled", "Lowered", "Traced", "Wrapped"]
