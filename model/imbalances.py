"""The imbalance of each kernel: what the fullest rank takes over the mean, as a function of the parameters.

    r_k = max over ranks T_k / mean over ranks T_k

Where a kernel's time is that of its slowest rank, T_k (1 - 1 / r_k) of it is waited for by the others; where it is the
mean, what the fullest rank of the program works beyond it belongs to the kernels that are uneven:

    imbalance_k = (imbalance of the program) x T_k (r_k - 1) / sum_j T_j (r_j - 1)

Both the largest and the mean are functions of their own, as sums of what all ranks do and of what one does besides are
simpler than their ratio. A kernel whose ranks differ by less than a twentieth everywhere is even.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ranksight.errors import InputError
from ranksight.experiment import ALL_RANKS, WHOLE, Experiment, Run
from ranksight.model import forecast
from ranksight.model.fitted import Fitted
from ranksight.model.series import Series
from ranksight.model.varied import fit_varied

Array = NDArray[np.float64]

UNEVEN = 1.05
"""Largest over mean from which a kernel is uneven."""
FEWEST = 3
"""Configurations of two ranks or more that tell how an imbalance goes on."""
TOLD_BY = ("instructions", "cycles", "time")
"""Metrics that tell what a rank of a kernel does, the steadiest first."""


@dataclass(frozen=True)
class Imbalances:
    """Ratios of the uneven kernels.

    Attributes
    ----------
    fitted : Fitted
        Work of the fullest rank of each of K uneven kernels, then that of the mean rank.
    seen : (K, 2)
        Smallest and largest ratio measured.
    held : bool
        Whether the kernels' times are those of their slowest ranks, and hold the imbalance.
    """

    fitted: Fitted
    seen: Array
    held: bool

    @property
    def kernels(self) -> tuple[str, ...]:
        """The uneven kernels."""
        return self.fitted.kernels[: len(self.seen)]

    def ratios(self, points: Array) -> Array:
        """r_k of the uneven kernels at `points` (k, m), (K, k); 1 on one rank.

        A ratio that nothing tells stays the largest seen; no rank does more than all.
        """
        said = self.fitted.predict(points)
        low, high = self.seen[:, :1], self.seen[:, 1:]
        spare = high / low
        most, mean = np.split(said.value, 2)
        known = (said.status == forecast.OK).reshape(2, len(self.seen), -1).all(axis=0) & (mean > 0)
        ratio = most / np.where(known, mean, 1.0)
        value = np.where(known & np.isfinite(ratio), np.clip(ratio, low / spare, high * spare), high)
        ranks = points[:, self.fitted.parameters.index("ranks")]
        return np.clip(value, 1.0, np.maximum(ranks, 1.0))

    def parts(self, kernels: tuple[str, ...], times: Array, program: Array, points: Array) -> Array:
        """Seconds of each kernel that are waiting for its fullest rank, (K, k).

        Parameters
        ----------
        kernels : tuple of str
        times : (K, k)
            Their predicted times.
        program : (k,)
            Work of the program's fullest rank over the mean.
        points : (k, m)
        """
        ratio = self._of(kernels, points)
        if self.held:
            return np.asarray(times * (1 - 1 / ratio))
        weight = times * (ratio - 1)
        total = weight.sum(axis=0)
        # Where no kernel is uneven, what little the fullest rank has more is spread as the time is.
        weight = np.where(total > 0, weight, times)
        total = np.where(total > 0, total, times.sum(axis=0))
        return np.asarray((program - 1) * times.sum(axis=0) * weight / np.where(total > 0, total, 1.0))

    def bound(self, kernels: tuple[str, ...], times: Array, points: Array) -> Array:
        """The most that one rank could have over the mean: the sum of all kernels' fullest ranks, (k,)."""
        total = times.sum(axis=0)
        return np.asarray((times * self._of(kernels, points)).sum(axis=0) / np.where(total > 0, total, 1.0))

    def _of(self, kernels: tuple[str, ...], points: Array) -> Array:
        """r_k of any kernels, 1 of the even ones, (len(kernels), k)."""
        ratio = np.ones((len(kernels), len(points)))
        place = {kernel: at for at, kernel in enumerate(self.kernels)}
        mine = [(at, place[kernel]) for at, kernel in enumerate(kernels) if kernel in place]
        if mine:
            here, there = (np.array(column) for column in zip(*mine, strict=True))
            ratio[here] = self.ratios(points)[there]
        return ratio

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""
        return {"fitted": self.fitted.to_dict(), "seen": self.seen.tolist(), "held": self.held}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Imbalances:
        """Rebuild from :meth:`to_dict`; damaged content raises InputError."""
        try:
            fitted = Fitted.from_dict(content["fitted"])
            seen = np.array(content["seen"], dtype=np.float64).reshape(len(fitted) // 2, 2)
            held = content["held"]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(f"'imbalances' is damaged: {error}", "fit the model again") from error
        if (
            not isinstance(held, bool)
            or "ranks" not in fitted.parameters
            or fitted.kernels != 2 * fitted.kernels[: len(seen)]
            or not ((seen >= 1).all() and (seen < np.inf).all() and (seen[:, 0] <= seen[:, 1]).all())
        ):
            raise InputError("'imbalances' does not fit together", "fit the model again")
        return cls(fitted, seen, held)


def fit_imbalances(experiment: Experiment, held: bool, **settings: Any) -> Imbalances | None:
    """Learn the imbalance of each uneven kernel; None where ranks were not told one by one or all are even.

    Parameters
    ----------
    experiment : Experiment
    held : bool
        Whether the kernels' times are those of their slowest ranks: these tell the imbalance then, as it is a part of
        them; else the steadiest of :data:`TOLD_BY` does.
    **settings
        Of :func:`ranksight.model.fitting.fit_series`.
    """
    if "ranks" not in experiment.parameters:
        return None
    found: dict[tuple[str, str], dict[tuple[float, ...], list[tuple[float, float]]]] = {}
    for run in experiment.runs:
        point = tuple(float(run.configuration[name]) for name in experiment.parameters)
        for name in ("time",) if held else TOLD_BY:
            for kernel, pair in _measured(experiment, run, name, every=held).items():
                found.setdefault((kernel, name), {}).setdefault(point, []).append(pair)
    told: dict[tuple[str, str], dict[tuple[float, ...], Array]] = {}
    for name in TOLD_BY:
        for kernel, cells in ((kernel, cells) for (kernel, other), cells in found.items() if other == name):
            if len(cells) >= FEWEST and kernel not in {key for key, _ in told}:
                told[kernel, name] = {point: np.median(pairs, axis=0) for point, pairs in cells.items()}
    told = {key: cells for key, cells in told.items() if max(most / mean for most, mean in cells.values()) >= UNEVEN}
    if not told:
        return None
    points = sorted({point for cells in told.values() for point in cells})
    none = np.full(2, np.nan)
    values = np.array([[cells.get(point, none) for point in points] for cells in told.values()])
    ratio = values[..., 0] / values[..., 1]
    seen = np.maximum(np.stack([np.nanmin(ratio, axis=1), np.nanmax(ratio, axis=1)], axis=1), 1.0)
    kernels, names = zip(*told, strict=True)
    both = np.concatenate([values[..., 0], values[..., 1]])[:, :, None]
    series = Series(experiment.parameters, np.array(points), both, 2 * kernels, 2 * names)
    return Imbalances(fit_varied(series, **settings), seen, held)


def _measured(experiment: Experiment, run: Run, name: str, every: bool) -> dict[str, tuple[float, float]]:
    """Largest and mean of a metric, by kernel, in a run of two ranks or more; sampled values tell none.

    The mean is over all ranks, those without the kernel too, where `every`; else over those that have it.
    """
    if run.sampled(name):
        return {}
    table = experiment.table(run, "counters")
    if table is None or name not in table.columns:
        return {}
    table = table[(table["rank"] != ALL_RANKS) & (table["kernel"] != WHOLE)].dropna(subset=[name])
    if table["rank"].nunique() < 2:
        return {}
    grouped = table.groupby("kernel", observed=True)[name]
    found = grouped.agg(["max", "sum", "count"])
    mean = found["sum"] / (float(run.configuration["ranks"]) if every else found["count"])
    pairs = zip(found.index, found["max"].tolist(), mean.tolist(), strict=True)
    return {str(kernel): (most, average) for kernel, most, average in pairs if average > 0}
