"""The fit of many series: reduce repetitions, screen, learn what is common, weigh, extrapolate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

import numpy as np

from ranksight.core.arrays import Array, Index, Mask
from ranksight.core.errors import InputError
from ranksight.core.log import progress
from ranksight.core.metrics import Kind, metric
from ranksight.core.onethread import one_thread
from ranksight.core.records import dataclass
from ranksight.model import priors
from ranksight.model.fitting.changes import Begun, loosely_met
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.fitting.iterations import hidden_slope, lines
from ranksight.model.fitting.joining import join, pick
from ranksight.model.fitting.outcome import (
    Searched,
    by_process,
    fitted_by_process,
    fitted_from,
    joined,
    of_measured,
)
from ranksight.model.process.solve import dividing, divisions
from ranksight.model.search import shrinkage
from ranksight.model.search.crosswise import LINE, Crossed
from ranksight.model.search.offer import Offer
from ranksight.model.search.screening import evidence, keep
from ranksight.model.series import noise
from ranksight.model.series.domains import NOT_DESCRIBED, Domains
from ranksight.model.series.noise import Location
from ranksight.model.series.reducing import Series
from ranksight.model.spaces import SPACES
from ranksight.model.spaces.default import Single
from ranksight.model.uncertainty import blocks, discrepancy, drift

BATCH = 250_000
"""Hypotheses x series in memory at once."""
MANY = 40_000
"""Series from which they are fitted share by share, which bounds memory and lets processes work at once."""


@one_thread()
def fit_series(
    series: Series,
    *,
    space: str | Offer = "default",
    over_repetitions: str = "auto",
    intervals: bool = True,
    iterations: str | None = None,
    grid: Mapping[int, float] | None = None,
    domains: Domains = NOT_DESCRIBED,
    jobs: int = 1,
    dask: str | None = None,
) -> Fitted:
    """Fit every series.

    Raises InputError when the space or the reduction is unknown.

    Parameters
    ----------
    space : str, Hypotheses or Crossed
        Name of a search space (:data:`ranksight.model.spaces.SPACES`), or hypotheses of one's own.
    over_repetitions : str
        How repetitions become one value (:func:`ranksight.model.series.noise.locate`).
    intervals : bool
        Learn how far series drift from their functions beyond the range measured; without it intervals hold within.
    iterations : str, optional
        The parameter that everything is a line in (:mod:`ranksight.model.fitting.iterations`); of no account where it
        is none of the series'.
    grid : mapping of int to float, optional
        Weights of the numbers of dimensions that the program's process grid may have, as traces show it
        (:func:`ranksight.model.structure.neighbourfit.dimensions_of`).
    domains : Domains, optional
        Memory domains that ranks share: within one, cost of work may follow the ranks in it, and stays when it is full.
    jobs, dask
        Processes, or the address of a Dask scheduler, for :data:`MANY` series and more; the answer does not depend on
        them.
    """
    line = series.parameters.index(iterations) if iterations in series.parameters else None
    if not len(series):
        raise InputError("there is no series to fit", "choose metrics that the experiment holds")
    if len(series) >= MANY:
        from ranksight.model.fitting.parallel import fit_shares

        settings = {"over_repetitions": over_repetitions, "intervals": intervals}
        settings |= {"iterations": iterations, "grid": grid, "domains": domains}
        return fit_shares(series, jobs, dask, space=space, **settings)
    sampled = series.sampled
    positive = _is_positive(series.metrics, series.values) | sampled
    groups = _groups(series.metrics, sampled)
    location = noise.locate_groups(series.values, series.worth, series.points, list(groups.values()), over_repetitions)
    begun = Begun.of(series, location)
    answered = by_process(series, begun.answered, space, intervals, line)
    if answered.any():
        parts = [np.flatnonzero(~answered), np.flatnonzero(answered)]
        times = series.select(parts[1])
        begun = begun.part(parts[1]).by_evidence()

        def fit(rows: Index, some: Location) -> Fitted:
            return fitted_by_process(times.select(rows), str(space), some, domains)

        by_the_process = begun.on_both_sides(fit(np.arange(len(times)), begun.answered), fit)
        if answered.all():
            return by_the_process
        rest = fit_series(series.select(parts[0]), over_repetitions=over_repetitions, grid=grid)
        return join([rest, by_the_process], parts)
    label, offered = space if isinstance(space, str) else "own", _offered(space, series.parameters, line)

    def along(x: Array, rows: Index, some: Location) -> Fitted:
        part = series.select(rows)
        shared = _groups(part.metrics, sampled[rows]), positive[rows]
        result = _Task(offered, x, *shared, intervals, line, grid).search(some)
        if line is not None:
            result.drift[:, line] = hidden_slope(part, result.found, line)[:, None]
        return fitted_from(part, label, some, positive[rows], result)

    def searched(rows: Index, some: Location) -> Fitted:
        divided = dividing(series.points)
        fitted = along(divisions(series.points, series.points), rows, some)
        # Only powers and logarithms of a division are those of the parameter, too.
        written = not (fitted.terms[..., 2] * divided).any()
        return of_measured(fitted, divided) if written else along(series.points, rows, some)

    fitted = searched(np.arange(len(series)), location)
    if line is not None:
        return replace(fitted, iterations=iterations)
    begun, later = begun.of_counts(fitted, searched)
    result = begun.on_both_sides(later, searched)
    loose = by_process(series, location, space, intervals, line, "requirement") & loosely_met(result)
    if not loose.any():
        return result
    parts = [np.flatnonzero(~loose), np.flatnonzero(loose)]
    weighed = fitted_by_process(series.select(parts[1]), str(space), location.part(parts[1]), domains)
    return weighed if loose.all() else join([pick(result, parts[0]), weighed], parts)


def _offered(space: str | Offer, parameters: tuple[str, ...], line: int | None) -> Offer:
    """The hypothesis space that was asked for, with the parameters that divide work and that count iterations set.

    Raises InputError when it is of another number of parameters.
    """
    offered = SPACES[space](len(parameters)) if isinstance(space, str) else space
    if isinstance(offered, Crossed) and "ranks" in parameters:
        offered = replace(offered, divisor=parameters.index("ranks"))
    if isinstance(offered, Single) and parameters == ("ranks",):
        offered = offered.along_ranks()
    if line is not None:
        offered = _along(offered, line)
    if offered.parameters != len(parameters):
        raise InputError(f"the space has {offered.parameters} parameters, the series {len(parameters)}")
    return offered


def _along(offered: Offer, line: int) -> Offer:
    """The space with nothing but lines along the axis of iterations."""
    if isinstance(offered, Crossed) and LINE in offered.factors:
        return replace(offered, line=line)
    if offered.parameters == 1:
        return lines()
    raise InputError("this search space has no lines in the iterations", "leave out --space or --iterations")


Group = tuple[str, bool]
"""A metric, and whether its values are made of samples."""


def _groups(metrics: tuple[str, ...], sampled: Mask) -> dict[Group, Index]:
    names = np.array(metrics, dtype=object)
    keys = dict.fromkeys(zip(metrics, sampled.tolist(), strict=True))
    return {key: np.flatnonzero((names == key[0]) & (sampled == key[1])) for key in keys}


@dataclass(frozen=True)
class _Batch:
    """Series of one metric that are fitted at once.

    `base` (s,) is the variance of a configuration's value.
    """

    group: Group
    kind: Kind
    location: Location
    positive: Mask
    base: Array


@dataclass(frozen=True)
class _Task:
    """What is the same for all batches of a fit; what its series share is learned once a metric."""

    space: Offer
    points: Array
    groups: Mapping[Group, Index]
    positive: Mask
    intervals: bool
    line: int | None = None
    grid: Mapping[int, float] | None = None
    common: dict[Group, Array] = field(default_factory=dict)  # how much more common forms are than thought, by metric

    def search(self, location: Location) -> Searched:
        """What is found of all series."""
        parts = [self._metric(group, rows, location.part(rows)) for group, rows in self.groups.items()]
        return joined(parts, np.argsort(np.concatenate(list(self.groups.values()))))

    def _metric(self, group: Group, rows: Index, location: Location) -> Searched:
        """Fit all series of one metric, batch by batch; the first batch teaches what its series share."""
        name, sampled = group
        kind = noise.behaviour(name, sampled)
        positive = self.positive[rows]
        base = discrepancy.configuration_variance(location, kind)
        step = max(1, BATCH // max(1, self.space.load))
        # A shuffled order, so that the first batch speaks for all; seeded, so that results repeat.
        many = len(base) > step
        order = np.random.default_rng(0).permutation(len(base)) if many else np.arange(len(base))
        parts = []
        for start in range(0, len(base), step):
            batch = order[start : start + step]
            shares = location.part(batch), positive[batch], base[batch]
            parts.append(self._batch(_Batch(group, kind, *shares)))
            progress(f"functions of {name}", start + len(batch), len(base))
        return joined(parts, np.argsort(order))

    def _batch(self, batch: _Batch) -> Searched:
        kind, location, positive, base = batch.kind, batch.location, batch.positive, batch.base
        problem, screened = self.space.screen(self.points, location, positive, kind)
        v0, d0 = discrepancy.alone(problem, screened, base, location.freedom)
        score = evidence(screened, problem.count, v0, d0)
        if batch.group in self.common:
            shift = self.common[batch.group]
        else:
            self.common[batch.group], shift = shrinkage.shift(problem, screened, score)
        score = shrinkage.shifted(score, shift)
        score = score + shrinkage.on_one_grid(problem, screened, score, self.grid)
        kept_forms = keep(problem, screened, score, v0, d0)
        of_blocks = kind == "requirement" and self.points.shape[1] == 1
        if of_blocks and (rounded := blocks.rounding(self.points, location, kept_forms)).any():
            v0 = np.maximum(v0, rounded)
            score = shrinkage.shifted(evidence(screened, problem.count, v0, d0), shift)
            kept_forms = keep(problem, screened, score, v0, d0)
        freedom = np.maximum(problem.count - (kept_forms.members[:, 0] >= 0).sum(axis=1), 0).astype(np.float64)
        pace = drift.pace(kept_forms.around, freedom, (batch.group[0],) * len(base), location.samples)
        axes = self._axes()
        extrapolated = np.zeros((len(base), self.points.shape[1], 2))
        extrapolated[:, axes] = (pace * priors.DRIFT)[:, None, None]
        return Searched(kept_forms, extrapolated, pace)

    def _axes(self) -> list[int]:
        """Parameters along which series may leave their functions: none without intervals, and never iterations."""
        return [axis for axis in range(self.points.shape[1]) if self.intervals and axis != self.line]


def _is_positive(names: tuple[str, ...], values: Array) -> Mask:
    """Which series (s, n, r) are held above zero: none of their values is at or below it, and their metric is no
    unknown with a sign."""
    signs = {name: metric(name).signed for name in set(names)}
    signed = np.array([signs[name] for name in names], dtype=bool)
    with np.errstate(invalid="ignore"):
        return ~(values <= 0).any(axis=(1, 2)) | (
            ~signed & ~(values < 0).any(axis=(1, 2)) & (values > 0).any(axis=(1, 2))
        )
