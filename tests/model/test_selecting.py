"""A model that is read for some of its kernels predicts them as the whole model does, and holds few others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight import Experiment, Model, Run, fit

COUNT = 40


def _saved(folder: Path, metrics: tuple[str, ...]) -> Path:
    """A model of kernels that are divided, constant, noisy, zero, and that grow from 90 on."""
    experiment = Experiment.create(folder / "e", "many", ["size"])
    generator = np.random.default_rng(5)
    scale = 10 ** generator.uniform(-3, 1, COUNT)
    for size in 2.0 ** np.arange(2, 12):
        for repetition in range(2):
            time = scale * np.choose(
                np.arange(COUNT) % 5, [64 / size, 1.0, size**1.5, 0.0, 64 / size if size < 90 else size**1.5 / 512]
            )
            table = pd.DataFrame({"kernel": [f"k{at}" for at in range(COUNT)], "rank": 0})
            for name in metrics:
                table[name] = time * (1 + 0.005 * generator.standard_normal(COUNT))
            experiment.add(Run({"size": size}, repetition, "made"), table)
    fit(experiment, all_kernels=True).save(folder / "m")
    return folder / "m"


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _saved(tmp_path_factory.mktemp("few"), ("time",))


@pytest.mark.parametrize("kernels", [["k0"], ["k3"], ["k4", "k1", "k39"], ["k34", "k2"]])
def test_few_kernels_are_predicted_as_by_the_whole_model(saved: Path, kernels: list[str]) -> None:
    every, few = Model.load(saved), Model.load(saved, kernels)
    assert set(kernels) <= set(few.fitted.kernels)
    assert len(few.fitted) <= len(kernels) + 3
    for size in (4, 32, 100, 4096):
        whole, some = (model.predict(size=size, kernels=kernels).table() for model in (every, few))
        pd.testing.assert_frame_equal(some, whole, rtol=1e-6)


def test_some_kernel_of_the_whole_model_changes_its_slope(saved: Path) -> None:
    assert Model.load(saved).fitted.below
    assert Model.load(saved, ["k4"]).fitted.below


@pytest.mark.parametrize("kernels", [["k0", "unknown"], ["(whole program)"]])
def test_kernels_that_are_none_of_the_model_leave_it_whole(saved: Path, kernels: list[str]) -> None:
    assert len(Model.load(saved, kernels).fitted) == COUNT


def test_models_whose_kernels_depend_on_each_other_are_read_whole(tmp_path: Path) -> None:
    assert len(Model.load(_saved(tmp_path, ("time", "instructions")), ["k0"]).fitted) == 2 * COUNT
