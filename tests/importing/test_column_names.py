"""Tables whose columns nobody names: what their names say is taken, with a note, and nothing is guessed."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from ranksight.cli import main
from ranksight.core.experiment import WHOLE, read


def imported(folder: Path, content: str, *options: str, form: str = "csv") -> int:
    path = folder / "times.txt"
    path.write_text(content, encoding="utf-8")
    return main(["import", form, str(path), "-o", str(folder / "made"), *options])


@pytest.mark.parametrize(
    ("content", "form"),
    [
        ("nodes,time\n1,100\n2,52\n4,29\n", "csv"),
        ("nodes;Wall time [s]\n1;100,0\n2;52,0\n4;29,0\n", "csv"),
        ("nodes,elapsed_ms\n1,100000\n2,52000\n4,29000\n", "csv"),
        ("nodes,walltime [min]\n1,1.6666667\n2,0.8666667\n4,0.4833333\n", "csv"),
        ("nodes,Run time (h)\n1,0.02777778\n2,0.01444444\n4,0.008055556\n", "csv"),
        ("| nodes | time_minutes |\n|---|---|\n| 1 | 1.6666667 |\n| 2 | 0.8666667 |\n| 4 | 0.4833333 |\n", "markdown"),
        ("nodes,time,time (min)\n1,100,90\n2,52,50\n4,29,28\n", "csv"),
        ("| nodes | Runtime (s) |\n|---|---|\n| 1 | 100 |\n| 2 | 52 |\n| 4 | 29 |\n", "markdown"),
        ("machine,nodes,rep,seconds\nA,1,1,100\nA,2,1,52\nA,4,1,29\n", "csv"),
    ],
)
def test_a_table_of_times_needs_no_options(tmp_path: Path, content: str, form: str) -> None:
    assert imported(tmp_path, content, form=form) == 0
    experiment = read(tmp_path / "made")
    assert experiment.parameters == ("nodes",)
    times = [experiment.table(run, "counters")["time"].item() for run in experiment.runs]
    assert times == pytest.approx([100, 52, 29])
    assert {kernel for run in experiment.runs for kernel in experiment.table(run, "counters")["kernel"]} == {WHOLE}


def test_a_file_called_as_a_table_needs_no_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, target = tmp_path / "Times.CSV", tmp_path / "made"
    table.write_text("nodes,kernel,time,half\n1,a,100,50\n2,a,52,26\n4,a,29,15\n", encoding="utf-8")
    options = ["-o", str(target), "--metric", "time=half"]
    assert main(["import", str(table), *options]) == 0
    assert [run.configuration["nodes"] for run in read(target).runs] == [1, 2, 4]
    assert main(["import", str(table), "--kernel", "kernel", "--force", *options]) == 0
    other = tmp_path / "notes.txt"
    other.write_text("nodes,time\n1,100\n2,52\n", encoding="utf-8")
    assert main(["import", str(other)]) == 1
    assert "import csv" in capsys.readouterr().err
    (tmp_path / "empty.csv").touch()
    assert main(["import", str(tmp_path / "empty.csv")]) == 1
    assert "is empty" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["ranks", "nodes", "cores", "threads"])
def test_a_run_has_one_of_what_computes_at_least(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert imported(tmp_path, f"{name},time\n0,5\n-2,5\n1,100\n2,52\n4,29\n") == 0
    assert [run.configuration[name] for run in read(tmp_path / "made").runs] == [1, 2, 4]
    said = capsys.readouterr()
    assert f"less than one {name[:-1]}: left out in 2 of 5 rows" in said.out + said.err


def test_kernels_repetitions_and_two_parameters_are_told_by_their_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [f"{n},{p},{k},{r},{n / p + r}" for n in (8, 16) for p in (1, 2) for k in ("init", "solve") for r in (1, 2)]
    assert imported(tmp_path, "\n".join(["n,p,Function,Rep,time", *rows])) == 0
    experiment = read(tmp_path / "made")
    assert set(experiment.parameters) == {"n", "p"}
    assert len(experiment.runs) == 8
    assert set(experiment.table(experiment.runs[0], "counters")["kernel"]) == {"init", "solve"}
    said = capsys.readouterr()
    assert "by the names of the columns" in said.out + said.err


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("nodes,time,elapsed\n1,2,3\n2,3,4\n", "several columns may be the time: time, elapsed"),
        ("nodes,gflops\n1,2\n2,3\n", "no column is named as a time"),
        ("machine,time\nA,2\nB,3\n", "no column of numbers that differ"),
    ],
)
def test_what_names_do_not_say_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, words: str
) -> None:
    assert imported(tmp_path, content) == 1
    error = capsys.readouterr().err
    assert words in error
    assert "--metric time=" in error


def test_stated_columns_come_before_their_names(tmp_path: Path) -> None:
    assert imported(tmp_path, "n,p,time,cpu\n8,1,4,3\n8,2,2,1\n16,2,4,2\n", "--metric", "time=cpu") == 0
    experiment = read(tmp_path / "made")
    assert experiment.table(experiment.runs[0], "counters")["time"].item() == 3


def test_ranks_and_threads_of_full_cores_are_not_taken_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No next step of half a thread, and the tie is named as a product."""
    rows = ["1,16,10", "2,8,10.2", "4,4,10.9", "8,2,12", "16,1,15"]
    assert imported(tmp_path, "\n".join(["ranks,threads,time", *rows])) == 0
    model = str(tmp_path / "m.json")
    assert main(["fit", str(tmp_path / "made"), "-o", model]) == 0
    assert "--ranks 16 --threads 1\n" in capsys.readouterr().out
    assert main(["predict", model, "--ranks", "32", "--threads", "2"]) == 4
    assert "ranks * threads = 16" in " ".join(capsys.readouterr().out.split())


def test_events_of_processors_are_read_by_their_names(tmp_path: Path) -> None:
    """The events of Ding et al. 2018, table 1, and one of PAPI; neither a place nor a name that no processor has."""
    events = {
        "INST_RETIRED.ANY_P": "instructions",
        "PAPI_TOT_CYC": "cycles",
        "MEM_LOAD_UOPS_RETIRED.L1_HIT": "loads_l1",
        "MEM_LOAD_UOPS_RETIRED.LLC_HIT": "loads_l3",
    }
    stalls = ["RESOURCE_STALLS.LB", "RESOURCE_STALLS.SB"]
    content = ",".join(["ranks", "kernel", *events, *stalls, "io_nodes", "time"]) + "\n"
    for ranks in (2, 4, 8):
        counts = [800 // ranks, 1600 // ranks, 400 // ranks, 80 // ranks, 16 // ranks, 8 // ranks]
        content += ",".join(map(str, [ranks, "solve", *counts, 1, 8 / ranks])) + "\n"
    assert imported(tmp_path, content) == 0
    made = read(tmp_path / "made")
    assert made.parameters == ("ranks",)
    table = made.table(made.runs[0], "counters")
    assert table[[*events.values()]].iloc[0].tolist() == [400, 800, 200, 40]
    assert table["stall_cycles"].item() == 12
    assert "io_nodes" not in table


def test_an_event_alone_is_enough(tmp_path: Path) -> None:
    assert imported(tmp_path, "ranks,inst_retired.any\n1,100\n2,50\n4,25\n") == 0
    assert "instructions" in read(tmp_path / "made").table(read(tmp_path / "made").runs[0], "counters")


RESULTS = {
    "speedup,efficiency": ["1.0,1.0", "1.833,0.917", "3.143,0.786", "4.889,0.611"],
    "gflops": ["1.01", "1.83", "3.14", "4.89"],
    "memory": ["2048", "1100", "620", "380"],
    "rate [MB/s]": ["10", "20", "40", "80"],
    "memory [MB]": ["100", "200", "400", "800"],
    "percent": ["100", "92", "79", "61"],
    "speedup": ["1", "2", "3", "5"],
}
CHOSEN = {
    "size": ["100", "126", "159", "200"],
    "mesh": ["100", "200", "400", "800"],
    "ppn": ["8", "4", "2", "1"],
}


@pytest.mark.parametrize("names", [*RESULTS, *CHOSEN])
def test_results_are_no_parameters(names: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What falls out of a run is not read, and named; what people chose with the ranks stays."""
    cells = (RESULTS | CHOSEN)[names]
    rows = [f"{p},{t},{cell}" for p, t, cell in zip((1, 2, 4, 8), (110, 60, 35, 22.5), cells, strict=True)]
    assert imported(tmp_path, "\n".join([f"ranks,time,{names}", *rows])) == 0
    results = [name for name in names.split(",") if names in RESULTS]
    assert set(read(tmp_path / "made").parameters) & set(names.split(",")) == set(names.split(",")) - set(results)
    assert all(repr(name) in capsys.readouterr().err for name in results[:1])


def test_scatter_between_repetitions_is_no_parameter(tmp_path: Path) -> None:
    rows = [f"{p},{100 / p + 0.1 * r},{2048 // p + r},{(0.1 + r / 7) / p}" for p in (1, 2, 4) for r in range(3)]
    assert imported(tmp_path, "\n".join(["ranks,time,maxrss,stddev", *rows])) == 0
    made = read(tmp_path / "made")
    assert made.parameters == ("ranks",)
    assert [run.repetition for run in made.runs] == [0, 1, 2] * 3


@pytest.mark.parametrize(
    "rows",
    [
        [(p, dt, n) for p in (1, 2, 4) for dt in (0.1, 0.05) for n in (100, 200)],
        [(1, 0.1, 100), (2, 0.1, 100), (4, 0.1, 100), (4, 0.05, 100), (4, 0.025, 100), (4, 0.1, 300)],
        [(p, dt, n * p) for p in (1, 8, 64) for dt in (0.1, 0.05) for n in (100, 200)],
    ],
)
def test_parameters_of_unknown_names_that_vary_on_their_own_stay(rows: list[tuple[float, ...]], tmp_path: Path) -> None:
    lines = [f"{p},{n},{dt},{n / p / dt},{1 / dt + n / 7}" for p, dt, n in rows]
    assert imported(tmp_path, "\n".join(["ranks,mesh,dt,time,rate", *lines])) == 0
    assert read(tmp_path / "made").parameters == ("ranks", "mesh", "dt")


def test_a_metric_with_a_unit_in_its_name_is_read(tmp_path: Path) -> None:
    assert imported(tmp_path, "ranks,time,Energy [Wh]\n1,110,3\n2,60,4\n4,35,5\n") == 0
    made = read(tmp_path / "made")
    assert [made.table(run, "counters")["energy"].item() for run in made.runs] == [10800, 14400, 18000]


def test_an_unknown_unit_is_refused_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--metric", "energy=energy [cal]", "--parameter", "ranks")
    assert imported(tmp_path, "ranks,energy [cal]\n1,110\n2,60\n", *options) == 1
    assert "'cal' in 'energy [cal]' is no known multiple of J" in capsys.readouterr().err


def test_times_of_kernels_beside_the_programs_are_named_with_the_options_that_read_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = "MPI tasks;Solver [ms];Halo exch [ms];Wall-clock [s]\n2;12034,5;210,4;12,61\n4;6120,1;254;6,58\n"
    assert imported(tmp_path, table) == 0
    assert read(tmp_path / "made").parameters == ("ranks",)
    said = " ".join(capsys.readouterr().err.split())
    words = shlex.split(said.split("times of kernels are read by ")[1])[:10]
    assert imported(tmp_path, table, *words, "--force") == 0
    made = read(tmp_path / "made")
    assert {kernel for run in made.runs for kernel in made.table(run, "counters")["kernel"]} == {"Solver", "Halo exch"}
