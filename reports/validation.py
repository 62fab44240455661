"""A model's prediction held against runs: predicted and measured, with the error, for everything both have."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from ranksight.core.errors import InputError
from ranksight.core.experiment import WHOLE, Experiment
from ranksight.core.metrics import metric
from ranksight.model.application.breakdown import Breakdown
from ranksight.model.fitted_model import Model
from ranksight.model.resource.equation import LEVELS
from ranksight.model.resource.sampled_times import settle
from ranksight.model.series.reducing import Series, series_from_experiment
from ranksight.model.series.reduction import reduce
from ranksight.model.series.sampling import means_of_samples
from ranksight.model.structure.levels import COUNTS
from ranksight.model.uncertainty.forecast import OK

SMALL = 1e-3
"""Kernels with less than this share of a metric's total are left out of summaries: they are a few calls of start-up."""
COMPUTE = "compute_cpu_time"


@dataclass(frozen=True)
class Validation:
    """Predictions and measurements side by side.

    `table`: one row a configuration, kernel and metric: the parameters, ``kernel``, ``metric``, ``predicted``,
    ``lower``, ``upper``, ``measured``, ``error`` (relative), ``inside`` (the interval holds), ``share`` of the kernel
    in the measured total, ``status`` and ``reason`` (why data are insufficient; empty otherwise).
    """

    table: pd.DataFrame

    def requirements(self) -> pd.DataFrame:
        """The rows that loops count, of the program's own kernels and of its messages."""
        rows = self.table
        own = ~rows["kernel"].str.endswith("]") & (rows["kernel"] != WHOLE)
        return rows[own & rows["metric"].isin(COUNTS - set(LEVELS)) & (rows["share"] >= SMALL)]

    def cache_levels(self) -> pd.DataFrame:
        """The rows of the loads that each level serves, of the program's own kernels."""
        rows = self.table
        own = ~rows["kernel"].str.endswith("]")
        return rows[own & rows["metric"].isin(LEVELS) & (rows["share"] >= SMALL)]

    def compute(self) -> pd.DataFrame:
        """The rows of the time that a rank computes, the sum over kernels against the tracer's clock."""
        return self.table[(self.table["kernel"] == WHOLE) & (self.table["metric"] == COMPUTE)]


def validate(model: Model, experiment: Experiment, level: float = 0.9) -> Validation:
    """Hold `model` against the runs of `experiment`, reduced over ranks and repetitions as the model's were.

    Raises InputError when the experiment has other parameters than the model, or no runs.

    Parameters
    ----------
    model : Model
    experiment : Experiment
        Of the same program; its runs need not be those that the model was fitted to.
    level : float
        Probability of the intervals.

    Examples
    --------
    >>> found = rs.validate(rs.load("heat.model.json"), rs.read("heat.exp"))
    >>> bool(found.table["inside"].mean() > 0.5)
    True
    """

    experiment = model.view(experiment)
    if experiment.parameters != model.parameters:
        raise InputError(
            f"{experiment.path} varies {', '.join(experiment.parameters)}, the model {', '.join(model.parameters)}",
            "measure both with the same command",
        )
    series = series_from_experiment(experiment, None, means_of_samples(experiment, None))
    series = settle(experiment, series).series
    measured = reduce(series.values, "median", axis=2)
    said, breakdown = model.ask(series.points, level)
    place = model.functions.rows
    keys = series.keys
    every = np.array([at for name in dict.fromkeys(series.metrics) for at, key in enumerate(keys) if key[1] == name])
    mine = np.array([at for at in every if keys[at] in place], dtype=np.intp)
    rows = np.array([place[keys[at]] for at in mine], dtype=np.intp)
    value, lower, upper = (getattr(said, which)[rows] for which in ("value", "lower", "upper"))
    known, reason = said.status[rows] == OK, said.reason[rows].astype(object)
    if model.equation.resources is not None:
        for at in np.flatnonzero([keys[i] == (WHOLE, COMPUTE) for i in mine]):
            value[at], lower[at], upper[at], known[at], reason[at] = _computed(breakdown)
    found = measured[mine]
    tiny = 1e-9 * np.abs(found)
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.where(found != 0, value / found - 1, np.where(value == 0, 0.0, np.inf))
    count = len(series.points)
    columns = {
        "kernel": np.repeat([keys[at][0] for at in mine], count),
        "metric": np.repeat([keys[at][1] for at in mine], count),
        "predicted": value,
        "lower": lower,
        "upper": upper,
        "measured": found,
        "error": error,
        "inside": (lower - tiny <= found) & (found <= upper + tiny),
        "share": _shares(series, measured)[mine],
        "status": np.where(known, "ok", "insufficient"),
        "reason": np.where(known, "", reason),
    }
    places = {name: np.tile(series.points[:, at], len(mine)) for at, name in enumerate(model.parameters)}
    table = pd.DataFrame({**places, **{name: np.asarray(column).reshape(-1) for name, column in columns.items()}})
    return Validation(table[np.isfinite(table["measured"])].reset_index(drop=True))


def _shares(series: Series, measured: np.ndarray) -> np.ndarray:
    """Share (s, n) of each kernel in the total of its metric; of the whole program one, of what does not add up NaN."""
    names = np.array(series.metrics, dtype=object)
    whole = np.array(series.kernels, dtype=object) == WHOLE
    share = np.full(measured.shape, np.nan)
    for name in dict.fromkeys(series.metrics):
        here = names == name
        if metric(name).additive:
            with np.errstate(invalid="ignore", divide="ignore"):
                share[here] = measured[here] / np.nansum(measured[here & ~whole], axis=0)
    share[whole] = 1.0
    return share


def _computed(breakdown: object) -> list[np.ndarray]:
    """The sum over kernels, mean per rank, without imbalance and communication; its interval in proportion."""

    assert isinstance(breakdown, Breakdown)
    total = breakdown.total
    value = breakdown.computing
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = value / total.value[0]
    return [value, total.lower[0] * ratio, total.upper[0] * ratio, total.status[0] == 0, total.reason[0]]
