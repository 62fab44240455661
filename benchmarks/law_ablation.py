"""What every registered law of kernels' times is worth: each switched off in turn.

A law whose absence shows on none of the groups has no place. Laws of other packages that are installed are in it too.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from benchmarks.ablation import replaced
from benchmarks.known_laws import MACHINE, SEED, Answer, answers
from benchmarks.resource_model import PLATFORM, PROGRAMS, _likwid, _times
from benchmarks.settings import Settings
from benchmarks.table import markdown
from ranksight.model.fit import fit
from ranksight.model.laws.law import registered

COUNT = 4
"""Random programs of each group."""
VARIED = "--vary=cpi,bf,clock,bandwidth,others,spin,comm"
DOMAIN = 18
"""Ranks of one memory domain of :data:`benchmarks.resource_model.PLATFORM`."""
Group = Callable[[], list[Answer]]


def section(settings: Settings) -> str:
    """A table: median error of kernels in percent and gross errors of each group, without one law after the other."""
    with tempfile.TemporaryDirectory() as folder:
        groups = dict(_groups(settings, Path(folder)))
        if not groups:
            return ""
        rows: list[list[object]] = [["none", *_cells(groups)]]
        rows += [[law, *_cells(groups, law)] for law in registered()]
    return (
        "Without one law of kernels' times: median error of kernels in percent at 2 to 16 times the ranks of the runs, "
        "percent answered, and answers over 25 % off and outside their interval. A law whose absence shows nowhere "
        "has no place.\n\n" + markdown(["without", *groups], rows)
    )


def _cells(groups: dict[str, Group], without: str = "") -> list[str]:
    """A cell of every group with one law switched off."""
    with replaced({"laws.law.SWITCHED_OFF": frozenset({without} - {""})}):
        return [_cell(group()) for group in groups.values()]


def _cell(found: list[Answer]) -> str:
    size = 100 * np.abs([each.error for each in found])
    ok, inside = (np.array([getattr(each, name) for each in found]) for name in ("ok", "inside"))
    return f"{np.median(size):.2g}, {100 * ok.mean():.0f} %, {int(((size > 25) & ok & ~inside).sum())}"


def _groups(settings: Settings, folder: Path) -> Iterable[tuple[str, Group]]:
    """Programs with counters, and the same without stalls; the programs of a node from one memory domain."""
    generator = settings.data.parent / "truth" / "programs.py"
    if generator.is_file():
        place = folder / "programs"
        count = str(1 if settings.quick else COUNT)
        command = [sys.executable, str(generator), str(place), "--seed", SEED, "--programs", count, VARIED]
        subprocess.run(command, check=True)
        folders = sorted(entry for entry in place.iterdir() if (entry / "truth.csv").is_file())
        yield "all counters", lambda: _programs(folders, ())
        yield "no stalls counted", lambda: _programs(folders, ("STALL",))
    source = settings.data / "counters" / "spechpc_likwid_icelake" / "MEM_DP"
    if source.is_dir():
        yield "further domains", lambda: _domains(source)


def _programs(folders: list[Path], dropped: tuple[str, ...]) -> list[Answer]:
    found = []
    for folder in folders:
        with tempfile.TemporaryDirectory() as copy:
            for name in ("truth.csv", "counters.csv"):
                (Path(copy) / name).write_bytes((folder / name).read_bytes())
            found += [each for each in answers(Path(copy), MACHINE, dropped) if not each.whole]
    return found


def _domains(source: Path) -> list[Answer]:
    found = []
    for name in PROGRAMS:
        files = {float(f.name.partition("Rank")[2].partition("-")[0]): f for f in source.glob(f"{name}-*")}
        with tempfile.TemporaryDirectory() as copy:
            true = _times(_likwid(Path(copy) / "true", files, "ranks"))
            known = _likwid(Path(copy) / "known", {p: f for p, f in files.items() if p <= DOMAIN}, "ranks")
            asked = sorted(p for p in true if p > DOMAIN)
            said = fit(known, platform=PLATFORM).predict(ranks=asked, metrics=["time"]).answers
        for each in said:
            value = true[each.configuration["ranks"]]
            inside = bool(each.lower <= value <= each.upper)
            found.append(Answer(False, each.value / value - 1, each.upper / each.lower, inside, each.ok, np.nan))
    return found
