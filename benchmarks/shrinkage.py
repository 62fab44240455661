"""The prior of growth beyond one memory domain, :data:`ranksight.model.priors.GROWTH_KEPT`, left to other programs.

Every program is trained on one domain and asked for the other ones of the node, with several values of the prior. For
each program the value is the one with the smallest mean error of the other programs: the error at that value is what
nobody chose by the program itself.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.resource_model import PLATFORM, _likwid, _times
from benchmarks.settings import Settings, Skipped
from benchmarks.table import markdown
from ranksight.model.fit import fit
from ranksight.model.sharing import shared

TITLE = "Growth beyond one memory domain"
PROGRAMS = ("tealeaf", "clvleaf", "lbm", "soma", "weather", "sweep")
DOMAIN = 18
GRID = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Parts of the logarithmic growth that go on; 1 is none of this prior."""


def run(settings: Settings) -> str:
    """Errors by program and value, and those of the value that the other programs choose."""
    source = settings.data / "counters" / "spechpc_likwid_icelake" / "MEM_DP"
    if not source.is_dir():
        raise Skipped(f"the measurements are not at {source}")
    with tempfile.TemporaryDirectory() as folder:
        found = [_errors(source, Path(folder), name) for name in PROGRAMS]
    last, mean = np.array([[each[:, -1], np.abs(each).mean(axis=1)] for each in found]).transpose(1, 0, 2)
    rows: list[list[object]] = []
    for at, name in enumerate(PROGRAMS):
        others = np.delete(mean, at, axis=0).mean(axis=0)
        best = int(others.argmin())
        rows.append([name, *last[at], GRID[best], last[at, best], mean[at, best], mean[at, -1]])
    every = int(mean.mean(axis=0).argmin())
    heads = ["program", *(f"{value:g}" for value in GRID), "chosen by others", "error, %", "mean, %", "mean at 1, %"]
    return (
        f"SPEChpc 2021 tiny on Ice Lake, trained on 1 to {DOMAIN} ranks of one domain. Errors at the most ranks by the "
        "part of the growth that goes on; then the part that the other programs choose by their mean error over all "
        f"held-out ranks, the error at the most ranks with it, and mean errors. All programs together choose "
        f"{GRID[every]:g}; the prior is {shared.GROWTH_KEPT:g}.\n\n" + markdown(heads, rows)
    )


def _errors(source: Path, folder: Path, name: str) -> NDArray[np.float64]:
    """Errors in percent (g, p) of the law of shared bandwidth for each value of the prior and number of ranks."""
    files = {float(re.findall(r"Rank(\d+)-", file.name)[0]): file for file in source.glob(f"{name}-*")}
    true = _times(_likwid(folder / f"{name} true", files, "ranks"))
    known = _likwid(folder / name, {p: file for p, file in files.items() if p <= DOMAIN}, "ranks")
    law = fit(known, platform=PLATFORM).equation.sharing
    assert law is not None
    ranks = np.array(sorted(p for p in true if p > DOMAIN))
    measured = np.array([true[p] for p in ranks])
    found, usual = [], shared.GROWTH_KEPT
    try:
        for value in GRID:
            shared.GROWTH_KEPT = value
            found.append(100 * (np.exp(law.forecast(ranks[:, None], ranks[:, None]).time.centre[0]) / measured - 1))
    finally:
        shared.GROWTH_KEPT = usual
    return np.array(found)
