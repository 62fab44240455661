"""The demonstration: its one screen, its proof, and folders that cannot be written."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pandas as pd
import pytest

from ranksight.cli.main import main
from ranksight.core.experiment import Experiment, Run
from ranksight.model.fit import assemble
from ranksight.reports.demonstration import prove, screen
from ranksight.reports.terminal import lines


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program whose search of all ranks takes 1 ms a rank, and its check at 64 ranks."""
    place = tmp_path_factory.mktemp("made")
    for name, ranks in (("experiment", (1, 2, 4, 8)), ("check", (64, 128))):
        made = Experiment.create(place / name, "made", ["ranks", "size"])
        for p in ranks:
            for n in (8, 16, 24):
                work = {"solve": 1e5 * n**3, "search": 2e6 * p}
                rows = [
                    {"kernel": kernel, "rank": r, "instructions": count, "time": count / 2e9}
                    for kernel, count in work.items()
                    for r in range(p)
                ]
                run = Run({"ranks": p, "size": n}, collector="made", wall_time=sum(work.values()) / 2e9)
                made.add(run, pd.DataFrame(rows))
    return place


def test_wall_times_are_held_against_what_was_predicted(folder: Path) -> None:
    model = assemble(Experiment.read(folder / "experiment"))[0]
    proof = prove(model, Experiment.read(folder / "check"))
    assert len(proof.table) == 6
    assert proof.table["error"].abs().max() < 0.02
    assert proof.at({"ranks": 64, "size": 16})["measured"] == pytest.approx((1e5 * 16**3 + 2e6 * 64) / 2e9)
    target = {"ranks": 128.0, "size": 16.0}
    shown = "\n".join(lines(*screen(proof, None, target, "made up")))
    assert "Limit: search grows with the ranks" in shown
    assert "make the work of search independent of the ranks (2e+06 * ranks instructions per rank)" in " ".join(
        shown.split()
    )
    assert "6 of 6 measured times are inside" in shown
    wrong = dataclasses.replace(proof, table=proof.table.assign(inside=False))
    assert "0 of 6 measured times are inside" in "\n".join(lines(*screen(wrong, proof, target, "made up")))


def test_a_folder_that_is_not_the_demos_is_left_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years of work")
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "mine", tmp_path / "file"):
        assert main(["demo", "-o", str(place), "--force"]) == 1
        assert "exists already; name another folder with -o" in " ".join(capsys.readouterr().err.split())
    assert (tmp_path / "mine" / "thesis.tex").read_text() == "years of work"


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    places = [tmp_path / "file" / "demo", Path("/proc/demo"), tmp_path / ("x" * 300)]
    if os.geteuid() != 0:
        (tmp_path / "shut").mkdir(mode=0o500)
        places.append(tmp_path / "shut" / "demo")
    for place in places:
        assert main(["demo", "-o", str(place)]) == 1
        error = capsys.readouterr().err
        assert "cannot write" in error
        assert "Traceback" not in error
