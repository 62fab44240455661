"""Functions of times as they are printed where laws predict them.

A mixture of laws has no formula either: what people read is the sum of few terms that is nearest to what is predicted,
as that of a process is (:mod:`ranksight.model.process.shown`), with its largest difference.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ranksight.core.arrays import Array, Index, log_ratio
from ranksight.core.errors import RanksightError
from ranksight.core.experiment import WHOLE
from ranksight.model.fitting.printed import PrintedTime, written
from ranksight.model.process.shown import BEYOND, CLOSE, POINTS, nearest_sums
from ranksight.model.search.terms import values, write_term
from ranksight.model.uncertainty.forecast import OK

if TYPE_CHECKING:
    from ranksight.model.predicting import Learned

STEPS = 5
"""Values of a parameter at which functions are compared with what laws predict."""


def by_laws(model: Learned) -> Mapping[int, PrintedTime]:
    """What is printed of times that are predicted, by row: the function of the runs, or one that is nearer.

    The function of the runs stays where several parameters varied, or it changes along one, with its difference.
    """
    fitted, varied = model.fitted, np.flatnonzero(np.ptp(model.training, axis=0) > 0)
    rows = np.array([row for row, name in enumerate(fitted.metrics) if name == "time"], dtype=np.intp)
    if not len(varied) or not len(rows):
        return {}
    axis = fitted.parameters.index("ranks") if "ranks" in fitted.parameters else int(varied[0])
    least, most = model.training[:, axis].min(), model.training[:, axis].max()
    farther = _along(model, axis, most * np.geomspace(1.0, BEYOND, STEPS))
    predicted = _answers(model, farther, rows)
    shown = values(fitted.terms, farther)
    differences = {}
    for row, answer in zip(rows.tolist(), predicted, strict=True):
        used = fitted.members[row, 0][fitted.members[row, 0] >= 0]
        function = fitted.coefficient[row, 0][: len(used), None] * shown[used]
        difference = np.abs(log_ratio(function.sum(axis=0), answer))
        if np.isfinite(difference).any():
            differences[row] = float(np.expm1(np.nanmax(np.where(np.isfinite(difference), difference, np.nan))))
    texts = {row: (model.functions.formula(row), difference, ()) for row, difference in differences.items()}
    changing = {row for part in fitted.below for row in part.rows.tolist()}
    far = np.array([row for row in differences if differences[row] > CLOSE and row not in changing], dtype=np.intp)
    if len(varied) > 1 or not len(far):
        return texts
    measured = model.training[:, axis]
    points = _along(model, axis, np.concatenate([measured, np.geomspace(least, BEYOND * most, POINTS[0])]))
    return texts | _nearest(model, points, axis, far, texts)


def _nearest(
    model: Learned, points: Array, axis: int, rows: Index, texts: Mapping[int, PrintedTime]
) -> dict[int, PrintedTime]:
    """The sums nearest to what is predicted at `points` (k, m) of `rows`, where they are nearer than `texts`."""
    predicted, x = _answers(model, points, rows), points[:, axis, None]
    known = np.isfinite(predicted).all(axis=1)
    if not known.any():
        return {}
    measured = np.unique(model.training[:, axis])[:, None]
    sums = nearest_sums(x, np.log(predicted[known]), measured)
    nearer: dict[int, PrintedTime] = {}
    for at, row in enumerate(rows[known].tolist()):
        used = sums.members[at] >= 0
        terms = np.zeros((int(used.sum()), points.shape[1], 3))
        terms[:, axis] = sums.terms[sums.members[at][used], 0]
        if sums.difference[at] < texts[row][1]:
            coefficients = sums.coefficients[at][used].tolist()
            text = written(zip(coefficients, terms, strict=True), model.parameters)
            names = [write_term(term, model.parameters) or "1" for term in terms]
            nearer[row] = text, float(sums.difference[at]), list(zip(names, coefficients, strict=True))
    return nearer


def _along(model: Learned, axis: int, x: Array) -> Array:
    """Points (k, m) at values `x` of one parameter, whole where those measured are, the others at their largest."""
    whole = (model.training[:, axis] == np.round(model.training[:, axis])).all()
    x = np.unique(np.round(x) if whole else x)
    points = np.repeat(model.training.max(axis=0)[None], len(x), axis=0)
    points[:, axis] = x
    return points


def _answers(model: Learned, points: Array, rows: Index) -> Array:
    """Times (s, k) that are predicted for `rows` at `points`; NaN where there is no answer, or none at all."""
    try:
        predicted, broken = model.ask(points)
        program = model.whole_time(predicted, broken)
    except RanksightError:  # a network has no place for as many
        return np.full((len(rows), len(points)), np.nan)
    answers = [(program, 0) if model.fitted.kernels[row] == WHOLE else (predicted, row) for row in rows.tolist()]
    return np.array(
        [np.where((each.status[at] == OK) & (each.value[at] > 0), each.value[at], np.nan) for each, at in answers]
    )
