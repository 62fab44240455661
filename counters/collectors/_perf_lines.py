"""Samples of some kernels by source line, from what perf recorded, and put in the place of their kernels."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import pandas as pd

from ranksight.core.errors import ToolError
from ranksight.counters.objects import kernel_name, owner_of

_SAMPLE = re.compile(r"\s*(?P<period>\d+)\s+(?P<event>\S+):\s+[0-9a-f]+\s+(?P<place>\S.*)$")
_COLUMNS = ["event", "kernel", "parent", "samples", "period"]
_LINE = re.compile(r"\s+(?P<file>[^:\s][^:]*):(?P<line>\d+)(?:\s|$)")
_SPAN = re.compile(r"(?P<kernel>.+)@(?P<file>[^@:]+):(?P<first>\d+)-(?P<last>\d+)$")


@dataclass
class Refinable:
    """What collectors of samples have in common that split kernels.

    Parameters
    ----------
    refine : tuple of str
        Kernels to be split into source lines.
    spans : tuple of str
        Loops to gather lines into, as callgrind's refinement names them.
    """

    refine: tuple[str, ...] = ()
    spans: tuple[str, ...] = ()

    def refined(self, kernels: Sequence[str], spans: Sequence[str] = ()) -> Self:
        """The same with some kernels split into their lines, or into loops that callgrind found."""
        return replace(self, refine=tuple(kernels), spans=tuple(spans))


def by_line(file: Path, kernels: Collection[str], spans: Sequence[str] = ()) -> pd.DataFrame:
    """Periods of samples whose innermost frame is in one of `kernels`, by source line.

    Columns: ``event``, ``kernel`` (``relax@heat.c:120`` or a span's name), ``parent``, ``samples``, ``period``.
    `spans`: loops as :func:`ranksight.counters.refine.split` names them; a line is given to the smallest around it.
    Raises ToolError when perf cannot find source lines.
    """
    symbols = sorted(_symbols(file, kernels))
    if not symbols:
        return pd.DataFrame({name: [] for name in _COLUMNS})
    # names of C++ hold commas, which -S cannot take: then all samples are asked for
    only = ["-S", ",".join(symbols)] if not any("," in symbol for symbol in symbols) else []
    sums: dict[tuple[str, str, str], list[float]] = {}
    event, parent, period = "", "", 0
    for line in _script(file, "event,period,ip,sym,dso,srcline", *only):
        sample = _SAMPLE.match(line)
        symbol, _, object_ = ("", "", "") if sample is None else sample["place"].rstrip().partition(" (")
        if sample is not None and object_.endswith(")"):
            symbol, object_ = symbol.rstrip(), object_[:-1]
            name = kernel_name(symbol, object_)
            ours = name in kernels and owner_of(symbol, object_) in ("application", "library")
            event, parent, period = (sample["event"], name, int(sample["period"])) if ours else ("", "", 0)
            continue
        place = _LINE.match(line)
        if parent and place is not None:
            part = _part(parent, place["file"].rsplit("/", 1)[-1], int(place["line"]), spans)
            total = sums.setdefault((event, part, parent), [0.0, 0.0])
            total[0] += 1
            total[1] += period
            parent = ""
    rows = [(*key, *total) for key, total in sums.items()]
    return pd.DataFrame(rows, columns=_COLUMNS)


def in_parts(
    table: pd.DataFrame, files: Mapping[int, Path], kernels: Sequence[str], spans: Sequence[str]
) -> tuple[pd.DataFrame, pd.DataFrame, tuple[str, ...]]:
    """Put the parts of `kernels` in their place, with what no line was found for as rest.

    `table`: ``event``, ``kernel``, ``rank``, ``samples``, ``period``, as gathered from `files`. `files`: what perf
    recorded, by rank. `kernels`, `spans`: as of :func:`by_line`.

    Returns
    -------
    table : DataFrame
    parents : DataFrame
        ``kernel`` and the ``parent`` it is a part of.
    lost : tuple of str
        Those of `kernels` that no sample hit.
    """
    sums = ["samples", "period"]
    keys = ["event", "kernel", "rank"]
    found = [by_line(file, kernels, spans).assign(rank=rank) for rank, file in files.items()]
    parts = pd.concat([one for one in found if len(one)] or found[:1], ignore_index=True)
    whole = table[table["kernel"].isin(kernels)].set_index(keys)[sums]
    charged = parts.groupby(["event", "parent", "rank"])[sums].sum()
    charged.index.names = keys
    rest = whole.sub(charged, fill_value=0.0).clip(lower=0.0).reset_index()
    rest = rest[rest["samples"] > 0]
    home = {kernel: _home(parts[parts["parent"] == kernel], spans, kernel) for kernel in kernels}
    names = [f"{kernel}@{home[kernel]}" for kernel in rest["kernel"]]
    pieces = pd.concat([parts, rest.assign(parent=rest["kernel"], kernel=names)], ignore_index=True)
    pieces = pieces.groupby(["event", "kernel", "parent", "rank"], as_index=False)[sums].sum()
    kept = pd.concat([table[~table["kernel"].isin(kernels)], pieces.drop(columns="parent")])
    lost = tuple(sorted(set(kernels) - set(pieces["parent"])))
    return kept.sort_values(keys, ignore_index=True), pieces[["kernel", "parent"]].drop_duplicates(), lost


def _home(parts: pd.DataFrame, spans: Sequence[str], kernel: str) -> str:
    """The source file of a kernel: that of its loops, else the one that most samples hit; empty where none is known."""
    loops = [match["file"] for match in map(_SPAN.match, spans) if match and match["kernel"] == kernel]
    if loops:
        return loops[0]
    if parts.empty:
        return ""
    files = parts["kernel"].str.rpartition("@")[2].str.partition(":")[0]
    return str(parts.groupby(files)["samples"].sum().idxmax())


def _part(kernel: str, file: str, line: int, spans: Sequence[str]) -> str:
    best, size = f"{kernel}@{file}:{line}" if not spans else f"{kernel}@{file}", -1
    for span in spans:
        match = _SPAN.match(span)
        if match and match["kernel"] == kernel and match["file"] == file:
            first, last = int(match["first"]), int(match["last"])
            if first <= line <= last and (size < 0 or last - first < size):
                best, size = span, last - first
    return best


def _symbols(file: Path, kernels: Collection[str]) -> set[str]:
    """Symbols, as perf writes them, of the functions that are `kernels`."""
    found: set[str] = set()
    for place in {line.strip().partition(" ")[2] for line in _script(file, "ip,sym,dso")}:
        symbol, _, path = place.rpartition(" (")
        if symbol and kernel_name(symbol, path.rstrip(")")) in kernels:
            found.add(symbol)
    return found


def _script(file: Path, fields: str, *options: str) -> Iterator[str]:
    command = ["perf", "script", "-v", "-f", "-G", "--no-inline", "-F", fields, *options, "-i", str(file)]
    environment: Mapping[str, str] = {**os.environ, "PERF_CONFIG": os.devnull, "LC_ALL": "C"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment, text=True, errors="replace"
    ) as process:
        assert process.stdout is not None  # asked for by PIPE
        yield from process.stdout
        if process.wait() != 0:
            raise ToolError(f"perf script cannot find source lines of {file.name}", "is addr2line (binutils) here?")
