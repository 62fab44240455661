"""Requirements that follow the number of neighbours on a Cartesian process grid.

What a rank does for its halo is done once for each neighbour: with n_d neighbours in direction d, a kernel's count on a
rank is ``a + sum_d n_d b_d``, a and b_d functions of the other parameters alone (that a rank's partners and volumes are
equations of its number is Panadero et al.'s general communication). The coefficients come from all ranks of all runs by
least squares, exact for a deterministic count; the grid at any number of ranks is known
(:mod:`ranksight.comm.patterns.grid`), and with it mean and maximum over ranks. Bytes, and the work of packing them, go
with the faces of a block as well: ``a + sum_d n_d f_d b_d``, where a block on a grid of x by y by z ranks has 1 / (y z)
of the domain's face in x. Where the law does not hold to a fraction of a percent, or the neighbours do not vary
enough to separate the directions, nothing is claimed. Nor is it where some rank's count would be below zero, as that
of a rank without neighbours where `a` is: no such law holds there.

Few ranks fit several grids: up to eight, a periodic domain sends to the same ranks as one that ends. Every grid that
fits the pairs of ranks and the counts is a hypothesis. The prediction is the weighted median over them, the interval
all but the unlikely ones, and :meth:`Neighbours.remark` names the run that decides.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from ranksight.comm.patterns.grid import MOST_DIMENSIONS, Cartesian, cartesian_grids
from ranksight.errors import InputError
from ranksight.experiment import ALL_RANKS, Experiment, Run
from ranksight.metrics import metric
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.fitting.fitting import fit_series
from ranksight.model.plaindata import reading
from ranksight.model.series.series import Series
from ranksight.model.structure.levels import COUNTS, Levels, fit_levels
from ranksight.model.uncertainty import forecast
from ranksight.model.uncertainty.forecast import Forecast

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
CLOSE = 5e-3
"""Largest error of the law, relative to the kernel's mean: that of counts, with what alignment changes in them."""
NEAR = 0.15
"""The same for the root mean square error of what varies over ranks: loads by cache level, which depend on addresses as
well, and bytes, where neighbours have unlike parts of the domain."""
EXACT = 1e-6
"""Largest relative error of rounding."""
LEADING = frozenset({"visits", "instructions", "messages", "bytes_sent"})
"""Metrics that say how often a kernel works; its others follow the grid if one of these does."""
SENT = frozenset({"messages", "bytes_sent"})
"""Metrics of which no neighbour gets less than nothing."""
ALIKE = 1.3
"""Largest ratio of the costs of two directions where nothing else separates the law from growth with the ranks."""
MIXED = 0.5
"""Prior weight of all grids that are periodic in some dimensions only, where one that is in all or none has 1."""
UNEQUAL = 0.05
"""Factor of the weight of a grid on which directions cost differently, where on another they cost the same."""
ONCE = 0.5
"""Prior weight of sending once to a neighbour that is met both ways, where sending both ways has 1."""
TERMS = 1 + MOST_DIMENSIONS
CANDIDATES = (*range(2, 33), 36, 48, 49, 54, 60, 64, 72, 96, 100, 125)
"""Numbers of ranks that are tried for the run that decides."""
MOST = 0.98
"""Share of what the best run separates from which on a smaller one is named."""
APART = 1e-2
"""Relative difference from which on predictions of two grids differ."""


@dataclass(frozen=True)
class Neighbours:
    """The law of the s series that follow it, on each of g grids; none of these decided where g > 1.

    Attributes
    ----------
    parameters, others : tuple of str
        Of the model, and those beside ``ranks``.
    grids : tuple of Cartesian
    measured : tuple of int
        Numbers of ranks whose partners are known.
    kernels, metrics, over_ranks : tuple of str
        Of the series, and how each reduces over ranks.
    coefficients : Fitted, Levels or (c,) values
        Distinct coefficients as functions of the other parameters; plain values where no other parameter varied.
    index : (s, g, 1 + MOST_DIMENSIONS) int
        Which coefficients a series has on a grid: a, then b_1, b_2 and so on.
    weight : (s, g)
        Of a grid for a series; 0 where it does not fit.
    residual : (s, g)
        Root mean square error of the law over ranks, relative to the mean; 0 where it is exact.
    faces : (s, g) bool
        Whether the costs go with the faces of a block towards the neighbours.
    """

    parameters: tuple[str, ...]
    others: tuple[str, ...]
    grids: tuple[Cartesian, ...]
    measured: tuple[int, ...]
    kernels: tuple[str, ...]
    metrics: tuple[str, ...]
    over_ranks: tuple[str, ...]
    coefficients: Fitted | Levels | Array
    index: Ints
    weight: Array
    residual: Array
    faces: NDArray[np.bool_]

    @property
    def grid(self) -> Cartesian:
        """The grid of the highest weight."""
        return self.grids[int(np.argmax(self.weight.sum(axis=0)))]

    def predict(self, points: Array, level: float = 0.9) -> Forecast:
        """Forecast the s series at `points` (k, m): weighted median and quantiles over the grids."""
        points = np.atleast_2d(np.asarray(points, dtype=np.float64))
        each = self._on_grids(points, level)
        sound = each.status == forecast.OK
        weight = np.where(sound, self.weight[:, :, None], 0.0)
        tail = (1 - level) / 2
        value = _quantile(each.value, weight, 0.5)
        lower, upper = (_quantile(end, weight, at) for end, at in ((each.lower, tail), (each.upper, 1 - tail)))
        # Where no grid has an answer, the likeliest one's reason is given.
        best = self.weight.argmax(axis=1)[:, None, None]
        some = sound.any(axis=1, where=self.weight[:, :, None] > 0)
        status = np.where(some, forecast.OK, np.take_along_axis(each.status, best, axis=1)[:, 0]).astype(np.intp)
        reason = np.where(some, "", np.take_along_axis(each.reason, best, axis=1)[:, 0].astype(object)).astype(object)
        low, high = (_quantile(each.value, weight, at) for at in (tail, 1 - tail))
        wide = some & (high > forecast.WIDEST * low)
        if wide.any():
            status[wide] = forecast.WIDE
            open_points = np.flatnonzero(wide.any(axis=0))
            reason[wide] = self._undecided(points[open_points[[0, -1]]])
        form = np.ones(value.shape)
        return Forecast(value, lower, upper, status, reason, form, 1 - form, level)

    def _on_grids(self, points: Array, level: float) -> Forecast:
        """Forecast of each series on each grid, arrays (s, g, k); NaN where the grid does not fit the series."""
        ends, status, reason = self._coefficients_at(points, level)
        value, lower, upper = (np.full((*self.weight.shape, len(points)), np.nan) for _ in range(3))
        broken = np.zeros(value.shape, dtype=bool)
        ranks, over = points[:, self.parameters.index("ranks")], np.array(self.over_ranks)
        for k, count in enumerate(ranks):
            if count < 1 or not float(count).is_integer():
                status[:, :, k], reason[:, :, k] = forecast.DOMAIN, f"{count:g} ranks cannot be placed on a grid"
                continue
            for g, grid in enumerate(self.grids):
                for faced in (False, True):
                    rows = np.flatnonzero((self.weight[:, g] > 0) & (self.faces[:, g] == faced))
                    if not len(rows):
                        continue
                    basis, times = _classes(grid, int(count), faced)
                    for target, end in zip((value, lower, upper), ends, strict=True):
                        mine = end[rows, g, :, k]
                        each = mine @ basis.T
                        if target is value:
                            least = -CLOSE * np.abs(mine @ np.abs(basis).max(axis=0))
                            broken[rows, g, k] = each.min(axis=1) < least
                        each = np.maximum(each, 0.0)
                        target[rows, g, k] = _reduced(each, times, over[rows])
        value, lower, upper = (np.where(broken, np.nan, end) for end in (value, lower, upper))
        status = np.where(broken, forecast.NOT_POSITIVE, status)
        reason = np.where(broken, forecast.REASONS[forecast.NOT_POSITIVE], reason)
        reach = float(ndtri((1 + level) / 2)) * self.residual[:, :, None] * np.abs(value)
        # Bytes that no law meets exactly leave the faces by more with every doubling of the ranks.
        with np.errstate(divide="ignore", invalid="ignore"):
            doublings = np.fmax(np.log2(ranks / self.measured[-1]), 0.0)
        reach *= 1 + np.outer([name == "bytes_sent" for name in self.metrics], doublings)[:, None]
        down, up = np.minimum(lower, upper) - reach, np.maximum(lower, upper) + reach
        form = np.ones(value.shape)
        return Forecast(value, np.maximum(down, 0.0), up, status, reason, form, 1 - form, level)

    def _coefficients_at(
        self, points: Array, level: float
    ) -> tuple[list[Array], NDArray[np.intp], NDArray[np.object_]]:
        """Value and ends of all coefficients (s, g, 1 + MOST_DIMENSIONS, k), and status and reason (s, g, k)."""
        shape = (*self.weight.shape, len(points))
        status, reason = np.full(shape, forecast.OK, dtype=np.intp), np.full(shape, "", dtype=object)
        if isinstance(self.coefficients, np.ndarray):
            values = np.broadcast_to(self.coefficients[self.index][..., None], (*self.index.shape, len(points)))
            return [values] * 3, status, reason
        columns = [self.parameters.index(name) for name in self.others]
        part = self.coefficients.predict(points[:, columns], level)
        zero = (part.value == 0) & (part.lower == 0) & (part.upper == 0)
        bad = ((part.status != forecast.OK) & ~zero)[self.index]
        first = bad.argmax(axis=2)[:, :, None]
        said, why = (
            np.take_along_axis(given[self.index], first, axis=2)[:, :, 0] for given in (part.status, part.reason)
        )
        wrong = bad.any(axis=2)
        status, reason = np.where(wrong, said, status), np.where(wrong, why, reason)
        return [x[self.index] for x in (part.value, part.lower, part.upper)], status, reason

    def remark(self, points: Array) -> str:
        """What the grids that fit say differently at `points` (k, m), and the run that decides; empty if they agree."""
        return self._undecided(np.atleast_2d(np.asarray(points, dtype=np.float64)))

    def _undecided(self, points: Array) -> str:
        asked = points[:, self.parameters.index("ranks")]
        points = points[np.isfinite(asked) & (asked >= 1) & (asked == np.floor(asked))]
        if len(self.grids) < 2 or not len(points):
            return ""
        said = self._labels(points)
        open_rows = np.flatnonzero([any(len({*row[:, k]} - {-1}) > 1 for k in range(row.shape[1])) for row in said])
        if not len(open_rows):
            return ""
        weight = self.weight[open_rows].sum(axis=0)
        likely = [g for g in np.argsort(-weight, kind="stable") if weight[g] > 0]
        grids = list(dict.fromkeys(self.grids[g].text for g in likely))
        more = f" and {len(grids) - 3} more" if len(grids) > 3 else ""
        known = f"the runs with {_listed(self.measured)} ranks"
        what = f"{known} fit several process grids ({' | '.join(grids[:3])}{more})"
        if len(grids) == 1:
            what = (
                f"{known} do not show how often a rank on a {grids[0]}, sends to itself or to one that it meets twice"
            )
        names = list(dict.fromkeys(self.kernels[i] for i in open_rows))
        kernels = ", ".join(names[:2]) + (f" and {len(names) - 2} more" if len(names) > 2 else "")
        metrics = " and ".join(list(dict.fromkeys(self.metrics[i] for i in open_rows))[:2])
        run = self._deciding(points[:1], said[open_rows], open_rows)
        decided = f"; trace {run} ranks to decide" if run else ""
        return f"{what}: {metrics} of {kernels} are uncertain{decided}"

    def _labels(self, points: Array) -> Ints:
        """Numbers (s, g, k) that are the same where grids predict the same for a series; -1 where there is nothing."""
        value = self._on_grids(points, 0.9).value
        found = np.full(value.shape, -1, dtype=np.int64)
        for g in range(value.shape[1]):
            known = np.isfinite(value[:, g]) & (self.weight[:, g] > 0)[:, None]
            found[:, g] = np.where(known, g, -1)
            for other in range(g - 1, -1, -1):
                with np.errstate(invalid="ignore"):
                    near = np.abs(value[:, g] - value[:, other]) <= APART * np.abs(value[:, g])
                found[:, g] = np.where(known & near & (found[:, other] >= 0), found[:, other], found[:, g])
        return found

    def _deciding(self, point: Array, asked: Ints, rows: NDArray[np.intp]) -> int | None:
        """The fewest ranks, not measured, whose run separates nearly all of the grids that differ at those asked."""
        tried = np.array([p for p in CANDIDATES if p not in self.measured], dtype=np.float64)
        points = np.repeat(point, len(tried), axis=0)
        points[:, self.parameters.index("ranks")] = tried
        shown = self._labels(points)[rows]
        share = np.ones(len(tried))
        for row, labels, weight in zip(asked, shown, self.weight[rows], strict=True):
            differ = np.outer(weight, weight) * (row[:, None] != row[None]).any(axis=2)
            apart = np.einsum("gh,ghk->k", differ, labels[:, None] != labels[None]) / differ.sum()
            share = np.minimum(share, apart)
        return int(tried[int(np.argmax(share >= MOST * share.max()))]) if share.any() else None

    def formula(self, i: int) -> str:
        """The law of series `i` on its likeliest grid, as people read it."""
        g = int(np.argmax(self.weight[i]))
        dimensions = self.grids[g].dimensions
        if isinstance(self.coefficients, np.ndarray):
            written = [f"{x:.4g}" for x in self.coefficients[self.index[i, g, : 1 + dimensions]]]
        else:
            written = [self.coefficients.formula(int(at)) for at in self.index[i, g, : 1 + dimensions]]
        each = "neighbours_{0} * face_{0}" if self.faces[i, g] else "neighbours_{0}"
        law = " + ".join(
            [f"({written[0]})", *(f"{each.format(d + 1)} * ({text})" for d, text in enumerate(written[1:]))]
        )
        several = len({grid.text for grid, weight in zip(self.grids, self.weight[i], strict=True) if weight > 0})
        return f"{law} on a {self.grids[g].text}" + (f" ({several} grids fit)" if several > 1 else "")

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""
        given = self.coefficients
        return {
            "parameters": list(self.parameters),
            "others": list(self.others),
            "grids": [
                {"periodic": list(grid.periodic), "rising": grid.rising, "ring": grid.ring} for grid in self.grids
            ],
            "measured": list(self.measured),
            "kernels": list(self.kernels),
            "metrics": list(self.metrics),
            "over_ranks": list(self.over_ranks),
            "kind": "values" if isinstance(given, np.ndarray) else "levels" if isinstance(given, Levels) else "fitted",
            "coefficients": given.tolist() if isinstance(given, np.ndarray) else given.to_dict(),
            "index": self.index.tolist(),
            "weight": self.weight.tolist(),
            "residual": self.residual.tolist(),
            "faces": self.faces.tolist(),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Neighbours:
        """Rebuild from :meth:`to_dict`; damaged content raises InputError."""
        with reading("'neighbours'"):
            names = {
                key: tuple(map(str, content[key]))
                for key in ("parameters", "others", "kernels", "metrics", "over_ranks")
            }
            grids = tuple(
                Cartesian(len(each["periodic"]), tuple(map(bool, each["periodic"])), bool(each["rising"]), each["ring"])
                for each in content["grids"]
            )
            measured = tuple(int(x) for x in content["measured"])
            kind, given = content["kind"], content["coefficients"]
            coefficients: Fitted | Levels | Array
            if kind == "values":
                coefficients = np.array(given, dtype=np.float64)
            else:
                coefficients = (Levels if kind == "levels" else Fitted).from_dict(given)
            index = np.array(content["index"], dtype=np.int64)
            weight, residual = (np.array(content[key], dtype=np.float64) for key in ("weight", "residual"))
            faces = np.array(content["faces"], dtype=bool)
        size = len(names["kernels"])
        held = len(coefficients) if isinstance(coefficients, np.ndarray) else len(coefficients.kernels)
        shape = (size, len(grids))
        if (
            not size
            or not grids
            or {len(names["metrics"]), len(names["over_ranks"])} != {size}
            or index.shape != (*shape, TERMS)
            or {weight.shape, residual.shape, faces.shape} != {shape}
            or not ((index >= 0) & (index < held)).all()
            or not (weight.sum(axis=1) > 0).all()
        ):
            raise InputError("'neighbours' does not fit together", "fit the model again")
        return cls(
            grids=grids,
            measured=measured,
            coefficients=coefficients,
            index=index,
            weight=weight,
            residual=residual,
            faces=faces,
            **names,
        )


def _listed(numbers: Sequence[int]) -> str:
    *head, last = map(str, numbers)
    return f"{', '.join(head)} and {last}" if head else last


def _quantile(values: Array, weight: Array, at: float) -> Array:
    """Weighted quantile over the second axis; NaN where nothing has a weight."""
    order = np.argsort(np.where(weight > 0, values, np.inf), axis=1)
    sorted_weight = np.take_along_axis(weight, order, axis=1)
    total = sorted_weight.sum(axis=1, keepdims=True)
    reached = np.cumsum(sorted_weight, axis=1) >= at * total - EXACT * total
    chosen = np.take_along_axis(order, reached.argmax(axis=1)[:, None], axis=1)
    found = np.take_along_axis(values, chosen, axis=1)[:, 0]
    return np.where(total[:, 0] > 0, found, np.nan)


def _classes(grid: Cartesian, ranks: int, faced: bool) -> tuple[Array, Ints]:
    """Distinct rows of the basis (c, 1 + MOST_DIMENSIONS) at a number of ranks, and how many ranks have each."""
    rows, times = (grid.surface if faced else grid).classes(ranks)
    basis = np.zeros((len(rows), TERMS))
    basis[:, 0] = 1.0
    basis[:, 1 : 1 + grid.dimensions] = rows * (grid.faces(ranks) if faced else 1.0)
    return basis, times


def _reduced(values: Array, times: Ints, over: NDArray[np.str_]) -> Array:
    """Values (s, c) of classes that hold `times` ranks each, reduced over all ranks as `over` (s,) says."""
    total = values @ times
    ways = [over == "max", over == "min", over == "sum"]
    return np.asarray(np.select(ways, [values.max(axis=1), values.min(axis=1), total], total / times.sum()))


def grids_of(experiment: Experiment) -> tuple[tuple[Cartesian, ...], tuple[int, ...]]:
    """The process grids that fit who sends to whom in all runs, by their table ``peers``, and the ranks of these runs.

    Its columns are ``rank``, ``operation`` and ``peer``, ranks of the whole program. One operation whose pairs
    are those of a grid is enough: a program may send other messages by other operations. Where several operations
    are, their grids are those that fit all of them.
    """
    talks: dict[int, dict[str, set[tuple[int, int]]]] = {}
    for run in experiment.runs:
        ranks = int(run.configuration["ranks"])
        if ranks in talks or (table := experiment.table(run, "peers")) is None:
            continue
        talks[ranks] = {
            str(operation): set(zip(part["rank"].tolist(), part["peer"].tolist(), strict=True))
            for operation, part in table.groupby("operation", observed=True)
        }
    # An operation that a run lacks was not used there: one rank has nobody to send to.
    operations = sorted(set().union(*talks.values()))
    each = [cartesian_grids([(ranks, said.get(name, set())) for ranks, said in talks.items()]) for name in operations]
    found = [grids for grids in each if grids]
    common = [grid for grid in found[0] if all(grid in grids for grids in found)] if found else []
    return tuple(common), tuple(sorted(talks))


def _priors(grids: Sequence[Cartesian]) -> Array:
    """Weights of grids before their counts are looked at; domains are periodic in all dimensions or none, mostly."""
    mixed = np.array([len(set(grid.periodic)) > 1 for grid in grids])
    size = np.where(mixed, MIXED / np.maximum([2**grid.dimensions - 2 for grid in grids], 1), 1.0)
    return np.asarray(size * np.where([grid.ring == "peers" for grid in grids], ONCE, 1.0), dtype=np.float64)


Tables = Callable[[Run], "pd.DataFrame | None"]


def fit_neighbours(
    experiment: Experiment,
    names: Collection[tuple[str, str]],
    tables: Tables,
    everywhere: bool = False,
    **settings: Any,
) -> Neighbours | None:
    """Find the requirements that follow the number of neighbours; None where the program has no grid, or none does.

    Parameters
    ----------
    experiment : Experiment
    names : collection of (kernel, metric)
        Series to look at; requirements only.
    tables : callable
        Gives each run's table ``kernel``, ``rank`` and one column a metric, or None.
    everywhere : bool
        Whether means are over the ranks that have a kernel (counters) and not over all (messages): the law, which knows
        all ranks, then says nothing of what some ranks of a run lack.
    **settings
        Of :func:`ranksight.model.fitting.fitting.fit_series`, for the coefficients.
    """
    if "ranks" not in experiment.parameters:
        return None
    grids, measured = grids_of(experiment)
    wanted = {key for key in names if metric(key[1]).kind == "requirement" and metric(key[1]).over_ranks in _ADDED}
    if not grids or not wanted:
        return None
    others = tuple(name for name in experiment.parameters if name != "ranks")
    groups = _gather(experiment, wanted, tables, others, everywhere)
    shared = sorted(set.intersection(*(set(group.names) for group in groups.values()))) if groups else []
    if not shared:
        return None
    for place, group in groups.items():
        at = {name: row for row, name in enumerate(group.names)}
        groups[place] = Group(group.ranks, shared, group.values[[at[name] for name in shared]])
    metrics = np.array([name for _, name in shared], dtype=object)
    laws = [[_solved(groups.values(), grid, faced) for faced in (False, True)] for grid in grids]
    plain, faced = (np.stack([each[at].follows for each in laws], axis=1) for at in (0, 1))
    # Where how often a kernel works does not follow the grid, a likeness in its loads or cache misses is chance.
    leading = plain & np.isin(metrics, list(LEADING))[:, None]
    leading |= faced & (metrics == "bytes_sent")[:, None]
    lawful: dict[str, NDArray[np.bool_]] = {}
    for (kernel, _), on in zip(shared, leading, strict=True):
        lawful[kernel] = lawful.get(kernel, np.zeros(len(grids), dtype=bool)) | on
    allowed = np.stack([lawful[kernel] for kernel, _ in shared])
    error, equal = (
        [np.stack([getattr(each[at], name) for each in laws], axis=1) for at in (0, 1)]
        for name in ("residual", "equal")
    )
    faced &= (
        np.isin(metrics, list(COUNTS))[:, None] & (metrics != "messages")[:, None] & (~plain | (error[1] < error[0]))
    )
    fits = (plain | faced) & allowed
    residual, same = (np.where(faced, *each[::-1]) for each in (error, equal))
    # A grid whose law is exact makes those unlikely that only come near.
    exact = fits & (residual == 0)
    fits &= exact | ~exact.any(axis=1, keepdims=True)
    rows, columns = np.flatnonzero(fits.any(axis=1)), np.flatnonzero(fits.any(axis=0))
    if not len(rows):
        return None
    solved = np.stack(
        [np.where(faced[:, g, None, None], both[1].solved, both[0].solved) for g, both in enumerate(laws)], axis=1
    )
    solved = np.where(fits[..., None, None], solved, 0.0)[np.ix_(rows, columns)]
    flat = _rounded(solved.reshape(-1, len(groups)))
    distinct, first, index = np.unique(flat, axis=0, return_index=True, return_inverse=True)
    coefficients: Fitted | Levels | Array = distinct[:, 0]
    if len(groups) > 1:
        each = [shared[rows[at // (len(columns) * TERMS)]] for at in first]
        points = np.array(list(groups), dtype=np.float64).reshape(len(groups), len(others))
        kernels_of, metrics_of = zip(*each, strict=True)
        series = Series(others, points, distinct[:, :, None], kernels_of, metrics_of)
        coefficients = fit_levels(series, **settings) or fit_series(series, **settings)
    kept = tuple(grids[g] for g in columns)
    return Neighbours(
        parameters=experiment.parameters,
        others=others,
        grids=kept,
        measured=measured,
        kernels=tuple(shared[i][0] for i in rows),
        metrics=tuple(shared[i][1] for i in rows),
        over_ranks=tuple(metric(shared[i][1]).over_ranks for i in rows),
        coefficients=coefficients,
        index=index.reshape(len(rows), len(columns), TERMS),
        weight=(fits * np.where(same, 1.0, UNEQUAL))[np.ix_(rows, columns)] * _priors(kept),
        residual=residual[np.ix_(rows, columns)],
        faces=faced[np.ix_(rows, columns)],
    )


def _rounded(values: Array) -> Array:
    """To twelve digits, so that what differs by rounding is the same."""
    with np.errstate(divide="ignore"):
        unit = 10.0 ** np.where(values == 0, 0, np.floor(np.log10(np.abs(values))) - 11)
    return np.asarray(np.round(values / unit) * unit)


@dataclass(frozen=True)
class _Law:
    """One law of all series on one grid.

    Attributes
    ----------
    solved : (s, 1 + MOST_DIMENSIONS, groups)
        Coefficients.
    residual : (s,)
        Relative error; 0 where the law is exact.
    follows : (s,) bool
        Whether the law holds.
    equal : (s,) bool
        Whether all directions cost the same, or about the same where the law is not exact.
    """

    solved: Array
    residual: Array
    follows: NDArray[np.bool_]
    equal: NDArray[np.bool_]


def _solved(groups: Collection[Group], grid: Cartesian, faced: bool) -> _Law:
    """The law with or without faces: with one cost for all directions where that is exact, else one for each."""
    size = len(next(iter(groups)).names)
    solved = np.zeros((size, TERMS, len(groups)))
    residual, follows, equal = np.zeros(size), *np.ones((2, size), dtype=bool)
    for at, group in enumerate(groups):
        one = _Fit.of(group, grid, faced)
        solved[:, : 1 + grid.dimensions, at] = one.solution
        residual, follows = np.maximum(residual, one.error), follows & one.holds
        costs = one.solution[:, 1:]
        same = np.ptp(costs, axis=1) <= EXACT * np.abs(costs).max(axis=1)
        equal &= np.where(one.error > 0, _alike(costs), same)
    return _Law(solved, residual, follows, equal)


@dataclass(frozen=True)
class _Fit:
    """The law of all series at one combination of the other parameters.

    Attributes
    ----------
    solution : (s, 1 + d)
    error : (s,)
        Relative; 0 where the law is exact.
    holds : (s,) bool
    """

    solution: Array
    error: Array
    holds: NDArray[np.bool_]

    @classmethod
    def of(cls, group: Group, grid: Cartesian, faced: bool) -> _Fit:
        """Solve by least squares.

        The law is not claimed where it has as many coefficients as there are different ranks in the runs, unless all
        directions cost about the same: it then fits whatever depends on the number of ranks. A halo's faces cost about
        the same in every direction, while work that grows with the ranks would have to double its cost from one
        direction to the next. How much the costs differ is then the law's error.
        """
        d = grid.dimensions
        values, names = group.values, np.array([name for _, name in group.names], dtype=object)
        loose = ~np.isin(names, list(COUNTS)) | (names == "bytes_sent")
        scale = np.abs(values).mean(axis=1)
        placed = grid.surface if faced else grid
        sides = [placed.sides(p) * np.tile(grid.faces(p) if faced else np.ones(d), 2) for p in group.ranks]
        near = np.concatenate([each[:, :d] + each[:, d:] for each in sides])
        rows = [np.unique(each[:, :d] + each[:, d:], axis=0) for each in sides]
        solution, error = np.zeros((len(values), 1 + d)), np.full(len(values), np.inf)
        holds = np.zeros(len(values), dtype=bool)

        def take(which: NDArray[np.bool_], found: Array, missed: Array) -> None:
            """Take what is found where nobody gets less than nothing, and each neighbour a whole number of messages."""
            found = np.where(np.abs(found) < EXACT * scale[:, None], 0.0, found)
            which = which & ~(np.isin(names, list(SENT)) & (found < 0).any(axis=1))
            whole = np.abs(found - np.round(found)).max(axis=1) <= EXACT * np.maximum(scale, 1.0)
            which &= (names != "messages") | (missed > 0) | whole
            solution[which], error[which], holds[which] = found[which], missed[which], True

        for constant in (True, False):
            # Without a constant a rank that has no neighbour says nothing.
            seen = sum(len(each) if constant else int(each.any(axis=1).sum()) for each in rows)
            full, missed, scatter = _each_direction(np.concatenate(sides), near, values, constant)
            if full is None:
                continue
            # Steps up or down by less than the error are none.
            steps = np.abs(full[:, 1:]) * np.ptp(near, axis=0)
            clear = (steps > (np.maximum(CLOSE, 2 * scatter) * scale)[:, None]).any(axis=1)
            close = np.where(loose, scatter <= NEAR, missed <= CLOSE * scale) & clear & ~holds
            size = np.where(scatter > EXACT, scatter, 0.0)
            if seen > constant + d:
                take(close, full, size)
            else:
                mean = full[:, 1:].mean(axis=1, keepdims=True)
                unlike = np.abs(full[:, 1:] / np.where(mean > 0, mean, 1.0) - 1).max(axis=1)
                take(close & _alike(full[:, 1:]), full, np.hypot(size, unlike))
        total = near.sum(axis=1)
        for constant in (True, False):
            basis = np.stack([np.ones(len(total)), total], axis=1)[:, not constant :]
            if np.ptp(total) == 0 or sum(map(len, rows)) <= basis.shape[1]:
                continue
            found = np.linalg.lstsq(basis, values.T, rcond=None)[0].T
            difference = found @ basis.T - values
            clear = (np.abs(found[:, -1]) * np.ptp(total) > CLOSE * scale) & (scale > 0)
            exact = (np.abs(difference).max(axis=1) <= EXACT * scale) & clear
            size = np.sqrt((difference**2).mean(axis=1)) / np.where(scale > 0, scale, 1.0)
            costs = np.repeat(found[:, -1:], d, axis=1)
            base = found[:, :1] if constant else np.zeros((len(found), 1))
            near_by = loose & clear & ~holds & (size <= NEAR)
            take(exact | near_by, np.concatenate([base, costs], axis=1), np.where(exact, 0.0, size))
        return cls(solution, np.where(holds, error, 0.0), holds)


def _each_direction(sides: Array, near: Array, values: Array, constant: bool) -> tuple[Array | None, Array, Array]:
    """A constant, if there is one, and a cost for each direction (s, 1 + d), and how well they fit.

    Returns
    -------
    The coefficients, None where the runs do not separate the directions; largest and relative root mean square error
    (s,).
    """
    d = near.shape[1]
    columns, means = [np.ones(len(near))] * constant, np.zeros((1 + d, int(constant)))
    means[0] = 1.0
    for at in range(d):
        # Lower and upper faces differ a little (alignment); a direction has as many of the one as of the other.
        lower, upper = sides[:, at], sides[:, d + at]
        parts = [lower + upper] if (lower == upper).all() else [lower, upper]
        columns += parts
        share = np.zeros((1 + d, len(parts)))
        share[1 + at] = 1 / len(parts)
        means = np.concatenate([means, share], axis=1)
    basis = np.stack(columns, axis=1)
    solution = np.linalg.lstsq(basis, values.T, rcond=None)[0].T
    difference = solution @ basis.T - values
    scale = np.abs(values).mean(axis=1)
    scatter = np.sqrt((difference**2).mean(axis=1)) / np.where(scale > 0, scale, 1.0)
    known = np.linalg.matrix_rank(basis) == basis.shape[1]
    costs: Array = (solution @ means.T).astype(np.float64)
    return costs if known else None, np.abs(difference).max(axis=1), scatter


def _alike(costs: Array) -> NDArray[np.bool_]:
    """Whether the directions of each row cost about the same."""
    return np.asarray((costs.min(axis=1) > 0) & (costs.max(axis=1) <= ALIKE * costs.min(axis=1)))


_ADDED = ("mean", "max", "sum", "min")


@dataclass(frozen=True)
class Group:
    """All runs at one combination of the other parameters.

    Attributes
    ----------
    ranks : tuple of int
        Of each run.
    names : list of (kernel, metric)
    values : (series, all ranks of all runs)
    """

    ranks: tuple[int, ...]
    names: list[tuple[str, str]]
    values: Array


def _gather(
    experiment: Experiment,
    wanted: Collection[tuple[str, str]],
    tables: Tables,
    others: tuple[str, ...],
    everywhere: bool,
) -> dict[tuple[float, ...], Group]:
    """The runs at each combination of the other parameters.

    Only the first run of a configuration and metric is taken, since counts repeat.
    """
    columns = {name for _, name in wanted}
    partial: set[tuple[str, str]] = set()
    parts: dict[tuple[float, ...], dict[int, dict[tuple[str, str], Array]]] = {}
    for run in experiment.runs:
        ranks = int(run.configuration["ranks"])
        table = tables(run)
        if table is None or (table["rank"] == ALL_RANKS).any():
            continue
        place = tuple(float(run.configuration[name]) for name in others)
        here = parts.setdefault(place, {}).setdefault(ranks, {})
        for name in columns.intersection(table.columns):
            if run.sampled(name):
                continue  # of some ranks and not of others by chance
            wide = table.pivot(index="kernel", columns="rank", values=name).reindex(columns=range(ranks))
            wide = wide.dropna(how="all")
            if everywhere and metric(name).over_ranks in ("mean", "min"):
                partial |= {(str(kernel), name) for kernel in wide.index[wide.isna().any(axis=1)]}
            wide = wide.fillna(0.0)
            for kernel, row in zip(wide.index, wide.to_numpy(dtype=np.float64), strict=True):
                if (str(kernel), name) in wanted:
                    here.setdefault((str(kernel), name), row)
    groups: dict[tuple[float, ...], Group] = {}
    for place, runs in sorted(parts.items()):
        names = sorted(set().union(*runs.values()) - partial)
        # A kernel that a run does not have did nothing there: pack is not called where nobody is near.
        values = [np.stack([row.get(name, np.zeros(ranks)) for name in names]) for ranks, row in runs.items() if names]
        if values:
            groups[place] = Group(tuple(runs), names, np.concatenate(values, axis=1))
    return groups
