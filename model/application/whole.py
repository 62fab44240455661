"""The whole program from its parts: sums of forecasts over kernels.

Errors of kernels add with different correlations. Noise averages out over many kernels. Model discrepancy, and what a
function turns into beyond the range measured, are the same in all kernels of a program: errors of form are fully
correlated, so that many kernels with insufficient data are no better known than one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ranksight.core.arrays import Array, Index
from ranksight.core.errors import InputError
from ranksight.core.experiment import WHOLE
from ranksight.core.metrics import metric
from ranksight.model.series.reduction import reduce
from ranksight.model.uncertainty import forecast
from ranksight.model.uncertainty.forecast import Forecast

if TYPE_CHECKING:
    from ranksight.model.series.reducing import Series


SAME = 1e-6
"""Largest relative difference between a program's count and the sum of its kernels' where both are one number."""
SHARE_NAMED, NAMED = 0.01, 3
"""Share of the program's time from which a kernel is worth a sentence, and how many are named."""
EXCEEDS, OVERLAP = 1.05, 1.1
"""Part of the program's time from which on a kernel exceeds it, and all of them hold each other."""
NOISE = 0.5
"""Correlation of the noise of a program's kernels where it cannot be learned."""


def without_sums(series: Series) -> Series:
    """The series without requirements of the whole program that are nothing but the sum of its kernels'.

    A sum has a form of its own only where its parts have one: fitted separately it would contradict them, as what is
    sent by kernels that one rank does not call and by others that it does.
    """
    if WHOLE not in series.kernels:
        return series
    rows: dict[str, list[int]] = {}
    for i, name in enumerate(series.metrics):
        if metric(name).kind == "requirement" and metric(name).additive:
            rows.setdefault(name, []).append(i)
    selected = np.ones(len(series), dtype=bool)
    for members in rows.values():
        index = np.array(members)
        of_whole = np.array([series.kernels[i] == WHOLE for i in members])
        if of_whole.any() and not of_whole.all():
            whole_values, parts = series.values[index[of_whole]][0], np.nansum(series.values[index[~of_whole]], axis=0)
            known = np.isfinite(whole_values)
            selected[index[of_whole]] = not np.allclose(whole_values[known], parts[known], rtol=SAME, atol=0.0)
    return series.select(selected)


def correlation(residuals: Array, sizes: Array) -> float:
    """Common correlation of the parts' noise, in [0, 1], from their residuals at the configurations measured.

    Solves ``Var(sum e_i) = (1 - rho) sum sd_i^2 + rho (sum sd_i)^2`` for rho; :data:`NOISE` where there is no error or
    that of one part alone. `residuals` (s, n): relative residuals; NaN where missing. `sizes` (s, n): values they refer
    to.
    """
    errors = np.where(np.isfinite(residuals), residuals, 0.0) * np.where(np.isfinite(sizes), sizes, 0.0)
    scale = np.nansum(sizes, axis=0)
    errors = errors / np.where(scale > 0, scale, 1.0)
    squares = (errors**2).mean(axis=1)
    independent, common = squares.sum(), np.sqrt(squares).sum() ** 2
    if errors.shape[1] < 3 or not common - independent > 1e-12 * common:
        return NOISE
    return float(np.clip(((errors.sum(axis=0) ** 2).mean() - independent) / (common - independent), 0.0, 1.0))


def add(parts: Forecast, rows: Index, weight_of_row: Array, rho: float) -> Forecast:
    """Sum the forecasts of `rows`; one row.

    Distances from the value to the ends are added as correlated standard deviations, each side for itself. A part that
    has no value takes between nothing and several times what it took in the largest runs, and makes the sum
    insufficient when parts like it held more than a twentieth of the total there. Whether
    the interval is too wide is decided by :func:`judged`, when all that the sum holds has been added. `weight_of_row`
    (len(rows),): share of each part in the measured total. `rho`: correlation of the parts' noise.
    """
    value, lower, upper = parts.value[rows], parts.lower[rows], parts.upper[rows]
    status = parts.status[rows]
    usable = np.isfinite(value) & ~np.isin(status, (forecast.NO_DATA, forecast.DOMAIN, forecast.UNVARIED))
    known = np.where(usable, value, 0.0)
    # What has no answer takes what it took in the largest runs, or nothing, or several times as much.
    weights = np.where(usable, 0.0, weight_of_row[:, None])
    missing = weights / np.maximum(1 - weights.sum(axis=0), 1 / forecast.WIDEST) * known.sum(axis=0)
    known = known + missing
    lower, upper = np.where(usable, lower, 0.0), np.where(usable, upper, forecast.WIDEST * missing)
    total = known.sum(axis=0)

    share = share_of_form(parts.form[rows])
    down, up = (apart(distance, share, rho) for distance in (known - lower, upper - known))
    low, high = total - np.hypot(*down), total + np.hypot(*up)
    noise, unknown = (fall**2 + rise**2 for fall, rise in zip(down, up, strict=True))
    form = forecast.form_of((noise, np.zeros_like(noise)), (unknown, np.ones_like(unknown)))
    # What is positive in every part is positive in sum, and no smaller than the sum of the parts' lower ends.
    low = np.maximum(low, lower.sum(axis=0))
    # Parts of too few points are added to the sum, but count as insufficient data.
    insufficient = ~usable | (status == forecast.FEW_POINTS)
    lost = np.where(insufficient, weight_of_row[:, None], 0.0).sum(axis=0)
    none = np.asarray(~usable.any(axis=0)) & bool(len(rows))
    codes = np.full(total.shape, forecast.OK)
    reasons = np.full(total.shape, "", dtype=object)
    for k in range(len(total)):
        if lost[k] > 0.05 or none[k]:
            worst = int(np.argmax(np.where(insufficient[:, k], weight_of_row, -1.0)))
            codes[k], reasons[k] = (
                status[worst, k] or forecast.NO_DATA,
                f"parts with {lost[k]:.0%} of the measured total have no answer: {parts.reason[rows[worst], k]}",
            )
    total, low, high = (np.where(none, np.nan, end)[None] for end in (total, low, high))
    return Forecast(total, low, high, codes[None], reasons[None], form[None])


def share_of_form(form: Array) -> Array:
    """Share of the variance of forecasts that is of their form: all of it where that is not known."""
    return np.clip(np.where(np.isfinite(form), form, 1.0), 0.0, 1.0)


def together(deviations: Array, form: Array, rho: float) -> Array:
    """Standard deviation (..., k) of a sum from those of its parts, of noise and form together; see :func:`apart`."""
    return np.hypot(*apart(deviations, form, rho))


def apart(deviations: Array, form: Array, rho: float) -> tuple[Array, Array]:
    """Standard deviations (..., k) of noise, correlated by `rho`, and of form of a sum from those of its parts.

    `deviations` (..., s, k). `form` (..., s, k): share of each part's variance that is of its form.
    """
    noise = _times(deviations, np.sqrt(1 - form))
    common, independent = noise.sum(axis=-2) ** 2, (noise**2).sum(axis=-2)
    summed = np.sqrt(_times(common, np.asarray(rho)) + _times(independent, np.asarray(1 - rho)))
    return summed, _times(deviations, np.sqrt(form)).sum(axis=-2)


def _times(deviations: Array, part: Array) -> Array:
    """A part of what may be without end; none of it is none."""
    with np.errstate(invalid="ignore"):
        return np.where(part > 0, deviations * part, 0.0)


def overlap(series: Series) -> str:
    """A sentence on kernels whose times add up to more than the program's, the median over configurations; else empty.

    Times of several threads may do so. Raises InputError when one kernel takes longer than the program at every
    configuration.
    """
    rows = {kernel: at for at, (kernel, name) in enumerate(series.keys) if name == "time"}
    place = rows.pop(WHOLE, None)
    threads = series.points[:, [name == "threads" for name in series.parameters]]
    if place is None or not rows or (threads > 1).any():
        return ""
    kernels = reduce(series.values[list(rows.values())], "median", axis=2)
    whole = reduce(series.values[place], "median", axis=1)
    known = whole > 0
    if not known.any():
        return ""
    ratios = np.nan_to_num(kernels[:, known]) / whole[known]
    above = (ratios > EXCEEDS).all(axis=1)
    if above.any():
        raise InputError(
            f"{list(rows)[int(above.argmax())]} takes longer than the whole program at every configuration, and a part "
            "cannot exceed the whole",
            "import it again, with --total NAME of the timer that holds the others",
        )
    times = float(np.median(ratios.sum(axis=0)))
    if times <= OVERLAP:
        return ""
    return (
        f"the kernels' times add up to {times:.2g} times the program's: they hold each other or ran side by side, and "
        "their sum is not its time"
    )


def sometimes(series: Series) -> str:
    """A sentence that names kernels that are in some repetitions of a configuration only, as the program's sum holds
    them as if in all; the largest first, empty where there is none of any weight."""
    rows = np.flatnonzero([m == "time" and k != WHOLE for k, m in series.keys])
    if len(rows) < 2:
        return ""
    values = series.values[rows]
    present = np.isfinite(values)
    seen, runs = present.sum(axis=2), present.any(axis=0).sum(axis=1)
    part = (seen > 0) & (seen < runs)
    mean = np.where(present, values, 0.0).sum(axis=2) / np.maximum(seen, 1)
    total = mean.sum(axis=0)
    share = np.where(part & (total > 0), mean / np.where(total > 0, total, 1.0), 0.0)
    most = share.max(axis=1)
    some = [at for at in np.argsort(-most, kind="stable").tolist() if most[at] > SHARE_NAMED]
    if not some:
        return ""
    named = []
    for at in some[:NAMED]:
        place = share[at].argmax()
        named.append(
            f"{series.kernels[rows[at]]} (in {seen[at, place]} of {runs[place]} runs, {most[at]:.0%} of the time)"
        )
    more = f" and {len(some) - NAMED} more" if len(some) > NAMED else ""
    return "not in every repetition, but summed as if they were in all: " + ", ".join(named) + more
