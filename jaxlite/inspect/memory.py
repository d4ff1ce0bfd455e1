"""The memory of this process that jaxlite holds: how much, and giving back what is only kept warm."""

from __future__ import annotations

from jaxlite.core import runtime
from jaxlite.core.runtime import MemoryInUse


def memory_in_use() -> MemoryInUse:
    """Bytes given out to results of kernels, workspaces and constants, bytes kept warm for the next ones, their bound.

    What NumPy allocates (results of eager operations that NumPy computes exactly) does not count.

    >>> import jaxlite.numpy as jnp
    >>> x = jnp.sin(jnp.ones(1000))
    >>> memory_in_use().given_out >= x.nbytes
    True
    """
    return runtime.current().memory_in_use()


def release_memory() -> int:
    """Returns to the system what is kept warm; gives the number of bytes.

    The next large results then touch new pages, which takes longer than to fill them.

    >>> release_memory() >= 0
    True
    """
    return runtime.current().release_memory()
