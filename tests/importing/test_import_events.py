"""Importing event counts: the formulas of event tables make metrics of them, for every reader."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.cli import main
from ranksight.core.experiment import read
from ranksight.core.reading import Reading
from ranksight.counters.forming import formed
from ranksight.platforms.events import load

COUNTS = {
    "INST_RETIRED.ANY": 4e9,
    "CPU_CLK_UNHALTED.THREAD": 6e9,
    "MEM_UOPS_RETIRED.ALL_LOADS_PS": 1e9,
    "MEM_LOAD_UOPS_RETIRED.L1_HIT_PS": 8e8,
    "MEM_LOAD_UOPS_RETIRED.L2_HIT_PS": 1e8,
    "MEM_LOAD_UOPS_RETIRED.LLC_HIT_PS": 6e7,
    "RESOURCE_STALLS.LB": 5e8,
    "RESOURCE_STALLS.SB": 3e8,
}
"""The events of Ding et al. 2018, table 1."""
HASWELL = {"CPU_CLK_UNHALTED.THREAD_P": 6e9, "CYCLE_ACTIVITY.STALLS_LDM_PENDING": 2e9, "RESOURCE_STALLS.SB": 3e8}


def vtune(folder: Path, counts: dict[str, float]) -> Path:
    path = folder / "n4" / "hw.csv"
    path.parent.mkdir()
    head = "\t".join(["Function", *(f"Hardware Event Count:{name}" for name in counts), "Module"])
    path.write_text(head + "\n" + "\t".join(["solve", *(f"{value:.0f}" for value in counts.values()), "app"]) + "\n")
    return path


def kernel(place: Path, name: str = "solve") -> pd.Series:
    (run,) = read(place).runs
    table = read(place).table(run, "counters")
    return table[table["kernel"] == name].iloc[0]


def reading(names: dict[str, str] | None = None, **columns: float) -> Reading:
    table = pd.DataFrame({"kernel": ["k"], "rank": [0], **{name: [value] for name, value in columns.items()}})
    return Reading(counters=table, names=names or {})


def test_events_of_the_paper_become_stalls_and_loads_of_memory(tmp_path: Path) -> None:
    made = tmp_path / "made"
    assert main(["import", str(vtune(tmp_path, COUNTS)), "--parameter", r"ranks=n(\d+)", "-o", str(made)]) == 0
    row = kernel(made)  # of a rank: VTune gives sums over all four
    assert 4 * row["stall_cycles"] == COUNTS["RESOURCE_STALLS.LB"] + COUNTS["RESOURCE_STALLS.SB"]
    assert 4 * row["loads_mem"] == pytest.approx(1e9 - 8e8 - 1e8 - 6e7)
    said = read(made).runs[0].provenance
    assert "resource_stalls.lb + resource_stalls.sb" in said["stall_cycles"]
    assert "among them" in said["loads_mem"]
    assert read(made).runs[0].sampled("stall_cycles")


@pytest.mark.parametrize("options", [(), ("--platform", "haswell-e5-2680v3")])
def test_events_of_haswell_become_stalls(tmp_path: Path, options: tuple[str, ...]) -> None:
    made = tmp_path / "made"
    path = vtune(tmp_path, HASWELL)
    assert main(["import", str(path), "--parameter", r"ranks=n(\d+)", "-o", str(made), *options]) == 0
    assert 4 * kernel(made)["stall_cycles"] == 2e9 + 3e8
    assert "; as on Intel Haswell-EP (Xeon E5 v3)" in read(made).runs[0].provenance["stall_cycles"]


def test_columns_of_a_table_are_found_by_the_names_that_it_gives_them(tmp_path: Path) -> None:
    path, made = tmp_path / "t.csv", tmp_path / "made"
    path.write_text("p,k,cyc,CYCLE_ACTIVITY.STALLS_LDM_PENDING,RESOURCE_STALLS.SB\n4,solve,1e9,4e9,2e8\n")
    named = ["cycles=cyc", "loads_pending=CYCLE_ACTIVITY.STALLS_LDM_PENDING", "RESOURCE_STALLS.SB"]
    options = [word for name in named for word in ("--metric", name)]
    assert main(["import", "csv", str(path), "--parameter", "ranks=p", "--kernel", "k", *options, "-o", str(made)]) == 0
    assert kernel(made)["stall_cycles"] == 1e9 + 2e8, "no more than the cycles, as the formula says"


@pytest.mark.parametrize("options", [(), ("--platform", "haswell-e5-2680v3")])
def test_columns_that_bear_the_events_names_become_metrics(tmp_path: Path, options: tuple[str, ...]) -> None:
    path, made = tmp_path / "t.csv", tmp_path / "made"
    path.write_text("p,k,INST_RETIRED.ANY,CPU_CLK_UNHALTED.THREAD\n4,solve,4e9,6e9\n")
    named = ["--metric", "INST_RETIRED.ANY", "--metric", "CPU_CLK_UNHALTED.THREAD"]
    words = ["import", "csv", str(path), "--parameter", "ranks=p", "--kernel", "k", *named, "-o", str(made), *options]
    assert main(words) == 0
    assert (kernel(made)["instructions"], kernel(made)["cycles"]) == (4e9, 6e9)
    assert kernel(made)["INST_RETIRED.ANY"] == 4e9, "what the user named stays"


def test_events_that_processors_count_differently_need_a_platform() -> None:
    events = {
        "de_no_dispatch_per_slot.backend_stalls": 48.0,
        "ex_no_retire.load_not_complete": 2.0,
        "ex_no_retire.not_complete": 4.0,
    }
    bare = formed(reading(**events))
    assert "stall_cycles" not in bare.counters
    (note,) = bare.notes
    assert "stall_cycles is not formed" in note
    assert "--platform" in note
    assert formed(reading(**events), load("zen4")).counters["stall_cycles"].tolist() == [48 / 6 / 2]
    assert formed(reading(**events), load("zen5")).counters["stall_cycles"].tolist() == [48 / 8 / 2]


def test_metrics_that_are_there_stay_and_metrics_alone_form_nothing() -> None:
    given = {"RESOURCE_STALLS.LB": 1.0, "RESOURCE_STALLS.SB": 2.0, "stall_cycles": 7.0}
    assert formed(reading(**given)).counters["stall_cycles"].tolist() == [7.0]
    plain = reading(cycles=5.0, loads=4.0, loads_l2=1.0)
    assert list(formed(plain).counters.columns) == list(plain.counters.columns)


def test_loads_that_met_a_line_on_its_way_are_not_loads_of_memory() -> None:
    counted = {"loads": 100.0, "loads_l1": 60.0, "loads_l2": 20.0, "loads_l3": 5.0}
    assert formed(reading(**counted)).counters["loads_mem"].tolist() == [15.0]
    with_buffer = formed(reading(**counted, **{"mem_load_uops_retired.hit_lfb": 10.0}))
    assert with_buffer.counters["loads_mem"].tolist() == [5.0]
    assert "among them" not in with_buffer.provenance["loads_mem"]


@pytest.mark.parametrize("options", [(), ("--platform", "haswell-e5-2680v3")])
def test_loads_that_missed_the_last_cache_are_those_of_memory(tmp_path: Path, options: tuple[str, ...]) -> None:
    """An event that counts them comes before what all loads leave, a small difference of large counts."""
    made, path = tmp_path / "made", tmp_path / "hw-n4.csv"
    events = {"ALL_LOADS": 100, "L1_HIT": 80, "L2_HIT": 10, "L3_HIT": 6, "L3_MISS": 1}
    head = [f"MEM_{'' if name == 'ALL_LOADS' else 'LOAD_'}UOPS_RETIRED.{name}_PS" for name in events]
    columns = "\t".join(f"Hardware Event Count:{name}" for name in head)
    values = "\t".join(f"{4_000_000 * count}" for count in events.values())
    path.write_text(f"Function\t{columns}\tModule\nsolve\t{values}\tapp\n")
    assert main(["import", str(path), "--parameter", r"ranks=n(\d+)", "-o", str(made), *options]) == 0
    assert (kernel(made)["loads"], kernel(made)["loads_mem"]) == (1e8, 1e6)


def test_the_error_of_sampled_events_goes_on_into_what_is_formed() -> None:
    table = pd.DataFrame({"kernel": ["k"], "rank": [0], "RESOURCE_STALLS.LB": [4e6], "RESOURCE_STALLS.SB": [0.0]})
    samples = pd.DataFrame(
        {
            "kernel": ["k", "k"],
            "rank": [0, 0],
            "metric": ["RESOURCE_STALLS.LB", "RESOURCE_STALLS.SB"],
            "samples": [4.0, 0.0],
            "worth": [1e6, 1e6],
        }
    )
    kept = formed(Reading(counters=table, tables={"sampling": samples})).tables["sampling"]
    (row,) = kept[kept["metric"] == "stall_cycles"].to_dict("records")
    assert row["worth"] == pytest.approx(1e6)
    assert row["samples"] == pytest.approx(4.0)
    assert np.isfinite(kept[["samples", "worth"]].to_numpy()).all()


def test_stalls_of_an_incomplete_formula_are_a_lower_bound() -> None:
    loads = {"cycle_activity.stalls_mem_any": 30.0}
    said = formed(reading(**loads), load("skylake-x"))
    assert said.counters["stall_cycles"].tolist() == [30.0]
    assert "lower bound" in said.provenance["stall_cycles"]
    (note,) = [text for text in said.notes if "stall_cycles" in text]
    assert "exe_activity.bound_on_stores was not counted" in note
    whole = formed(reading(**loads, **{"exe_activity.bound_on_stores": 1.0}), load("skylake-x"))
    assert whole.counters["stall_cycles"].tolist() == [31.0]
    assert not any("lower bound" in text for text in whole.notes)


def test_a_quotient_without_an_event_is_no_bound() -> None:
    backend = {"de_no_dispatch_per_slot.backend_stalls": 60.0, "ex_no_retire.not_complete": 10.0}
    said = formed(reading(**backend), load("zen4"))
    assert "stall_cycles" not in said.counters
    (note,) = [text for text in said.notes if "stall_cycles" in text]
    assert "ex_no_retire.load_not_complete was not counted" in note
    assert "T_comp" in note


PASSES = (
    {"CYCLE_ACTIVITY.STALLS_MEM_ANY": 2e9, "MEM_LOAD_L3_MISS_RETIRED.LOCAL_DRAM": 4e6},
    {"EXE_ACTIVITY.BOUND_ON_STORES": 3e8, "MEM_LOAD_L3_MISS_RETIRED.REMOTE_DRAM": 1e6},
)


def passes(folder: Path, cycles: tuple[float, ...], repetitions: int = 1) -> list[str]:
    """Tables of two ranks and two passes: all of them count cycles."""
    paths = []
    for number, (events, count) in enumerate(zip(PASSES, cycles, strict=True)):
        rows = [
            {"ranks": 2, "kernel": "solve", "rank": rank, "cycles": count, **events}
            for _ in range(repetitions)
            for rank in (0, 1)
        ]
        table = pd.DataFrame(rows)
        if repetitions > 1:
            table["repetition"] = np.repeat(np.arange(repetitions), 2)
        paths.append(str(folder / f"pass{number}.csv"))
        table.to_csv(paths[-1], index=False)
    return paths


COLUMNS = ["--parameter", "ranks", "--kernel", "kernel", "--rank", "rank", "--platform", "icelake-8360y"]


def test_metrics_are_formed_from_events_of_several_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = tmp_path / "made"
    assert main(["import", "csv", *passes(tmp_path, (6e9, 6.6e9)), *COLUMNS, "-o", str(made)]) == 0
    said = capsys.readouterr().err
    row = kernel(made)  # of one run: the passes are no runs of their own
    assert row["stall_cycles"] == 2.3e9
    assert row["loads_mem"] == 5e6
    assert row["cycles"] == 6e9
    experiment = read(made)
    table = experiment.table(experiment.runs[0], "passes")
    assert table is not None
    assert table[["event", "passes", "mean"]].to_numpy().tolist() == [["cycles", 2, 12.6e9]]
    assert table["deviation"].tolist() == pytest.approx([np.std([12e9, 13.2e9], ddof=1) / 12.6e9])
    assert "counted in 2 passes" in said
    assert "6.7% at most: cycles of solve" in said
    assert "lower bound" not in said + " ".join(experiment.runs[0].notes)
    assert len(experiment.runs[0].source) == 2


def test_passes_are_merged_repetition_by_repetition(tmp_path: Path) -> None:
    made = tmp_path / "made"
    words = [*passes(tmp_path, (6e9, 6e9), 3), *COLUMNS, "--repetition", "repetition"]
    assert main(["import", "csv", *words, "-o", str(made), "-q"]) == 0
    runs = read(made).runs
    assert [run.repetition for run in runs] == [0, 1, 2]
    assert all("stall_cycles" in run.provenance for run in runs)


def test_files_of_other_ranks_or_kernels_are_no_passes(tmp_path: Path) -> None:
    first, second = passes(tmp_path, (6e9, 6e9))
    pd.read_csv(second).assign(kernel="other").to_csv(second, index=False)
    made = tmp_path / "made"
    assert main(["import", "csv", first, second, *COLUMNS, "-o", str(made), "-q"]) == 0
    assert len(read(made).runs) == 2
