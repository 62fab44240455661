"""Code that a program runs natively and its simulated part does not reach, though calls and times look the same.

The native run is interrupted once a tick (``code_samples.h``); the simulation lists the code that it executed. A phase
that begins late between the same calls, and work of every tenth turn, show as samples in code that was not executed.
Libraries choose code by the processor, and a simulated one is another: samples of such code fall into the simulated
part too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

import numpy as np

from ranksight.core.arrays import Ints, Mask
from ranksight.core.errors import readable
from ranksight.core.records import dataclass
from ranksight.counters.objects import owner

SHARE = 0.01
"""Share of the samples from which code matters."""
FEWEST = 3
"""Samples of which code matters."""


@dataclass(frozen=True)
class Unseen:
    """Code of one rank that was not reached."""

    share: float  # of the rank's samples outside of MPI
    begins: int  # calls before the first of them


@dataclass(frozen=True)
class _Samples:
    before: Ints  # (n,): calls before each
    address: Ints  # (n,)
    objects: tuple[str, ...]  # (n,): names of files


def unseen(folder: Path, simulated: Mapping[int, int]) -> dict[int, Unseen]:
    """The ranks whose native run executed code for :data:`SHARE` of its time that the simulation did not.

    `simulated` (mapping of rank to int): calls of each rank up to the end of its simulated part.
    """
    found = {}
    for rank, calls in simulated.items():
        samples = _samples(folder / f"calls.{rank}.code")
        executed = next(folder.glob(f"sizes.{rank}.*.code"), None)
        if samples is None or executed is None:
            continue
        missed = _missed(samples, executed, calls)
        if missed.sum() >= max(FEWEST, SHARE * len(missed)):
            found[rank] = Unseen(float(missed.mean()), int(samples.before[missed].min()))
    return found


def own_objects(folder: Path, ranks: int) -> set[str]:
    """Names of the object files of the program that the native run was found in."""
    every = [_samples(folder / f"calls.{rank}.code") for rank in range(ranks)]
    paths = {path for samples in every if samples for path in samples.objects}
    return {_name(path) for path in paths if owner(path) not in ("mpi", "runtime", "system")}


def _missed(samples: _Samples, executed: Path, calls: int) -> Mask:
    """Which samples (n,) are in code of the program, or of its own libraries, that was not executed, and come after the
    simulated part in which such code of the same object is less frequent."""
    missed = np.zeros(len(samples.before), dtype=bool)
    names = np.array([_name(each) for each in samples.objects], dtype=object)
    late = samples.before >= calls
    ranges = _ranges(executed)
    for path in sorted(set(samples.objects)):
        if owner(path) in ("mpi", "runtime", "system"):
            continue
        of_object = names == _name(path)
        start, end = ranges.get(_name(path), (np.empty(0, np.int64),) * 2)
        at = np.searchsorted(start, samples.address, side="right") - 1
        inside = (at >= 0) & (samples.address < end[np.maximum(at, 0)]) if len(start) else np.zeros(len(late), bool)
        outside = of_object & ~inside
        within, after = (float((outside & part).sum() / max(part.sum(), 1)) for part in (~late, late))
        if within < after / 2:
            missed |= outside & late
    return missed


@lru_cache(maxsize=4096)
def _name(path: str) -> str:
    return Path(path).name


def _lines(file: Path) -> Iterable[list[str]]:
    with readable(file), file.open(encoding="utf-8", errors="replace") as stream:
        yield from (words for words in (line.rstrip("\n").split(" ", 2) for line in stream) if len(words) == 3)


def _samples(file: Path) -> _Samples | None:
    """The samples of a rank; None where there are none."""
    rows = list(_lines(file)) if file.exists() else []
    if not rows:
        return None
    before, address = np.array([int(row[0]) for row in rows]), np.array([int(row[1], 16) for row in rows])
    return _Samples(before, address, tuple(row[2] for row in rows))


def _ranges(file: Path) -> dict[str, tuple[Ints, Ints]]:
    """Of each object file's name the code that was executed: where it starts, rising, and what it reaches up to."""
    rows: dict[str, list[tuple[int, int]]] = {}
    for address, size, path in _lines(file):
        start = int(address, 16)
        rows.setdefault(_name(path), []).append((start, start + int(size)))
    found = {}
    for name, pairs in rows.items():
        start, end = np.array(sorted(pairs)).T
        found[name] = start, np.maximum.accumulate(end)
    return found
