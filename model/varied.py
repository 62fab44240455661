"""Fit over the parameters that varied by themselves: others tell nothing, and a search over them invents.

A parameter of a single value is one, and one that moved with others only (:mod:`ranksight.model.ties`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ranksight.model.fitted import Fitted
from ranksight.model.fitting import fit_series
from ranksight.model.series import Series
from ranksight.model.ties import independent


def fit_varied(series: Series, **settings: Any) -> Fitted:
    """Fit every series as :func:`ranksight.model.fitting.fit_series` does, over the parameters that varied by
    themselves.

    The functions have all parameters; asked for another value of one that did not vary, or away from the tie of one
    that did with others only, they say so.
    """
    points = series.points
    varied, ties = independent(points, series.parameters)
    if len(varied) in (0, points.shape[1]) or not isinstance(settings.get("space", ""), str):
        return fit_series(series, **settings)
    if varied[0] != 0:  # a change of behaviour is looked for along the first parameter
        settings = {**settings, "segments": False}
    names = tuple(series.parameters[at] for at in varied)
    fitted = fit_series(replace(series, parameters=names, points=points[:, varied]), **settings)
    return replace(_widened(fitted, series, varied), ties=ties)


def _widened(fitted: Fitted, series: Series, varied: list[int]) -> Fitted:
    """The same functions over all parameters of the series, constant in the others."""
    count = series.points.shape[1]
    terms = np.zeros((len(fitted.terms), count, 3))
    terms[:, varied] = fitted.terms
    drift = np.zeros((len(fitted), count, 2))
    drift[:, varied] = fitted.drift
    trained = np.empty((len(fitted), count, 2))
    trained[:] = np.stack([series.points.min(axis=0), series.points.max(axis=0)], axis=1)
    trained[:, varied] = fitted.trained
    below = None if fitted.below is None else _widened(fitted.below, series, varied)
    return replace(fitted, parameters=series.parameters, terms=terms, drift=drift, trained=trained, below=below)
