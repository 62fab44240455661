"""The verb plan, end to end."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.analysis.planning import designs
from ranksight.cli._continuing import measure_lines, template_of
from ranksight.cli.main import main
from ranksight.core.experiment import Experiment, Run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("plan")
    made = Experiment.create(place / "heat.exp", "heat", ["ranks", "size"])
    generator = np.random.default_rng(0)
    for ranks in (1, 2, 4, 8):
        for size in (16, 24, 32):
            for repetition in range(2):
                share = size**3 / ranks
                rows = [
                    ("op", 1e-3 * share * generator.uniform(0.97, 1.03)),
                    ("halo", (2e-3 * ranks + 1e-3 * share ** (2 / 3)) * generator.uniform(0.97, 1.03)),
                ]
                table = pd.DataFrame([(k, -1, t) for k, t in rows], columns=["kernel", "rank", "time"])
                made.add(
                    Run(
                        {"ranks": ranks, "size": size}, repetition, "synthetic",
                        command=("mpirun", "-n", str(ranks), "./heat", f"--n={size}", "--steps", "4"),
                    ),
                    table,
                )  # fmt: skip
    assert main(["fit", str(place / "heat.exp"), "--quiet"]) == 0
    return place


def test_a_plan_as_people_read_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", str(folder / "heat.exp"), "--ranks", "512", "--size", "64", "--max-ranks", "64"]) == 0
    text = capsys.readouterr().out
    lines = text.splitlines()
    assert "time of the whole program at ranks 512, size 64, 90% interval" in lines[0]
    assert lines[-1].startswith("next: ranksight measure --ranks ")
    assert lines[-1].endswith(f"--reps 2 -o {folder / 'heat.exp'} -- mpirun -n {{ranks}} ./heat --n={{size}} --steps 4")
    assert all(len(line) <= 80 for line in lines if not line.startswith(("next:", "  ranksight ")))
    assert "powers-of-two (as measured) to 64" in text


def test_large_numbers_of_ranks_are_written_in_full(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", str(folder / "heat.exp"), "--ranks", "1048576", "--size", "32", "--max-ranks", "524288"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "at ranks 1048576, size 32" in text
    assert "to 524288," in text


def test_a_plan_for_machines(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(folder / "heat.exp.model.json")
    asked = ["plan", model, "--ranks", "384", "--size", "64", "--ranks-rule=6*n^2", "--budget", "1", "--format", "json"]
    assert main(asked) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["rules"]["ranks"] == {"rule": "6*n^2", "as_measured": False}
    assert 1 <= len(content["runs"]) <= 5
    ranks = {run["configuration"]["ranks"] for run in content["runs"]}
    assert ranks <= {6, 24, 54, 96, 150}
    assert content["core_hours"] == pytest.approx(sum(run["core_hours"] for run in content["runs"]))
    assert content["core_hours"] <= 1
    assert all(run["core_hours"] <= run["core_hours_upper"] for run in content["runs"])
    prices = [run["core_hours"] for run in content["runs"]]
    assert prices == sorted(prices)
    low, high = content["targets"][0]["interval"]
    after = content["targets"][0]["expected_interval"]
    assert low <= after[0] < after[1] <= high
    factors = [run["interval_factor"] for run in content["runs"]]
    assert factors == sorted(factors, reverse=True)
    # The model is next to its experiment, so the lines to measure are known.
    assert all(line.startswith("ranksight measure ") and "COMMAND" not in line for line in content["commands"])
    for run in content["runs"]:
        assert run["core_hours"] == pytest.approx(2 * run["seconds"] * run["configuration"]["ranks"] / 3600)


def test_a_plan_as_csv_for_one_kernel(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(folder / "heat.exp.model.json")
    assert main(["plan", model, "--ranks", "512", "--size", "32", "--kernel", "halo", "--format", "csv"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert (
        rows[0]
        == "ranks,size,repetitions,seconds,core_hours,core_hours_upper,core_hours_so_far,interval_factor,why,helps"
    )
    assert rows[1].endswith(",halo")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--ranks", "64"], 2, "no value is given for the parameter size"),
        (["--ranks", "64", "--size", "64", "--ranks-rule"], 2, "needs a rule"),
        (["--ranks", "64", "--size", "64", "--ranks-rule", "exec(n)"], 1, "in 'exec(n)'"),
        (["--ranks", "64", "--size", "64", "--nodes-rule", "cubes"], 1, "there is no parameter nodes"),
        (["--ranks", "64", "--size", "64", "--max-ranks", "2,4"], 2, "takes one number"),
        (["--ranks", "64", "--size", "64", "--max-cores", "2"], 1, "there is no parameter cores"),
        (["--ranks", "64", "--size", "64", "--budget", "-1"], 2, "not a number of core-hours"),
        (["--ranks", "64", "--size", "64", "--budget", "0"], 2, "not a number of core-hours"),
        (["--ranks", "64", "--size", "64", "--budget", "nan"], 2, "not a number of core-hours"),
        (["--ranks", "64", "--size", "64", "--nodes", "2"], 1, "nodes"),
        (["--ranks", "64", "--size", "64", "--ranks-rule", "100..200", "--max-ranks", "64"], 1, "has no value from"),
        (["--ranks", "64", "--size", "64", "--min-ranks", "50", "--max-ranks", "40"], 1, "is above"),
        (["--ranks", "64", "--size", "64", "--budget", "1e-12"], 4, "the cheapest run costs"),
        (["--ranks", "64", "--size", "64", "--runs", "0"], 2, "give at least 1"),
        (["--ranks", "64", "--size", "64", "--level", "1"], 2, "not a probability"),
        (["--ranks", "0", "--size", "64"], 1, "ranks are asked at 0"),
        (["--ranks", "1e9", "--size", "64"], 1, "ranks are asked at 1000000000"),
        (["--ranks", "1.5", "--size", "64"], 1, "ranks are asked at 1.5"),
        (["--ranks", "64", "--size", "0"], 1, "size is asked at 0, and was above zero"),
        (["--ranks", "64", "--size", "-4"], 1, "size is asked at -4, and was above zero"),
        (["--ranks", "64", "--size", "64", "--kernel", ""], 2, "--kernel names no kernel"),
        (["--ranks", "64", "--size", "64", "--kernel", "ops"], 1, "no kernel 'ops'"),
        (["--ranks", "64", "--size", "64", "--metric", "watts"], 1, "no metric 'watts'"),
    ],
)
def test_wrong_questions(
    folder: Path, capsys: pytest.CaptureFixture[str], words: list[str], code: int, said: str
) -> None:
    assert main(["plan", str(folder / "heat.exp.model.json"), *words]) == code
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_a_folder_that_is_no_experiment(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", str(tmp_path), "--ranks", "2"]) == 1
    assert "is not an experiment" in capsys.readouterr().err


def made(tmp_path: Path, commands: dict[tuple[int, int], str]) -> Experiment:
    found = Experiment.create(tmp_path / "e.exp", "e", ["ranks", "size"])
    for (ranks, size), command in commands.items():
        found.add(Run({"ranks": ranks, "size": size}, command=tuple(command.split())))
    return found


@pytest.mark.parametrize(
    ("commands", "wanted"),
    [
        (
            {(1, 8): "mpirun -n 1 ./a --n 8 --steps 8", (2, 16): "mpirun -n 2 ./a --n 16 --steps 8"},
            "mpirun -n {ranks} ./a --n {size} --steps 8",
        ),
        ({(4, 8): "srun -n4 ./a in.8x8", (8, 9): "srun -n8 ./a in.9x9"}, "srun -n{ranks} ./a in.{size}x{size}"),
        ({(4, 8): "srun -n 4 ./a 8", (8, 8): "srun -n 8 ./a 8"}, "srun -n {ranks} ./a {size}"),
        ({(4, 8): "srun -n 4 ./a 8 --steps 8", (8, 8): "srun -n 8 ./a 8 --steps 8"}, None),
        ({(1, 8): "mpirun -n 1 ./a 8", (2, 8): "mpirun -n 2 ./b 8"}, None),
        ({(1, 8): "mpirun -n 1 ./a", (2, 8): "mpirun -n 2 ./a"}, None),
        ({(1, 8): "mpirun -n 1 ./a 8", (2, 8): "mpirun -n 3 ./a 8"}, None),
    ],
)
def test_the_command_is_found_again(tmp_path: Path, commands: dict[tuple[int, int], str], wanted: str | None) -> None:
    found = template_of(made(tmp_path, commands))
    assert (None if found is None else " ".join(found)) == wanted


def test_lines_to_measure_group_what_differs_in_one_parameter() -> None:
    runs = [{"ranks": 64.0, "size": 8.0}, {"ranks": 2.0, "size": 16.0}, {"ranks": 8.0, "size": 8.0}]
    lines = measure_lines(runs, 3, Path("a b.exp"), ("mpirun", "-n", "{ranks}", "./my app", "{size}"))
    assert lines == [
        "ranksight measure --ranks 8,64 --size 8 --reps 3 -o 'a b.exp' -- mpirun -n {ranks} './my app' {size}",
        "ranksight measure --ranks 2 --size 16 --reps 3 -o 'a b.exp' -- mpirun -n {ranks} './my app' {size}",
    ]
    assert measure_lines([], 1, None, None) == []
    assert measure_lines(runs[:1], 1, None, None) == ["ranksight measure --ranks 64 --size 8 -o FOLDER -- COMMAND"]


def test_a_plan_that_costs_more_than_its_target_says_to_run_that(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A target hardly more expensive than what else may be run, and money for more than it: the target is what to measure."""
    # Runs that hardly help are not planned: some are, whatever they promise.
    monkeypatch.setattr(designs, "_explored", lambda now, means: tuple(means.left(())[: means.most].tolist()))
    asked = ["plan", str(folder / "heat.exp"), "--ranks", "16", "--size", "48", "--budget", "100"]
    rules = ["--ranks-rule", "1,2,4,8,16", "--size-rule", "40,44,48"]
    assert main([*asked, *rules, "--format", "json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["core_hours"] > content["core_hours_of_the_targets"]
    assert content["costs_more_than_target"]
    assert main([*asked, *rules]) == 0
    text = capsys.readouterr().out
    assert "running the target instead costs less than these runs" in " ".join(text.split())
    line = text.splitlines()[-1]
    assert line.startswith("next: ranksight measure --ranks 16 --size 48 --reps 2 ")
    assert text.count("ranksight measure") == 1
    # Where it may not be run, the plan's own runs are what is left.
    assert main([*asked, "--max-ranks", "8", "--size-rule", "36,40,44"]) == 0
    text = capsys.readouterr().out
    assert "next: ranksight measure --ranks 16 " not in text


def test_a_plan_within_the_cost_of_its_target_says_nothing_of_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", str(folder / "heat.exp"), "--ranks", "512", "--size", "64"]) == 0
    assert "costs less than these runs" not in capsys.readouterr().out


def test_the_line_to_plan_again_asks_the_same(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--ranks", "512", "--size", "64", "--ranks-rule", "6*n^2", "--max-ranks", "100", "--kernel", "halo"]
    assert main(["plan", str(folder / "heat.exp"), *words, "--level", "0.8", "--reps", "2"]) == 0
    again = next(line for line in capsys.readouterr().out.splitlines() if "ranksight plan" in line).split()
    assert again[3:] == [*words[:5], "'6*n^2'", *words[6:], "--reps", "2", "--level", "0.8"]


def test_a_target_that_was_measured_is_to_be_repeated(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["plan", str(folder / "heat.exp"), "--ranks", "1", "--size", "32", "--ranks-rule", "3", "--budget", "1e-9"]
    assert main(asked) == 4
    assert "the target was measured: repeat it" in capsys.readouterr().err


def test_ranks_that_shared_cores_cost_no_more_than_they_had(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of equal work on every rank, 2 cores take twice as long for twice the ranks; a machine with more does not."""
    made = Experiment.create(tmp_path / "small.exp", "small", ["ranks"])
    for ranks in (1, 2, 4, 8):
        for repetition in range(2):
            table = pd.DataFrame([("op", -1, 1.0 + 0.04 * repetition)], columns=["kernel", "rank", "time"])
            environment, long = {"cores": "2"}, 3600.0 * max(1.0, ranks / 2)
            run = Run({"ranks": ranks}, repetition, "synthetic", wall_time=long, environment=environment)
            made.add(run, table)
    # No run is planned that the machine cannot hold, unless it was asked for, or such were made and no other is left.
    asked = ["plan", str(tmp_path / "small.exp"), "--ranks", "64", "--budget", "1000"]
    assert main(asked) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "ranks powers-of-two (as measured) to 32" in text
    assert "their times are not; --max-ranks leaves them out" in text
    assert main([*asked, "--ranks-rule", "any"]) == 0
    assert "runs of more than 8 ranks are not planned" in " ".join(capsys.readouterr().out.split())
    asked += ["--max-ranks", "32"]
    assert main([*asked, "--format", "json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["ranks_held"] is None
    assert content["runs"]
    for run in content["runs"]:
        assert run["core_hours"] == pytest.approx(2 * run["configuration"]["ranks"], rel=0.2)
    assert "as if no ranks had shared a core" in content["cost_basis"]
    assert main(asked) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "their times are not; --max-ranks leaves them out" in text
    assert "are not planned" not in text


def test_no_run_that_the_machine_cannot_hold_where_all_made_fit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = Experiment.create(tmp_path / "small.exp", "small", ["ranks"])
    for ranks in (1, 2, 4, 8):
        table = pd.DataFrame([("op", -1, 8.0 / ranks)], columns=["kernel", "rank", "time"])
        made.add(Run({"ranks": ranks}, 0, "synthetic", wall_time=8.0 / ranks, environment={"cores": "8"}), table)
    assert main(["plan", str(tmp_path / "small.exp"), "--ranks", "512", "--budget", "1000"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "every configuration of up to 8 ranks was measured" in said
    assert "scatter repeat: --reps 4" in said  # what else narrows the interval is answered


@pytest.mark.parametrize(("ranks", "line"), [("16", "--ranks 16 -o"), ("8", "--ranks 8 --reps 4 -o")])
def test_where_no_configuration_is_left_the_line_measures_the_target(
    ranks: str, line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = Experiment.create(tmp_path / "small.exp", "small", ["ranks"])
    for n in (2, 4, 8):
        made.add(
            Run({"ranks": n}, 0, "synthetic"), pd.DataFrame([("op", -1, 8.0 / n)], columns=["kernel", "rank", "time"])
        )
    assert main(["plan", str(tmp_path / "small.exp"), "--ranks", ranks]) == 0
    assert line in capsys.readouterr().out.splitlines()[-1]


def test_runs_are_priced_without_their_collectors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A simulator 50 times as slow, and made once, changes no price: it is a factor of its own."""
    made = Experiment.create(tmp_path / "small.exp", "small", ["ranks"])
    for ranks in (1, 2, 4, 8):
        table = pd.DataFrame([("op", -1, 1.0)], columns=["kernel", "rank", "time"])
        for repetition in range(3):
            made.add(Run({"ranks": ranks}, repetition, "tracer", wall_time=36.0 + repetition), table)
        made.add(Run({"ranks": ranks}, 0, "simulator", wall_time=50 * 37.0), table)
    assert main(["plan", str(tmp_path / "small.exp"), "--ranks", "64", "--budget", "10", "--format", "json"]) == 0
    content = json.loads(capsys.readouterr().out)
    for run in content["runs"]:
        assert run["core_hours"] == pytest.approx(3 * run["configuration"]["ranks"] * 37 / 3600, rel=0.2)
    assert content["collectors_factor"] == pytest.approx(51, rel=0.01)
    assert main(["plan", str(tmp_path / "small.exp"), "--ranks", "64", "--budget", "10"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "own runs (tracer)" in text
    assert "under simulator and tracer together, the runs made took 51 times as long" in text


def test_each_cause_has_what_mends_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Scattering times are to be repeated, the program's growth is to be seen at more ranks; nothing that hardly helps."""
    asked = ["plan", str(folder / "heat.exp"), "--ranks", "512", "--size", "64"]
    assert main([*asked, "--format", "json"]) == 0
    content = json.loads(capsys.readouterr().out)
    causes = {each["cause"]: each for each in content["remedies"]}
    assert {"scale"} <= set(causes) <= {"scatter", "scale"}
    assert causes["scale"]["narrowing"] == content["narrowing"]
    assert causes["scale"]["core_seconds"] == pytest.approx(3600 * content["core_hours"])
    assert all(each["narrowing"] >= 0.1 for each in causes.values())
    assert main(asked) == 0
    text = " ".join(capsys.readouterr().out.split())
    for each in content["remedies"]:
        assert f"{each['cause']} {each['text']}" in text
    page = folder / "r.html"
    assert main(["report", str(folder / "heat.exp.model.json"), "--experiment", str(folder / "heat.exp"), *asked[2:],
                 "-o", str(page), "--force"]) in (0, 4)  # fmt: skip
    for each in content["remedies"]:
        assert f"{each['cause']}: {each['text']}" in page.read_text()
    assert f"{content['runs'][0]['configuration']['ranks']} ranks" in page.read_text()


def test_small_costs_are_in_core_seconds(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", str(folder / "heat.exp"), "--ranks", "64", "--size", "32"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert re.search(r"running the target instead [0-9.]+ core-seconds, budget [0-9.]+ core-seconds", text)
    assert re.search(r"[0-9.]+ of [0-9.]+ core-seconds, up to [0-9.]+;", text)
