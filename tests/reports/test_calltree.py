"""The call tree of the report: inclusive times, names that only look like paths, escaped and deep paths."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.core.experiment import Experiment, Run
from ranksight.core.names import call_path
from ranksight.model.fit import assemble
from ranksight.reports.html.context import Context
from ranksight.reports.html.page import render
from ranksight.reports.html.sections import calltree
from ranksight.reports.sweep import sweep

TIMES = {"main": 1.0, "main->solve": 2.0, "main->solve->halo<b>": 4.0, "main->write": 0.5, "finish": 0.25}


def test_paths_are_taken_apart() -> None:
    assert call_path("main->solve->halo") == ["main", "solve", "halo"]
    assert call_path("ptr::operator->") == ["ptr::operator->"]
    assert call_path("main->ptr::operator->()") == ["main", "ptr::operator->()"]
    assert call_path("->") == ["->"]


def test_inclusive_times_are_sums_of_what_is_called() -> None:
    roots = calltree.tree([*TIMES.items(), ("io->read", float("nan")), ("io->flush", 0.125)])
    assert [(node["part"], node["inclusive"], node["known"]) for node in roots] == [
        ("main", 7.5, True),
        ("finish", 0.25, True),
        ("io", 0.125, False),
    ]
    solve, write = roots[0]["children"]
    assert (solve["part"], solve["inclusive"], solve["exclusive"]) == ("solve", 6.0, 2.0)
    assert write["children"] == []
    assert roots[2]["kernel"] is None
    assert calltree.tree([("a", 1.0), ("b", 1.0), ("c->d", 1.0)]) == []
    deep = calltree.tree([("->".join(f"f{at}" for at in range(5000)), 1.0)])
    assert deep[0]["inclusive"] == 1.0


def test_the_page_has_the_tree(tmp_path: Path) -> None:
    experiment = Experiment.create(tmp_path / "e", "paths", ["ranks"])
    for ranks in (1, 2, 4, 8, 16):
        table = pd.DataFrame({"kernel": list(TIMES), "rank": -1, "time": np.array(list(TIMES.values())) / ranks})
        experiment.add(Run({"ranks": ranks}, 0, "synthetic"), table)
    model, _ = assemble(experiment)
    context = Context(model, sweep(model, to=32), (experiment,))
    found = calltree.build(context)
    assert found is not None
    assert found["count"] == 5
    assert found["roots"][0]["share"] == pytest.approx(7.5 / 7.75, rel=1e-6)
    page = render(context)
    assert "halo&lt;b&gt;" in page
    assert "halo<b>" not in page
    bars = {bar["node"]["part"]: bar for bar in found["bars"]}
    assert bars["main"]["width"] == pytest.approx(7.5 / 7.75, rel=1e-6)
    assert bars["solve"]["left"] == bars["halo<b>"]["left"] == 0
    assert bars["write"]["left"] == pytest.approx(6 / 7.75, rel=1e-6)
    assert [bars[part]["severity"] for part in ("halo<b>", "solve", "finish")] == [4, 4, 2]
    assert page.count("<details open") >= 2
