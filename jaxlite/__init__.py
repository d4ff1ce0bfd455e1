"""jaxlite: JAX's idea, readable: transformations of NumPy programs, and a compiler that can be seen through."""

from typing import Any as _Any

from jaxlite import (
    ad_checkpoint as ad_checkpoint,
    custom_batching as custom_batching,
    custom_derivatives as custom_derivatives,
    debug as debug,
    dtypes as dtypes,
    errors as errors,
    flatten_util as flatten_util,
    lax as lax,
    tree as tree,
    tree_util as tree_util,
    typing as typing,
)
from jaxlite.core import runtime as _runtime
from jaxlite.core.array import Shard as Shard
from jaxlite.core.array_type import Array as Array
from jaxlite.core.config import (
    check_tracer_leaks as check_tracer_leaks,
    checking_leaks as checking_leaks,
    config as config,
    debug_infs as debug_infs,
    debug_key_reuse as debug_key_reuse,
    debug_nans as debug_nans,
    default_device as default_device,
    default_matmul_precision as default_matmul_precision,
    default_prng_impl as default_prng_impl,
    disable_jit as disable_jit,
    enable_checks as enable_checks,
    enable_x64 as enable_x64,
    explain_cache_misses as explain_cache_misses,
    log_compiles as log_compiles,
    numpy_dtype_promotion as numpy_dtype_promotion,
    numpy_rank_promotion as numpy_rank_promotion,
    threefry_partitionable as threefry_partitionable,
)
from jaxlite.core.device import Device as Device
from jaxlite.core.dtypes import float0 as float0
from jaxlite.core.mesh_in_use import get_abstract_mesh as get_abstract_mesh
from jaxlite.core.partition_spec import P as P
from jaxlite.core.shardings import NamedSharding as NamedSharding
from jaxlite.lax.layout.resharding import reshard as reshard
from jaxlite.transforms.autodiff import (
    grad as grad,
    hessian as hessian,
    jacfwd as jacfwd,
    jacobian as jacobian,
    jacrev as jacrev,
    jvp as jvp,
    linearize as linearize,
    value_and_grad as value_and_grad,
    vjp as vjp,
)
from jaxlite.transforms.batching import vmap as vmap
from jaxlite.transforms.callback import pure_callback as pure_callback
from jaxlite.transforms.checkpoint import (
    checkpoint as checkpoint,
    checkpoint_policies as checkpoint_policies,
    remat as remat,
)
from jaxlite.transforms.closures import (
    closure_convert as closure_convert,
    custom_gradient as custom_gradient,
    linear_transpose as linear_transpose,
)
from jaxlite.transforms.custom import custom_jvp as custom_jvp, custom_vjp as custom_vjp
from jaxlite.transforms.device import (
    block_until_ready as block_until_ready,
    copy_to_host_async as copy_to_host_async,
    default_backend as default_backend,
    device_count as device_count,
    device_get as device_get,
    devices as devices,
    local_device_count as local_device_count,
    local_devices as local_devices,
    process_count as process_count,
    process_index as process_index,
    process_indices as process_indices,
    typeof as typeof,
)
from jaxlite.transforms.housekeeping import (
    clear_caches as clear_caches,
    effects_barrier as effects_barrier,
    live_arrays as live_arrays,
    print_environment_info as print_environment_info,
    transfer_guard as transfer_guard,
    transfer_guard_device_to_device as transfer_guard_device_to_device,
    transfer_guard_device_to_host as transfer_guard_device_to_host,
    transfer_guard_host_to_device as transfer_guard_host_to_device,
)
from jaxlite.transforms.jaxprs import (
    ShapeDtypeStruct as ShapeDtypeStruct,
    eval_shape as eval_shape,
    make_jaxpr as make_jaxpr,
)
from jaxlite.transforms.jit import jit as jit
from jaxlite.transforms.meshes import make_mesh as make_mesh
from jaxlite.transforms.placing import (
    device_put as device_put,
    get_mesh as get_mesh,
    make_array_from_callback as make_array_from_callback,
    make_array_from_process_local_data as make_array_from_process_local_data,
    make_array_from_single_device_arrays as make_array_from_single_device_arrays,
    set_mesh as set_mesh,
    use_abstract_mesh as use_abstract_mesh,
)
from jaxlite.transforms.pmap import pmap as pmap
from jaxlite.transforms.scopes import (
    ensure_compile_time_eval as ensure_compile_time_eval,
    named_call as named_call,
    named_scope as named_scope,
)
from jaxlite.transforms.shard_map import shard_map as shard_map, smap as smap

from jaxlite import nn as nn, numpy as numpy, random as random, scipy as scipy, sharding as sharding  # isort: skip
from jaxlite import dlpack as dlpack, ref as ref, stages as stages  # isort: skip
from jaxlite.ref import (  # isort: skip
    Ref as Ref,
    empty_ref as empty_ref,
    free_ref as free_ref,
    freeze as freeze,
    new_ref as new_ref,
)

__version__ = "0.1.0"


def _load_runtime() -> _Any:
    from jaxlite.backends.cpu.runtime import CpuRuntime

    return CpuRuntime()


_runtime.install(_load_runtime)


def load_ipython_extension(ipython: _Any) -> None:
    """``%load_ext jaxlite``: the notebook half, imported only here."""
    from jaxlite_jupyter import load_ipython_extension as load

    load(ipython)


def unload_ipython_extension(ipython: _Any) -> None:
    """``%unload_ext jaxlite``."""
    from jaxlite_jupyter import unload_ipython_extension as unload

    unload(ipython)
