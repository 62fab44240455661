"""What two screens show of one model says the same thing."""

from __future__ import annotations

import contextlib
import html
import io
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ranksight as rs
from ranksight.cli.main import main
from ranksight.core.experiment import Experiment, Run
from ranksight.model.application.measured import Measured, seconds_of
from ranksight.model.fit import assemble
from ranksight.model.fitted_model import Model
from ranksight.model.largest import largest_run
from ranksight.reports.html.context import Context
from ranksight.reports.html.page import render
from ranksight.reports.measured import measured
from ranksight.reports.sweep import sweep
from ranksight.reports.unpredicted import next_run, unpredicted

Work = Callable[[int], np.ndarray]
RANKS = (2, 4, 8, 16, 32)


def by_rank(folder: Path, work: Work, barrier: bool = True, noise: float = 0.01) -> Experiment:
    """Runs in which ranks compute as `work` has it, and wait for the slowest in a barrier."""
    made, random = Experiment.create(folder / "runs", "program", ["ranks"]), np.random.default_rng(3)
    for p in RANKS:
        for repetition in range(2):
            took = work(p) * (1 + noise * random.standard_normal(p))
            rows = pd.DataFrame({"kernel": "solve", "rank": np.arange(p), "time": took})
            if barrier:
                waits = pd.DataFrame({"kernel": "MPI_Barrier", "rank": np.arange(p), "time": took.max() - took + 1e-3})
                rows = pd.concat([rows, waits], ignore_index=True)
            made.add(Run({"ranks": p}, repetition=repetition), rows)
    return made


def saved(folder: Path, made: Experiment) -> Path:
    """A model of the runs, on disk."""
    assemble(made)[0].save(folder / "m.json")
    return folder / "m.json"


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    main(list(words))
    return " ".join(capsys.readouterr().out.split())


def page_of(model: Model, made: Experiment, **target: float) -> str:
    """The words of the report."""
    along = next(iter(target))
    text = render(Context(model, sweep(model, along=along, to=target[along]), (made,)), None)
    text = re.sub(r"(?s)<(script|style).*?</\1>", "", text)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())


@pytest.fixture(scope="module")
def unanswered(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Experiment]:
    """The first rank has more with the ranks, so that at 512 the laws of the imbalance have no answer."""
    folder = tmp_path_factory.mktemp("unanswered")
    made = by_rank(folder, lambda p: 100 / p + np.where(np.arange(p) == 0, 0.05 * p, 0.0))
    return saved(folder, made), made


def test_an_imbalance_without_an_answer_is_said_and_divides_nothing(
    unanswered: tuple[Path, Experiment], capsys: pytest.CaptureFixture[str]
) -> None:
    file, made = unanswered
    model = Model.load(file)
    found = model.diagnose(ranks=512)
    table = found.efficiencies().set_index("ranks")
    assert np.isnan(table.loc[512, ["load_balance", "parallel", "computation_scaling"]].astype(float)).all()
    assert np.isfinite(table.loc[32, ["load_balance", "parallel", "computation_scaling"]].astype(float)).all()
    assert found.parts["imbalance"].tolist() == [0.0]
    (row,) = found.balance().query("kernel == 'solve'").to_dict("records")
    assert np.isnan([row["ahead"], row["lost"]]).all()
    said = "the imbalance of solve at ranks = 512 has insufficient data"
    assert said in shown(capsys, "predict", str(file), "--ranks", "512")
    diagnosed = shown(capsys, "diagnose", str(file), "--ranks", "512")
    assert "insufficient data for its imbalance at 512" in diagnosed
    assert "the busiest rank" not in diagnosed
    page = page_of(model, made, ranks=512)
    assert "From 512 ranks on the imbalance has insufficient data" in page
    assert "the busiest rank" not in page
    # Where it has an answer nothing is said.
    assert "insufficient data" not in shown(capsys, "predict", str(file), "--ranks", "64", "--kernel", "solve")


def test_a_class_without_a_law_goes_on_as_the_busiest_rank_that_it_is(unanswered: tuple[Path, Experiment]) -> None:
    """The program took less than its slowest kernel, where the law of the busiest rank had an answer alone."""
    model = Model.load(unanswered[0])
    for ranks in (64, 128, 200, 256, 300):
        program, solve = (
            next(each.value for each in model.predict(ranks=ranks, metrics="time").answers if each.kernel == kernel)
            for kernel in (None, "solve")
        )
        assert program == pytest.approx(solve, rel=0.06)


def test_a_rank_has_one_name_on_all_screens(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = by_rank(tmp_path, lambda p: 100 / p * np.where(np.arange(p) == p - 1, 1.3, 1.0))
    model = assemble(made)[0]
    model.save(tmp_path / "m.json")
    predicted = shown(capsys, "predict", str(tmp_path / "m.json"), "--ranks", "32,128")
    diagnosed = shown(capsys, "diagnose", str(tmp_path / "m.json"), "--ranks", "128")
    assert "at ranks = 32 all wait for rank 31, the last, which" in predicted
    assert "at ranks = 128 all wait for rank 127, the last, which" in predicted
    assert "rank 31, the last, does" in diagnosed
    assert "all wait for rank 127, the last" in diagnosed
    assert "all wait for rank 127, the last" in page_of(model, made, ranks=128)


def test_no_rank_is_named_where_another_may_take_longer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The last two ranks have as much work."""
    made = by_rank(tmp_path, lambda p: 100 / p * np.where(np.arange(p) >= p - 2, 1.2, 1.0))
    assert "all wait for" not in shown(capsys, "predict", str(saved(tmp_path, made)), "--ranks", "512")
    assert "all wait for" not in shown(capsys, "diagnose", str(tmp_path / "m.json"), "--ranks", "512")


def test_a_call_has_what_it_takes_by_itself_and_no_part_of_the_waiting(tmp_path: Path) -> None:
    """Of what is no waiting, a send of 0.2 s had a part in proportion to the times with their waiting."""
    made = Experiment.create(tmp_path / "runs", "program", ["ranks"])
    for p in RANKS:
        took = 100 / p * np.where(np.arange(p) == p - 1, 1.3, 1.0)
        waits = took.max() - took + 0.05 * np.log2(p)
        each = {"solve": took, "MPI_Isend": np.full(p, 0.2), "MPI_Allreduce": waits}
        tables = [pd.DataFrame({"kernel": name, "rank": np.arange(p), "time": x}) for name, x in each.items()]
        made.add(Run({"ranks": p}), pd.concat(tables, ignore_index=True))
    model = assemble(made)[0]
    model.save(tmp_path / "m.json")
    for ranks in (8, 32, 512):
        times = Model.load(tmp_path / "m.json").diagnose(ranks=ranks).verdicts().set_index("kernel")["time"]
        assert times["MPI_Isend"] == pytest.approx(0.2, rel=0.02)
        assert times["MPI_Allreduce"] == pytest.approx(0.05 * np.log2(ranks), rel=0.05)


def test_kinds_of_messages_have_what_the_rank_that_waits_least_spends() -> None:
    """An mpiP profile of four ranks: all but one wait 3.75 s in the reduction for the last."""
    seconds = {"point-to-point": 0.2, "Allreduce": 3.85}
    least = {"point-to-point": 0.2, "Allreduce": 0.1}
    run = Measured((4.0,), seconds, 0.3 / 4.05, 30.0, least)
    prices = {kind: np.array([1.0]) for kind in seconds}
    taken = seconds_of([run], {(4.0,): 3.75}, prices)
    assert {kind: float(each[0]) for kind, each in taken.items()} == pytest.approx(least)
    # Ranks have unlike messages: no more than the imbalance is taken off, and of no call that takes as long on all.
    taken = seconds_of([run], {(4.0,): 0.01}, prices)
    assert {kind: float(each[0]) for kind, each in taken.items()} == pytest.approx(seconds | {"Allreduce": 3.84})


def test_the_measured_times_of_a_report_are_those_that_are_predicted(tmp_path: Path) -> None:
    """Kernels' times with the waiting for each other were drawn next to a time without it."""
    made = by_rank(tmp_path, lambda p: 100 / p * np.where(np.arange(p) == p - 1, 1.3, 1.0))
    model = assemble(made)[0]
    found = measured(model, [made])
    assert found is not None
    times, what = found.total(model)
    assert what == "measured slowest rank without waiting"
    assert times == pytest.approx(
        model.predict(ranks=list(RANKS), metrics="time").table().query("kernel.isna()")["value"], rel=0.01
    )
    assert "measured slowest rank without waiting, used in the fit" in page_of(model, made, ranks=64)


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Experiment]:
    folder = tmp_path_factory.mktemp("mesh")
    made = Experiment.create(folder / "runs", "mesh", ["width"])
    for width in (0.5, 0.25, 0.125, 0.0625, 0.03125):
        for repetition in range(2):
            table = pd.DataFrame({"kernel": ["solve"], "rank": [0], "time": [0.1 / width**2 * (1 + 0.01 * repetition)]})
            made.add(Run({"width": width}, repetition=repetition), table)
    return saved(folder, made), made


def test_all_screens_ask_for_a_finer_mesh_next(
    mesh: tuple[Path, Experiment], capsys: pytest.CaptureFixture[str]
) -> None:
    """A smaller width is the larger problem: `fit` asked for half of it, and a report for twice the largest."""
    file, made = mesh
    model = Model.load(file)
    assert model.next_larger.tolist() == [0.015625]
    assert "--width 0.015625" in shown(capsys, "fit", str(made.path), "-o", str(file), "-f")
    assert shown(capsys, "diagnose", str(file)).startswith("width 0.03125: ")
    assert "At width 0.01562," in shown(capsys, "report", str(file), "-f")
    asked = sweep(model)
    assert asked.values[[0, -1]].tolist() == [0.5, 0.015625]
    assert (np.diff(asked.values) < 0).all()
    assert asked.values[asked.nearest] == 0.03125
    assert next_run(sweep(model, to=0.001)) == "width 0.01562"
    assert next_run(sweep(model, to=0.03125)) == "width 0.01562"
    # A coarser mesh that is asked for is reached from the finest.
    assert (np.diff(sweep(model, to=2.0).values) > 0).all()
    page_of(model, made, width=0.001)
    planned = shown(capsys, "plan", str(file), "--width", "0.001")
    assert "width 0.5/2^(n-1) (as measured) to 0.001" in planned
    assert "next: ranksight measure --width 0.00195312" in planned


def test_the_largest_run_is_of_most_cores_and_the_largest_problem() -> None:
    runs = np.array([[4, 0.1], [8, 0.2], [8, 0.05], [2, 0.01]])
    assert largest_run(("ranks", "width"), runs) == 2
    assert largest_run(("ranks", "size"), runs * [1, 100]) == 1


def profile(folder: Path) -> list[str]:
    """mpiP reports of a program whose last rank computes 20 % longer and that sends for 0.2 s."""
    names, folder = [], folder / "mpip"
    folder.mkdir()
    for p in RANKS:
        computing = 100 / min(p, 8) * np.where(np.arange(p) == p - 1, 1.2, 1.0)
        waits = computing.max() - computing + 0.05 * np.log2(p)
        text = ["@ mpiP", "@ Command : ./ring", "@ Version                  : 3.5.0"]
        text += [f"@ MPI Task Assignment      : {rank} node" for rank in range(p)]
        text += ["", *section("MPI Time (seconds)"), "Task    AppTime    MPITime     MPI%"]
        whole = computing + waits + 0.2
        rows = zip(range(p), whole, waits + 0.2, strict=True)
        text += [f"{rank:4d} {app:.4g} {mpi:.4g} {100 * mpi / app:.2f}" for rank, app, mpi in rows]
        text += [f"   * {whole.sum():.4g} {(waits + 0.2).sum():.4g} 10.0"]
        text += [*section("Callsites: 2"), " ID Lev File/Address        Line Parent_Funct             MPI_Call"]
        text += ["  1   0 ring.c                42 exchange                 Isend"]
        text += ["  2   0 ring.c                57 norm                     Allreduce"]
        text += section(f"Callsite Time statistics (all, milliseconds): {2 * (p + 1)}")
        text += ["Name              Site Rank  Count      Max     Mean      Min   App%   MPI%"]
        sent = section("Callsite Message Sent statistics (all, sent bytes)")
        sent += ["Name              Site Rank   Count       Max      Mean       Min       Sum"]
        for name, site, took, size in (("Allreduce", 2, waits, 8), ("Isend", 1, np.full(p, 0.2), 8000)):
            for rank, ms in enumerate((100 * took).tolist()):
                text.append(f"{name} {site} {rank} 10 {ms:.4g} {ms:.4g} {ms:.4g} 1.0 1.0")
                sent.append(f"{name} {site} {rank} 10 {size} {size} {size} {10 * size}")
            ms = 100 * float(took.mean())
            text += [f"{name} {site} * {10 * p} {100 * took.max():.4g} {ms:.4g} {100 * took.min():.4g} 1.0 1.0", ""]
            sent += [f"{name} {site} * {10 * p} {size} {size} {size} {10 * p * size}", ""]
        names.append(str(folder / f"ring.{p}.mpiP"))
        Path(names[-1]).write_text("\n".join([*text, *sent, *section("End of Report")]) + "\n")
    return names


def section(title: str) -> list[str]:
    return ["-" * 75, f"@--- {title} {'-' * (69 - len(title))}", "-" * 75]


@pytest.fixture(scope="module")
def profiled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Experiment, str]:
    folder = tmp_path_factory.mktemp("profiled")
    with contextlib.redirect_stdout(io.StringIO()) as said:
        assert main(["import", "mpip", *profile(folder), "-o", str(folder / "runs")]) == 0
    made = rs.read(folder / "runs")
    return saved(folder, made), made, said.getvalue()


def test_all_screens_count_the_kernels_that_make_up_the_time(
    profiled: tuple[Path, Experiment, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """What mpiP timed, the kernels that call MPI and the whole program made four, three and five kernels."""
    file, made, imported = profiled
    model = Model.load(file)
    assert re.search(r"kernels\s+3\n", imported)
    assert len(model.diagnose(ranks=512).verdicts()) == 3
    assert "3 kernels in the program's time; " in shown(capsys, "report", str(file), "--ranks", "512", "-f")
    page = page_of(model, made, ranks=512)
    assert "The data suffice for all times of 3 kernels." in page
    assert "The 3 largest of 3 kernels" in page


@pytest.mark.parametrize("which", ["profiled", "unanswered"])
def test_shares_are_those_of_the_program_on_all_screens(
    which: str, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    """A fit had the waiting of others in its shares, and a report what was measured with it."""
    file, made, *_ = request.getfixturevalue(which)
    model = Model.load(file)
    shares = model.table().query("metric == 'time'").set_index("kernel")["share"]
    diagnosed = model.diagnose(ranks=32).verdicts().set_index("kernel")["share"]
    predicted = {row["kernel"]: row["share"] for row in model.predict(ranks=32).to_dict()["kernels"]}
    for kernel, share in shares.items():
        if kernel in diagnosed.index:
            assert share == pytest.approx(diagnosed[kernel]) == pytest.approx(predicted[kernel])
        else:
            assert np.isnan(share)
    fitted = shown(capsys, "fit", str(made.path), "-o", str(file), "-f")
    assert "time (s), shares of the program at ranks 32" in fitted
    assert f"{shares.max():.1%}" in fitted
    if which == "unanswered":
        page = page_of(model, made, ranks=512)
        heavy = model.diagnose(ranks=512).verdicts().set_index("kernel")["share"]
        assert f"100.0% of the time at 32 ranks, the largest run, and {heavy.sum():.1%} at the target" in page


def test_no_number_of_repetitions_is_named_for_a_constant(tmp_path: Path) -> None:
    made, random = Experiment.create(tmp_path / "runs", "program", ["ranks"]), np.random.default_rng(4)
    for p in (1, *RANKS):
        for repetition in range(2):
            rows = [
                {"kernel": "solve", "rank": -1, "time": 100 / p * (1 + 0.01 * random.standard_normal())},
                {"kernel": "constant", "rank": -1, "time": np.exp(0.9 * random.standard_normal())},
            ]
            made.add(Run({"ranks": p}, repetition=repetition), pd.DataFrame(rows))
    model = assemble(made)[0]
    noisy = [each for each in unpredicted(sweep(model, to=512)) if each.reason.startswith("noise above the signal")]
    assert [each.kernel for each in noisy] == ["constant"]
    assert not re.search(r"\d", noisy[0].reason + noisy[0].remedy)


def test_nothing_that_grows_is_said_to_saturate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = Experiment.create(tmp_path / "runs", "program", ["ranks"])
    for p in (1, *RANKS):
        rows = [
            {"kernel": "solve", "rank": -1, "time": 100 / min(p, 16)},
            {"kernel": "halo", "rank": -1, "time": 0.3 + 0.05 * np.log2(p)},
        ]
        made.add(Run({"ranks": p}), pd.DataFrame(rows))
    model = assemble(made)[0]
    model.save(tmp_path / "m.json")
    text = shown(capsys, "diagnose", str(tmp_path / "m.json"), "--ranks", "512")
    assert "solve saturates from 16 ranks on: 6.25 s at 512" in text
    assert re.search(r"halo grows like log\(ranks\) from \d ranks? on: 7\d\d ms at 512, 2.\d+ times its least", text)
    page = page_of(model, made, ranks=512)
    assert "saturates from 16" in page
    assert "grows like log(ranks) from " in page
