"""What values mean over ranks: known of formats, stated of tables, shown by laws of the runs, or refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.cli import main
from ranksight.core.errors import InputError
from ranksight.core.experiment import ALL_RANKS, WHOLE, Experiment, Run, read
from ranksight.core.meaning import EACH, MEAN, OF_NODE, ONE, SUM, Meaning, per_rank
from ranksight.core.metrics import metric
from ranksight.core.reading import READERS, Reading
from ranksight.model.series.reducing import series_from_experiment

RANKS = (2, 4, 8, 16)
WORK, CYCLES, CLOCK = 6e11, 4.8e11, 3e9
"""Instructions and cycles of all ranks together, and the clock."""


def vtune(folder: Path, work: Callable[[int], float], name: str = "p{}.tsv") -> list[str]:
    """Reports of one kernel that executes `work(ranks)` instructions."""
    head = "Function\tHardware Event Count:INST_RETIRED.ANY\tHardware Event Count:CPU_CLK_UNHALTED.THREAD\tModule\n"
    paths = []
    for ranks in RANKS:
        paths.append(folder / name.format(ranks))
        paths[-1].write_text(f"{head}smooth\t{work(ranks):.0f}\t{0.8 * work(ranks):.0f}\tprogram\n")
    return list(map(str, paths))


def perf_stat(folder: Path, command: str, ranks: int, busy: float | None = None) -> str:
    """A report of `perf stat` of a program whose ranks were busy, or `busy` of them."""
    path, seconds = folder / f"np{ranks}.txt", CYCLES / CLOCK / ranks
    path.write_text(
        f"\n Performance counter stats for '{command}':\n\n"
        f"  {1e3 * seconds * (busy or ranks):.2f} msec task-clock\n  {CYCLES:.0f}  cycles\n  {WORK:.0f}  instructions\n\n"
        f"  {seconds:.9f} seconds time elapsed\n\n"
    )
    return str(path)


def table(folder: Path, work: Callable[[int], float], time: Callable[[int], float] | None = None) -> list[str]:
    """A table of instructions and cycles without ranks, with times where they are given, and the line that imports it."""
    rows = [[p, work(p), work(p) * CYCLES / WORK, *([] if time is None else [time(p)])] for p in RANKS]
    head = ["np", "instructions", "cycles", *([] if time is None else ["time"])]
    path = folder / "t.csv"
    path.write_text("\n".join(",".join(map(str, row)) for row in [head, *rows]) + "\n")
    metrics = [word for name in head[1:] for word in ("--metric", name)]
    return ["import", "csv", str(path), "--parameter", "ranks=np", *metrics, "-o", str(folder / "made"), "--quiet"]


def values(folder: Path, name: str) -> list[float]:
    """The values of a metric as they are stored, by rising ranks."""
    experiment = read(folder / "made")
    tables = [experiment.table(run, "counters") for run in experiment.runs]
    assert all(set(each["rank"]) == {ALL_RANKS} for each in tables)
    return [float(each[name].sum()) for each in tables]


def a_rank(work: float = WORK) -> object:
    return pytest.approx([work / p for p in RANKS])


def same(value: float) -> Callable[[int], float]:
    return lambda _: value


def over(value: float) -> Callable[[int], float]:
    return lambda ranks: value / ranks


@pytest.mark.parametrize("code", ["sum/rank/run", "mean/socket/call", "/core/run", "each/node/run"])
def test_meanings_are_read_as_they_are_written(code: str) -> None:
    assert Meaning.read(code).code() == code


@pytest.mark.parametrize("code", ["", "sum", "total/rank/run", "sum/cluster/run", "sum/rank/step", "sum/rank/run/x"])
def test_other_words_are_refused(code: str) -> None:
    with pytest.raises(InputError, match="meaning of values"):
        Meaning.read(code)


def test_sums_become_values_of_a_rank_in_one_place() -> None:
    columns = {"cycles": [8e9], "cpi": [1.5], "instructions_per_visit": [9.0], "energy_package": [40.0], "time": [1.0]}
    before = pd.DataFrame({"kernel": ["k"], "rank": [ALL_RANKS], **columns})
    stated = {**dict.fromkeys(columns, SUM), "time": MEAN}
    after, meanings = per_rank(before, stated, {"ranks": 4.0})
    assert after.iloc[0][list(columns)].tolist() == [2e9, 1.5, 9.0, 40.0, 1.0]
    assert meanings == {**stated, "cycles": MEAN}
    assert per_rank(before, stated, {"size": 4.0})[0] is before, "the number of ranks is not known"
    node, _ = per_rank(before, {"cycles": OF_NODE}, {"ranks": 4.0, "nodes": 2.0})
    assert node["cycles"].tolist() == [4e9], "the sum of a node is over its share of the ranks"


def test_values_of_several_ranks_are_no_sums() -> None:
    each = pd.DataFrame({"kernel": "k", "rank": [0, 1], "cycles": [1.0, 2.0]})
    with pytest.raises(InputError, match="values of 2 ranks"):
        Reading({"ranks": 2.0}, each, meaning=SUM).per_rank("here")
    assert Reading({"ranks": 2.0}, each, meaning=EACH).per_rank("here").meanings == {"cycles": EACH}


def test_reports_of_vtune_are_sums_over_ranks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = str(tmp_path / "made")
    assert main(["import", *vtune(tmp_path, same(WORK)), "--parameter", r"ranks=p(\d+)", "-o", made, "--quiet"]) == 0
    assert values(tmp_path, "instructions") == a_rank()
    assert capsys.readouterr().err == ""
    run = read(made).runs[0]
    assert run.meaning("cycles") == MEAN
    assert "sum over ranks" in run.provenance["cycles"]


def test_a_report_of_one_rank_is_that_ranks(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    files = vtune(tmp_path / "d", same(WORK), "out.rank{}.tsv")
    (tmp_path / "e").mkdir()
    for at, file in enumerate(files):
        (tmp_path / "e" / f"out.rank{at}.tsv").write_text(Path(file).read_text())
    (reading,) = READERS["vtune"].read(Path(files[0]))
    assert reading.meaning == ONE
    assert reading.per_rank("here").counters is reading.counters
    (together,) = READERS["vtune"].read(tmp_path / "e")
    assert together.meaning == EACH


def test_reports_of_one_rank_among_others_are_stated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Work that falls is no sum; whether a rank's or a node's, only the user knows."""
    made = str(tmp_path / "made")
    line = ["import", *vtune(tmp_path, over(WORK)), "--parameter", r"ranks=p(\d+)", "-o", made, "--quiet"]
    assert main(line) == 1
    said = capsys.readouterr().err
    assert "300 G at 2 and 150 G at 4 ranks" in said
    assert "--values mean" in said
    assert main([*line, "--values", "mean"]) == 0
    assert values(tmp_path, "instructions") == a_rank()


def test_totals_of_a_node_are_refused_for_all_ranks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nodes of 8 ranks: from 16 on, a file holds a part of the work."""
    files = vtune(tmp_path, lambda ranks: WORK * min(1.0, 8 / ranks))
    assert main(["import", *files, "--parameter", r"ranks=p(\d+)", "-o", str(tmp_path / "made")]) == 1
    said = capsys.readouterr().err
    assert "600 G at 8 and 300 G at 16 ranks" in said
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("command", ["mpirun -n 4 ./solver -x 3", "srun ./solver", "./job.sh"])
def test_perf_stat_of_a_launcher_and_busy_processors_are_sums(tmp_path: Path, command: str) -> None:
    files = [perf_stat(tmp_path, command, ranks) for ranks in RANKS]
    made = str(tmp_path / "made")
    assert main(["import", *files, "--parameter", r"ranks=np(\d+)", "-o", made, "--quiet"]) == 0
    assert values(tmp_path, "cycles") == a_rank(CYCLES)
    assert values(tmp_path, "cpu_time") == a_rank(CYCLES / CLOCK)
    assert values(tmp_path, "time") == a_rank(CYCLES / CLOCK), "elapsed, and not divided"


def test_counts_of_an_unknown_command_are_stated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The forms of perf stat for programs do not say what ran."""
    for ranks in RANKS:
        rows = [f"{value:.0f},,{name},1000,100.00,," for name, value in (("cycles", CYCLES), ("instructions", WORK))]
        (tmp_path / f"np{ranks}.csv").write_text("\n".join(rows) + "\n")
    files = [str(tmp_path / f"np{ranks}.csv") for ranks in RANKS]
    line = ["import", *files, "--parameter", r"ranks=np(\d+)", "-o", str(tmp_path / "made"), "--quiet"]
    assert main(line) == 1
    assert "--values sum or --values mean" in capsys.readouterr().err
    assert main([*line, "--values", "sum"]) == 0
    assert values(tmp_path, "cycles") == a_rank(CYCLES)


def test_more_processors_than_ranks_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = perf_stat(tmp_path, "mpirun -n 16 ./a", 4, busy=16)
    assert main(["import", file, "--set", "ranks=4", "-o", str(tmp_path / "made")]) == 1
    assert "16 processors were busy (cpu_time over time) in a run of 4 ranks" in capsys.readouterr().err


def test_fewer_busy_processors_than_ranks_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = perf_stat(tmp_path, "mpirun -n 16 ./a", 16, busy=4)
    assert main(["import", file, "--set", "ranks=16", "-o", str(tmp_path / "made")]) == 0
    assert "4 processors were busy (cpu_time over time) in a run of 16 ranks" in " ".join(
        capsys.readouterr().err.split()
    )


@pytest.mark.parametrize(
    "stated", [(), ("--values", "sum"), ("--values", "cycles=sum", "--values", "instructions=sum")]
)
def test_rates_that_grow_with_the_ranks_show_sums(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], stated: tuple[str, ...]
) -> None:
    """Elapsed times stay as they are, and no warning of a clock is left of values that turned out to be sums."""
    assert main([*table(tmp_path, same(WORK), over(CYCLES / CLOCK)), *stated]) == 0
    assert values(tmp_path, "instructions") == a_rank()
    assert values(tmp_path, "time") == a_rank(CYCLES / CLOCK)
    said = capsys.readouterr().err
    assert "no processor's clock" not in said
    assert ("6 GHz at 2 and 48 GHz at 16 ranks" in said) == (len(stated) < 4)
    assert all(not any("clock" in note for note in run.notes) for run in read(tmp_path / "made").runs)


@pytest.mark.parametrize("options", [("--values", "sum"), ("--values", "sum", "--values", "time=sum")])
def test_times_may_be_sums_as_well(tmp_path: Path, options: tuple[str, ...]) -> None:
    assert main([*table(tmp_path, same(WORK), same(CYCLES / CLOCK)), *options]) == 0
    assert values(tmp_path, "cycles") == a_rank(CYCLES)
    assert values(tmp_path, "time") == a_rank(CYCLES / CLOCK)


@pytest.mark.parametrize("time", [over(CYCLES / CLOCK), None])
def test_work_that_is_divided_is_of_a_rank(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], time: Callable[[int], float] | None
) -> None:
    assert main(table(tmp_path, over(WORK), time)) == 0
    assert values(tmp_path, "instructions") == a_rank()
    assert capsys.readouterr().err == ""


def test_weak_scaling_at_a_steady_clock_is_of_a_rank(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(table(tmp_path, same(WORK), same(CYCLES / CLOCK))) == 0
    assert values(tmp_path, "instructions") == [WORK] * 4
    assert capsys.readouterr().err == ""


def test_a_clock_that_one_rank_has_already_is_no_sum(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Times in another unit: the rate is impossible, and the same on all numbers of ranks."""
    assert main(table(tmp_path, over(WORK), over(CYCLES / CLOCK / 4))) == 0
    assert values(tmp_path, "instructions") == a_rank()
    assert "12 GHz (ranks = 2) is no processor's clock" in capsys.readouterr().err


def test_work_that_may_be_either_is_refused_until_it_is_stated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(table(tmp_path, same(WORK))) == 1
    said = capsys.readouterr().err
    assert "600 G at 2 and 600 G at 16 ranks" in said
    assert "--values sum or --values mean" in said
    assert not (tmp_path / "made").exists()
    assert main([*table(tmp_path, same(WORK)), "--values", "mean"]) == 0
    assert values(tmp_path, "instructions") == [WORK] * 4
    assert main([*table(tmp_path, same(WORK)), "--values", "sum", "--force"]) == 0
    assert values(tmp_path, "instructions") == a_rank()


@pytest.mark.parametrize(
    ("work", "time", "stated", "words"),
    [
        (over(WORK), None, "sum", "300 G at 2 and 150 G at 4 ranks"),
        (over(WORK), over(CYCLES / CLOCK), "sum", "300 G at 2 and 150 G at 4 ranks"),
        (lambda p: WORK * p, None, "sum", "grow with the ranks: instructions: 1.2 T at 2 and 9.6 T at 16 ranks"),
        (same(WORK), over(CYCLES / CLOCK), "mean", "6 GHz at 2 and 48 GHz at 16 ranks"),
    ],
)
def test_statements_that_the_runs_contradict_are_refused(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    work: Callable[[int], float],
    time: Callable[[int], float] | None,
    stated: str,
    words: str,
) -> None:
    assert main([*table(tmp_path, work, time), "--values", stated]) == 1
    assert words in capsys.readouterr().err
    assert not (tmp_path / "made").exists()


def test_sums_of_a_steady_rate_may_grow(tmp_path: Path) -> None:
    """Weak scaling: times show that each rank keeps its work."""
    assert main([*table(tmp_path, lambda p: WORK * p, same(CYCLES / CLOCK)), "--values", "sum"]) == 0
    assert values(tmp_path, "instructions") == [WORK] * 4


def test_sums_of_blocks_of_a_size_may_grow(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Weak scaling: the parameter by which the problem grows is that of a rank's block."""
    rows = [f"{p},{n},sweep,{50 * n * n * p}" for p in (1, 2, 4, 8) for n in (30, 40, 60)]
    (tmp_path / "sums.csv").write_text("\n".join(["ranks,size,kernel,instructions", *rows]) + "\n")
    line = ["import", "csv", str(tmp_path / "sums.csv"), "--parameter", "ranks", "--parameter", "size"]
    line += ["--kernel", "kernel", "--metric", "instructions", "--values", "sum", "-o", str(tmp_path / "made")]
    assert main(line) == 0
    assert "the work grows with the ranks (weak scaling)" in capsys.readouterr().err
    of_ranks = Experiment.read(tmp_path / "made").counters().groupby("run", observed=True)["instructions"].sum()
    assert sorted(set(of_ranks)) == [50 * n * n for n in (30, 40, 60)]


def test_sums_of_one_node_are_of_its_ranks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nodes of four ranks: the processors of one were busy."""
    files = []
    for nodes in (1, 2, 4):
        files.append(str(tmp_path / f"p{4 * nodes}n{nodes}.txt"))
        seconds = CYCLES / CLOCK / 4 / nodes
        Path(files[-1]).write_text(
            f"\n Performance counter stats for 'mpirun -n {4 * nodes} ./a':\n\n  {4e3 * seconds:.2f} msec task-clock\n"
            f"  {CYCLES / nodes:.0f}  cycles\n  {WORK / nodes:.0f}  instructions\n\n"
            f"  {seconds:.9f} seconds time elapsed\n\n"
        )
    line = ["import", *files, "--parameter", r"ranks=p(\d+)", "-o", str(tmp_path / "made"), "--quiet"]
    assert main(line) == 1
    assert "600 G at 4 and 300 G at 8 ranks" in capsys.readouterr().err
    assert main([*line, "--values", "node"]) == 1
    assert "no parameter nodes" in capsys.readouterr().err
    assert main([*line, "--values", "node", "--parameter", r"nodes=n(\d+)"]) == 0
    assert values(tmp_path, "instructions") == pytest.approx([WORK / ranks for ranks in (4, 8, 16)])
    assert values(tmp_path, "time") == pytest.approx([CYCLES / CLOCK / ranks for ranks in (4, 8, 16)])


def test_threads_of_a_rank_are_no_ranks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A rank's processor time and cycles grow with its threads: that is no sum over ranks."""
    rows = [f"4,{threads},{WORK},{CYCLES},{CYCLES / CLOCK / threads}" for threads in (1, 2, 4, 8)]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["ranks,threads,instructions,cycles,time", *rows]) + "\n")
    metrics = [word for name in ("instructions", "cycles", "time") for word in ("--metric", name)]
    line = ["import", "csv", str(path), "--parameter", "ranks", "--parameter", "threads", *metrics, "--quiet"]
    assert main([*line, "-o", str(tmp_path / "made")]) == 0
    assert values(tmp_path, "instructions") == [WORK] * 4


def test_ranks_that_share_cores_give_sums_all_the_same(tmp_path: Path) -> None:
    """Two cores are busy however many ranks run on them."""
    files = [perf_stat(tmp_path, f"mpirun -n {ranks} ./a", ranks, busy=2) for ranks in (2, 4, 8)]
    for file in files:
        text = Path(file).read_text().splitlines()
        Path(file).write_text("\n".join([*text[:-2], f"  {CYCLES / CLOCK / 2:.9f} seconds time elapsed", "", ""]))
    made = str(tmp_path / "made")
    assert main(["import", *files, "--parameter", r"ranks=np(\d+)", "-o", made, "--quiet"]) == 0
    assert values(tmp_path, "cycles") == pytest.approx([CYCLES / ranks for ranks in (2, 4, 8)])


@pytest.mark.parametrize("text", ["total", "=sum", "cycles=median", "cycles="])
def test_other_statements_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    assert main([*table(tmp_path, over(WORK)), "--values", text]) == 2
    assert "sum, mean, max, node or core" in capsys.readouterr().err


def test_energy_of_packages_adds_up(tmp_path: Path) -> None:
    """One rank of a socket records it for all; a sum over ranks is the program's, a mean is nobody's."""
    experiment = Experiment.create(tmp_path / "e.exp", "e", ["ranks"])
    counts = pd.DataFrame({"kernel": WHOLE, "rank": range(4), "PWR_PKG_ENERGY": [80.0, 0.0, 60.0, 0.0], "time": 1.0})
    experiment.add(Run({"ranks": 4.0}), counts)
    named = ("PWR_PKG_ENERGY", "PWR_DRAM_ENERGY STAT", "power/energy-pkg/", "energy_package", "rapl_dram_energy")
    assert {(metric(name).of, metric(name).over_ranks, metric(name).unit) for name in named} == {("socket", "sum", "J")}
    assert all(metric(name).of == "rank" for name in ("energy_error", "free_energy", "total_energy"))
    assert (metric("energy").of, metric("energy").over_ranks) == ("job", "sum")
    series = series_from_experiment(experiment)
    assert series.values[series.metrics.index("PWR_PKG_ENERGY"), 0, 0] == 140.0
    total = counts[["kernel", "rank", "PWR_PKG_ENERGY"]].iloc[:1].assign(PWR_PKG_ENERGY=140.0)
    found = Reading({"ranks": 4.0}, total, meaning=SUM).per_rank("here")
    assert found.counters["PWR_PKG_ENERGY"].tolist() == [140.0]
    assert found.meanings == {"PWR_PKG_ENERGY": Meaning("sum", "socket")}


def test_a_sum_is_made_of_what_is_known_of_a_rank(tmp_path: Path) -> None:
    experiment = Experiment.create(tmp_path / "e.exp", "e", ["ranks"])
    for ranks in (2.0, 4.0):
        run = Run({"ranks": ranks}, meanings={"instructions": MEAN})
        experiment.add(run, pd.DataFrame({"kernel": ["k"], "rank": [ALL_RANKS], "instructions": [6.0]}))
    assert series_from_experiment(read(experiment.path), over_ranks="sum").values.ravel() == pytest.approx([12.0, 24.0])
    assert series_from_experiment(read(experiment.path)).values.ravel() == pytest.approx([6.0, 6.0])


def test_samples_of_sums_stay_as_many(tmp_path: Path) -> None:
    """Of a mean over ranks a sample is worth as much less as there are ranks, so that its scatter stays."""
    path = tmp_path / "np8.txt"
    path.write_text(
        "# cmdline : /usr/bin/perf record mpirun -n 8 ./a\n# Samples: 1K of event 'cycles'\n"
        "# Event count (approx.): 8000000000\n#\n# Overhead  Command  Shared Object  Symbol\n"
        "# ........  .......  .............  ......\n#\n   100.00%  a        a              [.] smooth\n"
    )
    made = tmp_path / "made"
    assert main(["import", str(path), "--parameter", r"ranks=np(\d+)", "-o", str(made), "--quiet"]) == 0
    assert values(tmp_path, "cycles") == [1e9]
    series = series_from_experiment(read(made))
    assert series.samples.ravel() == pytest.approx([1000.0])
    assert np.nanmax(series.worth) == pytest.approx(1e6)


def test_uncore_counters_of_likwid_are_of_a_socket(tmp_path: Path) -> None:
    path = Path(__file__).parents[1] / "readers" / "data" / "likwid" / "regions.txt"
    (reading,) = READERS["likwid"].read(path)
    counted = reading.per_rank("here")
    assert counted.counters is reading.counters, "one core records them, the others show zero: nothing is divided"
    assert counted.meanings["bytes_mem_read"] == Meaning("each", "socket")
    assert "instructions" not in counted.meanings


def test_a_rank_that_the_run_does_not_have_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.csv"
    path.write_text("kernel,rank,ranks,time\na,0,2,1\na,5,2,1\na,0,4,1\n")
    assert main(["import", "csv", str(path), "--kernel", "kernel", "-o", str(tmp_path / "a.exp")]) == 1
    assert "holds rank 5, of a run of 2 ranks" in capsys.readouterr().err


def test_a_count_that_overflowed_stays_noted_when_values_turn_out_to_be_sums(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "stat.txt"
    path.write_text(
        " Performance counter stats for './a.out':\n\n"
        "      987654321      instructions\n"
        "  281474976710655      L1-dcache-loads\n"
        "       12345.67 msec task-clock                #    3.992 CPUs utilized\n\n"
        "    3.092746354 seconds time elapsed\n\n"
    )
    assert main(["import", str(path), "--set", "ranks=4", "-o", str(tmp_path / "a.exp")]) == 0
    run = read(tmp_path / "a.exp").runs[0]
    for text in (capsys.readouterr().err, " ".join(run.notes)):
        assert "loads is 281 T on rank 0, more than any processor does in 3.09 s: a counter overflowed" in text
