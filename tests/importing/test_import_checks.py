"""Measurements that contradict each other: an import names both, and what to do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.cli import main
from ranksight.core.errors import InputError
from ranksight.core.experiment import read
from ranksight.core.reading import Reading
from ranksight.core.run import HOSTS
from ranksight.counters.checking import Checks
from ranksight.platforms import load

HASWELL = load("haswell-e5-2680v3")
"""Of 2 x 12 cores in domains of 12."""
RANKS = 48
"""Two full nodes of it."""


def sound(ranks: int = RANKS) -> dict[str, np.ndarray]:
    """Counters of a kernel on every rank that contradict nothing."""
    one = 1 + 0.01 * np.sin(np.arange(ranks))
    clock, time = HASWELL.frequency, 2.0
    lines = 0.5 * HASWELL.memory.bandwidth_domain / HASWELL.layout.cores_per_domain * time / 64
    return {
        "time": time * one,
        "cycles": clock * time * one,
        "stall_cycles": 0.4 * clock * time * one,
        "instructions": 6e9 * one,
        "loads": 2e9 * one,
        "loads_l1": 1.7e9 * one,
        "loads_l2": 1e8 * one,
        "loads_l3": 5e7 * one,
        "loads_mem": lines / 2 * one,
        "bytes_mem_read": lines * 64 * one,
        "bytes_mem_written": lines * 16 * one,
    }


def reading(columns: dict[str, np.ndarray], **more: object) -> Reading:
    ranks = len(next(iter(columns.values())))
    configuration = {"ranks": float(ranks), **more.pop("configuration", {})}
    table = pd.DataFrame({"kernel": "solve", "rank": np.arange(ranks), **columns})
    return Reading(configuration=configuration, counters=table, **more)


def warned(given: Reading, platform: object = HASWELL) -> dict[str, str]:
    checks = Checks(platform)
    checks(given)
    return {kind: texts[0] for kind, texts in checks.found.items()}


def scaled(**factors: float) -> Callable[[], dict[str, np.ndarray]]:
    def made() -> dict[str, np.ndarray]:
        columns = sound()
        return {name: values * factors.get(name, 1.0) for name, values in columns.items()}

    return made


@pytest.mark.parametrize("platform", [HASWELL, None])
def test_sound_measurements_pass(platform: object) -> None:
    given = reading(sound())
    assert warned(given, platform) == {}
    assert Checks(platform)(given) is given
    mean = {name: values[:1] for name, values in sound().items()}
    table = pd.DataFrame({"kernel": "solve", "rank": -1, **mean})
    assert warned(Reading(configuration={"ranks": 48.0}, counters=table), platform) == {}


@pytest.mark.parametrize(
    ("spoil", "kind", "words"),
    [
        (scaled(stall_cycles=3.0), "stall_cycles above cycles", ["stall_cycles contradict cycles", "in one run"]),
        (
            scaled(instructions=30.0),
            "instructions above cycles",
            ["instructions contradict cycles", "a counter overflowed"],
        ),
        (scaled(loads_l1=1.15), "loads by level together above loads", ["loads by level together contradict loads"]),
        (scaled(cycles=0.4, stall_cycles=0.4), "clock", ["cycles contradict time", "shared cores", "--platform"]),
        (scaled(cycles=1.7), "clock", ["cycles contradict time", "haswell-e5-2680v3 runs at", "sums over ranks"]),
        (scaled(bytes_mem_read=4.0), "traffic", ["bytes to and from memory contradict time", "--placement scattered"]),
        (scaled(bytes_mem_read=0.35), "lines", ["contradict loads_mem", "memory channels may be missing"]),
    ],
)
def test_two_measurements_that_cannot_both_be(spoil: Callable[[], dict], kind: str, words: list[str]) -> None:
    said = warned(reading(spoil()))
    assert list(said) == [kind]
    assert all(word in said[kind] for word in words), said
    assert "ranks = 48" in said[kind]


def test_without_a_platform_only_what_no_processor_does_is_a_wrong_clock() -> None:
    assert warned(reading(scaled(cycles=1.7)()), None) == {}
    assert "no processor's clock" in warned(reading(scaled(cycles=30.0)()), None)["clock"]


def test_threads_of_a_rank_have_cycles_each() -> None:
    columns = scaled(cycles=6.0)()
    assert "clock" in warned(reading(columns))
    assert "clock" not in warned(reading(columns, configuration={"threads": 6.0}))


@pytest.mark.parametrize("power", [32, 47, 48])
@pytest.mark.parametrize("ranks", [[5], [5, 9, 17]])
def test_values_that_overflowed_are_left_out(power: int, ranks: list[int]) -> None:
    small = {name: values / 1e4 for name, values in sound().items()} if power == 32 else sound()
    columns = {**small, "instructions": small["instructions"].copy()}
    columns["instructions"][ranks] += 2.0**power
    checks = Checks()
    kept = checks(reading(columns)).counters
    assert kept["instructions"].isna().to_numpy().nonzero()[0].tolist() == ranks
    (said,) = checks.warnings()
    assert f"on rank 5 of solve, 2^{power} above" in said
    assert f"{len(ranks)} value" in said


def test_of_two_ranks_one_that_overflowed_is_left_out() -> None:
    columns = {name: values[:2].copy() for name, values in sound().items()}
    columns["loads_l2"][1] += 2.0**48
    assert Checks()(reading(columns)).counters["loads_l2"].isna().tolist() == [False, True]


def test_a_rank_that_works_more_has_not_overflowed() -> None:
    columns = sound()
    columns["loads_l2"][0] *= 3000
    kept = Checks()(reading(columns)).counters
    assert kept["loads_l2"].notna().all()


@pytest.mark.parametrize("hosts", [True, False])
def test_a_node_that_lacks_a_memory_channel(hosts: bool) -> None:
    columns = sound()
    for name in ("bytes_mem_read", "bytes_mem_written"):
        columns[name][24:] *= 0.75
    table = pd.DataFrame({"rank": np.arange(RANKS), "host": np.where(np.arange(RANKS) < 24, "n1", "n2")})
    said = warned(reading(columns, tables={HOSTS: table} if hosts else {}), None if hosts else HASWELL)
    assert list(said) == ["channels"]
    assert f"node {'n2' if hosts else 1} contradicts that of the others: 25% less an instruction" in said["channels"]


def test_threads_that_do_not_fill_a_node(tmp_path: Path) -> None:
    assert "threads" not in warned(reading(sound(6), configuration={"threads": 4.0}))
    assert "do not divide the 24 cores" in warned(reading(sound(4), configuration={"threads": 5.0}))["threads"]
    assert "more than the 24 cores" in warned(reading(sound(4), configuration={"threads": 48.0}))["threads"]
    with pytest.raises(InputError, match=r"threads = 2.5 \(ranks = 4, threads = 2.5\) is not a number of threads"):
        warned(reading(sound(4), configuration={"threads": 2.5}))


def test_samples_differ_by_chance() -> None:
    columns = {"cycles": np.array([5e6]), "stall_cycles": np.array([7e6])}
    samples = pd.DataFrame(
        {"kernel": "solve", "rank": 0, "metric": ["cycles", "stall_cycles"], "samples": [5.0, 7.0], "worth": 1e6}
    )
    assert warned(reading(columns, tables={"sampling": samples})) == {}
    unknown = {"cycles": "sampled (CPU_CLK)", "stall_cycles": "sampled (STALLS)"}
    assert warned(reading(columns, provenance=unknown)) == {}
    assert warned(reading({**columns, "stall_cycles": np.array([15e6])}, provenance=unknown)) != {}
    assert warned(reading(columns)) != {}


def test_an_import_warns_once_of_each_kind_and_keeps_the_notes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, made = tmp_path / "t.csv", tmp_path / "made"
    rows = [f"{ranks},{rank},solve,1e9,{3e9 if ranks > 2 else 1e8}" for ranks in (2, 4, 8) for rank in range(ranks)]
    path.write_text("\n".join(["ranks,rank,k,cycles,stall_cycles", *rows]) + "\n")
    words = [
        "--parameter",
        "ranks",
        "--kernel",
        "k",
        "--rank",
        "rank",
        "--metric",
        "cycles",
        "--metric",
        "stall_cycles",
    ]
    assert main(["import", "csv", str(path), *words, "-o", str(made)]) == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if "contradict" in line]
    assert len(lines) == 1
    assert lines[0].startswith(
        "ranksight: warning: stall_cycles contradict cycles: 3 G of 1 G (solve, rank 0, ranks = 4)"
    )
    assert lines[0].endswith("[and in 1 more run]")
    assert [any("contradict" in note for note in run.notes) for run in read(made).runs] == [False, True, True]


def test_a_fit_on_a_named_platform_warns_of_what_the_import_could_not_know(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, made = tmp_path / "t.csv", tmp_path / "made"
    rate = 3 * HASWELL.memory.bandwidth_domain
    rows = [f"{ranks},5,solve,{8 / ranks},{rate * 8 / ranks / ranks}" for ranks in (1, 2, 4)]
    path.write_text("\n".join(["ranks,threads,k,time,bytes_mem", *rows]) + "\n")
    words = [
        "--parameter",
        "ranks",
        "--parameter",
        "threads",
        "--kernel",
        "k",
        "--metric",
        "time",
        "--metric",
        "bytes_mem",
    ]
    platform = ["--platform", HASWELL.name]
    assert main(["import", "csv", str(path), *words, "-o", str(made)]) == 0
    assert "warning" not in capsys.readouterr().err
    main(["fit", str(made), *platform, "-o", str(tmp_path / "m.json"), "--quiet"])
    warned_of = [line for line in capsys.readouterr().err.splitlines() if "warning" in line]
    assert ["bytes to and from memory contradict time" in line for line in warned_of] == [True, False]
    assert "threads = 5" in warned_of[1]
    assert main(["import", "csv", str(path), *words, *platform, "-o", str(made), "--force"]) == 0
    assert capsys.readouterr().err.count("warning") == 2
    main(["fit", str(made), *platform, "-o", str(tmp_path / "m.json"), "--quiet", "--force"])
    assert "warning" not in capsys.readouterr().err, "what an import noted is not said again"


@pytest.mark.parametrize("ranks", [1, 48])
@pytest.mark.parametrize("wrong", [2.0**48 - 5000, 2.0**56 + 7e8, 2.0**62])
def test_a_count_that_no_processor_reaches_in_the_time_is_left_out(ranks: int, wrong: float) -> None:
    columns = {name: values[:ranks].copy() for name, values in sound().items()}
    columns["loads_l2"][:] = wrong
    checks = Checks()
    kept = checks(reading(columns)).counters
    assert "loads_l2" in kept.columns
    assert kept["loads_l2"].isna().all()
    assert kept["cycles"].notna().all()
    (said,) = checks.warnings()
    assert "more than any processor does in" in said
    assert f"{ranks} value" in said


def test_without_a_time_nothing_is_too_fast() -> None:
    columns = {name: values[:1].copy() for name, values in sound().items() if name != "time"}
    columns["loads_l2"][:] = 2.0**48 - 5000
    assert Checks()(reading(columns)).counters["loads_l2"].notna().all()


def test_a_counter_of_32_bits_that_began_anew_is_named() -> None:
    columns = {name: values[:4] for name, values in sound().items()}
    columns["instructions"] = np.array([4.26e9, 4.28e9, 4.31e9 % 2**32, 4.25e9])
    said = " ".join(_texts(columns))
    assert "on rank 2 of solve, and 2^32 more would agree" in said
    columns["instructions"] = np.array([4.26e9, 4.28e9, 2.1e9, 4.25e9])  # an uneven rank
    assert "would agree" not in " ".join(_texts(columns))


def _texts(columns: dict) -> list[str]:
    checks = Checks()
    checks(reading(columns))
    return checks.warnings()


def test_more_loads_than_instructions() -> None:
    columns = sound()
    columns["instructions"] = columns["loads"] * 0.8
    said = warned(reading(columns))
    assert "loads contradict instructions" in said["loads above instructions"]


def test_ranks_that_are_missing_in_a_run_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Six of eight ranks: both numbers, and no word of runs that have all."""
    rows = [f"{p},{rank},solve,{8e9 / p:.0f}" for p in (2, 4, 8) for rank in range(min(p, 6))]
    file = tmp_path / "t.csv"
    file.write_text("\n".join(["ranks,rank,kernel,instructions", *rows]) + "\n")
    words = ["import", "csv", str(file), "--parameter", "ranks", "--rank", "rank", "--kernel", "kernel"]
    assert main([*words, "--metric", "instructions", "-o", str(tmp_path / "made")]) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "values of 6 of 8 ranks (ranks = 8)" in said
    assert "of 4 ranks" not in said
