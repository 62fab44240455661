"""Timers that hold each other: asked for by name, and no part exceeds the whole."""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ranksight as rs
from ranksight.cli.main import main
from ranksight.core.errors import InputError
from ranksight.core.experiment import WHOLE, read

HEAD = "p,job,timer,t\n"
NAMED = ("--parameter", "ranks=p", "--kernel", "timer", "--metric", "time=t")


def table(folder: Path, timers: dict[str, float], jobs: int = 1) -> Path:
    """Times of a program at 1 to 8 ranks, each row `factor * 8 / p`."""
    rows = [
        f"{p},{job},{name},{factor * 8 / p}"
        for p in (1, 2, 4, 8)
        for job in range(jobs)
        for name, factor in timers.items()
    ]
    path = folder / "timers.csv"
    path.write_text(HEAD + "\n".join(rows) + "\n")
    return path


def imported(path: Path, *options: str) -> int:
    return main(["import", "csv", str(path), *NAMED, *options, "-o", str(path.parent / "made")])


NESTED = {"Total": 10.0, "init": 1.0, "loop": 8.9, "step": 8.8, "solve": 6.0, "halo": 2.5}


@pytest.mark.parametrize(
    "name", ["Total", "total_time", "TOTAL", "Overall", "wall", "Runtime", "(whole)", "<total>", "** Total **"]
)
def test_the_whole_is_asked_for_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    nested = {name: NESTED["Total"], **{timer: t for timer, t in NESTED.items() if timer != "Total"}}
    path = table(tmp_path, nested)
    assert imported(path) == 1
    said = capsys.readouterr().err
    assert len(said.strip().splitlines()) == 1
    assert f"say --total {shlex.quote(name)}, or --total '' " in said
    assert "2.7 times as long" in said
    assert not (tmp_path / "made").exists()
    assert imported(path, "--total", name) == 0
    assert set(read(tmp_path / "made").counters()["kernel"]) == {WHOLE, *nested}, "it stays a timer to be asked for"


def test_the_whole_is_named_where_columns_say_themselves_what_they_hold(tmp_path: Path) -> None:
    path = table(tmp_path, NESTED)
    assert main(["import", "csv", str(path), "--total", "Total", "-o", str(tmp_path / "made")]) == 0
    assert WHOLE in set(read(tmp_path / "made").counters()["kernel"])


def test_the_user_may_say_that_no_timer_holds_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert imported(table(tmp_path, NESTED), "--total", "") == 0
    assert set(read(tmp_path / "made").counters()["kernel"]) == set(NESTED)


@pytest.mark.parametrize(
    "timers",
    [
        {"solve": 6.0, "halo": 2.5, "init": 1.0},
        {"total_energy": 6.0, "halo": 2.5, "init": 1.0},
        {"main": 3.0, "solve": 6.0, "halo": 2.5},
        {"main": 9.0, "solve": 1.0, "halo": 0.5},
        {"Total": 1.0, "solve": 6.0, "halo": 2.5},
        {"solve": 6.0, "smooth": 5.98, "halo": 2.5},
    ],
)
def test_flat_profiles_are_taken_as_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], timers: dict[str, float]
) -> None:
    assert imported(table(tmp_path, timers)) == 0
    assert "--total" not in capsys.readouterr().err


@pytest.mark.parametrize(
    "timers",
    [
        {"main": 10.0, "solve": 9.0, "halo": 8.0},
        {"dynamics": 9.5, "solve": 6.0, "halo": 2.5, "init": 1.0},
    ],
)
def test_what_may_be_the_whole_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], timers: dict[str, float]
) -> None:
    """One of a program's names with others as long, and the sum of all others."""
    assert imported(table(tmp_path, timers)) == 1
    assert f"--total {next(iter(timers))}, or --total ''" in capsys.readouterr().err
    assert imported(table(tmp_path, timers), "--total", "") == 0


def test_timers_that_hold_each_other_are_not_added_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither a prediction nor a diagnosis of a program of nested timers exceeds its own time."""
    assert imported(table(tmp_path, NESTED), "--total", "Total") == 0
    assert "2.7 times Total" in capsys.readouterr().err
    experiment = read(tmp_path / "made")
    assert all(run.inclusive("time") for run in experiment.runs)
    model = rs.fit(experiment)
    seconds = model.predict(ranks=8).table().set_index(["kernel", "metric"])["value"]
    assert seconds[None, "time"] == pytest.approx(10.0, rel=0.01)
    assert seconds["loop", "time"] == pytest.approx(8.9, rel=0.01)
    assert model.diagnose(ranks=8).evidence.total == pytest.approx([10.0], rel=0.01)
    shares = dict(zip(model.fitted.kernels, model.shares.tolist(), strict=True))
    assert {name: shares[name] for name in NESTED if name != "Total"} == pytest.approx(
        {name: part / NESTED["Total"] for name, part in NESTED.items() if name != "Total"}
    )


CALLS = {"drive": 30.0, "step": 19.7, "step_one": 19.69, "physics": 8.3, "physics_all": 8.297, "rad": 4.9, "rad_lw": 2.4,
         "dycore": 7.7, "dycore_run": 7.695, "halo": 1.9, "init": 9.3, "init_grid": 9.294, "write": 0.7}  # fmt: skip
"""Nested timers of which none is named as the whole and none is the sum of all; four call one other each."""


def calls(folder: Path, seconds: dict[str, float], scatter: float = 0.05) -> Path:
    """Times that scatter from run to run, those of a pair together as one holds the other."""
    rng = np.random.default_rng(5)
    rows = []
    for p in (1, 2, 4, 8):
        jobs: dict[str, float] = {}
        for name, each in seconds.items():
            family = name.split("_")[0]
            jobs.setdefault(family, float(np.exp(scatter * rng.standard_normal())))
            rows.append(f"{p},0,{name},{each / p * jobs[family]}")
    path = folder / "calls.csv"
    path.write_text(HEAD + "\n".join(rows) + "\n")
    return path


def test_nested_timers_are_recognised_by_their_values(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert imported(calls(tmp_path, CALLS)) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "4 pairs of timers hardly differ in any run, such as step and step_one" in said
    assert "drive, is taken for the whole program" in said
    experiment = read(tmp_path / "made")
    assert set(experiment.counters()["kernel"]) == {WHOLE, *CALLS}
    model = rs.fit(experiment)
    found = model.predict(ranks=8).table().set_index("kernel")
    whole, drive = found.loc[None, "value"], found.loc["drive", "value"]
    assert whole == pytest.approx(30 / 8, rel=0.1)
    assert drive == pytest.approx(whole, rel=0.05)
    assert set(CALLS) <= set(found.index), "no timer is summed with others"


def test_the_user_may_name_another_or_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = calls(tmp_path, CALLS)
    assert imported(path, "--total", "drive") == 0
    assert "add up to" in capsys.readouterr().err
    assert imported(path, "--total", "", "--force") == 0
    assert capsys.readouterr().err == ""
    assert WHOLE not in set(read(tmp_path / "made").counters()["kernel"])


def test_times_near_each_other_by_chance_are_no_pairs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Flat profiles of many functions, of which some are alike, equal, or near in one run."""
    rng = np.random.default_rng(11)
    flat = {f"f{at}": float(t) for at, t in enumerate(np.exp(rng.uniform(-3, 0, 120)))}
    flat |= {"x_sweep": 0.8, "y_sweep": 0.8, "z_sweep": 0.8}
    assert imported(calls(tmp_path, flat, 0.02)) == 0
    assert capsys.readouterr().err == ""
    assert not any(run.inclusive("time") for run in read(tmp_path / "made").runs)
    assert WHOLE not in set(read(tmp_path / "made").counters()["kernel"])


def test_none_is_the_whole_where_none_is_the_longest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = calls(tmp_path, {**CALLS, "init": 30.0, "init_grid": 29.98, "drive": 30.2}, 0.1)
    assert imported(path) == 1
    assert "none is the longest in all runs" in capsys.readouterr().err
    assert not (tmp_path / "made").exists()


def test_profiles_of_exclusive_times_are_not_suspected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """TAU's times are without callees, whatever functions are called and however near they are."""
    for p in (1, 2, 4, 8):
        place = tmp_path / "tau" / f"p{p}"
        place.mkdir(parents=True)
        rows = [f'"{name}" 1 0 {1e6 * t / p:.0f} {1e6 * t / p:.0f} 0 GROUP="TAU_USER"' for name, t in {**CALLS, "main": 40.0, "Total": 60.0}.items()]  # fmt: skip
        head = f"{len(rows)} templated_functions_MULTI_TIME\n# Name Calls Subrs Excl Incl ProfileCalls #\n"
        for rank in range(p):
            (place / f"profile.{rank}.0.0").write_text(head + "\n".join(rows) + "\n0 aggregates\n0 userevents\n")
    assert main(["import", str(tmp_path / "tau"), "--parameter", r"ranks=p(\d+)", "-o", str(tmp_path / "made"), "--quiet"]) == 0  # fmt: skip
    assert capsys.readouterr().err == ""
    assert not any(run.inclusive("time") for run in read(tmp_path / "made").runs)


def test_a_real_climate_model_is_no_sum_of_its_timers(
    tmp_path: Path, shared: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = shared / "data" / "scaling" / "scream_summit.csv"
    line = ["import", "csv", str(path), "--parameter", "ranks", "--kernel", "kernel", "--metric", "time=wallmax"]
    assert main([*line, "-o", str(tmp_path / "made"), "--quiet"]) == 0
    assert "timers contain each other" in " ".join(capsys.readouterr().err.split())
    experiment = read(tmp_path / "made")
    table = experiment.table(experiment.runs[-1], "counters")
    assert table is not None
    times = table.groupby(table["kernel"].astype(str))["time"].max()
    assert times[WHOLE] == times.max() == times["CPL:INIT"]
    assert times.sum() > 5 * times[WHOLE]


def test_parts_that_share_out_the_whole_stay_times(tmp_path: Path) -> None:
    flat = {"Total": 10.0, "solve": 6.0, "halo": 2.5, "init": 1.4}
    assert imported(table(tmp_path, flat), "--total", "Total") == 0
    assert not any(run.inclusive("time") for run in read(tmp_path / "made").runs)


def test_no_part_exceeds_the_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = table(tmp_path, NESTED)
    assert imported(path, "--total", "solve") == 1
    said = capsys.readouterr().err
    assert "a part cannot exceed the whole" in said
    assert "--total Total" in said
    assert not (tmp_path / "made").exists()


def test_rows_of_one_run_stay_together(tmp_path: Path) -> None:
    """Two cases of one configuration, of which each has a timer that the other lacks."""
    rows = []
    for p in (2, 4):
        rows += [f"{p},1,{name},{t / p}" for name, t in {"Total": 10.0, "euler": 8.0}.items()]
        rows += [f"{p},1,{name},{t / p}" for name, t in {"Total": 6.0, "remap": 4.0}.items()]
    path = tmp_path / "timers.csv"
    path.write_text(HEAD + "\n".join(rows) + "\n")
    assert imported(path, "--total", "Total") == 0
    experiment = read(tmp_path / "made")
    held = [experiment.table(run, "counters") for run in experiment.runs]
    each = [
        {str(k): float(t) for k, t in zip(one["kernel"], one["time"], strict=True)} for one in held if one is not None
    ]
    assert each == [{WHOLE: 5.0, "euler": 4.0}, {WHOLE: 3.0, "remap": 2.0}, {WHOLE: 2.5, "euler": 2.0}, {WHOLE: 1.5, "remap": 1.0}]  # fmt: skip


def test_rows_in_the_order_of_the_timers_are_repetitions_in_turn(tmp_path: Path) -> None:
    rows = [f"{p},1,{name},{t + n}" for p in (2, 4) for name, t in (("a", 1.0), ("b", 10.0)) for n in range(3)]
    path = tmp_path / "timers.csv"
    path.write_text(HEAD + "\n".join(rows) + "\n")
    assert imported(path) == 0
    experiment = read(tmp_path / "made")
    held = [experiment.table(run, "counters") for run in experiment.runs]
    assert [dict(zip(one["kernel"], one["time"], strict=True)) for one in held[:3] if one is not None] == [
        {"a": 1.0 + n, "b": 10.0 + n} for n in range(3)
    ]


@pytest.mark.parametrize(("timers", "refused"), [({"a": 12.0, "b": 3.0}, True), ({"a": 8.0, "b": 6.0}, False)])
def test_a_model_whose_parts_exceed_the_whole_is_refused_or_says_so(
    tmp_path: Path, timers: dict[str, float], refused: bool
) -> None:
    experiment = rs.Experiment.create(tmp_path / "own.exp", "own", ["ranks"])
    for ranks in (1, 2, 4, 8):
        times = {WHOLE: 10.0, **timers}
        rows = pd.DataFrame({"kernel": list(times), "rank": -1, "time": [time / ranks for time in times.values()]})
        experiment.add(rs.Run({"ranks": ranks}, provenance={"time": "measured"}), rows)
    if refused:
        with pytest.raises(InputError, match="a takes longer than the whole program"):
            rs.fit(experiment)
    else:
        assert any("1.4 times the program's" in note for note in rs.fit(experiment).remarks.notes)


def test_no_inclusive_time_of_a_summary_is_added_up(tmp_path: Path) -> None:
    """GPTL's summaries over ranks hold the largest and the mean time of nested timers."""
    head = "name  on  processes  threads  count  walltotal  wallmax (proc  thrd )  wallmin (proc  thrd )\n"
    for ranks in (4, 8, 16, 32):
        times = {"loop": 640.0 / ranks, "dynamics": 400.0 / ranks, "physics": 200.0 / ranks}
        rows = [f'"{name}"  -  {ranks}  {ranks}  {9 * ranks}  {t * ranks}  {t} ( 0  0)  {t} ( 1  0)' for name, t in times.items()]  # fmt: skip
        path = tmp_path / f"summary{ranks}.txt"
        path.write_text(f"***** GLOBAL STATISTICS ({ranks} MPI TASKS) *****\n\n{head}" + "\n".join(rows) + "\n\n")
    files = sorted(map(str, tmp_path.glob("summary*.txt")))
    assert main(["import", "gptl", *files, "-o", str(tmp_path / "made"), "--quiet"]) == 0
    found = rs.fit(tmp_path / "made").predict(ranks=64).table()
    rows = found[found["kernel"].isna()]
    assert set(rows["metric"]) == {"visits"}
    assert found.set_index(["kernel", "metric"]).loc[("loop", "time_inclusive_mean"), "value"] == pytest.approx(
        10, rel=0.02
    )


@pytest.mark.parametrize("timers", [NESTED, {"Total": 10.0, "solve": 6.0, "halo": 2.5, "init": 1.4}])
def test_the_total_can_be_asked_for_by_its_name(tmp_path: Path, timers: dict[str, float]) -> None:
    """Whether the others are its parts, or contain each other."""
    assert imported(table(tmp_path, timers), "--total", "Total") == 0
    model = rs.fit(tmp_path / "made")
    rows = model.predict(ranks=8, kernels="Total").table()
    assert rows["value"].tolist() == pytest.approx([10.0], rel=0.02)
    with pytest.raises(InputError, match="no kernel 'Totals'"):
        model.predict(ranks=8, kernels="Totals")
