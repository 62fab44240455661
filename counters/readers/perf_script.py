"""Text of ``perf script``: samples, charged to functions of the application; a rank a file, or a rank a process.

Kernels are named as the collectors name them. What MPI libraries and the system did stands in a kernel of each, so that
the sum over kernels is the number of all samples' periods.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd

from ranksight.core.errors import InputError, readable
from ranksight.core.files import regular_file
from ranksight.core.leftout import MPI, OTHER, TABLE
from ranksight.core.reading import READERS, Reading
from ranksight.counters.perfscript import BLOCK, Samples, by_object
from ranksight.counters.perfscript import read as read_samples
from ranksight.counters.readers import _assemble
from ranksight.counters.readers._samples import meaning, provenance

_KEYS = ["kernel", "rank"]
_SAMPLE = re.compile(
    r"^\s*(?:\S.*?\s+)?(?:\d+/\d+|\d+)\s+(?:\[\d+\]\s+)?(?:\d+\.\d{6,9}:\s+)?(?:\d+\s+)?"
    r"(?P<event>[A-Za-z][\w.:/=,\-]*?):[ukhHGpPSDW]*:?\s*(?:[0-9a-f]{4,16}\s.*\(.*\))?\s*$"
)
_FRAME = re.compile(r"^\s+[0-9a-f]{4,16} .*\(.*\)\s*$|^.*\s[0-9a-f]{4,16} \S.*\(\S.*\)\s*$", re.MULTILINE)


def _is_one(path: Path, head: bytes) -> bool:
    """Whether `path` is text of perf script."""
    if b"\x00" in head or path.suffix == ".json":
        return False
    lines = [line for line in _assemble.head_text(head).splitlines() if line.strip() and not line.startswith("#")]
    first = lines[0] if lines else ""
    return _SAMPLE.match(first[:1000]) is not None and _FRAME.search("\n".join(lines[:64])) is not None


def _read(path: Path, rank: int | None) -> Reading:
    """One file, of a rank where it is one.

    Raises InputError, naming file and line: a line is no sample, or there is no sample.
    """
    regular_file(path)
    with readable(path), path.open("rb") as stream:
        samples: Samples = read_samples(iter(lambda: stream.read(BLOCK), b""), str(path))
    table = samples.table
    if table.empty:
        raise InputError(f"{path} holds no sample", "was anything recorded? see 'perf report'")
    notes: list[str] = []
    group = table["group"].to_numpy()
    paths = table["kernel"]
    kernel = np.where(group == "mpi", MPI, np.where(group == "other", OTHER, table["kernel"]))
    table = table.assign(kernel=kernel, path=paths)
    several = rank is None and table["pid"].nunique() > 1
    table = _by_process(table, notes) if several else table.assign(rank=0 if rank is None else rank)
    if table.empty:
        raise InputError(f"{path}: no sample hit a function of the application", "is the program stripped of symbols?")
    unweighted = bool((table["period"] == 0).all())
    if unweighted:
        notes.append("the text has no periods (perf script -F +period): samples are counted")
    table = table.assign(value=table["samples"] if unweighted else table["period"])
    columns, counts, origin = _sums(table, unweighted)
    left_out = [
        by_object(
            rows.assign(kernel=rows["path"], value=rows["value"] * (1.0 if unweighted else meaning(str(event)).scale)),
            str(metric),
        )
        for event, rows in table.groupby("event", sort=False)
        for metric in [f"samples of {event}" if unweighted else meaning(str(event)).name]
    ]
    by_name = float(table.loc[table["by_name"].astype(bool), "samples"].sum())
    if by_name:
        notes.append(f"{int(by_name)} samples of run-time functions are the application's by their names alone")
    wide = pd.DataFrame(columns).reset_index().fillna(0.0)
    every = pd.DataFrame(counts).reindex(pd.MultiIndex.from_frame(wide[_KEYS])).fillna(0.0)
    return _assemble.build(
        path,
        wide["kernel"].tolist(),
        wide["rank"].tolist(),
        {name: wide[name].to_numpy(dtype=np.float64) for name in columns},
        origin=origin,
        configuration=None if several else {},
        notes=notes,
        worth=_worth(wide, every),
        tables={TABLE: pd.concat(left_out, ignore_index=True)},
    )


def _by_process(table: pd.DataFrame, notes: list[str]) -> pd.DataFrame:
    """Samples of the processes that run the application, each of which stands as a rank."""
    own = sorted(int(pid) for pid in table.loc[table["group"] == "application", "pid"].unique())
    ranks = {pid: place for place, pid in enumerate(own)}
    left = int(table.loc[~table["pid"].isin(own), "samples"].sum())
    notes.append(f"each of {len(own)} processes is taken as a rank, in the order of process ids")
    if left:
        notes.append(f"{left} samples of processes without application code are left out")
    return table[table["pid"].isin(own)].assign(rank=lambda rows: rows["pid"].map(ranks))


def _sums(table: pd.DataFrame, unweighted: bool) -> tuple[dict[str, pd.Series], dict[str, pd.Series], dict[str, str]]:
    """Value and samples of each event by kernel and rank, and where the value comes from."""
    columns: dict[str, pd.Series] = {}
    origin: dict[str, str] = {}
    counts: dict[str, pd.Series] = {}
    for event, rows in table.groupby("event", sort=False):
        what = meaning(str(event))
        name = f"samples of {event}" if unweighted else what.name
        summed = rows.groupby(_KEYS)["value"].sum() * (1.0 if unweighted else what.scale)
        columns[name] = columns[name].add(summed, fill_value=0.0) if name in columns else summed
        hits = rows.groupby(_KEYS)["samples"].sum()
        counts[name] = counts[name].add(hits, fill_value=0.0) if name in counts else hits
        origin[name] = provenance(str(event), float(rows["samples"].sum()))
    return columns, counts, origin


def _worth(values: pd.DataFrame, samples: pd.DataFrame) -> dict[str, np.ndarray[tuple[int], np.dtype[np.float64]]]:
    """What a sample is worth in each row: as its own samples were, and as all of them where it has none."""
    worth: dict[str, np.ndarray[tuple[int], np.dtype[np.float64]]] = {}
    for name in map(str, samples):
        hit, value = samples[name].to_numpy(np.float64), values[name].to_numpy(np.float64)
        if not value.sum() > 0:
            continue
        usual = value.sum() / hit.sum()
        worth[name] = np.where((hit > 0) & (value > 0), value / np.where(hit > 0, hit, 1.0), usual)
    return worth


READERS.register("perf-script")(
    _assemble.FilePerRank(
        "perf script: samples with or without call chains; functions, a rank a file or a process", _is_one, _read
    )
)
