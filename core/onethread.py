"""Linear algebra on one thread.

Fits and forecasts are made of many small products and factorisations. On several threads a BLAS library waits for these
threads longer than it works: half of the processor time, and none of it won back on the clock. Many series are spread
over processes instead (:mod:`ranksight.core.executing`). Nothing is written to the environment, which programs that are
measured would inherit.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import RLock
from typing import Any

_LIMITING = RLock()


@cache
def _libraries() -> Any:
    """The libraries loaded; looking for them takes milliseconds, limiting them microseconds."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@contextmanager
def one_thread() -> Iterator[None]:
    """Hold the BLAS libraries of this process to one thread; works as a decorator, too.

    The limit is the process's, whose threads would set back what others set. It is that of the thread that comes first,
    and others that work meanwhile leave it alone.
    """
    if not _LIMITING.acquire(blocking=False):
        yield
        return
    try:
        with _libraries().limit(limits=1, user_api="blas"):
            yield
    finally:
        _LIMITING.release()
