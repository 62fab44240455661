"""Text of ``perf script``: samples, charged to functions of the application; a rank a file, or a rank a process.

Kernels are named as the collectors name them. What MPI libraries and the system did stands in a kernel of each, so that
the sum over kernels is the number of all samples' periods.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from ranksight.core.arrays import Array
from ranksight.core.errors import InputError, readable
from ranksight.core.files import regular_file
from ranksight.core.leftout import MPI, OTHER, TABLE
from ranksight.core.reading import READERS, Reading
from ranksight.counters.attributing import by_object
from ranksight.counters.perfscript import BLOCK
from ranksight.counters.perfscript import read as read_samples
from ranksight.counters.readers._assemble import build
from ranksight.counters.readers._files import Format
from ranksight.counters.readers._samples import meaning, provenance

_SAMPLE = re.compile(
    r"^\s*(?:\S.*?\s)?(?:\d+/\d+|\d+)\s+(?:\[\d+\]\s+)?(?:\d+\.\d{6,9}:\s+)?(?:\d+\s+)?"
    r"(?P<event>[A-Za-z][\w.:/=,\-]*?):[ukhHGpPSDW]*:?\s*+(?:[0-9a-f]{4,16}\s[^(]*\(.*\)\s*)?$"
)
_FRAME = re.compile(
    r"^[ \t]+[0-9a-f]{4,16} [^(\n]*\(.*\)[ \t]*$|^(?>.*?\s[0-9a-f]{4,16} \S)[^(\n]*\(\S.*\)[ \t]*$", re.MULTILINE
)


def _is_one(path: Path, head: str) -> bool:
    if path.suffix == ".json":
        return False
    lines = [line for line in head.splitlines() if line.strip() and not line.startswith("#")]
    first = lines[0] if lines else ""
    return _SAMPLE.match(first[:1000]) is not None and _FRAME.search("\n".join(lines[:64])) is not None


def _read(path: Path, rank: int | None) -> Iterator[Reading]:
    regular_file(path)
    with readable(path), path.open("rb") as stream:
        table = read_samples(iter(lambda: stream.read(BLOCK), b""), str(path)).table
    if table.empty:
        raise InputError(f"{path} holds no sample", "was anything recorded? see 'perf report'")
    notes: list[str] = []
    several = rank is None and table["pid"].nunique() > 1
    table = _by_process(table, notes) if several else table.assign(rank=rank or 0)
    if table.empty:
        raise InputError(f"{path}: no sample hit a function of the application", "is the program stripped of symbols?")
    unweighted = bool((table["period"] == 0).all())
    if unweighted:
        notes.append("the text has no periods (perf script -F +period): samples are counted")
    events = table.groupby("event", sort=False)["samples"].sum()
    means = {event: (f"samples of {event}", 1.0) if unweighted else meaning(event) for event in map(str, events.index)}
    table = table.assign(
        metric=table["event"].map({event: name for event, (name, _) in means.items()}),
        value=table["samples" if unweighted else "period"] * table["event"].map({e: x for e, (_, x) in means.items()}),
    )
    left_out = [by_object(rows, str(metric)) for metric, rows in table.groupby("metric", sort=False)]
    by_name = float(table.loc[table["by_name"].astype(bool), "samples"].sum())
    if by_name:
        notes.append(f"{int(by_name)} samples of run-time functions are the application's by their names alone")
    others = {"mpi": MPI, "other": OTHER}
    table["kernel"] = table["group"].map(others).fillna(table["kernel"])
    sums = table.groupby(["kernel", "rank", "metric"])[["value", "samples"]].sum().unstack("metric", fill_value=0.0)
    names = list(dict.fromkeys(name for name, _ in means.values()))
    values, hits = ({name: sums[what][name].to_numpy(np.float64) for name in names} for what in ("value", "samples"))
    yield build(
        path,
        sums.index.get_level_values("kernel").tolist(),
        sums.index.get_level_values("rank").to_numpy(),
        values,
        origin={means[event][0]: provenance(event, count) for event, count in zip(means, events, strict=True)},
        configuration=None if several else {},
        notes=notes,
        worth={name: _worth(values[name], hits[name]) for name in values if values[name].sum() > 0},
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


def _worth(value: Array, hits: Array) -> Array:
    """What a sample is worth in each row: as its own samples were, and as all of them where it has none."""
    return np.where((hits > 0) & (value > 0), value / np.where(hits > 0, hits, 1.0), value.sum() / hits.sum())


READERS.register("perf-script")(
    Format("perf script: samples with or without call chains; functions, a rank a file or a process", _is_one, _read)
)
