"""Importing tidy tables: what is read, what is refused, what is said about what is left out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ranksight.cli import main
from ranksight.core.errors import InputError
from ranksight.core.experiment import WHOLE, read
from ranksight.core.numerals import decimal_mark, parse_number, parse_numbers
from ranksight.counters.readers.csv_table import Columns, read_table
from ranksight.model.series.reducing import series_from_experiment

TABLE = "ne,p,kernel,job,wallmax,q\n32,4,a,1,1.25,10\n32,4,b,1,2.5,10\n32,4,a,2,1.5,10\n64,4,a,1,3.5,20\n"


def written(folder: Path, content: str | bytes, name: str = "times.csv") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def imported(folder: Path, path: Path, *options: str) -> int:
    return main(["import", "csv", str(path), "-o", str(folder / "made"), *options])


BASIC = ("--parameter", "ranks=p", "--parameter", "size=ne", "--kernel", "kernel", "--metric", "time=wallmax")


def test_columns_become_configurations_kernels_and_repetitions(tmp_path: Path) -> None:
    assert imported(tmp_path, written(tmp_path, TABLE), *BASIC, "--repetition", "job") == 0
    experiment = read(tmp_path / "made")
    assert experiment.parameters == ("ranks", "size")
    assert [(run.configuration["size"], run.repetition) for run in experiment.runs] == [(32, 0), (32, 1), (64, 0)]
    first = experiment.table(experiment.runs[0], "counters")
    assert first is not None
    assert dict(zip(first["kernel"], first["time"], strict=True)) == {"a": 1.25, "b": 2.5}


def test_rows_that_agree_are_repetitions_without_being_reported(tmp_path: Path) -> None:
    assert imported(tmp_path, written(tmp_path, TABLE), *BASIC) == 0
    runs = read(tmp_path / "made").runs
    assert [(run.configuration["size"], run.repetition) for run in runs] == [(32, 0), (32, 1), (64, 0)]


def test_without_a_kernel_values_belong_to_the_whole(tmp_path: Path) -> None:
    path = written(tmp_path, "p,t\n1,2.5\n2,1.5\n")
    assert imported(tmp_path, path, "--parameter", "ranks=p", "--metric", "time=t") == 0
    experiment = read(tmp_path / "made")
    assert set(experiment.counters()["kernel"]) == {WHOLE}


def test_the_total_is_the_whole_program(tmp_path: Path) -> None:
    assert imported(tmp_path, written(tmp_path, TABLE), *BASIC, "--total", "b") == 0
    assert set(read(tmp_path / "made").counters()["kernel"]) == {"a", WHOLE}


def test_where_selects_rows_by_text_or_number(tmp_path: Path) -> None:
    assert imported(tmp_path, written(tmp_path, TABLE), *BASIC, "--where", "q=20.0") == 0
    (run,) = read(tmp_path / "made").runs
    assert run.configuration == {"ranks": 4, "size": 64}


def test_several_metrics_constants_and_a_parameter_of_the_path(tmp_path: Path) -> None:
    path = written(tmp_path, "n,t,i\n8,1.5,100\n16,3.5,200\n", "run_p12.csv")
    options = (
        "--parameter",
        "n",
        "--parameter",
        r"ranks=_p(\d+)",
        "--set",
        "nodes=3",
        "--metric",
        "time=t",
        "--metric",
        "instructions=i",
    )
    assert imported(tmp_path, path, *options) == 0
    experiment = read(tmp_path / "made")
    assert experiment.metrics() == ("time", "instructions")
    assert {tuple(sorted(run.configuration.items())) for run in experiment.runs} == {
        (("n", 8.0), ("nodes", 3.0), ("ranks", 12.0)),
        (("n", 16.0), ("nodes", 3.0), ("ranks", 12.0)),
    }


def test_values_keep_full_precision(tmp_path: Path) -> None:
    value = 0.1234567890123456789
    path = written(tmp_path, f"p,t\n1,{value!r}\n2,1e-300\n")
    assert imported(tmp_path, path, "--parameter", "ranks=p", "--metric", "residual=t") == 0
    assert set(read(tmp_path / "made").counters()["residual"]) == {value, 1e-300}


@pytest.mark.parametrize(
    ("content", "values"),
    [
        ("p;t\n1;1.234,5\n2;2,25\n", {1234.5, 2.25}),
        ('p,t\n1,"1,234.5"\n2,"12,345,678"\n', {1234.5, 12345678.0}),
        ("p\tt\n1\t1 234\n2\t5'678\n", {1234.0, 5678.0}),
        ("\ufeffp,t\r\n1,2\r\n2,3\r\n", {2.0, 3.0}),
        ("# made by hand\n# p,t\n1,2\n2,3\n", {2.0, 3.0}),
        ('"p","t"\n"1","2"\n\n"2","3",\n', {2.0, 3.0}),
        ("p|t\n1|2\n2|3\n", {2.0, 3.0}),
        ("p,t\n1,2\n2,3\n".encode("utf-16"), {2.0, 3.0}),
        ("p,t,größe\n1,2,0\n2,3,0\n".encode("cp1252"), {2.0, 3.0}),
    ],
)
def test_tables_as_they_come(tmp_path: Path, content: str | bytes, values: set[float]) -> None:
    path = written(tmp_path, content)
    assert imported(tmp_path, path, "--parameter", "ranks=p", "--metric", "time=t") == 0
    assert set(read(tmp_path / "made").counters()["time"]) == values


@pytest.mark.parametrize(
    ("content", "options", "said"),
    [
        ("", (), "is empty"),
        ("\n \n", (), "is empty"),
        ("p,t\n", (), "no rows"),
        ("1,2\n3,4\n", (), "numbers where the columns' names"),
        ("p,t,t\n1,2,3\n", (), "'t' twice"),
        ("p,T\n1,2\n", (), "no column 't'; nearest: T"),
        ("p,t\n1,2\n2,3,4\n", (), "times.csv:3 has 3 fields, the header has 2"),
        ("p,t\n1,2\n2\n", (), "times.csv:3 has 1 fields"),
        ("p,t\n1,2\nx,3\n", (), "times.csv:3: 'x' in column 'p'"),
        ("p,t\n1,2\n2,2x\n", (), "times.csv:3: '2x' in column 't'"),
        ('p,t\n1,"2\n', (), "times.csv:2"),
        ("p;t\n1;1,234\n2;5,678\n", (), "--decimal"),
        ("p,t\n1,\n2,nan\n", (), "no row is left"),
        ("p,t\n1,-2\n", (), "no row is left"),
        ("p,t\n0,2\n", (), "no row is left"),
        (b"p,t\n1,\x00\n", (), "NUL"),
        ("p,t\n1,2\n", ("--where", "p=7"), "no row has p = 7"),
        ("p,t\n1,2\n", ("--where", "z=7"), "no column 'z'"),
        ("p,t\n1,2\n2,\n", ("--strict",), "no value of time"),
        ("p,t\n1,2\n2,inf\n", ("--strict",), "infinite time"),
    ],
)
def test_bad_tables_are_one_clear_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str | bytes, options: tuple[str, ...], said: str
) -> None:
    path = written(tmp_path, content)
    assert imported(tmp_path, path, "--parameter", "ranks=p", "--metric", "time=t", *options) == 1
    captured = capsys.readouterr()
    assert said in captured.err
    assert "Traceback" not in captured.err
    assert len(captured.err.strip().split("\n")) == 1
    assert [item.name for item in tmp_path.iterdir()] == ["times.csv"]


def test_rows_left_out_are_counted_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, "p,t\n1,2\n2,\n4,inf\n8,-1\n,5\n16,3\n")
    assert imported(tmp_path, path, "--parameter", "ranks=p", "--metric", "time=t") == 0
    said = capsys.readouterr().err
    assert "infinite time: left out in 1 of 6 rows (line 4)" in said
    assert "negative time: left out in 1 of 6 rows (line 5)" in said
    assert "no value of parameter ranks: left out in 1 of 6 rows (line 6)" in said
    assert "no value of time: left out in 1 of 6 rows (line 3)" in said
    assert [run.configuration["ranks"] for run in read(tmp_path / "made").runs] == [1, 16]


@pytest.mark.parametrize(
    ("column", "metric", "one"),
    [
        ("t", "time", 1.0),
        ("t [ms]", "time", 1e-3),
        ("t (us)", "time", 1e-6),
        ("t_ns", "time", 1e-9),
        ("items", "time", 1.0),
        ("sent [KiB]", "bytes_sent", 1024.0),
        ("sent [MiB]", "bytes_sent", 2.0**20),
        ("n [M]", "instructions", 1.0),
    ],
)
def test_units_in_a_columns_name_count(tmp_path: Path, column: str, metric: str, one: float) -> None:
    path = written(tmp_path, f"p,{column}\n1,3\n")
    assert imported(tmp_path, path, "--parameter", "ranks=p", "--metric", f"{metric}={column}") == 0
    assert read(tmp_path / "made").counters()[metric].tolist() == [pytest.approx(3 * one)]


def test_columns_that_distinguish_cases_are_named_where_nobody_did(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "".join(
        f"{p},{mode},x,{1 / p + at:.3f},{p * at + 0.123:.3f}\n" for p in (1, 2, 4) for at, mode in enumerate((7, 9))
    )
    path = written(tmp_path, "p,mode,site,t,other\n" + rows)
    given = ["--parameter", "ranks=p", "--metric", "time=t"]
    assert imported(tmp_path, path, *given) == 0
    assert "rows that differ in mode became repetitions of one configuration" in capsys.readouterr().err
    for option in (("--where", "mode=7"), ("--kernel", "mode"), ("--repetition", "mode")):
        assert imported(tmp_path, path, *given, *option, "--force") == 0
        assert "rows that differ" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("grids", "remedy"),
    [
        (("32x32x32", "96x96x96"), "write a number in place of sides, such as 32 or 32768 for 32x32x32"),
        (("40 x 20", "80 x 40"), "write a number in place of sides, such as 800 for 40 x 20"),
        (("small", "large"), "numbers in place of its words and --parameter grid if they are sizes"),
    ],
)
def test_sizes_as_text_are_to_become_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], grids: tuple[str, ...], remedy: str
) -> None:
    rows = "".join(f"{p},{grid},{(at + 1) * 9.1 / p}\n" for p in (1, 2, 4) for at, grid in enumerate(grids))
    path = written(tmp_path, "p,grid,t\n" + rows)
    options = ["--parameter", "ranks=p", "--metric", "time=t"]
    assert imported(tmp_path, path, *options) == 1
    shown = capsys.readouterr().err
    assert remedy in shown
    assert ("--kernel grid" in shown) == (grids[0] == "small")
    assert imported(tmp_path, path, *options, "--parameter", "size=grid") == 1
    assert ("write a number in place of sides" in capsys.readouterr().err) == (grids[0] != "small")


@pytest.mark.parametrize("count", [2, 40])
def test_names_that_rows_differ_in_are_not_lumped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], count: int
) -> None:
    rows = "".join(f"{p},k{at},{p}-{at},{at / p}\n" for p in (1, 2, 4) for at in range(1, count + 1))
    path = written(tmp_path, "p,of what,id,t\n" + rows)
    options = ["--parameter", "ranks=p", "--metric", "time=t"]
    assert imported(tmp_path, path, *options) == 1
    assert "rows of one configuration differ in 'of what'; write --kernel 'of what'" in capsys.readouterr().err
    assert not (tmp_path / "made").exists()
    for option, runs in ((("--kernel", "of what"), 3), (("--repetition", "of what"), 3 * count)):
        assert imported(tmp_path, path, *options, *option, "--force") == 0
        assert len(read(tmp_path / "made")) == runs


def test_a_name_of_the_ranks_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, "NP,t\n1,2\n2,1\n")
    assert imported(tmp_path, path, "--parameter", "NP", "--metric", "time=t") == 0
    assert "--parameter ranks=NP" in capsys.readouterr().err
    assert imported(tmp_path, path, "--parameter", "ranks=NP", "--metric", "time=t", "--force") == 0
    assert not capsys.readouterr().err


def test_negative_values_of_a_metric_that_may_have_a_sign_are_kept(tmp_path: Path) -> None:
    path = written(tmp_path, "p,d\n1,-2.5\n2,3\n")
    assert imported(tmp_path, path, "--parameter", "ranks=p", "--metric", "drift=d") == 0
    assert set(read(tmp_path / "made").counters()["drift"]) == {-2.5, 3.0}


def test_the_experiment_is_replaced_only_when_forced_and_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, "p,t\n1,2\n")
    options = ("--parameter", "ranks=p", "--metric", "time=t")
    assert imported(tmp_path, path, *options) == 0
    assert imported(tmp_path, path, *options) == 1
    assert "--force" in capsys.readouterr().err
    written(tmp_path, "p,t\n1,x\n")
    assert imported(tmp_path, path, *options, "--force") == 1
    assert set(read(tmp_path / "made").counters()["time"]) == {2.0}
    written(tmp_path, "p,t\n1,7\n")
    assert imported(tmp_path, path, *options, "--force") == 0
    assert set(read(tmp_path / "made").counters()["time"]) == {7.0}
    capsys.readouterr()
    (tmp_path / "made").rename(tmp_path / "elsewhere")
    (tmp_path / "made").symlink_to(tmp_path / "elsewhere")
    assert imported(tmp_path, path, *options, "--force") == 1
    assert "is a link" in capsys.readouterr().err
    assert (tmp_path / "made").is_symlink()


def test_a_folder_that_is_no_experiment_is_never_replaced(tmp_path: Path) -> None:
    precious = tmp_path / "made"
    precious.mkdir()
    (precious / "thesis.tex").write_text("all of it")
    path = written(tmp_path, "p,t\n1,2\n")
    assert imported(tmp_path, path, "--parameter", "ranks=p", "--metric", "time=t", "--force") == 1
    assert (precious / "thesis.tex").read_text() == "all of it"


def test_a_damaged_table_among_several_is_skipped_or_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "tables"
    folder.mkdir()
    for name, text in (("a.csv", "p,t\n1,2\n"), ("b.csv", "p,t\n2\n"), ("c.csv", "p,t\n4,1\n")):
        written(folder, text, name)
    options = ("--parameter", "ranks=p", "--metric", "time=t")
    assert imported(tmp_path, folder, *options, "--strict") == 1
    assert not (tmp_path / "made").exists()
    capsys.readouterr()
    assert imported(tmp_path, folder, *options, "--format", "json") == 0
    captured = capsys.readouterr()
    assert "skipped: " in captured.err
    assert "b.csv:2" in captured.err
    printed = json.loads(captured.out)
    assert (printed["files_read"], printed["files_skipped"], printed["runs"]) == (2, 1, 2)


def test_usage_errors_are_exit_code_two(tmp_path: Path) -> None:
    path = written(tmp_path, "p,t\n1,2\n")
    assert imported(tmp_path, path, "--parameter", "p", "--metric", "t", "--set", "n=many") == 2
    assert imported(tmp_path, path, "--parameter", "p", "--metric", "t", "--total", "x") == 2
    assert imported(tmp_path, path, "--parameter", "p", "--metric", "t", "--delimiter", "ab") == 2
    assert main(["import"]) == 2


def test_decimal_mark_is_found_or_left_open() -> None:
    assert decimal_mark(["1.5", "2"], "t.csv") == "."
    assert decimal_mark(["1,5", "2"], "t.csv") == ","
    assert decimal_mark(["1,234,567"], "t.csv") == "."
    assert decimal_mark(["1,234"], "t.csv") is None
    assert decimal_mark(["0,522", "4,106"], "t.csv") == ","
    assert decimal_mark(["1.234"], "t.csv") == "."
    assert decimal_mark(["1,234"], "t.csv", whole=["1,234"]) == "."


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_number_is_read_exactly(value: float) -> None:
    values, wrong = parse_numbers([repr(value)])
    assert values[0] == value
    assert not wrong


@given(st.integers(min_value=-(10**15), max_value=10**15))
def test_thousands_separators_change_nothing(value: int) -> None:
    assert parse_number(f"{value:,}") == value
    assert parse_number(f"{value:,}".replace(",", "."), ",") == value or abs(value) < 10**6
    assert parse_number(f"{value:,}".replace(",", " ")) == value


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    content=st.one_of(
        st.binary(max_size=200),
        st.text(alphabet='pt,;\t|"1234.eE-#\n\r na', max_size=120).map(lambda text: ("p,t\n" + text).encode()),
    )
)
def test_any_bytes_are_read_or_refused(tmp_path: Path, content: bytes) -> None:
    path = written(tmp_path, content, "any.csv")
    columns = Columns({"ranks": "p"}, {"time": "t"})
    try:
        found = list(read_table(path, columns))
    except InputError as error:
        refused = error.what
        found = None
    if found is None:
        assert "any.csv" in refused
    else:
        assert found
        assert all((reading.counters["time"] >= 0).all() for reading in found if reading.counters is not None)


def test_a_period_makes_a_column_one_of_samples(tmp_path: Path) -> None:
    rows = [f"{p},k,{8e6 / p:.0f}" for p in (1, 2, 4, 8)]
    path = written(tmp_path, "\n".join(["ranks,kernel,hits", *rows]))
    options = ("--parameter", "ranks", "--kernel", "kernel", "--metric", "branches=hits", "--quiet")
    for wrong in ("branches=0", "branches=-1", "loads=3"):
        assert imported(tmp_path, path, *options, "--period", wrong) == 1
    assert imported(tmp_path, path, *options, "--period", "branches=many") == 2
    assert imported(tmp_path, path, *options, "--period", "branches=2000000") == 0
    experiment = read(tmp_path / "made")
    assert series_from_experiment(experiment).samples[0].tolist() == [4.0, 2.0, 1.0, 0.5]
    assert experiment.runs[0].provenance["branches"].startswith("sampled")


def test_a_column_that_no_name_explains_is_named_where_names_are_guessed(tmp_path: Path, capsys) -> None:
    table = "ranks,kernel,INST,remark,time\n1,a,80,x,2.0\n2,a,40,y,1.0\n4,a,20,x,0.5\n"
    assert imported(tmp_path, written(tmp_path, table), "--parameter", "ranks") == 0
    assert "not read: 'INST', 'remark' (" in capsys.readouterr().err


def test_what_differs_between_the_ranks_of_a_run_is_no_parameter(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.csv"
    rows = [
        f"{ranks},{10 * size},{kernel},{rank},{rank % 2},{1000 / ranks + rank},{size / ranks + rank}"
        for ranks in (2, 4, 8)
        for size in (1, 2)
        for kernel in ("a", "b")
        for rank in range(ranks)
    ]
    path.write_text("\n".join(["ranks,size,kernel,rank,odd,mystery,time", *rows]))
    assert main(["import", "csv", str(path), "-o", str(tmp_path / "a.exp")]) == 0
    assert read(tmp_path / "a.exp").parameters == ("ranks", "size")
    assert "not read: 'odd', 'mystery' (--metric NAME=COLUMN or --parameter COLUMN reads one)" in " ".join(
        capsys.readouterr().err.split()
    )


def test_a_value_of_all_ranks_is_of_no_rank(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, "ranks,time\n1,1e302\n2,5e301\n")
    assert imported(tmp_path, path, "--parameter", "ranks", "--metric", "time") == 1
    refused = capsys.readouterr().err
    assert "'(whole program)' has 1e+302 of time" in refused
    assert "rank -1" not in refused


def test_tables_put_one_behind_the_other_have_their_header_again(tmp_path, capsys):
    """Without options the table had no column of numbers, and what the words advised was refused."""
    table, place = tmp_path / "t.csv", str(tmp_path / "e")
    table.write_text("".join(f"ranks,time\n{p},{8 / p}\n{p},{8.1 / p}\n" for p in (1, 2, 4)) + "average,4.7\n")
    named = ["--parameter", "ranks", "--metric", "time"]
    assert main(["import", "csv", str(table), *named, "-o", place]) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "its header again, in lines 4, 7" in said
    assert "'average' in place of ranks: left out in 1 of 7 rows (line 10)" in said
    table.write_text("ranks,time\n1,8\nranks,time\n2,4\n4,2\n")
    assert main(["import", str(table), "-o", str(tmp_path / "f")]) == 0


def test_a_column_with_brackets_in_its_name_is_a_parameter(tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("Nodes (64 cores),size(MB),time\n1,8,2\n2,8,1\n4,8,0.5\n")
    named = ["--parameter", "nodes=Nodes (64 cores)", "--parameter", "size=size(MB)", "--metric", "time"]
    assert main(["import", "csv", str(table), *named, "-o", str(tmp_path / "e")]) == 0
    assert read(tmp_path / "e").parameters == ("nodes", "size")
