"""A model's prediction held against runs: predicted beside measured, with the error, for everything both have."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from ranksight.experiment import WHOLE, Experiment
from ranksight.metrics import metric
from ranksight.model.levels import COUNTS
from ranksight.model.model import Model
from ranksight.model.reduction import reduce
from ranksight.model.resource import LEVELS
from ranksight.model.sampling import settle
from ranksight.model.series import series_from_experiment

SMALL = 1e-3
"""Kernels with less than this share of a metric's total are left out of summaries: they are a few calls of start-up."""
COMPUTE = "compute_cpu_time"


@dataclass(frozen=True)
class Validation:
    """Predictions beside measurements.

    Attributes
    ----------
    table : DataFrame
        One row a configuration, kernel and metric: the parameters, ``kernel``, ``metric``, ``predicted``, ``lower``,
        ``upper``, ``measured``, ``error`` (relative), ``inside`` (the interval holds), ``share`` of the kernel in the
        measured total, ``status``.
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

    Raises
    ------
    InputError
        When the experiment has other parameters than the model, or no runs.
    """
    from ranksight.errors import InputError
    from ranksight.model.assembly import means_of_samples

    experiment = model.view(experiment)
    if experiment.parameters != model.parameters:
        raise InputError(
            f"{experiment.path} varies {', '.join(experiment.parameters)}, the model {', '.join(model.parameters)}",
            "measure both with the same command",
        )
    series = series_from_experiment(experiment, None, means_of_samples(experiment, None))
    series = settle(experiment, series).series
    measured = reduce(series.values, "median", axis=2)
    said = model.forecast(series.points, level)
    breakdown = model.breakdown(series.points, level)
    rows = model.functions.rows
    names = np.array(series.metrics, dtype=object)
    whole = np.array(series.kernels, dtype=object) == WHOLE
    parts = []
    for name in dict.fromkeys(series.metrics):
        here = np.flatnonzero((names == name) & ~whole)
        total = np.nansum(measured[here], axis=0) if metric(name).additive else np.full(len(series.points), np.nan)
        for at in np.flatnonzero(names == name):
            row = rows.get((series.kernels[at], name))
            if row is None:
                continue
            with np.errstate(invalid="ignore", divide="ignore"):
                share = np.where(whole[at], 1.0, measured[at] / total)
            columns = [said.value[row], said.lower[row], said.upper[row], said.status[row] == 0]
            if series.kernels[at] == WHOLE and name == COMPUTE and model.equation.resources is not None:
                columns = _computed(breakdown)
            parts.append(_rows(model.parameters, series.points, series.kernels[at], name, columns, measured[at], share))
    return Validation(pd.concat([part for part in parts if len(part)], ignore_index=True))


def _computed(breakdown: object) -> list[np.ndarray]:
    """The sum over kernels, mean per rank, without imbalance and communication; its interval in proportion."""
    from ranksight.model.application import Breakdown

    assert isinstance(breakdown, Breakdown)
    total = breakdown.total
    value = total.value[0] - breakdown.parts["imbalance"] - breakdown.parts["communication"]
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = value / total.value[0]
    return [value, total.lower[0] * ratio, total.upper[0] * ratio, total.status[0] == 0]


def _rows(
    parameters: tuple[str, ...],
    points: np.ndarray,
    kernel: str,
    name: str,
    columns: list[np.ndarray],
    measured: np.ndarray,
    share: np.ndarray,
) -> pd.DataFrame:
    value, lower, upper, carried = columns
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.where(measured != 0, value / measured - 1, np.where(value == 0, 0.0, np.inf))
    tiny = 1e-9 * np.abs(measured)
    table = pd.DataFrame(dict(zip(parameters, points.T, strict=True)))
    table = table.assign(
        kernel=kernel,
        metric=name,
        predicted=value,
        lower=lower,
        upper=upper,
        measured=measured,
        error=error,
        inside=(lower - tiny <= measured) & (measured <= upper + tiny),
        share=share,
        status=np.where(carried, "ok", "insufficient"),
    )
    known: pd.DataFrame = table[np.isfinite(table["measured"])]
    return known
