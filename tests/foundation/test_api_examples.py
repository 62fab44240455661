"""The main entry points of ``import ranksight as rs``: their examples run, and type checkers know them."""

from __future__ import annotations

import ast
import doctest
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from notebook_packages import import_anywidget

import ranksight as rs
from ranksight.analysis.diagnosis.diagnosing import Diagnosis
from ranksight.model.prediction import Prediction

SHOWN = (
    rs.read,
    rs.fit,
    rs.load,
    rs.from_frame,
    rs.from_dict,
    rs.import_,
    rs.validate,
    rs.widget,
    rs.Experiment,
    rs.Experiment.create,
    rs.Experiment.plot,
    rs.Run,
    rs.Model,
    rs.to_hatchet,
    rs.to_xarray,
    rs.Model.plot,
    Prediction.plot,
    Prediction.shares,
    Diagnosis.scaling,
    Diagnosis.rankings,
    Diagnosis.efficiencies,
    rs.Experiment.add,
    rs.Experiment.counters,
    rs.Model.predict,
    rs.Model.table,
    rs.Model.diagnose,
    rs.Model.save,
    Prediction.table,
    Diagnosis.verdicts,
    Diagnosis.advice,
    Diagnosis.crossovers,
    Diagnosis.roofline,
    Diagnosis.to_dict,
    Prediction.to_dict,
    rs.Experiment.messages,
    rs.Experiment.metrics,
    rs.Experiment.read,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the experiment and the model that the examples name."""
    path = tmp_path_factory.mktemp("examples")
    experiment = rs.Experiment.create(path / "heat.exp", "heat", ["ranks", "size"])
    for ranks in (1, 2, 4, 8):
        for size in (12, 24, 48):
            cells, faces = size**3 / ranks, size**2
            table = pd.DataFrame(
                {
                    "kernel": ["solve", "exchange"],
                    "rank": -1,
                    "time": np.array([2e-6 * cells, 1e-7 * faces]),
                    "instructions": np.array([600.0 * cells, 100.0 * faces]),
                }
            )
            experiment.add(rs.Run({"ranks": ranks, "size": size}), table)
    rs.fit(experiment).save(path / "heat.model.json")
    return path


@pytest.mark.parametrize("thing", SHOWN, ids=lambda thing: thing.__qualname__)
def test_the_example_of_an_entry_point_runs(thing: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    if thing in (rs.to_hatchet, rs.to_xarray):
        pytest.importorskip(thing.__name__.removeprefix("to_"))
    if thing is rs.widget:
        import_anywidget(monkeypatch)
    found = doctest.DocTestFinder(recurse=False).find(getattr(thing, "__func__", thing), globs={"rs": rs, "pd": pd})
    assert sum(len(test.examples) for test in found) > 0
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    for test in found:
        runner.run(test, out=said.append)
    pyplot.close("all")
    assert not runner.failures, "".join(said)


def test_every_public_name_has_an_example_that_runs() -> None:
    assert {getattr(rs, name) for name in rs.__all__ if not name.startswith("_")} <= set(SHOWN)


def test_type_checkers_know_what_the_package_offers() -> None:
    """Names are loaded when they are asked for; type checkers see them in the imports of types."""
    tree = ast.parse(Path(rs.__file__).read_text())
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    typed = {name.name: node.module for node in block.body if isinstance(node, ast.ImportFrom) for name in node.names}
    assert typed == rs._LAZY
    assert sorted([*typed, "__version__"]) == sorted(rs.__all__)


def test_completion_offers_what_users_ask_a_model(folder: Path) -> None:
    model = rs.load(folder / "heat.model.json")
    assert all(getattr(rs.Model, name, None) is not None or hasattr(model, name) for name in dir(model))
    assert {"predict", "diagnose", "table", "plot", "save"} <= set(dir(model))
    assert not [name for name in dir(model) if name.startswith("_") or name in ("fitted", "equation", "forecast")]


def test_names_of_parameters_may_be_in_a_variable(folder: Path) -> None:
    model = rs.load(folder / "heat.model.json")
    along = "ranks"
    one, other = model.predict({along: 64, "size": 48}).table(), model.predict(ranks=64, size=48).table()
    pd.testing.assert_frame_equal(one, other)
