"""MPI metrics of CUBE4 profiles (Score-P), by pycubexr: calls, bytes and time of every MPI function a call path and
rank.

The profile's own counters are read by the format ``cube``; this one is asked for by name, ``import cube-mpi``, and
gives the message table. Score-P sums bytes over calls, so a row holds the mean size; bytes of collectives are
converted by :mod:`ranksight.comm.readers._score_p`, taking all of them to be on all ranks.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ranksight.comm.costs.collective import OPERATIONS, operation_name
from ranksight.comm.readers import _messages, _score_p
from ranksight.core.arrays import Array
from ranksight.core.cube import locations, opened
from ranksight.core.errors import InputError
from ranksight.core.experiment import WHOLE
from ranksight.core.files import regular_file
from ranksight.core.reading import READERS, Reading


class CubeMpi:
    """Reads the MPI functions of a CUBE4 archive; see the module."""

    text = "CUBE4 (.cubex) of Score-P: calls, bytes and time of MPI functions (extra: cube; ask for it by name)"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Never: a CUBE is read as counters unless its messages are asked for."""
        return False

    def read(self, path: Path) -> Iterator[Reading]:
        """Read one archive.

        Raises InputError when it is not a CUBE4 archive, or has no MPI functions, visits or times; ToolError when
        pycubexr is not installed.
        """
        regular_file(path)
        with opened(path) as cube:
            reading = _read(path, cube)
        yield reading


READERS.register("cube-mpi")(CubeMpi())


def _read(path: Path, cube: Any) -> Reading:
    known = {metric.name: metric for metric in cube.get_metrics()}
    if "visits" not in known or "time" not in known:
        raise InputError(f"{path} has no metric visits or time", "measure with Score-P's profiling on")
    owners = [rank for _, rank in locations(path, cube)]
    ranks = _messages.complete(owners, str(path))
    tally = _messages.Tally(str(path))
    nodes = [(node, kernel) for root in cube.get_root_cnodes() for node, kernel in _walk(root)]
    wanted = ("visits", "time", "bytes_sent", "bytes_received")
    values = {name: cube.get_metric_values(known[name]) for name in wanted if name in known}
    calls = []
    for node, kernel in nodes:
        if node.region.name.startswith(("MPI_", "PMPI_")):
            table = np.stack([_values(values.get(name), node, len(owners)) for name in wanted])
            calls.append((kernel, _messages.plain(node.region.name), table))
    names = {operation: operation_name(operation) for _, operation, _ in calls}
    itself = _score_p.counts_itself(
        (names[operation], float(sent / visits), float(received / visits), ranks)
        for _, operation, table in calls
        for visits, _, sent, received in table.T
        if visits > 0
    )
    for kernel, operation, table in calls:
        collective = names[operation] in OPERATIONS
        for index in np.flatnonzero(table[0] > 0):
            visits, seconds, sent, received = (float(value) for value in table[:, index])
            total = _score_p.handed_over(names[operation], sent, received, ranks, itself)
            tally.add(
                kernel,
                owners[index],
                operation,
                ranks if collective else 0,
                total / visits,
                seconds,
                int(visits),
                total=round(total),
            )
    if not calls:
        raise InputError(f"{path} holds no MPI function", "read its counters with: import cube")
    notes = ("collectives are taken on all ranks: the profile does not name communicators", _score_p.NOTE)
    return _messages.reading(tally, {rank: {} for rank in range(ranks)}, path, notes)


def _walk(root: Any) -> Iterator[tuple[Any, str]]:
    """All call paths below `root`, each with the region that called it."""
    todo: list[tuple[Any, str]] = [(root, WHOLE)]
    while todo:
        node, kernel = todo.pop()
        yield node, kernel
        mine = kernel if node.region.name.startswith(("MPI_", "PMPI_")) else node.region.name
        todo.extend((child, mine) for child in node.get_children())


def _values(table: Any, node: Any, places: int) -> Array:
    """One metric of one call path on all locations, exclusive; zeros where the profile stores none."""
    if table is None:
        return np.zeros(places)
    try:
        found = np.asarray(table.cnode_values(node), dtype=float)
    except (KeyError, IndexError):
        return np.zeros(places)
    return found if found.shape == (places,) else np.zeros(places)
