"""Programs whose CPI, blocking factor, levels and clock follow known laws: predicted far from the runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.analysis.diagnosis.gathering import gather
from ranksight.core.experiment import WHOLE, Experiment, Run
from ranksight.model.fit import fit
from ranksight.model.fitted_model import Model

MACHINE = "haswell-e5-2680v3"
LATENCIES = np.array([4.0, 12.0, 53.0, 91e-9 * 2.5e9])
CELLS, RANKS, ASKED = 96.0**3, (1, 2, 4, 8, 12, 24, 48), (96, 384)
VARIES = {
    "nothing": {},
    "CPI": {"cpi": -0.1},
    "blocking factor": {"blocking": 0.2},
    "clock": {"turbo": True},
    "time outside kernels": {"launch": 0.05},
    "waiting counted as instructions": {"spin": 0.1},
}


def row(ranks: float, number: int, cpi: float = 0.0, blocking: float = 0.0, turbo: bool = False, spin: float = 0.0):
    """Means over ranks of one of three kernels."""
    x = CELLS / ranks
    work = (200.0 + 150 * number) * x + 300.0 * x ** (2 / 3)
    f = 3.3e9 - 0.7e9 * (min(ranks, 24) - 1) / 23 if turbo else 2.5e9
    loads = work * np.array([0.3, 0.02, 0.004, 0.0005])
    execution = work * (0.5 + 0.1 * number) * (x / 1e5) ** cpi
    stall = 0.3 * (x / 1e5) ** blocking * float(loads @ (LATENCIES * [1, 1, 1, f / 2.5e9]))
    more = 1 + spin * np.log2(ranks) if number == 2 else 1.0
    names = ("loads_l1", "loads_l2", "loads_l3", "loads_mem")
    return {
        "kernel": f"k{number}", "rank": -1, "instructions": more * work, "cycles": execution + stall,
        "stall_cycles": stall, "flops_dp": 0.2 * work, "time": (execution + stall) / f,
        **dict(zip(names, loads.tolist(), strict=True)),
    }  # fmt: skip


def measured(path: Path, launch: float = 0.0, **varies: object) -> Model:
    made = Experiment.create(path / "e", "known", ["ranks"])
    generator = np.random.default_rng(4)
    for p in RANKS:
        for repetition in range(3):
            rows = [row(p, number, **varies) for number in range(3)]
            for each in rows:
                factor = np.exp(0.005 * generator.normal())
                each["cycles"] *= factor
                each["stall_cycles"] *= factor
                each["time"] *= factor
            whole = sum(each["time"] for each in rows) + launch + 1e-3 * p * bool(launch)
            rows.append({"kernel": WHOLE, "rank": -1, "time": whole})
            made.add(Run({"ranks": p}, repetition), pd.DataFrame(rows))
    fit(made, platform=MACHINE).save(path / "m.json")
    return Model.load(path / "m.json")


def test_a_diagnosis_takes_loads_from_the_law_that_predicts(tmp_path: Path) -> None:
    model, points = measured(tmp_path), np.array([[384.0]])
    said = model.functions.predict(points)
    times = model.equation.counted.at(points, said, model.functions.rows, points)
    evidence = gather(model, points)
    for at, kernel in enumerate(model.equation.counted.kernels):
        np.testing.assert_allclose(evidence.loads[:, evidence.kernels.index(kernel), 0], times.loads[at, 0], rtol=1e-9)


@pytest.mark.parametrize("name", VARIES)
def test_terms_that_vary_are_followed(tmp_path: Path, name: str) -> None:
    varies = dict(VARIES[name])
    launch = float(varies.pop("launch", 0.0))
    model = measured(tmp_path, launch, **varies)
    for p in ASKED:
        rows = [row(p, number, **varies) for number in range(3)]
        said = {each.kernel: each for each in model.predict(ranks=p, metrics=["time"]).answers}
        for each in rows:
            answer = said[each["kernel"]]
            assert answer.ok
            assert answer.value == pytest.approx(each["time"], rel=0.06)
            assert answer.lower <= each["time"] <= answer.upper
            assert answer.upper / answer.lower < 1.6
        whole = sum(each["time"] for each in rows) + launch + 1e-3 * p * bool(launch)
        assert said[None].value == pytest.approx(whole, rel=0.06)
        assert said[None].lower <= whole <= said[None].upper
        assert said[None].evidence.startswith("sum of 3 kernels and the time outside them: counted equation")


def test_terms_are_those_that_made_the_times(tmp_path: Path) -> None:
    terms = measured(tmp_path, cpi=-0.1, blocking=0.2).breakdown(np.array([[48.0], [192.0]])).terms
    assert terms.kernels
    at = terms.kernels.index("k1")
    for column, p in enumerate((48, 192)):
        x = CELLS / p / 1e5
        assert terms.cpi.value[at, column] == pytest.approx(0.6 * x**-0.1, rel=0.03)
        assert terms.blocking.value[at, column] == pytest.approx(0.3 * x**0.2, rel=0.1)
        assert terms.blocking.lower[at, column] <= 0.3 * x**0.2 <= terms.blocking.upper[at, column]
        assert terms.clock.value[at, column] == pytest.approx(2.5e9, rel=0.01)


def test_time_outside_kernels_is_a_series_of_its_own(tmp_path: Path) -> None:
    broken = measured(tmp_path, launch=0.05).breakdown(np.array([[96.0], [384.0]]))
    assert len(broken.others.value) == 1
    true = [0.05 + 1e-3 * p for p in (96, 384)]
    assert broken.others.value[0] == pytest.approx(true, rel=0.05)
    assert (broken.others.lower[0] <= true).all()
    assert (broken.others.upper[0] >= true).all()
    assert sum(broken.parts.values()) == pytest.approx(broken.total.value[0], rel=1e-6)
