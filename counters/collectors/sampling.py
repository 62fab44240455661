"""Runs of which a part is simulated: the native run that shows it, the plan of each rank, and the record of it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from ranksight.campaign.launching import Launch
from ranksight.counters import signature
from ranksight.counters.mpi_calls import CALLS
from ranksight.counters.signature import Signature

TABLE = "signature"
"""Table of a run: ``rank``, ``stretches`` between MPI calls, ``simulated`` of them, ``share`` of the processor time
that these stand for, ``simulated_share`` of it, ``error`` of the time that their weights give."""
SAID = 0.9
_RECORD = np.dtype([("call", "<u4"), ("site", "<u4"), ("seconds", "<f8")])
_PLANNED = np.dtype([("call", "<u8"), ("weight", "<u8")])
_ENDS = 0xFFFF
_LARGEST = 1 << 31
_VARIES = ("Waitany", "Waitsome", "Probe")
"""Calls whose number differs from run to run."""


def numbered() -> str:
    """The list of calls for the library: each with its number, its name and its name in lower case."""
    names = [name for name in CALLS if name not in _VARIES]
    return " ".join(f"X({number}, {name}, {name.lower()})" for number, name in enumerate(names, 1))


@dataclass(frozen=True)
class Plans:
    """What each rank's simulation counts; without signatures the reason why there is none."""

    signatures: tuple[Signature, ...] = ()
    reason: str = ""


def plan(launch: Launch, folder: Path, counted: int) -> Plans:
    """Read the calls that the native run left in `folder`, and write the plan of each rank.

    `counted`: as :func:`ranksight.counters.signature.of_run` takes it.
    """
    found = []
    for rank in range(launch.ranks):
        records = _read(folder / f"calls.{rank}")
        if records is None:
            return Plans(reason=f"rank {rank} left no whole sequence of MPI calls")
        one = _of(records, counted)
        if one is None:
            return Plans(
                reason=f"no part of rank {rank} stands for the whole: the program does not repeat, or is short"
            )
        rows = np.empty(len(one.weights), _PLANNED)
        rows["call"] = records["call"][: len(rows)]
        rows["weight"] = np.rint(1e6 * one.weights)
        rows.tofile(folder / f"plan.{rank}")
        found.append(one)
    return Plans(tuple(found))


def _read(file: Path) -> np.ndarray | None:
    """The calls of one process; None where the file is missing, cut off, or calls came from several threads."""
    try:
        size = file.stat().st_size
        records = np.fromfile(file, _RECORD) if 0 < size < _LARGEST and size % _RECORD.itemsize == 0 else None
    except OSError:
        return None
    if records is None or records["call"][-1] != _ENDS or (records["call"][:-1] == 0).any():
        return None
    return records if np.isfinite(records["seconds"]).all() else None


def _of(records: np.ndarray, counted: int) -> Signature | None:
    """The signature of one process. What follows the last call is left out of what can be planned."""
    seconds = np.maximum(records["seconds"], 0.0)
    calls = records["call"].astype(np.int64) << 32 | records["site"]
    return signature.of_run(*signature.classes_of(calls, seconds), seconds, counted)


def marks(launch: Launch, folder: Path, how: str) -> Iterator[Path]:
    """Files that ranks create when their part is simulated (``done``) or differed from the plan (``other``)."""
    return (folder / f"plan.{rank}.{how}" for rank in range(launch.ranks))


def write_record(folder: Path, plans: Plans) -> None:
    """Keep in `folder` what is counted, or why everything is."""
    rows = [{**asdict(one), "weights": len(one.weights)} for one in plans.signatures]
    (folder / "signature.json").write_text(json.dumps({"reason": plans.reason, "ranks": rows}), encoding="utf-8")


def read_record(folder: Path) -> tuple[pd.DataFrame | None, tuple[str, ...], tuple[str, ...]]:
    """The table of a run, its notes and its warnings; empty where no sampling was tried."""
    file = folder / "signature.json"
    if not os.path.exists(file):
        return None, (), ()
    record = json.loads(file.read_text(encoding="utf-8"))
    if not record["ranks"]:
        return None, (f"simulated in full: {record['reason']}",), ()
    table = pd.DataFrame(record["ranks"]).rename(columns={"simulated": "simulated_share", "weights": "simulated"})
    table.insert(0, "rank", np.arange(len(table), dtype=np.int32))
    share, error = float(table["share"].min()), float(table["error"].max())
    counted = f"{table['simulated'].sum():,} of {table['stretches'].sum():,} stretches between MPI calls were simulated"
    stands = f"and stand for {share:.1%} of the processor time"
    notes = (f"{counted} {stands}; their weights give back the native time within {error:.1%}",)
    few = (f"the simulated part stands for {share:.0%} of the program: give --sample off to simulate all",)
    return table, notes, few if share < SAID else ()
