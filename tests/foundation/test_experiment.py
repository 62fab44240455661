"""The store: what is written is read back whole, half-written runs do not exist, damage is named."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranksight.core.errors import InputError
from ranksight.core.experiment import MESSAGE_COLUMNS, WHOLE, Experiment, Run, read


def counters(ranks: int, kernels: tuple[str, ...] = ("a", "b"), factor: float = 1.0) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "kernel": list(kernels) * ranks,
            "rank": np.repeat(range(ranks), len(kernels)),
            "time": factor * np.arange(ranks * len(kernels), dtype=float),
        }
    )


@pytest.fixture
def experiment(tmp_path: Path) -> Experiment:
    return Experiment.create(tmp_path / "e", "app", ["ranks", "size"])


def test_runs_come_back_as_they_were_written(experiment: Experiment) -> None:
    run = Run(
        {"ranks": 2, "size": 16.5},
        3,
        "perf",
        command=("mpirun", "-n", "2"),
        wall_time=1.25,
        provenance={"time": "measured"},
        notes=("said",),
        environment={"host": "h"},
    )
    experiment.add(run, counters(2))
    again = read(experiment.path)
    assert again.runs == (run,)
    assert again.application == "app"
    assert again.metrics() == ("time",)
    table = again.counters()
    assert list(table["kernel"]) == ["a", "b", "a", "b"]
    assert list(table["rank"]) == [0, 0, 1, 1]
    assert list(table["time"]) == [0, 1, 2, 3]


def test_metrics_that_a_run_lacks_are_missing_not_zero(experiment: Experiment) -> None:
    experiment.add(Run({"ranks": 1, "size": 1}, collector="x"), counters(1))
    other = pd.DataFrame({"kernel": ["c"], "rank": [0], "loads": [7.0]})
    experiment.add(Run({"ranks": 1, "size": 1}, collector="y"), other)
    table = experiment.counters(["time", "loads"])
    assert table["loads"].isna().tolist() == [True, True, False]
    assert table["time"].isna().tolist() == [False, False, True]


def test_messages_come_back_with_their_run(experiment: Experiment) -> None:
    row = dict(zip(MESSAGE_COLUMNS, ("k", 0, "Isend", 4, 1024, 10, 8000, 0.5, 2), strict=True))
    run = experiment.add(Run({"ranks": 4, "size": 1}), messages=pd.DataFrame([row]))
    table = read(experiment.path).messages()
    assert table.loc[0, "run"] == run.id
    assert table.loc[0, "bytes"] == 8000
    assert experiment.messages([]).empty


def test_a_run_interrupted_while_written_does_not_exist(
    experiment: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "rename", fail)
    with pytest.raises(InputError, match="No space left on device"):
        experiment.add(Run({"ranks": 1, "size": 1}), counters(1))
    monkeypatch.undo()
    assert list((experiment.path / "runs").iterdir()) == []
    (experiment.path / "runs" / ".new-left-behind").mkdir()
    assert len(read(experiment.path)) == 0


def test_the_same_run_twice_is_refused(experiment: Experiment) -> None:
    experiment.add(Run({"ranks": 1, "size": 1}), counters(1))
    with pytest.raises(InputError, match="already"):
        experiment.add(Run({"ranks": 1, "size": 1}), counters(1))


@pytest.mark.parametrize(
    ("configuration", "message"),
    [({"ranks": 1}, "not ranks, size"), ({"ranks": 1, "size": 2, "x": 3}, "not ranks, size")],
)
def test_a_run_of_other_parameters_is_refused(
    experiment: Experiment, configuration: dict[str, float], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        experiment.add(Run(configuration), counters(1))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "8"])
def test_parameters_are_finite_numbers(value: object) -> None:
    with pytest.raises(InputError, match="finite"):
        Run({"ranks": value})  # type: ignore[dict-item]


def test_tables_are_checked(experiment: Experiment) -> None:
    with pytest.raises(InputError, match="lack the column rank"):
        experiment.add(Run({"ranks": 1, "size": 1}), pd.DataFrame({"kernel": ["a"], "time": [1.0]}))
    twice = pd.concat([counters(1), counters(1)])
    with pytest.raises(InputError, match="'a' on rank 0 twice"):
        experiment.add(Run({"ranks": 1, "size": 1}), twice)
    with pytest.raises(InputError, match="lack the column"):
        experiment.add(Run({"ranks": 1, "size": 1}), messages=pd.DataFrame({"kernel": ["a"]}))
    assert len(read(experiment.path)) == 0


def test_no_experiment_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such folder"):
        read(tmp_path / "nothing")
    with pytest.raises(InputError, match=r"experiment\.json is missing"):
        read(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(InputError, match="exists already"):
        Experiment.create(tmp_path / "full", "a", ["ranks"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not valid JSON"),
        ("[]", "no JSON object"),
        ("[" * 100_000, "not valid JSON"),
        ('{"schema_version": 99, "parameters": []}', "newer"),
        ('{"schema_version": "1"}', "schema_version"),
        ('{"schema_version": 1, "parameters": "ranks"}', "not a list of names"),
    ],
)
def test_damaged_heads_are_named(experiment: Experiment, content: str, message: str) -> None:
    (experiment.path / "experiment.json").write_text(content)
    with pytest.raises(InputError, match=message):
        read(experiment.path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"configuration": None}, "configuration is missing"),
        ({"surprise": 1}, "unknown entry surprise"),
        ({"schema_version": 7}, "schema_version"),
        ({"configuration": {"ranks": 1}}, "its parameters are ranks"),
        ({"configuration": {"ranks": 10**400, "size": 1}}, "parameter ranks has the value"),
        ({"configuration": {"ranks": 2**32, "size": 1}}, "a run of .* ranks was measured"),
        ({"configuration": {"ranks": 1.5, "size": 1}}, "a run of 1.5 ranks was measured"),
        ({"configuration": {"ranks": 0, "size": 1}}, "a run of 0 ranks was measured"),
        ({"wall_time": -1.0}, "a run that takes -1.0 s"),
        ({"wall_time": 10**400}, "a run that takes 10+ s"),
        ({"wall_time": float("nan")}, "a run that takes nan s"),
        ({"notes": 3.5}, "notes is '3.5'"),
        ({"command": [1]}, "command is"),
        ({"environment": {"OMP_NUM_THREADS": {}}}, "environment is"),
        ({"repetition": "first"}, "repetition is 'first'"),
        ({"wall_time": []}, "wall_time is"),
        ({"state": None}, "state is 'None'"),
    ],
)
def test_damaged_runs_are_named(experiment: Experiment, change: dict[str, object], message: str) -> None:
    run = experiment.add(Run({"ranks": 1, "size": 1}), counters(1))
    file = experiment.path / "runs" / run.id / "run.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **change}))
    with pytest.raises(InputError, match=message) as caught:
        read(experiment.path)
    assert "run.json" in str(caught.value)


def test_what_never_ends_is_not_read(experiment: Experiment) -> None:
    (experiment.path / "experiment.json").unlink()
    (experiment.path / "experiment.json").symlink_to("/dev/zero")
    run = experiment.add(Run({"ranks": 1, "size": 1}), counters(1))
    with pytest.raises(InputError, match="is missing"):
        read(experiment.path)
    with pytest.raises(InputError, match="is not a regular file"):
        Run.read(_zeros(experiment.path / "runs" / run.id))


def _zeros(folder: Path) -> Path:
    (folder / "run.json").unlink()
    (folder / "run.json").symlink_to("/dev/zero")
    return folder


def test_a_run_that_another_process_stored_meanwhile_stays(experiment: Experiment) -> None:
    other = read(experiment.path)
    run = experiment.add(Run({"ranks": 1, "size": 1}), counters(1))
    with pytest.raises(InputError, match="came into .* meanwhile; let one command at a time"):
        other.add(Run({"ranks": 1, "size": 1}), counters(2))
    assert len(read(experiment.path).table(run, "counters")) == len(counters(1))
    assert [path.name for path in (experiment.path / "runs").iterdir()] == [run.id]


def test_a_damaged_table_is_named(experiment: Experiment) -> None:
    run = experiment.add(Run({"ranks": 1, "size": 1}), counters(1))
    file = experiment.path / "runs" / run.id / "counters.parquet"
    file.write_bytes(file.read_bytes()[:40])
    for call in (experiment.counters, experiment.metrics, lambda: experiment.table(run, "counters")):
        with pytest.raises(InputError, match="measure this run again"):
            call()


@pytest.mark.parametrize(
    ("name", "value"), [("time", -1.0), ("time", 1e300), ("own", -1e300), ("own", np.inf), ("instructions", np.inf)]
)
def test_counters_that_nothing_can_have_measured_are_not_read(experiment: Experiment, name: str, value: float) -> None:
    table = pd.DataFrame({"kernel": ["a", "b"], "rank": [0, 0], "time": [1.0, np.nan], "own": [-1.0, 2.0]})
    run = experiment.add(Run({"ranks": 1, "size": 1}), table.assign(loads_l3=[-2, 3]))
    assert experiment.counters(["own"])["own"].tolist() == [-1.0, 2.0]
    assert experiment.counters(["loads_l3"])["loads_l3"].tolist() == [-2, 3]  # a difference of counters
    bad = table.assign(**{name: [1, value]})
    bad.to_parquet(experiment.path / "runs" / run.id / "counters.parquet")  # a stranger's
    for call in (read(experiment.path).counters, lambda: read(experiment.path).table(run, "counters", [name])):
        with pytest.raises(InputError, match=f"row 2 has .* of {name}"):
            call()


def test_an_experiment_can_be_copied(experiment: Experiment, tmp_path: Path) -> None:
    experiment.add(Run({"ranks": 2, "size": 1}), counters(2))
    shutil.copytree(experiment.path, tmp_path / "elsewhere")
    assert read(tmp_path / "elsewhere").counters().equals(experiment.counters())


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=40), st.text(max_size=20))
def test_ids_never_leave_the_folder(name: str, collector: str) -> None:
    run = Run({name: 1.0}, collector=collector)
    assert "/" not in run.id
    assert not run.id.startswith(".")
    assert Path(run.id).name == run.id


@settings(max_examples=30, deadline=None)
@given(kernels=st.lists(st.text(min_size=1, max_size=20), min_size=1, max_size=5, unique=True))
def test_kernels_keep_any_name(tmp_path_factory: pytest.TempPathFactory, kernels: list[str]) -> None:
    experiment = Experiment.create(tmp_path_factory.mktemp("e") / "x", "a", ["ranks"])
    try:
        table = counters(1, tuple(kernels))
        experiment.add(Run({"ranks": 1}), table)
    except (InputError, UnicodeEncodeError):
        assert any("\ud800" <= character <= "\udfff" for kernel in kernels for character in kernel)
        return
    assert list(read(experiment.path).counters()["kernel"]) == kernels


def test_whole_is_no_possible_function_name() -> None:
    assert not WHOLE.isidentifier()


@pytest.mark.parametrize(
    ("environment", "crowded"),
    [
        ({}, False),
        ({"cores": "0"}, False),
        ({"cores": "many"}, False),
        ({"cores": "7"}, True),
        ({"cores": "8"}, False),
        ({"cores": "4", "SLURM_JOB_ID": "1"}, False),
        ({"cores": "4", "PBS_JOBID": "1"}, False),
        ({"cores": "4", "SLURM_JOB_ID": "1", "SLURM_JOB_NODELIST": "n[1-2]"}, False),
        ({"cores": "4", "SLURM_JOB_ID": "1", "SLURM_JOB_NODELIST": "n1,m2"}, False),
        ({"cores": "4", "SLURM_JOB_ID": "1", "SLURM_JOB_NODELIST": "n1"}, True),
    ],
)
def test_ranks_share_cores_where_the_cores_are_known_to_be_all(environment: dict[str, str], crowded: bool) -> None:
    assert Run({"ranks": 8}, environment=environment).crowded == crowded


def test_an_experiment_whose_head_found_no_room_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(InputError, match="No space left"):
        Experiment.create(tmp_path / "e", "x", ["ranks"])
    monkeypatch.undo()
    (tmp_path / "e" / ".experiment.json.0badcafe").touch()  # of one that was killed
    assert len(Experiment.create(tmp_path / "e", "x", ["ranks"])) == 0
    (tmp_path / "f" / "runs" / "mine").mkdir(parents=True)
    with pytest.raises(InputError, match="exists already"):
        Experiment.create(tmp_path / "f", "x", ["ranks"])
