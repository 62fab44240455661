"""From series to a model: functions, the weight of each kernel, and how far the kernels' errors go together."""

from __future__ import annotations

from typing import Any

import numpy as np

from ranksight.core.experiment import WHOLE
from ranksight.core.run import INCLUSIVE
from ranksight.model.application import whole
from ranksight.model.fitted_model import Model
from ranksight.model.fitting.varied import fit_varied
from ranksight.model.series.reducing import Series
from ranksight.model.series.reduction import reduce


def model_of(series: Series, application: str, over_repetitions: str = "auto", **settings: Any) -> Model:
    """Make a model of series; for the settings see :func:`ranksight.model.fitting.fit_series.fit_series`."""
    fitted = fit_varied(series, over_repetitions=over_repetitions, **settings)
    located = reduce(series.values, "median" if over_repetitions == "auto" else over_repetitions, axis=2)
    said = fitted.at_training(series.points)
    names, kernels = (np.array(each, dtype=object) for each in (series.metrics, series.kernels))
    shares = np.zeros(len(series))
    common: dict[str, whole.Correlation] = {}
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
            shares[rows] = np.where(total > 0, size / np.where(total > 0, total, 1.0), 0.0).mean(axis=1)
            noise = whole.correlation(located[rows] / said[rows] - 1, said[rows])
        common[name] = whole.Correlation(noise)
    return Model(application, series.parameters, fitted, series.points, shares, common, dict(series.provenance))
