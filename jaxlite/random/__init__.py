"""``jax.random``: random numbers as pure functions of keys, the same bits as JAX's for the same key."""

from jaxlite.random.choices import categorical as categorical, choice as choice, permutation as permutation
from jaxlite.random.distributions import (
    cauchy as cauchy,
    double_sided_maxwell as double_sided_maxwell,
    exponential as exponential,
    geometric as geometric,
    gumbel as gumbel,
    laplace as laplace,
    logistic as logistic,
    lognormal as lognormal,
    maxwell as maxwell,
    normal as normal,
    pareto as pareto,
    rayleigh as rayleigh,
    triangular as triangular,
    truncated_normal as truncated_normal,
    wald as wald,
    weibull_min as weibull_min,
)
from jaxlite.random.keys import (
    PRNGKey as PRNGKey,
    clone as clone,
    fold_in as fold_in,
    key as key,
    key_data as key_data,
    key_dtype as key_dtype,
    key_impl as key_impl,
    split as split,
    wrap_key_data as wrap_key_data,
)
from jaxlite.random.uniform import (
    bernoulli as bernoulli,
    bits as bits,
    rademacher as rademacher,
    randint as randint,
    uniform as uniform,
)
