"""What cannot be negative is predicted as zero or more: values and both ends, wherever they are asked for."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ranksight import fit
from ranksight.cli.main import main
from ranksight.comm.patterns.grid import Cartesian
from ranksight.core.experiment import Experiment, Run
from ranksight.model.fitting.varied import fit_varied
from ranksight.model.series.reducing import Series, series_from_experiment
from ranksight.model.structure.functions import Functions, find_minor
from ranksight.model.structure.levels import fit_levels
from ranksight.model.uncertainty.forecast import NOT_POSITIVE, OK, Forecast

GRID = Cartesian(3, (False, False, False))
COUNTED = ("store_misses_l1", "loads_mem", "loads", "bytes_sent", "messages", "branches", "time", "stall_cycles")
PLACES = {
    "ranks": np.array([[p] for p in (1.0, 2.0, 4.0, 8.0, 16.0)]),
    "two sizes": np.array([[p, s] for p in (1.0, 2.0, 4.0, 8.0) for s in (16.0, 32.0)]),
    "three sizes": np.array([[p, s] for p in (2.0, 4.0, 8.0) for s in (8.0, 16.0, 32.0)]),
}


def above_zero(said: Forecast) -> None:
    for end in (said.value, said.lower, said.upper):
        assert not (end < 0).any()
    known = np.isfinite(said.value) & np.isfinite(said.lower) & np.isfinite(said.upper)
    assert (said.lower[known] <= said.value[known]).all()
    assert (said.value[known] <= said.upper[known]).all()
    assert np.isfinite(said.value[said.status == OK]).all()


@st.composite
def small_counts(draw: st.DrawFn, configurations: int) -> np.ndarray:
    """Counts (n, r) of none, one, some, falling ones, and ones of which some repetition has another number."""
    repetitions = draw(st.sampled_from([1, 3]))
    most = draw(st.sampled_from([1, 3, 40]))
    size = configurations * (repetitions if draw(st.booleans()) else 1)
    found = np.array(draw(st.lists(st.integers(0, most), min_size=size, max_size=size)), dtype=np.float64)
    found = np.broadcast_to(found.reshape(configurations, -1), (configurations, repetitions)).copy()
    return np.sort(found, axis=0)[::-1] if draw(st.booleans()) else found


@pytest.mark.parametrize("over", PLACES)
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_functions_of_small_counts(over: str, data: st.DataObject) -> None:
    points = PLACES[over]
    drawn = [data.draw(small_counts(len(points))) for _ in COUNTED]
    values = np.full((len(drawn), len(points), 3), np.nan)
    for at, one in enumerate(drawn):
        values[at, :, : one.shape[1]] = one
    names = ("ranks", "size")[: points.shape[1]]
    series = Series(names, points, values, tuple(f"k{at // 2}" for at in range(len(drawn))), COUNTED)
    functions = Functions(fit_varied(series), fit_levels(series), minor=find_minor(series))
    out = [data.draw(st.floats(-4, 10)) for _ in range(2 * 8)]
    asked = np.concatenate([points, points * 64, 2.0 ** np.array(out).reshape(8, 2)[:, : points.shape[1]]])
    above_zero(functions.predict(asked))
    above_zero(functions.fitted.predict(asked))


def test_energy_that_begins_is_not_below_zero_before() -> None:
    joules = np.array([[[0.0], [25.1], [27.6]], [[0.0], [0.0], [3e7]]])
    series = Series(("nodes",), np.array([[1.0], [32.0], [64.0]]), joules, ("k", "k"), ("energy_node", "energy"))
    above_zero(fit_varied(series).predict(np.array([[0.5], [1.0], [2.0], [64.0], [512.0]])))


Misses = Callable[[np.ndarray, float], np.ndarray]


def halo(path: Path, misses: Misses, sizes: tuple[int, ...] = (12, 24, 48)) -> Experiment:
    """A halo exchange whose packing follows the neighbours, and whose stores nearly never miss."""
    experiment = Experiment.create(path, "halo", ["ranks", "size"])
    for p in (2, 4, 8, 12):
        neighbours = GRID.neighbours(p)
        pairs = sorted(GRID.pairs(p))
        for n in sizes:
            i = neighbours @ np.array([7.0, 8.0, 9.0]) * n**2
            missed = np.maximum(misses(neighbours, n), 0.0)
            table = pd.DataFrame({"kernel": "pack", "rank": np.arange(p), "instructions": i, "stores": 0.2 * i})
            table = table.assign(loads=0.3 * i, loads_mem=missed, store_misses_l1=missed)
            run = {"ranks": p, "size": n}
            experiment.add(Run(run, collector="callgrind", provenance={"instructions": "simulated"}), table)
            peers = pd.DataFrame({"rank": [a for a, _ in pairs], "peer": [b for _, b in pairs]})
            peers = peers.assign(operation="Isend", count=10, bytes=1)
            experiment.add(Run(run, collector="pmpi"), tables={"peers": peers})
    return experiment


def asked(sizes: tuple[int, ...]) -> dict[str, list[float]]:
    return {"ranks": [1, 2, 3, 4, 8, 64, 512], "size": [6, 12, 24, 48, 96] if len(sizes) > 1 else list(sizes)}


LAWS: dict[str, Misses] = {
    "fewer": lambda neighbours, n: 3.0 * neighbours.sum(axis=1) - 3 + 0 * n,
    "growing": lambda neighbours, n: np.floor(neighbours.sum(axis=1) * n / 16) - 2,
    "falling": lambda neighbours, n: np.floor(neighbours.sum(axis=1) * 48 / n) - 1,
}


@pytest.mark.parametrize("sizes", [(12, 24, 48), (12, 24), (24,)])
@pytest.mark.parametrize("law", LAWS)
def test_counts_of_a_halo_exchange_that_are_nearly_empty(tmp_path: Path, law: str, sizes: tuple[int, ...]) -> None:
    model = fit(halo(tmp_path / "e", LAWS[law], sizes))
    assert model.functions.neighbours
    assert ("pack", "store_misses_l1") in zip(
        model.functions.neighbours.kernels, model.functions.neighbours.metrics, strict=True
    )
    points = model.combinations(asked(sizes))
    above_zero(model.forecast(points))
    # The law itself claims nothing where a rank would miss less than never, and holds elsewhere.
    said = model.functions.neighbours.predict(points)
    alone = (points[:, 0] == 1) & np.isin(points[:, 1], sizes)
    mine = [name == "store_misses_l1" for name in model.functions.neighbours.metrics].index(True)
    assert (said.status[mine, alone] == NOT_POSITIVE).all()
    measured = (points[:, 0] == 8) & np.isin(points[:, 1], sizes)
    true = np.array([LAWS[law](GRID.neighbours(8), n).mean() for n in points[measured, 1]])
    more = true > 0
    assert (said.status[mine, measured][more] == OK).all()
    assert said.value[mine, measured][more] == pytest.approx(true[more], rel=0.2)


def test_no_answer_that_is_printed_is_below_zero(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "m.json"
    fit(halo(tmp_path / "e", LAWS["fewer"])).save(file)
    where = ["predict", str(file), "--ranks", "1,2,64", "--size", "12,96"]
    main([*where, "--format", "json"])
    for said in json.loads(capsys.readouterr().out)["predictions"]:
        assert all(end is None or end >= 0 for end in (said["value"], *(said["interval"] or ())))
    main([*where, "--format", "csv"])
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert rows
    assert all(float(row[name] or 0) >= 0 for row in rows for name in ("value", "lower", "upper"))
    main([*where, "--metric", "store_misses_l1"])
    assert not re.search(r"(?<![\w-])-\d", capsys.readouterr().out)


def test_differences_below_zero_are_none(tmp_path: Path) -> None:
    experiment = Experiment.create(tmp_path / "e", "made up", ["ranks"])
    for p, count in ((1, 40.0), (2, 12.0), (4, -2.0), (8, -1.0)):
        table = pd.DataFrame({"kernel": ["k"], "rank": [0], "loads_l3": [count], "balance": [count]})
        experiment.add(Run({"ranks": p}), table)
    series = series_from_experiment(experiment)
    rows = dict(zip(series.metrics, series.values[:, :, 0].tolist(), strict=True))
    assert rows["loads_l3"] == [40.0, 12.0, 0.0, 0.0]
    # What only its source knows may have a sign.
    assert rows["balance"] == [40.0, 12.0, -2.0, -1.0]
    said = fit(experiment).predict(ranks=[1, 4, 8, 64, 1024], metrics=["loads_l3"], kernels=["k"]).answers
    assert all(not end < 0 for answer in said for end in (answer.value, answer.lower, answer.upper))
