"""Piecewise linear functions of message size found in measurements: where the pieces begin, and how many there are.

The cost functional of a partition of the ``n`` measured sizes into ``K`` pieces is

    C = sum_k  min_{a_k >= 0, b_k >= 0}  sum_{i in k} w_i ((t_i - a_k - b_k (s_i - s_k)) / t_i)^2 ,

``s_k`` the first size of the piece: relative residuals, since times span four orders of magnitude, with the weights of
:class:`ranksight.comm.sizes.SizeTable`; no piece is negative where it applies, or falls. For every ``K`` dynamic
programming finds the partition of least cost exactly (Bellman, CACM 4 (1961) 284). ``K`` is chosen out of sample:
sizes are left out in interleaved folds. Where a piece begins between two sizes nobody measured, so that those left out
there are of the piece that meets them better. The smallest ``K`` whose error exceeds that of the best by no more than
one standard error of their difference counts (Breiman et al., Classification and Regression Trees, 1984, section
3.4.3). A penalised search for the same optimum (Killick, Fearnhead and Eckley, JASA 107 (2012) 1590) would need a
penalty set by hand.
"""

from __future__ import annotations

import numpy as np

from ranksight.comm.network import Piecewise
from ranksight.comm.sizes import SizeTable
from ranksight.core.arrays import Array
from ranksight.core.errors import InsufficientError
from ranksight.core.records import dataclass

SMALLEST = 4
"""Sizes in the shortest piece: two coefficients, and two that can contradict them."""
NARROWEST = 2.0
"""Least ratio of a piece's end to its begin: libraries switch protocols at powers of two."""
MOST = 10
"""Most pieces considered."""
FOLDS = 5


@dataclass(frozen=True, slots=True)
class Fit:
    """A fitted piecewise function."""

    function: Piecewise
    starts: tuple[int, ...]  # index of each piece's first size in the table that was fitted
    errors: tuple[float, ...]  # out-of-sample error (mean absolute log ratio) by number of pieces, from one piece on
    draws: Array
    """array, shape (draws, pieces, 2): bootstrap replicates of intercept at 0 (s) and slope (s/B) of each piece."""

    def interval(self, piece: int, coefficient: int) -> tuple[float, float]:
        """95 % bootstrap percentile interval of a piece's intercept (0) or slope (1)."""
        low, high = np.quantile(self.draws[:, piece, coefficient], [0.025, 0.975])
        return float(low), float(high)

    def draws_at(self, size: float) -> Array:
        """Bootstrap replicates of the function's value at one size, shape (draws,)."""
        piece = int(self.function.piece(size))
        return np.asarray(np.maximum(self.draws[:, piece, 0] + self.draws[:, piece, 1] * size, 0.0))


def fit_pieces(table: SizeTable, most: int = MOST, draws: int = 400) -> Fit:
    """Fit a piecewise linear function of at most so many pieces to times by size.

    `draws`: bootstrap replicates: sizes are drawn with replacement within each piece. Raises InsufficientError when
    there are fewer sizes than one piece needs.
    """
    if len(table) < SMALLEST:
        raise InsufficientError(
            f"{len(table)} message sizes are too few for a line", f"measure at least {SMALLEST}, from 1 B to 1 MB"
        )
    errors = _out_of_sample(table, most)
    mean = errors.mean(axis=1)
    best = int(np.argmin(mean))
    # Folds differ in how hard their sizes are, whatever the pieces: compare fold by fold.
    more = errors - errors[best]
    margin = more.std(axis=1, ddof=1) / np.sqrt(errors.shape[1]) if errors.shape[1] > 1 else np.zeros(len(mean))
    pieces = int(np.flatnonzero(more.mean(axis=1) <= margin)[0]) + 1
    starts = _partition(table, pieces)[pieces - 1]
    return Fit(_function(table, starts), starts, tuple(mean.tolist()), _bootstrap(table, starts, draws))


def _sums(table: SizeTable, weight: Array) -> Array:
    """Terms of the weighted normal equations; `weight` (..., n) gives shape (..., n, 6)."""
    s, t = table.size, table.time
    v = weight / t**2
    return np.stack([v, v * s, v * s * s, v * t, v * s * t, v * t * t], axis=-1)


def _solve(total: Array, first: Array) -> tuple[Array, Array, Array]:
    """Least squares of ``a + b (s - first)`` with both not negative, from summed terms; value at first, slope, cost."""
    n, s, ss, t, st, tt = np.moveaxis(total, -1, 0)
    # Sums of x = s - first instead of s.
    x, xx, xt = s - first * n, ss - 2 * first * s + first**2 * n, st - first * t
    with np.errstate(divide="ignore", invalid="ignore"):
        determinant = n * xx - x * x
        a, b = (xx * t - x * xt) / determinant, (n * xt - x * t) / determinant
        flat = ~(b > 0) | ~(determinant > 1e-12 * n * xx)
        a, b = np.where(flat, t / n, a), np.where(flat, 0.0, b)
        origin = ~flat & (a < 0)
        a, b = np.where(origin, 0.0, a), np.where(origin, xt / xx, b)
        cost = tt - 2 * (a * t + b * xt) + a * a * n + 2 * a * b * x + b * b * xx
    return a, b, np.maximum(np.nan_to_num(cost, nan=np.inf), 0.0)


def _partition(table: SizeTable, most: int, smallest: int = SMALLEST) -> list[tuple[int, ...]]:
    """Best starts of the pieces of `smallest` sizes or more for 1 .. `most` pieces (fewer where these do not
    suffice)."""
    n = len(table)
    sums = np.concatenate([np.zeros((1, 6)), np.cumsum(_sums(table, table.weight), axis=0)])
    begin, end = np.meshgrid(np.arange(n), np.arange(1, n + 1), indexing="ij")
    cost = _solve(sums[end] - sums[begin], table.size[begin])[2]
    following = np.append(table.size, np.inf)
    wide = (end - begin >= smallest) & (following[end] >= NARROWEST * table.size[begin])
    cost = np.where(wide, cost, np.inf)
    best = cost[0]
    found: list[tuple[int, ...]] = [(0,)]
    came = []
    for pieces in range(2, most + 1):
        # best[e - 1] costs the sizes before e in pieces - 1 pieces; the last piece begins at e.
        through = best[:-1, None] + cost[1:, :]
        came.append(through.argmin(axis=0) + 1)
        best = through.min(axis=0)
        if not np.isfinite(best[-1]):
            break
        starts, last = [], n
        for back in range(pieces - 2, -1, -1):
            last = int(came[back][last - 1])
            starts.append(last)
        found.append((0, *reversed(starts)))
    return found


def _out_of_sample(table: SizeTable, most: int) -> Array:
    """Mean absolute log ratio on sizes left out, shape (pieces, folds); interleaved folds, so no range is missing."""
    n = len(table)
    folds = min(FOLDS, n // SMALLEST)
    if folds < 2:
        return np.zeros((1, 1))
    fold = np.arange(n) % folds
    by_fold, most = [], len(_partition(table, most))
    for left_out in range(folds):
        test, train = fold == left_out, fold != left_out
        known, asked = table.take(train), table.take(test)
        row = []
        # A fold lacks one size of a piece that has the fewest.
        for starts in _partition(known, most, SMALLEST - 1):
            row.append(float(np.mean(_missed(known, starts, asked))))
        by_fold.append(row)
    shared = min(len(row) for row in by_fold)
    return np.array([row[:shared] for row in by_fold]).T


def _missed(known: SizeTable, starts: tuple[int, ...], asked: SizeTable) -> Array:
    """Absolute log ratio of times left out, (n,), by the pieces of both sizes around each, the smaller one."""
    function, at = _function(known, starts), np.searchsorted(known.size, asked.size)
    around = np.clip([at - 1, at], 0, len(known) - 1)
    piece = np.searchsorted(starts, around, side="right") - 1
    predicted = np.array(function.alpha)[piece] + np.array(function.beta)[piece] * asked.size
    return np.asarray(np.abs(np.log(np.maximum(predicted, 1e-12) / asked.time)).min(axis=0))


def _coefficients(table: SizeTable, starts: tuple[int, ...], weight: Array) -> Array:
    """Intercept at 0 and slope of each piece; `weight` (..., n) gives shape (..., pieces, 2)."""
    sums = np.add.reduceat(_sums(table, weight), list(starts), axis=-2)
    first = table.size[list(starts)]
    value, slope, _ = _solve(sums, first)
    return np.stack([value - slope * first, slope], axis=-1)


def _function(table: SizeTable, starts: tuple[int, ...]) -> Piecewise:
    """The function of a partition.

    A piece begins at a power of two between the sizes around the break where there is one: the switch lies anywhere
    between them, and libraries set theirs at powers of two. Otherwise, or where its line is negative there, at its
    first size. Sizes before the break whose logarithm its line meets better are its own: relative residuals are never
    above 1 for a time that is longer than the line says, and leave a size behind that has jumped.
    """
    found = _coefficients(table, starts, table.weight)
    first = [0]
    for n, (start, (alpha, beta)) in enumerate(zip(starts[1:], found[1:], strict=True)):
        lines = found[[n, n + 1], :1] + found[[n, n + 1], 1:] * table.size[starts[n] + 1 : start]
        far = np.abs(np.log(np.maximum(lines, 1e-12) / table.time[starts[n] + 1 : start]))
        stays = np.append(True, far[0] <= far[1])
        start -= int(stays[::-1].argmax())
        before, at = int(table.size[start - 1]), int(table.size[start])
        power = 1 << (at.bit_length() - 1)
        first.append(power if power > before and alpha + beta * power >= 0 else at)
    # The first piece reaches down to 0 B: below the smallest size its line must not become negative.
    found[0, 0] = max(found[0, 0], 0.0)
    return Piecewise(tuple(first), tuple(found[:, 0].tolist()), tuple(found[:, 1].tolist()))


def _bootstrap(table: SizeTable, starts: tuple[int, ...], draws: int) -> Array:
    rng = np.random.default_rng(0)  # so that the same data give the same intervals
    times = np.zeros((draws, len(table)))
    for begin, end in zip(starts, (*starts[1:], len(table)), strict=True):
        chosen = rng.integers(begin, end, size=(draws, end - begin))
        np.add.at(times, (np.arange(draws)[:, None], chosen), 1.0)
    return _coefficients(table, starts, times * table.weight)
