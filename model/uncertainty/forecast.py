"""Forecasts: values, intervals and abstentions of many functions at many configurations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ranksight.core import special
from ranksight.core.arrays import Array, Index, Mask, ratio
from ranksight.core.errors import InputError
from ranksight.core.records import dataclass
from ranksight.core.units import format_factor
from ranksight.model import priors
from ranksight.model.quantity import CENTRAL, EACH_END, Quantity, deviations
from ranksight.model.quantity import TAIL as TAIL
from ranksight.model.uncertainty.mixture import Components, quantile, quantiles

OK, FEW_POINTS, NO_DATA, NOISE, WIDE, DISAGREE, NOT_POSITIVE, DOMAIN, UNVARIED, IMPUTED, FEW_SAMPLES, TURN = range(12)
REASONS = (
    "",
    "too few configurations, {points}, for its number of parameters, {parameters}",
    "no measured values",
    "noise above the signal: repetitions differ more than configurations do; more repetitions show whether it changes",
    "the interval spans a factor of {factor}, more than {bound:.3g}",
    "the functions that fit disagree at this configuration, by a factor of {factor}",
    "no function that fits stays above zero at this configuration",
    "the function has no value at this configuration",
    "{parameter} took one value in the measurements",
    "0 samples: time assumed from the program's mean CPI; run longer (more steps, --reps)",
    "few samples, {samples} a configuration, and the interval spans a factor of {factor}: measure "
    "longer runs, or sample more often",
    "the interval spans a factor of {factor}, more than {bound:.3g}, as growth may change beyond the runs "
    "({alone} if it does not)",
)
INSUFFICIENT = (FEW_POINTS, NO_DATA, DOMAIN, UNVARIED)
"""Codes of insufficient data with which the interval is not usable either."""

INNER, OUTER = 0.5, 0.99
"""Probabilities of two further central intervals, which say how a mixture's tails differ from a normal law's."""
WIDEST = 4.0
"""Ratio of the ends of an interval beyond which it answers nothing: the value is then unknown within a factor of
two either way."""
CANCELLED = 5.0
"""Relative standard deviation from which on a value is negligible compared with its error."""
ROUNDING = 1e-12
"""Relative half-width that no interval falls below: a value is the sum of terms that are rounded."""


def spanned(factor: float) -> str:
    """The factor of an interval's ends in a reason; beyond a million its size says nothing more."""
    return format_factor(factor) if factor < 1e6 else "a million and more"


def too_wide(factors: Array) -> NDArray[np.object_]:
    """The reason of intervals (n,) that span `factors`, of status :data:`WIDE`."""
    return np.array(
        [REASONS[WIDE].format(factor=spanned(each), bound=WIDEST) for each in factors.tolist()], dtype=object
    )


def judged_by_width(factor: Array, status: Index, reason: NDArray[np.object_]) -> tuple[Index, NDArray[np.object_]]:
    """Status and reason with :data:`WIDE` where an answer would be one, but for an interval that spans too much.

    `factor`, `status`, `reason` (...): upper over lower end, and what is known of the answers so far; NaN is too wide.
    """
    wide = ~(factor <= WIDEST) & (status == OK)
    text = reason.astype(object)
    text[wide] = too_wide(factor[wide])
    return np.where(wide, WIDE, status).astype(np.intp), text


@dataclass(frozen=True)
class Forecast:
    """What s functions say at k configurations."""

    value: Array  # (s, k)
    lower: Array  # (s, k)
    upper: Array  # (s, k)
    """Median and ends of the central interval of probability :data:`~ranksight.model.quantity.CENTRAL` for a new
    measured value, `level` in an answer (:meth:`at`); NaN where there is none."""
    status: Index  # (s, k): :data:`OK` or the number of an entry of :data:`REASONS`
    reason: NDArray[np.object_]
    form: Array  # (s, k)
    """Share of the variance that comes from not knowing the form; the rest comes from scatter and coefficients."""
    _: KW_ONLY
    freedom: Array = field(default_factory=lambda: np.array(np.inf))
    """Degrees of freedom (s, k) of the Student distribution whose tails the answers have; infinite for a normal one."""
    inner: Array = field(default_factory=lambda: np.array(np.nan))
    outer: Array = field(default_factory=lambda: np.array(np.nan))
    """Widths (s, k) of intervals of probabilities :data:`INNER` and :data:`OUTER`, in logarithms, over that of the one
    here, where answers are mixtures with tails of their own; NaN where they are Student distributions."""
    level: float = CENTRAL

    def __post_init__(self) -> None:
        for name in ("freedom", "inner", "outer"):
            object.__setattr__(self, name, np.broadcast_to(getattr(self, name), self.value.shape))

    @classmethod
    def settled(cls, value: Array, lower: Array, upper: Array, form: float = 0.0) -> Forecast:
        """Answers that nothing is against, all with one share of the form."""
        fine, empty = np.full(value.shape, OK), np.full(value.shape, "", dtype=object)
        return cls(value, lower, upper, fine, empty, np.full(value.shape, form))

    @classmethod
    def of(cls, quantity: Quantity, form: float = 0.0) -> Forecast:
        """The answers that quantities are, with nothing against them."""
        return cls.settled(*quantity.interval(CENTRAL), form)

    def at(self, level: float) -> Forecast:
        """The answers with central intervals of probability `level`; what has no interval that can be used stays so.

        Logarithms of what is above zero have the tails of a mixture or of a Student distribution, other values
        themselves. Raises InputError when the level is not a probability.
        """
        if not 0 < level < 1:
            raise InputError(f"level {level} is not a probability", "give a number between 0 and 1, such as 0.9")
        if level == self.level:
            return self
        wider = half_width(level, self.freedom) / half_width(self.level, self.freedom)
        wider = np.where(np.isfinite(self.outer), _between(level, self.inner, self.outer), wider)
        low, high = (self.value + wider * (end - self.value) for end in (self.lower, self.upper))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            powers = [self.value * (end / self.value) ** wider for end in (self.lower, self.upper)]
        positive = (self.value > 0) & (self.lower >= 0)
        lower, upper = (np.where(positive, power, end) for power, end in zip(powers, (low, high), strict=True))
        return replace(self, lower=lower, upper=upper, level=level)

    def judged(self) -> Forecast:
        """The same answers, :data:`WIDE` where an interval spans more than a factor of :data:`WIDEST`."""
        low, high = self.lower, self.upper
        factor = np.where(high == low, 1.0, np.divide(high, low, out=np.full(low.shape, np.inf), where=low > 0))
        status, reason = judged_by_width(factor, self.status, self.reason)
        return replace(self, status=status, reason=reason)

    def quantity(self, index: Index | slice = slice(None)) -> Quantity:
        """The rows `index` (K,), all when not given, as positive quantities; NaN where the index is negative, or the
        value is not above zero."""
        index = np.arange(len(self.value))[index] if isinstance(index, slice) else index
        value = np.where(index[:, None] >= 0, self.value[index], np.nan)
        value = np.where(value > 0, value, np.nan)
        return Quantity.of_ends(value, self.lower[index], self.upper[index])

    def having(self, quantity: Quantity) -> Forecast:
        """The same answers with other values and intervals."""
        value, lower, upper = quantity.interval(CENTRAL)
        return replace(self, value=value, lower=lower, upper=upper)

    @property
    def spread(self) -> Array:
        """Standard deviation (s, k) of the logarithm, by the width of the interval."""
        with np.errstate(divide="ignore", invalid="ignore"):
            width = np.log(self.upper / np.maximum(self.lower, 1e-300))
        return np.asarray(width / (2 * deviations(self.level)))


NO_ROWS = Forecast.settled(*np.empty((3, 0, 1)))
"""What is said of nothing, at any configurations."""


def _between(level: float, inner: Array, outer: Array) -> Array:
    """Width of the interval of probability `level` over that of :data:`CENTRAL`, from those of :data:`INNER` and
    :data:`OUTER`: straight between them, and beyond, in deviations of the normal law."""
    z, low, middle, high = (deviations(each) for each in (level, INNER, CENTRAL, OUTER))
    if z <= low:
        return inner * z / low
    if z <= middle:
        return inner + (1 - inner) * (z - low) / (middle - low)
    return 1 + (outer - 1) * (z - middle) / (high - middle)


def half_width(level: float, freedom: Array) -> Array:
    """Standard deviations from the median to an end of a central interval of probability `level`, of Student
    distributions with degrees of freedom `freedom` (...), infinite for normal ones."""
    normal = np.isinf(freedom)
    student = special.stdtrit(np.where(normal, 1.0, np.maximum(freedom, 1.0)), (1 + level) / 2)
    return np.where(normal, deviations(level), student)


def form_of(*parts: tuple[Array, Array]) -> Array:
    """Share of the form in the variance of a sum of independent errors; 0 where there is none.

    `parts` (pairs of array): variance of each error, in any unit that is one for all, and the share of the form in it.
    """
    whole = sum((np.nan_to_num(variance) for variance, _ in parts), np.zeros(()))
    ours = sum((np.nan_to_num(variance) * np.nan_to_num(share) for variance, share in parts), np.zeros(()))
    return ratio(ours, whole, 0.0)


def _at_members(at: Array, members: Index) -> Array:
    """Terms (..., k) of hypotheses at the points that `at` (t, k) has them at; zero where `members` pads with -1."""
    return np.concatenate([at, np.zeros((1, at.shape[1]))])[members]


def components(
    at: Array,
    members: Index,
    *,
    weight: Array,
    coefficients: Array,
    root: Array,
    variance: Array,
    freedom: Array,
    positive: Mask,
) -> Components:
    """Components of the mixtures that forecast a new value of s series at k points.

    Parameters
    ----------
    at : (t, k)
        Terms at the points (:func:`ranksight.model.search.terms.values`).
    members : (s, c, q)
        Terms of the hypotheses kept.
    weight, coefficients, root, variance, freedom
        See :class:`ranksight.model.search.screening.Found`.
    positive : (s,) bool
        Series whose values are forecast by their logarithm.

    Returns
    -------
    Components
        Of the value or its logarithm; weights are zero for hypotheses that have no value or break a physical limit
        there.
    """
    # Hypotheses first: reductions over them are sums of whole arrays.
    weight, coefficients, root, variance, freedom = (
        np.moveaxis(part, 1, 0) for part in (weight, coefficients, root, variance, freedom)
    )
    members = np.moveaxis(members, 1, 0)
    basis = _at_members(at, members)
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        mean = np.einsum("csq,csqk->csk", coefficients, basis)
        size = np.abs(mean)
        # Relative before it is squared: squares of what is huge or tiny are no numbers.
        share_of = basis / np.where(size > 0, size, 1.0)[:, :, None, :]
        turned = np.swapaxes(root, 2, 3) @ share_of
        error = np.einsum("cslk,cslk->csk", turned, turned)
        relative = np.sqrt(variance[..., None] * (1.0 + error))
    plus = positive[:, None]
    alive = (weight[..., None] > 0) & np.isfinite(mean) & (~plus | (mean > 0)) & np.isfinite(relative)
    share = np.where(alive, weight[..., None], 0.0)
    size, relative = np.where(alive, size, 1.0), np.where(alive, relative, 1.0)
    centre = np.where(alive, np.where(plus, np.log(np.where(mean > 0, mean, 1.0)), mean), 0.0)
    spread = np.where(alive, np.where(plus, of_logarithm(relative), relative * size), 1.0)
    return Components(share, centre, spread, np.broadcast_to(freedom[..., None], spread.shape))


def of_logarithm(relative: Array) -> Array:
    """Standard deviation of the logarithm of values of `relative` standard deviation.

    Where that is large because terms cancel (the time of messages with one rank), the value is next to nothing and its
    error is known: it is the ends of the interval that grow as the error, not their logarithms.
    """
    beyond = np.maximum(relative, CANCELLED) / CANCELLED
    return np.asarray(np.where(relative > CANCELLED, CANCELLED + np.log(beyond) / TAIL, relative))


class Summary(NamedTuple):
    """What mixtures say of s series at k points, (s, k) each."""

    median: Array
    lower: Array
    upper: Array
    form: Array
    alone: Array  # standard deviation without turns: of logarithms of what is positive
    freedom: Array  # degrees of freedom of the mixtures' tails
    inner: Array
    outer: Array
    """Widths of intervals of :data:`INNER` and :data:`OUTER` over those here; NaN where they were not asked for."""


def mixture_forecast(
    parts: Components,
    drift: tuple[Array, Array],
    positive: Mask,
    turns: Callable[[Components], Components] = lambda parts: parts,
    shaped: bool = False,
) -> Summary:
    """Median, interval, share of the variance from the form, and how far functions alone are apart.

    Parameters
    ----------
    parts : Components
        From :func:`components`.
    drift : pair of (s, k)
        Relative standard deviation that extrapolation adds (:mod:`ranksight.model.uncertainty.drift`), downwards and
        upwards.
    turns : callable
        Adds what the functions may turn into beyond the runs (:func:`ranksight.model.process.posterior.turned`).
    shaped : bool
        Find the widths of further intervals, too.
    """
    share, centre, spread, nu = parts
    total = share.sum(axis=0)
    share = share / np.where(total > 0, total, 1.0)
    # What may be otherwise beyond the runs widens the interval, and leaves the value where the functions are.
    median = quantile(0.5, share, centre, spread, nu)
    size = np.where(positive[:, None], 1.0, np.abs(centre))
    tails = EACH_END, 1 - EACH_END

    def ends(probabilities: tuple[float, ...], added: Array) -> Array:
        wide = np.sqrt(spread**2 + added**2)
        # Scatter and drift are known with different certainty (Satterthwaite 1946, Biometrics Bulletin 2, 110).
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            part = (spread / wide) ** 2
            variances = 1 / (part**2 / nu + (1 - part) ** 2 / priors.DRIFT_FREEDOM)
        return quantiles(probabilities, *turns(Components(share, centre, wide, np.where(wide > 0, variances, nu))))

    if drift[0] is drift[1]:
        added = size * drift[0]
        low, high = ends(tails, added)
    else:
        fall, rise = (size * side for side in drift)
        (low,), (high,), added = ends(tails[:1], fall), ends(tails[1:], rise), np.maximum(fall, rise)
    inner = outer = np.full(median.shape, np.nan)
    if shaped:
        further = [(1 + sign * level) / 2 for level in (INNER, OUTER) for sign in (-1, 1)]
        narrow, broad = np.diff(ends(tuple(further), added).reshape(2, 2, *median.shape), axis=1)[:, 0]
        inner, outer = ratio(narrow, high - low, np.nan), ratio(broad, high - low, np.nan)
    average = (share * centre).sum(axis=0)
    between = (share * (centre - average) ** 2).sum(axis=0) + (share * added**2).sum(axis=0)
    within = (share * spread**2).sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        form = np.where(between + within > 0, between / (between + within), 0.0)
        median, low, high = (np.where(positive[:, None], np.exp(q), q) for q in (median, low, high))
    # Steps to a root and rounding end next to each other, not on each other.
    digits = ROUNDING * np.abs(median)
    low, high = np.fmin(low, median - digits), np.fmax(high, median + digits)
    nothing = total <= 0
    median, low, high, form = (np.where(nothing, np.nan, q) for q in (median, low, high, form))
    with np.errstate(divide="ignore"):
        freedom = np.where(nothing, np.inf, 1 / (share / nu).sum(axis=0))
    return Summary(median, low, high, form, np.sqrt(between + within), freedom, inner, outer)
