"""What grows while ranks fill one memory domain is in part the domain's doing, and does not grow on beyond it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ranksight.core.experiment import WHOLE, Experiment, Run
from ranksight.model.fit import fit
from ranksight.model.sharing import shared

NODE, CORES = "icelake-8360y", 18
RANKS = (1, 2, 3, 4, 6, 8, 9, 12, 15, 18)
WORK, CLOCK = 4e13, 2.4e9


def time(ranks: int, slower: float) -> float:
    """Seconds of a rank whose neighbours in the domain make it slower, as a shared cache does, beyond which all is
    ideal."""
    return WORK * 0.5 / CLOCK / ranks * (1 + slower * (min(ranks, CORES) - 1) / (CORES - 1))


def read(ranks: int, more: float) -> float:
    """Bytes of all ranks: as many more as they share the domain."""
    return 1e12 * (1 + more * (min(ranks, CORES) - 1) / (CORES - 1))


@pytest.fixture(scope="module")
def law(tmp_path_factory: pytest.TempPathFactory) -> shared.Sharing:
    made = Experiment.create(tmp_path_factory.mktemp("slower") / "e", "slower", ["ranks"])
    for ranks in RANKS:
        first = (np.arange(ranks) == 0).astype(float)
        table = {"kernel": WHOLE, "rank": np.arange(ranks), "time": time(ranks, 0.08), "instructions": WORK / ranks}
        table |= {"bytes_mem_read": first * read(ranks, 0.3), "bytes_mem_written": first * 2e11}
        made.add(Run({"ranks": ranks}, collector="likwid"), pd.DataFrame(table))
    found = fit(made, platform=NODE).equation.sharing
    assert found is not None
    return found


def test_growth_inside_a_domain_goes_on_in_part(law: shared.Sharing, monkeypatch: pytest.MonkeyPatch) -> None:
    points, true = np.array([[36.0], [54.0], [72.0]]), np.array([time(p, 0.08) for p in (36, 54, 72)])
    said, lower, upper = law.forecast(points, points).time.interval(0.9)
    monkeypatch.setattr(shared, "GROWTH_KEPT", 1.0)
    whole = law.forecast(points, points).time.interval(0.9)[0]
    error, all_of_it = (np.abs(value[0] / true - 1) for value in (said, whole))
    assert (error < 0.6 * all_of_it).all()
    assert ((lower[0] <= true) & (true <= upper[0])).all()
    assert (upper[0] >= whole[0]).all()


def test_bytes_grow_on_in_part(law: shared.Sharing, monkeypatch: pytest.MonkeyPatch) -> None:
    points = np.array([[18.0], [72.0]])
    said = law.forecast(points, points).reads[0] * points[:, 0]
    monkeypatch.setattr(shared, "GROWTH_KEPT", 1.0)
    whole = law.forecast(points, points).reads[0] * points[:, 0]
    assert said[0] == whole[0]
    assert np.log(said[1] / said[0]) == pytest.approx(np.log(whole[1] / whole[0]) / 2, abs=1e-9)


def test_measured_domains_are_left_alone(law: shared.Sharing, monkeypatch: pytest.MonkeyPatch) -> None:
    points = np.array([[4.0], [12.0], [18.0]])
    said = law.forecast(points, points).time.centre
    monkeypatch.setattr(shared, "GROWTH_KEPT", 0.0)
    np.testing.assert_array_equal(law.forecast(points, points).time.centre, said)
