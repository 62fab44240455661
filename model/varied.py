"""Fit over the parameters that varied: one that took a single value tells nothing, and a search over it invents."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ranksight.model.fitted import Fitted
from ranksight.model.fitting import fit_series
from ranksight.model.series import Series


def fit_varied(series: Series, **settings: Any) -> Fitted:
    """Fit every series as :func:`ranksight.model.fitting.fit_series` does, over the parameters that varied.

    The functions have all parameters; asked for another value of one that did not vary, they say so.
    """
    points = series.points
    varied = [at for at in range(points.shape[1]) if len(np.unique(points[:, at])) > 1]
    if len(varied) in (0, points.shape[1]) or not isinstance(settings.get("space", ""), str):
        return fit_series(series, **settings)
    if varied[0] != 0:  # a change of behaviour is looked for along the first parameter
        settings = {**settings, "segments": False}
    names = tuple(series.parameters[at] for at in varied)
    return _widened(fit_series(replace(series, parameters=names, points=points[:, varied]), **settings), series, varied)


def _widened(fitted: Fitted, series: Series, varied: list[int]) -> Fitted:
    """The same functions over all parameters of the series, constant in those that did not vary."""
    count = series.points.shape[1]
    terms = np.zeros((len(fitted.terms), count, 3))
    terms[:, varied] = fitted.terms
    drift = np.zeros((len(fitted), count))
    drift[:, varied] = fitted.drift
    trained = np.empty((len(fitted), count, 2))
    trained[:] = np.stack([series.points.min(axis=0), series.points.max(axis=0)], axis=1)
    trained[:, varied] = fitted.trained
    below = None if fitted.below is None else _widened(fitted.below, series, varied)
    return replace(fitted, parameters=series.parameters, terms=terms, drift=drift, trained=trained, below=below)
