"""Functions of work per rank on few and crossed runs: with them as hypotheses, and without.

The truth is known: powers, volume and surface of a share x = size^d / ranks with and without a constant, and as a check
what does not follow the share. Designs are those that people measure where a full grid is too dear.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.settings import Settings
from benchmarks.table import markdown
from benchmarks.tasks import Array
from ranksight.model.fitting.fit_series import fit_series
from ranksight.model.search import crosswise
from ranksight.model.series.reducing import Series
from ranksight.model.uncertainty.forecast import OK

TITLE = "Work per rank"
SEED, FUNCTIONS, NOISE, REPETITIONS = 5, 48, 0.02, 3
RANKS = (1, 2, 4, 8, 16)
DESIGNS: dict[str, tuple[tuple[float, float], ...]] = {
    "full grid, 25 runs": tuple((p, n) for p in RANKS for n in (16, 24, 32, 48, 64)),
    "strong and weak, 9 runs": (
        *((p, 32) for p in RANKS),
        *((p, float(round(32 * p ** (1 / 3)))) for p in RANKS[1:]),
    ),
    "two sizes, 10 runs": tuple((p, n) for p in RANKS for n in (32, 64)),
    "scattered, 6 runs": ((1, 16), (2, 48), (4, 24), (8, 64), (16, 32), (4, 48)),
}
ASKED = np.array([(64, 64), (64, 128), (128, 32), (128, 96)], dtype=np.float64)
Truth = Callable[[Array], Array]


def run(settings: Settings) -> str:
    """A table of median and 90th percentile of the errors at 4 to 8 times the ranks."""
    count = FUNCTIONS // 4 if settings.quick else FUNCTIONS
    rows: list[list[object]] = []
    offered = crosswise.screen_composites
    for metric, noise in (("instructions", 0.0), ("time", NOISE)):
        for design, points in DESIGNS.items():
            row: list[object] = [f"{metric}, {design}"]
            for follows in (True, False):
                for screen in (offered, _none):
                    crosswise.screen_composites = screen
                    try:
                        row += _judged(np.array(points, dtype=np.float64), metric, noise, count, follows)
                    finally:
                        crosswise.screen_composites = offered
            rows.append(row)
    kinds = ("share", "share, without", "other", "other, without")
    header = ["metric and runs", *(f"{kind}: {what}" for kind in kinds for what in ("error %", "covered %"))]
    return (
        f"{count} functions of each kind, 2 % noise on times; medians (90th percentiles) of the errors at 64 and 128 "
        "ranks from 16. *Share*: functions of work per rank; *other*: of the size, or of the ranks' root; *without*: "
        "these forms not offered as functions of one argument. Coverage is of the answers that are predicted.\n\n"
        + markdown(header, rows)
    )


def _none(*_: object) -> Iterator[crosswise.Screened]:
    return iter(())


def _judged(points: Array, metric: str, noise: float, count: int, follows: bool) -> list[object]:
    rng = np.random.default_rng(SEED)
    truths = [_truth(rng, follows) for _ in range(count)]
    exact = np.array([truth(points) for truth in truths])[:, :, None]
    values = exact * np.exp(noise * rng.normal(size=(count, len(points), REPETITIONS if noise else 1)))
    names = tuple(f"k{i}" for i in range(count))
    said = fit_series(Series(("ranks", "size"), points, values, names, (metric,) * count)).predict(ASKED)
    true = np.array([truth(ASKED) for truth in truths])
    error = 100 * np.abs(np.nan_to_num(said.value / true, nan=11.0) - 1)
    predicted = said.status == OK
    inside = (said.lower <= true * (1 + 1e-6)) & (said.upper >= true * (1 - 1e-6))
    covered = float(100 * inside[predicted].mean()) if predicted.any() else float("nan")
    return [f"{np.median(error):.1f} ({np.quantile(error, 0.9):.0f})", covered]


def _truth(rng: np.random.Generator, follows: bool) -> Truth:
    d, scale = int(rng.choice([2, 3])), float(np.exp(rng.uniform(0, 9)))
    constant, surface = (scale * float(np.exp(rng.uniform(-1, high))) for high in (4, 2))
    power, kind = float(rng.choice([1 / 2, 2 / 3, 1, 4 / 3])), int(rng.integers(4 if follows else 2))

    def value(points: Array) -> Array:
        ranks, size = points.T
        x = size**d / ranks
        forms = (
            (scale * x**power, constant + scale * x, scale * x + surface * x ** (1 - 1 / d),
             constant + scale * x + surface * x ** (1 - 1 / d))
            if follows
            else (scale * size**d, scale * size ** (d - 1) / np.sqrt(ranks))
        )  # fmt: skip
        return np.asarray(forms[kind])

    return value
