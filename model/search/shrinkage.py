"""Which hypotheses are common among the series of a metric: kernels of one program behave similarly.

Weights of classes of hypotheses (structure, and the power of what decays) are estimated from all series together by
expectation maximisation, in addition to the prior. Powers of what grows are distinguished by each series alone: a class
learned from others must not decide how something explodes.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ranksight.core.arrays import Array, Index, Mask
from ranksight.model import priors
from ranksight.model.search.gridterms import GRID_TERMS
from ranksight.model.search.problem import Problem
from ranksight.model.search.screening import Screened
from ranksight.model.search.terms import NUMBERED

ROUNDS = 3
FEW = 200
"""Series up to which the prior of each is learned from the others alone: ten times what the weights of forms count
for."""
GRID = 32.0
"""Classes of each number of dimensions of a process grid."""
SEVERAL = (2, 3)
"""Dimensions of process grids that few numbers of ranks cannot distinguish."""
STEP = 1 / 2
"""Between the powers of decay that classes stand for: others are of the class within a quarter of them."""


def classes(table: Array, members: Index) -> Index:
    """Class (h,) of each hypothesis, from terms (t, m, 3) and the hypotheses' rows of them (h, q)."""
    exponent, logs, rate = (table[:, :, part] for part in range(3))
    grows = (rate > 0) | (exponent > 0) | ((exponent == 0) & (logs > 0))
    digit = np.where(exponent < 0, 2 + np.round(-exponent / STEP), np.where(grows, 1.0, 0.0))
    # Kernels of a program share its process grid.
    dimensions = np.zeros(NUMBERED + 1)
    dimensions[1 : len(GRID_TERMS) + 1] = [each.dimensions for each in GRID_TERMS]
    digit += GRID * dimensions[np.maximum(-rate, 0).astype(np.intp)]
    code = 1 + digit @ (256.0 ** np.arange(table.shape[1]))
    rows = np.where(members >= 0, code[members], 0.0)
    _, number = np.unique(np.sort(rows, axis=1), axis=0, return_inverse=True)
    return np.asarray(number.reshape(-1), dtype=np.intp)


def shift(problem: Problem, screened: Screened, evidence: Array) -> tuple[Array, Array]:
    """What to add to the hypotheses' evidence (s, h), of series that are none of these and of these: how much more
    common their classes are than thought, logarithms.

    The prior of a series is learned from the others alone: its own values must not count twice. Where there are many,
    one series makes no difference, and the same is added to all. `evidence` (s, h): log marginal likelihoods with the
    space's own prior; series without any count for nothing.
    """
    if not screened.common:
        # Each series has hypotheses of its own: there are no common classes to count.
        return np.zeros((1, 0)), np.zeros((1, 0))
    base = np.exp(screened.prior - screened.prior.max())
    base = base / base.sum()
    group = classes(problem.basis.decode(screened.choice[0]), screened.members)
    expected = np.bincount(group, base).astype(np.float64)
    possible: Mask = np.asarray(np.isfinite(evidence).any(axis=1))
    evidence = evidence[possible]
    likelihood = np.exp(evidence - evidence.max(axis=1, keepdims=True)) if len(evidence) else np.ones((0, len(base)))
    ratio = np.ones((1, len(expected)))
    others = np.ones((len(likelihood), len(expected))) if len(likelihood) <= FEW else None
    for _ in range(ROUNDS):
        moved = _by_class(likelihood * ratio[0, group], group)
        ratio = _ratio(expected, moved.sum(axis=0, keepdims=True), len(moved))
        if others is not None:
            moved = _by_class(likelihood * others[:, group], group)
            others = _ratio(expected, moved.sum(axis=0) - moved, len(moved) - 1)
    every = np.log(ratio)[:, group]
    if others is None:
        return every, every
    repeated = np.repeat(every, len(possible), axis=0)
    repeated[possible] = np.log(others)[:, group]
    return every, repeated


def _by_class(weight: Array, group: Index) -> Array:
    """Shares (s, g) of classes in the weights (s, h) of hypotheses."""
    order = np.argsort(group, kind="stable")
    first = np.searchsorted(group[order], np.arange(group.max() + 1))
    total = np.add.reduceat(weight[:, order], first, axis=1)
    return np.asarray(total / total.sum(axis=1, keepdims=True))


def _ratio(expected: Array, seen: Array, series: int) -> Array:
    """How much more common classes are than expected, where they carry `seen` of so many series."""
    return (priors.FORMS_WORTH * expected + np.maximum(seen, 0.0)) / (priors.FORMS_WORTH + series) / expected


def on_one_grid(
    problem: Problem, screened: Screened, evidence: Array, traced: Mapping[int, float] | None = None
) -> Array:
    """What to add to the evidence (s, h) of hypotheses, as a program has one process grid.

    The sides of grids of two and three dimensions agree at few ranks. Which of them the others' values bear is
    p_D = t_D prod_r sum_h w_rh f_D(h), over all series r but the one in question, with the weights w of their
    hypotheses and f_D(h) the share of forms like h among those of a program on a grid of D dimensions, over that before
    the data. t_D are the weights that `traced` gives grids of D dimensions, where it knows such.
    """
    table = problem.basis.dimensions(screened.choice)
    has = np.zeros((len(SEVERAL), *evidence.shape), dtype=bool)
    for column in screened.members.T:
        cell = table[:, column]
        for at, d in enumerate(SEVERAL):
            has[at] |= (cell == d) & (column >= 0)
    if not has.any():
        return np.zeros((1, evidence.shape[1]))
    foreign = priors.FOREIGN_GRID
    grown = len(SEVERAL) * np.where(has.sum(axis=0) > 1, foreign, np.where(has, 1 - foreign, foreign))
    factor = np.where(has.any(axis=0), grown, 1.0)
    possible = np.isfinite(evidence).any(axis=1)
    weight = np.zeros(evidence.shape)
    weight[possible] = np.exp(evidence[possible] - evidence[possible].max(axis=1, keepdims=True))
    weight[possible] /= weight[possible].sum(axis=1, keepdims=True)
    borne = np.where(possible, np.log(np.where(possible, (weight * factor).sum(axis=2), 1.0)), 0.0)
    others = borne.sum(axis=1, keepdims=True) - borne
    weights = np.array([(traced or {}).get(d, 0.0) for d in SEVERAL])
    share = np.exp(others - others.max(axis=0)) * (weights if weights.any() else np.ones(len(SEVERAL)))[:, None]
    return np.asarray(np.log(np.einsum("ds,dsh->sh", share / share.sum(axis=0), factor)))


def of(shift: Array, rows: Index) -> Array:
    """What is added to the evidence of some series."""
    return shift if len(shift) == 1 else shift[rows]


def shifted(evidence: Array, shift: Array) -> Array:
    """Evidence (s, h) with what the classes of the first hypotheses are more common; those that only some series have
    come last and have none."""
    return evidence + np.pad(shift, ((0, 0), (0, evidence.shape[1] - shift.shape[1])))
