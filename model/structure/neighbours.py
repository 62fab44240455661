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

A row of ranks is cut into slabs of a domain, of which there are no more than its planes, or half of them where two
planes are sent on: the ranks beyond have nothing to do, and the interval holds that from there on.

Few ranks fit several grids: up to eight, a periodic domain sends to the same ranks as one that ends. Every grid that
fits the pairs of ranks and the counts is a hypothesis. The prediction is the weighted median over them, the interval
all but the unlikely ones, and :meth:`Neighbours.remark` names the run that decides.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from ranksight.comm.patterns.grid import MOST_DIMENSIONS, Cartesian, longer_sides
from ranksight.core.arrays import Array, Index, Ints, Mask, ratio
from ranksight.core.records import dataclass
from ranksight.core.units import some_of
from ranksight.core.valuerules import infer
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.plaindata import part_of
from ranksight.model.quantity import EACH_END, TAIL
from ranksight.model.structure.coefficients import Coefficients, weighted_quantile
from ranksight.model.structure.gridlaw import CLOSE
from ranksight.model.structure.improving import Key, Structure
from ranksight.model.structure.rankterm import Halo
from ranksight.model.uncertainty import forecast
from ranksight.model.uncertainty.forecast import Forecast
from ranksight.model.uncertainty.rows import choose

TERMS = 1 + MOST_DIMENSIONS
FARTHEST = 512.0
"""Ranks up to which runs are tried that may decide."""
MOST = 0.98
"""Share of what the best run separates from which on a smaller one is named."""
APART = 1e-2
"""Relative difference from which on predictions of two grids differ."""


@dataclass(frozen=True)
class Neighbours(Structure):
    """The law of the s series that follow it, on each of g grids; none of these decided where g > 1."""

    parameters: tuple[str, ...]  # of the model
    grids: tuple[Cartesian, ...]
    measured: tuple[int, ...]  # numbers of ranks whose partners are known
    kernels: tuple[str, ...]  # of the series, and how each reduces over ranks
    metrics: tuple[str, ...]
    over_ranks: tuple[str, ...]
    coefficients: Coefficients  # the distinct ones
    index: Ints  # (s, g, 1 + MOST_DIMENSIONS): which coefficients a series has on a grid: a, then b_1, b_2 and so on
    weight: Array  # (s, g): of a grid for a series; 0 where it does not fit
    residual: Array  # (s, g): root mean square error of the law over ranks, relative to the mean; 0 where it is exact
    faces: Mask  # (s, g): whether the costs go with the faces of a block towards the neighbours
    parts: Array  # (m,): slabs for each unit of the parameters that a row of ranks may be all of; 0 where it is not
    _sizes = (
        "parameters:m grids:g kernels:s metrics:s over_ranks:s index:sgt>=0 weight:sg residual:sg faces:sg parts:m>=0"
    )

    @property
    def grid(self) -> Cartesian:
        """The grid of the highest weight."""
        return self.grids[int(np.argmax(self.weight.sum(axis=0)))]

    @property
    def open(self) -> bool:
        """Whether no run had more than two ranks along a dimension: trees and cubes go between the same ranks then."""
        return bool(self) and max(self.grid.extents(self.measured[-1])) <= 2

    @property
    def exact(self) -> set[tuple[str, str]]:
        """Kernels and metrics that follow the law to rounding on some grid."""
        met = np.asarray(self._met.any(axis=1)).tolist()
        return {key for key, yes in zip(self.keys, met, strict=True) if yes}

    def without(self, keys: Collection[tuple[str, str]]) -> Neighbours:
        """The law of all other series."""
        return part_of(self, "s", [row for row, key in enumerate(self.keys) if key not in keys]) or NO_NEIGHBOURS

    @property
    def halos(self) -> dict[str, list[Halo]]:
        """Kernels whose messages go to each neighbour to rounding, and the halos that they are of by the grids on which
        they do, the likeliest first."""
        kinds: dict[str, list[Halo]] = {}
        for row, (kernel, name) in enumerate(self.keys):
            fits = self._met[row]
            order = [g for g in np.argsort(-self.weight[row], kind="stable").tolist() if fits[g]]
            grids = [self.grids[g] for g in order if name == "messages" and len(set(self.grids[g].periodic)) == 1]
            if grids:
                kinds[kernel] = list(dict.fromkeys(map(_halo_of, grids)))
        return kinds

    def longer_sides(self, kernels: Sequence[str], ranks: Array) -> dict[int, Array]:
        """How many times as many ranks the side that grows most has at `ranks` (k,) as in the largest run, by the index
        of those kernels whose messages go to each neighbour to rounding, along more sides than one of every grid."""
        rows, most = self.rows, self.measured[-1] if self else 1
        grown: dict[int, Array] = {}
        for at, kernel in enumerate(kernels):
            row = rows.get((kernel, "messages"))
            grids = [] if row is None else [grid for grid, yes in zip(self.grids, self._met[row], strict=True) if yes]
            if len(longer := longer_sides(grids, most, ranks)):
                grown[at] = longer
        return grown

    @property
    def _met(self) -> Mask:
        """Grids (s, g) on which a series follows the law to rounding."""
        return np.asarray((self.weight > 0) & (self.residual == 0))

    def predict(self, points: Array) -> Forecast:
        """Forecast the s series at `points` (k, m): weighted median and quantiles over the grids."""
        points = np.atleast_2d(np.asarray(points, dtype=np.float64))
        on_grids = self._on_grids(points)
        sound = on_grids.status == forecast.OK
        weight = np.where(sound, self.weight[:, :, None], 0.0)
        value = weighted_quantile(on_grids.value, weight, 0.5)
        lower, upper = (
            weighted_quantile(end, weight, at)
            for end, at in ((on_grids.lower, EACH_END), (on_grids.upper, 1 - EACH_END))
        )
        least = self._in_slabs(points)
        cut, lower = least < lower, np.fmin(lower, least)
        # Where no grid has an answer, the likeliest one's reason is given.
        best = self.weight.argmax(axis=1)[:, None, None]
        some = sound.any(axis=1, where=self.weight[:, :, None] > 0)
        status = np.where(some, forecast.OK, np.take_along_axis(on_grids.status, best, axis=1)[:, 0]).astype(np.intp)
        reason = np.where(some, "", np.take_along_axis(on_grids.reason, best, axis=1)[:, 0].astype(object)).astype(
            object
        )
        low, high = (weighted_quantile(on_grids.value, weight, at) for at in (EACH_END, 1 - EACH_END))
        wide = some & (high > forecast.WIDEST * low)
        if wide.any():
            status[wide] = forecast.WIDE
            open_points = np.flatnonzero(wide.any(axis=0))
            reason[wide] = self._undecided(points[open_points[[0, -1]]])
        status, reason = forecast.judged_by_width(np.where(cut, ratio(upper, lower, np.inf), 1.0), status, reason)
        form = np.ones(value.shape)
        return Forecast(value, lower, upper, status, reason, form)

    def _in_slabs(self, points: Array) -> Array:
        """The series (s, k) at `points` (k, m) where a row of ranks has no more slabs than the domain may be cut into,
        and all further ranks nothing to do; infinite elsewhere."""
        at = self.parameters.index("ranks")
        slabs = np.where(self.parts > 0, np.floor(self.parts * points), np.inf).min(axis=1)
        beyond = np.flatnonzero((points[:, at] > slabs) & (slabs >= 1))
        lines = np.array([grid.dimensions == 1 for grid in self.grids])
        rows = np.asarray(self.weight[:, lines].sum(axis=1) > 0)
        least = np.full((len(self.kernels), len(points)), np.inf)
        if len(beyond) and rows.any():
            near = points[beyond]
            near[:, at] = slabs[beyond]
            shared = np.array(self.over_ranks)[:, None] == "mean"
            busy = self.predict(near).value * np.where(shared, slabs[beyond] / points[beyond, at], 1.0)
            least[:, beyond] = np.where(rows[:, None], busy, np.inf)
        return least

    def improved(self, answer: Forecast, fitted: Fitted, points: Array, exact: Collection[Key]) -> Forecast:
        """Where the law has no value, would have some rank count less than nothing, or a sum over ranks is not defined,
        functions know better."""
        by_grids, index = self.predict(points), fitted.indices(self.keys)
        lawful = (by_grids.status != forecast.NOT_POSITIVE) & np.isfinite(by_grids.value)
        return choose(answer, by_grids, index, lawful | ~np.isfinite(answer.value[index]))

    def _on_grids(self, points: Array) -> Forecast:
        """Forecast of each series on each grid, arrays (s, g, k); NaN where the grid does not fit the series."""
        ends, status, reason = self._coefficients_at(points)
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
                    columns = [end[rows, g, :, k] for end in ends]
                    least = -CLOSE * np.abs(columns[0] @ np.abs(basis).max(axis=0))
                    broken[rows, g, k] = (columns[0] @ basis.T).min(axis=1) < least
                    for target, coefficients in zip((value, lower, upper), columns, strict=False):
                        target[rows, g, k] = _reduced(np.maximum(coefficients @ basis.T, 0.0), times, over[rows])
        if len(ends) == 1:
            lower = upper = value
        value, lower, upper = (np.where(broken, np.nan, end) for end in (value, lower, upper))
        status = np.where(broken, forecast.NOT_POSITIVE, status)
        reason = np.where(broken, forecast.REASONS[forecast.NOT_POSITIVE], reason)
        reach = TAIL * self.residual[:, :, None] * np.abs(value)
        # Bytes that no law meets exactly leave the faces by more with every doubling of the ranks.
        with np.errstate(divide="ignore", invalid="ignore"):
            doublings = np.fmax(np.log2(ranks / self.measured[-1]), 0.0)
        reach *= 1 + np.outer([name == "bytes_sent" for name in self.metrics], doublings)[:, None]
        down, up = np.minimum(lower, upper) - reach, np.maximum(lower, upper) + reach
        form = np.ones(value.shape)
        return Forecast(value, np.maximum(down, 0.0), up, status, reason, form)

    def _coefficients_at(self, points: Array) -> tuple[list[Array], Index, NDArray[np.object_]]:
        """Value and ends of all coefficients (s, g, 1 + MOST_DIMENSIONS, k), the value alone where it is certain, and
        status and reason (s, g, k)."""
        part = self.coefficients.predict(points, self.parameters)
        exact = part.lower is part.value
        ends = [end[self.index] for end in ((part.value,) if exact else (part.value, part.lower, part.upper))]
        first = (part.status[self.index] != forecast.OK).argmax(axis=2)[:, :, None]  # 0 where all are sound
        status = np.take_along_axis(part.status[self.index], first, axis=2)[:, :, 0]
        reason = np.take_along_axis(part.reason[self.index], first, axis=2)[:, :, 0]
        return ends, status, np.where(status == forecast.OK, "", reason).astype(object)

    def remark(self, points: Array) -> str:
        """What the grids that fit say differently at `points` (k, m), and the run that decides; empty if they agree."""
        return self._undecided(np.atleast_2d(np.asarray(points, dtype=np.float64)))

    def _undecided(self, points: Array) -> str:
        asked = points[:, self.parameters.index("ranks")]
        points = points[np.isfinite(asked) & (asked >= 1) & (asked == np.floor(asked))]
        if len(self.grids) < 2 or not len(points):
            return ""
        labels = self._labels(points)
        open_rows = np.flatnonzero([any(len({*row[:, k]} - {-1}) > 1 for k in range(row.shape[1])) for row in labels])
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
        metrics = " and ".join(list(dict.fromkeys(self.metrics[i] for i in open_rows))[:2])
        run = self._deciding(points[:1], labels[open_rows], open_rows)
        decided = f"; trace {run} ranks to decide" if run else ""
        return f"{what}: {metrics} of {some_of(names, 2)} are uncertain{decided}"

    def _labels(self, points: Array) -> Ints:
        """Numbers (s, g, k) that are the same where grids predict the same for a series; -1 where there is nothing."""
        value = self._on_grids(points).value
        labels = np.full(value.shape, -1, dtype=np.int64)
        for g in range(value.shape[1]):
            answered = np.isfinite(value[:, g]) & (self.weight[:, g] > 0)[:, None]
            labels[:, g] = np.where(answered, g, -1)
            for other in range(g - 1, -1, -1):
                with np.errstate(invalid="ignore"):
                    near = np.abs(value[:, g] - value[:, other]) <= APART * np.abs(value[:, g])
                labels[:, g] = np.where(answered & near & (labels[:, other] >= 0), labels[:, other], labels[:, g])
        return labels

    def _deciding(self, point: Array, asked: Ints, rows: Index) -> int | None:
        """The fewest ranks, not measured, whose run separates nearly all of the grids that differ at those asked.

        They follow the rule of the ranks measured, as the program may refuse others, up to those asked.
        """
        column = self.parameters.index("ranks")
        ruled = infer(np.array(self.measured)).values(2.0, min(FARTHEST, float(point[:, column].max())))
        tried = np.setdiff1d(ruled, self.measured)
        if not len(tried):
            return None
        points = np.repeat(point, len(tried), axis=0)
        points[:, column] = tried
        shown = self._labels(points)[rows]
        share = np.ones(len(tried))
        for row, labels, weight in zip(asked, shown, self.weight[rows], strict=True):
            differ = np.outer(weight, weight) * (row[:, None] != row[None]).any(axis=2)
            differing = np.einsum("gh,ghk->k", differ, labels[:, None] != labels[None]) / differ.sum()
            share = np.minimum(share, differing)
        return int(tried[int(np.argmax(share >= MOST * share.max()))]) if share.any() else None

    def formula(self, i: int) -> str:
        """The law of series `i` on its likeliest grid, as people read it."""
        g = int(np.argmax(self.weight[i]))
        dimensions = self.grids[g].dimensions
        written = [self.coefficients.formula(int(at), 4) for at in self.index[i, g, : 1 + dimensions]]
        each = "neighbours_{0} * face_{0}" if self.faces[i, g] else "neighbours_{0}"
        law = " + ".join(
            [f"({written[0]})", *(f"{each.format(d + 1)} * ({text})" for d, text in enumerate(written[1:]))]
        )
        several = len({grid.text for grid, weight in zip(self.grids, self.weight[i], strict=True) if weight > 0})
        return f"{law} on a {self.grids[g].text}" + (f" ({several} grids fit)" if several > 1 else "")

    def _fits(self) -> bool:
        return (
            self.index.size > 0
            and self.index.shape[2] == TERMS
            and bool((self.index < len(self.coefficients)).all())
            and bool((self.weight.sum(axis=1) > 0).all())
        )


def _halo_of(grid: Cartesian) -> Halo:
    return grid.dimensions, grid.periodic[0], False, grid.periodic[0] and grid.ring == "peers"


_NONE = np.empty((0, 0))
NO_NEIGHBOURS = Neighbours(
    (), (), (), (), (), (), Coefficients(np.empty(0)),
    np.empty((0, 0, TERMS), dtype=np.intp), _NONE, _NONE, np.empty((0, 0), dtype=bool), np.empty(0),
)  # fmt: skip


def _listed(numbers: Sequence[int]) -> str:
    *head, last = map(str, numbers)
    return f"{', '.join(head)} and {last}" if head else last


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
