"""Fit over the parameters that varied by themselves: others tell nothing, and a search over them invents.

A parameter of a single value is one. So is one that moved with others only, as in weak scaling at sizes that keep the
work per rank: its logarithm is then a sum of theirs,

    ln x_j = c + sum_i b_i ln x_i      at every configuration measured,

and no value tells what either does alone. Functions are of the others, and hold where the tie does.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ranksight.model.fitted import Fitted
from ranksight.model.fitting import fit_series
from ranksight.model.series import Series

Array = NDArray[np.float64]

WHOLE = 20.0
"""From here on rounding to a whole number leaves less than the twentieth beside a tie at which functions hold."""
EXACT = 1e-6
"""Part of its range to which a logarithm follows others where it is tied to them; values that were rounded are not."""


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


def independent(points: Array, parameters: tuple[str, ...]) -> tuple[list[int], Array | None]:
    """The parameters that varied by themselves, and how others are tied to them.

    Parameters
    ----------
    points : (n, m)
    parameters : tuple of str
        ``ranks`` are kept before others.

    Returns
    -------
    list of int
        Columns of `points`.
    (q, 1 + m) or None
        A row ``(c, e_1, ..., e_m)`` a tie: ``sum_j e_j ln x_j = c`` at all points; None where there is none.
    """
    order = sorted(range(points.shape[1]), key=lambda at: parameters[at] != "ranks")
    kept: list[int] = []
    ties = []
    for at in order:
        column = points[:, at]
        if len(np.unique(column)) < 2:
            continue
        logs = np.log(points[:, [*kept, at]]) if (points[:, [*kept, at]] > 0).all() else None
        if kept and logs is not None:
            design = np.column_stack([np.ones(len(points)), logs[:, :-1]])
            solution, _, rank, _ = np.linalg.lstsq(design, logs[:, -1], rcond=None)
            off = np.abs(logs[:, -1] - design @ solution).max()
            if rank == design.shape[1] < len(points) and off <= EXACT * np.ptp(logs[:, -1]):
                tie = np.zeros(1 + points.shape[1])
                tie[0], tie[1 + at], tie[[1 + k for k in kept]] = solution[0], 1.0, -solution[1:]
                ties.append(tie)
                continue
        kept.append(at)
    return sorted(kept), np.array(ties) if ties else None


def along_ties(points: Array, parameters: tuple[str, ...], ties: Array | None) -> Array:
    """The points (k, m) with every tied parameter where its tie has it, rounded where it is a whole number nearly.

    The parameter that follows the others is the last of its tie that is not ``ranks``.
    """
    found = np.array(points, dtype=np.float64)
    for tie in () if ties is None else ties:
        used = np.flatnonzero(tie[1:])
        last = [at for at in used if parameters[at] != "ranks"][-1]
        others = [at for at in used if at != last]
        value = np.exp((tie[0] - np.log(found[:, others]) @ tie[1:][others]) / tie[1 + last])
        found[:, last] = np.where(value >= WHOLE, np.round(value), value)
    return found


def _widened(fitted: Fitted, series: Series, varied: list[int]) -> Fitted:
    """The same functions over all parameters of the series, constant in the others."""
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
