"""``jax.lax``: the primitives as functions, one dtype and shape in, no promotion."""

from jaxlite.core.precision import Precision as Precision
from jaxlite.lax import linalg as linalg
from jaxlite.lax.contraction import dot as dot, dot_general as dot_general
from jaxlite.lax.control.associative import associative_scan as associative_scan
from jaxlite.lax.control.barrier import optimization_barrier as optimization_barrier
from jaxlite.lax.control.collective_functions import (
    all_gather as all_gather,
    all_to_all as all_to_all,
    axis_index as axis_index,
    pbroadcast as pbroadcast,
    pcast as pcast,
    pmax as pmax,
    pmean as pmean,
    pmin as pmin,
    ppermute as ppermute,
    pshuffle as pshuffle,
    psum as psum,
    psum_scatter as psum_scatter,
    pswapaxes as pswapaxes,
    pvary as pvary,
)
from jaxlite.lax.control.collectives import axis_size as axis_size
from jaxlite.lax.control.cond import cond as cond, switch as switch
from jaxlite.lax.control.mapping import map as map
from jaxlite.lax.control.scan import scan as scan
from jaxlite.lax.control.solves import custom_linear_solve as custom_linear_solve, custom_root as custom_root
from jaxlite.lax.control.while_loop import fori_loop as fori_loop, while_loop as while_loop
from jaxlite.lax.elementwise.arithmetic import (
    abs as abs,
    add as add,
    div as div,
    max as max,
    min as min,
    mul as mul,
    neg as neg,
    rem as rem,
    sign as sign,
    sub as sub,
)
from jaxlite.lax.elementwise.bitwise import (
    bitwise_and as bitwise_and,
    bitwise_not as bitwise_not,
    bitwise_or as bitwise_or,
    bitwise_xor as bitwise_xor,
    clz as clz,
    population_count as population_count,
    shift_left as shift_left,
    shift_right_arithmetic as shift_right_arithmetic,
    shift_right_logical as shift_right_logical,
)
from jaxlite.lax.elementwise.casts import (
    bitcast_convert_type as bitcast_convert_type,
    convert_element_type as convert_element_type,
)
from jaxlite.lax.elementwise.comparison import eq as eq, ge as ge, gt as gt, le as le, lt as lt, ne as ne
from jaxlite.lax.elementwise.exponential import (
    exp as exp,
    exp2 as exp2,
    expm1 as expm1,
    log as log,
    log1p as log1p,
    logistic as logistic,
)
from jaxlite.lax.elementwise.powers import (
    cbrt as cbrt,
    integer_pow as integer_pow,
    pow as pow,
    reciprocal as reciprocal,
    rsqrt as rsqrt,
    sqrt as sqrt,
    square as square,
)
from jaxlite.lax.elementwise.rounding import (
    RoundingMethod as RoundingMethod,
    ceil as ceil,
    floor as floor,
    is_finite as is_finite,
    nextafter as nextafter,
    reduce_precision as reduce_precision,
    round as round,
)
from jaxlite.lax.elementwise.select import (
    clamp as clamp,
    select as select,
    select_n as select_n,
    stop_gradient as stop_gradient,
)
from jaxlite.lax.elementwise.special import (
    digamma as digamma,
    erf as erf,
    erf_inv as erf_inv,
    erfc as erfc,
    lgamma as lgamma,
)
from jaxlite.lax.elementwise.trigonometric import (
    acos as acos,
    acosh as acosh,
    asin as asin,
    asinh as asinh,
    atan as atan,
    atan2 as atan2,
    atanh as atanh,
    cos as cos,
    cosh as cosh,
    sin as sin,
    sinh as sinh,
    tan as tan,
    tanh as tanh,
)
from jaxlite.lax.indexing.dynamic import (
    dynamic_index_in_dim as dynamic_index_in_dim,
    dynamic_slice as dynamic_slice,
    dynamic_slice_in_dim as dynamic_slice_in_dim,
    dynamic_update_index_in_dim as dynamic_update_index_in_dim,
    dynamic_update_slice as dynamic_update_slice,
    dynamic_update_slice_in_dim as dynamic_update_slice_in_dim,
)
from jaxlite.lax.indexing.gather import gather as gather
from jaxlite.lax.indexing.places import (
    GatherDimensionNumbers as GatherDimensionNumbers,
    GatherScatterMode as GatherScatterMode,
    ScatterDimensionNumbers as ScatterDimensionNumbers,
)
from jaxlite.lax.indexing.scatter import (
    scatter as scatter,
    scatter_add as scatter_add,
    scatter_max as scatter_max,
    scatter_min as scatter_min,
    scatter_mul as scatter_mul,
)
from jaxlite.lax.layout.iota import broadcasted_iota as broadcasted_iota, iota as iota
from jaxlite.lax.layout.resharding import with_sharding_constraint as with_sharding_constraint
from jaxlite.lax.layout.shaping import (
    broadcast as broadcast,
    broadcast_in_dim as broadcast_in_dim,
    expand_dims as expand_dims,
    full as full,
    full_like as full_like,
    reshape as reshape,
    rev as rev,
    squeeze as squeeze,
    transpose as transpose,
)
from jaxlite.lax.layout.slicing import (
    concatenate as concatenate,
    index_in_dim as index_in_dim,
    pad as pad,
    slice as slice,
    slice_in_dim as slice_in_dim,
    split as split,
)
from jaxlite.lax.reductions.cumulative import (
    cumlogsumexp as cumlogsumexp,
    cummax as cummax,
    cummin as cummin,
    cumprod as cumprod,
    cumsum as cumsum,
)
from jaxlite.lax.reductions.extrema import (
    argmax as argmax,
    argmin as argmin,
    reduce_and as reduce_and,
    reduce_max as reduce_max,
    reduce_min as reduce_min,
    reduce_or as reduce_or,
    reduce_xor as reduce_xor,
)
from jaxlite.lax.reductions.sums import reduce_prod as reduce_prod, reduce_sum as reduce_sum
from jaxlite.lax.sorting import sort as sort
