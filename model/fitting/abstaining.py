"""Where functions give no answer: intervals too wide, forms that disagree, places where nothing was varied, lost ties.

Parameters that varied together only, as sizes that follow the ranks in weak scaling.

The logarithm of one is then a sum of those of others at every configuration measured,

    ln x_j = c + sum_i b_i ln x_i,

and the effect of either alone cannot be determined. Functions are of the others, and hold where the tie does. A tie is
a row ``(c, e_1, ..., e_m)``: ``sum_j e_j ln x_j = c``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ranksight.core.arrays import Array, Index, Mask
from ranksight.model.search.terms import write_term
from ranksight.model.uncertainty import forecast

if TYPE_CHECKING:
    from ranksight.model.fitting.fitted import Fitted


TIED = 1e-6
"""Part of its range to which a logarithm follows others where it is tied to them; values that were rounded are not."""
TOLERANCE = 0.05
"""Relative distance from a tie up to which the functions still hold: that of sizes rounded to whole numbers."""
WHOLE = 1 / TOLERANCE
"""From here on rounding to a whole number leaves less than that."""


def independent(points: Array, parameters: tuple[str, ...]) -> tuple[list[int], Array]:
    """The columns of `points` (n, m) that varied by themselves, and the ties (q, 1 + m) of others to them. Of the
    `parameters`, ``ranks`` are kept before others."""
    order = sorted(range(points.shape[1]), key=lambda at: parameters[at] != "ranks")
    varied: list[int] = []
    ties = []
    for at in order:
        column = points[:, at]
        if len(np.unique(column)) < 2:
            continue
        logs = np.log(points[:, [*varied, at]]) if (points[:, [*varied, at]] > 0).all() else None
        if varied and logs is not None:
            design = np.column_stack([np.ones(len(points)), logs[:, :-1]])
            solution, _, rank, _ = np.linalg.lstsq(design, logs[:, -1], rcond=None)
            off = np.abs(logs[:, -1] - design @ solution).max()
            if rank == design.shape[1] < len(points) and off <= TIED * np.ptp(logs[:, -1]):
                tie = np.zeros(1 + points.shape[1])
                # Powers are those of a law: what a solver leaves in the last digits is not printed.
                tie[0], tie[1 + at], tie[[1 + k for k in varied]] = solution[0], 1.0, -np.round(solution[1:], 9)
                ties.append(tie)
                continue
        varied.append(at)
    return sorted(varied), np.array(ties).reshape(-1, 1 + points.shape[1])


def follower(tie: Array, parameters: tuple[str, ...]) -> int:
    """Column of the parameter that follows the others of its tie (1 + m,): the last that is not ``ranks``."""
    return int([at for at in np.flatnonzero(tie[1:]) if parameters[at] != "ranks"][-1])


def along_ties(points: Array, parameters: tuple[str, ...], ties: Array) -> Array:
    """The points (k, m) with every parameter that follows others (:func:`follower`) where its tie has it, rounded where
    it is a whole number nearly."""
    moved = np.array(points, dtype=np.float64)
    for tie in ties:
        last = follower(tie, parameters)
        others = [at for at in np.flatnonzero(tie[1:]) if at != last]
        value = np.exp((tie[0] - np.log(moved[:, others]) @ tie[1:][others]) / tie[1 + last])
        moved[:, last] = np.where(value >= WHOLE, np.round(value), value)
    return moved


def off_ties(points: Array, parameters: tuple[str, ...], ties: Array) -> Iterator[tuple[Mask, Mask, str]]:
    """For each tie the parameters (m,) in it, the points (k,) away from it by more than :data:`TOLERANCE`, and the
    reason."""
    for tie in ties:
        used = tie[1:] != 0
        with np.errstate(divide="ignore", invalid="ignore"):
            side = np.log(points[:, used]) @ tie[1:][used] - tie[0]
        names = [name for name, yes in zip(parameters, used, strict=True) if yes]
        term = np.zeros((len(parameters), 3))
        term[:, 0] = tie[1:]
        yield (
            used,
            ~(np.abs(side) <= np.log1p(TOLERANCE)),
            f"{', '.join(names[:-1])} and {names[-1]} varied together only, at {write_term(term, parameters)} = "
            f"{np.exp(tie[0]):.4g}: measure a configuration where one varies alone",
        )


FEW = 100.0
"""Samples below which the width of an interval is attributed to them: with as many, a value is known to 10 %."""


def abstain(
    fitted: Fitted, points: Array, ends: tuple[Array, Array, Array], form: Array, within_form: Array
) -> tuple[Index, NDArray[np.object_]]:
    """Status and reason (s, k) of the answers of fitted functions at `points` (k, m).

    `points` (k, m). `ends` (three of (s, k)): value and ends of the interval. `form`, `within_form` (s, k): from
    :func:`ranksight.model.uncertainty.forecast.mixture_forecast`.
    """
    value, low, high = ends
    status = np.where(np.isnan(value), forecast.NOT_POSITIVE, forecast.OK)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        factor = np.where(fitted.positive[:, None], high / low, 1 + (high - low) / np.abs(value))
    factor = np.where((high == low) & np.isfinite(value), 1.0, factor)
    wide = ~(factor <= forecast.WIDEST) & (status == forecast.OK)
    status = np.where(wide, np.where(form > 0.5, forecast.DISAGREE, forecast.WIDE), status)
    with np.errstate(over="ignore"):
        span_within = np.exp(2 * forecast.TAIL * within_form)
    status = np.where(wide & fitted.positive[:, None] & (span_within <= forecast.WIDEST), forecast.TURN, status)
    status = np.where(wide & fitted.noisy[:, None], forecast.NOISE, status)
    status = np.where(wide & (fitted.samples < FEW)[:, None], forecast.FEW_SAMPLES, status)
    reason = np.full(status.shape, "", dtype=object)
    for code in (forecast.DISAGREE, forecast.WIDE, forecast.TURN, forecast.NOISE, forecast.FEW_SAMPLES):
        rows, columns = np.nonzero(status == code)
        spans, numbers = factor[rows, columns].tolist(), fitted.samples[rows].tolist()
        alones = span_within[rows, columns].tolist()
        reason[rows, columns] = [
            forecast.REASONS[code].format(
                factor=forecast.spanned(span),
                bound=forecast.WIDEST,
                samples=f"{number:.2g}",
                alone=forecast.spanned(each),
            )
            for span, number, each in zip(spans, numbers, alones, strict=True)
        ]
    reason[status == forecast.NOT_POSITIVE] = forecast.REASONS[forecast.NOT_POSITIVE]
    low_end, high_end = fitted.trained[:, None, :, 0], fitted.trained[:, None, :, 1]
    domain = (points[None] <= 0) & (low_end > 0)
    for axis, name in enumerate(fitted.parameters):
        rows, columns = np.nonzero(domain[:, :, axis])
        status[rows, columns] = forecast.DOMAIN
        reason[rows, columns] = [
            f"{name} is {x:g}, and was above zero in all runs" for x in points[columns, axis].tolist()
        ]
    fixed = (low_end == high_end) & (points[None] != low_end) & ~fitted.unaffected[:, None]
    for axis, name in enumerate(fitted.parameters):
        status[fixed[:, :, axis]] = forecast.UNVARIED
        reason[fixed[:, :, axis]] = forecast.REASONS[forecast.UNVARIED].format(parameter=name)
    for used, off, text in off_ties(points, fitted.parameters, fitted.ties):
        tied = np.ix_(~(fitted.unaffected & used).any(axis=1), off)
        status[tied], reason[tied] = forecast.UNVARIED, text
    measured = fitted.measured_alone(points)
    for s in np.flatnonzero(fitted.status != forecast.OK):
        status[s, ~measured[s]] = fitted.status[s]
        text = forecast.REASONS[fitted.status[s]].format(points=fitted.count[s], parameters=len(fitted.parameters))
        reason[s, ~measured[s]] = text
    return status, reason
