"""Runs on another machine: which program and machine they are of, and what they may be learned from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ranksight as rs
from ranksight.cli.main import main
from ranksight.core.errors import InputError
from ranksight.core.experiment import WHOLE, Experiment, Run
from ranksight.model.application.assumed import bandwidth
from ranksight.model.fitted_model import Model
from ranksight.model.machine.anchor import measured_there, on, with_runs
from ranksight.model.machine.mixed import check_one_machine, misnamed, runs_on
from ranksight.platforms import Platform, load
from ranksight.platforms.assumptions import spread
from ranksight.platforms.platform import Source

HERE, THERE = load("icelake-8360y"), load("sapphirerapids-8470")
RANKS = (1, 2, 3, 4, 6, 9, 12, 18, 36, 72)
WORK, HERTZ = 4e13, 2.4e9


def _seconds(ranks: int) -> float:
    return WORK / ranks / HERTZ


def _table(ranks: int, seconds: float, flops: float = WORK, work: float = WORK) -> pd.DataFrame:
    row = {"kernel": WHOLE, "time": seconds, "instructions": work / ranks, "cycles": seconds * HERTZ,
           "flops_dp": flops / ranks, "bytes_mem_read": 1e9 / ranks, "bytes_mem_written": 1e6 / ranks}  # fmt: skip
    return pd.DataFrame([{**row, "rank": rank} for rank in range(ranks)])


def _experiment(path: Path, table: Callable[[int], pd.DataFrame], ranks: tuple[int, ...] = RANKS) -> Experiment:
    found = Experiment.create(path, path.name, ["ranks"])
    for p in ranks:
        found.add(Run({"ranks": p}, 0, "test"), table(p))
    return found


def _whole(model: Model, ranks: int) -> tuple[float, float, float]:
    (answer,) = (each for each in model.predict(ranks=ranks, metrics="time").answers if each.kernel is None)
    return answer.value, answer.lower, answer.upper


@pytest.fixture(scope="module")
def computing(tmp_path_factory: pytest.TempPathFactory) -> Model:
    path = tmp_path_factory.mktemp("a") / "compute.exp"
    return rs.fit(_experiment(path, lambda p: _table(p, _seconds(p))), platform=HERE)


def _known(model: Model, experiment: Experiment, platform: Platform = THERE) -> Model:
    return with_runs(model, measured_there(model, experiment), platform)


def test_runs_of_another_program_are_refused_by_their_operations(computing: Model, tmp_path: Path) -> None:
    other = _experiment(tmp_path / "o.exp", lambda p: _table(p, _seconds(p), flops=8 * WORK), (1, 13))
    with pytest.raises(InputError, match="count 8 times the floating-point operations"):
        _known(computing, other)
    # Another compiler makes other instructions of the same operations.
    scalar = _experiment(tmp_path / "s.exp", lambda p: _table(p, _seconds(p), work=4 * WORK), (1, 13))
    (doubt,) = _known(computing, scalar).anchors[0].doubts
    assert "need 4 times the instructions" in doubt
    same = _experiment(tmp_path / "t.exp", lambda p: _table(p, _seconds(p), work=1.2 * WORK), (1, 13))
    assert _known(computing, same).anchors[0].doubts == ()


def test_times_that_no_machine_explains_are_named_and_trusted_little(computing: Model, tmp_path: Path) -> None:
    widths = []
    for factor in (1.0, 10.0):
        runs = _experiment(tmp_path / f"{factor}.exp", lambda p, f=factor: _table(p, f * _seconds(p)), (13,))
        model = _known(computing, runs)
        assert bool(model.anchors[0].doubts) == (factor > 1)
        there = on(model, THERE)
        _, lower, upper = _whole(there, 104)
        widths.append(np.log(upper / lower))
        assert lower < factor * _seconds(104) < upper
        notes = there.predict(ranks=104, metrics="time").notes
        assert any("standard deviations off" in note for note in notes) == (factor > 1)
    assert widths[1] > 4 * widths[0]


def test_two_experiments_of_one_machine_are_refused(computing: Model, tmp_path: Path) -> None:
    runs = _experiment(tmp_path / "r.exp", lambda p: _table(p, _seconds(p)), (1, 13))
    with pytest.raises(InputError, match="two experiments are named as of icelake-8360y"):
        _known(computing, runs, HERE)
    with pytest.raises(InputError, match="two experiments are named as of sapphirerapids-8470"):
        _known(_known(computing, runs), runs)


def test_what_was_measured_there_is_answered_with_the_measurement(computing: Model, tmp_path: Path) -> None:
    """A time that the law misses by less than is assumed of the machine, and by more than jobs scatter."""
    factor = {13: 1.15, 52: 0.9}
    runs = _experiment(tmp_path / "r.exp", lambda p: _table(p, factor[p] * _seconds(p)), (13, 52))
    there = on(_known(computing, runs), THERE)
    for ranks, each in factor.items():
        value, lower, upper = _whole(there, ranks)
        assert value == pytest.approx(each * _seconds(ranks), rel=0.05)
        assert lower < each * _seconds(ranks) < upper
        assert upper / lower < 1.4


def test_runs_with_more_instructions_than_expected_say_less(computing: Model, tmp_path: Path) -> None:
    """Ranks that spin for each other at 13 ranks take instructions and time, which others do not."""
    moved = []
    for more in (1.0, 1.3):
        runs = _experiment(
            tmp_path / f"{more}.exp", lambda p, m=more: _table(p, 1.3 * _seconds(p), work=m * WORK), (13,)
        )
        moved.append(_whole(on(_known(computing, runs), THERE), 104)[0])
    without = _whole(on(computing, THERE), 104)[0]
    assert abs(moved[1] - without) < 0.7 * abs(moved[0] - without)


def test_what_was_learned_is_no_assumption_any_more(computing: Model, tmp_path: Path) -> None:
    runs = _experiment(tmp_path / "r.exp", lambda p: _table(p, _seconds(p)), (13,))
    notes = [note for note in on(_known(computing, runs), THERE).predict(ranks=104).notes if "there" in note]
    assert any(note.startswith("learned: ") for note in notes)
    before = on(computing, THERE).predict(ranks=104, metrics="time").notes
    after = on(_known(computing, runs), THERE).predict(ranks=104, metrics="time").notes
    for what in ("instructions per cycle", "clock against", "the bandwidth of memory"):
        assert any(what in note for note in before)
        assert not any(what in note for note in after)


def test_an_estimated_bandwidth_is_uncertain_on_either_machine() -> None:
    key = "memory.bandwidth_domain"
    guessed = replace(HERE, name="guessed", sources={**HERE.sources, key: Source("as another", True)})
    measured = replace(HERE, name="measured")
    both = bandwidth(guessed, replace(guessed, name="too")).spread
    assert bandwidth(measured, HERE).spread == pytest.approx(spread("bandwidth_measured"))
    assert bandwidth(measured, guessed).spread == pytest.approx(spread("bandwidth_estimated"))
    assert bandwidth(guessed, measured).spread == pytest.approx(spread("bandwidth_estimated"))
    assert both == pytest.approx(np.sqrt(2 * spread("bandwidth_estimated") ** 2 - spread("bandwidth_measured") ** 2))


def _ticking(path: Path, nominal: dict[int, float], names: dict[int, str] | None = None) -> Experiment:
    """Runs whose cores run at 2 GHz, on processors of these nominal clocks."""
    found = Experiment.create(path, path.name, ["ranks"])
    for p, hertz in nominal.items():
        row = {"kernel": WHOLE, "time": 1e3 / p, "cycles": 2e12 / p, "reference_cycles": hertz * 1e3 / p,
               "frequency": 2e9}  # fmt: skip
        environment = {"CPU name": names[p]} if names else {}
        found.add(Run({"ranks": p}, 0, "test", environment=environment), pd.DataFrame([{**row, "rank": 0}]))
    return found


def test_runs_without_names_are_distinguished_by_their_nominal_clock(tmp_path: Path) -> None:
    both = _ticking(tmp_path / "both.exp", {1: 2.4e9, 18: 2.394e9, 13: 2.0e9, 26: 2.0e9})
    with pytest.raises(InputError, match=r"runs on two machines, nominal clock 2\.4 GHz and nominal clock 2 GHz"):
        check_one_machine(both)
    assert [run.configuration["ranks"] for run in runs_on(both, THERE).runs] == [13, 26]
    one = _ticking(tmp_path / "one.exp", {1: 2.4e9, 18: 2.394e9})
    check_one_machine(one)
    assert misnamed(one, HERE) == ""
    assert "were on another machine than sapphirerapids-8470 (nominal clock 2 GHz)" in misnamed(one, THERE)
    with pytest.raises(InputError, match="has no run on sapphirerapids-8470"):
        runs_on(one, THERE)


def test_runs_on_two_named_machines_are_refused_where_none_shares_a_configuration(tmp_path: Path) -> None:
    ice, rapids = "Intel(R) Xeon(R) Platinum 8360Y CPU @ 2.40GHz", "Intel(R) Xeon(R) Platinum 8470"
    both = _ticking(tmp_path / "both.exp", dict.fromkeys((1, 2, 13), 2.4e9), {1: ice, 2: ice, 13: rapids})
    with pytest.raises(InputError, match="runs on two machines"):
        check_one_machine(both)
    one = _ticking(tmp_path / "one.exp", dict.fromkeys((1, 2), 2.4e9), {1: ice, 2: ice})
    assert misnamed(one, HERE) == ""
    assert "8360Y" in misnamed(one, THERE)


def test_fit_names_runs_that_were_on_another_machine(
    tmp_path: Path, computing: Model, capsys: pytest.CaptureFixture[str]
) -> None:
    names = "Intel(R) Xeon(R) Platinum 8470"
    one = _ticking(tmp_path / "one.exp", dict.fromkeys((1, 2, 4, 8), 2.0e9), dict.fromkeys((1, 2, 4, 8), names))
    model = str(tmp_path / "m.json")
    assert main(["fit", str(one.path), "--platform", "icelake-8360y", "-o", model, "-q"]) in (0, 4)
    assert "warning: runs of" in capsys.readouterr().err
    assert main(["fit", str(one.path), "--platform", "sapphirerapids-8470", "-o", model, "-q", "-f"]) in (0, 4)
    assert "warning: runs of" not in capsys.readouterr().err
