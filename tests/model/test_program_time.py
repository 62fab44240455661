"""The program's time is the sum of its parts, and so is its doubt."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ranksight.core.experiment import Experiment, Run
from ranksight.model.application.program_time import program_time
from ranksight.model.fit import fit
from ranksight.model.fitted_model import Model
from ranksight.model.quantity import TAIL
from ranksight.model.structure.wholeunits import Share

POINTS = np.array([[32.0], [64.0]])


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    made = Experiment.create(tmp_path_factory.mktemp("sum") / "e", "two kernels", ["ranks"])
    for p in (1, 2, 4, 8, 16):
        for repetition, noise in enumerate((0.99, 1.0, 1.01)):
            rows = [
                {"kernel": "a", "rank": -1, "time": 8 / p * noise},
                {"kernel": "b", "rank": -1, "time": 0.5 * noise},
            ]
            made.add(Run({"ranks": float(p)}, repetition, "made"), pd.DataFrame(rows))
    return fit(made, platform=None)


def summed(model: Model, rho: float = 0.0, **changes: float):
    equation = replace(model.equation, **changes)
    predicted = model.functions.predict(POINTS)
    refined = equation.refine(predicted, model.functions, POINTS, Share.even(POINTS, predicted))
    return program_time(equation, refined, model.functions, POINTS, model.shares, rho)


def test_an_imbalance_is_a_part_of_its_own(model: Model) -> None:
    even, uneven = summed(model), summed(model, imbalance=1.25)
    assert uneven.total.value == pytest.approx(1.25 * even.total.value)
    assert uneven.parts["imbalance"] == pytest.approx(0.25 * even.total.value[0])
    assert uneven.by_kernel.sum(axis=0) == pytest.approx(uneven.total.value[0])
    for end in ("lower", "upper"):  # one number that is known widens nothing
        assert getattr(uneven.total, end) == pytest.approx(1.25 * getattr(even.total, end))


def test_what_all_times_of_a_run_share_does_not_average_out(model: Model) -> None:
    narrow, wide = summed(model).total, summed(model, clock_spread=0.5).total
    assert (narrow.spread < 0.5).all()
    assert np.log(wide.upper / wide.value) == pytest.approx(np.full((1, 2), 0.5 * TAIL))
    assert np.log(wide.value / wide.lower) == pytest.approx(np.full((1, 2), 0.5 * TAIL))
    assert wide.value == pytest.approx(narrow.value)
    # What runs share has nothing to do with the form: its share falls as the squares of the widths.
    assert wide.form == pytest.approx(narrow.form * ((narrow.upper - narrow.lower) / (wide.upper - wide.lower)) ** 2)


def test_correlated_noise_of_kernels_adds_up(model: Model) -> None:
    assert (summed(model, rho=1.0).total.spread > 1.001 * summed(model, rho=0.0).total.spread).all()


def test_functions_come_first_where_no_other_law_answers(model: Model) -> None:
    predicted = model.functions.predict(POINTS)
    refined = model.equation.refine(predicted, model.functions, POINTS, Share.even(POINTS, predicted))
    ((rows, others, _, first),) = refined.methods
    assert first.shape == others.shape == (2, 2)
    assert first.all()
    assert not others.any()
    assert len(rows) == 2


def test_algorithms_are_stated_to_the_network_and_to_what_is_sent_on_it(model: Model) -> None:
    network: Any = SimpleNamespace(stating=lambda algorithms: ("network", algorithms))
    sent: Any = SimpleNamespace(on=lambda stated: ("sent", stated))
    stated = replace(model.equation, network=network, communication=sent).with_algorithms({"MPI_Bcast": "chain"})
    assert stated.network == ("network", {"MPI_Bcast": "chain"})
    assert stated.communication == ("sent", stated.network)
