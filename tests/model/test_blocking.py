"""BF_comm: measured over modelled communication time, as a rate over ranks."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.cli.main import main
from ranksight.comm.costs.collective import OPERATIONS
from ranksight.comm.costs.cost import cost
from ranksight.comm.costs.selection import algorithms_of
from ranksight.comm.network import NetworkParameters
from ranksight.core.errors import InputError
from ranksight.core.experiment import WHOLE, Experiment, Run
from ranksight.model.application.comm_blocking import Blocking, kind_of
from ranksight.model.application.network import Network
from ranksight.model.fit import fit
from ranksight.model.fitted_model import Model
from ranksight.platforms import Platform, load

RANKS, LARGER = (4, 8, 12, 16, 32), 512
CALLS, SIZE = 1000, 8.0
DOUBLING = {"allreduce": "recursive_doubling"}
LINK = NetworkParameters.linear(2e-6, 1e-10)


def machine(**table: object) -> Platform:
    return replace(load("generic"), network={"inter": LINK.to_dict(), **table})


def seconds(ranks: int, algorithm: str = "recursive_doubling") -> float:
    return CALLS * float(cost("allreduce", ranks, SIZE, LINK, {"allreduce": algorithm}))


def write(path: Path, factor: float = 1.0, power: float = 0.0, algorithm: str = "recursive_doubling",
          timed: bool = True, late: float = 0.0, cores: str = "") -> Experiment:  # fmt: skip
    """A program of one kernel and one reduction; `late` of its computation only rank 0 does, as others wait."""
    experiment = Experiment.create(path, "solver", ["ranks"])
    for ranks in RANKS:
        own = 10.0 / ranks * np.r_[1 + late, np.ones(ranks - 1)]
        took = factor * (ranks / 32) ** power * seconds(ranks, algorithm)
        messages = pd.DataFrame({"kernel": "solve", "rank": np.arange(ranks), "operation": "Allreduce", "count": CALLS,
                                 "comm_size": ranks, "size_class": 8, "bytes": CALLS * SIZE, "peers": 0,
                                 "seconds": took + own.max() - own})  # fmt: skip
        whole = pd.DataFrame({"kernel": WHOLE, "rank": np.arange(ranks), "wall_time": own.max() + took})
        solve = pd.DataFrame({"kernel": "solve", "rank": np.arange(ranks), "time": own})
        if not timed:
            messages, whole = messages.assign(seconds=np.nan), whole[:0]
        run = Run({"ranks": ranks}, environment={"cores": cores} if cores else {})
        experiment.add(run, pd.concat([whole, solve]), messages)
    return experiment


def fitted(experiment: Experiment, **table: object) -> Model:
    return fit(experiment, ["time"], platform=machine(**table))


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a model that knows counts of messages and no times."""
    folder = tmp_path_factory.mktemp("plain")
    fitted(write(folder / "e", timed=False)).save(folder / "m.json")
    return folder / "m.json"


def communication(model: Model, *ranks: float) -> np.ndarray:
    return model.breakdown(np.array(ranks)[:, None]).parts["communication"]


@pytest.mark.parametrize(("factor", "power"), [(0.3, -0.2), (1.0, 0.0), (3.0, 0.2)])
def test_communication_takes_what_it_took_and_goes_on_as_it_did(tmp_path: Path, factor: float, power: float) -> None:
    model = fitted(write(tmp_path / "e", factor, power), algorithms=DOUBLING)
    truth = [factor * (ranks / 32) ** power * seconds(ranks) for ranks in (*RANKS, 128)]
    found = communication(model, *RANKS, 128)
    np.testing.assert_allclose(found[:-1], truth[:-1], rtol=1e-9)
    assert found[-1] == pytest.approx(truth[-1], rel=0.05)
    said = model.breakdown(np.array([[32.0], [128.0]])).exchanged
    assert said is not None
    assert said.measured.tolist() == [True, False]
    assert said.factor.value[0] == pytest.approx([factor, factor * 4**power], rel=0.05)
    assert (said.factor.lower < said.factor.value).all()
    assert (said.factor.value < said.factor.upper).all()


def test_an_algorithm_that_nobody_states_is_the_one_whose_factor_does_not_change(tmp_path: Path) -> None:
    measured = write(tmp_path / "e", 2.0, algorithm="linear")
    model = fitted(measured)
    assert communication(model, LARGER)[0] == pytest.approx(2 * seconds(LARGER, "linear"), rel=0.05)
    stated = fitted(measured, algorithms=DOUBLING)
    sent = stated.equation.communication
    assert sent is not None
    assert sent.blocking is not None
    assert set(sent.blocking.ways) == {""}
    assert communication(stated, LARGER)[0] < 0.8 * communication(model, LARGER)[0]


def test_algorithms_that_measurements_cannot_distinguish_are_all_in_the_interval(tmp_path: Path) -> None:
    said = fitted(write(tmp_path / "e")).breakdown(np.array([[float(LARGER)]])).exchanged
    assert said is not None
    usual = CALLS * float(cost("allreduce", LARGER, SIZE, LINK))
    assert seconds(LARGER) < 0.8 * usual
    assert said.times.value[0, 0] == pytest.approx(seconds(LARGER), rel=0.2)  # what was seen goes on
    for truth in (seconds(LARGER), usual):
        assert said.times.lower[0, 0] <= truth <= said.times.upper[0, 0]


def test_a_total_gives_every_operation_the_same_factor(tmp_path: Path) -> None:
    experiment = write(tmp_path / "e", timed=False)
    for ranks in RANKS:
        whole = pd.DataFrame({"kernel": WHOLE, "rank": np.arange(ranks), "mpi_time": 4 * seconds(ranks)})
        experiment.add(Run({"ranks": ranks}, collector="timers"), whole)
    model = fitted(experiment, algorithms=DOUBLING)
    np.testing.assert_allclose(communication(model, *RANKS), [4 * seconds(ranks) for ranks in RANKS], rtol=1e-9)
    assert communication(model, 128)[0] == pytest.approx(4 * seconds(128), rel=0.05)


def test_repetitions_are_averaged(tmp_path: Path) -> None:
    first, second = write(tmp_path / "a", 2.0), write(tmp_path / "b", 2.2)
    for run in second.runs:
        first.add(replace(run, repetition=1, id=""), second.table(run, "counters"), second.table(run, "messages"))
    model = fitted(first, algorithms=DOUBLING)
    expected = [np.sqrt(2.0 * 2.2) * seconds(ranks) for ranks in RANKS]
    np.testing.assert_allclose(communication(model, *RANKS), expected, rtol=1e-9)


def test_without_times_the_factor_is_one_within_three(tmp_path: Path) -> None:
    for at, experiment in enumerate([write(tmp_path / "a", 3.0, timed=False), write(tmp_path / "b", 3.0, cores="2")]):
        model = fitted(experiment)
        said = model.breakdown(np.array([[32.0]])).exchanged
        assert said is not None, at
        assert any("BF_comm is assumed to be 1" in note for note in model.predict(ranks=[32]).notes)
        assert said.methods == ("assumed",)
        assert not said.measured[0]
        assert said.factor.value[0, 0] == pytest.approx(1)
        assert said.factor.upper[0, 0] == pytest.approx(3, rel=0.02)
        assert said.factor.lower[0, 0] == pytest.approx(1 / 3, rel=0.02)


def test_waiting_for_the_slowest_rank_counts_once(tmp_path: Path) -> None:
    model = fitted(write(tmp_path / "e", 1.0, late=0.2))
    said = model.breakdown(np.array([[32.0]]))
    assert said.parts["imbalance"][0] > 0
    assert said.parts["communication"][0] == pytest.approx(seconds(32), rel=0.25)
    assert said.total.value[0, 0] == pytest.approx(10 / 32 * 1.2 + seconds(32), rel=0.02)


def test_a_model_file_keeps_it(tmp_path: Path) -> None:
    model = fitted(write(tmp_path / "e", 3.0))
    model.save(tmp_path / "m.json")
    np.testing.assert_allclose(communication(Model.load(tmp_path / "m.json"), 16, 64), communication(model, 16, 64))
    sent = model.equation.communication
    assert sent is not None
    assert sent.blocking is not None
    content = sent.blocking.to_dict()
    for damage in ({"weights": [1.0, 0.5]}, {"columns": [7]}, {"levels": None}):
        with pytest.raises(InputError, match="blocking"):
            Blocking.from_dict(content | damage)


@pytest.mark.parametrize(("factor", "text"), [(50.0, "BF_comm is 50 at"), (5.0, "")])
def test_factors_that_make_no_sense_are_named(tmp_path: Path, factor: float, text: str) -> None:
    notes = fitted(write(tmp_path / "e", factor)).predict(ranks=[64]).notes
    assert ("described network" in " ".join(notes)) == bool(text)
    assert text in " ".join(notes)


def test_kernels_that_take_longer_than_the_program_are_named(tmp_path: Path) -> None:
    experiment = write(tmp_path / "e")
    for ranks in RANKS:
        nested = pd.DataFrame({"kernel": "outer", "rank": np.arange(ranks), "time": 10.0 / ranks})
        experiment.add(Run({"ranks": ranks}, collector="timers"), nested)
    notes = " ".join(fitted(experiment).predict(ranks=[64]).notes)
    assert "BF_comm is below 0 at 4 ranks" in notes
    assert "wall time" in notes


@pytest.mark.parametrize(
    ("operation", "kind"),
    [("MPI_Isend", "point-to-point"), ("Waitall", "point-to-point"), ("Iallreduce", "allreduce"), ("Cart_create", "")],
)
def test_kinds_of_operations(operation: str, kind: str) -> None:
    assert kind_of(operation) == kind


def test_a_network_between_nodes_alone_gives_every_rank_a_node() -> None:
    assert Network(dict(machine().network), 64).fabric().ranks_per_node == 1
    both = {"inter": LINK.to_dict(), "intra": LINK.to_dict()}
    assert Network(both, 64).fabric().ranks_per_node == 64


def test_predictions_say_what_it_means(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fitted(write(tmp_path / "e", 0.3)).save(tmp_path / "m.json")
    assert main(["predict", str(tmp_path / "m.json"), "--ranks", "4,8,16"]) == 0
    said = capsys.readouterr().out
    assert said.count("(BF_comm)") == 3
    assert "BF_comm is 0.3, below 1, part of the communication overlaps" in " ".join(said.split())
    assert main(["predict", str(tmp_path / "m.json"), "--ranks", "16", "--format", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["communication"]
    assert row["configuration"] == {"ranks": 16}
    assert row["factor"] == pytest.approx(0.3)
    assert (row["method"], row["meaning"]) == ("measured", "overlap")
    assert row["communication"] == pytest.approx(0.3 * row["network"])


def test_a_stated_algorithm_meets_what_was_measured_and_grows_as_it_does(tmp_path: Path) -> None:
    model = fitted(write(tmp_path / "e", 2.0))
    ring = model.with_algorithms({"MPI_Allreduce": "ring"})
    np.testing.assert_allclose(communication(ring, *RANKS), communication(model, *RANKS), rtol=1e-9)
    held = ring.equation.communication
    assert held is not None
    assert held.blocking is not None
    factor, _, exact = held.blocking.at(np.array([[float(ranks)] for ranks in RANKS]))
    assert exact.all()
    expected = [np.log(2 * seconds(ranks) / seconds(ranks, "ring")) for ranks in RANKS]
    np.testing.assert_allclose(factor, np.broadcast_to(expected, factor.shape), rtol=1e-6)
    doubling = model.with_algorithms(DOUBLING)
    assert communication(doubling, LARGER)[0] == pytest.approx(2 * seconds(LARGER), rel=0.02)
    assert communication(doubling.with_algorithms({"bcast": "binomial"}), LARGER) == communication(doubling, LARGER)


@pytest.mark.parametrize(
    ("given", "code", "text"),
    [
        ("allreduce=nix", 1, "allreduce has no algorithm 'nix'; known: hierarchical, linear, rabenseifner"),
        ("allredoce=ring", 1, "'allredoce' is not a collective operation; known: allgather, allgatherv, allreduce"),
        ("allreduce", 2, "--algorithm 'allreduce' is not an OPERATION=NAME; such as --algorithm allreduce=ring"),
        ("allreduce=ring", 0, ""),
    ],
)
def test_algorithms_on_the_command_line(
    given: str, code: int, text: str, plain: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["predict", str(plain), "--ranks", "16", "--algorithm", given, "--quiet"]) == code
    assert text in " ".join(capsys.readouterr().err.split())


def test_algorithms_need_a_network_and_a_table_of_names(tmp_path: Path) -> None:
    model = fit(write(tmp_path / "e"), platform=None)
    with pytest.raises(InputError, match="no network"):
        model.with_algorithms(DOUBLING)
    for wrong, text in (({"allreduce": "nix"}, "known: hierarchical"), ("ring", "not a table")):
        with pytest.raises(InputError, match=r"\[network.algorithms\]") as error:
            fitted(write(tmp_path / text), algorithms=wrong)
        assert text in str(error.value)


def test_the_document_lists_every_algorithm() -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "collectives.md").read_text()
    for operation in OPERATIONS:
        names = ", ".join(f"`{name}`" for name in algorithms_of(operation))
        assert f"| `{operation}` | {names} |" in text


def test_without_a_network_calls_take_a_fitted_form(tmp_path: Path) -> None:
    model = fit(write(tmp_path / "e", 3.0), ["time"], platform=None)
    np.testing.assert_allclose(communication(model, *RANKS), [3 * seconds(ranks) for ranks in RANKS], rtol=1e-9)
    said = model.breakdown(np.array([[float(LARGER)]])).exchanged
    assert said is not None
    assert said.times.lower[0, 0] <= 3 * seconds(LARGER) <= said.times.upper[0, 0]
    assert said.times.value[0, 0] == pytest.approx(3 * seconds(LARGER), rel=0.3)
    model.save(tmp_path / "m.json")
    assert communication(Model.load(tmp_path / "m.json"), LARGER) == communication(model, LARGER)
    sent = model.equation.communication
    assert sent is not None
    assert sent.forms.costs["allreduce"].names == ("log2 P", "1")  # one size: no bytes
    with pytest.raises(InputError, match="forms"):
        type(sent.forms).from_dict({"allreduce": {"names": ["x"], "coefficients": [1.0], "residual": 0, "points": 3}})
    assert not model.predict(ranks=[LARGER]).communication


def test_kernels_that_hold_the_communication_get_no_form(tmp_path: Path) -> None:
    inclusive, profiled = write(tmp_path / "a", 3.0), write(tmp_path / "b", 3.0)
    for ranks in RANKS:
        more = {"rank": np.arange(ranks), "time": 3 * seconds(ranks)}
        inclusive.add(Run({"ranks": ranks}, collector="timers"), pd.DataFrame({"kernel": "exchange", **more}))
        profiled.add(Run({"ranks": ranks}, collector="timers"), pd.DataFrame({"kernel": "MPI_Allreduce", **more}))
    found = [fit(experiment, ["time"], platform=None) for experiment in (inclusive, profiled)]
    assert communication(found[0], LARGER)[0] == 0
    broken = found[1].breakdown(np.array([[float(LARGER)]]))
    assert not broken.exchanged
    timed = broken.each["communication"][broken.kernels.index("MPI_Allreduce"), 0]
    predicted = found[1].predict(ranks=LARGER, kernels="MPI_Allreduce").table().set_index("kernel")["value"]
    assert communication(found[1], LARGER)[0] == timed == pytest.approx(predicted["MPI_Allreduce"]), "counted once"


@pytest.mark.parametrize("timed", [True, False])
def test_messages_that_a_profile_timed_too_are_counted_once(timed: bool, tmp_path: Path) -> None:
    """On the network where their time in the program is known from the trace, as the profile has it otherwise."""
    traced, both = (write(tmp_path / name, 3.0, timed=timed) for name in "ab")
    for ranks in RANKS:
        rows = pd.DataFrame({"kernel": "MPI_Allreduce", "rank": np.arange(ranks), "time": 3 * seconds(ranks)})
        both.add(Run({"ranks": ranks}, collector="timers"), rows)
    once, twice = (fitted(experiment, algorithms=DOUBLING) for experiment in (traced, both))
    assert communication(twice, *RANKS) == pytest.approx([3 * seconds(ranks) for ranks in RANKS], rel=0.3)
    if timed:
        point = np.array([[float(RANKS[-1])]])
        assert twice.breakdown(point).total.value == pytest.approx(once.breakdown(point).total.value, rel=1e-6)
