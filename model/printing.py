"""The functions of a model as a table, and those of times as they are printed where laws predict them.

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
from ranksight.model.process.solve import dividing
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
    # Smaller values of a mesh width or a tolerance are the larger problem.
    finer = bool(dividing(model.training[:, [axis]])[0])
    ends = (least, least / BEYOND) if finer else (most, BEYOND * most)
    farther = _along(model, axis, np.geomspace(*ends, STEPS))
    predicted = _answers(model, farther, rows)
    members = fitted.members[rows, 0]
    terms = fitted.coefficient[rows, 0][..., None] * values(fitted.terms, farther)[np.maximum(members, 0)]
    functions = np.where((members >= 0)[..., None], terms, 0.0).sum(axis=1)
    logs = np.abs(log_ratio(functions, predicted))
    known = np.isfinite(logs)
    difference = np.expm1(np.where(known, logs, -np.inf).max(axis=1))
    some = known.any(axis=1)
    of_runs: dict[int, PrintedTime] = {
        row: ("", each, ()) for row, each in zip(rows[some].tolist(), difference[some].tolist(), strict=True)
    }
    changing = np.isin(rows, [row for part in fitted.below for row in part.rows.tolist()])
    far = some & (difference > CLOSE) & ~changing
    if len(varied) > 1 or not far.any() or least <= 0:
        return of_runs
    measured = model.training[:, axis]
    points = _along(model, axis, np.concatenate([measured, np.geomspace(most if finer else least, ends[1], POINTS[0])]))
    return of_runs | _nearest(model, points, axis, rows[far], difference[far])


def _nearest(model: Learned, points: Array, axis: int, rows: Index, difference: Array) -> dict[int, PrintedTime]:
    """The sums nearest to what is predicted at `points` (k, m) of `rows`, where their difference is less than that of
    the functions of the runs (s,)."""
    predicted, x = _answers(model, points, rows), points[:, axis, None]
    known = np.isfinite(predicted).all(axis=1)
    if not known.any():
        return {}
    measured = np.unique(model.training[:, axis])[:, None]
    sums = nearest_sums(x, np.log(predicted[known]), measured)
    nearer: dict[int, PrintedTime] = {}
    for at, (row, least) in enumerate(zip(rows[known].tolist(), difference[known].tolist(), strict=True)):
        used = sums.members[at] >= 0
        terms = np.zeros((int(used.sum()), points.shape[1], 3))
        terms[:, axis] = sums.terms[sums.members[at][used], 0]
        if sums.difference[at] < least:
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
    of_kernels, of_program = (
        np.where((each.status == OK) & (each.value > 0), each.value, np.nan) for each in (predicted, program)
    )
    whole = np.array([model.fitted.kernels[row] == WHOLE for row in rows.tolist()], dtype=bool)
    return np.where(whole[:, None], of_program, of_kernels[rows])
