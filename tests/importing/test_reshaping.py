"""Tables that are not tidy: wide ones, long ones, packed ones, columns below each other."""

from __future__ import annotations

import gzip
import shlex
from pathlib import Path

import pytest

from ranksight.cli import main
from ranksight.core import limits
from ranksight.core.experiment import WHOLE, read


def imported(folder: Path, content: str | bytes, *options: str, name: str = "t.csv") -> int:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return main(["import", "csv", str(path), "-o", str(folder / "made"), "--quiet", *options])


def values(folder: Path, metric: str = "time") -> dict[tuple[float, str, int], list[float]]:
    """By ranks, kernel and rank: a value a repetition."""
    experiment = read(folder / "made")
    found: dict[tuple[float, str, int], list[float]] = {}
    for run in sorted(experiment.runs, key=lambda each: each.repetition):
        table = experiment.table(run, "counters")
        assert table is not None
        for row in table.to_dict("records"):
            key = (run.configuration["ranks"], str(row["kernel"]), int(row["rank"]))
            found.setdefault(key, []).append(row.get(metric, float("nan")))
    return found


KERNELS = ("--parameter", "ranks", "--kernel", "kernel", "--metric", "time=value")


def test_columns_that_are_kernels_are_molten(tmp_path: Path) -> None:
    table = "ranks,note,t_solve,t_halo\n1,x,8,0\n2,y,4,\n4,z,2,3\n"
    assert imported(tmp_path, table, "--melt", "kernel=t_*", *KERNELS) == 0
    assert values(tmp_path) == {
        (1, "t_solve", -1): [8],
        (1, "t_halo", -1): [0],
        (2, "t_solve", -1): [4],
        (4, "t_solve", -1): [2],
        (4, "t_halo", -1): [3],
    }


def test_columns_of_several_options_are_molten_together(tmp_path: Path) -> None:
    table = "ranks,solve,halo,note\n1,8,1,x\n2,4,2,y\n"
    assert imported(tmp_path, table, "--melt", "kernel=solve", "--melt", "kernel=halo", *KERNELS) == 0
    assert values(tmp_path) == {
        (1, "solve", -1): [8],
        (1, "halo", -1): [1],
        (2, "solve", -1): [4],
        (2, "halo", -1): [2],
    }


def test_columns_that_are_ranks_are_molten_in_the_unit_of_their_names(tmp_path: Path) -> None:
    table = "kernel,1 [ms],2 [ms]\na,8,4\na,9,5\nb,1,1\n"
    assert imported(tmp_path, table, "--melt", "ranks=[12]*", *KERNELS) == 0
    found = values(tmp_path)
    assert found[1, "a", -1] == pytest.approx([8e-3, 9e-3])
    assert found[2, "b", -1] == pytest.approx([1e-3])


def test_a_column_that_names_metrics_is_pivoted_rank_by_rank_and_row_by_row(tmp_path: Path) -> None:
    rows = ["p,rank,what,cell,remark"]
    for p in (1, 2):
        for rank in range(p):
            rows += [f"{p},{rank},time,{p + rank / 10},a", f"{p},{rank},instructions,{100 * p},b"]
            rows += [f"{p},{rank},power,1,c", f"{p},{rank},time,{p + rank / 10 + 5},d"]
    options = ("--parameter", "ranks=p", "--rank", "rank", "--metric", "time", "--metric", "instructions")
    assert imported(tmp_path, "\n".join(rows), "--pivot", "what=cell", *options) == 0
    assert values(tmp_path)[2, WHOLE, 1] == pytest.approx([2.1, 7.1])
    assert values(tmp_path, "instructions")[2, WHOLE, 1][0] == 200


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--melt", "kernel=nothing_*"), "has no column 'nothing_*'"),
        (("--melt", "ranks=b"), "has a column 'ranks' already"),
        (("--melt", "kernel=a [ms],b"), "different units"),
        (("--melt", "kernel"), "write --melt NAME=VALUE"),
        (("--melt", "kernel=b", "--melt", "other=b"), "--melt makes one column, not kernel, other"),
        (("--pivot", "kind=b"), "has no column 'kind'"),
        (("--pivot", "b=ranks"), "has no 'ranks' in column 'b'"),
        (("--melt", "kernel=b", "--pivot", "ranks=b"), "give one of them"),
    ],
)
def test_shapes_that_a_table_has_not_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], said: str
) -> None:
    assert imported(tmp_path, "ranks,a [ms],b\n1,2,3\n", *options, *KERNELS[:2], "--metric", "time=value") in (1, 2)
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    "table",
    [
        "ranks  time   name\n  1     2.5    'a'\n 16     .5D+00 b \n",
        "# ranks time size\n1  2.5\t3\n\n16  5.0d-1 4\n",
        'ranks\ttime\tname\n1\t2.5\t"a b"\n16\t0.5\tc d\n',
    ],
)
def test_columns_may_stand_below_each_other(tmp_path: Path, table: str) -> None:
    assert imported(tmp_path, table, "--parameter", "ranks", "--metric", "time") == 0
    assert values(tmp_path) == {(1, WHOLE, -1): [2.5], (16, WHOLE, -1): [0.5]}


def test_packed_tables_are_read_and_damaged_or_huge_ones_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = gzip.compress(b"ranks,time\n1,2.5\n" * 1)
    options = ("--parameter", "ranks", "--metric", "time")
    assert imported(tmp_path, packed, *options, name="t.csv.gz") == 0
    assert values(tmp_path) == {(1, WHOLE, -1): [2.5]}
    assert imported(tmp_path, packed[:-9], *options, "--force", name="cut.csv.gz") == 1
    assert "cut.csv.gz cannot be unpacked" in capsys.readouterr().err
    monkeypatch.setattr(limits, "UNPACKED", 10)
    assert imported(tmp_path, packed, *options, "--force", name="t.csv.gz") == 1
    assert "unpacks to more than" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("table", "runs", "kernels"),
    [
        ("size,1,2,4,8,16\n100,100,50,25,12.5,6.25\n200,800,400,200,100,50\n", 10, 1),
        ("kernel,1 [ms],2 [ms]\na,100,50\nb,800,400\n", 2, 2),
        ("ranks,solve,io\n1,8,3\n2,4,3\n4,2,3\n", 3, 2),
        ("ranks,size,solve,io\n1,1,8,3\n2,1,4,3\n1,2,16,3\n2,2,8,3\n", 4, 2),
        ("ranks,1000,2000\n1,8.5,16\n2,4,8\n", 4, 1),
        ("np,region,metric,val\n1,a,time,8\n1,a,instructions,1e9\n2,a,time,4\n2,a,instructions,5e8\n", 2, 1),
        ("np,what,val\n1,Elapsed,8\n1,flops,1e9\n2,Elapsed,4\n2,flops,5e8\n", 2, 1),
        ("size," + ",".join(map(str, range(1, 21))) + "\n" + "\n".join(["7" + ",8" * 20, "9" + ",6" * 20]), 40, 1),
    ],
)
def test_times_without_a_column_are_read_by_the_command_that_the_error_names(
    table: str, runs: int, kernels: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "the wide.csv"
    path.write_text(table)
    assert main(["import", str(path)]) == 1
    command = " ".join(capsys.readouterr().err.split()).split("are read by: ")[1]
    program, *words = shlex.split(command)
    assert program == "ranksight"
    assert main([*words, "-o", str(tmp_path / "made")]) == 0
    made = read(tmp_path / "made")
    assert len(made.runs) == runs
    assert {made.table(run, "counters")["kernel"].nunique() for run in made.runs} == {kernels}


@pytest.mark.parametrize(
    ("table", "repeated"),
    [
        ("ranks,run 1,run 2\n1,80.5,81.2\n2,41.1,40.6\n4,21.7,21.9\n", True),
        ("ranks,run 1,run 2\n1,80.5,20.2\n2,41.1,10.6\n4,21.7,6.9\n", False),
        ("ranks,solve,halo\n1,80.5,81.2\n2,41.1,40.6\n4,21.7,21.9\n", False),
    ],
    ids=["repetitions", "far apart", "named"],
)
def test_columns_that_repeat_a_time_are_no_kernels(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], table: str, repeated: bool
) -> None:
    """Names that differ by a number alone and values that scatter: their sum would be as many times the time."""
    assert imported(tmp_path, table) == 1
    command = shlex.split(capsys.readouterr().err.split("side by side are read by: ")[1])
    assert command[:3] == ["ranksight", "import", "csv"]
    assert main([*command[1:], "-o", str(tmp_path / "made"), "--quiet"]) == 0
    kernels = {kernel for _, kernel, _ in values(tmp_path)}
    assert kernels == ({WHOLE} if repeated else set(table.split("\n")[0].split(",")[1:]))
    assert len(read(tmp_path / "made").runs) == (6 if repeated else 3)
