"""Ranks that are teams of threads: cores share domains and clock, counts are means over cores."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.cli.main import main
from ranksight.core.experiment import Experiment, Run, read
from ranksight.model.fit import fit
from ranksight.model.fitted_model import Model
from ranksight.model.series.reducing import series_from_experiment

NODE, CORES = "icelake-8360y", 18
CLOCK, CORE, DOMAIN = 2.4e9, 16e9, 80e9
RUNS = ((1, 1), (2, 1), (4, 1), (8, 1), (18, 1), (1, 2), (2, 2), (6, 2), (9, 2), (1, 6), (2, 6), (3, 6))
WORK, TRAFFIC = 4e13, 1e14


def truth(ranks: int, threads: int) -> tuple[float, float, float]:
    """Time, instructions and bytes of a rank, in a program that fills the bandwidth of a memory domain."""
    cores = ranks * threads
    core = (WORK * 0.5 / CLOCK + TRAFFIC / CORE) / cores
    busy = min(cores, CORES) * TRAFFIC / cores / DOMAIN
    return (core**6 + busy**6) ** (1 / 6), WORK / ranks, TRAFFIC / ranks


def hybrid(place: Path, by_thread: bool = False) -> Experiment:
    """Counts of ranks, as tools that follow a process have them, or with a row for each thread."""
    made = Experiment.create(place / "hybrid.exp", "hybrid", ["ranks", "threads"])
    for ranks, threads in RUNS:
        time, work, moved = truth(ranks, threads)
        rows = ranks * threads if by_thread else ranks
        part = ranks / rows
        table = {
            "kernel": "sweep", "rank": np.arange(rows), "time": time, "instructions": work * part,
            "cycles": time * CLOCK * threads * part, "bytes_mem_read": moved * part * 2 / 3,
            "bytes_mem_written": moved * part / 3,
        }  # fmt: skip
        made.add(Run({"ranks": ranks, "threads": threads}, collector="made"), pd.DataFrame(table))
    return made


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    place = tmp_path_factory.mktemp("hybrid")
    fit(hybrid(place), platform=NODE).save(place / "m.json")
    return Model.load(place / "m.json")


def test_cores_share_a_domain_whether_ranks_or_threads(model: Model) -> None:
    for ranks, threads in ((36, 1), (12, 6), (4, 18), (72, 1), (5, 3)):
        answers = model.predict(ranks=ranks, threads=threads, metrics=["time"]).answers
        time = next(each for each in answers if each.kernel == "sweep")
        assert time.value == pytest.approx(truth(ranks, threads)[0], rel=0.06)
        assert time.lower <= truth(ranks, threads)[0] <= time.upper


def test_counts_are_means_over_cores(model: Model) -> None:
    (answer,) = (a for a in model.predict(ranks=4, threads=9, metrics=["instructions"]).answers if a.kernel)
    assert answer.value == pytest.approx(WORK / 36, rel=0.01)


def test_rows_of_threads_are_means_already(tmp_path: Path) -> None:
    each, every = (series_from_experiment(hybrid(tmp_path / name, name == "threads")) for name in ("ranks", "threads"))
    np.testing.assert_allclose(each.values, every.values, rtol=1e-12)


def test_the_ranks_that_fill_a_domain_follow_their_threads(model: Model) -> None:
    few, many = (model.diagnose(ranks=72 // team, threads=team).saturation().to_dict("records") for team in (1, 3))
    assert few[0]["cores"] == many[0]["cores"] == CORES
    assert few[0]["ranks"] <= many[0]["ranks"] < few[0]["ranks"] + 3
    assert many[0]["ranks"] % 3 == 0


def test_teams_that_do_not_divide_a_domain_are_one_note(
    model: Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model.save(tmp_path / "m.json")
    assert main(["predict", str(tmp_path / "m.json"), "--ranks", "4", "--threads", "5,6", "--format", "json"]) == 0
    (note,) = (text for text in json.loads(capsys.readouterr().out)["notes"] if "threads" in text)
    assert note.startswith("5 threads do not divide the 18 cores")


def test_an_uneven_team_is_named(tmp_path: Path) -> None:
    made = Experiment.create(tmp_path / "e", "teams", ["ranks", "threads"])
    for ranks in (1, 2, 4, 8):
        table = pd.DataFrame({"kernel": ["even", "uneven"], "rank": -1, "time": 8.0 / ranks})
        rows = [
            {"kernel": kernel, "rank": rank, "thread": str(thread), "time": time}
            for rank in range(ranks)
            for kernel, times in (("even", (2.0, 2.0)), ("uneven", (1.0, 3.0)))
            for thread, time in enumerate(times)
        ]
        run = Run({"ranks": ranks, "threads": 2}, collector="made")
        made.add(run, table, tables={"threads": pd.DataFrame(rows)})
    found = fit(made).diagnose(ranks=16)
    named = found.teams().set_index("kernel")
    assert named["ratio"].to_dict() == pytest.approx({"uneven": 1.5, "even": 1.0})
    assert named.loc["uneven", ["ranks", "threads", "thread"]].tolist() == [8, 2, "1"]
    assert named.loc["uneven", "lost"] == pytest.approx(0.5 / 3, rel=0.01)
    assert found.advice().set_index("kind").loc["team imbalance", "kernel"] == "uneven"


@pytest.mark.slow
def test_a_real_hybrid_program(tmp_path: Path) -> None:
    if shutil.which("mpicc") is None or shutil.which("mpirun") is None or shutil.which("valgrind") is None:
        pytest.skip("mpicc, mpirun or valgrind is not found")
    source, program = Path(__file__).parents[1] / "helpers" / "hybrid.c", tmp_path / "hybrid"
    subprocess.run(["mpicc", "-O2", "-g", "-fopenmp", "-o", str(program), str(source)], check=True)
    place = str(tmp_path / "h.exp")
    command = ["mpirun", "-n", "{ranks}", "-x", "OMP_NUM_THREADS={threads}", str(program), "96", "10"]
    options = ["--ranks", "1,2", "--threads", "1,2,4", "--collector", "callgrind", "-o", place, "--quiet"]
    assert main(["measure", *options, "--", *command]) == 0
    answers = fit(read(place)).predict(ranks=4, threads=8, kernels=["sweep"], metrics=["instructions"]).answers
    one = series_from_experiment(read(place), ("instructions",))
    row = one.kernels.index("sweep")
    alone = one.values[row, [tuple(point) for point in one.points.tolist()].index((1.0, 1.0)), 0]
    assert answers[0].value == pytest.approx(alone / 32, rel=0.05)


def test_a_table_says_whether_counts_are_of_a_rank_or_of_a_core(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sums over eight threads passed for a clock of 19 GHz, and counts of cores were divided once more."""
    monkeypatch.chdir(tmp_path)
    predicted = []
    for name, stated in (("rank", []), ("core", ["--values", "core"])):
        lines = ["ranks,threads,time,instructions,cycles"]
        for ranks, threads in ((1, 1), (1, 8), (2, 8), (4, 8), (8, 8), (4, 4)):
            time, work, _ = truth(ranks, threads)
            of = 1 if name == "rank" else threads
            lines.append(f"{ranks},{threads},{time:.9g},{work / of:.9g},{time * CLOCK * threads / of:.9g}")
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")
        options = ["--parameter", "ranks", "--parameter", "threads", "-o", f"{name}.exp", *stated]
        assert main(["import", "csv", f"{name}.csv", *options]) == 0
        assert main(["fit", f"{name}.exp", "--platform", NODE]) == 0
        capsys.readouterr()
        asked = ["--ranks", "4", "--threads", "8", "--metric", "instructions,cycles,time", "--format", "json"]
        main(["predict", f"{name}.exp.model.json", *asked])
        predicted.append({row["metric"]: row["value"] for row in json.loads(capsys.readouterr().out)["predictions"]})
    assert predicted[0] == pytest.approx(predicted[1], rel=1e-6)
    assert predicted[0]["instructions"] == pytest.approx(WORK / 32, rel=0.01)
