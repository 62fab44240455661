"""Folders as users have them: links that lead out, files that cannot be opened, a rank that is missing, odd names."""

from __future__ import annotations

from pathlib import Path

import pytest

from ranksight.campaign import recognising
from ranksight.campaign.naming import numbers_of
from ranksight.cli.main import main
from ranksight.core.errors import InputError
from ranksight.core.experiment import read

REGION = """TABLE,Region {name},Group 1 Raw,MEM_DP,2,,
Event,Counter,HWThread 0
INSTR_RETIRED_ANY,FIXC0,{count}
CPU_CLK_UNHALTED_CORE,FIXC1,2000
"""


def likwid(file: Path, name: str = "solve", count: str = "1000") -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(REGION.format(name=name, count=count))
    return file


def imported(place: Path, *words: str) -> int:
    return main(["import", *words, "-o", str(place), "--parameter", r"ranks=n(\d+)"])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for ranks in (1, 2):
        likwid(tmp_path / "runs" / f"n{ranks}.csv")
    return tmp_path / "runs"


def test_links_in_a_circle_are_passed_over(folder: Path, tmp_path: Path) -> None:
    (folder / "n4.csv").symlink_to("n4.csv")
    assert imported(tmp_path / "e", str(folder)) == 0
    assert len(read(tmp_path / "e")) == 2


@pytest.mark.parametrize(("reader", "name"), [("tau", "profile.{}.0.0"), ("pmpi", "rank-{:06}.trace")])
def test_links_in_a_circle_within_a_run_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], reader: str, name: str
) -> None:
    (tmp_path / "n2").mkdir()
    for rank in (0, 1):
        (tmp_path / "n2" / name.format(rank)).symlink_to(name.format(1 - rank))
    assert imported(tmp_path / "e", reader, str(tmp_path / "n2")) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "internal error" not in said


def test_a_link_out_of_the_folder_is_reported_and_not_followed(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "n4.csv").symlink_to(likwid(tmp_path / "elsewhere" / "n4.csv"))
    (folder / "latest.csv").symlink_to(folder / "n2.csv")
    assert imported(tmp_path / "e", str(folder)) == 0
    assert "n4.csv is a link out of" in capsys.readouterr().err
    assert {run.configuration["ranks"] for run in read(tmp_path / "e").runs} == {1, 2}
    assert imported(tmp_path / "strict", str(folder), "--strict") == 1
    assert not (tmp_path / "strict").exists()


def test_a_file_that_cannot_be_opened_is_reported_and_the_rest_imported(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    recognise = recognising.recognise

    def refusing(path: Path) -> str | None:
        if path.name == "n1.csv":
            raise InputError(f"{path} cannot be read: Permission denied")
        return recognise(path)

    monkeypatch.setattr(recognising, "recognise", refusing)
    assert imported(tmp_path / "e", str(folder)) == 0
    printed = capsys.readouterr()
    assert "skipped" in printed.err
    assert "n1.csv cannot be read: Permission denied" in printed.err
    assert "1 read, 1 skipped" in printed.out
    assert imported(tmp_path / "strict", str(folder), "--strict") == 1
    assert not (tmp_path / "strict").exists()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "damaged.csv"),
        (bytes(range(256)) * 20, "damaged.csv"),
        (REGION.format(name="solve", count="many").encode(), "damaged.csv:3"),
        (REGION.format(name="solve", count="1000").encode()[:110], "damaged.csv"),
    ],
)
def test_damage_is_one_line_and_leaves_nothing(
    content: bytes, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "damaged.csv").write_bytes(content)
    assert main(["import", "likwid", str(tmp_path / "damaged.csv"), "--set", "ranks=1", "-o", str(tmp_path / "e")]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert says in error
    assert "internal error" not in error
    assert [item.name for item in tmp_path.iterdir()] == ["damaged.csv"]


@pytest.mark.parametrize("name", ["solve<std::pair<int, double>>", 'say "x"', "it's", "é", "../../x"])
def test_names_stay_what_they_are(name: str, tmp_path: Path) -> None:
    likwid(tmp_path / "n1.csv", name)
    assert imported(tmp_path / "e", str(tmp_path / "n1.csv")) == 0
    assert set(read(tmp_path / "e").counters()["kernel"].astype(str)) == {name}
    assert sorted(item.name for item in tmp_path.iterdir()) == ["e", "n1.csv"]


def test_a_folders_name_is_found_up_to_its_end_whether_it_is_one_run_or_holds_files(tmp_path: Path) -> None:
    for ranks in (1, 2):
        for rank in range(ranks):
            likwid(tmp_path / "runs" / f"n{ranks}" / f"rank{rank}.csv")
    words = ["import", str(tmp_path / "runs"), "--parameter", r"ranks=n(\d+)/", "-o", str(tmp_path / "e"), "--strict"]
    assert main(words) == 0
    assert {run.configuration["ranks"] for run in read(tmp_path / "e").runs} == {1, 2}


@pytest.mark.parametrize(
    ("names", "patterns"),
    [
        (("lu.x1y8.r1/p.cubex", "lu.x1y16.r1/p.cubex", "lu.x3y16.r2/p.cubex"), {"x": r"x(\d+)", "y": r"y(\d+)"}),
        (("s2.5/a.txt", "s10,25/a.txt"), {"s": r"s(\d+(?:[.,]\d+)?)"}),
        (("n1.r1/a", "n1.r2/a", "n2.r1/a", "n2.r2/a"), {"n": r"n(\d+)", "r": r"r(\d+)"}),  # one must be a parameter
        (("run1.txt", "run2.txt", "run3.txt"), {}),  # repetitions are numbered
        (("slurm-4711.out", "slurm-4712.out"), {}),
        (("nodes4/a.txt",), {}),
        (("a1.txt", "b7.txt"), {}),  # they differ in more than numbers
    ],
)
def test_numbers_of_paths_that_may_be_parameters(names: tuple[str, ...], patterns: dict[str, str]) -> None:
    assert numbers_of([Path(name) for name in names]) == patterns


def test_repetitions_from_folders_of_other_numbers_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for edge in (16, 24, 40):
        (tmp_path / "in" / f"lap.e{edge}").mkdir(parents=True)
        (tmp_path / "in" / f"lap.e{edge}" / "t.txt").write_text(f"PARAMETER ranks\nPOINTS 2 4\nDATA {edge}\nDATA 9\n")
    words = ["import", "extrap", str(tmp_path / "in"), "-o", str(tmp_path / "made"), "--force"]
    assert main(words) == 0
    said = capsys.readouterr().err
    assert "3 files whose paths differ by e became repetitions of one configuration" in said
    assert r"add --parameter e='e(\d+)'" in said
    assert main([*words, "--parameter", r"e=e(\d+)"]) == 0
    assert "repetitions of one" not in capsys.readouterr().err
    assert {run.configuration["e"] for run in read(tmp_path / "made").runs} == {16.0, 24.0, 40.0}


def test_files_of_ranks_in_one_folder_are_runs_and_no_repetitions(tmp_path: Path) -> None:
    for ranks in (1, 2, 4):
        for rank in range(ranks):
            likwid(tmp_path / "runs" / f"n{ranks}.rank{rank}.csv", count=str(1000 + rank))
    assert imported(tmp_path / "e", str(tmp_path / "runs"), "--strict") == 0
    made = read(tmp_path / "e")
    assert sorted(run.configuration["ranks"] for run in made.runs) == [1, 2, 4]
    table = made.table(next(run for run in made.runs if run.configuration["ranks"] == 4), "counters")
    assert table is not None
    assert table.sort_values("rank")["instructions"].tolist() == [1000, 1001, 1002, 1003]


def test_a_missing_rank_in_one_folder_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("n4.rank0", "n4.rank1", "n4.rank3", "n2.rank0", "n2.rank1"):
        likwid(tmp_path / "runs" / f"{name}.csv")
    assert imported(tmp_path / "e", str(tmp_path / "runs")) == 0
    assert "rank 2 of 0 to 3 is missing" in capsys.readouterr().err
    assert len(read(tmp_path / "e").runs) == 1
