"""Campaigns replayed: a plan makes runs, and what cannot be planned is no plan without runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.campaigns import Grid, replay_plan
from benchmarks.planning import synthetic
from ranksight.core.errors import InputError


def test_a_plan_spends_what_narrows_the_answer() -> None:
    grid = synthetic(0, 0.1)
    (standing,) = replay_plan(grid, (0.1,))
    assert grid.cost[grid.start].sum() / grid.cost.sum() < standing.spent <= 0.1


def test_a_fault_is_not_taken_for_a_plan_without_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(self: Grid, model: object) -> None:
        raise InputError("no such values")

    monkeypatch.setattr(Grid, "predicted", refuses)
    with pytest.raises(InputError, match="no such values"):
        replay_plan(replace(synthetic(0, 0.1), known={}), (0.1,))
