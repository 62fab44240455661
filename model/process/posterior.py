"""What series are after their values: weighted hypotheses, and the distribution of ln y anywhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from ranksight.core.arrays import Array, Index, ratio
from ranksight.core.records import dataclass
from ranksight.model.plaindata import Stored
from ranksight.model.priors import BEND, UNSEEN
from ranksight.model.process.covariance import PARTS, Turn, beyond, smooth, unseen, variance, within
from ranksight.model.process.prevalence import coordinates
from ranksight.model.process.solve import KINDS, Data, Solved, columns, divisions, efolds, refined
from ranksight.model.search.terms import LIMITED, values
from ranksight.model.series.domains import Domains
from ranksight.model.series.reduction import median
from ranksight.model.uncertainty.mixture import Components, quantile

NORMAL = 30.0
"""Degrees of freedom of a hypothesis' distribution: the mixture has the tails."""
SMALLEST = 1e-300
"""Value that is none, below what a time may be."""
VAGUEST = 1e300
"""Largest square of a relative deviation that is distinguished from others."""
BATCH = 20_000
"""Hypotheses x asked values at once."""


@dataclass(frozen=True)
class Process(Stored):
    """Hypotheses of p series over d coordinates: the mean and the covariance of each, and its weight."""

    rows: Index  # (p,): which of the fitted series they are
    axes: Index  # (d,): of the coordinates among the parameters
    points: Array  # (n, d): their values
    logs: Array  # (p, n): logarithms of the located values; 0 where there is none
    noise: Array  # (p, n): their variances, without scatter between jobs; infinite, stored as NaN, where there is none
    centre: Array  # (p, n): where hypotheses were compared (:func:`ranksight.model.process.solve.smoothed`)
    scatter: Array  # (p,): variance of one repetition's logarithm
    terms: Array  # (t, m, 3): of :func:`ranksight.model.process.prevalence.coordinates`
    members: Index  # (p, c, q): terms of each mean; -1 pads
    scales: Array  # (p, c, 4): of the parts of its covariance (:data:`ranksight.model.process.covariance.PARTS`)
    kind: Index  # (p, c): what one run is (:data:`ranksight.model.process.solve.KINDS`)
    place: Index  # (p, c): which run that is
    weight: Array  # (p, c)
    coefficients: Array  # (p, c, q): in units of the largest share of each term
    difference: Array  # (p,): largest relative difference of the printed function from the medians
    turn: Array  # (p, 4): how often the law is another one beyond the runs, and by how much (:class:`Turn`)
    domains: Domains | None = None  # memory domains that ranks share, where known

    def __len__(self) -> int:
        return len(self.rows)

    def select(self, places: Index, rows: Index) -> Process:
        """Some of the series (by their places here), which are `rows` of other fitted ones."""
        names = ("logs", "noise", "centre", "scatter", "members", "scales", "kind", "place",
                 "weight", "coefficients", "difference", "turn")  # fmt: skip
        return replace(self, rows=rows, **{name: getattr(self, name)[places] for name in names})

    def components(self, points: Array) -> Components:
        """Components (c, p, k) of the distribution of ln y of one more run at `points` (k, d), of laws that may turn
        beyond the runs."""
        straight, turns = self.with_turns(points)
        return turns(straight)

    def with_turns(self, points: Array) -> tuple[Components, Callable[[Components], Components]]:
        """Components (c, p, k) at `points` (k, d) if laws go on, and what makes those of laws that may turn of them."""
        turn = Turn(*self.turn.T)  # of each series
        straight, near = self.with_nearest(points)
        often = turn.probability(self.scattered())
        return straight, partial(turned, near=near, distance=self.ahead(points), often=often, turn=turn)

    def with_nearest(self, points: Array) -> tuple[Components, Array]:
        """Components (c, p, k) at `points` (k, d) if laws go on, and their centres at the nearest points within the
        range of the runs."""
        places, inverse = np.unique(within(points, self.points), axis=0, return_inverse=True)
        # Hypotheses are solved once for both.
        every = self.straight(np.concatenate([points, places]))
        count = len(points)
        straight = Components(*(part[..., :count] for part in every))
        straight = straight._replace(spread=np.hypot(straight.spread, self.bend(points)))
        return straight, every.centre[..., count + inverse.ravel()]

    def bend(self, points: Array) -> Array:
        """Standard deviation (p, k) of ln y at `points` (k, d) that two values of a coordinate leave open.

        Laws whose slope s is the same over two values, a and b, differ between and beyond them by their curvature times
        (x - a) (x - b) / 2 (Newton's interpolation), all in e-folds; that of a constant and a power q is s (q - s).
        """
        square = np.zeros((len(self), len(points)))
        for axis, runs in enumerate(self.points.T):
            ends = np.array(sorted(set(runs.tolist())))
            if len(ends) != 2:
                continue
            low, high = (np.log(points[:, axis] / end) for end in ends)
            if (off := np.flatnonzero(np.abs(low * high) > 0)).size:
                sides = np.repeat(points[None, off], 2, axis=0)
                sides[..., axis] = ends[:, None]
                median = self.medians(sides.reshape(-1, points.shape[1])).reshape(len(self), 2, -1)
                slope = (median[:, 1] - median[:, 0]) / np.log(ends[1] / ends[0])
                square[:, off] += (BEND * slope * low[off] * high[off] / 2) ** 2
        return np.sqrt(square)

    def scattered(self) -> Array:
        """Standard deviation (p,) of ln y of a configuration's value around its law: of jobs, and of the mean of what
        was repeated."""
        jobs = (self.weight * self.scales[..., PARTS.index("jobs")] ** 2).sum(axis=1)
        repeated = np.nan_to_num(median(np.where(np.isfinite(self.noise), self.noise, np.nan), axis=1))
        return np.asarray(np.sqrt(jobs + repeated))

    def turning(self) -> Array:
        """Standard deviation (p,) of ln y per e-fold beyond the runs by which laws turn, and what no run shows."""
        turn = Turn(*self.turn.T)
        return np.asarray(np.hypot(UNSEEN, np.sqrt(turn.probability(self.scattered())) * turn.slope))

    def ahead(self, points: Array) -> Array:
        """E-folds (k,) of `points` (k, d) beyond the range of the runs."""
        return beyond(efolds(points, self.points), efolds(self.points, self.points))

    def straight(self, points: Array, latent: bool = False) -> Components:
        """The same (c, p, k) if laws go on: of one more run, or of the `latent` function without scatter between jobs
        and of repetitions."""
        step = max(1, BATCH // max(1, len(points) * self.weight.shape[1]))
        parts = [
            self.select(some, some)._straight(points, latent)
            for some in np.array_split(np.arange(len(self)), max(1, -(-len(self) // step)))
        ]
        return Components(*(np.concatenate(each, axis=1) for each in zip(*parts, strict=True)))

    def medians(self, points: Array) -> Array:
        """Medians (p, k) of the logarithm of the latent function at `points` (k, d)."""
        return quantile(0.5, *self.straight(points, latent=True))

    def covering(self, points: Array, some: Index) -> tuple[Array, Array]:
        """Medians (p, c, k) of ln of the latent function at `points` (k, d) if laws go on, by every hypothesis, and its
        covariance (p, c, m, k) between `some` (m,) of the points and all."""
        flat, share, unit, used = self._rows()
        scales = self.scales.reshape(-1, self.scales.shape[-1])
        solved = refined(flat, share, scales, self.coefficients.reshape(len(scales), -1), rounds=1)
        asked = efolds(points, self.points)
        law = _Ahead.of(flat, solved, scales, self._targets(points, used, unit, solved.coefficients), asked)
        cover = np.einsum("fqm,fqp,fpk->fmk", law.gradient[..., some], solved.spread, law.gradient)
        cover += np.einsum("fp,pmk->fmk", law.square, smooth(asked[some], asked))
        cover -= np.einsum("fnm,fnk->fmk", law.ahead[..., some], law.turned)
        shape = self.weight.shape
        return law.centre.reshape(*shape, -1), cover.reshape(*shape, len(some), -1)

    def shares(self, points: Array) -> Array:
        """Part (p, c, q, k) of each term in the mean of every hypothesis at `points` (k, d); zero of what pads."""
        _, _, unit, used = self._rows()
        coefficients = self.coefficients.reshape(used.shape)
        parts = coefficients[..., None] * self._targets(points, used, unit, coefficients)
        return ratio(parts, parts.sum(axis=1, keepdims=True), 0.0).reshape(*self.members.shape, -1)

    def certainties(self) -> Array:
        """Standard deviations (p, c, q) that the coefficient of each term lies above zero; zero of what pads."""
        flat, share, _, _ = self._rows()
        scales, coefficients = (each.reshape(len(share), -1) for each in (self.scales, self.coefficients))
        solved = refined(flat, share, scales, coefficients, rounds=1)
        error = np.sqrt(np.einsum("fqq->fq", solved.spread)).reshape(self.members.shape)
        return np.where(self.members >= 0, self.coefficients / error, 0.0)

    def held_out(self) -> Array:
        """Root mean square (p,) of the errors of ln y where one value at a time is left out, by the heaviest
        hypothesis: ``r_i / P_ii`` with P the inverse of the covariance of all values (Rasmussen and Williams,
        *Gaussian Processes for Machine Learning*, 5.12)."""
        names = ("members", "scales", "kind", "place", "coefficients")
        first = replace(self, **{name: getattr(self, name)[:, :1] for name in names})
        flat, share, _, _ = first._rows()
        solved = refined(flat, share, first.scales[:, 0], first.coefficients[:, 0], rounds=1)
        inverted = solved.inverted
        columns_of = np.swapaxes(solved.columns, 1, 2)
        turned = inverted @ columns_of
        whole = inverted - turned @ np.linalg.solve(
            np.eye(share.shape[1]) + solved.columns @ turned, np.swapaxes(turned, 1, 2)
        )
        errors = np.einsum("pnk,pk->pn", whole, solved.data.target) / np.einsum("pnn->pn", whole)
        present = ~flat.absent
        return np.asarray(np.sqrt((np.where(present, errors, 0.0) ** 2).sum(axis=1) / present.sum(axis=1)))

    def _straight(self, points: Array, latent: bool) -> Components:
        shape = (*self.weight.shape, len(points))
        flat, share, unit, used = self._rows()
        scales = self.scales.reshape(-1, self.scales.shape[-1])
        solved = refined(flat, share, scales, self.coefficients.reshape(len(scales), -1), rounds=1)
        asked = efolds(points, self.points)
        centre, total = _at(flat, solved, scales, self._targets(points, used, unit, solved.coefficients), asked)
        if not latent:
            total = total + unseen(asked, flat.u) ** 2
            total = total + (scales[:, -1] ** 2 + np.repeat(self.scatter, shape[1]))[:, None]
        weight = np.broadcast_to(self.weight.T[..., None], (shape[1], shape[0], shape[2]))
        mean, spread = (np.moveaxis(part.reshape(shape), 1, 0) for part in (centre, np.sqrt(np.maximum(total, 0.0))))
        return Components(weight, mean, np.maximum(spread, ROUNDED), np.full(mean.shape, NORMAL))

    def _rows(self) -> tuple[Data, Array, Array, Index]:
        """One hypothesis a row: its data, its columns (f, q, n), their units (f, q), and its terms (f, q)."""
        count, many, width = self.members.shape
        noise = np.where(np.isnan(self.noise), np.inf, self.noise)
        data = Data(efolds(self.points, self.points), self.logs, noise, self.centre, np.ones(noise.shape))
        flat, used = data.part(np.repeat(np.arange(count), many)), self.members.reshape(-1, width)
        flat = flat.odd(self.kind.reshape(-1), self.place.reshape(-1))
        at = values(self.terms, coordinates(divisions(self.points, self.points), self.domains))[np.maximum(used, 0)]
        share, unit = columns(np.where(used[..., None] < 0, 0.0, at), flat)
        return flat, share, unit, used

    def _targets(self, points: Array, used: Index, unit: Array, coefficients: Array) -> Array:
        """Columns (f, q, k) of hypotheses with `coefficients` (f, q) at `points` (k, d)."""
        x = divisions(points, self.points)
        at = values(self.terms, coordinates(x, self.domains))[np.maximum(used, 0)]
        ends = (used >= 0) & (self.terms[:, 0, 2] == LIMITED)[used]
        if len(self.axes) == 1 and (rows := np.flatnonzero(ends.sum(axis=1) == 2)).size:
            pair = rows[:, None], np.nonzero(ends[rows])[1].reshape(-1, 2)
            power, most = np.moveaxis(self.terms[used[pair], 0, :2], 2, 0)
            at[pair] = crossing(at[pair], x[:, 0], most, power[:, :1], coefficients[pair] * np.exp(-unit[pair]))
        with np.errstate(over="ignore"):
            return np.where(used[..., None] < 0, 0.0, at) * np.exp(-unit)[..., None]

    def _fits(self) -> bool:
        p, n, d = len(self.rows), len(self.points), len(self.axes)
        c, q = self.members.shape[1:] if self.members.ndim == 3 else (0, 0)
        shapes = {"logs": (p, n), "noise": (p, n), "centre": (p, n), "scatter": (p,), "members": (p, c, q)}
        shapes |= {"scales": (p, c, len(PARTS)), "kind": (p, c), "place": (p, c), "weight": (p, c)}
        shapes |= {"coefficients": (p, c, q), "difference": (p,), "points": (n, d), "axes": (d,), "turn": (p, 4)}
        numbers = ("turn", "points", "logs", "centre", "scatter", "scales", "weight", "coefficients", "terms")
        return (
            all(getattr(self, name).shape == shape for name, shape in shapes.items())
            and self.terms.ndim == 3
            and all(bool(np.isfinite(getattr(self, name)).all()) for name in numbers)
            and bool((self.points > 0).all() and n and d and (self.axes >= 0).all())
            and bool((self.members >= -1).all() and (self.members < len(self.terms)).all())
            and bool(((self.kind >= 0) & (self.kind < len(KINDS)) & (self.place >= 0) & (self.place < n)).all())
            and bool((self.turn[:, 0] < 1).all() and (self.turn >= 0).all())
            and bool((self.weight >= 0).all() and (self.scatter >= 0).all() and (self.rows >= 0).all())
        )


ROUNDED = 1e-6
"""Standard deviation of a logarithm, 1, below which none is answered: values were printed with few digits."""


def crossing(at: Array, x: Array, most: Array, power: Array, coefficients: Array) -> Array:
    """Values (f, 2, k) at `x` (k,) of two terms of a `power` (f, 1) that end at `most` (f, 2) with `coefficients`
    (f, 2), which are `at` (f, 2, k) but between the two: one law goes on there until it crosses what it ends at."""
    going, ended = x**power, most**power
    law, end = (coefficients.sum(axis=1, keepdims=True) * going, (coefficients * ended).sum(axis=1, keepdims=True))
    goes_on = np.where(power > 0, law < end, law > end)
    chosen = np.where(goes_on[:, None], going[:, None], ended[..., None])
    return np.where(((x > most[:, :1]) & (x < most[:, 1:]))[:, None], chosen, at)


def back(near: Array, centre: Array, distance: Array) -> Array:
    """How far (c, p, k) from `centre` the constant ahead of the runs is, `distance` e-folds beyond `near`, up to a
    slope of 1: what grows faster than in proportion grows as an algorithm does with the size of its input, and no
    published curve is of that."""
    return np.where(distance > 0, np.clip(near - centre, -distance, distance), 0.0)


def turned(components: Components, near: Array, distance: Array, often: Array, turn: Turn) -> Components:
    """Components (2 c, p, k) of laws that go on or turn as `often`, (p,), from those (c, p, k) of laws that go on for
    `distance`, (k,) or (p, k), e-folds beyond the runs, where their centres were `near` (c, p, k); the same where
    nothing is beyond them."""
    if not np.any(turn.often) or not distance.any():
        return components
    flat, slope = (np.asarray(number)[..., None] for number in (turn.flatter, turn.slope))
    often = np.where(distance > 0, often[:, None], 0.0)
    flatter = flat * back(near, components.centre, distance)
    wider = np.hypot(components.spread, slope * distance)
    return Components(
        np.concatenate([components.weight * (1 - often), components.weight * often]),
        np.concatenate([components.centre, components.centre + flatter]),
        np.concatenate([components.spread, wider]),
        np.concatenate([components.freedom, components.freedom]),
    )


class _Ahead(NamedTuple):
    """The latent ln y of f hypotheses, one a row, at k asked points."""

    centre: Array  # (f, k): of ln of its mean
    gradient: Array  # (f, q, k): of that by the coefficients
    square: Array  # (f, 3): scales of the departure's parts, squared
    ahead: Array  # (f, n, k): covariance of the departure with that at the runs
    turned: Array  # (f, n, k): the same times the inverse of that of the values

    @classmethod
    def of(cls, flat: Data, solved: Solved, scales: Array, target: Array, asked: Array) -> _Ahead:
        """At `asked` (k, d) e-folds, where columns are `target` (f, q, k)."""
        function = np.maximum(np.einsum("fq,fqk->fk", solved.coefficients, target), SMALLEST)
        square = scales[:, :-1] ** 2
        ahead = np.einsum("fp,pnk->fnk", square, smooth(flat.u, asked))
        turned = solved.inverted @ ahead
        left = solved.data.target - np.einsum("fq,fqn->fn", solved.coefficients, solved.columns)
        rest = np.where(flat.absent, 0.0, left)
        with np.errstate(over="ignore"):
            gradient = target / function[:, None] - solved.columns @ turned
        return cls(np.log(function) + np.einsum("fn,fnk->fk", rest, turned), gradient, square, ahead, turned)


def _at(flat: Data, solved: Solved, scales: Array, target: Array, asked: Array) -> tuple[Array, Array]:
    """Mean and variance (f, k) of the latent ln y of hypotheses one a row, at `asked` (k, 1) e-folds."""
    law = _Ahead.of(flat, solved, scales, target, asked)
    with np.errstate(over="ignore"):
        doubt = np.einsum("fqk,fqp,fpk->fk", law.gradient, solved.spread, law.gradient)
    # A sum of uncertain coefficients is nearer to a log-normal law than to a normal one of its logarithm. What is too
    # uncertain for a number is as uncertain as numbers can say.
    relative = np.log1p(np.clip(np.nan_to_num(doubt, nan=VAGUEST, posinf=VAGUEST), 0.0, VAGUEST))
    departure = law.square @ variance(asked) - np.einsum("fnk,fnk->fk", law.ahead, law.turned)
    return law.centre - 0.5 * relative, relative + np.maximum(departure, 0.0)
