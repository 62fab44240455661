"""Predictions on machines that a program never ran on: SPEChpc, published strong scaling, a simulated core.

As a user gets it: counters or times of one machine, a description of both, and a domain, one node count or nothing
measured on the other. Nothing is learned from the programs that are asked.
"""

from __future__ import annotations

import csv
import itertools
import json
import re
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.resource_model import _likwid, _times
from benchmarks.settings import Settings, Skipped
from benchmarks.table import markdown
from ranksight.core.experiment import WHOLE, Experiment, Run
from ranksight.model.fit import fit
from ranksight.model.fitted_model import Model
from ranksight.model.machine.anchor import measured_there, on, with_runs
from ranksight.model.series.reducing import Series, series_from_experiment
from ranksight.platforms import Platform, load

TITLE = "Another machine"
HERE, THERE = "icelake-8360y", "sapphirerapids-8470"
FOLDERS = {HERE: "spechpc_likwid_icelake", THERE: "spechpc_likwid_sapphirerapids"}
NODE, DOMAIN, NODE_HERE, DOMAIN_HERE = 104.0, 13.0, 72.0, 18.0
EVIDENCE = {"no run there": (), "1..13 ranks there": tuple(range(1, 14)), "13 ranks there": (13,)}
PAIRS = 240
TOTALS = ("Total", "CP2K", "Iteration")
"""Timers that are the whole program."""
COUNTERS = {
    "INST": "instructions",
    "CYC": "cycles",
    "STALL": "stall_cycles",
    "L1": "loads_l1",
    "L2": "loads_l2",
    "L3": "loads_l3",
    "DRAM": "loads_mem",
    "FLOPS": "flops_dp",
    "time": "time",
}
WIDTHS = {"simulated": 6, "simulated_b": 4}
"""Instructions that each simulated core issues a cycle."""
RUNS_THERE = {"no run there": (), "1 rank there": (1,), "64 ranks there": (64,), "1, 8, 64 ranks there": (1, 8, 64)}


@dataclass
class Score:
    """Errors in %, ends of intervals, and what was inside."""

    errors: list[float] = field(default_factory=list)
    inside: list[bool] = field(default_factory=list)
    ratios: list[float] = field(default_factory=list)

    def add(self, value: float, lower: float, upper: float, true: float) -> None:
        """One prediction against the truth."""
        self.errors.append(100 * (value / true - 1))
        self.inside.append(lower <= true <= upper)
        self.ratios.append(upper / lower)

    def row(self) -> list[object]:
        """Median and largest error in %, covered in %, and the median ratio of the ends."""
        size = np.abs(self.errors)
        return [
            float(np.median(size)),
            float(size.max()),
            100 * float(np.mean(self.inside)),
            float(np.median(self.ratios)),
        ]


HEADS = ("median, %", "largest, %", "covered, %", "upper / lower")


def run(settings: Settings) -> str:
    """All sections."""
    if not settings.data.is_dir():
        raise Skipped(f"the measurements are not at {settings.data}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        return "\n\n".join([_spechpc(settings, folder), _pairs(settings, folder), _simulated(settings, folder)])


def _asked(model: Model, parameter: str, values: Sequence[float]) -> dict[float, tuple[float, float, float]]:
    """Value and ends of the program's time at each value."""
    answers = (a for a in model.predict({parameter: values}, metrics=["time"]).answers if a.kernel is None)
    return {float(a.configuration[parameter]): (a.value, a.lower, a.upper) for a in answers}


def _at(series: Series, values: Sequence[float]) -> Series:
    """The configurations of one parameter at some of its values."""
    keep = np.flatnonzero(np.isin(series.points[:, 0], values))
    return series.at(keep)


def _programs(settings: Settings) -> dict[str, dict[str, dict[float, Path]]]:
    """Files by program, machine and ranks, of the programs that both machines have."""
    found: dict[str, dict[str, dict[float, Path]]] = defaultdict(lambda: defaultdict(dict))
    for machine, folder in FOLDERS.items():
        for file in (settings.data / "counters" / folder / "MEM_DP").glob("*.txt"):
            if match := re.match(r"(\w+?)-\w*?Rank(\d+)-", file.name):
                found[match[1]][machine][float(match[2])] = file
    return {name: held for name, held in sorted(found.items()) if set(held) == set(FOLDERS)}


def _spechpc(settings: Settings, folder: Path) -> str:
    programs = _programs(settings)
    here, there, models = {}, {}, {}
    for name, files in programs.items():
        known = _likwid(folder / f"{name} here", files[HERE], "ranks")
        here[name], models[name] = _times(known), fit(known, platform=HERE)
        there[name] = _likwid(folder / f"{name} there", files[THERE], "ranks")
    true = {name: _times(experiment) for name, experiment in there.items()}
    rows: list[list[object]] = [_fixed(here, true), _by_domains(here, true)]
    for evidence, ranks in EVIDENCE.items():
        node, every, last = Score(), Score(), []
        for name, model in models.items():
            series = measured_there(model, there[name])
            known = with_runs(model, _at(series, ranks), load(THERE)) if ranks else model
            found = _asked(on(known, THERE), "ranks", sorted(true[name]))
            node.add(*found[NODE], true[name][NODE])
            last.append(f"{node.errors[-1]:+.1f}")
            for p in true[name]:
                if p not in ranks:
                    every.add(*found[p], true[name][p])
        rows.append([evidence, *last, *node.row(), *every.row()[:3]])
    heads = [*programs, *HEADS, "every count: median, %", "largest, %", "covered, %"]
    return (
        "### A node of Sapphire Rapids from Ice Lake's counters\n\nSPEChpc 2021 tiny, 1 to 72 ranks on Ice Lake with "
        "LIKWID's group MEM_DP, 104 ranks on Sapphire Rapids; errors there in % by program, and of every rank count "
        "that was not measured there. The fixed ratio is that of the other programs, the ratio of domains that of 13 "
        "to 18 ranks.\n\n" + markdown(["evidence", *heads], rows)
    )


def _fixed(here: Mapping[str, dict[float, float]], there: Mapping[str, dict[float, float]]) -> list[object]:
    """Errors of one ratio of full nodes, of the other programs."""
    ratio = {name: np.log(there[name][NODE] / here[name][NODE_HERE]) for name in here}
    errors = [100 * np.expm1(np.mean([ratio[o] for o in ratio if o != name]) - ratio[name]) for name in ratio]
    return _simple("one ratio of the other programs", errors)


def _by_domains(here: Mapping[str, dict[float, float]], there: Mapping[str, dict[float, float]]) -> list[object]:
    """Errors of the ratio of full domains times the ratio of full nodes here."""
    said = [here[n][NODE_HERE] * (there[n][DOMAIN] / here[n][DOMAIN_HERE]) * (4 / 8) for n in here]
    errors = [100 * (value / there[n][NODE] - 1) for n, value in zip(here, said, strict=True)]
    return _simple("ratio of full domains", errors)


def _simple(name: str, errors: Sequence[float]) -> list[object]:
    size = np.abs(errors)
    return [name, *(f"{e:+.1f}" for e in errors), float(np.median(size)), float(size.max()), *["–"] * 5]


def _pairs(settings: Settings, folder: Path) -> str:
    """Strong scaling over nodes: the curve on one machine and one node count on the other."""
    source = settings.data / "scaling" / "archer"
    known_curves = curves(source)
    pairs = [(a, b) for a, b in itertools.permutations(known_curves, 2) if a[0] == b[0] and a[1] != b[1]]
    pairs = [
        (a, b) for a, b in pairs if len(known_curves[a]) >= 3 and len(set(known_curves[a]) & set(known_curves[b])) >= 3
    ]
    order = np.random.default_rng(1).permutation(len(pairs))[: PAIRS // (6 if settings.quick else 1)]
    models: dict[tuple[str, ...], Model] = {}
    rows: list[list[object]] = []
    for place in ("fewest", "middle"):
        score, simple, better = Score(), [], []
        for at in order.tolist():
            a, b = pairs[at]
            both = sorted(set(known_curves[a]) & set(known_curves[b]))
            known = both[0 if place == "fewest" else len(both) // 2]
            if a not in models:
                models[a] = fit(_written(folder / f"curve {len(models)}", known_curves[a]), platform=_unknown("here"))
            runs = _written(folder / f"{place} {at}", {known: known_curves[b][known]})
            there = _unknown("there")
            model = on(with_runs(models[a], series_from_experiment(runs, ["time"]), there), there)
            asked = [n for n in both if n != known]
            found = _asked(model, "nodes", asked)
            mine, theirs = [], []
            for n in asked:
                score.add(*found[n], known_curves[b][n])
                mine.append(abs(np.log(found[n][0] / known_curves[b][n])))
                theirs.append(
                    abs(
                        np.log(
                            known_curves[a][n] * known_curves[b][known] / known_curves[a][known] / known_curves[b][n]
                        )
                    )
                )
            simple += theirs
            better.append(np.mean(mine) < np.mean(theirs))
        rows.append([f"{place} shared node count", *score.row(), 100 * np.median(simple), 100 * np.mean(better)])
    return (
        "### Times alone, one node count measured there\n\nPublished strong scaling of GROMACS, OpenSBLI and CP2K "
        f"under labels of machines and builds, {len(order)} pairs drawn from {len(pairs)}; machines are not described. "
        "The simple method is the ratio at that count.\n\n"
        + markdown(["measured there", *HEADS, "ratio: median, %", "pairs that are better, %"], rows)
    )


def curves(source: Path) -> dict[tuple[str, ...], dict[float, float]]:
    """Seconds by nodes, of each application, machine and configuration."""
    found = {}
    for entry in json.loads((source / "index.json").read_text(encoding="utf-8")):
        table = pd.read_csv(source / entry["file"])
        whole = table[table["kernel"].isin(TOTALS)]
        if len(whole):
            times = whole.groupby("nodes")["time"].median()
            found[entry["app"], entry["env"], entry["config"]] = {float(n): float(t) for n, t in times.items()}
    return found


def _written(path: Path, curve: Mapping[float, float]) -> Experiment:
    found = Experiment.create(path, path.name, ["nodes"])
    for nodes, seconds in curve.items():
        found.add(Run({"nodes": nodes}, 0, "table"), pd.DataFrame({"kernel": [WHOLE], "rank": [0], "time": [seconds]}))
    return found


def _unknown(name: str) -> Platform:
    return replace(load("generic"), name=name)


def _simulated(settings: Settings, folder: Path) -> str:
    """Kernels on a simulated core, from one configuration of it to another."""
    truth = settings.data.parent / "truth"
    names = ("simulated", "simulated_b")
    if not all((truth / name / "machine.toml").is_file() for name in names):
        return f"### A simulated core\n\nSkipped: {truth} holds no simulations."
    machines = {name: load(truth / name / "machine.toml") for name in names}
    wide = {
        name: replace(each, layout=replace(each.layout, issue_width=WIDTHS[name])) for name, each in machines.items()
    }
    runs = {name: _of_table(folder / name, truth / name / "00" / "counters.csv") for name in names}
    rows: list[list[object]] = []
    for (one, other), described in itertools.product(itertools.permutations(names), (machines, wide)):
        model = fit(runs[one], platform=described[one])
        with (truth / other / "00" / "truth.csv").open(encoding="utf-8") as stream:
            true = {(float(r["ranks"]), r["kernel"]): float(r["time"]) for r in csv.DictReader(stream)}
        series = series_from_experiment(runs[other], ["time"])
        for evidence, ranks in RUNS_THERE.items():
            known = with_runs(model, _at(series, ranks), described[other]) if ranks else model
            asked = sorted({p for p, _ in true if p not in ranks})
            score = Score()
            for a in on(known, described[other]).predict(ranks=asked, metrics=["time"]).answers:
                if a.kernel is not None:
                    score.add(a.value, a.lower, a.upper, true[float(a.configuration["ranks"]), a.kernel])
            width = ", width stated" if described is wide else ""
            rows.append([f"{one} to {other}{width}, {evidence}", *score.row()])
    return (
        "### A simulated core in two configurations\n\nFive loop kernels over 1 to 1,024 ranks; caches, latencies, "
        "clock and width differ; the width (6 and 4 instructions a cycle) is in the description or is not.\n\n"
        + markdown(["kernels", *HEADS], rows)
    )


def _of_table(path: Path, file: Path) -> Experiment:
    table = pd.read_csv(file)
    found = Experiment.create(path, path.name, ["ranks"])
    kernels = table[table["kernel"] != "(whole)"].rename(columns=COUNTERS)
    for (ranks, repetition), rows in kernels.groupby(["ranks", "rep"]):
        counters = rows[["kernel", *COUNTERS.values()]].assign(rank=0)
        found.add(Run({"ranks": float(ranks)}, int(repetition), "table"), counters)
    return found
