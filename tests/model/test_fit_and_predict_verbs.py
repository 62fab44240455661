"""The verbs fit and predict, end to end."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import ranksight as rs
from ranksight.cli.main import main
from ranksight.core.errors import InputError
from ranksight.core.experiment import Experiment, Run
from ranksight.model import modelfile


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("verbs")
    made = Experiment.create(place / "heat.exp", "heat", ["ranks", "size"])
    generator = np.random.default_rng(0)
    for ranks in (1, 2, 4, 8, 16):
        for size in (16, 24, 32, 48):
            for repetition in range(2):
                share = size**3 / ranks
                rows = [
                    ("op", 1e-6 * share * generator.uniform(0.99, 1.01), 30 * share),
                    ("halo", (2e-6 + 1e-6 * share ** (2 / 3)) * generator.uniform(0.99, 1.01), 7 * share ** (2 / 3)),
                ]
                table = pd.DataFrame(
                    [(k, -1, t, i) for k, t, i in rows], columns=["kernel", "rank", "time", "instructions"]
                )
                made.add(Run({"ranks": ranks, "size": size}, repetition, "synthetic"), table)
    assert main(["fit", str(place / "heat.exp"), "--quiet"]) == 0
    return place


def _json(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> dict[str, Any]:
    capsys.readouterr()
    assert main(list(arguments)) == code
    content: dict[str, Any] = json.loads(capsys.readouterr().out)
    return content


def test_prediction_for_machines(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(folder / "heat.exp.model.json")
    content = _json(
        capsys, "predict", model, "--ranks", "64,128", "--size", "96", "--metric", "instructions", "--format", "json"
    )
    assert content["schema_version"] == 1
    first = content["predictions"][0]
    assert first["configuration"] == {"ranks": 64, "size": 96}
    assert first["kernel"] is None
    assert first["metric"] == "instructions"
    share = 96**3 / 64
    assert first["value"] == pytest.approx(30 * share + 7 * share ** (2 / 3), rel=1e-4)
    assert first["interval"][0] <= first["value"] <= first["interval"][1]
    assert (first["level"], first["status"], first["reason"]) == (0.9, "ok", "")
    assert {answer["kernel"] for answer in content["predictions"]} == {None, "op", "halo"}
    assert len(content["predictions"]) == 6


def test_kernel_and_level_are_honoured(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(folder / "heat.exp.model.json")
    asked = ("predict", model, "--ranks=32", "--size=64", "--kernel", "op", "--metric", "time", "--format", "json")
    wide, narrow = (_json(capsys, *asked, "--level", level)["predictions"][0] for level in ("0.99", "0.5"))
    assert wide["interval"][0] < narrow["interval"][0] < narrow["interval"][1] < wide["interval"][1]
    assert wide["kernel"] == "op"


def test_nothing_predicted_is_exit_code_four(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(folder / "heat.exp.model.json")
    asked = ("--ranks", "1e12", "--size", "1e9", "--kernel", "halo", "--metric", "time")
    content = _json(capsys, "predict", model, *asked, "--format", "json", code=4)
    assert all(answer["status"] == "insufficient" and answer["reason"] for answer in content["predictions"])


def test_a_size_that_followed_the_ranks_follows_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [f"{ranks},{1000 * ranks},{2 + 0.1 * ranks}" for ranks in (1, 2, 4, 8, 16)]
    (tmp_path / "weak.csv").write_text("\n".join(["ranks,cells,time", *rows]) + "\n")
    experiment, model = str(tmp_path / "weak.exp"), str(tmp_path / "weak.json")
    assert main(["import", str(tmp_path / "weak.csv"), "-o", experiment]) == 0
    assert main(["fit", experiment, "-o", model]) == 0
    capsys.readouterr()
    left_out, given = ("--ranks=32",), ("--ranks=32", "--cells=32000")
    for verb, code in (("predict", 0), ("diagnose", 4)):  # of times alone nothing is decided
        short, long = (_json(capsys, verb, model, *asked, "--format", "json", code=code) for asked in (left_out, given))
        assert short == long
    # The runs themselves, too, on the way to the target.
    capsys.readouterr()
    assert main(["diagnose", model, *left_out]) == 4
    assert " ?" not in capsys.readouterr().out.partition("efficiencies")[2]
    assert main(["plan", model, *left_out]) == 0
    assert "cells 32000" in capsys.readouterr().out
    assert main(["predict", model, "--cells=32000"]) == 2
    assert "no value is given for the parameter ranks" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--ranks", "64"], 2, "no value is given for the parameter size"),
        (["--ranks", "64", "128", "--size", "64"], 2, "write --ranks 64,128\n"),
        (["--size", "64", "--ranks=64,", "128,", "256"], 2, "write --ranks 64,128,256\n"),
        (["--ranks", "64", "--size", "64", "spare"], 2, "unrecognized arguments: spare"),
        (["--ranks", "64", "--size", "x"], 2, "is not a list of numbers"),
        (["--ranks", "64", "--experiment", "heat.exp"], 2, "--experiment is not an option"),
        (["--ranks", "64", "--platform", "zen4"], 2, "is given to fit; the model then knows the machine"),
        (["--platform", "zen4"], 2, "ranksight fit EXPERIMENT --platform zen4"),
        (["--ranks", "64", "--size"], 2, "needs a value"),
        (["--ranks", "64", "--size", "64", "--nodes", "2"], 1, "no parameter nodes"),
        (["--ranks", "64", "--size", "64", "--kernel", "ops"], 1, "no kernel 'ops'"),
        (["--ranks", "64", "--size", "64", "--metric", "watts"], 1, "no metric 'watts'"),
        (["--ranks", "64", "--size", "64", "--level", "2"], 2, "not a probability"),
        (["--ranks", "64", "--size", "inf"], 2, "not finite"),
        (["--ranks", "0", "--size", "64"], 1, "ranks"),
        (["--ranks", "2.5", "--size", "64"], 1, "ranks"),
        (["--ranks", "64", "--size", "64", "--ranks", "2"], 2, "given twice"),
    ],
)
def test_wrong_questions(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, said: str
) -> None:
    assert main(["predict", str(folder / "heat.exp.model.json"), *arguments]) == code
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is not valid JSON"),
        ("[]", "is not a model"),
        ('{"kind": "ranksight model", "schema_version": 99}', "is newer"),
        ('{"kind": "ranksight model", "schema_version": 2}', "older version of ranksight; fit it again"),
        ('{"kind": "ranksight model", "schema_version": 1}', "older version of ranksight; fit it again"),
        ("[" * 100_000, "is not valid JSON"),
    ],
)
def test_files_that_are_no_models(tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, said: str) -> None:
    file = tmp_path / "m.json"
    file.write_text(content)
    assert main(["predict", str(file), "--ranks", "2"]) == 1
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("entry", ["fitted", "equation", "structures"])
@pytest.mark.parametrize("edited", [False, True])
def test_what_another_version_wrote_is_reported_from_what_is_damaged(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], entry: str, edited: bool
) -> None:
    """A layout that cannot be read: as it was written by a version of its own, or changed since."""
    content = modelfile.read(folder / "heat.exp.model.json")
    content[entry] = {"layout": "of tomorrow"} if entry == "fitted" else ["layout", "of tomorrow"]
    file = tmp_path / "m.json"
    modelfile.write(file, content)
    assert modelfile.read(file)["made_by"] == rs.__version__
    if edited:
        whole = bytearray(file.read_bytes())
        whole[whole.index(b"PK\x01\x02") - 1] ^= 1  # of the last number of the last column
        file.write_bytes(whole)
    assert main(["predict", str(file), "--ranks", "2", "--size", "8"]) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert str(file) in said
    assert ("was made by another version of ranksight" in said and "fit it again" in said) == (not edited)


def test_missing_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", str(tmp_path / "none.json"), "--ranks", "2"]) == 1
    assert "cannot be read" in capsys.readouterr().err
    assert main(["fit", str(tmp_path / "none")]) == 1
    assert "is not an experiment" in capsys.readouterr().err


def test_output_is_not_overwritten(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fit", str(folder / "heat.exp"), "-o", str(folder / "heat.exp.model.json")]) == 1
    assert "--force" in capsys.readouterr().err


def test_fit_shows_functions_and_verifies(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("fit", str(folder / "heat.exp"), "--force", "--verify", "largest", "--format", "json")
    content = _json(capsys, *arguments)
    functions = {(f["kernel"], f["metric"]): f for f in content["functions"]}
    assert functions["op", "instructions"]["formula"] == "30 * ranks^(-1) * size^3"
    (coefficient,) = functions["op", "instructions"]["coefficients"]
    assert coefficient["value"] == pytest.approx(30)
    assert functions["op", "time"]["remark"] == "grows as instructions"
    assert content["verification"]["value"] == 16
    assert content["verification"]["median_error"] < 3


def test_an_error_over_nothing_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It was printed as nan %."""
    experiment = Experiment.create(tmp_path / "e.exp", "e", ["ranks"])
    for ranks in (1, 2, 4, 8, 16):
        table = pd.DataFrame({"kernel": ["solve"], "rank": [0], "instructions": [0.0 if ranks == 16 else 1e6 / ranks]})
        experiment.add(Run({"ranks": ranks}), table)
    main(["fit", str(experiment.path), "--verify", "largest"])
    assert "without ranks = 16: no error is known there" in " ".join(capsys.readouterr().out.split())


def test_spaces_can_be_listed_and_misspelt(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fit", "--space", "list"]) == 0
    assert "pmnf" in capsys.readouterr().out.split()
    assert main(["fit", str(folder / "heat.exp"), "--force", "--space", "pmf"]) == 1
    assert "nearest: pmnf" in capsys.readouterr().err


def test_the_largest_of_very_many_light_kernels_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = "".join(f"{p},k{k:03},{(1 + k / 1e3) / p}\n" for p in (1, 2, 4, 8, 16) for k in range(300))
    (tmp_path / "t.csv").write_text("ranks,kernel,time\n" + rows)
    words = ["csv", str(tmp_path / "t.csv"), "--parameter", "ranks", "--kernel", "kernel", "--metric", "time"]
    assert main(["import", *words, "-o", str(tmp_path / "e"), "--quiet"]) == 0
    assert main(["fit", str(tmp_path / "e"), "-o", str(tmp_path / "m.json")]) == 0
    said = capsys.readouterr().out
    assert "k299 " in said
    assert "... and 294 more" in said
    main(["diagnose", str(tmp_path / "m.json"), "--ranks", "16"])
    said = capsys.readouterr().out
    assert "k299 " in said
    assert "295 more, 98% of the time" in said


def test_a_repetition_left_out_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    draw = np.random.default_rng(3)
    times = [(p, 8 / p * (1 + 0.01 * draw.normal())) for p in (1, 2, 4, 8, 16) for _ in range(5)]
    times[17] = (8, 3.0)
    (tmp_path / "t.csv").write_text("ranks,time\n" + "".join(f"{p},{t:.6f}\n" for p, t in times))
    words = ["import", "csv", str(tmp_path / "t.csv"), "--parameter", "ranks", "--metric", "time", "--quiet"]
    assert main([*words, "-o", str(tmp_path / "e")]) == 0
    capsys.readouterr()
    assert main(["fit", str(tmp_path / "e"), "-o", str(tmp_path / "m.json")]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "left out, as it is unlike the other repetitions: time of" in said
    assert "at ranks = 8 (3 s, the others " in said
    assert main(["fit", str(tmp_path / "e"), "-o", str(tmp_path / "n.json"), "--reduce", "median"]) == 0
    said = capsys.readouterr().out
    assert "left out" not in said


def test_scaling_is_unknown_from_one_number_of_ranks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t.csv").write_text("ranks,size,time\n" + "".join(f"4,{n},{n}.5\n" for n in (10, 20, 30, 40, 50)))
    words = ["csv", str(tmp_path / "t.csv"), "--parameter", "ranks", "--parameter", "size", "--metric", "time"]
    assert main(["import", *words, "-o", str(tmp_path / "e"), "--quiet"]) == 0
    assert main(["fit", str(tmp_path / "e"), "-o", str(tmp_path / "m.json"), "--quiet"]) == 0
    main(["diagnose", str(tmp_path / "m.json"), "--size", "50"])
    said = capsys.readouterr().out
    assert "all runs were of 4 ranks: its growth with the ranks is not known" in said
    assert "log(ranks)" not in said
    assert "efficiency" not in said
    assert "next: ranksight plan" in said


def loaded(words: list[str], modules: tuple[str, ...]) -> set[str]:
    """Which of the modules and packages a command imports, in an interpreter of its own."""
    code = f"import sys; from ranksight.cli.main import main; main({words!r}); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    names = done.stdout.splitlines()[-1].split()
    return {module for module in modules for name in names if f"{name}.".startswith(f"{module}.")}


OF_MESSAGES = (
    "ranksight.comm.replay",
    "ranksight.comm.tracer",
    "ranksight.model.application.replayed",
    "ranksight.model.messages.fit_messages",
    "ranksight.model.messages.schedule",
    "ranksight.model.stages.pricing",
)
"""What only programs need whose messages were traced."""
SELDOM = (
    "ranksight.analysis.diagnosis.diagnosing",
    "ranksight.analysis.phases.analysis",
    "ranksight.campaign.launching",
    "ranksight.counters",
    "ranksight.model.machine.anchor",
    "ranksight.platforms.calibration",
    "matplotlib",
    "lmfit",
    "pandas",
    "scipy.optimize",
    "html",
)
"""What other verbs and other data need."""


@pytest.fixture
def times(tmp_path: Path) -> Path:
    """An experiment of times alone."""
    experiment = rs.Experiment.create(tmp_path / "e", "heat", ["ranks"])
    for ranks in (1, 2, 4, 8, 16):
        table = pd.DataFrame({"kernel": ["solve", "copy"], "rank": -1, "time": [9.5 / ranks, 2.0]})
        experiment.add(rs.Run({"ranks": ranks}, provenance={"time": "measured"}), table)
    return tmp_path / "e"


def test_predicting_loads_little(folder: Path, times: Path) -> None:
    words = ["predict", str(folder / "heat.exp.model.json"), "--ranks", "64", "--size", "64"]
    assert loaded(words, (*SELDOM, "scipy", "pyarrow")) == set()
    assert main(["fit", str(times), "--quiet"]) == 0
    words = ["predict", str(times) + ".model.json", "--ranks", "64"]
    assert loaded(words, (*SELDOM, *OF_MESSAGES, "scipy", "pyarrow", "numpy.ma")) == set()


def test_fitting_times_loads_little(times: Path) -> None:
    given_by = ("ranksight.model.prediction", "ranksight.model.answers", "pyarrow.compute")
    assert loaded(["fit", str(times)], (*SELDOM, *OF_MESSAGES, *given_by)) == set()


def test_python_gives_the_same_table(folder: Path) -> None:
    model = rs.Model.load(folder / "heat.exp.model.json")
    table = model.predict(ranks=[64, 128], size=96, metrics=["instructions"]).table()
    assert list(table.columns) == [
        "ranks",
        "size",
        "kernel",
        "metric",
        "value",
        "lower",
        "upper",
        "level",
        "status",
        "reason",
        "method",
        "evidence",
    ]
    assert dict(zip(table["kernel"].isna(), table["method"], strict=True)) == {True: "sum", False: "function"}
    expected = "function of 20 configurations, instructions measured"
    assert set(table["evidence"]) == {expected, f"sum of 2 kernels: {expected}"}
    assert len(table) == 6


def test_tables_fit_eighty_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    long = "solver<matrix<double, layout_right>, preconditioner>::operator()(std::vector<double> const&)"
    rows = [f"{p},{kernel},{p**e * 1.5}" for p in (1, 2, 4, 8, 16) for kernel, e in ((f'"{long}"', 0.5), ("halo", 1))]
    (tmp_path / "t.csv").write_text("ranks,kernel,time\n" + "\n".join(rows) + "\n")
    words = ["import", "csv", str(tmp_path / "t.csv"), "--parameter", "ranks", "--kernel", "kernel", "--metric", "time"]
    assert main([*words, "-o", str(tmp_path / "e")]) == 0
    capsys.readouterr()
    assert main(["fit", str(tmp_path / "e"), "-o", str(tmp_path / "m")]) == 0
    table = capsys.readouterr().out.split("\n\n")[0]
    assert main(["predict", str(tmp_path / "m"), "--ranks", "64,100000"]) == 0
    table += "\n" + capsys.readouterr().out
    table = "\n".join(line for line in table.splitlines() if str(tmp_path) not in line)
    assert "solver::operator()" in table
    assert [line for line in table.splitlines() if len(line) > 80] == []


@pytest.mark.parametrize(
    ("processors", "options", "said"),
    [
        (["AMD EPYC 7742 64-Core Processor"], [], True),
        (["AMD EPYC 7742 64-Core Processor"], ["--platform", "rome-7742"], False),
        (["AMD EPYC 7742 64-Core Processor"], ["--cores-per-domain", "64"], False),
        (["some processor"], [], False),
    ],
)
def test_the_machine_measured_is_proposed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], processors: list[str], options: list[str], said: bool
) -> None:
    made = Experiment.create(tmp_path / "e", "heat", ["ranks"])
    for at, ranks in enumerate((1, 2, 4, 8, 16)):
        facts = {"processor": processors[at % len(processors)], "cores": "256"}
        table = pd.DataFrame([("op", -1, 3.0 / ranks)], columns=["kernel", "rank", "time"])
        made.add(Run({"ranks": ranks}, 0, "synthetic", environment=facts), table)
    assert main(["fit", str(tmp_path / "e"), *options]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert ("--platform rome-7742 describes its caches and memory domains" in out) is said


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Intel(R) Xeon(R) Platinum 8360Y CPU @ 2.40GHz", "--platform icelake-8360y describes its caches"),
        ("Imaginary 4711", "how many cores share memory is not known: --cores-per-domain N"),
    ],
)
def test_traffic_on_an_unnamed_machine_asks_for_its_domains(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, said: str
) -> None:
    made = Experiment.create(tmp_path / "e", "heat", ["ranks", "threads"])
    columns = ["kernel", "rank", "time", "bytes_mem", "NEVER_SEEN"]
    for ranks in (1, 2, 4, 8, 16):
        table = pd.DataFrame([("op", -1, 3.0 / ranks + 0.2, 1e9 / ranks, 0.0)], columns=columns)
        made.add(Run({"ranks": ranks, "threads": 3}, 0, "likwid", environment={"CPU name": name}), table)
    assert main(["fit", str(tmp_path / "e")]) == 0
    out = capsys.readouterr().out
    assert said in " ".join(out.split())
    assert "NEVER_SEEN" not in out
    assert out.splitlines()[-1].endswith("--ranks 32 --threads 3")


def test_names_alone_are_lists_of_one_and_tables_are_no_experiments(folder: Path) -> None:
    model = rs.Model.load(folder / "heat.exp.model.json")
    asked = {"ranks": 64, "size": 32}
    one = model.predict(metrics="time", kernels="op", **asked).table()
    assert one.equals(model.predict(metrics=["time"], kernels=["op"], **asked).table())
    with pytest.raises(InputError, match="DataFrame is not an experiment"):
        rs.fit(pd.DataFrame({"ranks": [1]}))


def test_ranks_that_were_never_varied_are_not_predicted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = Experiment.create(tmp_path / "e", "one", ["ranks", "size"])
    for size in (20, 40):
        for repetition in range(3):
            rows = [("op", -1, 1e-3 * size * (1 + 0.01 * repetition), 500.0 * size)]
            table = pd.DataFrame(rows, columns=["kernel", "rank", "time", "instructions"])
            made.add(Run({"ranks": 1, "size": size}, repetition, "synthetic"), table)
    assert main(["fit", str(tmp_path / "e"), "-o", str(tmp_path / "m"), "--quiet"]) in (0, 4)
    content = _json(capsys, "predict", str(tmp_path / "m"), "--ranks", "64", "--size", "40", "--format", "json", code=4)
    assert {answer["status"] for answer in content["predictions"]} == {"insufficient"}


@pytest.mark.parametrize(("factor", "named"), [(1, False), (3, True)])
def test_fit_names_a_run_far_from_the_others_that_was_not_repeated(
    factor: float, named: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The answer at that configuration is that of the others: without a word a reader would take it for measured."""
    noise = np.random.default_rng(19).normal(size=6)
    times = [(64 / p + 0.5) * (1 + 0.02 * e) * (factor if p == 8 else 1) for p, e in zip((2, 4, 8, 16, 32, 48), noise)]
    rows = [f"{p},{t}" for p, t in zip((2, 4, 8, 16, 32, 48), times, strict=True)]
    (tmp_path / "runs.csv").write_text("\n".join(["ranks,time", *rows]) + "\n")
    assert main(["import", str(tmp_path / "runs.csv"), "-o", str(tmp_path / "runs.exp")]) == 0
    capsys.readouterr()
    assert main(["fit", str(tmp_path / "runs.exp")]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert ("far from the other configurations: time of (whole program) at ranks = 8 (" in said) == named
