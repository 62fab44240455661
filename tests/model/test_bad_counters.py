"""Counters that cannot be, machines that they are not of, and questions that no run answers, through the verbs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from ranksight.cli.main import main

METRICS = ("time", "instructions", "cycles", "stall_cycles", "loads", "loads_l1", "loads_l2", "loads_l3", "loads_mem")
CLOCK = 2.4e9
Row = dict[str, float]
Spoil = Callable[[str, int, Row], Row]


def _row(share: float) -> Row:
    loads = 30 * share
    l2, l3, memory = 1.5 * share, 0.3 * share, 0.02 * share
    cycles = 60 * share + 3 * l2 + 12 * l3 + 60 * memory
    return {
        "time": cycles / CLOCK, "instructions": 100 * share, "cycles": cycles,
        "stall_cycles": 0.3 * (14 * l2 + 50 * l3 + 200 * memory), "loads": loads, "loads_l1": loads - l2 - l3 - memory,
        "loads_l2": l2, "loads_l3": l3, "loads_mem": memory,
    }  # fmt: skip


def _same(kernel: str, ranks: int, row: Row) -> Row:
    return row


def _fitted(folder: Path, spoil: Spoil = _same) -> tuple[str, int]:
    lines = [",".join(("ranks", "size", "kernel", *METRICS))]
    for ranks in (1, 2, 4, 8):
        for size in (16, 24, 32, 48):
            for kernel, part in (("a", 1.0), ("b", 0.3)):
                row = spoil(kernel, ranks, _row(part * size**3 / ranks))
                lines.append(",".join([str(ranks), str(size), kernel, *(str(row.get(name, "")) for name in METRICS)]))
    (folder / "t.csv").write_text("\n".join(lines) + "\n")
    words = ["--parameter", "ranks", "--parameter", "size", "--kernel", "kernel"]
    words += [word for name in METRICS for word in ("--metric", name)]
    assert main(["import", "csv", str(folder / "t.csv"), *words, "-o", str(folder / "t.exp"), "--quiet"]) == 0
    model = str(folder / "m.json")
    return model, main(["fit", str(folder / "t.exp"), "-o", model, "--platform", "icelake-8360y", "--quiet"])


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The model of sound counters."""
    model, code = _fitted(tmp_path_factory.mktemp("sound"))
    assert code == 0
    return model


def _times(
    capsys: pytest.CaptureFixture[str], model: str, *asked: str, code: int = 0
) -> dict[str | None, dict[str, object]]:
    capsys.readouterr()
    assert main(["predict", model, *asked, "--metric", "time", "--format", "json"]) == code
    content = json.loads(capsys.readouterr().out)
    return {answer["kernel"]: answer for answer in content["predictions"]}


@pytest.mark.parametrize(
    ("name", "by", "expected"),
    [
        ("loads_l1", 1.5, "loads_l1 of"),
        ("stall_cycles", 40.0, "stall_cycles of"),
        ("loads_mem", 3000.0, "loads_mem of"),
    ],
)
def test_counters_that_contradict_each_other_carry_neither_times_nor_verdicts(
    name: str, by: float, expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, code = _fitted(tmp_path, lambda k, p, row: {**row, name: by * row[name]} if k == "b" else row)
    assert code == 0
    found = _times(capsys, model, "--ranks", "16", "--size", "64")
    assert found["a"]["status"] == "ok"
    for kernel in ("b", None):
        assert found[kernel]["status"] == "insufficient"
        assert "counters contradict each other" in str(found[kernel]["reason"])
    assert expected in str(found["b"]["reason"])
    assert main(["diagnose", model, "--ranks", "16", "--size", "64", "--format", "json"]) == 0
    verdicts = {row["kernel"]: row["verdict"] for row in json.loads(capsys.readouterr().out)["verdicts"]}
    assert verdicts["b"] == "undecided"
    assert verdicts["a"] != "undecided"


def test_a_kernel_without_counters_has_the_function_of_its_times(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, code = _fitted(tmp_path, lambda k, p, row: {"time": row["time"]} if k == "b" else row)
    assert code == 0
    found = _times(capsys, model, "--ranks", "8", "--size", "40")
    assert str(found["b"]["evidence"]).startswith("function of ")
    assert found["b"]["value"] == pytest.approx(0.3 * _row(40**3 / 8)["time"], rel=0.05)
    assert "stalls counted" in str(found["a"]["evidence"])


def test_a_clock_that_turbo_hardly_reaches_is_noted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, code = _fitted(tmp_path, lambda k, p, row: {**row, "time": row["time"] / 1.7})
    assert code == 0
    capsys.readouterr()
    assert main(["predict", model, "--ranks", "8", "--size", "40"]) == 0
    assert "4.08 GHz, icelake-8360y runs at 2.4 GHz: turbo hardly" in " ".join(capsys.readouterr().out.split())


def test_a_machine_that_cannot_have_had_these_cycles_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, code = _fitted(tmp_path, lambda k, p, row: {**row, "time": row["time"] / 4})
    assert code == 1
    warned, refused = capsys.readouterr().err.splitlines()
    assert "9.6 GHz (ranks = 1, size = 16) is no processor's clock" in warned
    assert "9.6 GHz, icelake-8360y runs at 2.4 GHz" in refused


@pytest.mark.parametrize(("slower", "warned"), [(1.25, False), (3.0, True)])
def test_times_are_met_at_the_clock_that_the_runs_had(
    slower: float, warned: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, code = _fitted(tmp_path, lambda k, p, row: {**row, "time": slower * row["time"]})
    assert code == 0
    found = _times(capsys, model, "--ranks", "16", "--size", "64")
    assert found["a"]["value"] == pytest.approx(slower * _row(64**3 / 16)["time"], rel=0.01)
    assert main(["predict", model, "--ranks", "16", "--size", "64"]) == 0
    assert ("ranks shared cores or slept" in " ".join(capsys.readouterr().out.split())) == warned


def test_negative_and_missing_values_are_left_out_and_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def spoil(kernel: str, ranks: int, row: Row) -> Row:
        if kernel == "b" and ranks == 4:
            return {**row, "instructions": -row["instructions"]}
        return {**row, "cycles": float("nan")} if kernel == "b" and ranks == 2 else row

    model, code = _fitted(tmp_path, spoil)
    assert code == 0
    assert "negative instructions: left out in 4 of 32 rows" in capsys.readouterr().err
    found = _times(capsys, model, "--ranks", "16", "--size", "64")
    assert found["b"]["value"] == pytest.approx(0.3 * _row(64**3 / 16)["time"], rel=0.05)


@pytest.mark.parametrize("verb", ["predict", "diagnose"])
@pytest.mark.parametrize(
    ("asked", "code", "expected"),
    [
        ("--ranks 0 --size 32", 1, "1"),
        ("--ranks -4 --size 32", 1, "-4"),
        ("--ranks 2.5 --size 32", 1, "2.5"),
        ("--ranks nan --size 32", 2, "not finite"),
        ("--ranks 1e999 --size 32", 2, "not finite"),
        ("--ranks 1e99 --size 32", 1, "1e+99"),
        ("--ranks four --size 32", 2, "not a list of numbers"),
    ],
)
def test_questions_that_no_program_runs_on_are_refused_in_a_line(
    verb: str, asked: str, code: int, expected: str, sound: str, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert main([verb, sound, *asked.split()]) == code
    output = capsys.readouterr()
    assert expected in output.err
    assert output.err.count("\n") == 1
    assert not output.out


@pytest.mark.parametrize("size", ["0", "-3"])
def test_no_size_has_no_number(size: str, sound: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = _times(capsys, sound, "--ranks", "4", "--size", size, code=4)
    for answer in found.values():
        assert answer["status"] == "insufficient"
        assert answer["value"] is None
        assert f"size is {size}, and was above zero in all runs" in str(answer["reason"])
    assert main(["diagnose", sound, "--ranks", "4", "--size", size]) == 1
    assert f"size is asked at {size}" in capsys.readouterr().err
