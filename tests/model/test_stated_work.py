"""Work per rank as the user states it: computation follows it alone, messages go on following ranks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.cli.main import main
from ranksight.core.errors import InputError
from ranksight.core.experiment import Experiment, Run
from ranksight.model import modelfile
from ranksight.model.fit import fit
from ranksight.model.fitted_model import Model

WORK = "size^3/ranks"
RANKS = (1, 2, 4, 8, 16, 32, 64)


def seconds(x: float) -> float:
    """Time of the kernel with x cells: fewer cycles a cell as the working set shrinks."""
    return 2e-8 * x * (1 + 0.4 * x / (x + 4e4))


def measured(place: Path, sizes: tuple[int, ...]) -> Experiment:
    made = Experiment.create(place / "cells.exp", "cells", ["ranks", "size"])
    for size in sizes:
        for ranks in RANKS:
            x = size**3 / ranks
            table = {"kernel": ["solve", "MPI_Allreduce"], "rank": -1, "time": [seconds(x), 2e-4 * np.log2(2 * ranks)]}
            table["instructions"] = [40 * x + 900, np.nan]
            made.add(Run({"ranks": ranks, "size": size}, collector="made"), pd.DataFrame(table))
    return made


@pytest.fixture(scope="module")
def one_size(tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    return measured(tmp_path_factory.mktemp("one"), (64,))


def test_one_size_predicts_another_where_a_rank_has_as_much(one_size: Experiment, tmp_path: Path) -> None:
    fit(one_size, work=WORK).save(tmp_path / "m.json")
    model = Model.load(tmp_path / "m.json")
    answers = model.predict(ranks=[64, 512], size=128).answers
    found = {(each.kernel, each.metric, each.configuration["ranks"]): each for each in answers}
    for ranks in (64, 512):
        x = 128**3 / ranks
        time, count = found["solve", "time", ranks], found["solve", "instructions", ranks]
        assert time.value == pytest.approx(seconds(x), rel=0.03)
        assert time.lower < seconds(x) < time.upper < 1.5 * time.lower
        assert count.value == pytest.approx(40 * x + 900, rel=1e-6)
        assert found["MPI_Allreduce", "time", ranks].reason.startswith("ranks and work_per_rank varied together only")


def test_without_the_statement_one_size_predicts_no_other(one_size: Experiment) -> None:
    answers = fit(one_size).predict(ranks=512, size=128, kernels=["solve"], metrics=["time"]).answers
    assert all("size took one value" in answer.reason for answer in answers)


def test_messages_follow_ranks_where_two_sizes_were_measured(tmp_path: Path) -> None:
    model = fit(measured(tmp_path, (64, 96)), work=WORK)
    answers = model.predict(ranks=512, size=128, kernels=["MPI_Allreduce", "solve"], metrics=["time"]).answers
    found = {answer.kernel: answer for answer in answers}
    assert found["MPI_Allreduce"].value == pytest.approx(2e-4 * 10, rel=0.02)
    assert found["solve"].value == pytest.approx(seconds(4096), rel=0.03)


def test_more_ranks_widen_the_interval_of_the_same_work(one_size: Experiment) -> None:
    model = fit(one_size, work=WORK)
    near, far = (
        model.predict(ranks=ranks, size=size, kernels=["solve"], metrics=["time"]).answers[0]
        for ranks, size in ((16, 64), (65536, 1024))
    )
    assert far.upper / far.lower > 1.1 * near.upper / near.lower


def test_the_whole_program_alone_is_computation(tmp_path: Path) -> None:
    made = Experiment.create(tmp_path / "whole.exp", "whole", ["ranks", "size"])
    for ranks in RANKS:
        table = pd.DataFrame({"kernel": ["(whole program)"], "rank": -1, "time": [seconds(64**3 / ranks)]})
        made.add(Run({"ranks": ranks, "size": 64}, collector="made"), table)
    answer = fit(made, work=WORK).predict(ranks=512, size=128, metrics=["time"]).answers[-1]
    assert answer.value == pytest.approx(seconds(4096), rel=0.03)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("6*ne*ne/ranks", "is of ne"),
        ("size-size", "is 0 at ranks = 1"),
        ("0-size", "is -64 at ranks = 1"),
        ("size/(ranks-1)", "at ranks = 1"),
        ("12", "is of no parameter"),
        ("size^999^9", "is inf"),
        ("size**", "expected a name or a number, found '*'"),
        ('__import__("os")', "expected a sign, found '('"),
        ("(" * 4000 + "size" + ")" * 4000, ""),
        ("", ""),
    ],
)
def test_a_formula_that_cannot_be_is_one_line(
    one_size: Experiment, given: str, reason: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["fit", str(one_size.path), "--work", given, "-o", str(tmp_path / "m.json")]) == 1
    error = capsys.readouterr().err
    assert reason in error
    assert "work_per_rank" in error
    assert error.count("\n") == 1
    assert len(error) < 600


def test_work_is_stated_once(one_size: Experiment) -> None:
    with pytest.raises(InputError, match="both state the work"):
        fit(one_size, work=WORK, units="cells=size^3")
    with pytest.raises(InputError, match="a parameter already"):
        fit(one_size, work=WORK, derive={"work_per_rank": "size/ranks"})


def test_damaged_functions_are_refused(one_size: Experiment, tmp_path: Path) -> None:
    fit(one_size, work=WORK).save(tmp_path / "m.json")
    whole = modelfile.read(tmp_path / "m.json")
    broken = 0
    for content in whole.values():
        if isinstance(content, dict) and "unaffected" in content:
            content["unaffected"] = np.array([[True]])
            broken += 1
    assert broken == 1
    modelfile.write(tmp_path / "m.json", whole, force=True)
    with pytest.raises(InputError, match="'unaffected' has the shape"):
        Model.load(tmp_path / "m.json").predict(ranks=4, size=64)
