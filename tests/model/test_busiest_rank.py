"""Values stated as maxima over ranks are of the busiest one: whom it meets, and the whole units that it has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

import ranksight as rs
from ranksight.cli.main import main
from ranksight.core.dims import dims_create


def _met(ranks: int, dimensions: int) -> int:
    """Neighbours of a rank inside of a grid whose sides end."""
    return sum(min(side - 1, 2) for side in dims_create(ranks, dimensions))


def _model(folder: Path, metric: str, ranks: Sequence[int], law: Callable[[int], float], *stated: str) -> rs.Model:
    table, experiment, model = (str(folder / name) for name in ("t.csv", "e", "m"))
    Path(table).write_text("\n".join([f"ranks,{metric}", *(f"{p},{law(p):.15g}" for p in ranks)]) + "\n")
    asked = ["--parameter", "ranks", "--metric", metric, "--values", "max", "-q"]
    assert main(["import", "csv", table, *asked, "-o", experiment]) == 0
    assert main(["fit", experiment, *stated, "-o", model]) in (0, 4)
    return rs.load(model)


@pytest.mark.parametrize(
    ("metric", "ranks", "dimensions", "times"),
    [("peers", (2, 4, 6, 9, 12, 16), 2, 1), ("messages", (1, 2, 4, 8, 12, 16, 24, 36), 3, 50)],
)
def test_neighbours_on_a_grid_are_a_rival_of_doublings(
    tmp_path: Path, metric: str, ranks: Sequence[int], dimensions: int, times: int
) -> None:
    """Both meet all runs; the rounded-up logarithm alone was sure, and 50 % off at 512 ranks."""
    model = _model(tmp_path, metric, ranks, lambda p: times * _met(p, dimensions))
    asked = [25, 64, 512]
    table = model.predict(ranks=asked).table()
    true = np.array([times * _met(p, dimensions) for p in asked])
    assert ((table["lower"] <= true) & (true <= table["upper"])).all()
    assert (table["upper"][table["ranks"] == 25] < 2 * true[0]).all()


def test_the_busiest_rank_has_whole_units(tmp_path: Path) -> None:
    """At 32 ranks the mean was given, with a note that the busiest rank has a third more."""

    def law(ranks: int) -> float:
        return 5e5 * -(-48 // ranks) + 1200

    model = _model(tmp_path, "instructions", (4, 6, 8, 12, 16, 24), law, "--units", "blocks=48")
    table = model.predict(ranks=[32, 48]).table()
    np.testing.assert_allclose(table["value"], [law(32), law(48)], rtol=1e-3)


def test_resident_memory_is_as_exact_as_a_sum_of_three(tmp_path: Path) -> None:
    rows = [(p, n, 62e6 + 320 * n**2 + 40 * n**3 / p) for p in (1, 2, 4, 8, 16) for n in (64, 96, 128)]
    ranks, size, memory = (list(column) for column in zip(*rows, strict=True))
    experiment = rs.from_dict(
        {"ranks": ranks, "size": size, "memory_peak": memory}, ["ranks", "size"], metrics=["memory_peak"]
    )
    table = rs.fit(experiment).predict(ranks=64, size=256, metrics="memory_peak").table()
    assert table["value"][0] == pytest.approx(62e6 + 320 * 256**2 + 40 * 256**3 / 64, rel=0.01)
