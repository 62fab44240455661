"""Which windows of a meter agree on one law of power, and why the others do not.

A window holds the energy of other jobs as well where these were on its package or node, and lacks whole ranges of its
counter where this wrapped unseen. Several such windows draw a fit to them, so that each hides the others. Laws that
start at different powers settle on the windows that agree with them, as least trimmed squares does, and the account of
all windows that is most probable is taken:

    ln p = ln t(residuals of those that agree) + ln p(numbers of each kind) - n_more ln SHARED + n_less ln LACKS
           + ln p(coefficients)

with Student's t over the unknown scatter, and a Dirichlet-multinomial of the numbers: where one node was shared, or
one counter wrapped, others were as well.

Sources: Rousseeuw and Van Driessen, "Computing LTS regression for large data sets" (2006), for the steps; Intel,
"Software developer's manual", volume 3, RAPL, and AMD, "Processor programming reference", for counters of 32 bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ranksight.core import special
from ranksight.core.arrays import Array, Mask
from ranksight.core.units import counted, in_full, some_of
from ranksight.model import priors
from ranksight.model.energy.metered import Metered, power
from ranksight.model.energy.power import PowerLaw, amounts_of, expected, solved, surprise, terms_of

RANGES: Mapping[str, tuple[float, ...]] = {"package": (2.0**18, 2.0**16), "dram": (2.0**16, 2.0**18)}
"""Joules after which a counter starts again: 2^32 units of 2^-14 J or, of memory modules and AMD's, 2^-16 J."""
AGREES = 0.25
"""Logarithm of power by which a window may differ from what the others say, besides what the law is uncertain by."""
FEWEST = 3
"""Windows that others are judged by."""
STEP, STARTS, ROUNDS = 1.2, 24, 8
"""Ratio of the powers that laws start at, how many at most, and refits of each."""
CLEAR = 3.0
"""Logarithm of the odds of an account over others from which on it is taken for true."""
SHARED = 2.0
"""Energy over that of the program that other jobs add at most."""


@dataclass(frozen=True)
class _Account:
    """What kind each of n windows is, by one law."""

    step: float  # J, range of the counter; 0 where it is taken not to wrap
    ranges: Array  # (n,): whole ranges that a window lacks
    residual: Array  # (n,): logarithm of the energy, with the ranges that it lacks, over that of the law
    agrees: Mask  # (n,)
    known: Mask  # (n,): those that agree, and whose number of ranges is known by the law
    score: float  # logarithm of its probability

    @property
    def joules(self) -> Array:
        """What the ranges that windows lack add to their energy (n,)."""
        return self.step * self.ranges

    def clear(self, others: Sequence[_Account]) -> Mask:
        """Windows (n,) that agree, and of which no other account that is nearly as probable says something else."""
        near = [each for each in others if each.score > self.score - CLEAR]
        same = [(each.agrees == self.agrees) & (each.joules == self.joules) for each in near]
        return np.asarray(self.known & np.all(same, axis=0))


def fit_law(metered: Metered, component: str) -> tuple[PowerLaw | None, tuple[str, ...]]:
    """The law of the power of a component, and notes on windows that were left out; None where most are."""
    terms = terms_of(metered, component)
    law = solved(metered, component, terms)
    if len(metered) <= FEWEST or np.abs(np.log(metered.joules / _by(law, metered)[0])).max() <= AGREES / 2:
        return law, ()
    accounts = _accounts(metered, component, terms)
    if not accounts:
        return law, ()
    best = max(accounts, key=lambda account: account.score)
    clear = best.clear(accounts)
    rows = np.flatnonzero(clear)
    notes = tuple(_notes(metered, component, best, clear))
    # Where some lack an unknown number of ranges, those that agree may lack as many each: half are not enough.
    unclear = bool(((best.ranges > 0) & ~clear).any())
    if 2 * len(rows) < len(metered) + unclear:
        return None, (*notes, f"half or more of the energies of the {component} are left out: no power is fitted")
    return solved(replace(metered, joules=metered.joules + best.joules).rows(rows), component, terms), notes


def _by(law: PowerLaw, rows: Metered) -> tuple[Array, Array]:
    """Joules (n,) that a law gives for windows, and what the coefficients leave uncertain of their logarithms."""
    amounts = amounts_of(rows, law.component)
    matrix = law.matrix(amounts)
    joules = np.maximum(law.joules(amounts).sum(axis=0), np.finfo(np.float64).tiny)
    return joules, np.sqrt(np.einsum("qn,qr,rn->n", matrix, law.covariance, matrix)) / joules


def _accounts(rows: Metered, component: str, terms: tuple[str, ...]) -> list[_Account]:
    """What laws that start at different powers settle on, of counters that do not wrap and of those that do."""
    start = expected(rows, component, terms)
    accounts = []
    for step in (0.0, *RANGES.get(component, ())):
        wraps = rows.joules < step
        if step and not wraps.any():
            continue
        ratios = np.log((rows.joules + step * wraps) / start)
        low, high = min(np.log(rows.joules / start)), max(ratios)
        count = int(np.clip(np.ceil((high - low) / np.log(STEP)) + 1, 1, STARTS))
        levels = np.exp(np.linspace(low, high, count))
        accounts += [_settled(rows, component, terms, start * level, step) for level in levels]
    return [account for account in accounts if account is not None]


def _settled(rows: Metered, component: str, terms: tuple[str, ...], joules: Array, step: float) -> _Account | None:
    """The account of windows by the law that those settle on which agree with `joules` (n,); None of too few."""
    uncertain, scatter, before = np.zeros(len(rows)), AGREES / 2, np.full(len(rows), -1.0)
    for _ in range(ROUNDS):
        wraps = (rows.joules < step) & (joules > step)
        ranges = np.where(wraps, np.maximum(np.round((joules - rows.joules) / (step or 1.0)), 0.0), 0.0)
        whole = rows.joules + step * ranges
        residual = np.log(whole / joules)
        agrees = np.abs(residual) <= AGREES + 4 * uncertain * (ranges == 0)
        # How many ranges are lacking shows only where one is more than the law is uncertain by.
        known = agrees & ((ranges == 0) | (step > 4 * np.hypot(uncertain, scatter) * joules))
        if np.count_nonzero(known) < FEWEST:
            return None
        kinds = np.where(agrees, ranges, -1.0)
        if (kinds == before).all():
            break
        before = kinds
        fitted = replace(rows, joules=whole).rows(np.flatnonzero(known))
        law = solved(fitted, component, terms)
        (joules, uncertain), scatter = _by(law, rows), law.scatter
    score = _score(residual, agrees, ranges) - surprise(law, fitted)
    return _Account(step, ranges, residual, agrees, known, score)


def _score(residual: Array, agrees: Mask, ranges: Array) -> float:
    """Logarithm of the probability of an account of windows."""
    worth, scatter = priors.POWER_WORTH, priors.POWER_SCATTER
    count, squares = int(np.count_nonzero(agrees)), float((residual[agrees] ** 2).sum())
    more, less = (int(np.count_nonzero(~agrees & side)) for side in (residual > 0, residual < 0))
    wrapped = int(np.count_nonzero(agrees & (ranges > 0)))
    of_residuals = (
        special.gammaln((worth + count) / 2)
        - special.gammaln(worth / 2)
        - count / 2 * np.log(np.pi * worth * scatter**2)
        - (worth + count) / 2 * np.log1p(squares / (worth * scatter**2))
    )
    numbers, prior = np.array([count - wrapped, wrapped, more]), np.array(list(priors.WINDOWS.values()))
    of_kinds = (special.gammaln(prior + numbers) - special.gammaln(prior)).sum()
    of_kinds += special.gammaln(prior.sum()) - special.gammaln(prior.sum() + numbers.sum())
    return float(of_residuals + of_kinds - more * np.log(SHARED) + less * np.log(priors.WINDOW_LACKS))


def _notes(rows: Metered, component: str, account: _Account, clear: Mask) -> list[str]:
    """What is wrong with the windows that are corrected or left out."""
    watts, whole = power(rows), power(replace(rows, joules=rows.joules + account.joules))
    wrapped, more = account.ranges > 0, account.residual > 0
    lacking = f"lacks whole ranges of a counter that wrapped, {in_full(account.step)} J each"
    texts = []
    for mask, why in (
        (wrapped & clear, f"{lacking}, which are added"),
        (wrapped & ~clear, f"{lacking}, how many is not clear: left out"),
        (~wrapped & ~clear & more, "is more than that of the other runs: left out, another job was on the node"),
        (~wrapped & ~clear & ~more, "is less than that of the other runs: left out"),
    ):
        named = []
        for at in np.flatnonzero(mask):
            corrected = f", with them {whole[at]:.3g} W" if wrapped[at] and clear[at] else ""
            named.append(f"{rows.configurations[at]} ({watts[at]:.3g} W{corrected})")
        if named:
            texts.append(f"power of the {component} in {counted(len(named), 'run')}, {some_of(named)}, {why}")
    return texts
