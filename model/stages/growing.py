"""How every metric of every kernel grows: functions, and what is known of their structure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from ranksight.core.arrays import Array
from ranksight.core.experiment import WHOLE
from ranksight.core.log import log
from ranksight.core.run import INCLUSIVE
from ranksight.model.application import whole
from ranksight.model.application.message_series import message_series
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.fitting.varied import fit_varied
from ranksight.model.series.computation import cores
from ranksight.model.series.reducing import Series
from ranksight.model.series.reduction import reduce
from ranksight.model.stages.measuring import Measured
from ranksight.model.stages.statement import Statement
from ranksight.model.structure.functions import Functions
from ranksight.model.structure.locality import learn_locality
from ranksight.model.structure.stated import BYTES, Stated
from ranksight.model.structure.structured import structured
from ranksight.model.structure.wholeunits import Staircase


@dataclass(frozen=True)
class Growth:
    """How metrics grow."""

    functions: Functions  # of all series
    shares: Array  # (s,): of each series in the sum of its metric over kernels
    correlation: Mapping[str, float]  # for each metric that of its kernels' noise
    stated: Stated | None  # volumes of messages as the user knows them
    staircase: Staircase | None  # whole units that the work comes in


def learn_growth(statement: Statement, measured: Measured) -> Growth:
    """Fit the functions of all series, those of whole units, and what is known of their structure."""
    experiment, series, search = measured.experiment, measured.series, statement.search
    stated = _stated(statement, measured)
    # Counts show how ranks of a domain act on each other; times alone leave it to their shape.
    domains = statement.domains if {"cycles", "instructions", "bytes_mem"}.isdisjoint(series.metrics) else None
    fitted = fit_varied(series, domains=domains, **search)
    insufficient = int((fitted.status != 0).sum())
    log("functions fitted in space %s: %d with insufficient data", fitted.space, insufficient)
    shares, correlation = shares_of(series, fitted, search.get("over_repetitions", "auto"))
    functions = structured(experiment, series, fitted, lambda: experiment.tables("counters"), stated, True, **search)
    if "loads" in series.metrics:
        functions = replace(functions, locality=learn_locality(experiment, series))
    return Growth(functions, shares, correlation, stated, _staircase(statement, measured))


def shares_of(series: Series, fitted: Fitted, over_repetitions: str) -> tuple[Array, dict[str, float]]:
    """Share (s,) of each series in the sum of its metric over kernels at the runs on most cores, and for each metric
    the correlation of its kernels' noise."""
    located = reduce(series.values, "median" if over_repetitions == "auto" else over_repetitions, axis=2)
    fitted_values = fitted.at_training(series.points)
    names, kernels = (np.array(each, dtype=object) for each in (series.metrics, series.kernels))
    shares, common = np.zeros(len(series)), dict[str, float]()
    for name in dict.fromkeys(series.metrics):
        rows = np.flatnonzero((names == name) & (kernels != WHOLE))
        if not len(rows):
            continue
        size = np.where(np.isfinite(located[rows]), np.abs(located[rows]), 0.0)
        # Timers that contain each other are parts of the program, and of no sum.
        program = np.flatnonzero((names == name) & (kernels == WHOLE))
        nested = series.provenance.get(name, "").startswith(INCLUSIVE) and len(program) > 0
        total = np.nan_to_num(located[program[0]]) if nested else size.sum(axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            each = np.where(total > 0, size / np.where(total > 0, total, 1.0), 0.0)
        known = np.where(total > 0, cores(series.points, series.parameters), 0.0)
        shares[rows] = each[:, known == known.max()].mean(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            common[name] = whole.correlation(located[rows] / fitted_values[rows] - 1, fitted_values[rows])
    return shares, common


def _stated(statement: Statement, measured: Measured) -> Stated | None:
    """Volumes as the user knows them, held against those measured."""
    series, experiment = measured.series, measured.experiment
    stated = Stated.read(statement.volumes, series.parameters, series.points)
    if stated is None:
        return None
    messages = message_series(experiment) if "ranks" in experiment.parameters else None
    sent = series if messages is None else messages
    rows = np.array([name == BYTES for name in sent.metrics], dtype=bool)
    names = [kernel for kernel, yes in zip(sent.kernels, rows.tolist(), strict=True) if yes]
    stated.check(names, sent.points, reduce(sent.values[rows], "median", axis=2))
    return stated


def _staircase(statement: Statement, measured: Measured) -> Staircase | None:
    """Functions of what the busiest rank carries, over the ranks that would all be as full."""
    if statement.units is None:
        return None
    series = measured.series
    busiest = tuple(name for name, reduction in measured.over_ranks.items() if reduction == "max")
    rows = np.array([name in busiest for name in series.metrics], dtype=bool)
    if not rows.any():
        return Staircase(statement.units, busiest, None)
    fitted = fit_varied(statement.units.series(series.select(rows)), **statement.search)
    return Staircase(statement.units, busiest, fitted)
