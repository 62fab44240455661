"""A model's prediction held against runs: predicted and measured, with the error, for everything both have."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ranksight.core.errors import InputError
from ranksight.core.experiment import WHOLE, Experiment
from ranksight.core.html import table
from ranksight.core.metrics import metric
from ranksight.core.records import dataclass
from ranksight.core.units import counted, in_full
from ranksight.model.application.breakdown import Breakdown
from ranksight.model.fitted_model import Model
from ranksight.model.resource.counters import settle
from ranksight.model.resource.equation import LEVELS
from ranksight.model.series.reducing import Series, series_from_experiment
from ranksight.model.series.reduction import reduce
from ranksight.model.series.sampling import means_of_samples
from ranksight.model.structure.levels import COUNTS
from ranksight.model.uncertainty.forecast import OK

SMALL = 1e-3
"""Kernels with less than this share of a metric's total are left out of summaries: they are a few calls of start-up."""
COMPUTE = "compute_cpu_time"
MOST = 20
"""Rows that a notebook shows."""
PROGRAM = frozenset({(WHOLE, "time"), (WHOLE, "wall_time")})
"""What is measured of the program's time; it is held against the time that a prediction answers for the program."""


@dataclass(frozen=True)
class Validation:
    """Predictions and measurements side by side.

    `table`: one row a configuration, kernel and metric: the parameters, ``kernel``, ``metric``, ``predicted``,
    ``lower``, ``upper``, ``measured``, ``error`` (relative), ``inside`` (the interval holds), ``share`` of the kernel
    in the measured total, ``status`` and ``reason`` (why data are insufficient; empty otherwise).
    """

    table: pd.DataFrame

    def __repr__(self) -> str:
        return f"<Validation: {self._summary()}; .table has all>"

    def _repr_html_(self) -> str:
        """A measured value a row, for notebooks: the program, then the largest times first."""
        keys = zip(self.table["kernel"], self.table["metric"], strict=True)
        order = [0 if key in PROGRAM else 1 if key[1] == "time" else 2 for key in keys]
        rows = self.table.assign(order=order)
        rows = rows.sort_values(["order", "measured"], ascending=[True, False], kind="stable").head(MOST)
        names = list(self.table.columns[: self.table.columns.get_loc("kernel")])
        cells = []
        for row in rows.to_dict("records"):
            form = metric(row["metric"]).format
            place = [in_full(row[name]) for name in names]
            ends = f"{form(row['lower'])} to {form(row['upper'])}"
            judged = "insufficient" if row["status"] != "ok" else "inside" if row["inside"] else "outside"
            values = form(row["predicted"]), ends, form(row["measured"]), f"{row['error']:+.1%}"
            cells.append([*place, row["kernel"], row["metric"], *values, judged])
        heads = [*names, "kernel", "metric", "predicted", "interval", "measured", "error", "interval holds"]
        return table(self._summary(), heads, cells, MOST, ".table has all")

    def _summary(self) -> str:
        ok = self.table[self.table["status"] == "ok"]
        return f"{counted(len(self.table), 'measured value')}, {ok['inside'].sum()} of {len(ok)} inside their interval"

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

    The program's time, as a rank's or on the wall, is held against what ``predict`` answers for the program. Raises
    InputError when the experiment has other parameters than the model, no runs, or nothing that the model predicts.

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
    if not isinstance(model, Model):
        raise InputError(f"{type(model).__name__} is not a model", "give it first: rs.validate(model, experiment)")
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
    total = model.whole_time(said, breakdown)
    asked = place.keys() | (PROGRAM if np.isfinite(total.value).any() else frozenset())
    mine = np.array([at for at in every if keys[at] in asked], dtype=np.intp)
    if not len(mine):
        raise InputError(f"{experiment.path} has no kernel and metric of the model", "measure the same program")
    rows = np.array([place.get(keys[at], 0) for at in mine], dtype=np.intp)
    value, lower, upper = (getattr(said, which)[rows] for which in ("value", "lower", "upper"))
    known, reason = said.status[rows] == OK, said.reason[rows].astype(object)
    for at in np.flatnonzero([keys[i] in asked & PROGRAM for i in mine]):
        value[at], lower[at], upper[at] = total.value[0], total.lower[0], total.upper[0]
        known[at], reason[at] = total.status[0] == OK, total.reason[0]
    if model.equation.resources:
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
    every_row = pd.DataFrame({**places, **{name: np.asarray(column).reshape(-1) for name, column in columns.items()}})
    return Validation(every_row[np.isfinite(every_row["measured"])].reset_index(drop=True))


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
