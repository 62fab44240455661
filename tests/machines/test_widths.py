"""Cycles on a core of another issue width: closed forms, and a model that is moved to it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ranksight as rs
from ranksight.core.errors import InputError
from ranksight.core.experiment import Experiment, Run
from ranksight.model.application.assumed import cycles_there
from ranksight.model.machine.anchor import on
from ranksight.platforms import Clock, Platform, load
from ranksight.platforms.assumptions import spread
from ranksight.platforms.cores import Factor, instructions_per_cycle, issue_width
from ranksight.platforms.files import parse
from ranksight.platforms.writing import dumps
from ranksight.reports.platforms import compared

HERTZ = 2e9
HERE, THERE = 6, 3


def _core(name: str, width: int | None) -> Platform:
    """A machine whose core is in no table."""
    base = load("icelake-8360y")
    clock = Clock(base=HERTZ, measured=HERTZ)
    layout = replace(base.layout, issue_width=width)
    return replace(base, name=name, architecture=f"made-up {name}", clock=clock, layout=layout)


def _moved(cpi: float, factor: Factor) -> float:
    return float(np.exp(cycles_there(np.array([cpi]), factor)[0][0]))


def test_the_slots_of_instructions_change_and_the_rest_stays() -> None:
    by_width = Factor(1.0, 1.0, "", (HERE, THERE), published=False)
    assert _moved(1 / HERE, by_width) == pytest.approx(HERE / THERE)  # all cycles issue as much as they can
    assert _moved(1.0, by_width) == pytest.approx(1 - 1 / HERE + 1 / THERE)
    assert _moved(0.1, by_width) == pytest.approx(HERE / THERE)  # fused instructions share a slot
    assert cycles_there(np.ones(1), by_width)[1] == pytest.approx(spread("width"))


def test_a_published_factor_ends_at_the_width() -> None:
    published = Factor(2.0, 0.12, "", (5, 6))
    assert _moved(1.0, published) == pytest.approx(1 / 2)
    assert _moved(1 / 5, published) == pytest.approx(5 / 6)
    unknown = cycles_there(np.array([np.nan]), published)
    assert np.exp(unknown[0]) == pytest.approx(1 / 2)
    assert unknown[1] == pytest.approx(0.12)


def test_widths_come_from_the_file_or_from_the_table() -> None:
    assert issue_width(load("icelake-8360y")) == 5
    assert issue_width(load("sapphirerapids-8470")) == 6
    assert issue_width(_core("a", 3)) == 3
    assert issue_width(_core("a", None)) is None
    assert parse(dumps(_core("a", 3)).encode(), "a.toml").layout.issue_width == 3
    wrong = dumps(_core("a", 3)).replace("issue_width = { value = 3", "issue_width = { value = 0")
    with pytest.raises(InputError, match="topology.issue_width"):
        parse(wrong.encode(), "a.toml")
    assert compared(_core("a", HERE), _core("b", THERE))["issue width"] == pytest.approx(THERE / HERE)


def test_without_any_width_nothing_is_known_of_an_unnamed_core() -> None:
    assert instructions_per_cycle(_core("a", None), _core("b", 3)).value == 1.0
    some = instructions_per_cycle(_core("a", HERE), _core("b", THERE))
    assert some.value == pytest.approx(np.sqrt(THERE / HERE))
    assert "issue width 3 against 6" in some.source


@pytest.mark.parametrize("stalls", [True, False])
def test_each_kernel_is_moved_by_its_own_cycles(tmp_path: Path, stalls: bool) -> None:
    """Kernels that issue all they can, and that wait for operands; with counted stalls, or loads alone."""
    cpi, work = {"full": 1 / HERE, "chain": 2.0}, 1e10
    runs = Experiment.create(tmp_path / "a.exp", "a", ["ranks"])
    for ranks in (1, 2, 4, 8, 16):
        rows = [
            {
                "kernel": kernel,
                "rank": rank,
                "instructions": work / ranks,
                "cycles": work / ranks * each,
                "time": work / ranks * each / HERTZ,
                **({"stall_cycles": 1e-4 * work / ranks} if stalls else {}),
                "loads_l1": 1.0 / ranks * 1e3,
                "loads_l2": 0.0,
                "loads_l3": 0.0,
                "loads_mem": 0.0,
            }
            for kernel, each in cpi.items()
            for rank in range(ranks)
        ]
        runs.add(Run({"ranks": ranks}, 0, "test"), pd.DataFrame(rows))
    moved = on(rs.fit(runs, platform=_core("a", HERE)), _core("b", THERE))
    for answer in moved.predict(ranks=16, metrics="time").answers:
        if answer.kernel is not None:
            here = cpi[answer.kernel]
            there = here - 1 / HERE + 1 / THERE
            # Between instruction sets that are not known, the number of instructions is taken as it is.
            assert answer.value == pytest.approx(work / 16 * there / HERTZ, rel=0.03)
            assert answer.lower < work / 16 * there / HERTZ < answer.upper


def test_another_number_of_threads_a_core_is_named(tmp_path: Path) -> None:
    runs = Experiment.create(tmp_path / "a.exp", "a", ["ranks"])
    for ranks in (1, 2, 4, 8):
        runs.add(Run({"ranks": ranks}, 0, "test"), pd.DataFrame({"kernel": ["k"], "rank": [0], "time": [8.0 / ranks]}))
    model, there = rs.fit(runs, platform=_core("a", HERE)), _core("b", THERE)
    quads = replace(there, layout=replace(there.layout, threads_per_core=4))
    named = "rank a core (4 hardware threads a core there, 2 on a)"
    assert any(named in note for note in on(model, quads).predict(ranks=4).notes)
    assert not any("rank a core" in note for note in on(model, there).predict(ranks=4).notes)
