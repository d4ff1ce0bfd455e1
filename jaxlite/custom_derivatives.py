"""``jax.custom_derivatives``: functions with derivative rules of one's own, and what their rules see."""

from jaxlite.transforms.closures import (
    closure_convert as closure_convert,
    custom_gradient as custom_gradient,
)
from jaxlite.transforms.custom import custom_jvp as custom_jvp, custom_vjp as custom_vjp
from jaxlite.transforms.symbolic_zeros import (
    CustomVJPPrimal as CustomVJPPrimal,
    SymbolicZero as SymbolicZero,
    custom_vjp_primal_tree_values as custom_vjp_primal_tree_values,
    zero_from_primal as zero_from_primal,
)
