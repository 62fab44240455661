"""The contract of readings: whatever a reader gives, what cannot have been measured is refused at import."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.campaign.importing import Import
from ranksight.campaign.naming import Naming
from ranksight.cli.main import main
from ranksight.core.errors import ContractError, InputError
from ranksight.core.experiment import MESSAGE_COLUMNS, Experiment, Run
from ranksight.core.reading import READERS, Reading


def reading(**columns: object) -> Reading:
    """A reading of two kernels."""
    counters = pd.DataFrame({"kernel": ["a", "b"], "rank": [0, 0], "time": [1.0, np.nan]}).assign(**columns)
    return Reading({"ranks": 1.0}, counters, provenance={"time": "measured"})


def sent(**columns: object) -> Reading:
    """A reading of one row of messages."""
    row = dict(zip(MESSAGE_COLUMNS, ("a", 0, "send", 2, 8, 1, 8.0, np.nan, 1), strict=True))
    return Reading({"ranks": 2.0}, messages=pd.DataFrame([row]).assign(**columns))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (reading(time=[-1.0, 1.0]), "kernel 'a' on rank 0 has -1 of time"),
        (reading(compute_cpu_time=[1.0, -2.0]), "kernel 'b' on rank 0 has -2 of compute_cpu_time"),
        (reading(own_metric=[1e300, 0.0]), r"has 1e\+300 of own_metric"),
        (reading(own_metric=[0.0, -np.inf]), "has -inf of own_metric"),
        (reading(time=["1", "x"]), "time holds a value that is not a number"),
        (reading(kernel=["a", None]), "a kernel without a name"),
        (reading(rank=[0, -2]), "name rank -2"),
        (reading(rank=[0.5, 0]), r"name rank 0\.5"),
        (reading(rank=[0, np.nan]), "name rank nan"),
        (sent(seconds=-1.0), "on rank 0 have -1 seconds"),
        (sent(count=-1), "on rank 0 have -1 count"),
        (sent(bytes=np.nan), "on rank 0 have nan bytes"),
        (sent(bytes=1e300), r"on rank 0 have 1e\+300 bytes"),
        (sent(rank=2), "on rank 2, of a run of 2 ranks"),
        (Reading({"ranks": 1.5}, reading().counters), r"1\.5 is not a number of ranks"),
        (Reading({"ranks": 0.0}, reading().counters), "0 is not a number of ranks"),
        (Reading({"ranks": 1.0}, reading().counters, wall_time=-1.0), "the run takes -1 s"),
        (Reading({"ranks": 1.0}, pd.DataFrame({"rank": [0], "time": [1.0]})), "lack the column kernel"),
        (Reading({"ranks": 1.0}, messages=pd.DataFrame({"rank": [0], "kernel": ["a"]})), "lack the column operation"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, given: Reading, message: str) -> None:
    with Import(tmp_path / "e", "app", Naming()) as work, pytest.raises(InputError, match=rf"a file.*{message}"):
        work.add([given], "any", Path("a file"))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (pd.DataFrame(), "what was read is a DataFrame, not a Reading"),
        (Reading(counters={"kernel": ["a"]}), "counters is a dict, not a DataFrame"),  # type: ignore[arg-type]
        (Reading({"ranks": "4"}), "the configuration's ranks is '4', not a number"),  # type: ignore[dict-item]
        (Reading(tables={"own": [1]}), "own is a list, not a DataFrame"),  # type: ignore[dict-item]
        (
            Reading(counters=pd.DataFrame([["a", 0, 1.0, 2.0]], columns=["kernel", "rank", "time", "time"])),
            "counters has the column 'time' twice",
        ),
        (Reading(counters=pd.DataFrame({"kernel": ["a"], "time": [1.0]})), "the counters lack the column rank"),
    ],
)
def test_a_fault_of_the_reader_names_the_contract(tmp_path: Path, given: Reading, message: str) -> None:
    with (
        Import(tmp_path / "e", "app", Naming()) as work,
        pytest.raises(ContractError, match=f"a file.*{message}") as said,
    ):
        work.add([given], "any", Path("a file"))
    assert "breaks the contract of ranksight.core.reading.Reading" in str(said.value)


def test_what_can_be_passes() -> None:
    reading().validate("a file")
    sent(seconds=0.0).validate("a file")
    reading(own_metric=[-1.0, 2.0**62]).validate("a file")  # a metric that nobody knows may be negative
    replace(reading(), configuration={"size": 0.5}).validate("a file")


def test_a_metric_named_time_is_one(tmp_path: Path) -> None:
    naming = Naming(metrics={"time": "balance"})
    given = reading(balance=[-1.0, 1.0])
    assert given.counters is not None
    given = replace(given, counters=given.counters.drop(columns="time"), provenance={"balance": "measured"})
    with Import(tmp_path / "e", "app", naming) as work, pytest.raises(InputError, match="has -1 of time"):
        work.add([given], "any", Path("a file"))


def test_values_of_extrap_texts_and_ranks_of_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = tmp_path / "model.txt"
    text.write_text("PARAMETER ranks\nPOINTS 2 4\nREGION main\nMETRIC time\nDATA 1\nDATA 1e300\n")
    assert main(["import", str(text), "-o", str(tmp_path / "e")]) == 1
    assert "1e+300 of time" in capsys.readouterr().err
    table = tmp_path / "t.csv"
    table.write_text("ranks,time\n1.5,2\n4,1\n")
    assert main(["import", "csv", str(table), "--parameter", "ranks", "--metric", "time", "-o", "f"]) == 1
    assert "1.5 is not a number of ranks" in capsys.readouterr().err
    assert not Path("f").exists()


LONG = "1" * 5000


@pytest.mark.parametrize(
    ("reader", "name", "content"),
    [
        ("tau", "profile.0.0.0", f"{LONG} templated_functions_MULTI_TIME\n# Name Calls Subrs Excl Incl #\n"),
        ("likwid", "l.csv", f"TABLE,Region a,Group {LONG} Raw,FLOPS,1\n"),
        ("likwid", "l.csv", f"TABLE,Region a,Group 1 Raw,FLOPS,{LONG}\n"),
        ("likwid", "l.txt", f"Region a, Group {LONG}: FLOPS\n+--+\n|a|\n"),
        ("perf-stat", "p.txt", f"[1,{LONG}]<stdout>:  Performance counter stats for 'a':\n"),
        ("perf-stat", "p.csv", "5,,cycles,²,100.00,,\n"),
    ],
)
def test_numbers_of_many_digits(tmp_path: Path, reader: str, name: str, content: str) -> None:
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=name):
        list(READERS[reader].read(path))


def test_digits_that_are_no_number(tmp_path: Path) -> None:
    lines = ["1 templated_functions_MULTI_TIME", "# Name Calls Subrs Excl Incl ProfileCalls #", '"main" 1 0 5 5 0 ']
    for events in ("\u00b2", LONG):
        path = tmp_path / "profile.0.0.0"
        path.write_text("\n".join([*lines, "0 aggregates", f"{events} userevents"]) + "\n", encoding="utf-8")
        (found,) = READERS["tau"].read(path)
        assert found.counters is not None
        assert found.counters["kernel"].tolist() == ["main"]
    for cores in ("\u00b2", LONG):
        assert not Run({"ranks": 8}, environment={"cores": cores}).crowded


@pytest.fixture
def stored(tmp_path: Path) -> Experiment:
    """An experiment of one run."""
    found = Experiment.create(tmp_path / "e", "app", ["ranks"])
    found.add(Run({"ranks": 1}), reading().counters)
    return found


@pytest.mark.parametrize(
    "columns",
    [
        {"kernel": ["a", None], "rank": [0, 0], "time": [1.0, 2.0]},
        {"rank": [0, 0], "time": [1.0, 2.0]},
        {"kernel": ["a", "b"], "rank": ["x", "y"], "time": [1.0, 2.0]},
        {"kernel": ["a", "b"], "rank": [0, 0], "time": ["x", "y"]},
    ],
)
def test_tables_that_somebody_changed(stored: Experiment, columns: dict[str, list[object]]) -> None:
    (run,) = stored.runs
    pd.DataFrame(columns).to_parquet(stored.path / "runs" / run.id / "counters.parquet")
    with pytest.raises(InputError, match="cannot be read"):
        Experiment.read(stored.path).counters(["time"])


def test_names_for_results_of_this_folder(
    stored: Experiment, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(stored.path)
    assert main(["fit", "."]) in (0, 4)
    assert (stored.path.parent / "e.model.json").is_file()
    for verb in ("fit", "report"):
        assert main([verb, "/"]) == 1
    assert "internal error" not in capsys.readouterr().err


@pytest.mark.parametrize("name", ["counters", "messages"])
@pytest.mark.parametrize("rank", [-(2**63), -2, 2**31, 0.5])
def test_ranks_that_cannot_be_in_stored_tables(tmp_path: Path, name: str, rank: float) -> None:
    found = Experiment.create(tmp_path / "e", "app", ["ranks"])
    run = found.add(Run({"ranks": 2}), reading().counters, sent().messages)
    file = found.path / "runs" / run.id / f"{name}.parquet"
    table = pd.read_parquet(file)
    table.assign(rank=[rank] * len(table)).to_parquet(file)
    with pytest.raises(InputError, match=rf"{name}\.parquet name rank"):
        Experiment.read(found.path).table(run, name)
    if name == "counters":
        with pytest.raises(InputError, match="name rank"):
            Experiment.read(found.path).counters(["time"])


@pytest.mark.parametrize(
    ("column", "value", "message"), [("rank", 2, "of a run of 2 ranks"), ("count", -1, "-1 count")]
)
def test_messages_that_nobody_sent_in_stored_tables(tmp_path: Path, column: str, value: int, message: str) -> None:
    found = Experiment.create(tmp_path / "e", "app", ["ranks"])
    run = found.add(Run({"ranks": 2}), reading().counters, sent(**{column: value}).messages)
    with pytest.raises(InputError, match=message):
        Experiment.read(found.path).table(run, "messages")
