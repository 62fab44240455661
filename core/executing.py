"""Tasks spread over processes of this machine, or over a running Dask cluster.

Both are executors of :mod:`concurrent.futures`. Results come in the order of the tasks, and the number of tasks in
flight is limited so that memory stays bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from ranksight.core.addressspace import load_under_limit
from ranksight.core.errors import InputError, ToolError

if TYPE_CHECKING:
    from concurrent.futures import Executor

T = TypeVar("T")
PATIENCE = 20
"""Seconds that a Dask scheduler may take to answer."""


@contextmanager
def executor(jobs: int, dask: str | None = None) -> Iterator[tuple[Executor, int]]:
    """An executor, and how many tasks it works on at a time.

    `jobs`: processes of this machine; not used with `dask`. `dask`: address of a Dask scheduler, such as
    ``tcp://node1:8786``. Its workers need this package in the same version. Raises InputError when the package
    ``distributed`` is missing or the address is none; ToolError when the scheduler does not answer or has no workers.
    """
    if dask is None:
        # Imported where processes are started: most commands start none.
        import multiprocessing
        from concurrent.futures import ProcessPoolExecutor

        # Forked children of a process with threads may hang; spawned ones start clean.
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(jobs, mp_context=context, initializer=load_under_limit) as pool:
            yield pool, jobs
        return
    try:
        import distributed
    except ImportError as error:
        raise InputError("--dask needs the package distributed", "pip install 'ranksight[dask]'") from error
    reached(dask)
    connect: Any = distributed.Client
    try:
        client: Any = connect(dask, timeout=PATIENCE)
    except ValueError as error:
        raise InputError(f"{dask!r} is not an address: {error}", "write it like tcp://node1:8786") from error
    except OSError as error:
        raise _silent(dask) from error
    with client:
        count = sum(client.ncores().values())
        if not count:
            raise ToolError(f"the Dask scheduler at {dask} has no workers", f"start some: dask worker {dask}")
        yield client.get_executor(), count


def reached(dask: str) -> None:
    """Refuse an address where nobody listens at once: a client of Dask would try it again and again.

    Raises InputError when it is not an address; ToolError when nothing answers there.
    """
    import socket  # few commands have a scheduler

    try:
        parts = urlsplit(dask if "://" in dask else f"//{dask}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if not host or not port:
        raise InputError(f"{dask!r} is not an address", "write it like tcp://node1:8786")
    try:
        socket.create_connection((host, port), PATIENCE).close()
    except OSError as error:
        raise _silent(dask) from error


def _silent(dask: str) -> ToolError:
    return ToolError(f"no Dask scheduler answers at {dask}", "start one with 'dask scheduler', or correct the address")


def in_order(pool: Executor, width: int, work: Callable[[Any], T], tasks: Iterable[Any]) -> Iterator[T]:
    """Results of `work` in the order of `tasks`, with at most twice `width` of them under way."""
    waiting = []
    for task in tasks:
        waiting.append(pool.submit(work, task))
        if len(waiting) >= 2 * width:
            yield waiting.pop(0).result()
    for future in waiting:
        yield future.result()
