"""Nothing is dropped in silence, and nothing is taken that contradicts what the files record."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.campaign.bound import bound
from ranksight.campaign.importing import Import
from ranksight.campaign.naming import Naming
from ranksight.cli.main import main
from ranksight.core.errors import InputError
from ranksight.core.experiment import Experiment, Run, read
from ranksight.core.reading import Reading


def reading(ranks: int, **columns: object) -> Reading:
    """A run of two kernels on every rank."""
    kernel, rank = zip(*itertools.product("ab", range(ranks)), strict=True)
    table = pd.DataFrame({"kernel": kernel, "rank": rank, **columns})
    return Reading({"ranks": float(ranks)}, table, provenance=dict.fromkeys(columns, "measured"))


def test_runs_of_no_time_are_left_out_and_named(tmp_path: Path) -> None:
    with Import(tmp_path / "e", "app", Naming()) as work:
        assert work.add([reading(2, time=1.0), reading(4, time=0.0)], "any", Path("study.csv")) == 1
        assert work.finish().runs[0].configuration == {"ranks": 2}
        (note,) = work.notes
    assert "study.csv: the whole program takes 0 s at ranks = 4" in note
    assert "left out" in note


def test_a_file_of_nothing_but_failed_runs_is_refused(tmp_path: Path) -> None:
    with Import(tmp_path / "e", "app", Naming()) as work, pytest.raises(InputError, match=r"takes 0 s at ranks = 4"):
        work.add([reading(4, time=0.0)], "any", Path("study.csv"))


def test_counts_of_a_run_without_a_time_are_kept(tmp_path: Path) -> None:
    with Import(tmp_path / "e", "app", Naming()) as work:
        work.add([reading(2, time=0.0, instructions=7.0)], "any", Path("study.csv"))
        experiment = work.finish()
        assert any("the time is left out" in note for note in work.notes)
    assert experiment.metrics() == ("instructions",)
    assert any("the time is left out" in note for note in experiment.runs[0].notes)


def test_a_kernel_of_no_time_is_kept(tmp_path: Path) -> None:
    with Import(tmp_path / "e", "app", Naming()) as work:
        work.add([reading(1, time=[0.0, 2.0])], "any", Path("study.csv"))
        assert not work.notes
        assert work.finish().counters()["time"].tolist() == [0.0, 2.0]


@pytest.mark.parametrize(
    ("naming", "message"),
    [
        (Naming(constants={"ranks": 2.0}), r"records ranks = 8, and --set states 2"),
        (Naming(constants={"ranks": 16.0}), r"records ranks = 8, and --set states 16"),
        (Naming(parameters={"ranks": r"(\d)\d+_cores"}), r"records ranks = 8, and --parameter states 6"),
    ],
)
def test_stated_ranks_that_contradict_the_file_are_refused(tmp_path: Path, naming: Naming, message: str) -> None:
    with Import(tmp_path / "e", "app", naming) as work, pytest.raises(InputError, match=message):
        work.add([reading(8, time=1.0)], "any", Path("64_cores/profile"))
    with Import(tmp_path / "e", "app", naming) as work, pytest.raises(InputError, match="records ranks = 1,"):
        work.add([reading(1, time=1.0)], "any", Path("64_cores/profile"))
    with Import(tmp_path / "e", "app", Naming(constants={"ranks": 8.0, "size": 3.0})) as work:
        work.add([reading(8, time=1.0)], "any", Path("64_cores/profile"))


def test_a_rank_beyond_those_stated_is_refused(tmp_path: Path) -> None:
    given = Reading({}, pd.DataFrame({"kernel": ["a"], "rank": [7], "time": [1.0]}), provenance={"time": "measured"})
    naming = Naming(constants={"ranks": 2.0})
    with Import(tmp_path / "e", "app", naming) as work, pytest.raises(InputError, match="rank 7, of a run .* 2 ranks"):
        work.add([given], "any", Path("profile.7.0.0"))
    one = replace(reading(1, time=1.0), assumed=frozenset({"ranks"}))  # the profile of one rank of many
    with Import(tmp_path / "e", "app", naming) as work:
        work.add([one], "any", Path("profile.0.0.0"))
        assert work.finish().runs[0].configuration == {"ranks": 2}


def test_folders_with_decimal_commas(tmp_path: Path) -> None:
    for size in ("0,5", "1,25"):
        (tmp_path / f"x{size}").mkdir()
        (tmp_path / f"x{size}" / "t.csv").write_text("ranks,time\n2,1\n4,3\n")
    files = [str(path) for path in sorted(tmp_path.glob("*/t.csv"))]
    words = ["--parameter", "ranks", "--metric", "time", "--parameter", r"x=x([\d,]+)/", "-o", str(tmp_path / "e")]
    assert main(["import", "csv", *files, *words]) == 0
    assert {run.configuration["x"] for run in read(tmp_path / "e").runs} == {0.5, 1.25}


def test_a_folder_whose_number_may_be_two_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x1,500").mkdir()
    file = tmp_path / "x1,500" / "t.csv"
    file.write_text("ranks,time\n2,1\n")
    words = ["--parameter", "ranks", "--metric", "time", "--parameter", r"x=x([\d,]+)/", "-o", str(tmp_path / "e")]
    assert main(["import", "csv", str(file), *words]) == 1
    assert "'1,500' is 1500 or 1.500" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("rank", np.array([0, -7], dtype=np.int32), "rank -7"),
        ("rank", np.array([0.0, 1e300]), r"rank 1e\+300"),
        ("time", np.array([1.0, 1e300]), r"1e\+300 of time"),
    ],
)
@pytest.mark.parametrize("words", [[], ["experiment"]])
def test_ranks_that_cannot_be_are_refused_by_experiments_too(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    column: str,
    values: np.ndarray[tuple[int], np.dtype[np.generic]],
    message: str,
    words: list[str],
) -> None:
    source = Experiment.create(tmp_path / "a", "app", ["ranks"])
    table = pd.DataFrame({"kernel": ["a", "b"], "rank": np.array([0, 0], dtype=np.int32), "time": [1.0, 2.0]})
    source.add(Run({"ranks": 2}), table)
    (run,) = source.runs
    table.assign(**{column: values}).to_parquet(source.path / "runs" / run.id / "counters.parquet")
    assert main(["import", *words, str(source.path), "-o", str(tmp_path / "both")]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    with pytest.raises(InputError, match=message):
        raise InputError(error)
    assert not (tmp_path / "both").exists()


def grid(**values: list[float]) -> list[dict[str, float]]:
    return [dict(zip(values, point, strict=True)) for point in itertools.product(*values.values())]


def test_parameters_that_change_together_are_named() -> None:
    (said,) = bound([{"ranks": p, "tasks": p, "size": s} for p in (2, 4, 8) for s in (10, 20)])
    assert said.startswith("ranks and tasks change together in all 6 configurations")
    (said,) = bound([{"ranks": p, "threads": 48 / p, "size": 5.0} for p in (2, 4, 8)])
    assert said.startswith("ranks and threads change together")
    (said,) = bound([{"p": p, "n": 1000.0 * p + 7, "q": 1 / p} for p in (1, 2, 3)])
    assert said.startswith("n, p and q change together")


def test_a_product_of_parameters_is_named() -> None:
    some = [{"nodes": n, "per_node": m, "ranks": n * m} for n in (1.0, 2.0, 4.0) for m in (3.0, 6.0)]
    (said,) = bound(some)
    assert said.startswith("nodes, per_node and ranks are bound by a product in all 6 configurations")
    assert bound([{**each, "size": s} for each in some for s in (10.0, 30.0)]) == [said.replace("all 6", "all 12")]


def test_parameters_that_vary_by_themselves_are_not_named() -> None:
    assert bound(grid(ranks=[2, 4, 8], size=[10, 20])) == []
    assert bound([{"ranks": 2, "size": 1}, {"ranks": 4, "size": 1}]) == []
    assert bound([{"ranks": p, "size": s} for p, s in ((2, 10), (4, 20), (8, 40), (8, 10))]) == []
    three = [{"a": a, "b": b, "c": c} for a, b, c in ((1, 5, 2), (2, 3, 7), (4, 9, 1), (8, 2, 2), (1, 1, 7), (2, 9, 2))]
    assert bound(three) == []
    assert bound([{"ranks": 2, "x": 0.0}, {"ranks": 4, "x": -1.0}, {"ranks": 4, "x": 0.0}]) == []


def test_words_in_place_of_times_are_failed_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "t.csv"
    file.write_text("ranks,time\n1,10\n2,FAILED\n4,2.5\n8,OOM\n16,nan\n")
    words = ["import", "csv", str(file), "--parameter", "ranks", "--metric", "time", "-o", str(tmp_path / "e")]
    assert main(words) == 0
    said = capsys.readouterr().err
    assert "'FAILED', 'OOM' in place of time: left out in 2 of 5 rows (lines 3, 5)" in said
    assert "no value of time: left out in 1 of 5 rows (line 6)" in said
    assert [run.configuration["ranks"] for run in read(tmp_path / "e").runs] == [1, 4]
    assert main([*words, "--strict", "--force"]) == 1
    file.write_text("ranks,time\n1,10\n2,1O\n")
    assert main([*words, "--force"]) == 1
    assert "'1O' in column 'time' is not a number" in capsys.readouterr().err
    file.write_text("ranks,time\n1,slow\n2,slower\n")
    assert main([*words, "--force"]) == 1
    assert "'slow' in column 'time' is not a number (2 rows like it)" in capsys.readouterr().err


@pytest.mark.parametrize(("other", "named"), [(5.1e3, True), (5.1e-3, True), (7.0, False), (50.0, False)])
def test_seconds_and_milliseconds_in_one_configuration_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], other: float, named: bool
) -> None:
    for name, time in (("a.csv", 5.0), ("b.csv", other)):
        (tmp_path / name).write_text(f"ranks,time\n2,{time}\n4,{time / 2}\n")
    files = [str(tmp_path / "a.csv"), str(tmp_path / "b.csv")]
    words = ["--parameter", "ranks", "--metric", "time", "-o", str(tmp_path / "e")]
    assert main(["import", "csv", *files, *words]) == 0
    assert ("differ by a factor of a thousand (a.csv, b.csv)" in capsys.readouterr().err) is named


@pytest.mark.parametrize(
    ("times", "place"),
    [
        ((8.0, 4000.0, 2.0, 1.0, 0.5), "ranks 2"),
        ((8.0, 4.0, 2.0, 0.0012, 0.5), "ranks 8"),
        ((8.0, 4.0, 2.0, 1.0, 0.5), ""),
        ((8.0, 0.8, 0.08, 0.008, 0.0008), ""),  # falls steeply, and goes on
        ((8.0, 40.0, 2.0, 1.0, 0.5), ""),  # a slow run
    ],
)
def test_a_time_in_milliseconds_among_seconds_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], times: tuple[float, ...], place: str
) -> None:
    rows = "".join(f"{2**at},{time}\n" for at, time in enumerate(times))
    (tmp_path / "t.csv").write_text("ranks,time\n" + rows)
    assert main(["import", "csv", str(tmp_path / "t.csv"), "-o", str(tmp_path / "e")]) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert ("differ by a factor of a thousand" in said) is bool(place)
    assert f"the time at {place} and" in said or not place


@pytest.mark.parametrize("per", ["cycles", "time"])
@pytest.mark.parametrize(("work", "named"), [(6.1e9, True), (9.9e9, True), (4.0e9, False)])
def test_instructions_of_a_counter_of_32_bits_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], per: str, work: float, named: bool
) -> None:
    """Runs whose instructions began at zero again; a kernel of other instructions a cycle is none of them."""
    scale = 1.1 if per == "cycles" else 4e-10
    rows = [f"ranks,kernel,{per},instructions"]
    for ranks in (1, 2, 4, 8, 16):
        of = work / ranks
        rows += [f"{ranks},solve,{of * scale:.9g},{of % 2**32:.0f}", f"{ranks},io,{1e9 * scale:.9g},{1e9 / ranks:.0f}"]
    (tmp_path / "t.csv").write_text("\n".join(rows) + "\n")
    words = ["--parameter", "ranks", "--kernel", "kernel", "--metric", per, "--metric", "instructions"]
    assert main(["import", "csv", str(tmp_path / "t.csv"), *words, "-o", str(tmp_path / "e")]) == 0
    said = capsys.readouterr().err
    assert ("2^32 more would agree with the other runs" in said) is named
    assert "instructions of io" not in said


def test_a_counter_that_shows_more_than_32_bits_did_not_wrap(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = {1: 6.1e9, 2: 3.05e9, 4: 1.525e9, 8: 3.0e9 - 2**32 / 2}
    rows = "".join(f"{ranks},{6.1e9 / ranks},{max(value, 1.0):.0f}\n" for ranks, value in values.items())
    (tmp_path / "t.csv").write_text(f"ranks,cycles,instructions\n{rows}")
    words = ["--parameter", "ranks", "--metric", "cycles", "--metric", "instructions", "-o", str(tmp_path / "e")]
    assert main(["import", "csv", str(tmp_path / "t.csv"), *words]) == 0
    assert "2^32" not in capsys.readouterr().err


@pytest.mark.parametrize(("seconds", "kept"), [(8e-310, False), (8e-15, True), (3e-9, True)])
def test_times_that_no_program_takes_are_never_answered_as_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], seconds: float, kept: bool
) -> None:
    rows = "".join(f"{ranks},{seconds / ranks!r}\n" for ranks in (1, 2, 4, 8))
    (tmp_path / "t.csv").write_text(f"ranks,time\n{rows}")
    words = ["--parameter", "ranks", "--metric", "time", "-o", str(tmp_path / "e")]
    assert main(["import", "csv", str(tmp_path / "t.csv"), *words]) == (0 if kept else 1)
    said = capsys.readouterr().err
    assert ("less than a cycle" in said) is (seconds == 8e-15)
    if kept:
        model = str(tmp_path / "m.json")
        assert main(["fit", str(tmp_path / "e"), "-o", model, "--quiet"]) == 0
        assert main(["predict", model, "--ranks", "16"]) == 0
        assert main(["diagnose", model, "--ranks", "16"]) in (0, 4)
        shown = capsys.readouterr().out
        values = [f"{seconds / 16:.3g} s"] if seconds < 1e-12 else ["187 ps", "188 ps"]
        assert sum(map(shown.count, values)) >= 2
        assert "ranks 16: 0 s" not in shown
