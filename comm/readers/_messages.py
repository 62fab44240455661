"""What the readers share: the message table being filled, and lines of files that others wrote."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ranksight.core import limits
from ranksight.core.errors import InputError, readable
from ranksight.core.experiment import MESSAGE_COLUMNS, WHOLE
from ranksight.core.files import regular_file
from ranksight.core.mpi import is_call
from ranksight.core.names import CALLS
from ranksight.core.reading import Reading

Key = tuple[str, int, str, int, int]
OUTSIDE = "(outside of MPI)"
"""Kernel of all that a rank does between its calls of MPI, in profiles that time these alone."""


def size_class(size: float) -> int:
    """Upper bound in bytes of the power-of-two class of a message; 0 for one without bytes."""
    return 0 if size <= 0 else 1 << (int(np.ceil(size)) - 1).bit_length()


@lru_cache(maxsize=1 << 16)
def plain(name: str) -> str:
    """An MPI function as message tables name it: ``MPI_Isend`` is ``Isend``, ``mpi_isend_`` too."""
    text = name.strip().rstrip("_")
    for prefix in ("PMPI_", "MPI_", "pmpi_", "mpi_"):
        if text.startswith(prefix):
            text = text[len(prefix) :]
            break
    return text[:1].upper() + text[1:].lower() if text.isupper() or text.islower() else text


@dataclass(slots=True)
class Tally:
    """A message table being filled, call by call."""

    where: str
    rows: dict[Key, list[float]] = field(default_factory=dict)
    peers: dict[Key, set[int]] = field(default_factory=dict)
    _held: int = 0

    def add(
        self,
        kernel: str,
        rank: int,
        operation: str,
        comm_size: int,
        size: float,
        seconds: float = float("nan"),
        count: int = 1,
        peer: int | None = None,
        total: float | None = None,
    ) -> None:
        """Add `count` calls of `size` bytes each (`total` bytes together where the sizes differ)."""
        key = (kernel, rank, operation, comm_size, size_class(size))
        row = self.rows.get(key)
        if row is None:
            if len(self.rows) >= limits.MESSAGE_ROWS:
                raise InputError(
                    f"{self.where} makes more than {limits.MESSAGE_ROWS} rows of messages", "import a shorter trace"
                )
            row = self.rows[key] = [0.0, 0.0, 0.0]
        row[0] += count
        row[1] += size * count if total is None else total
        row[2] += seconds
        if peer is not None and peer >= 0:
            known = self.peers.setdefault(key, set())
            if peer not in known:
                self._held += 1
                if self._held > limits.MESSAGE_PEERS:
                    raise InputError(
                        f"{self.where} names more than {limits.MESSAGE_PEERS} peers", "import a shorter trace"
                    )
                known.add(peer)

    def table(self) -> pd.DataFrame:
        """The table with :data:`ranksight.core.experiment.MESSAGE_COLUMNS`; times that the source lacks are NaN."""
        keys = list(self.rows)
        content: dict[str, list[Any]] = {name: [key[i] for key in keys] for i, name in enumerate(MESSAGE_COLUMNS[:5])}
        for i, name in enumerate(("count", "bytes", "seconds")):
            content[name] = [self.rows[key][i] for key in keys]
        content["peers"] = [len(self.peers.get(key, ())) for key in keys]
        table = pd.DataFrame(content, columns=list(MESSAGE_COLUMNS))
        kinds = dict.fromkeys(("rank", "comm_size", "size_class", "count", "bytes", "peers"), np.int64)
        return table.astype({**kinds, "kernel": str, "operation": str, "seconds": float})


def reading(
    tally: Tally,
    ranks: Mapping[int, Mapping[str, float]],
    path: Path,
    notes: Iterable[str],
    profiled: bool = False,
    **more: Any,
) -> Reading:
    """The reading of one run: its messages, and what is known of the whole program on each rank, by metric; of what is
    `profiled` also the time of each call as a kernel's, and of what is outside of MPI."""
    rows = [{"kernel": WHOLE, "rank": rank, **known} for rank, known in sorted(ranks.items())]
    if profiled:
        rows += _times(tally, ranks)
    counters = pd.DataFrame(rows)
    metrics = counters.columns[2:]
    wall_time = float(counters["wall_time"].max()) if "wall_time" in metrics else None
    return Reading(
        configuration={"ranks": float(len(ranks))},
        counters=counters if len(metrics) else None,
        messages=tally.table(),
        provenance=dict.fromkeys((*metrics, "messages"), "measured") | more.pop("provenance", {}),
        wall_time=wall_time,
        notes=tuple(notes),
        source=(str(path),),
        **more,
    )


def _times(tally: Tally, ranks: Mapping[int, Mapping[str, float]]) -> Iterator[dict[str, Any]]:
    """The time of each operation that a kernel calls, by rank, and of what is not MPI's where it is known."""
    seconds: dict[tuple[str, int], float] = {}
    for (kernel, rank, operation, *_), (_, _, spent) in tally.rows.items():
        name = kernel if is_call(kernel) else f"{kernel}{CALLS}MPI_{plain(operation)}"
        if spent == spent:
            seconds[name, rank] = seconds.get((name, rank), 0.0) + spent
    for rank, known in ranks.items():
        if {"wall_time", "mpi_time"} <= set(known):
            seconds[OUTSIDE, rank] = max(known["wall_time"] - known["mpi_time"], 0.0)
    for (name, rank), spent in seconds.items():
        yield {"kernel": name, "rank": rank, "time": spent}


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """Number and text of each line, one at a time; InputError where one is binary or endless."""
    regular_file(path)
    with readable(path), path.open("rb") as stream:
        number = 0
        while line := stream.readline(limits.LINE + 1):
            number += 1
            if len(line) > limits.LINE or b"\0" in line:
                raise InputError(f"{path}:{number}: no line of text", "the file is damaged, or of another format")
            yield number, line.decode("utf-8", "replace").rstrip("\r\n")


def number(text: str, where: str, what: str) -> float:
    """A finite number that is not negative, from text that others wrote."""
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not 0 <= value < 2.0**63:
        raise InputError(f"{where}: {what} is {text[:40]!r}", "the file is damaged, or of another format")
    return value


def whole(text: str, where: str, what: str, least: int = 0) -> int:
    """A whole number from `least` on."""
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    if not least <= value < 2**63:
        raise InputError(f"{where}: {what} is {text[:40]!r}", "the file is damaged, or of another format")
    return value


def complete(ranks: Iterable[int], where: str) -> int:
    """Number of ranks, when none from 0 on is missing; InputError naming the missing ones."""
    found = set(ranks)
    if not found:
        raise InputError(f"{where} holds no rank", "the trace is empty")
    expected = max(found) + 1
    if len(found) < expected:
        missing = [rank for rank in range(min(expected, 2 * len(found) + 10)) if rank not in found]
        shown = ", ".join(map(str, missing[:5])) + (", ..." if expected - len(found) > 5 else "")
        raise InputError(f"{where} lacks {expected - len(found)} of {expected} ranks: {shown}", "copy all files")
    return expected
