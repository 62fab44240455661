"""How a ratio of machines changes with the scale, from pairs of published curves.

For a program's curves on machines A and B and node counts k and n that both were measured at, with d the part of A's
time that is divided work, and z such that the ratio at k is that of the law,

    ln T_B(n) / T_A(n) = ln [d e^z + (1 - d) e^(u z)] + e,    e ~ Student(5) (0, s |ln n/k|)

u (``UNDIVIDED`` of ``model/priors.py``) and s (``spread.scale`` of ``platforms/assumptions.toml``) are those
of greatest likelihood, each pair of curves counted once. For each program they are judged by those of the others.
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
from ranksight.model.application.moved import of_parts
from ranksight.model.priors import UNDIVIDED
from ranksight.platforms.assumptions import spread

TITLE = "Ratios of machines along the scale"
FREEDOM = 5.0
TAIL = 1.645
"""Standard deviations of the ends of a 90 % interval."""

POWERS = np.linspace(0.0, 1.0, 11)
"""Powers u that are tried."""
RATIOS = np.linspace(-4.0, 4.0, 2001)
"""Logarithms z of the ratio of divided work."""

Curve = dict[float, float]
Pairs = list[tuple[Curve, Curve]]


def run(settings: Settings) -> str:
    """What each program, and what the others, say of both, and the share of changes within the spread."""
    source = settings.data / "scaling" / "archer"
    if not source.is_dir():
        raise Skipped(f"the measurements are not at {source}")
    programs: dict[str, Pairs] = defaultdict(list)
    known = curves(source)
    for a, b in itertools.permutations(known, 2):
        if a[0] == b[0] and a[1] != b[1] and len(set(known[a]) & set(known[b])) >= 2:
            programs[a[0].split()[0]].append((known[a], known[b]))
    best = {name: _best(pairs) for name, pairs in programs.items()}
    rows: list[list[object]] = []
    for name, pairs in programs.items():
        power, value = _best([pair for other, theirs in programs.items() if other != name for pair in theirs])
        inside = np.mean([np.mean(np.abs(gap) <= TAIL * value * far) for gap, far in _changes(pairs, power)])
        rows.append([name, len(pairs), best[name][0], power, best[name][1], value, 100 * inside])
    power, value = _best([pair for pairs in programs.values() for pair in pairs])
    heads = ["program", "pairs of curves", "power, its own", "of the others"]
    heads += ["spread, its own", "of the others", "inside 90 % of that, %"]
    return (
        "Published strong scaling under labels of machines and builds: the power of a ratio of machines with which "
        "what is not divided work changes, and the standard deviation, for each e-fold of nodes, by which the ratio "
        f"departs from that. All programs together: {power:.1f} and {value:.2f}; the model has {UNDIVIDED:g} and "
        f"{spread('scale'):g}.\n\n" + markdown(heads, rows)
    )


def _changes(pairs: Pairs, power: float) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """For each pair, by what the law misses the ratio at all node counts from that at all others, and the distances."""
    changes = []
    for curve, other in pairs:
        nodes = np.array(sorted(set(curve) & set(other)))
        first = min(curve)
        logs = np.log([other[n] / curve[n] for n in nodes])
        divided = np.minimum([curve[first] * first / (n * curve[n]) for n in nodes], 1.0)
        z = np.repeat(RATIOS[:, None], len(nodes), axis=1)
        table = of_parts(z, np.zeros(z.shape), np.broadcast_to(divided, z.shape), power)[0]
        solved = np.array([np.interp(logs[k], table[:, k], RATIOS) for k in range(len(nodes))])
        k, n = np.nonzero(~np.eye(len(nodes), dtype=bool))
        predicted = of_parts(solved[k], np.zeros(len(k)), divided[n], power)[0]
        changes.append((logs[n] - predicted, np.abs(np.log(nodes[n] / nodes[k]))))
    return changes


def _best(pairs: Pairs) -> tuple[float, float]:
    """Power and spread of greatest likelihood."""
    each = [(power, *_scale(_changes(pairs, power))) for power in POWERS.tolist()]
    power, value, _ = min(each, key=lambda row: row[2])
    return power, value


def _scale(changes: list[tuple[NDArray[np.float64], NDArray[np.float64]]]) -> tuple[float, float]:
    """The spread of greatest likelihood, and the logarithm of that, negative."""

    def loss(logarithm: float) -> float:
        scale = np.exp(logarithm) * np.sqrt((FREEDOM - 2) / FREEDOM)
        return -sum(float(stats.t.logpdf(gap, FREEDOM, 0, scale * far).mean()) for gap, far in changes)

    best = optimize.minimize_scalar(loss, bounds=(-5.0, 1.0), method="bounded")
    return float(np.exp(best.x)), float(best.fun)
