"""Samples of some kernels by source line, from what perf recorded."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd

from ranksight.counters.objects import kernel_name, owner_of
from ranksight.errors import ToolError

_SAMPLE = re.compile(r"\s*(?P<period>\d+)\s+(?P<ip>[0-9a-f]+)\s+(?P<symbol>.+?)\s+\((?P<object>.*)\)\s*$")
_LINE = re.compile(r"\s+(?P<file>[^:]+):(?P<line>\d+)(?:\s|$)")
_SPAN = re.compile(r"(?P<kernel>.+)@(?P<file>[^@:]+):(?P<first>\d+)-(?P<last>\d+)$")


def by_line(file: Path, kernels: Collection[str], spans: Sequence[str] = ()) -> pd.DataFrame:
    """Periods of samples whose innermost frame is in one of `kernels`, by source line.

    Parameters
    ----------
    spans : sequence of str
        Loops as :func:`ranksight.counters.refine.split` names them; a line is given to the smallest around it.

    Returns
    -------
    DataFrame
        ``kernel`` (``relax@heat.c:120`` or a span's name), ``parent``, ``samples``, ``period``.

    Raises
    ------
    ToolError
        When perf cannot tell source lines.
    """
    symbols = sorted(_symbols(file, kernels))
    if not symbols:
        return pd.DataFrame({"kernel": [], "parent": [], "samples": [], "period": []})
    # names of C++ hold commas, which -S cannot take: then all samples are asked for
    only = ["-S", ",".join(symbols)] if not any("," in symbol for symbol in symbols) else []
    sums: dict[tuple[str, str], list[float]] = {}
    parent, period = "", 0
    for line in _script(file, "period,ip,sym,dso,srcline", *only):
        sample = _SAMPLE.match(line)
        if sample is not None:
            name = kernel_name(sample["symbol"], sample["object"])
            ours = name in kernels and owner_of(sample["symbol"], sample["object"]) in ("application", "library")
            parent, period = (name, int(sample["period"])) if ours else ("", 0)
            continue
        place = _LINE.match(line)
        if parent and place is not None:
            part = _part(parent, place["file"].rsplit("/", 1)[-1], int(place["line"]), spans)
            total = sums.setdefault((part, parent), [0.0, 0.0])
            total[0] += 1
            total[1] += period
            parent = ""
    rows = [(*key, *total) for key, total in sums.items()]
    return pd.DataFrame(rows, columns=["kernel", "parent", "samples", "period"])


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
            raise ToolError(f"perf script cannot tell source lines of {file.name}", "is addr2line (binutils) here?")
