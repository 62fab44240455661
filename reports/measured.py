"""What was measured, reduced as the model's values were, at every configuration of one or several experiments."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ranksight.core.arrays import Array, Index, Mask
from ranksight.core.errors import InputError
from ranksight.core.experiment import WHOLE, Experiment
from ranksight.core.mpi import communicates
from ranksight.core.records import dataclass
from ranksight.model.application.fit_imbalances import unwaited_in
from ranksight.model.fitted_model import Model
from ranksight.model.resource.counters import settle
from ranksight.model.series.reducing import Series, series_from_experiment
from ranksight.model.series.reduction import reduce
from ranksight.model.series.sampling import means_of_samples
from ranksight.reports.validation import COMPUTE

WHOLLY, COMPUTED, SUMMED = "measured", "measured computation", "measured sum of kernels"
SLOWEST = "measured slowest rank without waiting"
"""What the measured time of a program is: its own; its kernels' where messages are modelled apart; all kernels'; that
of its slowest rank, with what it spends in MPI besides waiting."""


@dataclass(frozen=True)
class Measured:
    """Values measured at n configurations.

    Attributes
    ----------
    rows : mapping of (kernel, metric) to int
        Row of each series of the model in `value`; rows that nothing measured are NaN.
    """

    points: Array  # (n, m): configurations; one that several experiments hold appears once for each
    trained: Mask  # (n,): whether the model was fitted to the configuration
    value: Array  # (s, n): median over repetitions, smallest and largest of them
    low: Array  # (s, n)
    high: Array  # (s, n)
    repetitions: Index  # (n,)
    unwaited: Array  # (n,): seconds of communication without waiting; NaN where ranks' times do not say it

    def along(self, model: Model, along: str, held: dict[str, float]) -> Mask:
        """Which configurations (n,) have the held values of the other parameters."""
        keep = np.ones(len(self.points), dtype=bool)
        for name, value in held.items():
            keep &= np.isclose(self.points[:, model.parameters.index(name)], value)
        return keep

    def total(self, model: Model) -> tuple[Array, str]:
        """Time of the program at all configurations (n,) and what it is.

        The whole program's time where it was measured; that of its slowest rank where ranks were timed one by one and
        MPI among it; else the sum over kernels of means over all ranks, which holds no message that the model
        distinguishes.
        """
        rows = model.functions.rows
        if (WHOLE, "time") in rows:
            return self.value[rows[WHOLE, "time"]], WHOLLY
        if (imbalances := model.equation.imbalances) is not None and imbalances.unwaited is not None:
            timed = {kernel: row for (kernel, name), row in rows.items() if name == "time" and not communicates(kernel)}
            times, kernels = self.value[list(timed.values())], tuple(timed)
            held = np.isfinite(times).any(axis=0)
            taken = imbalances.program(kernels, np.nan_to_num(times), self.points)[0] * np.nansum(times, axis=0)
            alone = self.points[:, model.parameters.index("ranks")] <= 1
            return np.where(held, taken + np.where(alone, np.nan_to_num(self.unwaited), self.unwaited), np.nan), SLOWEST
        index = [row for (kernel, name), row in rows.items() if name == "time" and kernel != WHOLE]
        some = self.value[index]
        if not len(some):
            return np.full(len(self.points), np.nan), WHOLLY
        if imbalances is not None:
            kernels = tuple(model.fitted.kernels[row] for row in index)
            mean = imbalances.means(kernels, some, self.points)
            some = mean + imbalances.parts(kernels, np.nan_to_num(some), self.points) if imbalances.held else mean
        held = np.isfinite(some).any(axis=0)
        sent = model.equation.communication
        apart = sent.priced(model.equation.network)
        what = COMPUTED if apart else SUMMED
        sums = np.where(held, np.nansum(some, axis=0), np.nan)
        if apart and (WHOLE, COMPUTE) in rows:  # the tracer's clock, as the validation of a model compares
            clock = self.value[rows[WHOLE, COMPUTE]]
            sums = np.where(np.isfinite(clock), clock, sums)
        return sums, what


def measured(model: Model, experiments: Sequence[Experiment]) -> Measured | None:
    """Gather what `experiments` measured of the model's series; None where there are none.

    Raises InputError when an experiment has other parameters than the model.
    """
    parts = [
        _one(model, experiment) for experiment in experiments if any(r.state == "complete" for r in experiment.runs)
    ]
    if not parts:
        return None
    points = np.concatenate([part.points for part in parts])
    known = {tuple(point) for point in model.training.tolist()}
    return Measured(
        points,
        np.array([tuple(point) in known for point in points.tolist()]),
        value=np.concatenate([part.value for part in parts], axis=1),
        low=np.concatenate([part.low for part in parts], axis=1),
        high=np.concatenate([part.high for part in parts], axis=1),
        repetitions=np.concatenate([part.repetitions for part in parts]),
        unwaited=np.concatenate([part.unwaited for part in parts]),
    )


def _one(model: Model, experiment: Experiment) -> Measured:
    if experiment.parameters != model.parameters:
        raise InputError(
            f"{experiment.path} varies {', '.join(experiment.parameters)}, the model {', '.join(model.parameters)}",
            "give the experiment that the model was fitted to, or another of the same command",
        )
    held = set(model.fitted.metrics)
    names = tuple(name for name in experiment.metrics() if name in held)
    shape = (len(model.fitted), 0)
    if not names:
        empty = np.empty(shape)
        points, none = np.empty((0, len(model.parameters))), np.empty(0)
        return Measured(points, none.astype(bool), empty, empty, empty, none.astype(int), none)
    series = settle(experiment, series_from_experiment(experiment, names, means_of_samples(experiment, None))).series
    value, low, high = (_placed(model, series, reduce(series.values, how, axis=2)) for how in ("median", "min", "max"))
    repetitions = np.isfinite(series.values).any(axis=0).sum(axis=1)
    law = None if model.equation.imbalances is None else model.equation.imbalances.unwaited
    seconds = {} if law is None else unwaited_in(experiment, law.phased)
    unwaited = np.array([np.median(seconds.get(tuple(point), np.nan)) for point in series.points.tolist()])
    return Measured(series.points, np.zeros(len(series.points), bool), value, low, high, repetitions, unwaited)


def _placed(model: Model, series: Series, values: Array) -> Array:
    """Rows in the model's order."""
    rows = model.functions.rows
    placed = np.full((len(model.fitted), len(series.points)), np.nan)
    index = [(rows[key], at) for at, key in enumerate(series.keys) if key in rows]
    if index:
        mine, theirs = map(list, zip(*index, strict=True))
        placed[mine] = values[theirs]
    return placed
