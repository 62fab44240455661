"""The resource model: a node from one memory domain, cycles of kernels, kernels ranked at scale, and speed.

As a user gets it: files are imported, fitted with ``--platform`` and predicted.
"""

from __future__ import annotations

import re
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.methods.engine import Engine
from benchmarks.settings import Settings, Skipped
from benchmarks.sources import homme
from benchmarks.table import markdown
from ranksight.core.errors import InputError
from ranksight.core.experiment import Experiment, Run
from ranksight.core.reading import READERS
from ranksight.model.answers import Answer
from ranksight.model.fit import fit

TITLE = "Resource model"
PLATFORM = "icelake-8360y"
PROGRAMS = ("clvleaf", "lbm", "tealeaf")
ASKED = 72
TRAINED = {
    "1..4": range(1, 5),
    "1..9": range(1, 10),
    "1..12": range(1, 13),
    "1..18": range(1, 19),
    "1..36": range(1, 37),
    "even to 18": range(2, 19, 2),
    "8..18": range(8, 19),
    "1, 2, 4, 8, 16": (1, 2, 4, 8, 16),
    "1, 4, 9, 18": (1, 4, 9, 18),
}
EVIDENCE = (("counters, platform", None, PLATFORM), ("time, platform", "time", PLATFORM), ("time alone", "time", None))
SIZE = 150
SCALE = 8
"""How many times more ranks than were measured a ranking is asked at, at least."""
TOP = 5
KERNELS, METRICS, POINTS = 500, 8, 100
AHEAD = 64


def run(settings: Settings) -> str:
    """All sections."""
    if not settings.data.is_dir():
        raise Skipped(f"the measurements are not at {settings.data}")
    with tempfile.TemporaryDirectory() as folder:
        parts = [
            _node(settings, Path(folder)),
            _cubes(settings, Path(folder)),
            _stated(settings, Path(folder)),
            _sizes(settings, Path(folder)),
            _ranking(settings),
            _speed(Path(folder)),
        ]
    return "\n\n".join(parts)


def _likwid(path: Path, files: dict[float, Path], parameter: str, metric: str | None = None) -> Experiment:
    """An experiment of LIKWID's files, or of one metric of them; those that hold access errors are left out."""
    experiment = Experiment.create(path, path.name, [parameter])
    for value, file in sorted(files.items()):
        try:
            readings = list(READERS["likwid"].read(file))
        except InputError:
            continue
        for number, reading in enumerate(readings):
            if reading.counters is not None:
                table = reading.counters if metric is None else reading.counters[["kernel", "rank", metric]]
                experiment.add(Run({parameter: value}, number, "likwid"), table)
    return experiment


def _node(settings: Settings, folder: Path) -> str:
    source = settings.data / "counters" / "spechpc_likwid_icelake" / "MEM_DP"
    files = {
        name: {float(re.findall(r"Rank(\d+)-", f.name)[0]): f for f in source.glob(f"{name}-*")} for name in PROGRAMS
    }
    true = {name: _times(_likwid(folder / name, files[name], "ranks")) for name in PROGRAMS}
    rows: list[list[object]] = []
    for evidence_of, metric, platform in EVIDENCE:
        for which, ranks in TRAINED.items():
            errors: list[float] = []
            inside: list[bool] = []
            last: list[object] = []
            for name in PROGRAMS:
                place = folder / f"{name} {which} {evidence_of}"
                known = _likwid(place, {p: f for p, f in files[name].items() if p in ranks}, "ranks", metric)
                held = [p for p in true[name] if p not in ranks]
                given = fit(known, platform=platform).predict(ranks=held, metrics=["time"])
                answers = {
                    p: a for p, a in zip(held, (a for a in given.answers if a.kernel is None), strict=True) if a.ok
                }
                errors += [abs(100 * (a.value / true[name][p] - 1)) for p, a in answers.items()]
                inside += [a.lower <= true[name][p] <= a.upper for p, a in answers.items()]
                last.append(_last(answers.get(float(ASKED)), true[name][ASKED]))
            share = 100 * len(errors) / sum(sum(p not in ranks for p in true[name]) for name in PROGRAMS)
            most = np.quantile(errors, 0.9)
            rows.append([f"{which}, {evidence_of}", *last, share, np.median(errors), most, 100 * np.mean(inside)])
    heads = [*PROGRAMS, "predicted, %", "median of all held, %", "90 % below, %", "covered, %"]
    return (
        "### A node from one memory domain\n\nSPEChpc 2021 tiny on Ice Lake, whole-program counters of LIKWID's group "
        "MEM_DP; a domain has 18 cores, the node four. For each program the error at 72 ranks in % with the upper end "
        "of the interval, in italics where it misses the measurement; a dash where the answer is `insufficient`. The "
        "other columns are of all rank counts not trained on and predicted, of the three programs together.\n\n"
        + markdown(["trained on", *heads], rows)
    )


def _cubes(settings: Settings, folder: Path) -> str:
    """Kernels of LULESH on more ranks of one node."""
    source = settings.data / "counters" / "lulesh_likwid_icelake" / "ranks"
    files = {float(re.findall(r"_(\d+)\.csv", f.name)[0]): f for f in source.glob("*.csv")}
    last = max(files)
    true = _likwid(folder / "cubes true", {last: files[last]}, "ranks")
    table = true.table(true.runs[0], "counters")
    assert table is not None
    measured = table.groupby("kernel", observed=True)["time"].max()
    known = _likwid(folder / "cubes", {p: f for p, f in files.items() if p < last}, "ranks")
    before = known.table(known.runs[-1], "counters")
    assert before is not None
    repeated = np.abs(100 * (before.groupby("kernel", observed=True)["time"].max() / measured - 1))
    rows: list[list[object]] = []
    for evidence, platform in (("counters, platform", PLATFORM), ("counters", None)):
        answers = fit(known, platform=platform).predict(ranks=last, metrics=["time"]).answers
        mine = [a for a in answers if a.kernel is not None]
        errors = [abs(100 * (a.value / measured[a.kernel] - 1)) for a in mine]
        inside = [a.lower <= measured[a.kernel] <= a.upper for a in mine]
        share = 100 * np.mean([a.ok for a in mine])
        rows.append([evidence, share, np.median(errors), max(errors), 100 * np.mean(inside), np.median(repeated)])
    trained = ", ".join(f"{p:g}" for p in sorted(files) if p < last)
    heads = ["evidence", "predicted, %", "median, %", "largest, %", "covered, %", "median of the last value, %"]
    return (
        f"### Times of kernels on more ranks of a node\n\nLULESH on Ice Lake, {len(measured)} kernels, weak scaling, "
        f"{trained} ranks, asked at {last:g}.\n\n" + markdown(heads, rows)
    )


def _stated(settings: Settings, folder: Path) -> str:
    """HOMME's main loop at larger problems, where the work per rank is stated."""
    table = pd.read_csv(settings.data / "scaling" / "homme_summit_qsize10.csv")
    table = table[table["ranks"] > 0]
    run = ["ne", "nnode", "job", "block"]
    names = table.groupby(run)["kernel"].transform(lambda each: each.str.contains("compose", case=False).any())
    table = table.assign(scheme=np.where(names, "semi-Lagrangian", "Eulerian"))
    table = table[table["kernel"].isin(homme.MAIN_LOOP)]
    rows: list[list[object]] = []
    for scheme, own in table.groupby("scheme"):
        known = Experiment.create(folder / f"homme {scheme}", "homme", ["ranks", "ne"])
        small = own[own["ne"] == homme.SMALL]
        for ranks, runs in small.groupby("ranks"):
            for number, seconds in enumerate(runs["wallmax"]):
                each = pd.DataFrame({"kernel": [homme.MAIN_LOOP[0]], "rank": -1, "time": [seconds]})
                known.add(Run({"ranks": float(str(ranks)), "ne": float(homme.SMALL)}, number, "gptl"), each)
        model = fit(known, work="6*ne*ne/ranks")
        for ne, larger in own[own["ne"] > homme.SMALL].groupby("ne"):
            true = larger.groupby("ranks")["wallmax"].median()
            asked = model.predict(ranks=[float(p) for p in true.index], ne=float(str(ne)), metrics=["time"])
            answers = [a for a in asked.answers if a.kernel is not None]
            errors = [abs(100 * (a.value / true[a.configuration["ranks"]] - 1)) for a in answers]
            inside = [a.lower <= true[a.configuration["ranks"]] <= a.upper for a in answers]
            most = f"{true.index.max():,.0f}"
            rows.append([scheme, f"ne{ne}", most, np.mean(errors), max(errors), 100 * np.mean(inside)])
    heads = ["scheme", "asked", "ranks up to", "mean, %", "largest, %", "covered, %"]
    return (
        "### Work per rank that is stated\n\nHOMME's main loop on Summit, measured at ne32 on 6 to 96 ranks, "
        "`fit --work '6*ne*ne/ranks'`, asked at larger problems.\n\n" + markdown(heads, rows)
    )


def _times(experiment: Experiment) -> dict[float, float]:
    """Time of the slowest rank by number of ranks."""
    tables = ((run.configuration["ranks"], experiment.table(run, "counters")) for run in experiment.runs)
    return {float(ranks): float(table["time"].max()) for ranks, table in tables if table is not None}


def _last(answer: Answer | None, true: float) -> str:
    """Error and upper end of the interval in %, in italics where the interval misses `true`."""
    if answer is None:
        return "–"
    text = f"{100 * (answer.value / true - 1):+.1f} (+{100 * (answer.upper / answer.value - 1):.0f})"
    return text if answer.lower <= true <= answer.upper else f"*{text}*"


def _sizes(settings: Settings, folder: Path) -> str:
    source = settings.data / "counters" / "lulesh_likwid_icelake" / "sizes"
    files = {float(re.findall(r"_(\d+)\.csv", f.name)[0]): f for f in source.glob("*.csv")}
    known = _likwid(folder / "lulesh", {n: f for n, f in files.items() if n < SIZE}, "size")
    (true,) = (r.counters for r in READERS["likwid"].read(files[SIZE]) if r.counters is not None)
    true = true.set_index("kernel")
    model = fit(known, platform=None)
    rows: list[list[object]] = []
    for metric in ("cycles", "time", "instructions"):
        answers = [a for a in model.predict(size=SIZE, metrics=[metric]).answers if a.kernel is not None]
        errors = np.array([abs(100 * (a.value / float(true.loc[a.kernel, metric]) - 1)) for a in answers])
        inside = np.mean([a.lower <= float(true.loc[a.kernel, metric]) <= a.upper for a in answers])
        order = np.argsort(errors)
        worst = answers[int(order[-1])].kernel
        rows.append([metric, float(np.median(errors)), errors[order[-1]], worst or "", errors[order[-2]], 100 * inside])
    header = ["metric", "median, %", "largest, %", "of", "next, %", "covered, %"]
    return (
        "### Cycles of kernels at another size\n\nLULESH on one core of Ice Lake, 22 kernels, edges 30 to 120, asked at"
        " 150.\n\n" + markdown(header, rows)
    )


def _ranking(settings: Settings) -> str:
    tasks = [t for t in homme.load(settings.data) if t.parameters == ("elements_per_rank",)]
    table = pd.read_csv(settings.data / "scaling" / "homme_summit_qsize10.csv")
    most = float(table.loc[table["ne"] == homme.SMALL, "ranks"].max())
    answers = Engine().answer(tasks)
    found: dict[tuple[str, float, float], list[tuple[float, float]]] = defaultdict(list)
    for task, answer in zip(tasks, answers, strict=True):
        assert task.hidden_targets is not None
        scheme = task.name.split(", ")[1]
        for at, (ranks, ne) in enumerate(task.hidden_targets):
            if ranks >= SCALE * most:
                found[scheme, ne, ranks].append((float(answer.value[at]), float(task.measured[at])))
    overlaps = []
    for values in found.values():
        said, true = np.array(values).T
        if len(said) > TOP:
            overlaps.append(len(set(np.argsort(-said)[:TOP]) & set(np.argsort(-true)[:TOP])) / TOP)
    share, all_five = 100 * np.mean(overlaps), 100 * np.mean(np.array(overlaps) == 1)
    return (
        f"### Kernels ranked at scale\n\nHOMME on Summit, all timers, trained on ne32 with 6 to {most:g} ranks. At "
        f"{len(overlaps)} configurations with {SCALE} times more ranks and beyond (up to 27,600), {share:.0f} % of the "
        f"{TOP} largest timers are among the {TOP} largest predicted; all of them at {all_five:.0f} % of the "
        "configurations."
    )


def _speed(folder: Path) -> str:
    """CPU seconds of a model of many kernels and metrics."""
    experiment = Experiment.create(folder / "speed", "many", ["ranks"])
    rng = np.random.default_rng(3)
    names = ("time", "cycles", "instructions", "loads", "stores", "bytes_mem_read", "bytes_mem_written", "flops")
    scale, power = rng.uniform(1e6, 1e9, KERNELS), rng.choice([0.0, 0.5, 1.0], KERNELS)
    for ranks in (2, 4, 8, 16, 32):
        work = scale * float(ranks) ** -power * np.exp(rng.normal(0, 0.001, KERNELS))
        columns = {name: work * (2e-10 if name == "time" else 1.0 + at) for at, name in enumerate(names[:METRICS])}
        table = pd.DataFrame({"kernel": [f"k{k}" for k in range(KERNELS)], "rank": 0, **columns})
        experiment.add(Run({"ranks": ranks}, collector="made-up"), table)
    fit(experiment, ["flops"], platform=None)
    start = time.process_time()
    model = fit(experiment, platform=None)
    fitted = time.process_time() - start
    points = np.arange(2.0, 2.0 + POINTS)[:, None]
    model.predict_at(points[:1])
    start = time.process_time()
    prediction = model.predict_at(points)
    predicted = time.process_time() - start
    start = time.process_time()
    model.diagnose(ranks=AHEAD).verdicts()
    diagnosed = time.process_time() - start
    rows: list[list[object]] = [
        [f"{KERNELS} kernels x {METRICS} metrics", fitted, predicted, len(prediction.answers), diagnosed]
    ]
    header = ["what", "fit, CPU s", f"predict {POINTS} configurations, CPU s", "answers", "verdicts of one, CPU s"]
    return "### Speed\n\nOne parameter with five values.\n\n" + markdown(header, rows)
