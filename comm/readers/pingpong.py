"""Timings of messages in CSV: ``op,bytes,start,duration`` or ``op,bytes,duration``, one row a call, times in seconds.

Two dialects are understood. In the first, `op` is one of :data:`ranksight.comm.loggp.OPERATIONS`. In the second, that
of Cornebize's platform calibration, it is an MPI function: a send and a receive of the same size and start are one
round trip of a ping-pong (the receive was begun when the send was done: their sum, and not the receive alone, is the
time between one start and the next), other sends, and receives in a file that holds no send, are overheads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as arrow

from ranksight.comm.loggp import OPERATIONS
from ranksight.core import limits
from ranksight.core.errors import InputError
from ranksight.core.reading import READERS, Reading

CALLS = {"MPI_Send": "send", "MPI_Isend": "isend", "MPI_Recv": "recv"}


def load(paths: Sequence[Path]) -> pd.DataFrame:
    """Timings of one or several files as ``op, bytes, duration``; what is said of each file holds for it alone.

    Raises InputError when a file cannot be read, naming file and line.
    """
    return pd.concat([_load(path) for path in paths], ignore_index=True)


def _load(path: Path) -> pd.DataFrame:
    table = _table(path)
    names = set(table["op"])
    if names <= set(OPERATIONS):
        return table[["op", "bytes", "duration"]]
    if not names <= set(CALLS):
        other = sorted(names - set(CALLS) - set(OPERATIONS))
        line = int((table["op"] == (other[0] if other else sorted(names)[0])).to_numpy().argmax()) + 1
        raise InputError(
            f"{path}:{line}: unknown operation {other[0] if other else 'among MPI calls'!r}",
            f"known: {', '.join((*OPERATIONS, *CALLS))}",
        )
    plain = table.assign(op=table["op"].map(CALLS))
    if not {"MPI_Send", "MPI_Recv"} <= names:
        return plain[["op", "bytes", "duration"]]
    if "start" not in table:
        raise InputError(f"{path}: sends and receives have no start to pair them by", "give op,bytes,start,duration")
    sends, receives = plain[plain["op"] == "send"], plain[plain["op"] == "recv"]
    paired = len(sends) == len(receives) and all(
        bool((sends[name].to_numpy() == receives[name].to_numpy()).all()) for name in ("bytes", "start")
    )
    if not paired:
        raise InputError(f"{path}: {len(sends)} sends and {len(receives)} receives do not pair up into round trips")
    half = (sends["duration"].to_numpy() + receives["duration"].to_numpy()) / 2
    trips = pd.DataFrame({"op": "pingpong", "bytes": sends["bytes"].to_numpy(), "duration": half})
    rest = plain[plain["op"] != "recv"]
    return pd.concat([trips, rest[["op", "bytes", "duration"]]], ignore_index=True)


def _table(path: Path) -> pd.DataFrame:
    try:
        if path.stat().st_size > limits.TIMINGS:
            raise InputError(f"{path} is larger than {limits.TIMINGS} bytes", "it is not a table of timings; split it")
        with path.open(encoding="utf-8") as stream:
            first = stream.readline().strip()
        fields = [field.strip().lower() for field in first.split(",")]
        header = fields[0] == "op"
        names = fields if header else ["op", "bytes", *(["start"] if len(fields) == 4 else []), "duration"]
        if sorted(names) not in (["bytes", "duration", "op"], ["bytes", "duration", "op", "start"]) or len(
            names
        ) != len(fields):
            raise InputError(f"{path}:1: {len(fields)} columns", "give op,bytes,start,duration or op,bytes,duration")
        raw = arrow.read_csv(
            path,
            arrow.ReadOptions(use_threads=False, column_names=names, skip_rows=int(header)),
            convert_options=arrow.ConvertOptions(column_types=dict.fromkeys(names, pa.string())),
        ).to_pandas()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error
    except (UnicodeDecodeError, pa.ArrowException) as error:
        what = f"{path} is not a table of timings: {' '.join(str(error).split())[:200]}"
        raise InputError(what, "give op,bytes,start,duration") from error
    numbers = {name: pd.to_numeric(raw[name], errors="coerce") for name in names if name != "op"}
    for name, column in numbers.items():
        bad = ~np.isfinite(column.to_numpy(dtype=float)) | ((column < 0).to_numpy() & (name != "start"))
        if bad.any():
            line = int(bad.argmax()) + 1 + int(header)
            raise InputError(f"{path}:{line}: {name} is {raw[name].iloc[int(bad.argmax())]!r}", "give a number")
    if not len(raw):
        raise InputError(f"{path} holds no timings")
    table = pd.DataFrame({"op": raw["op"].str.strip(), **numbers})
    # A clock of coarse steps sees some calls take no time: they say nothing, and their size keeps its others.
    return table[table["duration"] > 0].reset_index(drop=True)


class PingPong:
    """Reads timings of messages into a table ``timings``."""

    text = "timings of messages (op,bytes,start,duration), for the network's parameters"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether the first line is of this format."""
        fields = head.split(b"\n", 1)[0].decode("utf-8", "replace").strip().split(",")
        known = {*OPERATIONS, *CALLS, "op"}
        return path.is_file() and len(fields) in (3, 4) and fields[0].strip() in known

    def read(self, path: Path) -> Iterator[Reading]:
        """One reading with the table ``timings`` and no counters."""
        yield Reading(
            configuration={"ranks": 2.0},
            tables={"timings": load([path])},
            provenance={"timings": "measured"},
            source=(str(path),),
        )


READERS.register("pingpong")(PingPong())
