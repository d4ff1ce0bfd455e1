"""jaxlite in a notebook: the ``%%jit`` magic, the ``%sharding`` magic, and views of graphs, kernels and shardings.

``%load_ext jaxlite`` loads it; ``graph(f, *args)`` and ``fusion(f, *args)`` make views anywhere.
"""

from jaxlite_jupyter.extension import (
    load_ipython_extension as load_ipython_extension,
    unload_ipython_extension as unload_ipython_extension,
)
from jaxlite_jupyter.views import (
    FusionView as FusionView,
    GraphView as GraphView,
    ShardingView as ShardingView,
    fusion as fusion,
    graph as graph,
    sharding as sharding,
)
