"""Numerical libraries where the address space of a process is limited (``ulimit -v``, some batch systems).

They reserve far more than they use: OpenBLAS buffers for each thread, Arrow's allocator 1 GiB, the C library 128 MiB
for each thread. Where a reservation fails, OpenBLAS ends the process with a message of its own or tries for ever. Under
a limit they are therefore loaded at once, for one thread, with the buffers that they keep, or not at all.
"""

from __future__ import annotations

import os
from contextlib import suppress

from ranksight.core.errors import ToolError

NEEDED = 500_000_000
"""Bytes of addresses that a command takes with its libraries for one thread: 417 MiB, and its work on small inputs."""
ONE_THREAD = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "ARROW_IO_THREADS": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}
"""Variables that the libraries read while they are loaded."""
M_ARENA_MAX = -8
"""Parameter of glibc's ``mallopt``: how many heaps threads have."""


def load_under_limit() -> None:
    """Load the numerical libraries where the address space is limited; nothing happens where it is not.

    Raises ToolError where the limit leaves too little. The environment is as before, since programs that are measured
    inherit it.
    """
    limit = address_limit()
    if limit is None:
        return
    if limit < NEEDED:
        raise ToolError(
            f"the address space is limited to {limit / 1e6:.0f} MB (ulimit -v), {NEEDED / 1e6:.0f} MB are needed",
            "raise the limit, or run this on another node",
        )
    import ctypes

    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, 1)
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    os.environ.update(ONE_THREAD)
    try:
        _load()
    finally:
        for name, text in before.items():
            if text is None:
                del os.environ[name]
            else:
                os.environ[name] = text


def address_limit() -> int | None:
    """Bytes that this process may address; None without a limit, and where the system has none."""
    try:
        import resource
    except ImportError:
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if limit == resource.RLIM_INFINITY or not os.path.exists("/proc/self/statm") else limit


def _load() -> None:
    import numpy as np
    import pandas as pd  # noqa: F401
    import pyarrow as pa
    import pyarrow.parquet
    import scipy.linalg

    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    # Each of the two copies of OpenBLAS keeps the buffer that its first product takes.
    one = np.eye(2)
    np.linalg.inv(one)
    scipy.linalg.inv(one)
