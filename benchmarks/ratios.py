"""The spread of a ratio of machines with the scale, ``spread.scale`` of ``platforms/assumptions.toml``, from pairs.

For a program's curves on machines A and B and node counts k and n that both were measured at,

    g = ln [T_B(n) T_A(k) / (T_A(n) T_B(k))] ~ Student(5) (0, s |ln n/k|)

with s of greatest likelihood, each pair of curves counted once. For each program s is that of the others.
"""

from __future__ import annotations

import itertools
from collections import defaultdict

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, stats

from benchmarks.machine import curves
from benchmarks.settings import Settings, Skipped
from benchmarks.table import markdown
from ranksight.platforms.assumptions import spread

TITLE = "Ratios of machines along the scale"
FREEDOM = 5.0
TAIL = 1.645
"""Standard deviations of the ends of a 90 % interval."""

Pairs = list[tuple[NDArray[np.float64], NDArray[np.float64]]]


def run(settings: Settings) -> str:
    """What each program, and what the others, say of the spread, and the share of changes within it."""
    source = settings.data / "scaling" / "archer"
    if not source.is_dir():
        raise Skipped(f"the measurements are not at {source}")
    programs: dict[str, Pairs] = defaultdict(list)
    known = curves(source)
    for a, b in itertools.combinations(known, 2):
        both = sorted(set(known[a]) & set(known[b]))
        if a[0] == b[0] and a[1] != b[1] and len(both) >= 2:
            programs[a[0].split()[0]].append(_changes(known[a], known[b], both))
    rows: list[list[object]] = []
    for name, pairs in programs.items():
        others = [pair for other, theirs in programs.items() if other != name for pair in theirs]
        value = _scale(others)
        inside = np.mean([np.mean(np.abs(gap) <= TAIL * value * far) for gap, far in pairs])
        rows.append([name, len(pairs), _scale(pairs), value, 100 * inside])
    every = _scale([pair for pairs in programs.values() for pair in pairs])
    heads = ["program", "pairs of curves", "its own", "of the others", "inside 90 % of that, %"]
    return (
        "Published strong scaling under labels of machines and builds: the standard deviation, for each e-fold of "
        f"nodes, by which the logarithm of a ratio of machines changes. All programs together: {every:.2f}; the table "
        f"of assumptions has {spread('scale'):g}.\n\n" + markdown(heads, rows)
    )


def _changes(
    one: dict[float, float], other: dict[float, float], both: list[float]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Changes of the logarithm of the ratio between all node counts, and their distances."""
    ratio = np.array([np.log(other[n] / one[n]) for n in both])
    first, second = np.triu_indices(len(both), 1)
    return ratio[second] - ratio[first], np.log(np.array(both)[second] / np.array(both)[first])


def _scale(pairs: Pairs) -> float:
    """The spread of greatest likelihood."""

    def loss(logarithm: float) -> float:
        scale = np.exp(logarithm) * np.sqrt((FREEDOM - 2) / FREEDOM)
        return -sum(float(stats.t.logpdf(gap, FREEDOM, 0, scale * far).mean()) for gap, far in pairs)

    return float(np.exp(optimize.minimize_scalar(loss, bounds=(-5.0, 1.0), method="bounded").x))
