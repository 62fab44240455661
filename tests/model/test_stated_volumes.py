"""Volumes of messages that the user states: used beyond the measurements, and held against them."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from ranksight.cli.main import main
from ranksight.comm.patterns.grid import Cartesian
from ranksight.core.errors import InputError
from ranksight.core.experiment import Experiment
from ranksight.model.fit import fit
from ranksight.model.fitted_model import Model
from ranksight.model.structure.stated import Stated
from ranksight.platforms import load

RANKS = (1, 2, 4, 8, 12, 16, 27)


@pytest.fixture(scope="module")
def one_size(tmp_path_factory: pytest.TempPathFactory, made_up: ModuleType) -> Experiment:
    experiment: Experiment = made_up.write(tmp_path_factory.mktemp("stated") / "one.exp", RANKS, (12,), load("generic"))
    return experiment


@pytest.fixture(scope="module")
def two_sizes(tmp_path_factory: pytest.TempPathFactory, made_up: ModuleType) -> Experiment:
    experiment: Experiment = made_up.write(
        tmp_path_factory.mktemp("stated") / "two.exp", RANKS[:5], (12, 24), load("generic")
    )
    return experiment


def _bytes(model: Model, **asked: float) -> tuple[float, set[str]]:
    """Mean bytes that a rank sends in `pack`, and why not."""
    (table,) = model.messages(**asked)
    rows = [row for row in table.rows if row.kernel == "pack"]
    return float(sum(row.bytes.sum() for row in rows)) / asked["ranks"], {row.reason for row in rows}


def _true(ranks: int, size: int) -> float:
    return float(Cartesian(3, (False, False, False)).neighbours(ranks).sum(axis=1).mean()) * 10 * 8 * size**2


def test_another_size_is_not_known_where_one_was_measured(one_size: Experiment) -> None:
    model = fit(one_size)
    assert _bytes(model, ranks=64, size=12)[1] == {""}
    assert _bytes(model, ranks=64, size=24)[1] == {"size took one value in the measurements"}
    found = [answer for answer in model.predict(ranks=64, size=24).answers if answer.ok]
    assert [(answer.kernel, answer.metric) for answer in found] == []


def test_volumes_by_operation(one_size: Experiment) -> None:
    """Ding et al. 2018: 8 : 1 : 16 for the point-to-point messages, broadcasts and reductions of a larger problem."""
    model = fit(one_size, volumes={"pack: Isend": "size^2", "Allreduce": "1"})
    sent = model.equation.communication
    assert sent is not None
    said, rows = sent.functions.predict(np.array([[64.0, 12.0], [64.0, 24.0]])), sent.functions.rows
    halo, sums = rows["pack: Isend", "bytes_sent"], rows["solve: Allreduce", "bytes_sent"]
    assert said.value[halo, 1] == pytest.approx(4 * said.value[halo, 0])
    assert said.value[sums, 1] == pytest.approx(said.value[sums, 0])
    assert (said.status[[halo, sums]] == 0).all()
    (table,) = model.messages(ranks=64, size=24)
    assert {row.reason for row in table.rows if row.key in (("pack", "Isend"), ("solve", "Allreduce"))} == {""}


def test_a_stated_volume_goes_on_to_another_size(one_size: Experiment, tmp_path: Path) -> None:
    fit(one_size, volumes={"pack": "size^2"}).save(tmp_path / "m.json")
    model = Model.load(tmp_path / "m.json")
    value, reasons = _bytes(model, ranks=64, size=24)
    assert reasons == {""}
    assert value == pytest.approx(4 * _bytes(model, ranks=64, size=12)[0])
    # What is not stated is not known, and says so.
    (table,) = model.messages(ranks=64, size=24)
    assert {row.reason for row in table.rows if row.kernel == "solve"} == {"size took one value in the measurements"}
    assert "bytes of pack, as stated, beyond what was measured: they grow like size^2" in model.notes(
        np.array([[64.0, 24.0]])
    )
    held = model.equation.communication
    assert held is not None
    said = held.functions.predict(np.array([[16.0, 24.0]]))
    assert said.value[held.functions.rows["pack: Isend", "bytes_sent"], 0] == pytest.approx(_true(16, 24), rel=0.01)


def test_within_the_measurements_the_learned_volume_stands(two_sizes: Experiment) -> None:
    plain, stated = fit(two_sizes), fit(two_sizes, volumes={"pack": "size^2"})
    inside, outside = {"ranks": 64, "size": 24}, {"ranks": 64, "size": 96}
    assert _bytes(stated, **inside) == _bytes(plain, **inside)
    assert _bytes(stated, **outside)[0] == pytest.approx(16 * _bytes(plain, **inside)[0])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            "pack=size^3",
            "pack sends 4 times as much at ranks = 2, size = 24 as at ranks = 2, size = 12, stated is 8 times",
        ),
        ("pakc=size^2", "no messages of 'pakc' were measured; kernels that send: "),
        ("pack=sizes^2", "is of sizes"),
        ("pack=size*ranks", "is of ranks"),
        ("pack=7", "stated is 1 times"),
        ("pack=size-24", "is -12 at ranks = 1, size = 12"),
        ("pack=size^", "expected a name or a number, found the end"),
        ("pack", "states no volume"),
    ],
)
def test_statements_that_cannot_be_are_refused_in_a_line(
    two_sizes: Experiment, given: str, expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fit", str(two_sizes.path), "--volume", given, "-o", str(tmp_path / "m.json")]) == 1
    error = capsys.readouterr().err
    assert expected in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("broken", [{"texts": 3}, {"trained": [[1.0]]}, {"texts": {"pack": "nowhere"}}])
def test_damaged_statements_are_refused(broken: dict[str, object]) -> None:
    stated = Stated.read(["pack=size^2"], ("ranks", "size"), np.array([[2.0, 12.0]]))
    assert stated.texts
    with pytest.raises(InputError):
        Stated.from_dict({**stated.to_dict(), **broken})
