"""Runs of which a part is simulated: the native run that shows it, the plan of each rank, and the record of it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, field, replace
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pandas as pd

from ranksight.campaign.launching import Launch
from ranksight.core.arrays import Array, Ints
from ranksight.core.metrics import LEVELS
from ranksight.core.records import dataclass
from ranksight.counters import signature
from ranksight.counters.collectors.unseen import unseen
from ranksight.counters.mpi_calls import CALLS
from ranksight.counters.rank_classes import Stands, stands_of
from ranksight.counters.signature import Signature
from ranksight.counters.windows import Windows, windows_of

TABLE = "signature"
"""Table of a run: ``rank``, ``stretches`` between MPI calls, ``simulated`` of them, ``share`` of the processor time
that these stand for, ``simulated_share`` of it, ``error`` of the time that their weights give, ``places`` further on
in the run at which stretches were simulated since occurrences differed."""
SAID = 0.9
NOTHING: Mapping[int, tuple[int, ...]] = MappingProxyType({})
REACHED = 4
"""Times the stretches up to where code is first run that are simulated, so that how often it is run shows."""
NATIVELY, COUNTING = 0.05, 0.25
"""Time that a further native run takes, and that counting instructions does, of a simulation in full."""
_RECORD = np.dtype([("call", "<u4"), ("site", "<u4"), ("seconds", "<f8")])
_PLANNED = np.dtype([("call", "<u8"), ("weight", "<u8", (2 + len(signature.HALVES),))])
_SKIPS, _DIFFERS = 0xFFFD, 0xFFFE
_UNUSED = np.uint64(0xFFFFFFFFFFFFFFFF)
_ENDS = 0xFFFF
_NUMBER = 0xFFF
_ARGUMENT = 12
_UNCOUNTED = re.compile(
    r"I?(?:barrier|(?:neighbor_)?alltoall[vw]|reduce_scatter|scatterv)|M?probe|(?:Start|Wait|Win_).*", re.IGNORECASE
)
_THIRD = re.compile(r"I?(?:reduce|allreduce|reduce_scatter_block|scan|exscan)", re.IGNORECASE)
DIFFERS = 0.03
"""Difference between two ranks of a class in a kernel of weight from which a warning is given."""
RANKS_TABLE = "rank_classes"
"""Table of a run: ``rank``, its ``class``, and ``counted_by``, the rank whose counts it has."""
_LARGEST = 1 << 31
_VARIES = ("Waitany", "Waitsome", "Probe")
"""Calls whose number differs from run to run."""
_NAMES = (*(name for name in CALLS if name not in _VARIES), "Wtime")
_TIMER = len(_NAMES)
"""Number of MPI_Wtime: it bounds stretches of programs in which calls that communicate are too few."""


def header() -> str:
    """The header of the library: the list of calls, each with its number, its name and its name in lower case.

    The bits above those of the number say which argument, from 1, is the count of elements; 0: none is.
    """
    marked = [number | _argument(name) << _ARGUMENT for number, name in enumerate(_NAMES, 1)]
    calls = " ".join(f"X({number}, {name}, {name.lower()})" for number, name in zip(marked, _NAMES, strict=True))
    return f"#define TIMER {_TIMER}\n#define CALLS(X) {calls}\n"


def _argument(name: str) -> int:
    """Which argument of a call is a count of elements, from 1; 0 where none is."""
    return 0 if _UNCOUNTED.fullmatch(name) else 3 if _THIRD.fullmatch(name) else 2


@dataclass(frozen=True)
class Plans:
    """What each rank's simulation counts; without signatures the reason why there is none."""

    signatures: tuple[Signature, ...] = ()
    reason: str = ""
    stands: Stands | None = None  # which of the ranks are simulated; None: all
    spared: float = 0.0  # share of a simulation that times as steady as the calls would spare
    timers: bool = False  # whether stretches are bounded by reading the time, too
    begins: Mapping[int, tuple[int, ...]] = field(default_factory=dict)  # calls of ranks from which on code is another
    windows: Mapping[int, Windows] = field(default_factory=dict)  # of ranks that go on where occurrences differ
    unseen: float = 0.0  # share of the processor time of code that the simulated part does not run


def plan(
    launch: Launch,
    folder: Path,
    counted: int,
    by_class: bool = False,
    begins: Mapping[int, tuple[int, ...]] = NOTHING,
    windows: bool = True,
) -> Plans:
    """Read the calls that the native run left in `folder`, and write the plan of each rank that is simulated.

    `counted`: as :func:`ranksight.counters.signature.of_run` takes it. `by_class`: whether ranks stand for others.
    `begins`: calls of ranks after which the program runs code that it did not run before; four times as much is
    simulated, at least. `windows`: whether plans go on where occurrences differ; not where `counted` is given.
    """
    goes_on = windows and not counted
    timed = []
    for rank in range(launch.ranks):
        records = _read(folder / f"calls.{rank}")
        if records is None:
            return Plans(reason=f"rank {rank} left no whole sequence of MPI calls")
        timed.append(records)
    # How often a program reads the time may differ from run to run: it bounds stretches where nothing else does.
    every = [_without_timers(records) for records in timed]
    kept = {
        rank: tuple(int(np.searchsorted(_calls(timed[rank]), at)) for at in places) for rank, places in begins.items()
    }
    plans = replace(_planned(every, folder, counted, by_class, kept, goes_on), begins=begins)
    if not plans.signatures and any(len(one) < len(other) for one, other in zip(every, timed, strict=True)):
        plans = replace(_planned(timed, folder, counted, by_class, begins, goes_on), begins=begins, timers=True)
    return plans


def after_unseen(launch: Launch, folder: Path, plans: Plans, counted: int, by_class: bool) -> Plans | None:
    """Plans that reach the code that the part that was simulated by `plans` did not run; None where it ran all."""
    ends = {}
    for rank, one in zip(simulated(plans.stands, launch.ranks), plans.signatures, strict=True):
        records = _read(folder / f"calls.{rank}")
        if records is not None:
            ends[rank] = len(one.weights) if plans.timers else int(_calls(records)[len(one.weights) - 1]) + 1
    found = unseen(folder, ends)
    if not found:
        return None
    share = max(each.share for each in found.values())
    if counted:
        fewer = (replace(one, share=one.share * (1 - share)) for one in plans.signatures)
        return replace(plans, signatures=tuple(fewer), unseen=share)
    begins = {rank: (*plans.begins.get(rank, ()), each.begins) for rank, each in found.items()}
    return replace(plan(launch, folder, counted, by_class, {**plans.begins, **begins}), unseen=share)


def _planned(
    every: Sequence[np.ndarray],
    folder: Path,
    counted: int,
    by_class: bool,
    begins: Mapping[int, tuple[int, ...]],
    goes_on: bool,
) -> Plans:
    """The plans of ranks by their records."""
    stands = None
    if by_class:
        seconds = [records["seconds"] for records in every]
        calls, sites = ([records[name].astype(np.int64) for records in every] for name in ("call", "site"))
        stands = stands_of(calls, sites, seconds)
    signatures, spared, windows = [], 0.0, {}
    for rank in simulated(stands, len(every)):
        records = every[rank]
        one = _of(records, counted, begins=begins.get(rank, ()))
        rough = one if counted else _of(records, 0, np.inf, begins.get(rank, ()))
        if rough is not None:
            spared = max(spared, (1.0 if one is None else one.simulated) - rough.simulated)
        if one is None:
            reason = f"no part of rank {rank} stands for the whole: the program does not repeat, or is short"
            return Plans(reason=reason, spared=spared)
        later = windows_of(one, *_classes(records, begins.get(rank, ())), records["seconds"]) if goes_on else None
        _rows(_number(records["call"]), one, later).tofile(folder / f"plan.{rank}")
        signatures.append(one)
        if later is not None:
            windows[rank] = later
    return Plans(tuple(signatures), stands=stands, spared=spared, windows=windows)


def _rows(calls: Ints, one: Signature, later: Windows | None) -> np.ndarray:
    """The plan of a process: its stretches and the weights of these, then those of windows if occurrences differ."""
    end = len(one.weights)
    first = _stretches(calls[:end], np.vstack((one.weights, one.further, one.weights)))
    if later is None:
        first["weight"][:, -1] = _UNUSED
        return first
    weights = np.vstack((later.signature.weights, later.signature.further, later.signature.weights))
    first["weight"][:, -1] = np.rint(1e6 * weights[-1, :end])
    parts = [first, _stretches(np.array([_DIFFERS]), np.zeros((weights.shape[0], 1)))]
    at = end
    for begin, length in zip(later.begins.tolist(), later.lengths.tolist(), strict=True):
        skipped = _stretches(np.array([_SKIPS]), np.zeros((weights.shape[0], 1)))
        skipped["weight"][0, 0] = begin - end
        parts += [skipped, _stretches(calls[begin : begin + length], weights[:, at : at + length])]
        end, at = begin + length, at + length
    return np.concatenate(parts)


def _stretches(calls: Ints, weights: Array) -> np.ndarray:
    """Rows of a plan. `weights` (sums, m): of each stretch."""
    rows = np.empty(len(calls), _PLANNED)
    rows["call"], rows["weight"] = calls, np.rint(1e6 * weights).T
    return rows


def followed(folder: Path, plans: Plans) -> Plans:
    """The plans as they were simulated: with windows of the ranks in which occurrences differed."""
    gone_on = {
        rank: plans.windows[rank].signature for rank in plans.windows if (folder / f"plan.{rank}.places").exists()
    }
    pairs = zip(simulated(plans.stands, len(plans.signatures)), plans.signatures, strict=True)
    return replace(plans, signatures=tuple(gone_on.get(rank, one) for rank, one in pairs))


def _without_timers(records: np.ndarray) -> np.ndarray:
    """The calls that communicate, with the time since the last of these."""
    at = _calls(records)
    found = records[at]
    found["seconds"] = np.add.reduceat(records["seconds"], np.concatenate(([0], at[:-1] + 1)))
    return found


def _calls(records: np.ndarray) -> Ints:
    """Places of the calls that communicate, and of the last record, which ends the sequence."""
    return np.flatnonzero(_number(records["call"]) != _TIMER)


def _number(calls: np.ndarray) -> np.ndarray:
    """The numbers of calls, without the bits that differ by their count of elements."""
    return np.where(calls == _ENDS, calls, calls & _NUMBER)


def _read(file: Path) -> np.ndarray | None:
    """The calls of one process; None where the file is missing, cut off, or calls came from several threads."""
    try:
        size = file.stat().st_size
        records = np.fromfile(file, _RECORD) if 0 < size < _LARGEST and size % _RECORD.itemsize == 0 else None
    except OSError:
        return None
    if records is None or records["call"][-1] != _ENDS or (records["call"][:-1] == 0).any():
        return None
    if not np.isfinite(records["seconds"]).all():
        return None
    records["seconds"] = np.maximum(records["seconds"], 0.0)
    return records


def _of(
    records: np.ndarray, counted: int, agree: float = signature.AGREE, begins: Sequence[int] = ()
) -> Signature | None:
    """The signature of one process. What follows the last call is left out of what can be planned."""
    least = REACHED * (max(begins, default=-1) + 1)
    return signature.of_run(*_classes(records, begins), records["seconds"], counted, agree, least)


def _classes(records: np.ndarray, begins: Sequence[int]) -> tuple[Ints, Ints]:
    """The classes of the stretches of a process, and each class's pair of calls."""
    calls = _number(records["call"]).astype(np.int64) << 32 | records["site"]
    return signature.classes_of(calls, records["seconds"], begins)


def simulated(stands: Stands | None, ranks: int) -> Sequence[int]:
    """The ranks that are simulated: those that `stands` names, or all of so many `ranks`."""
    return range(ranks) if stands is None else stands.simulated


def marks(ranks: Iterable[int], folder: Path, how: str) -> Iterator[Path]:
    """Files that ranks create when their part is simulated (``done``) or differed from the plan (``other``)."""
    return (folder / f"plan.{rank}.{how}" for rank in ranks)


def write_record(folder: Path, plans: Plans) -> None:
    """Keep in `folder` what is counted, or why everything is."""
    rows = [{**asdict(one), "weights": len(one.weights)} for one in plans.signatures]
    for row in rows:
        del row["further"]
    stands = None if plans.stands is None else asdict(plans.stands)
    content = {"reason": plans.reason, "ranks": rows, "stands": stands, "unseen": plans.unseen}
    (folder / "signature.json").write_text(json.dumps(content), encoding="utf-8")


def read_stands(folder: Path) -> Stands | None:
    """Which ranks were simulated for whom; None where all were."""
    file = folder / "signature.json"
    content = json.loads(file.read_text(encoding="utf-8"))["stands"] if file.exists() else None
    if content is None:
        return None
    checks = tuple((first, second) for first, second in content["checks"])
    return Stands(tuple(content["classes"]), tuple(content["counted_by"]), checks, content["share"])


def record_of_ranks(
    stands: Stands, tables: Mapping[int, pd.DataFrame]
) -> tuple[pd.DataFrame, tuple[str, ...], tuple[str, ...]]:
    """The table of a run's ranks, its notes and its warnings.

    `tables`: counts of the simulated ranks, kernels as index.
    """
    table = pd.DataFrame({"class": stands.classes, "counted_by": stands.counted_by}, dtype=np.int32)
    table.insert(0, "rank", np.arange(len(table), dtype=np.int32))
    if not stands.checks:
        return table, ("all ranks were simulated: no three ranks make the same calls in the same time",), ()
    pairs = [(tables[first], tables[second]) for first, second in stands.checks]
    errors = [_difference(*pair, ("instructions", "loads", "stores")) for pair in pairs]
    by_level = max(_difference_by_level(*pair) for pair in pairs)
    error, (first, second) = max(zip(errors, stands.checks, strict=True))
    simulated, waiting = len(stands.simulated), len(table) - len(stands.simulated)
    notes = (
        f"{simulated} of {len(table)} ranks were simulated, with {stands.share:.0%} of the processor time, and stand "
        f"for the other {waiting}; the second rank of a class differs by at most {error:.2%} in the instructions, "
        f"loads or stores of a kernel, and by {by_level:.2%} in its loads of one level of the caches",
    )
    far = f"ranks {first} and {second} make the same calls, but differ by {error:.0%}: give --sample-ranks off"
    return table, notes, (far,) if error > DIFFERS else ()


def _difference(one: pd.DataFrame, other: pd.DataFrame, metrics: Sequence[str]) -> float:
    """Largest relative difference of two ranks in the `metrics` of kernels that have 1 % of them."""
    names = [name for name in metrics if name in one and name in other]
    one, other = one[names].align(other[names], join="outer", fill_value=0.0)
    larger = np.maximum(one.to_numpy(), other.to_numpy())
    heavy = larger > 0.01 * larger.sum(axis=0)
    difference = np.abs(one.to_numpy() - other.to_numpy())[heavy] / larger[heavy]
    return float(difference.max()) if len(difference) else 0.0


def _difference_by_level(one: pd.DataFrame, other: pd.DataFrame) -> float:
    """Largest relative difference of two ranks in the loads of a level that are a thousandth of the loads of a kernel
    with 1 % of the instructions."""
    names = [name for name in LEVELS if name in one and name in other]
    if not names:
        return 0.0
    one, other = one.align(other, join="outer", fill_value=0.0)
    larger = one.where(one > other, other)
    loads = larger["loads"].where(larger["instructions"] > 0.01 * larger["instructions"].sum())
    levels = larger[names]
    difference = (one[names] - other[names]).abs() / levels
    counted = difference.to_numpy(dtype=np.float64)[levels.gt(1e-3 * loads, axis=0).to_numpy()]
    return float(counted.max(initial=0.0))


def growth(table: pd.DataFrame) -> dict[int, float]:
    """Of each rank that was simulated, occurrences over those that were simulated; 0 where these are from all along the
    run. `table`: :data:`TABLE`."""
    often = (table["stretches"] / table["simulated"]).where(table["places"] == 0, 0.0)
    return dict(zip(table["rank"].tolist(), often.tolist(), strict=True))


def read_record(folder: Path) -> tuple[pd.DataFrame | None, tuple[str, ...], tuple[str, ...]]:
    """The table of a run, its notes and its warnings; empty where no sampling was tried."""
    file = folder / "signature.json"
    if not os.path.exists(file):
        return None, (), ()
    record = json.loads(file.read_text(encoding="utf-8"))
    if not record["ranks"]:
        return None, (f"simulated in full: {record['reason']}",), ()
    table = pd.DataFrame(record["ranks"]).rename(columns={"simulated": "simulated_share", "weights": "simulated"})
    stands = read_stands(folder)
    table.insert(0, "rank", np.array(simulated(stands, len(table)), dtype=np.int32))
    share, error = float(table["share"].min()), float(table["error"].max())
    counted = f"{table['simulated'].sum():,} of {table['stretches'].sum():,} stretches between MPI calls were simulated"
    represented = f"and stand for {share:.1%} of the processor time"
    notes: tuple[str, ...] = (f"{counted} {represented}; their weights give back the native time within {error:.1%}",)
    if table["places"].any():
        places = int(table["places"].max())
        notes += (f"occurrences of the same stretch differ: {places} places along the rest of the run were simulated",)
    if record["unseen"]:
        notes += (f"code that takes {record['unseen']:.0%} of the time natively is run after the simulated part",)
    few = (f"the simulated part stands for {share:.0%} of the program: give --sample off to simulate all",)
    return table, notes, few if share < SAID else ()
