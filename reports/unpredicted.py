"""What a model does not predict at the target, why, and the run that would help."""

from __future__ import annotations

import numpy as np

from ranksight.analysis.planning.remedies import named_run
from ranksight.core.experiment import WHOLE
from ranksight.core.records import dataclass
from ranksight.core.valuerules import infer, infer_finer, next_value
from ranksight.model.largest import larger, largest_values
from ranksight.model.process.solve import dividing
from ranksight.model.uncertainty import forecast
from ranksight.reports.sweep import RANKS, Sweep, place

FEW = 3
"""Values that are named to be measured as well."""


@dataclass(frozen=True)
class Unpredicted:
    """One metric of one kernel that has no answer at the target.

    `share`: :attr:`ranksight.model.fitted_model.Model.shown_shares`. `remedy`: which measurement would help.
    """

    kernel: str
    metric: str
    share: float
    reason: str
    remedy: str


def unpredicted(sweep: Sweep, then: str = "") -> list[Unpredicted]:
    """Every series without an answer at the target, those of times first, the largest share first.

    `then`: the first run of a plan, where there is one; :func:`next_run` where not.
    """
    model, fitted = sweep.model, sweep.model.fitted
    status = sweep.shown.status[:, -1]
    found = []
    for row in np.flatnonzero(status != forecast.OK).tolist():
        kernel, reason = fitted.kernels[row], str(sweep.shown.reason[row, -1])
        share = 1.0 if kernel == WHOLE else float(model.shown_shares[row])
        helps = named_run(reason) or remedy(sweep, int(status[row]), then)
        found.append(Unpredicted(kernel, fitted.metrics[row], share, reason, helps))
    return sorted(found, key=lambda one: (one.metric != "time", -np.nan_to_num(one.share)))


def remedy(sweep: Sweep, status: int, then: str = "") -> str:
    """The measurement that would help against one reason; `then` as of :func:`unpredicted`."""
    model = sweep.model
    if status in (forecast.WIDE, forecast.DISAGREE, forecast.TURN, forecast.NOT_POSITIVE):
        return f"measure at {then or next_run(sweep)}"
    if status == forecast.NOISE:
        return "repeat every run more often"
    if status == forecast.FEW_POINTS:
        low, high = sweep.trained
        column = model.training[:, model.parameters.index(sweep.along)]
        if dividing(column[:, None])[0]:
            more = np.setdiff1d(infer_finer(column).values(low / 4, high, whole=False), column)[::-1]
        else:
            whole = sweep.along == RANKS
            more = np.setdiff1d(infer(column, whole).values(low, 4 * high, whole), column)
        few = ", ".join(f"{value:g}" for value in more[:FEW])
        return f"measure {sweep.along} {few} as well" if few else f"measure more values of {sweep.along}"
    if status == forecast.UNVARIED:
        fixed = [
            name
            for at, name in enumerate(model.parameters)
            if len(np.unique(model.training[:, at])) == 1 and sweep.target[name] != model.training[0, at]
        ]
        return f"measure two more values of {' and of '.join(fixed) or sweep.along}"
    if status == forecast.NO_DATA:
        return "measure with a collector that counts it"
    return f"ask for {sweep.along} where the function has a value"


def next_run(sweep: Sweep) -> str:
    """The target where it is near, else about twice what was measured, of ranks a number that follows the rule of those
    measured: a run that people can do, and that moves the bound."""
    training, asked = sweep.model.training, dict(sweep.target)
    most, twice = largest_values(training), larger(training, np.full(training.shape[1], 2.0))
    finer = dividing(training)
    if (training == np.array([asked[name] for name in sweep.model.parameters])).all(axis=1).any():  # these were made
        asked[sweep.along] = 0.0 if finer[sweep.model.parameters.index(sweep.along)] else float("inf")
    words = []
    for at, name in enumerate(sweep.model.parameters):
        value = asked[name]
        if finer[at]:
            value = max(value, float(twice[at])) if value < most[at] else value
        elif value > most[at]:
            value = min(value, float(twice[at]))
            if name == RANKS and value < asked[name]:
                ruled = next_value(training[:, at], value, asked[name])
                value = ruled if np.isfinite(ruled) else value
        words.append(place(name, value))
    return ", ".join(words)
