"""Counts of runs on another machine against those that the functions of a model give there.

What an algorithm does (operations, visits of kernels) follows from the program and its size on every machine; what a
compiler makes of it (instructions, loads, stores, branches) nearly so. Runs with other operations are of another
program or size. Instructions of single configurations that exceed the functions' show ranks that wait for each other,
or work that is done there alone: the times of such runs say less of other configurations.
"""

from __future__ import annotations

import numpy as np

from ranksight.core.arrays import Array
from ranksight.core.errors import InputError
from ranksight.core.metrics import metric
from ranksight.model.application.runs import Runs
from ranksight.model.fitted_model import Model
from ranksight.model.laws.view import medians
from ranksight.model.series.reducing import Series
from ranksight.platforms import Platform
from ranksight.platforms.assumptions import spread

COMPILED = frozenset({"instructions", "loads", "stores", "branches"})
"""Counts that a compiler decides as well as the program."""
FAR = 4.0
"""Standard deviations from which on a difference has another cause than the machine."""


def doubts_of_counts(model: Model, series: Series, runs: Runs, platform: Platform) -> tuple[str, ...]:
    """Sentences on counts that a compiler makes, and that differ from the model's by more than machines do.

    Raises InputError where counts of the algorithm do.
    """
    doubts = []
    for name in sorted({name for _, name in series.keys}):
        about = metric(name)
        if about.kind != "requirement" or not about.steady or not about.additive:
            continue
        gap, off = _gaps(model, series, runs, name)
        if not abs(gap) > FAR * off:
            continue
        if name not in COMPILED:
            raise InputError(
                f"the runs on {platform.name} count {np.exp(gap):.3g} times the {about.text} of the model's program",
                "give runs of the same program, of the same size",
            )
        doubts.append(
            f"the runs on {platform.name} need {np.exp(gap):.3g} times the {about.text} of the model's program: "
            "another compiler, or another program or size"
        )
    return tuple(doubts)


def excess(model: Model, series: Series, runs: Runs, *, same_set: bool) -> Array:
    """Logarithm (K, n) of the instructions of `runs` over those of the model's functions, 0 where they are not known;
    empty where none were counted.

    What all configurations have in common is no excess where the machines may not have one instruction set
    (`same_set`).
    """
    ratios = _ratios(model, series, runs, "instructions")[0]
    known = np.isfinite(ratios)
    if not known.any():
        return np.zeros((0, 0))
    count = np.maximum(known.sum(axis=1, keepdims=True), 1)
    common = 0.0 if same_set else np.where(known, ratios, 0.0).sum(axis=1, keepdims=True) / count
    return np.asarray(np.where(known, ratios - common, 0.0))


def _gaps(model: Model, series: Series, runs: Runs, name: str) -> tuple[float, float]:
    """Median logarithm of counts over the functions', and how far both may be off; NaN where none was counted."""
    ratios, deviation = _ratios(model, series, runs, name)
    known = np.isfinite(ratios)
    if not known.any():
        return float("nan"), float("nan")
    return float(np.median(ratios[known])), float(np.hypot(spread("sets"), np.median(deviation[known])))


def _ratios(model: Model, series: Series, runs: Runs, name: str) -> tuple[Array, Array]:
    """Logarithms (K, n) of counts of the kernels of `runs` over those of the functions, and standard deviations."""
    rows = [model.functions.rows.get((kernel, name), -1) for kernel in runs.kernels]
    predicted = model.functions.predict(runs.points).quantity(np.array(rows, dtype=np.intp))
    counts = medians(series, name, runs.kernels)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = np.log(counts) - predicted.centre
    return np.where(np.isfinite(ratios), ratios, np.nan), predicted.deviation
